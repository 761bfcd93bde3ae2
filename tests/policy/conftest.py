# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Policies to run: the recorded sets' own, and sets of other sizes made here with our PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
TASK = "stack the red cups"


@pytest.fixture(scope="session")
def run_bundle(exported: Callable[..., Path]) -> Iterator[Callable[..., object]]:
    """Return an opened policy of a set and recipe, one for all tests; they leave no trace in it."""
    from omni_ros.policy.smolvla import SmolVLAPolicy

    policies = []

    @lru_cache
    def opened(name: str = "smolvla_given", recipe: str = "fp32", folder: Path | None = None):
        bundle = folder or exported(name, recipe)
        policies.append(SmolVLAPolicy(bundle))
        return policies[-1]

    yield opened
    for policy in policies:
        policy.close()


@pytest.fixture(scope="session")
def made_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a reference set of other sizes, with our PyTorch in LeRobot's place: a folder with
    `checkpoint`, `tensors`, `arch.json` and, not part of a set, `fp32.bundle`."""
    pytest.importorskip("torch")
    pytest.importorskip("executorch.exir")

    @lru_cache
    def made(name: str) -> Path:
        from omni_ros.models.export.bundle import export_checkpoint
        from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint

        config, cameras = {
            "three_cameras": (replace(TINY, chunk=9, steps=4, action=2, state=5), 3),
            "marks_and_odd_layers": (replace(
                TINY, special_tokens=True, chunk=5, n_action_steps=5, steps=7, action=7, state=8,
                language=20, text=replace(TINY.text, layers=3), self_attention=(True, False, True),
            ), 1),
        }[name]
        folder = tmp_path_factory.mktemp("made") / name
        write_checkpoint(
            folder, config, tokenizer=ORACLES / "smolvla_given" / "vlm", cameras=cameras
        )
        record(folder)
        # Here rather than in processes of their own: they are small, and loading PyTorch again for
        # each program takes longer than all the rest.
        export_checkpoint(
            folder / "checkpoint", folder / "fp32.bundle", joints="raw", isolate=False
        )
        return folder

    return made


def record(folder: Path) -> None:
    """Compute and write what a set holds, for pictures of different sizes and one task."""
    import torch
    from tokenizers import Tokenizer

    from omni_ros.models.smolvla.load import build, load_checkpoint
    from omni_ros.models.smolvla.policy import Trace, sample_actions
    from omni_ros.models.smolvla.prefix import PRESENT

    checkpoint = load_checkpoint(folder / "checkpoint")
    config, model = checkpoint.config, build(checkpoint)
    rng = np.random.default_rng(5)
    images = {
        key: rng.integers(0, 256, (40 + 8 * index, 70, 3), np.uint8)
        for index, key in enumerate(checkpoint.cameras)
    }
    pixels = [reference_pixels(image, config.image_width) for image in images.values()]
    ids = Tokenizer.from_file(str(folder / "vlm" / "tokenizer.json")).encode(TASK + "\n").ids
    tokens, mask = np.full(config.language, 2, np.int64), np.zeros(config.language, bool)
    tokens[: len(ids)], mask[: len(ids)] = ids, True
    moments = checkpoint.state_statistics.values
    state = rng.normal(0, 20, config.state).astype(np.float32)
    normalised = (state - moments["mean"]) / (moments["std"] + np.float32(1e-8))
    padded = torch.zeros(config.max_state)
    padded[: config.state] = torch.from_numpy(normalised)
    noise = rng.normal(size=(config.chunk, config.max_action)).astype(np.float32)

    def run(trace=None, guide=None, **changed):
        given = {"pixels": pixels, "tokens": tokens, "state": padded,
                 "noise": torch.from_numpy(noise), **changed}
        actions = sample_actions(
            model, given["pixels"], [PRESENT] * len(pixels), given["tokens"], mask,
            given["state"], given["noise"], trace=trace, guide=guide,
        )
        return actions[:, : config.action].numpy()

    trace = Trace()
    actions = run(trace)
    spread = checkpoint.action_statistics.values
    leftover = rng.normal(size=(4, config.action)).astype(np.float32)
    weights = np.zeros(config.chunk, np.float32)
    weights[:3] = 1.0
    valid = model.layout.valid([PRESENT] * len(pixels), mask) > 0
    raised = padded.clone()
    raised[: config.state] += 1
    sensitivity = {"state": run(state=raised), "noise": run(noise=-torch.from_numpy(noise))}
    for index, key in enumerate(images):
        turned = [reference_pixels(255 - image, config.image_width) if k == key else pixels[i]
                  for i, (k, image) in enumerate(images.items())]
        sensitivity[key] = run(pixels=turned)
    stack = lambda parts: np.stack([part.numpy() for part in parts])[:, None]  # noqa: E731
    files = {
        "inputs": {"state": state, "task": np.array(TASK), "noise": noise[None],
                   **{f"image/{key}": image for key, image in images.items()}},
        "preprocessed": {
            "tokens": tokens[None], "token_mask": mask[None],
            "state_normalised": normalised[None], "state_padded": padded.numpy()[None],
            **{f"pixel_values/{i}": p.numpy()[None] for i, p in enumerate(pixels)},
            **{f"image_mask/{i}": np.array([True]) for i in range(len(pixels))},
        },
        "prefix": {"image_embs": stack(trace.image_tokens), "prefix_pad_masks": valid[None],
                   "prefix_k": stack(trace.keys), "prefix_v": stack(trace.values)},
        "steps": {"v_t": stack(trace.velocities)},
        "outputs": {"actions_normalised": actions[None],
                    "actions": (actions * spread["std"] + spread["mean"])[None]},
        "rtc": {"prev_chunk_left_over": leftover[None], "inference_delay": np.array(3),
                "execution_horizon": np.array(4), "max_guidance_weight": np.array(10.0),
                "weights_ZEROS": weights,
                "out_ZEROS": run(guide=Guide(leftover, weights, config.max_action))[None]},
    }
    (folder / "tensors").mkdir()
    for name, arrays in files.items():
        np.savez(folder / "tensors" / f"{name}.npz", **arrays)
    moved = {key: float(np.abs(value - actions).max()) for key, value in sensitivity.items()}
    (folder / "arch.json").write_text(json.dumps({"sensitivity_max_abs": moved}))


def reference_pixels(image: np.ndarray, side: int):
    """Resize with PyTorch, keep the aspect, pad left and top, scale to [-1, 1]."""
    import torch
    from torch.nn import functional

    floats = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    ratio = max(size / side for size in floats.shape[2:])
    height, width = (int(size / ratio) for size in floats.shape[2:])
    small = functional.interpolate(
        floats, size=(height, width), mode="bilinear", align_corners=False
    )
    return functional.pad(small, (side - width, 0, side - height, 0))[0] * 2 - 1


class Guide:
    """Real-time chunking as LeRobot writes it, in PyTorch."""

    def __init__(self, leftover: np.ndarray, weights: np.ndarray, width: int) -> None:
        import torch

        self.previous = torch.zeros(len(weights), width)
        rows = min(len(leftover), len(weights))
        self.previous[:rows, : leftover.shape[1]] = torch.from_numpy(leftover)[:rows]
        self.weights = torch.from_numpy(weights)[:, None]

    def __call__(self, x, v, t):
        tau = 1.0 - t
        weight = 10.0
        if tau > 0:
            weight = min(10.0, (t / tau) * ((t * t + tau * tau) / (t * t)))
        return v - weight * (self.previous - (x - t * v)) * self.weights
