# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A Piper voice's ONNX file into the parts, strictly: every weight has its place and its shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..common.errors import CheckpointError
from .config import PiperConfig, read_config
from .decoder import Decoder
from .durations import Durations, Stack
from .flow import Flow
from .onnx_file import OnnxWeights, read_weights
from .text import Text


@dataclass(frozen=True)
class PiperCheckpoint:
    """A voice: NAME.onnx, NAME.onnx.json and the model card beside them, if any."""

    folder: Path
    model: Path
    config: PiperConfig
    card: Path | None

    @property
    def files(self) -> list[Path]:
        """Files that the voice was read from."""
        return [self.model, self.model.with_name(self.model.name + ".json")]


def find_checkpoint(folder: Path) -> PiperCheckpoint:
    """Find the one voice in a folder and read its JSON file.

    :raises CheckpointError: there is none, or several.
    """
    found = sorted(folder.glob("*.onnx.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise CheckpointError(f"{folder} holds {len(found)} voices ({names}): expected one "
                              "NAME.onnx with its NAME.onnx.json")
    model = found[0].with_suffix("")
    if not model.is_file():
        raise CheckpointError(f"{model} does not exist: expected it beside {found[0].name}")
    card = folder / "MODEL_CARD"
    return PiperCheckpoint(folder, model, read_config(found[0]), card if card.is_file() else None)


class Loader:
    """Puts weights into modules and knows at the end which nobody has taken."""

    def __init__(self, checkpoint: PiperCheckpoint) -> None:
        self.config = checkpoint.config
        self.weights: OnnxWeights = read_weights(checkpoint.model)
        self.taken: set[str] = set()

    def tensor(self, name: str) -> torch.Tensor:
        self.taken.add(name)
        return torch.from_numpy(np.array(self.weights.get(name)))

    def put(self, target: torch.Tensor, name: str, values: torch.Tensor | None = None) -> None:
        values = self.tensor(name) if values is None else values
        if target.shape != values.shape:
            raise CheckpointError(
                f"{self.weights.path}: {name} is {list(values.shape)}: expected "
                f"{list(target.shape)}, as in Piper's voices of medium quality"
            )
        with torch.no_grad():
            target.copy_(values)

    def conv(self, module: nn.Module, name: str) -> None:
        """Take weight and, if there is one, bias; of a Linear too, whose kernel is 1."""
        weight = self.tensor(f"{name}.weight")
        self.put(module.weight, f"{name}.weight",
                 weight.squeeze(2) if isinstance(module, nn.Linear) else weight)
        if module.bias is not None:
            self.put(module.bias, f"{name}.bias")

    def norm(self, module: nn.Module, name: str) -> None:
        self.put(module.weight, f"{name}.gamma")
        self.put(module.bias, f"{name}.beta")

    # -- parts -----------------------------------------------------------------------------------

    def symbols(self) -> torch.Tensor:
        """Return the symbol table, scaled as the encoder takes it: [symbols, width]."""
        table = self.tensor("sid")
        width = self.config.sizes.width
        if table.ndim != 2 or table.shape[1] != width:
            raise CheckpointError(f"{self.weights.path}: the symbol table is {list(table.shape)}: "
                                  f"expected {width} columns")
        highest = max(self.config.symbols.values())
        if highest >= len(table):
            raise CheckpointError(f"{self.weights.path}: the symbol table has {len(table)} rows, "
                                  f"phoneme_id_map goes up to {highest}")
        return table * width**0.5

    def text(self, length: int) -> Text:
        sizes = self.config.sizes
        part = Text(sizes, length)
        for i, layer in enumerate(part.layers):
            name = f"enc_p.encoder.attn_layers.{i}"
            attention = layer.attention
            for module, letter in ((attention.queries, "q"), (attention.keys, "k"),
                                   (attention.values, "v"), (attention.out, "o")):
                self.conv(module, f"{name}.conv_{letter}")
            attention.set_near(self.tensor(f"{name}.emb_rel_k"), self.tensor(f"{name}.emb_rel_v"))
            self.norm(layer.norm_1, f"enc_p.encoder.norm_layers_1.{i}")
            self.conv(layer.conv_1, f"enc_p.encoder.ffn_layers.{i}.conv_1")
            self.conv(layer.conv_2, f"enc_p.encoder.ffn_layers.{i}.conv_2")
            self.norm(layer.norm_2, f"enc_p.encoder.norm_layers_2.{i}")
        self.rows((part.mean, part.log_spread), "enc_p.proj")
        self.durations(part.durations)
        return part.eval()

    def rows(self, modules: tuple[nn.Module, ...], name: str) -> None:
        """Share the rows of one product among several."""
        weight, bias = self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias")
        start = 0
        for module in modules:
            end = start + len(module.bias)
            rows = weight[start:end]
            self.put(module.weight, f"{name}.weight",
                     rows.squeeze(2) if isinstance(module, nn.Linear) else rows)
            self.put(module.bias, f"{name}.bias", bias[start:end])
            start = end
        if start != len(bias):
            raise CheckpointError(f"{self.weights.path}: {name} has {len(bias)} rows: expected "
                                  f"{start}")

    def durations(self, part: Durations) -> None:
        self.conv(part.pre, "dp.pre")
        self.conv(part.proj, "dp.proj")
        self.stack(part.stack, "dp.convs")
        for flow, index in zip(part.flows, self.config.sizes.duration_flows, strict=True):
            name = f"dp.flows.{index}"
            self.conv(flow.pre, f"{name}.pre")
            self.stack(flow.stack, f"{name}.convs")
            self.rows((flow.widths, flow.heights, flow.slopes), f"{name}.proj")
        self.put(part.shift, "dp.flows.0.m", self.tensor("dp.flows.0.m")[:1])
        # exp(-logs) was folded when the voice was exported.
        scale = self.tensor("/dp/flows.0/Exp_output_0")
        self.put(part.scale, "/dp/flows.0/Exp_output_0", scale[:1])

    def stack(self, part: Stack, name: str) -> None:
        for i in range(len(part.near)):
            self.conv(part.near[i], f"{name}.convs_sep.{i}")
            self.conv(part.across[i], f"{name}.convs_1x1.{i}")
            self.norm(part.norms_1[i], f"{name}.norms_1.{i}")
            self.norm(part.norms_2[i], f"{name}.norms_2.{i}")

    def flow(self) -> Flow:
        sizes = self.config.sizes
        part = Flow(sizes)
        for i, (coupling, index) in enumerate(zip(part.couplings, sizes.flows, strict=True)):
            name = f"flow.flows.{index}"
            turned = i % 2 == 0
            self.conv(coupling.pre, f"{name}.pre")
            self.conv(coupling.post, f"{name}.post")
            if turned:
                with torch.no_grad():
                    coupling.pre.weight.copy_(coupling.pre.weight.flip(1))
                    coupling.post.weight.copy_(coupling.post.weight.flip(0))
                    coupling.post.bias.copy_(coupling.post.bias.flip(0))
            for layer in range(sizes.flow_layers):
                self.rows((coupling.tanh[layer], coupling.gate[layer]),
                          f"{name}.enc.in_layers.{layer}")
                last = layer == sizes.flow_layers - 1
                parts = (coupling.skip[layer],) if last else (
                    coupling.go_on[layer], coupling.skip[layer])
                self.rows(parts, f"{name}.enc.res_skip_layers.{layer}")
        return part.eval()

    def decoder(self) -> Decoder:
        names = [name for name in self.weights.tensors if name.startswith("dec.")]
        state = {name.removeprefix("dec."): self.tensor(name) for name in names}
        for name in ("conv_pre.weight", "conv_post.weight"):
            if name not in state:
                raise CheckpointError(f"{self.weights.path} has no tensor dec.{name}")
        try:
            part = Decoder(self.config.sizes, state)
            part.load_state_dict(state)
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"{self.weights.path}: its decoder is another one than that of "
                                  f"Piper's medium quality ({error})") from None
        return part.eval()

    def check_all_taken(self) -> None:
        """Refuse a file with weights that no part has a place for."""
        left = sorted(
            name for name in self.weights.tensors
            if name not in self.taken and not name.startswith("/")
        )
        if left:
            raise CheckpointError(f"{self.weights.path}: nothing takes {', '.join(left[:4])} and "
                                  f"{len(left)} in all: expected a voice of medium quality")
