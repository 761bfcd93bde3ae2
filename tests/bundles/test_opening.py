# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from omni_ros.bundles import BundleError, child, layout, open_bundle, read_golden, try_programs

pytestmark = pytest.mark.usefixtures("executorch")


def refusal(root, **options) -> str:
    with pytest.raises(BundleError) as caught:
        open_bundle(root, **options)
    text = str(caught.value)
    assert str(root) in text
    assert "\n" not in text
    return text


def test_a_whole_bundle_opens_and_its_programs_run(pristine):
    bundle = open_bundle(pristine)
    prefix, head = bundle.load("fusion_backbone"), bundle.load("action_head")
    entry = bundle.manifest.programs["action_head"]
    inputs, outputs = read_golden(bundle.path("golden/action_head.npz"), entry)
    for name in ("keys", "values"):
        head.bind(name, prefix.output(name))
        prefix.output(name)[...] = inputs[name]
    head.bind("x", inputs["x"])
    head.run()
    np.testing.assert_allclose(head.output("y"), outputs["y"], rtol=0, atol=2e-6)


def test_the_trial_reports_how_far_each_program_is_from_its_golden_vector(pristine):
    results = try_programs(open_bundle(pristine, trial=False))
    assert set(results) == {"vision_encoder", "fusion_backbone", "action_head"}
    assert max(results.values()) < 1e-6


def test_a_trial_of_one_program_leaves_the_others_alone(pristine):
    assert set(try_programs(open_bundle(pristine, trial=False), ("action_head",))) == {"action_head"}


def test_an_unknown_program_is_refused_with_those_there_are(pristine):
    with pytest.raises(BundleError, match="no program 'decoder'; it has: vision_encoder"):
        open_bundle(pristine, trial=False).load("decoder")


def test_a_golden_vector_that_differs_is_refused_with_both_numbers(bundle, sign):
    path = bundle / "golden" / "vision_encoder.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["outputs.y"] = arrays["outputs.y"] + 0.01
    np.savez_compressed(path, **arrays)
    sign(bundle)
    text = refusal(bundle)
    assert "vision_encoder.pte: output y differs" in text
    assert "allowed is 1e-06" in text


def test_the_wider_tolerance_holds_on_another_machine(bundle, sign):
    path = bundle / "golden" / "vision_encoder.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["outputs.y"] = arrays["outputs.y"] + np.float32(5e-5)
    np.savez_compressed(path, **arrays)

    def elsewhere(manifest: layout.Manifest) -> layout.Manifest:
        provenance = dataclasses.replace(manifest.provenance, machine="aarch64 some board")
        return dataclasses.replace(manifest, provenance=provenance)

    sign(bundle, elsewhere)
    open_bundle(bundle)


def test_programs_that_are_not_what_the_manifest_says_are_refused(bundle, sign):
    head, prefix = bundle / "action_head.pte", bundle / "fusion_backbone.pte"
    content = head.read_bytes()
    head.write_bytes(prefix.read_bytes())
    prefix.write_bytes(content)
    sign(bundle)
    assert "fusion_backbone.pte: has 3 inputs, 1 names were given" in refusal(bundle)


def test_a_shape_that_differs_is_refused_with_both_sides(bundle, sign):
    def narrower(manifest: layout.Manifest) -> layout.Manifest:
        entry = manifest.programs["vision_encoder"]
        entry = dataclasses.replace(entry, outputs=(layout.Tensor("y", "float32", (8, 3)),))
        programs = {**manifest.programs, "vision_encoder": entry}
        return dataclasses.replace(manifest, programs=programs, memory=layout.Memory.of(programs))

    sign(bundle, narrower)
    assert "is float32 [8, 4], the manifest says y: float32 [8, 3]" in refusal(bundle)


def test_a_delegate_that_the_manifest_does_not_name_is_refused(bundle, sign):
    def portable(manifest: layout.Manifest) -> layout.Manifest:
        entry = dataclasses.replace(manifest.programs["action_head"], delegates={})
        return dataclasses.replace(
            manifest, programs={**manifest.programs, "action_head": entry}
        )

    sign(bundle, portable)
    assert "action_head.pte: uses the delegates XnnpackBackend" in refusal(bundle)


@pytest.fixture
def load_does(monkeypatch):
    """Let the child do something else where it would load a program."""

    def set_deed(deed: str) -> None:
        code = "import json, os, signal, sys; sys.path[:] = json.loads(sys.argv[1]); "
        code += "from omni_ros.bundles import trial; "
        code += f"trial.load_program = lambda *_: {deed}; "
        code += "trial.main(*sys.argv[4:], parent=int(sys.argv[3]))"
        monkeypatch.setattr(child, "BOOTSTRAP", code)

    return set_deed


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGKILL"])
def test_a_file_that_kills_whoever_loads_it_kills_only_the_child(bundle, load_does, signal):
    load_does(f"os.kill(os.getpid(), signal.{signal})")
    text = refusal(bundle)
    assert "vision_encoder.pte: its first load and run killed the process" in text
    assert signal in text


def test_a_file_that_ends_whoever_loads_it_is_refused(bundle, load_does):
    load_does("os._exit(0)")
    assert "vision_encoder.pte: its first load and run ended with status 0" in refusal(bundle)


def test_a_program_that_never_ends_is_given_up(bundle, load_does):
    load_does("signal.pause()")
    text = refusal(bundle, timeout_s=2.0)
    assert "vision_encoder.pte: its first load and run was not over in time" in text


def test_a_program_that_wants_more_memory_than_it_said_is_refused(bundle, load_does):
    load_does("bytearray(4 << 30)")
    assert "vision_encoder.pte: needs more memory than the" in refusal(bundle)


def test_a_bundle_that_needs_more_than_the_machine_has_is_refused_before_anything_else(
    bundle, sign
):
    def huge(manifest: layout.Manifest) -> layout.Manifest:
        entry = dataclasses.replace(manifest.programs["action_head"], constants_bytes=1 << 46)
        programs = {**manifest.programs, "action_head": entry}
        return dataclasses.replace(manifest, programs=programs, memory=layout.Memory.of(programs))

    sign(bundle, huge)
    (bundle / "action_head.pte").write_bytes(b"")
    with pytest.raises(BundleError, match="needs 703687.. MB, this process can have"):
        open_bundle(bundle)


def test_opening_imports_neither_torch_nor_executorch(pristine):
    lines = [
        "import sys; from omni_ros.bundles import open_bundle",
        f"open_bundle({str(pristine)!r}).load('action_head')",
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'executorch'}))",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", "\n".join(lines)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n", result.stderr
