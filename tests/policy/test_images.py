# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures become the pixel values that the training code would have made of them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.images import (
    PI0,
    PI0_LEROBOT_04,
    SMOLVLA,
    ImageRule,
    ImageTransform,
    fitted_size,
)

DATA = Path(__file__).parents[1] / "data"
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def taps(size, out_size):
    """Where each output pixel looks along one axis; coordinates rounded to float32 once."""
    scale = float(np.float32(size) / np.float32(out_size))
    for index in range(out_size):
        source = max(0.0, float(np.float32(scale * (index + 0.5) - 0.5)))
        first = min(int(source), size - 1)
        yield first, min(first + 1, size - 1), source - first


def slow(image, out_height, out_width, rule):
    """Pixel by pixel, in float64."""
    height, width = image.shape[:2]
    ratio = max(width / out_width, height / out_height)
    rows, columns = int(height / ratio), int(width / ratio)
    top, left = out_height - rows, out_width - columns
    if rule.placement == "centre":
        top, left = top // 2, left // 2
    out = np.full((3, out_height, out_width), rule.pad_value)
    grey = image / 255.0 * (rule.high - rule.low) + rule.low
    for i, (up, down, y) in enumerate(taps(height, rows)):
        for j, (west, east, x) in enumerate(taps(width, columns)):
            out[:, top + i, left + j] = (
                (1 - y) * ((1 - x) * grey[up, west] + x * grey[up, east])
                + y * ((1 - x) * grey[down, west] + x * grey[down, east])
            )
    return out


@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_every_camera_of_a_reference_set_gives_its_pixel_values(folder):
    inputs = np.load(folder / "tensors/inputs.npz")
    reference = np.load(folder / "tensors/preprocessed.npz")
    cameras = [key for key in inputs.files if key.startswith("image/")]
    for index, key in enumerate(cameras):
        expected = reference[f"pixel_values/{index}"][0]
        transform = ImageTransform(out_height=expected.shape[1], out_width=expected.shape[2])
        np.testing.assert_allclose(transform(inputs[key]), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_an_absent_camera_is_what_the_reference_puts_in_its_place(folder):
    reference = np.load(folder / "tensors/preprocessed.npz")
    masks = [key for key in reference.files if key.startswith("image_mask/")]
    for key in masks:
        if not reference[key][0]:
            expected = reference[key.replace("image_mask", "pixel_values")][0]
            transform = ImageTransform(out_height=expected.shape[1], out_width=expected.shape[2])
            np.testing.assert_array_equal(transform.blank(), expected)


@pytest.mark.parametrize("camera", [0, 1])
def test_pi0_centres_the_picture(camera):
    reference = np.load(DATA / "policy/pi0.npz")
    transform = ImageTransform(out_height=224, out_width=224, rule=PI0)
    np.testing.assert_allclose(
        transform(reference[f"image/{camera}"]), reference[f"pixel_values/{camera}"],
        rtol=0, atol=1e-6,
    )


def test_pi0_s_absent_camera_is_what_the_reference_puts_in_its_place():
    rows = np.load(DATA / "policy/pi0.npz")["pixel_values/2_first_row"]
    blank = ImageTransform(out_height=224, out_width=224, rule=PI0).blank()
    np.testing.assert_array_equal(blank[:, 0], rows)


def test_pi0_of_lerobot_0_4_pads_with_minus_3_and_differs_in_nothing_else():
    image = picture(30, 64)
    new = ImageTransform(out_height=56, out_width=56, rule=PI0)(image)
    old = ImageTransform(out_height=56, out_width=56, rule=PI0_LEROBOT_04)(image)
    padding = old == -3.0
    assert padding.any() and (new[padding] == -1.0).all()
    np.testing.assert_array_equal(new[~padding], old[~padding])


sides = st.integers(2, 40)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(sides, sides, sides, sides, st.sampled_from([SMOLVLA, PI0, PI0_LEROBOT_04,
                                                    ImageRule(low=0.0, pad_value=0.5)]))
def test_any_size_equals_a_pixel_by_pixel_computation(height, width, out_height, out_width, rule):
    try:
        fitted_size(height, width, out_height=out_height, out_width=out_width)
    except ValueError:
        return  # a side would vanish; a test of its own says so
    image = picture(height, width, seed=height * 41 + width)
    transform = ImageTransform(out_height=out_height, out_width=out_width, rule=rule)
    np.testing.assert_allclose(
        transform(image), slow(image, out_height, out_width, rule), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("size", [(480, 640), (1099, 473), (1008, 909), (45, 735), (512, 512)])
def test_real_camera_sizes_equal_pytorch(size):
    torch = pytest.importorskip("torch")
    image = picture(*size)
    rows, columns = fitted_size(*size, out_height=512, out_width=512)
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    tensor = torch.nn.functional.interpolate(
        tensor, size=(rows, columns), mode="bilinear", align_corners=False
    )
    tensor = torch.nn.functional.pad(tensor, (512 - columns, 0, 512 - rows, 0), value=0.0)
    result = ImageTransform(out_height=512, out_width=512)(image)
    np.testing.assert_allclose(result, (tensor * 2 - 1)[0].numpy(), rtol=0, atol=1e-6)


def test_a_picture_of_the_frame_s_own_size_is_only_scaled():
    image = picture(16, 16)
    result = ImageTransform(out_height=16, out_width=16)(image)
    np.testing.assert_allclose(
        result, image.transpose(2, 0, 1) / 255.0 * 2 - 1, rtol=0, atol=1e-6
    )


def test_a_view_with_padded_rows_gives_the_same_pixels():
    image = picture(20, 31)
    padded = np.zeros((20, 31 * 3 + 7), np.uint8)
    padded[:, :93] = image.reshape(20, 93)
    view = np.lib.stride_tricks.as_strided(padded, (20, 31, 3), (100, 3, 1))
    transform = ImageTransform(out_height=24, out_width=24)
    expected = transform(image).copy()
    np.testing.assert_array_equal(transform(view), expected)


def test_a_mirrored_view_is_read_mirrored():
    image = picture(20, 30)
    transform = ImageTransform(out_height=20, out_width=30)
    expected = transform(image)[:, :, ::-1].copy()
    np.testing.assert_allclose(transform(image[:, ::-1]), expected, rtol=0, atol=1e-6)


def test_another_size_than_before_is_taken_as_it_comes():
    transform = ImageTransform(out_height=24, out_width=24, size=(20, 31))
    small = transform(picture(20, 31)).copy()
    transform(picture(50, 33))
    np.testing.assert_array_equal(transform(picture(20, 31)), small)


def test_the_result_goes_where_it_is_asked_for():
    out = np.full((3, 24, 24), np.nan, np.float32)
    transform = ImageTransform(out_height=24, out_width=24)
    assert transform(picture(10, 20), out=out) is out
    assert np.isfinite(out).all()


@pytest.mark.parametrize("image", [
    picture(8, 8).astype(np.float32), picture(8, 8)[..., :1], picture(8, 8)[0],
])
def test_what_is_no_rgb_picture_is_refused_with_its_shape(image):
    with pytest.raises(ValueError, match=r"uint8 \[height, width, 3\]"):
        ImageTransform(out_height=8, out_width=8)(image)


def test_a_picture_too_narrow_to_leave_a_column_is_refused_with_both_sizes():
    with pytest.raises(ValueError, match=r"2x900.*16x16.*0x16"):
        ImageTransform(out_height=16, out_width=16)(picture(900, 2))


@pytest.mark.parametrize("strided", [False, True])
def test_no_large_block_is_allocated_once_a_size_is_known(strided):
    image = picture(480, 640)
    image = image[:, ::-1] if strided else image
    transform = ImageTransform(out_height=512, out_width=512, size=(480, 640))
    transform(image)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        transform(image)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
