# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The report's pictures, looked at as pixels: what is drawn must be there to be seen."""

from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from omni_ros.report import style  # noqa: E402
from omni_ros.report.contact_sheet import Strip, contact_sheet  # noqa: E402
from omni_ros.report.plots import (  # noqa: E402
    Limits, Rows, Span, chunk_seams, joints_against_limits, latencies)

NAMES = ("pan", "lift")
LIMITS = Limits(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), np.array([0.1, 0.1]))
TIMES = np.arange(0.0, 4.0, 0.1)


def pixels(png: bytes) -> np.ndarray:
    """Return a picture as (height, width, 3), 0..255."""
    import matplotlib.image

    return np.round(matplotlib.image.imread(io.BytesIO(png))[..., :3] * 255).astype(int)


def count(png: bytes, colour: str, tolerance: int = 3) -> int:
    """Return how many pixels have a colour."""
    from matplotlib.colors import to_rgb

    wanted = np.round(np.array(to_rgb(colour)) * 255)
    return int((np.abs(pixels(png) - wanted).max(axis=-1) <= tolerance).sum())


def joints(positions: np.ndarray, spans=()) -> bytes:
    return joints_against_limits(TIMES, positions, NAMES, LIMITS, spans)


def test_a_gap_in_the_measurements_is_not_drawn_over():
    whole = np.zeros((len(TIMES), 2))
    gap = whole.copy()
    gap[10:30] = np.nan
    assert 0 < count(joints(gap), style.BLUE) < 0.7 * count(joints(whole), style.BLUE)


def test_an_instruction_that_failed_is_marked_in_its_colour():
    still = np.zeros((len(TIMES), 2))
    failed = joints(still, [Span(0.5, 3.5, "touch", "wrong")])
    done = joints(still, [Span(0.5, 3.5, "touch", "success")])
    assert count(failed, style.RED) > count(done, style.RED)
    assert count(done, style.GREEN) > count(failed, style.GREEN) == 0


def test_positions_of_other_joints_than_named_are_refused():
    with pytest.raises(ValueError, match=r"\(40, 3\), expected \(40, 2\)"):
        joints(np.zeros((len(TIMES), 3)))


def test_chunks_that_follow_each_other_have_different_colours():
    chunks = [Rows(start + np.arange(1, 9) / 10, np.zeros((8, 1))) for start in (0.0, 0.5)]
    png = chunk_seams(chunks, Rows(TIMES, np.full((len(TIMES), 1), 0.5)), ["pan"])
    assert count(png, style.TURNS[0]) and count(png, style.TURNS[1])
    assert not count(png, style.TURNS[2], tolerance=1)


def test_rows_that_do_not_fit_their_times_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 1\), expected \(2, 1\)"):
        chunk_seams([Rows(np.zeros(2), np.zeros((3, 1)))], Rows(TIMES, np.zeros((40, 1))), ["pan"])


def test_a_longer_stage_has_a_longer_bar():
    def bar(seconds: float) -> int:
        stages = {"short": np.full(5, seconds), "long": np.full(5, 0.1)}
        return count(latencies(stages, {}), style.BLUE)

    assert bar(0.09) > 1.5 * bar(0.01)


def test_a_stage_without_a_figure_is_said_to_have_none():
    assert latencies({"vision": np.array([np.nan])}, {"total": np.array([])})


def test_a_contact_sheet_shows_every_frame():
    colours = [(250, 0, 120), (0, 120, 250), (120, 250, 0)]
    frames = [np.full((8, 8, 3), colour, np.uint8) for colour in colours]
    png = contact_sheet([Strip("touch the red block", "success", "1.2 s", frames, ["a", "b", "c"])])
    areas = [count(png, "#" + "".join(f"{c:02x}" for c in colour)) for colour in colours]
    assert min(areas) > 0.9 * max(areas) > 10_000


def test_a_frame_without_a_label_is_refused():
    with pytest.raises(ValueError, match="1 frames, 0 labels"):
        contact_sheet([Strip("touch", "success", "", [np.zeros((8, 8, 3), np.uint8)], [])])


def test_a_sheet_of_nothing_is_a_picture():
    assert pixels(contact_sheet([])).size


def test_the_same_figures_give_the_same_file():
    stages = {"vision": np.full(5, 0.01)}
    assert latencies(stages, {}) == latencies(stages, {})


def test_the_users_own_matplotlib_settings_do_not_leak_in():
    import matplotlib

    stages = {"vision": np.full(5, 0.01)}
    plain = latencies(stages, {})
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        assert latencies(stages, {}) == plain
