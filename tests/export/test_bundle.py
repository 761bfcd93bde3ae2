# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is in a bundle of a checkpoint that LeRobot saved, and what an export refuses."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.exir")

from safetensors.numpy import load_file, save_file  # noqa: E402

from omni_ros.bundles import open_bundle, read_golden, read_manifest  # noqa: E402
from omni_ros.models.export import lowering, stage  # noqa: E402
from omni_ros.models.export.bundle import tolerance  # noqa: E402
from omni_ros.models.export.lower import LoweringError  # noqa: E402
from omni_ros.models.smolvla.load import build, load_checkpoint  # noqa: E402

CASES = [("smolvla_given", "fp32"), ("smolvla_given_b", "fp32"), ("smolvla_given", "int8")]
STAGES = ("vision_encoder", "fusion_backbone", "action_head")


@pytest.fixture(params=CASES, ids="-".join)
def case(request, exported):
    name, recipe = request.param
    return exported(name, recipe), recipe


@pytest.fixture
def oracle(exported, oracles):
    """The bundle of a set, its manifest and the set's folder."""
    bundle = exported("smolvla_given_b", "fp32")
    return bundle, read_manifest(bundle), oracles / "smolvla_given_b"


def test_a_bundle_opens_with_every_hash_and_golden_vector(case):
    bundle, _ = case
    assert tuple(open_bundle(bundle).manifest.programs) == STAGES


def test_each_program_is_one_delegate_without_leftovers_and_arenas(case):
    bundle, recipe = case
    for entry in read_manifest(bundle).programs.values():
        assert entry.delegates == {"XnnpackBackend": 1}
        assert entry.leftover == ()
        assert sum(entry.arenas) == 0
        assert entry.recipe == recipe


def test_programs_answer_as_the_network_does(case):
    bundle, recipe = case
    limit = {"fp32": 1e-5, "int8": 0.1}[recipe]
    for name, entry in read_manifest(bundle).programs.items():
        assert entry.difference <= limit, name


def test_another_cpu_may_differ_by_twice_what_quantising_costs_and_in_fp32_by_rounding(case):
    bundle, recipe = case
    manifest = read_manifest(bundle)
    costs = max(entry.difference for entry in manifest.programs.values())
    assert manifest.tolerance.across_machines == {"fp32": 1e-4, "int8": 2 * costs}[recipe]


@pytest.mark.parametrize(("differences", "across"), [
    ([0.01, 0.05, 0.02], 0.1), ([1e-6], 1e-3), ([0.2, 0.4], 0.5),
])
def test_the_tolerance_across_machines_follows_the_worst_program(differences, across):
    programs = {str(d): SimpleNamespace(difference=d) for d in differences}
    assert tolerance("int8", programs).across_machines == pytest.approx(across)
    assert tolerance("fp32", programs).across_machines == 1e-4


def test_what_xnnpack_needs_is_measured_since_no_plan_shows_it(case):
    manifest = read_manifest(case[0])
    assert all(entry.constants_bytes > 0 for entry in manifest.programs.values())
    assert manifest.memory.workspaces > 0


def test_golden_inputs_mask_part_of_the_prefix(oracle):
    bundle, manifest, _ = oracle
    for name in ("fusion_backbone", "action_head"):
        inputs, _ = read_golden(bundle / manifest.golden[name], manifest.programs[name])
        assert 0.0 < inputs["valid"].mean() < 1.0


def test_keys_and_values_are_handed_on_under_the_same_names_and_shapes(case):
    programs = read_manifest(case[0]).programs
    made = programs["fusion_backbone"].outputs
    assert set(made) <= set(programs["action_head"].inputs)


def test_the_manifest_has_what_the_checkpoint_says(oracle):
    _, manifest, folder = oracle
    config = json.loads((folder / "checkpoint" / "config.json").read_text())
    size = manifest.dimensions
    assert (size.chunk, size.steps, size.action_steps) == (24, 8, 12)
    assert (size.state, size.action, size.max_state, size.max_action) == (7, 7, 32, 32)
    cameras = [(c.name, c.key, c.height, c.width) for c in manifest.cameras]
    assert cameras == [
        ("camera1", "observation.images.camera1", 72, 128),
        ("camera2", "observation.images.camera2", 72, 128),
    ]
    assert manifest.empty_cameras == config["empty_cameras"] == 1
    assert (manifest.prefix.slots, manifest.prefix.start_marks, manifest.prefix.end_marks) == (
        3, 2, 1)
    assert size.prefix == 3 * (64 + 3) + 48 + 1
    assert manifest.tokenizer.padding == "longest"
    assert manifest.tokenizer.newline
    assert manifest.tokenizer.pad_token == 2
    assert (manifest.flow.min_period, manifest.flow.max_period) == (0.004, 4.0)
    assert manifest.flow.dt == -0.125
    assert not manifest.rtc.enabled


def test_raw_joints_are_marked_so_that_no_player_takes_them(oracle):
    assert oracle[1].joints == "raw"


def test_statistics_survive_exactly(oracle):
    bundle, manifest, folder = oracle
    stored = json.loads((bundle / manifest.normalisation.file).read_text())
    name = "policy_preprocessor_step_5_normalizer_processor.safetensors"
    theirs = load_file(folder / "checkpoint" / name)
    for feature in ("observation.state", "action"):
        for statistic in ("mean", "std"):
            ours = np.array(stored[feature][statistic], np.float32)
            assert np.array_equal(ours, theirs[f"{feature}.{statistic}"])


def test_the_token_table_is_the_checkpoints(oracle):
    bundle, manifest, folder = oracle
    table = np.load(bundle / manifest.embeddings.file, mmap_mode="r")
    model = build(load_checkpoint(folder / "checkpoint"))
    assert np.array_equal(table, model.token_table.numpy())
    assert table.shape == (manifest.embeddings.rows, manifest.embeddings.width)


def test_a_bfloat16_table_is_kept_as_its_bits(tmp_path, oracles):
    from omni_ros.models.export.smolvla import SmolVLAExport
    from omni_ros.models.smolvla.random_checkpoint import write_checkpoint

    source = write_checkpoint(tmp_path, tokenizer=oracles / "smolvla_given" / "vlm", dtype="bf16")
    export = SmolVLAExport(source, {})
    export.write_files(tmp_path)
    stored = np.load(tmp_path / "embeddings.npy")
    assert export.sections()["embeddings"].dtype == "bfloat16"
    widened = (stored.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(widened, export.checkpoint.token_table.float().numpy())


def test_provenance_says_from_what_and_with_what_it_was_made(oracle):
    origin = oracle[1].provenance
    assert len(origin.checkpoint_sha256) == len(origin.backbone_sha256) == 64
    assert origin.options["recipe"] == "fp32"
    assert origin.tools.torch == torch.__version__
    assert origin.peak_memory_bytes > 1 << 20
    assert origin.minutes > 0.0


def test_a_stage_is_lowered_to_the_same_program_in_a_process_of_its_own(tiny, tmp_path):
    made = []
    for name, isolate in (("here.pte", False), ("there.pte", True)):
        lowered = lowering.lower_stage(
            "smolvla", tiny, {}, "vision_encoder", tmp_path / name, tmp_path, "fp32", 1,
            isolate=isolate,
        )
        made.append(dataclasses.replace(lowered, reading_s=0.0, lowering_s=0.0))
    assert made[0] == made[1]
    assert (tmp_path / "here.pte").read_bytes() == (tmp_path / "there.pte").read_bytes()


def test_joints_of_another_number_are_refused_before_anything_is_lowered(export, tmp_path):
    with pytest.raises(ValueError, match="1 joints were given .pan., the checkpoint has 3 actions"):
        export(joints="pan:rad")
    assert not (tmp_path / "out").exists()


def test_joints_that_are_not_given_are_asked_for(export):
    with pytest.raises(ValueError, match="joints are not given"):
        export(joints=None)


def test_an_unknown_recipe_is_refused(export):
    with pytest.raises(ValueError, match="recipe is 'int4': a smolvla is exported as fp32, int8"):
        export(recipe="int4")


def test_an_unknown_kind_of_network_is_refused(export, tiny):
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps({**config, "type": "act"}))
    with pytest.raises(ValueError, match="type is 'act': expected one of smolvla"):
        export()


def test_a_checkpoint_without_its_tokenizer_asks_for_the_backbone(export, tiny):
    (tiny.parent / "vlm" / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="no tokenizer.*backbone=DIR"):
        export()


def test_a_tokenizer_with_more_tokens_than_the_table_is_refused(export, tiny):
    path = tiny.parent / "vlm" / "tokenizer.json"
    content = json.loads(path.read_text())
    content["added_tokens"][0]["id"] = 100_000
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="has the id 100000; expected 0 to 511, as the table"):
        export()


def test_a_tokenizer_that_no_bundle_would_be_opened_with_is_refused(export, tiny, tmp_path):
    path = tiny.parent / "vlm" / "tokenizer.json"
    content = json.loads(path.read_text())
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "/////w=="}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="tokenizer.json: normalizer is 'Precompiled'"):
        export()
    assert not (tmp_path / "out").exists()


def test_a_camera_that_no_bundle_can_name_is_refused_before_anything_is_lowered(export, tiny):
    config = json.loads((tiny / "config.json").read_text())
    config["input_features"]["observation.images.a b"] = {"type": "VISUAL", "shape": [3, 8, 8]}
    (tiny / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="observation.images.a b gives a camera the name 'a b'"):
        export()


def with_leftover(monkeypatch) -> None:
    """Let the vision encoder end in an operator that XNNPACK does not take."""
    from omni_ros.models.smolvla.vision import VisionEncoder

    forward = VisionEncoder.forward
    monkeypatch.setattr(
        VisionEncoder, "forward", lambda self, pixels: torch.cumsum(forward(self, pixels), dim=0)
    )


def test_a_leftover_operator_fails_the_export_and_is_named(export, tmp_path, monkeypatch):
    with_leftover(monkeypatch)
    with pytest.raises(LoweringError, match="vision_encoder.*aten::cumsum.out.*--allow-portable"):
        export()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made"]


def test_portable_operators_can_be_allowed_and_are_on_record(export, tmp_path, monkeypatch):
    with_leftover(monkeypatch)
    manifest = export(allow_portable=True)
    assert manifest.programs["vision_encoder"].leftover == ("aten::cumsum.out",)
    assert manifest.provenance.options["allow_portable"] is True
    open_bundle(tmp_path / "out")


def test_a_program_that_answers_otherwise_than_the_network_fails_the_export(
    export, tmp_path, monkeypatch
):
    lowered = lowering.lower

    def wrongly(module, *arguments, **options):
        with torch.no_grad():
            module.norm.bias += 1.0
        return lowered(module, *arguments, **options)

    monkeypatch.setattr(lowering, "lower", wrongly)
    with pytest.raises(LoweringError, match="vision_encoder .fp32. answers with a difference of"):
        export()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_nothing_is_left_of_an_export_that_is_stopped(export, tmp_path, monkeypatch, error):
    def stopped(*arguments, **options):
        raise error

    monkeypatch.setattr(stage, "lower_stage", stopped)
    with pytest.raises(type(error)):
        export()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made"]


def test_a_fault_found_in_a_lowering_process_is_raised_here(tiny, tmp_path):
    path = tiny / "model.safetensors"
    tensors = load_file(path)
    tensors["model.state_proj.weight"] = tensors["model.state_proj.weight"] * np.float32("nan")
    save_file(tensors, path)
    with pytest.raises(ValueError, match="model.state_proj.weight holds values .* not finite"):
        lowering.lower_stage(
            "smolvla", tiny, {}, "fusion_backbone", tmp_path / "x.pte", tmp_path, "fp32", 1
        )
