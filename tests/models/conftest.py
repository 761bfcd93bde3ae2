# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every oracle set of SmolVLA under tests/data/oracles, loaded once."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
SETS = sorted(path.name for path in ORACLES.glob("smolvla_*"))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass
class Oracle:
    """One set: what went in and what LeRobot made of it, in our fixed layout's terms."""

    folder: Path
    arch: dict
    tensors: dict  # file -> name -> array
    checkpoint: object
    model: object

    @property
    def pixels(self):
        made = self.tensors["preprocessed"]
        count = sum(name.startswith("pixel_values/") for name in made)
        return [torch.from_numpy(made[f"pixel_values/{index}"][0]) for index in range(count)]

    @property
    def slots(self):
        from omni_ros.models.smolvla.prefix import EMPTY, PRESENT

        made = self.tensors["preprocessed"]
        return [
            PRESENT if made[f"image_mask/{index}"][0] else EMPTY
            for index in range(len(self.pixels))
        ]

    @property
    def prompt(self):
        """Tokens and mask, padded to the checkpoint's own length."""
        made, length = self.tensors["preprocessed"], self.checkpoint.config.language
        tokens, mask = np.zeros(length, np.int64), np.zeros(length, bool)
        given = made["tokens"][0]
        tokens[: len(given)], mask[: len(given)] = given, made["token_mask"][0]
        return tokens, mask

    @property
    def state(self):
        return torch.from_numpy(self.tensors["preprocessed"]["state_padded"][0])

    @property
    def noise(self):
        return torch.from_numpy(self.tensors["inputs"]["noise"][0])

    @property
    def rows(self):
        """Rows of our prefix that LeRobot's prefix has, in its order."""
        layout = self.model.layout
        prompt = len(self.tensors["preprocessed"]["tokens"][0])
        return [*range(layout.slots * layout.slot_length + prompt), layout.length - 1]

    def run(self, trace=None, model=None, **changed):
        from omni_ros.models.smolvla.policy import sample_actions

        tokens, mask = changed.get("prompt", self.prompt)
        return sample_actions(
            model or self.model, changed.get("pixels", self.pixels),
            changed.get("slots", self.slots), tokens, mask, changed.get("state", self.state),
            changed.get("noise", self.noise), trace=trace,
        )


@lru_cache
def read_oracle(name: str) -> Oracle:
    from omni_ros.models.smolvla.load import build, load_checkpoint

    folder = ORACLES / name
    tensors = {
        path.stem: dict(np.load(path, allow_pickle=False))
        for path in (folder / "tensors").glob("*.npz")
    }
    checkpoint = load_checkpoint(folder / "checkpoint")
    slots = sum(key.startswith("pixel_values/") for key in tensors["preprocessed"])
    arch = json.loads((folder / "arch.json").read_text())
    return Oracle(folder, arch, tensors, checkpoint, build(checkpoint, slots))


@pytest.fixture(params=SETS)
def oracle(request) -> Oracle:
    return read_oracle(request.param)


@pytest.fixture
def editable(tmp_path) -> Path:
    """A tiny checkpoint of random weights to break: tmp_path/checkpoint, beside tmp_path/vlm."""
    from omni_ros.models.smolvla.random_checkpoint import write_checkpoint

    return write_checkpoint(tmp_path, tokenizer=ORACLES / "smolvla_given" / "vlm")


@pytest.fixture
def lerobots(tmp_path) -> Path:
    """A copy of the checkpoint that LeRobot itself saved."""
    for part in ("checkpoint", "vlm"):
        shutil.copytree(ORACLES / "smolvla_given" / part, tmp_path / "given" / part)
    return tmp_path / "given" / "checkpoint"
