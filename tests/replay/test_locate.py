# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The first stage that differs, from what two runs left of each."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.replay.contents import Chunk
from omni_ros.replay.fingerprints import by_name, fingerprint
from omni_ros.replay.locate import guess, locate
from omni_ros.replay.plans import Plan
from omni_ros.replay.running import Done

JOINTS = ("pan", "lift", "grip")
TENSORS = ("picture/front", "pixels/front", "image_tokens/front", "state", "valid", "prefix", "x/0", "x/1",
           "x/2")


def tensor(name: str, step: float = 0.0) -> np.ndarray:
    values = np.random.default_rng(TENSORS.index(name)).standard_normal(500).astype(np.float32)
    values[:] += np.float32(step)
    return values


def run(**steps: float) -> tuple[Plan, Done]:
    """A recorded chunk and the same done again, with some tensors moved by a step."""
    steps = {name.replace("__", "/"): step for name, step in steps.items()}
    normalised = np.random.default_rng(99).standard_normal((6, 3)).astype(np.float32)
    recorded = by_name([fingerprint(name, tensor(name)) for name in TENSORS])
    chunk = Chunk(1, "local", 5, 1, 0, 10, JOINTS, ("rad",) * 3, normalised.astype(np.float64) * 2.0,
                  {}, 5, None)
    state, prompt = np.array([0.1, 0.2, 0.3]), np.array([4, 9, -1])
    plan = Plan(chunk, "go", state=state, prompt=prompt, normalised=normalised, steps=2)
    plan.recorded = recorded
    done = Done(normalised * np.float32(2.0), JOINTS, normalised, state.copy(), prompt.copy(), 2,
                by_name([fingerprint(name, tensor(name, steps.get(name, 0.0))) for name in TENSORS]))
    return plan, done


def decode(normalised: np.ndarray) -> np.ndarray:
    return normalised * np.float32(2.0)


def test_what_is_the_same_everywhere_is_nowhere():
    assert locate(*run(), decode, tolerance=None) is None


@pytest.mark.parametrize(("name", "stage", "host"), [
    ("picture/front", "picture", True), ("pixels/front", "pixels", True),
    ("image_tokens/front", "vision encoder", False), ("state", "normalisation", True),
    ("valid", "prefix", True), ("prefix", "prefix", False), ("x/0", "noise", True),
    ("x/1", "step 1", False), ("x/2", "step 2", False)])
def test_each_tensor_has_its_stage(name, stage, host):
    place = locate(*run(**{name: 0.01}), decode, tolerance=None)
    assert place.stage == stage and place.host is host


def test_the_first_of_several_is_named():
    place = locate(*run(**{"x/2": 0.1, "prefix": 0.1, "image_tokens/front": 0.1}), decode,
                   tolerance=None)
    assert place.stage == "vision encoder"


def test_rounding_of_programs_is_passed_over_where_it_is_allowed():
    moved = {"image_tokens/front": 1e-6, "prefix": 1e-6, "x/1": 1e-6}
    assert locate(*run(**moved), decode, tolerance=1e-4) is None
    assert locate(*run(**moved), decode, tolerance=None).stage == "vision encoder"


def test_a_tolerance_is_no_excuse_for_other_pixels():
    assert locate(*run(**{"pixels/front": 1e-3}), decode, tolerance=0.5).stage == "pixels"


def test_another_number_of_steps():
    plan, done = run()
    plan.steps = 5
    assert locate(plan, done, decode, tolerance=None).text == "the flow had 5 steps and has 2"


def test_other_statistics_of_the_actions():
    place = locate(*run(), lambda n: n * np.array([2.0, 2.0, 2.1], np.float32), tolerance=None)
    assert place.stage == "normalisation" and "grip differs" in place.text


def test_joints_of_other_names():
    plan, done = run()
    done.names = ("pan", "lift", "tail")
    place = locate(plan, done, decode, tolerance=None)
    assert place.stage == "joint order" and "tail" in place.text


def test_a_state_in_another_unit():
    plan, done = run()
    done.state = done.state * 57.3
    assert locate(plan, done, decode, tolerance=None).stage == "units"


def test_from_actions_alone_nothing_is_guessed_that_they_do_not_show():
    plan, done = run()
    done.actions = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
    assert guess(plan, done) is None
