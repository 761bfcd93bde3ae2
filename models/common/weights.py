# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's tensors by name, without reading them until asked: one file, shards, LoRA."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from .errors import CheckpointError, listed

COMPILED = "_orig_mod"  # torch.compile wraps modules and leaves this in their names


def strip_compiled(name: str) -> str:
    """Remove what torch.compile adds to a parameter's name."""
    return ".".join(part for part in name.split(".") if part != COMPILED)


def read_json(path: Path) -> dict:
    """Read a JSON object; say which file is at fault if it is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} does not exist; expected a folder as save_pretrained writes it"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected a JSON file; reading it gave: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


class Weights:
    """Tensors of a checkpoint folder under their plain names.

    `names` maps each plain name to its shape. Files stay open (memory-mapped); `get` returns a view
    of the mapping where the dtype allows.
    """

    def __init__(self, folder: Path, stem: str = "model") -> None:
        self.folder = folder
        self.files = self._find(folder, stem)
        self._handles = {}
        self._where: dict[str, tuple[Path, str]] = {}
        self.names: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self._deltas: dict[str, torch.Tensor] = {}
        self._replaced: dict[str, torch.Tensor] = {}
        for path in self.files:
            self._index(path)

    @staticmethod
    def _find(folder: Path, stem: str) -> list[Path]:
        single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
        if single.is_file():
            return [single]
        if not index.is_file():
            raise CheckpointError(
                f"{folder} holds neither {single.name} nor {index.name}; expected a folder as "
                "save_pretrained writes it (files of other formats must be converted first)"
            )
        weight_map = read_json(index).get("weight_map", {})
        if not isinstance(weight_map, dict):
            raise CheckpointError(f"{index}: weight_map is {weight_map!r:.80}: expected an object")
        shards = sorted({str(name) for name in weight_map.values()})
        for name in shards:
            if Path(name).name != name or not (folder / name).is_file():
                raise CheckpointError(f"{index} names the file {name!r}, which is not in {folder}")
        if not shards:
            raise CheckpointError(f"{index} names no file: expected a weight_map")
        return [folder / name for name in shards]

    def _index(self, path: Path) -> None:
        try:
            handle = safe_open(str(path), "pt")
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{path} is not a readable safetensors file ({error}); fetch it again"
            ) from None
        self._handles[path] = handle
        for name in handle.keys():
            plain = strip_compiled(name)
            if plain in self._where:
                raise CheckpointError(
                    f"{plain} is there twice: as {self._where[plain][1]} in "
                    f"{self._where[plain][0].name} and as {name} in {path.name}; remove one"
                )
            part = handle.get_slice(name)
            self._where[plain] = (path, name)
            self.names[plain] = tuple(part.get_shape())
            self.dtypes[plain] = part.get_dtype()

    def get(self, name: str) -> torch.Tensor:
        """Return the tensor as float32, LoRA deltas added."""
        if name in self._replaced:
            return self._replaced[name].float()
        path, stored = self._where[name]
        tensor = self._handles[path].get_tensor(stored)
        if not tensor.is_floating_point():
            raise CheckpointError(
                f"{name} holds {tensor.dtype} in {path.name}: expected a floating-point dtype; "
                "save the checkpoint unquantised"
            )
        tensor = tensor.float()
        if name in self._deltas:
            tensor = tensor + self._deltas[name]
        return tensor

    def table(self, name: str) -> torch.Tensor:
        """Return the tensor in a dtype that tables are kept in: that of the file, or float32."""
        tensor = self.raw(name)
        kept = (torch.float32, torch.float16, torch.bfloat16)
        return tensor if tensor.dtype in kept else self.get(name)

    def raw(self, name: str) -> torch.Tensor:
        """Return the tensor in the dtype of the file (float32 if LoRA changed it)."""
        if name in self._replaced or name in self._deltas:
            return self.get(name)
        path, stored = self._where[name]
        return self._handles[path].get_tensor(stored)

    # -- LoRA ------------------------------------------------------------------------------------

    def refuse_adapters_inside(self) -> None:
        """Refuse a file that holds adapters unmerged between the weights."""
        marks = (".lora_A.", ".lora_B.", ".base_layer.", ".modules_to_save.")
        found = [name for name in self.names if any(mark in f"{name}." for mark in marks)]
        if found:
            raise CheckpointError(
                f"{self.folder} holds unmerged adapter weights ({listed(found, 3)}); merge them "
                "where it was trained (model.merge_and_unload()) and save again"
            )

    def merge_adapter(self, folder: Path) -> None:
        """Add the LoRA adapter in `folder` (adapter_config.json) to these weights."""
        where = folder / "adapter_config.json"
        config = read_json(where)
        scale = lora_scale(config, where)
        adapter = Weights(folder, "adapter_model")
        if not adapter.names:
            raise CheckpointError(f"{adapter.files[0]} holds no tensors: expected an adapter's")
        pairs: dict[str, dict[str, str]] = {}
        for name in adapter.names:
            plain = name.removeprefix("base_model.model.").replace(".modules_to_save", "")
            for part in ("lora_A", "lora_B"):
                if f".{part}." in name:
                    target = f"{plain.partition(f'.{part}.')[0]}.weight"
                    pairs.setdefault(self._known(target, name, where), {})[part] = name
                    break
            else:
                if any(word in name for word in ("lora_", "hada_", "ia3_")):
                    raise CheckpointError(
                        f"{where.parent}: can not merge {name}: expected lora_A and lora_B of "
                        "Linear layers; merge it where it was trained"
                    )
                target = self._known(plain, name, where)
                self._check_shape(target, adapter.names[name], name)
                self._replaced[target] = adapter.get(name)
        for target, pair in pairs.items():
            if set(pair) != {"lora_A", "lora_B"}:
                raise CheckpointError(
                    f"{where.parent}: {target} has {listed(pair)} alone: expected lora_A and lora_B"
                )
            down, up = adapter.get(pair["lora_A"]), adapter.get(pair["lora_B"])
            if down.ndim != 2 or up.ndim != 2 or up.shape[1] != down.shape[0]:
                raise CheckpointError(
                    f"{target}: lora_A of shape {tuple(down.shape)} and lora_B of shape "
                    f"{tuple(up.shape)}: expected [r, in] and [out, r]"
                )
            self._check_shape(target, (up.shape[0], down.shape[1]), pair["lora_B"])
            if down.shape[0] != config["r"]:
                raise CheckpointError(
                    f"{where}: r is {config['r']}, lora_A of {target} has {down.shape[0]} rows: "
                    "expected the same; give the adapter's own adapter_config.json"
                )
            self._deltas[target] = scale * (up @ down)

    def _known(self, target: str, name: str, where: Path) -> str:
        if target not in self.names:
            raise CheckpointError(
                f"{where.parent}: {name} changes {target}, which the base checkpoint {self.folder} "
                "does not have; give the base it was trained on"
            )
        return target

    def _check_shape(self, target: str, shape: tuple[int, ...], name: str) -> None:
        if tuple(shape) != self.names[target]:
            raise CheckpointError(
                f"{name} gives {target} the shape {tuple(shape)}: the base checkpoint has "
                f"{self.names[target]}; give the base it was trained on"
            )


def open_weights(folder: Path, base: Path | None) -> Weights:
    """Open the folder's tensors, merging a LoRA adapter if that is what the folder is."""
    adapter = (folder / "adapter_config.json").is_file()
    own = any((folder / name).is_file() for name in ("model.safetensors",
                                                     "model.safetensors.index.json"))
    if adapter and not own and base is None:
        named = read_json(folder / "adapter_config.json").get("base_model_name_or_path")
        raise CheckpointError(
            f"{folder} holds a LoRA adapter and no model.safetensors: expected the weights it "
            f"changes; pass base=DIR (it was trained on {named!r}), or merge and save the whole "
            "policy"
        )
    if base is not None and not adapter:
        raise CheckpointError(
            f"{folder} has no adapter_config.json, so it is no LoRA adapter, and base=DIR is for "
            "one; leave it out, or give the adapter's folder"
        )
    if adapter and own and base is None:
        raise CheckpointError(
            f"{folder} holds a whole model and a LoRA adapter, and whether the one was merged into "
            "the other is not said; if it was, remove adapter_config.json, else pass base=DIR, the "
            "checkpoint that the adapter was trained on"
        )
    if not adapter and read_json(folder / "config.json").get("use_peft") is True:
        raise CheckpointError(
            f"{folder / 'config.json'}: use_peft is true, and there is no adapter_config.json: "
            "fetch the adapter, too, or set it to false if the adapter was merged"
        )
    weights = Weights(folder if base is None else base)
    weights.refuse_adapters_inside()
    if adapter:
        weights.merge_adapter(folder)
    return weights


def lora_scale(config: dict, where: Path) -> float:
    """Return the factor of an adapter, or refuse kinds that are more than scaled products."""
    kind, rank, alpha = config.get("peft_type"), config.get("r"), config.get("lora_alpha")
    unlike = [
        f"{key} {config[key]!r}"
        for key in ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "use_qalora")
        if config.get(key)
    ]
    if config.get("bias", "none") != "none":
        unlike.append(f"bias {config['bias']!r}")
    if kind != "LORA" or unlike or not rank or alpha is None:
        raise CheckpointError(
            f"{where}: can not merge peft_type {kind!r} with r {rank!r}, lora_alpha {alpha!r}"
            f"{', ' if unlike else ''}{', '.join(unlike)}: expected plain LORA; merge it where it "
            "was trained (model.merge_and_unload()) and save the whole policy"
        )
    whole = type(rank) is int and rank >= 1
    if not whole or type(alpha) not in (int, float) or not math.isfinite(alpha):
        raise CheckpointError(
            f"{where}: r is {rank!r} and lora_alpha {alpha!r}: expected a whole number of 1 or "
            "more, and a finite number"
        )
    return float(alpha) / (float(rank) ** 0.5 if config.get("use_rslora") else float(rank))
