# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Lower several modules that share weights to the methods of one ExecuTorch program.

Equal weights are stored once in the file, and are one in memory for programs that are loaded with
`share_weights`. As with one method (see `lower`), inputs and outputs are left out of the plan.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from .lower import LoweredMethod, describe_method, refuse_shared


@dataclass(frozen=True)
class Method:
    """A module of fixed shapes that becomes a method.

    :param examples: inputs that it is exported with. :param golden: those that it is asked with for
        its golden vector. :param inputs, outputs: their names.
    """

    module: nn.Module
    examples: Sequence[torch.Tensor]
    golden: Sequence[torch.Tensor]
    inputs: Sequence[str]
    outputs: Sequence[str]


def lower_methods(
    methods: Mapping[str, tuple[nn.Module, Sequence[torch.Tensor]]], path: Path
) -> dict[str, LoweredMethod]:
    """Write modules with their example inputs as methods of one file, and return what became of
    each. Modules are lowered as they are: quantise them before.
    """
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import (
        EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower,
    )
    from executorch.exir.passes import MemoryPlanningPass

    with torch.no_grad(), warnings.catch_warnings(), operators_found_once():
        warnings.simplefilter("ignore", category=FutureWarning)
        warnings.simplefilter("ignore", category=DeprecationWarning)
        exported = {}
        for name, (module, examples) in methods.items():
            refuse_shared(examples)
            exported[name] = torch.export.export(module.eval(), tuple(examples), strict=False)
        program = to_edge_transform_and_lower(
            exported,
            partitioner={name: [XnnpackPartitioner()] for name in methods},
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        ).to_executorch(ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(
                alloc_graph_input=False, alloc_graph_output=False
            ),
        ))
    del exported
    with path.open("wb") as file:
        program.write_to_file(file)
    plans = {plan.name: plan for plan in program.executorch_program.execution_plan}
    return {name: describe_method(plans[name]) for name in methods}


@contextmanager
def operators_found_once() -> Iterator[None]:
    """Let PyTorch look for its operators once, and not for each pass over each method.

    It looks again because others may register more meanwhile; nobody does here, and half of the
    time that small methods take goes there. Where these functions are no more, nothing is changed.
    """
    from torch._export import utils

    names = ("_materialize_cpp_cia_ops", "_collect_all_valid_cia_ops_for_namespace")
    saved = {name: getattr(utils, name) for name in names if hasattr(utils, name)}

    def once(function):
        results = {}

        def found(*given):
            key = tuple(map(str, given))
            if key not in results:
                results[key] = function(*given)
            return results[key]

        return found

    try:
        for name, function in saved.items():
            setattr(utils, name, once(function))
        yield
    finally:
        for name, function in saved.items():
            setattr(utils, name, function)
