# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A reference set: a checkpoint, one observation, and every tensor LeRobot made of it.

A folder with `checkpoint/`, `vlm/`, `arch.json` and `tensors/*.npz`; see
tests/data/oracles/README.md for what each file holds.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILES = ("inputs", "preprocessed", "prefix", "steps", "outputs")
_DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64}

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Reference:
    """One set, batch dimensions included. `rtc` is empty where none was recorded."""

    folder: Path
    arch: Mapping[str, Any]
    inputs: Arrays
    preprocessed: Arrays
    prefix: Arrays
    steps: Arrays
    outputs: Arrays
    rtc: Arrays

    @property
    def task(self) -> str:
        return str(self.inputs["task"])

    @property
    def noise(self) -> np.ndarray:
        """f32 [chunk, padded action]."""
        return self.inputs["noise"][0]


def read_reference(folder: Path) -> Reference:
    """Read a set.

    :raises ValueError: it is none, or a file of it cannot be read; the file is named.
    """
    arrays: dict[str, Arrays] = {}
    for name in (*FILES, "rtc"):
        path = folder / "tensors" / f"{name}.npz"
        if name == "rtc" and not path.exists():
            arrays[name] = {}
            continue
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays[name] = {key: stored[key] for key in stored.files}
        except FileNotFoundError:
            raise ValueError(
                f"{path} is not there: expected a reference set, a folder with checkpoint/, vlm/, "
                f"arch.json and tensors/ ({', '.join(FILES)}.npz)"
            ) from None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path}: cannot be read ({error})") from error
    return Reference(folder, read_object(folder / "arch.json"), **arrays)


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object. :raises ValueError: it is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: holds a {type(value).__name__}, expected an object")
    return value


def cross_projections(folder: Path, layers: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the expert's key and value projections of its cross-attention layers, f32 [out, in].

    LeRobot applies them at every step; in a bundle the backbone has them applied already.
    """
    config = read_object(folder / "checkpoint" / "config.json")
    if "cross" not in str(config.get("attention_mode", "cross_attn")):
        return {}
    every = int(config.get("self_attn_every_n_layers", 2))
    weights = folder / "checkpoint" / "model.safetensors"
    found = {}
    for layer in range(layers):
        if every <= 0 or layer % every:
            key, value = (
                f"model.vlm_with_expert.lm_expert.layers.{layer}.self_attn.{kind}_proj.weight"
                for kind in "kv"
            )
            found[layer] = read_tensor(weights, key), read_tensor(weights, value)
    return found


def state_deviation(folder: Path) -> np.ndarray | None:
    """Return the state's standard deviations f32 [state], None where no processor has them.

    A set of a π0.5 has them beside the quantiles that it normalises by.
    """
    for path in sorted((folder / "checkpoint").glob("*_normalizer_processor.safetensors")):
        try:
            return read_tensor(path, "observation.state.std")
        except ValueError:
            continue
    return None


def read_tensor(path: Path, name: str) -> np.ndarray:
    """Read one tensor of a .safetensors file as float32; needs neither PyTorch nor safetensors.

    :raises ValueError: there is none, or the file is damaged.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            entry = header[name]
            start, end = entry["data_offsets"]
            file.seek(8 + length + start)
            data = file.read(end - start)
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data, _DTYPES[entry["dtype"]]).astype(np.float32)
        return values.reshape(entry["shape"])
    except KeyError as error:
        raise ValueError(f"{path}: has no {name} that can be read (missing: {error})") from error
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: {name} cannot be read ({error})") from error
