# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What an action head takes of a draw that somebody else asks for."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.msg import ActionDraw  # noqa: E402
from omni_ros.nodes._stage_draws import read_draw  # noqa: E402


def test_noise_and_steps_are_taken_as_they_are():
    out = np.zeros((2, 3), np.float32)
    draw = ActionDraw(noise=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0], steps=4)
    assert read_draw(draw, out) == 4
    assert out.tolist() == [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]


@pytest.mark.parametrize(("draw", "words"), [
    (ActionDraw(noise=[0.0] * 5), "5 values"),
    (ActionDraw(), "0 values"),
    (ActionDraw(noise=[0.0] * 5 + [float("nan")]), "1 of them not finite"),
    (ActionDraw(noise=[0.0] * 6, steps=100_000), "100000 steps"),
])
def test_a_draw_that_does_not_fit_is_refused_and_leaves_no_trace(draw, words):
    out = np.full((2, 3), 9.0, np.float32)
    with pytest.raises(ValueError, match=words):
        read_draw(draw, out)
    assert (out == 9.0).all()
