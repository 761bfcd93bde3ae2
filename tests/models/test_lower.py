# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every stage becomes one XNNPACK delegate, and computes what PyTorch computes."""

from __future__ import annotations

from functools import lru_cache

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.runtime")

from omni_ros.models.export.lower import LoweringError, lower  # noqa: E402
from omni_ros.models.smolvla.config import SmolVLAConfig  # noqa: E402
from omni_ros.models.common.examples import example_inputs, input_names, output_names  # noqa: E402
from omni_ros.models.smolvla.load import build, load_checkpoint  # noqa: E402
from omni_ros.models.smolvla.policy import STAGES  # noqa: E402
from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint  # noqa: E402


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Lower a stage of a tiny SmolVLA, once a recipe."""
    folder = tmp_path_factory.mktemp("tiny")
    model = build(load_checkpoint(write_checkpoint(folder, TINY, cameras=2)))

    @lru_cache
    def lowered(name: str, recipe: str):
        inputs = example_inputs(model)[name]
        return model, getattr(model, name), inputs, lower(getattr(model, name), inputs, recipe)

    return lowered


def execute(program, inputs):
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(program.data).load_method(program.method)
    return method.execute(list(inputs))


def compare(stage, name, recipe) -> float:
    _, module, inputs, program = stage(name, recipe)
    expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    actual = execute(program, inputs)
    assert [tuple(a.shape) for a in actual] == [tuple(e.shape) for e in expected]
    return max(
        float((a - e).norm() / e.norm()) for a, e in zip(actual, expected, strict=True)
    )


@pytest.mark.parametrize("recipe", ["fp32", "int8"])
@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_one_delegate_with_nothing_left_over_and_no_arena(stage, name, recipe):
    _, _, _, program = stage(name, recipe)
    assert program.delegates == {"XnnpackBackend": 1}
    assert program.leftover == ()
    assert set(program.arenas) <= {0}
    program.require_one_delegate(name)


@pytest.mark.parametrize("name", STAGES)
def test_the_fp32_program_computes_what_pytorch_computes(stage, name):
    assert compare(stage, name, "fp32") <= 1e-5


@pytest.mark.parametrize("name", STAGES)
def test_the_int8_program_stays_within_a_tenth(stage, name):
    # Loose, since layers of 16 to 24 values round coarsely; real ones are held to far less.
    assert compare(stage, name, "int8") <= 0.1


@pytest.mark.parametrize("name", STAGES)
def test_a_programs_inputs_and_outputs_have_names_and_the_examples_shapes(stage, name):
    model, _, inputs, program = stage(name, "fp32")
    assert [spec.shape for spec in program.inputs] == [tuple(x.shape) for x in inputs]
    assert {spec.dtype for spec in (*program.inputs, *program.outputs)} == {"float32"}
    assert len(input_names(model)[name]) == len(program.inputs)
    assert len(output_names(model)[name]) == len(program.outputs)


def test_a_backbones_outputs_fit_the_heads_inputs(stage):
    backbone, head = (stage(name, "fp32")[3] for name in ("fusion_backbone", "action_head"))
    assert head.inputs[5:] == backbone.outputs


def test_constants_are_about_the_weights(stage):
    _, module, _, program = stage("action_head", "fp32")
    weights = sum(parameter.numel() for parameter in module.parameters()) * 4
    assert weights <= program.constants_bytes <= 1.2 * weights


def test_int8_does_not_change_the_module_it_is_given(stage):
    _, module, _, _ = stage("action_head", "int8")
    assert all(parameter.dtype == torch.float32 for parameter in module.parameters())
    assert type(module.action_in.weight) is torch.nn.Parameter


class LeavesOver(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x)[0] * 2


def test_operators_left_over_are_named():
    program = lower(LeavesOver(), (torch.randn(4),))
    with pytest.raises(LoweringError, match="aten::sort") as caught:
        program.require_one_delegate("sorter")
    assert "sorter (fp32)" in str(caught.value)


def test_the_same_tensor_as_two_inputs_is_refused():
    tensor = torch.randn(4)
    with pytest.raises(LoweringError, match="inputs 0 and 1 share memory"):
        lower(LeavesOver(), (tensor, tensor))


def test_an_unknown_recipe_is_refused():
    with pytest.raises(LoweringError, match="recipe is 'int3': expected one of fp32, int8"):
        lower(LeavesOver(), (torch.randn(4),), "int3")


def test_special_tokens_and_many_slots_still_become_one_delegate(tmp_path):
    from dataclasses import replace

    from omni_ros.models.smolvla.policy import SmolVLA

    config: SmolVLAConfig = replace(TINY, special_tokens=True)
    model = SmolVLA(config, 4).eval().requires_grad_(False)
    program = lower(model.fusion_backbone, example_inputs(model)["fusion_backbone"])
    program.require_one_delegate("fusion_backbone")
