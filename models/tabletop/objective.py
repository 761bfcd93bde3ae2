# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of training: the flow, and auxiliary ones that make it see and read early.

The flow's loss alone does not ground language within an hour: the arm goes to an average of the
blocks. So linear heads, dropped after training, say where things are:

    see      each image token: which blocks and the pad it holds, where in it, how they are turned
    mark     image tokens half-way up the backbone: which one holds the INSTRUCTED block
    know     the state's token at the end: place and turn of that block, skill, the expert's phase
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from omni_ros.world.expert import PHASES
from omni_ros.world.tasks import SKILLS

from ..smolvla.config import SmolVLAConfig
from ..smolvla.policy import SmolVLA
from .batched import Batched, Prefix
from .batches import Batch, Look
from .data import OBJECTS
from .episode import CAMERAS

SEE, MARK, KNOW = 0.3, 0.3, 0.5
#: Weights of the joints in the flow's loss: five millimetres are a twentieth of a standard
#: deviation of the first four, and roll and gripper would drown them.
JOINTS = (2.2, 2.2, 2.2, 2.2, 0.8, 1.0)
#: Weight of observations where millimetres count, against 1 of the others.
DELICATE, DELICATE_PHASES = 2.0, ("descend", "close", "lower")
BLOCKS = OBJECTS - 1


class Heads(nn.Module):
    """The auxiliary heads."""

    def __init__(self, config: SmolVLAConfig) -> None:
        super().__init__()
        width = config.text.width
        self.see = nn.ModuleList(
            nn.Linear(width, OBJECTS * 3 + BLOCKS * 2) for _ in CAMERAS
        )
        self.mark = nn.Linear(width, len(CAMERAS))
        self.know = nn.Linear(width, 3 + 2 + 2 + len(SKILLS) + len(PHASES))


@torch.no_grad()
def initialise(model: SmolVLA, heads: Heads, tokens: torch.Tensor) -> None:
    """Fan-in normal products, small where they add to a residual stream."""
    config = model.config
    for module in (*model.modules(), *heads.modules()):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for layers in (model.vision_encoder.layers, model.fusion_backbone.layers,
                   model.action_head.layers):
        for layer in layers:
            outputs = [getattr(layer, "o", None), getattr(layer, "down", None),
                       getattr(getattr(layer, "mlp", None), "down", None)]
            for output in outputs:
                if output is not None:
                    output.weight.mul_((2 * len(layers)) ** -0.5)
    width = config.text.width
    # Image tokens and words are scaled by the root of the width when they enter the backbone.
    model.vision_encoder.connector.weight.mul_(width**-0.5)
    nn.init.normal_(tokens, std=width**-0.5)
    nn.init.normal_(model.vision_encoder.position_table, std=0.5)
    model.action_head.action_out.weight.mul_(0.1)


def see_loss(heads: Heads, images: torch.Tensor, batch: Look, scale: float) -> torch.Tensor:
    """:param images: [b, cameras, tokens, width], as the connector leaves them."""
    total = images.new_zeros(())
    for camera, head in enumerate(heads.see):
        out = head(images[:, camera] * scale)
        logits, offsets, turns = out.split((OBJECTS, OBJECTS * 2, BLOCKS * 2), dim=-1)
        cell = batch.cell[:, camera]
        visible = cell >= 0
        index = cell.clamp(min=0)
        each = F.cross_entropy(logits, index, reduction="none")
        offsets = offsets.unflatten(-1, (OBJECTS, 2))
        turns = turns.unflatten(-1, (BLOCKS, 2))
        rows = torch.arange(len(out))[:, None]
        error = offsets[rows, index, torch.arange(OBJECTS)] - batch.offset[:, camera]
        each = each + 4.0 * error.square().sum(-1)
        turned = turns[rows, index[:, :BLOCKS], torch.arange(BLOCKS)] - batch.turn[:, camera]
        each = torch.cat((each[:, :BLOCKS] + 0.5 * turned.square().sum(-1), each[:, BLOCKS:]), 1)
        total = total + (each * visible).sum() / visible.sum().clamp(min=1)
    return total / len(heads.see)


def mark_loss(heads: Heads, prefix: Prefix, batch: Batch, per_camera: int) -> torch.Tensor:
    total = prefix.halfway.new_zeros(())
    n, cameras = len(batch.target), len(CAMERAS)
    instructions = n // len(batch.state)
    cells = batch.cell.repeat_interleave(instructions, 0)
    present = batch.present.repeat_interleave(instructions, 0)
    for camera in range(cameras):
        part = prefix.halfway[:, camera * per_camera : (camera + 1) * per_camera]
        logits = heads.mark(part)[..., camera]
        cell = cells[torch.arange(n), camera, batch.target]
        visible = (cell >= 0) & present[:, camera]
        each = F.cross_entropy(logits, cell.clamp(min=0), reduction="none")
        total = total + (each * visible).sum() / visible.sum().clamp(min=1)
    return total / cameras


def know_loss(heads: Heads, prefix: Prefix, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and, for the log, the mean square error of the block's place."""
    place, pad, turn, skill, phase = heads.know(prefix.state).split(
        (3, 2, 2, len(SKILLS), len(PHASES)), dim=-1
    )
    error = (place - batch.place).square().mean()
    loss = (
        error + 0.3 * (pad - batch.pad).square().mean()
        + 0.3 * (turn - batch.relative).square().mean()
        + 0.1 * F.cross_entropy(skill, batch.skill) + 0.15 * F.cross_entropy(phase, batch.phase)
    )
    return loss, error.detach()


def joint_loss(
    network: Batched, heads: Heads, batch: Batch, draws: int
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the whole loss and its parts."""
    config = network.config
    b, cameras = batch.pixels.shape[:2]
    n = len(batch.target)
    images = network.images(batch.pixels.flatten(0, 1)).unflatten(0, (b, cameras))
    see = see_loss(heads, images, batch, math.sqrt(config.text.width))
    repeat = n // b
    prefix = network.prefix(
        images.flatten(1, 2).repeat_interleave(repeat, 0),
        batch.present.repeat_interleave(repeat, 0), batch.ids, batch.mask,
        batch.state.repeat_interleave(repeat, 0),
    )
    mark = mark_loss(heads, prefix, batch, config.image_tokens)
    know, place = know_loss(heads, prefix, batch)
    actions = batch.actions.repeat_interleave(draws, 0)
    noise = torch.randn_like(actions)
    # Beta(1.5, 1), by its inverse distribution function.
    time = torch.rand(len(actions)) ** (1 / 1.5) * 0.999 + 0.001
    t = time[:, None, None]
    velocity = network.velocity(prefix, t * noise + (1 - t) * actions, time)
    error = (velocity - (noise - actions)).square()
    delicate = torch.tensor([PHASES.index(name) for name in DELICATE_PHASES])
    weight = 1.0 + (DELICATE - 1.0) * torch.isin(batch.phase, delicate).float()
    weight = weight.repeat_interleave(draws) / weight.mean()
    weighted = (error.mean(1) * torch.tensor(JOINTS)).mean(1) * weight
    flow = error.mean()
    loss = weighted.mean() + SEE * see + MARK * mark + KNOW * know
    return loss, {"flow": flow.detach(), "see": see.detach(), "mark": mark.detach(),
                  "know": know.detach(), "place": place}
