# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write the trained policy as LeRobot saves one: weights, configs, processors, tokenizer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file

from ..smolvla.keys import TOKENS, entries
from ..smolvla.policy import SmolVLA
from ..smolvla.random_checkpoint import backbone_config, policy_config, tensor_shapes
from .batches import Statistics
from .episode import CAMERAS, IMAGE

BACKBONE = "vlm"  # folder of its config and tokenizer, inside the checkpoint
MODES = {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}


def write_checkpoint(
    folder: Path, model: SmolVLA, tokens: torch.Tensor, statistics: Statistics, tokenizer: Path
) -> None:
    """Write a folder that ``load_checkpoint`` and LeRobot read.

    :param tokens: the token table. :param tokenizer: folder of the tokenizer's files.
    """
    config = model.config
    backbone = folder / BACKBONE
    backbone.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (tokenizer / name).resolve() != (backbone / name).resolve():
            shutil.copyfile(tokenizer / name, backbone / name)
    write_json(backbone / "config.json", backbone_config(config))
    policy = policy_config(config, 0)
    policy["input_features"].update({
        f"observation.images.{camera}": {"type": "VISUAL", "shape": [3, IMAGE, IMAGE]}
        for camera in CAMERAS
    })
    policy["vlm_model_name"] = BACKBONE
    write_json(folder / "config.json", policy)
    write_processors(folder, config.language, statistics, policy)
    save_file(tensors(model, tokens), folder / "model.safetensors", {"format": "pt"})


def tensors(model: SmolVLA, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return every tensor by LeRobot's names; those that nothing reads are ones or zeros."""
    ours = {name: value.detach() for name, value in model.state_dict().items()}
    found = {TOKENS: tokens.detach().contiguous().clone()}
    for entry in entries(model.config):
        parts = [ours[target] for target in entry.targets]
        joined = torch.cat(parts, dim=1) if entry.columns else parts[0]
        found[entry.key] = joined.reshape(entry.shape).contiguous().clone()
    for name, shape in tensor_shapes(model.config):
        if name not in found:
            found[name] = (torch.ones if "norm" in name else torch.zeros)(shape)
    return found


def write_processors(
    folder: Path, language: int, statistics: Statistics, policy: Mapping[str, Any]
) -> None:
    """Write both processors and their statistics.

    :param policy: config.json's content; a normaliser leaves features that it does not name as they
        are.
    """
    flat = {
        "observation.state.mean": statistics.state_mean,
        "observation.state.std": statistics.state_std,
        "action.mean": statistics.action_mean, "action.std": statistics.action_std,
    }
    flat = {name: np.asarray(values, np.float32) for name, values in flat.items()}
    words = {"max_length": language, "task_key": "task", "padding_side": "right",
             "padding": "max_length", "truncation": True, "tokenizer_name": BACKBONE}
    before = [
        {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
        {"registry_name": "to_batch_processor", "config": {}},
        {"registry_name": "smolvla_new_line_processor", "config": {}},
        {"registry_name": "tokenizer_processor", "config": words},
        {"registry_name": "device_processor", "config": {"device": "cpu", "float_dtype": None}},
    ]
    after = [{"registry_name": "device_processor", "config": {"device": "cpu",
                                                              "float_dtype": None}}]
    outputs = policy["output_features"]
    for name, kind, step, features in (
        ("preprocessor", "normalizer", 5, {**policy["input_features"], **outputs}),
        ("postprocessor", "unnormalizer", 0, outputs),
    ):
        state_file = f"policy_{name}_step_{step}_{kind}_processor.safetensors"
        save_arrays(flat, folder / state_file)
        own = {"registry_name": f"{kind}_processor", "state_file": state_file,
               "config": {"eps": 1e-8, "features": features, "norm_map": MODES}}
        steps = [*before, own] if kind == "normalizer" else [own, *after]
        write_json(folder / f"policy_{name}.json", {"name": f"policy_{name}", "steps": steps})


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
