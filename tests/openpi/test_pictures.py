# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures are resized as openpi's clients do it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.openpi.pictures import resize_with_pad

SIZES = [(480, 640), (96, 96), (100, 301), (224, 224), (7, 9), (640, 480), (225, 224)]


def noise(height, width):
    return np.random.default_rng(height * width).integers(0, 256, (height, width, 3), np.uint8)


def test_pixels_are_those_of_openpi_client_to_one_step_of_rounding(openpi_packages, tmp_path):
    pytest.importorskip("PIL")
    code = """
import json, sys, numpy as np
from openpi_client.image_tools import resize_with_pad
for i, (h, w) in enumerate(json.loads(sys.argv[2])):
    picture = np.random.default_rng(h * w).integers(0, 256, (h, w, 3), np.uint8)
    np.save(f"{sys.argv[1]}/{i}.npy", resize_with_pad(picture, 224, 224))
"""
    subprocess.run([sys.executable, "-P", "-c", code, str(tmp_path), json.dumps(SIZES)], check=True,
                   env=openpi_packages, timeout=120)  # fmt: skip
    for index, size in enumerate(SIZES):
        theirs = np.load(tmp_path / f"{index}.npy").astype(int)
        ours = resize_with_pad(noise(*size), 224, 224)
        assert np.abs(ours - theirs).max() <= 1, size


def test_a_picture_of_the_right_size_is_handed_on_as_it_is():
    picture = noise(224, 320)
    assert resize_with_pad(picture, 224, 320) is picture


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(8, 40),
    st.integers(8, 40),
    st.integers(0, 255),
)
@settings(max_examples=100, deadline=None)
def test_a_plain_picture_stays_plain_inside_a_border_of_zeros(
    height, width, out_height, out_width, grey
):
    picture = np.full((height, width, 3), grey, np.uint8)
    try:
        made = resize_with_pad(picture, out_height, out_width)
    except ValueError as error:
        assert "too narrow" in str(error)
        return
    assert made.shape == (out_height, out_width, 3)
    assert set(np.unique(made)) <= {0, grey}
    rows = np.flatnonzero((made != 0).any(axis=(1, 2)))
    if len(rows):
        assert (np.diff(rows) == 1).all() and abs(rows[0] - (out_height - 1 - rows[-1])) <= 1


@pytest.mark.parametrize("picture", [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8),
                                     np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)])  # fmt: skip
def test_what_is_no_picture_is_refused(picture):
    with pytest.raises(ValueError, match="expected uint8"):
        resize_with_pad(picture, 8, 8)
