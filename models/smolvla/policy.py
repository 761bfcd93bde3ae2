# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA as three stages that become three static programs.

    vision_encoder   pixels of one camera                      -> image tokens        (`vision`)
    fusion_backbone  image tokens, prompt, state               -> keys and values     (`backbone`)
    action_head      noisy actions, time, keys and values      -> velocity            (`expert`)

`sample_actions` is the host's part in plain PyTorch: run the first once a camera, the second once
an observation, the third once a step. It is what the exported programs are compared with.

Decisions that every stage keeps: no batch dimension; fixed shapes, everything variable is a mask
(`valid`); rotary tables and time embeddings are computed by the host and come in as inputs; rows of
the token table are looked up by the host, unscaled; keys leave the backbone transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from omni_ros.policy.flow import step_times, time_embedding

from .backbone import FusionBackbone
from .config import SmolVLAConfig
from .expert import ActionHead
from .prefix import action_rope, prefix_rope
from .vision import VisionEncoder

STAGES = ("vision_encoder", "fusion_backbone", "action_head")


class SmolVLA(nn.Module):
    """The three stages and the token table [vocabulary, text width] (a plain tensor, any dtype)."""

    def __init__(
        self, config: SmolVLAConfig, slots: int, *, shifted_vision_positions: bool = False
    ) -> None:
        super().__init__()
        config.check()
        self.config = config
        self.slots = slots
        self.vision_encoder = VisionEncoder(config, shifted_positions=shifted_vision_positions)
        self.fusion_backbone = FusionBackbone(config, slots)
        self.action_head = ActionHead(config)
        self.token_table = torch.zeros(0, config.text.width)

    @property
    def layout(self):
        return self.fusion_backbone.layout

    def look_up(self, tokens: np.ndarray) -> torch.Tensor:
        """Return rows of the token table, float32 [len(tokens), width]."""
        return self.token_table[torch.from_numpy(np.asarray(tokens, dtype=np.int64))].float()


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
    model: SmolVLA,
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
    valid = model.layout.valid(slots, token_mask)
    language = model.look_up(tokens)
    backbone = model.fusion_backbone
    cos, sin = map(torch.from_numpy, prefix_rope(valid, config.text.head_dim))
    trace.prefix = backbone.embed(trace.image_tokens, language, state.view(1, -1))
    cache = backbone.prefill(trace.prefix, torch.from_numpy(valid), cos, sin)
    trace.keys = [keys.permute(1, 0, 2) for keys, _ in cache]
    trace.values = [values.permute(1, 0, 2) for _, values in cache]
    trace.keys_values = tuple(backbone.project(cache))

    cos, sin = map(torch.from_numpy, action_rope(valid, config.chunk, config.text.head_dim))
    steps = config.steps if steps is None else steps
    actions = noise
    times = step_times(steps)
    embeddings = torch.from_numpy(time_embedding(
        times, width=config.expert_width, min_period=config.min_period, max_period=config.max_period
    ))
    for step, t in enumerate(times.tolist()):
        time = embeddings[step:step + 1]
        trace.suffix.append(model.action_head.embed(actions, time))
        velocity = model.action_head(
            actions, time, torch.from_numpy(valid), cos, sin, *trace.keys_values
        )
        if guide is not None:
            velocity = guide(actions, velocity, t)
        trace.noisy.append(actions)
        trace.velocities.append(velocity)
        actions = actions + (-1.0 / steps) * velocity
    return actions
