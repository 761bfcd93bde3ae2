# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which tensor of a checkpoint becomes which parameter of ours, and of what shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .config import VisionConfig


@dataclass(frozen=True)
class Entry:
    """One tensor: its name in the file, its shape there, and the parameters made of it."""

    key: str
    shape: tuple[int, ...]
    targets: tuple[str, ...]
    columns: tuple[int, ...] = ()  # widths of the pieces, if split by columns
    rows: int = 1  # pieces of equal height, if split by rows; one without a name is not used
    flat: bool = False  # everything but the first dimension becomes one
    plus: float = 0.0  # added to every value

    def split(self, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield (parameter, tensor)."""
        if self.plus:
            tensor = tensor + self.plus
        if self.rows > 1:
            pieces = zip(self.targets, tensor.chunk(self.rows), strict=True)
            yield from ((target, piece.contiguous()) for target, piece in pieces if target)
            return
        if not self.columns:
            yield self.targets[0], tensor.flatten(1) if self.flat else tensor
            return
        pieces = torch.split(tensor, list(self.columns), dim=1)
        yield from zip(self.targets, (piece.contiguous() for piece in pieces), strict=True)


def linear(key: str, target: str, out: int, into: int, *, bias: bool) -> Iterator[Entry]:
    yield Entry(f"{key}.weight", (out, into), (f"{target}.weight",))
    if bias:
        yield Entry(f"{key}.bias", (out,), (f"{target}.bias",))


def norm(
    key: str, target: str, width: int, *, bias: bool = False, plus: float = 0.0
) -> Iterator[Entry]:
    """:param plus: 1.0 for Gemma, whose norms multiply by 1 + weight."""
    yield Entry(f"{key}.weight", (width,), (f"{target}.weight",), plus=plus)
    if bias:
        yield Entry(f"{key}.bias", (width,), (f"{target}.bias",))


def gated_mlp(key: str, target: str, width: int, hidden: int) -> Iterator[Entry]:
    yield from linear(f"{key}.gate_proj", f"{target}.gate", hidden, width, bias=False)
    yield from linear(f"{key}.up_proj", f"{target}.up", hidden, width, bias=False)
    yield from linear(f"{key}.down_proj", f"{target}.down", width, hidden, bias=False)


def siglip(key: str, target: str, vision: VisionConfig) -> Iterator[Entry]:
    """Yield the tensors of a vision tower (:class:`.vision.VisionTower`)."""
    width, patch = vision.width, vision.patch
    yield Entry(f"{key}.embeddings.patch_embedding.weight", (width, 3, patch, patch),
                (f"{target}.patch_embedding.weight",), flat=True)
    yield Entry(f"{key}.embeddings.patch_embedding.bias", (width,),
                (f"{target}.patch_embedding.bias",))
    yield Entry(f"{key}.embeddings.position_embedding.weight", (vision.table_side**2, width),
                (f"{target}.position_table",))
    for index in range(vision.layers):
        layer, ours = f"{key}.encoder.layers.{index}", f"{target}.layers.{index}"
        yield from norm(f"{layer}.layer_norm1", f"{ours}.attention_norm", width, bias=True)
        yield from norm(f"{layer}.layer_norm2", f"{ours}.mlp_norm", width, bias=True)
        for theirs, name in (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "o")):
            yield from linear(f"{layer}.self_attn.{theirs}", f"{ours}.{name}", width, width,
                              bias=True)
        yield from linear(f"{layer}.mlp.fc1", f"{ours}.up", vision.mlp, width, bias=True)
        yield from linear(f"{layer}.mlp.fc2", f"{ours}.down", width, vision.mlp, bias=True)
    yield from norm(f"{key}.post_layernorm", f"{target}.norm", width, bias=True)
