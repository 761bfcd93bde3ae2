# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write checkpoints of random weights in LeRobot's layout, for benches and tests.

A tensor at a time, so that memory stays at the size of the largest.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

DTYPES = {"f32": ("F32", torch.float32), "bf16": ("BF16", torch.bfloat16),
          "f16": ("F16", torch.float16)}

Shape = tuple[str, tuple[int, ...]]
Make = Callable[[str, tuple[int, ...]], torch.Tensor]


def random_tensor(
    name: str, shape: tuple[int, ...], seed: int, *, table: str, norm: float = 1.0
) -> torch.Tensor:
    """Return values of the size training leaves: norms near 1, products that keep variance.

    :param table: the token table, whose rows are scaled by the root of the width when looked up.
    :param norm: middle of a norm's weights.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) ^ seed)
    values = torch.randn(shape, generator=generator)
    if len(shape) == 1:
        return norm + 0.05 * values if "norm" in name and name.endswith("weight") else 0.02 * values
    if name == table:
        return values * shape[1] ** -0.5
    return values * float(np.prod(shape[1:])) ** -0.5


def write_safetensors(path: Path, shapes: Sequence[Shape], dtype: str, make: Make) -> None:
    """Write one file, a tensor at a time: the header needs only shapes."""
    code, kind = DTYPES[dtype]
    header, offset = {}, 0
    for name, shape in shapes:
        size = int(np.prod(shape)) * kind.itemsize
        place = [offset, offset + size]
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": place}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes:
            tensor = make(name, shape).to(kind).contiguous()
            file.write(tensor.view(torch.uint8).reshape(-1).numpy().data)


def write_weights(
    folder: Path, shapes: Sequence[Shape], dtype: str, make: Make, shard_bytes: int | None
) -> None:
    """Write model.safetensors, or shards of about a size with their index."""
    if shard_bytes is None:
        write_safetensors(folder / "model.safetensors", shapes, dtype, make)
        return
    shards: list[list[Shape]] = [[]]
    held = 0
    for name, shape in shapes:
        size = int(np.prod(shape)) * DTYPES[dtype][1].itemsize
        if shards[-1] and held + size > shard_bytes:
            shards.append([])
            held = 0
        shards[-1].append((name, shape))
        held += size
    weight_map = {}
    for index, shard in enumerate(shards):
        name = f"model-{index + 1:05d}-of-{len(shards):05d}.safetensors"
        write_safetensors(folder / name, shard, dtype, make)
        weight_map.update({key: name for key, _ in shard})
    index_file = folder / "model.safetensors.index.json"
    index_file.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=1))


def random_statistics(widths: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """Return statistics of features of some widths, '<feature>.<statistic>' -> values."""
    rng = np.random.default_rng(seed)
    flat = {}
    for feature, width in widths.items():
        mean = rng.normal(0, 20, width).astype(np.float32)
        std = rng.uniform(5, 40, width).astype(np.float32)
        flat |= {f"{feature}.mean": mean, f"{feature}.std": std}
    for feature in widths:
        mean, std = flat[f"{feature}.mean"], flat[f"{feature}.std"]
        flat |= {f"{feature}.q01": mean - 2 * std, f"{feature}.q99": mean + 2 * std}
    return flat


def write_processors(
    folder: Path, statistics: dict[str, np.ndarray], policy: dict, before: list[dict],
    *, relative: dict | None = None,
) -> None:
    """Write both processors and their statistics.

    :param policy: config.json's content; a normaliser leaves features that it does not name as they
        are. :param before: steps that come before the normaliser. :param relative: the config of
        the step that makes actions relative to the state.
    """
    outputs = policy["output_features"]
    for name, kind, features in (
        ("preprocessor", "normalizer", {**policy["input_features"], **outputs}),
        ("postprocessor", "unnormalizer", outputs),
    ):
        step = len(before) if name == "preprocessor" else 0
        state_file = f"policy_{name}_step_{step}_{kind}_processor.safetensors"
        save_file(statistics, folder / state_file)
        steps = [{
            "registry_name": f"{kind}_processor", "state_file": state_file,
            "config": {"eps": 1e-8, "features": features,
                       "norm_map": policy["normalization_mapping"]},
        }]
        steps = [*before, *steps] if name == "preprocessor" else steps
        if relative is not None and name == "preprocessor":
            steps.insert(0, {"registry_name": "relative_actions_processor", "config": relative})
        elif relative is not None:
            steps.append({"registry_name": "absolute_actions_processor",
                          "config": {"enabled": relative["enabled"]}})
        text = json.dumps({"name": f"policy_{name}", "steps": steps}, indent=2)
        (folder / f"policy_{name}.json").write_text(text)


def prompt_steps(length: int, tokenizer: str, newline: str) -> list[dict]:
    """Return the steps that make a prompt, and one that renames nothing."""
    return [
        {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
        {"registry_name": newline, "config": {}},
        {"registry_name": "tokenizer_processor", "config": {
            "max_length": length, "task_key": "task", "padding_side": "right",
            "padding": "max_length", "truncation": True, "tokenizer_name": tokenizer,
        }},
    ]


def copy_tokenizer(source: Path | None, target: Path) -> None:
    """Copy a folder's files, but its config.json."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()) if source is not None else ():
        if path.is_file() and path.name != "config.json":
            shutil.copyfile(path, target / path.name)
