# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The host's part of a policy in plain PyTorch: what exported programs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from omni_ros.policy.flow import step_times, time_embedding
from omni_ros.policy.prefix import action_rope, prefix_rope


@dataclass
class Trace:
    """Every tensor on the way, for comparison. Lists are per slot or per step."""

    image_tokens: list[torch.Tensor] = field(default_factory=list)
    prefix: torch.Tensor | None = None
    keys: list[torch.Tensor] = field(default_factory=list)  # per layer, [P, key heads, head width]
    values: list[torch.Tensor] = field(default_factory=list)
    keys_values: tuple[torch.Tensor, ...] = ()
    suffix: list[torch.Tensor] = field(default_factory=list)
    noisy: list[torch.Tensor] = field(default_factory=list)
    velocities: list[torch.Tensor] = field(default_factory=list)


@torch.no_grad()
def sample_actions(
    model: Any,
    pixels: Sequence[torch.Tensor | None],
    slots: Sequence[str],
    tokens: np.ndarray,
    token_mask: np.ndarray,
    state: torch.Tensor,
    noise: torch.Tensor,
    *,
    steps: int | None = None,
    trace: Trace | None = None,
    guide: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Return normalised actions, float32 [chunk, max action] (the true ones are the first columns).

    model: a network of three stages, see `models.smolvla.policy` and `models.pi0.policy`.
    pixels: one a slot, float32 [3, height, width] in [-1, 1]; None for a slot that is masked.
    slots: `prefix.PRESENT`, `EMPTY` or `UNUSED` each. tokens, token_mask: int64 and bool
    [prompt length]. state: [max state]. noise: [chunk, max action]. steps: the checkpoint's own if
    not given. guide: called with (actions, velocity, t), returns the velocity to use.
    """
    config = model.config
    trace = trace if trace is not None else Trace()
    blank = torch.zeros(config.image_tokens, config.text.width)
    trace.image_tokens = [
        blank if image is None else model.vision_encoder(image) for image in pixels
    ]
    row = state.view(1, -1)
    before = (row,) if model.state_in == "prefix" else ()
    behind = (row,) if model.state_in == "suffix" else ()
    valid = model.layout.valid(slots, token_mask)
    language = model.look_up(tokens)
    backbone, head_dim = model.fusion_backbone, config.text.head_dim
    cos, sin = map(torch.from_numpy, prefix_rope(valid, head_dim, kind=model.rope))
    trace.prefix = backbone.embed(trace.image_tokens, language, *before)
    cache = backbone.prefill(trace.prefix, torch.from_numpy(valid), cos, sin)
    trace.keys = [keys.permute(1, 0, 2) for keys, _ in cache]
    trace.values = [values.permute(1, 0, 2) for _, values in cache]
    trace.keys_values = tuple(backbone.project(cache))

    cos, sin = map(torch.from_numpy, action_rope(valid, model.suffix, head_dim, kind=model.rope))
    steps = config.steps if steps is None else steps
    actions = noise
    times = step_times(steps)
    embeddings = torch.from_numpy(time_embedding(
        times, width=config.expert_width, min_period=config.min_period, max_period=config.max_period
    ))
    for step, t in enumerate(times.tolist()):
        time = embeddings[step:step + 1]
        trace.suffix.append(model.action_head.embed(actions, time, *behind))
        velocity = model.action_head(
            actions, time, *behind, torch.from_numpy(valid), cos, sin, *trace.keys_values
        )
        if guide is not None:
            velocity = guide(actions, velocity, t)
        trace.noisy.append(actions)
        trace.velocities.append(velocity)
        actions = actions + (-1.0 / steps) * velocity
    return actions
