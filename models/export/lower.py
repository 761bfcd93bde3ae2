# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Lower one module of fixed shapes to one ExecuTorch program, and say what became of it.

Recipes:
    fp32  as it is
    int8  every nn.Linear's weight to 8 bits a channel, its input to 8 bits a row as it comes
          ("8da8w": dynamic activations); everything else stays float32
    int4  the same with weights of 4 bits, a scale for each 32 of a row ("8da4w"); Linears whose
          rows do not divide by 32 stay at 8 bits

Inputs and outputs are left out of the memory plan, so that the caller binds its own memory once and
one program's outputs can be the next one's inputs without a copy. A fully delegated program then
plans no arena at all: its activations live in XNNPACK's workspace, which is seen only by running.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

RECIPES = ("fp32", "int8", "int4")
#: Weights that share a scale in int4.
GROUP = 32
BACKEND = "XnnpackBackend"
DTYPES = {"FLOAT": "float32", "LONG": "int64", "INT": "int32", "BOOL": "bool", "HALF": "float16",
          "DOUBLE": "float64", "BYTE": "uint8", "CHAR": "int8"}


class LoweringError(RuntimeError):
    """A module that does not become what was asked for."""


@dataclass(frozen=True)
class TensorSpec:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class LoweredMethod:
    """What ExecuTorch put into a file for one method; see `LoweredProgram`."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    delegates: dict[str, int]
    leftover: tuple[str, ...]
    arenas: tuple[int, ...]


@dataclass(frozen=True)
class LoweredProgram:
    """A program's bytes and what ExecuTorch put into them."""

    data: bytes
    recipe: str
    method: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    delegates: dict[str, int]  # backend -> calls
    leftover: tuple[str, ...]  # operators outside any delegate, by name
    arenas: tuple[int, ...]  # planned bytes of each arena (without the constants' placeholder)
    constants_bytes: int  # bytes of weights, inside delegates and outside

    def require_one_delegate(self, name: str) -> None:
        """Raise LoweringError unless the whole program is one delegate."""
        require_one_delegate(name, self.recipe, self.delegates, self.leftover)


def require_one_delegate(
    name: str, recipe: str, delegates: Mapping[str, int], leftover: Sequence[str]
) -> None:
    """Raise LoweringError unless a whole program is one delegate."""
    if delegates == {BACKEND: 1} and not leftover:
        return
    calls = ", ".join(f"{count} x {backend}" for backend, count in delegates.items())
    raise LoweringError(
        f"{name} ({recipe}) became {calls or 'no delegate'} with the operators "
        f"{', '.join(sorted(set(leftover))) or 'none'} left over: expected 1 x {BACKEND} and none; "
        "rewrite the module (models/common/layers.py lists what XNNPACK takes), or allow portable "
        "operators (--allow-portable), which are slower by an order of magnitude"
    )


def lower(
    module: nn.Module,
    example_inputs: Sequence[torch.Tensor],
    recipe: str = "fp32",
    *,
    keep_float: Callable[[str], bool] = lambda name: False,
    path: Path | None = None,
    consume: bool = False,
) -> LoweredProgram:
    """Lower a module to a program with the method "forward".

    example_inputs: distinct tensors (the same one twice gives a program that runs and returns wrong
        numbers). keep_float: names of Linears that int8 leaves alone. path: a file to write the
        program to, instead of `data`. consume: the module may be changed; otherwise it is copied
        where it has to be.
    """
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import (
        EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower,
    )
    from executorch.exir.passes import MemoryPlanningPass

    from .methods import operators_found_once

    if recipe not in RECIPES:
        raise LoweringError(f"recipe is {recipe!r}: expected one of {', '.join(RECIPES)}")
    refuse_shared(example_inputs)
    if recipe != "fp32":
        module = quantise(module if consume else copy.deepcopy(module), keep_float, recipe)
    with torch.no_grad(), warnings.catch_warnings(), operators_found_once():
        # Both libraries warn about their own use of each other at every graph copy.
        warnings.simplefilter("ignore", category=FutureWarning)
        warnings.simplefilter("ignore", category=DeprecationWarning)
        exported = torch.export.export(module.eval(), tuple(example_inputs), strict=False)
        program = to_edge_transform_and_lower(
            exported,
            partitioner=[XnnpackPartitioner()],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        ).to_executorch(ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(
                alloc_graph_input=False, alloc_graph_output=False
            ),
        ))
    return describe(program, recipe, path)


def refuse_shared(example_inputs: Sequence[torch.Tensor]) -> None:
    seen: dict[int, int] = {}
    for index, tensor in enumerate(example_inputs):
        if not tensor.is_contiguous():
            raise LoweringError(f"example input {index} is not contiguous; expected it to be")
        first = seen.setdefault(tensor.data_ptr(), index)
        if first != index:
            raise LoweringError(
                f"example inputs {first} and {index} share memory: expected distinct tensors; "
                "clone one"
            )


def quantise(
    module: nn.Module, keep_float: Callable[[str], bool], recipe: str = "int8"
) -> nn.Module:
    """Let its Linears hold 8-bit (or 4-bit) weights and quantise their input as it comes."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    def is_linear(layer: nn.Module, name: str) -> bool:
        # Modules that share a layer are each asked; it is done once.
        plain = isinstance(layer, nn.Linear) and type(layer.weight.data) is torch.Tensor
        return plain and not keep_float(name)

    def in_groups(layer: nn.Module, name: str) -> bool:
        return recipe == "int4" and is_linear(layer, name) and layer.in_features % GROUP == 0

    for dtype, granularity, fits in (
        (torch.int4, PerGroup(GROUP), in_groups),
        (torch.int8, PerAxis(0), lambda *given: is_linear(*given) and not in_groups(*given)),
    ):
        quantize_(
            module,
            Int8DynamicActivationIntxWeightConfig(
                weight_dtype=dtype, weight_granularity=granularity
            ),
            filter_fn=fits,
        )
    return module


def describe_method(plan) -> LoweredMethod:
    """Read the facts out of a method's plan."""
    from executorch.exir.schema import DelegateCall, KernelCall

    delegates: dict[str, int] = {}
    leftover: list[str] = []
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, DelegateCall):
                backend = plan.delegates[call.delegate_index].id
                delegates[backend] = delegates.get(backend, 0) + 1
            elif isinstance(call, KernelCall):
                operator = plan.operators[call.op_index]
                leftover.append(".".join(filter(None, (operator.name, operator.overload))))

    def spec(index: int) -> TensorSpec:
        tensor = plan.values[index].val
        return TensorSpec(DTYPES[tensor.scalar_type.name], tuple(tensor.sizes))

    return LoweredMethod(
        tuple(map(spec, plan.inputs)), tuple(map(spec, plan.outputs)), delegates, tuple(leftover),
        tuple(int(size) for size in plan.non_const_buffer_sizes[1:]),
    )


def describe(program, recipe: str, path: Path | None = None) -> LoweredProgram:
    """Read the facts out of a program ExecuTorch made, and its bytes or write them to a file."""
    emitted = program.executorch_program
    plan = emitted.execution_plan[0]
    constants = sum(len(buffer.storage) for buffer in emitted.constant_buffer)
    constants += sum(len(payload.data) for payload in emitted.backend_delegate_data)
    if program._named_data is not None:  # where XNNPACK's weights are
        constants += sum(len(buffer) for buffer in program._named_data.buffers)
    if path is not None:  # saves a copy of all weights
        with path.open("wb") as file:
            program.write_to_file(file)
    return LoweredProgram(
        data=program.buffer if path is None else b"",
        recipe=recipe,
        method=plan.name,
        constants_bytes=constants,
        **vars(describe_method(plan)),
    )
