# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A small bundle of three real programs."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from omni_ros.bundles import file_entry, layout, read_manifest, this_machine, write_manifest

PROGRAMS = Path(__file__).resolve().parents[1] / "data" / "programs"
#: Which of the small programs stands for which of a policy's.
PARTS = {"vision_encoder": "mlp", "fusion_backbone": "pair", "action_head": "head"}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
    "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None,
    "decoder": None, "model": {"type": "BPE", "vocab": {"a": 0, "o": 1}, "merges": []},
}


def program_entry(name: str, role: str) -> layout.ProgramEntry:
    stored = np.load(PROGRAMS / f"{name}.npz")

    def tensors(kind: str) -> tuple[layout.Tensor, ...]:
        return tuple(
            layout.Tensor(key.removeprefix(kind), str(stored[key].dtype), stored[key].shape)
            for key in stored.files
            if key.startswith(kind)
        )

    return layout.ProgramEntry(
        file=f"{role}.pte",
        method="forward",
        recipe="fp32",
        inputs=tensors("inputs."),
        outputs=tensors("outputs."),
        arenas=(0,),
        constants_bytes=(PROGRAMS / f"{name}.pte").stat().st_size,
        workspace_bytes=4096,
        delegates={"XnnpackBackend": 1},
        leftover=(),
        difference=1e-7,
    )


def small_manifest(files: dict[str, layout.FileEntry]) -> layout.Manifest:
    programs = {role: program_entry(name, role) for role, name in PARTS.items()}
    joints = (layout.JointName("shoulder", "rad"), layout.JointName("gripper", "normalised"))
    return layout.Manifest(
        family="smolvla",
        name="small",
        dimensions=layout.Dimensions(4, 2, 2, 8, 8, 10, 7, 4, 2, 1, 1, 8, 8, 4),
        cameras=(layout.Camera("front", "observation.images.front", 64, 64),),
        empty_cameras=0,
        rename_map={"observation.images.cam": "observation.images.front"},
        features=layout.Features("observation.state", "action"),
        joints=joints,
        state_joints=joints,
        image=layout.Image(64, 64, "pad", -1.0, -1.0, 1.0, "end", False),
        prefix=layout.Prefix(1, 0, 0, 10000.0),
        tokenizer=layout.Tokenizer("tokenizer.json", 2, "longest", True, 0, "right"),
        embeddings=layout.Embeddings("embeddings.npy", "float32", 2, 8),
        normalisation=layout.Normalisation("statistics.json", "MEAN_STD", "MEAN_STD", 1e-8),
        flow=layout.Flow(10, 1.0, -0.1, 0.004, 4.0),
        rtc=layout.Rtc(False, "LINEAR", 10, 10.0, "horizon", "last"),
        programs=programs,
        memory=layout.Memory.of(programs),
        files=files,
        golden={role: f"golden/{role}.npz" for role in PARTS},
        tolerance=layout.Tolerance(1e-6, 1e-4),
        provenance=layout.Provenance(
            checkpoint_sha256="0" * 64,
            backbone_sha256=None,
            options={"recipe": "fp32", "allow_portable": False, "compat": 0.4},
            tools=layout.Tools("2.13.0", "1.5.1", "3.11.7", "0.1.0"),
            machine=this_machine(),
            created="2026-11-29T19:00:00+00:00",
            minutes=0.5,
            peak_memory_bytes=1 << 30,
        ),
    )


@pytest.fixture(scope="session")
def executorch() -> None:
    """For tests that run programs."""
    try:
        metadata.distribution("executorch")
    except metadata.PackageNotFoundError:
        pytest.skip("executorch is not installed")


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, made once; not to be changed."""
    root = tmp_path_factory.mktemp("pristine") / "small.bundle"
    (root / "golden").mkdir(parents=True)
    for role, name in PARTS.items():
        shutil.copy(PROGRAMS / f"{name}.pte", root / f"{role}.pte")
        shutil.copy(PROGRAMS / f"{name}.npz", root / "golden" / f"{role}.npz")
    (root / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    np.save(root / "embeddings.npy", np.zeros((2, 8), np.float32))
    moments = {"mean": [0, 0.5], "std": [1, 2]}
    statistics = {"observation.state": moments, "action": moments}
    (root / "statistics.json").write_text(json.dumps(statistics))
    write_manifest(root, small_manifest(entries(root)))
    return root


@pytest.fixture
def bundle(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the bundle, to be changed."""
    return Path(shutil.copytree(pristine, tmp_path / "small.bundle"))


def entries(root: Path) -> dict[str, layout.FileEntry]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): file_entry(path)
        for path in paths
        if path.name != "bundle.yaml"
    }


def sign(
    root: Path,
    change: Callable[[layout.Manifest], layout.Manifest] = lambda manifest: manifest,
) -> None:
    """Write the manifest anew, as someone would who wants a changed file to be believed."""
    manifest = dataclasses.replace(read_manifest(root), files=entries(root))
    write_manifest(root, change(manifest))


@pytest.fixture(name="sign")
def sign_fixture() -> Callable[..., None]:
    return sign
