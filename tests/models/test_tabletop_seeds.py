# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a policy is judged on is not what it was trained on."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from omni_ros.cli.tabletop_trials import FIRST_SEED  # noqa: E402
from omni_ros.models.tabletop.measure import FINAL_SEEDS  # noqa: E402
from omni_ros.models.tabletop.practice import CURVE_SEEDS, OWN_SEEDS  # noqa: E402

#: More episodes than any run of training or evaluation uses.
ROOM = 50_000


def test_layouts_of_evaluation_are_none_that_training_sees():
    seen = (CURVE_SEEDS, OWN_SEEDS)
    for judged in (FIRST_SEED, FINAL_SEEDS):
        assert all(abs(judged - first) >= ROOM for first in seen)


def test_evaluation_outside_and_inside_the_graph_have_layouts_of_their_own():
    assert abs(FIRST_SEED - FINAL_SEEDS) >= ROOM
