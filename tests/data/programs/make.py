# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Make the small ExecuTorch programs that the tests run, and what eager PyTorch says to them.

    python tests/data/programs/make.py        # rewrites *.pte and *.npz beside this file

Needs torch and executorch, so the results are committed. Each NAME.npz holds `inputs.*` and
`outputs.*` of NAME.pte: inputs drawn from a fixed seed, outputs of the module in eager PyTorch.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes import MemoryPlanningPass
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent


class Mlp(nn.Module):
    """One delegate, one input, one output."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))


class Pair(nn.Module):
    """Two outputs, as a prefix that leaves keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.key(x), self.value(x)


class Head(nn.Module):
    """Takes the outputs of Pair as they lie."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return self.mix(x) * keys + values


class Portable(nn.Module):
    """Operators that no delegate takes: integers in, an arena for what lies between."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.cumsum(self.table(ids), dim=0) * 0.5


class Slow(nn.Module):
    """A few hundred milliseconds of one thread's work on a file of a few kilobytes."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(24):
            x = torch.tanh(self.turn(x))
        return x


class Twice(nn.Module):
    """One tensor under two outputs: cannot be given two buffers."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2.0
        return y, y


def lower(module: nn.Module, inputs: tuple[Tensor, ...], delegate: bool, planned: bool) -> bytes:
    program = torch.export.export(module.eval(), inputs, strict=True)
    partitioner = [XnnpackPartitioner()] if delegate else []
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    plan = MemoryPlanningPass(alloc_graph_input=planned, alloc_graph_output=planned)
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan)).buffer


def make(
    name: str,
    module: nn.Module,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    inputs: tuple[Tensor, ...],
    delegate: bool = True,
    planned: bool = False,
) -> None:
    module.requires_grad_(False)
    (HERE / f"{name}.pte").write_bytes(lower(module, inputs, delegate, planned))
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"inputs.{key}": value.numpy() for key, value in zip(names[0], inputs)}
    arrays |= {f"outputs.{key}": value.numpy() for key, value in zip(names[1], outputs)}
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def main() -> None:
    torch.manual_seed(7)
    draw = torch.randn
    make("mlp", Mlp(), (("x",), ("y",)), (draw(8, 32),))
    make("pair", Pair(), (("x",), ("keys", "values")), (draw(4, 16),))
    make("head", Head(), (("x", "keys", "values"), ("y",)), (draw(4, 8), draw(4, 8), draw(4, 8)))
    ids = torch.tensor([1, 9, 0, 4, 4])
    make("portable", Portable(), (("ids",), ("sums",)), (ids,), delegate=False)
    make("planned", Mlp(), (("x",), ("y",)), (draw(8, 32),), planned=True)
    make("twice", Twice(), (("x",), ("y", "z")), (draw(3, 3),))
    make("slow", Slow(), (("x",), ("y",)), (torch.zeros(4096, 64),))


if __name__ == "__main__":
    main()
