# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Camera images: every encoding gives the pixels it carries, and bad ones say why."""

from __future__ import annotations

import array
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros import images
from omni_ros.requirements import MissingDependency

HEIGHT, WIDTH = 50, 100


@pytest.fixture()
def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def message(pixels: np.ndarray, encoding: str, *, padding: int = 0, big_endian: int = 0):
    """Return an image message of bytes (height, row), each row padded with rubbish."""
    rows = np.ascontiguousarray(pixels).reshape(pixels.shape[0], -1).view(np.uint8)
    padded = np.pad(rows, ((0, 0), (0, padding)), constant_values=0xEE)
    return SimpleNamespace(
        height=pixels.shape[0],
        width=pixels.shape[1],
        encoding=encoding,
        step=padded.shape[1],
        is_bigendian=big_endian,
        data=images.byte_array(padded),
    )


@pytest.mark.parametrize("padding", [0, 1, 12])
def test_padded_rows_give_the_unpadded_picture(picture, padding):
    got = images.to_rgb(message(picture, "rgb8", padding=padding))
    np.testing.assert_array_equal(got, picture)


@pytest.mark.parametrize("padding", [0, 12])
def test_bgr_is_turned_into_rgb(picture, padding):
    got = images.to_rgb(message(picture[:, :, ::-1], "bgr8", padding=padding))
    np.testing.assert_array_equal(got, picture)


@pytest.mark.parametrize("encoding", ["rgba8", "bgra8"])
def test_an_alpha_channel_is_dropped(picture, encoding):
    colour = picture if encoding == "rgba8" else picture[:, :, ::-1]
    with_alpha = np.dstack([colour, np.full((HEIGHT, WIDTH), 7, np.uint8)])
    got = images.to_rgb(message(with_alpha, encoding, padding=12))
    np.testing.assert_array_equal(got, picture)


def test_mono8_fills_all_three_channels(picture):
    grey = picture[:, :, 0]
    got = images.to_rgb(message(grey, "mono8", padding=12))
    np.testing.assert_array_equal(got, np.dstack([grey] * 3))


@pytest.mark.parametrize(("order", "big_endian"), [("<u2", 0), (">u2", 1)])
def test_mono16_keeps_the_upper_byte_in_either_byte_order(order, big_endian):
    values = np.array([[0, 255, 256], [0x1234, 0xFF00, 0xFFFF]])
    got = images.to_rgb(message(values.astype(order), "mono16", padding=3, big_endian=big_endian))
    np.testing.assert_array_equal(got[:, :, 1], [[0, 0, 1], [0x12, 255, 255]])


@pytest.mark.parametrize("encoding", ["yuv422", "uyvy", "yuv422_yuy2", "yuyv"])
def test_yuv422_gives_the_primary_colours_of_bt601(encoding):
    # Y, U, V of black, white, red, green, blue; two pixels each.
    colours = [(16, 128, 128), (235, 128, 128), (82, 90, 240), (145, 54, 34), (41, 240, 110)]
    if encoding in ("yuv422", "uyvy"):
        packed = [[u, y, v, y] for y, u, v in colours]
    else:
        packed = [[y, u, y, v] for y, u, v in colours]
    msg = message(np.array([packed], np.uint8).reshape(1, 10, 2), encoding, padding=5)
    got = images.to_rgb(msg).astype(int)
    expected = np.repeat(
        [[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]], 2, axis=0
    )
    assert np.abs(got[0] - expected).max() <= 2


def test_the_two_pixels_of_a_yuv_pair_keep_their_own_brightness():
    msg = message(np.array([[[128, 16], [128, 235]]], np.uint8), "yuv422")
    np.testing.assert_array_equal(images.to_rgb(msg)[0, :, 0], [0, 255])


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8"])
def test_pixels_of_colour_encodings_are_not_copied(picture, encoding):
    channels = 4 if encoding.endswith("a8") else 3
    msg = message(np.resize(picture, (HEIGHT, WIDTH, channels)), encoding, padding=12)
    assert np.shares_memory(images.to_rgb(msg), np.frombuffer(msg.data, np.uint8))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_data_may_be_any_kind_of_bytes(picture, kind):
    msg = message(picture, "rgb8")
    raw = msg.data.tobytes()
    msg.data = np.frombuffer(raw, np.uint8) if kind is np.frombuffer else kind(raw)
    np.testing.assert_array_equal(images.to_rgb(msg), picture)


def test_a_last_row_without_its_padding_is_accepted(picture):
    msg = message(picture, "rgb8", padding=12)
    msg.data = msg.data[:-12]
    np.testing.assert_array_equal(images.to_rgb(msg), picture)


def test_short_data_is_refused_with_both_sizes(picture):
    msg = message(picture, "rgb8")
    msg.data = msg.data[:-1]
    with pytest.raises(images.ImageError, match="has 14999 bytes.*needs 15000"):
        images.to_rgb(msg)


def test_a_step_shorter_than_a_row_is_refused_with_both_sizes(picture):
    msg = message(picture, "rgb8")
    msg.step = 299
    with pytest.raises(images.ImageError, match="step is 299 bytes.*needs 300"):
        images.to_rgb(msg)


def test_an_unknown_encoding_is_refused_with_the_known_ones(picture):
    with pytest.raises(images.ImageError, match="'bayer_rggb8'.*rgb8, bgr8"):
        images.to_rgb(message(picture, "bayer_rggb8"))


def test_an_empty_image_is_refused(picture):
    msg = message(picture, "rgb8")
    msg.width = 0
    with pytest.raises(images.ImageError, match="0x50"):
        images.to_rgb(msg)


def test_an_odd_width_is_refused_for_yuv422():
    with pytest.raises(images.ImageError, match="even"):
        images.to_rgb(message(np.zeros((2, 3, 2), np.uint8), "yuv422"))


def test_a_python_list_of_pixels_is_refused(picture):
    msg = message(picture, "rgb8")
    msg.data = list(msg.data)
    with pytest.raises(images.ImageError, match="is a list"):
        images.to_rgb(msg)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8"])
def test_a_written_picture_reads_back_the_same(picture, encoding):
    msg = SimpleNamespace()
    images.fill(msg, picture, encoding=encoding)
    assert isinstance(msg.data, array.array) and msg.data.typecode == "B"
    assert len(msg.data) == msg.step * msg.height
    np.testing.assert_array_equal(images.to_rgb(msg), picture)


def test_a_picture_with_odd_strides_can_be_written(picture):
    msg = SimpleNamespace()
    images.fill(msg, picture[::2, ::-1])
    np.testing.assert_array_equal(images.to_rgb(msg), picture[::2, ::-1])


def test_mono8_is_written_as_rounded_luma():
    msg = SimpleNamespace()
    primaries = np.diag([255, 255, 255]).astype(np.uint8)[None]
    images.fill(msg, primaries, encoding="mono8")
    assert list(msg.data) == [76, 150, 29]


def test_a_picture_of_floats_is_not_written(picture):
    with pytest.raises(images.ImageError, match="float64"):
        images.fill(SimpleNamespace(), picture / 255)


def test_a_missing_decoder_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingDependency, match="opencv-python-headless"):
        images.decode(SimpleNamespace(format="jpeg", data=b"\xff\xd8"))


def test_a_compressed_picture_is_decoded_to_rgb(picture):
    cv2 = pytest.importorskip("cv2")
    data = cv2.imencode(".png", picture[:, :, ::-1])[1].tobytes()
    got = images.decode(SimpleNamespace(format="rgb8; png compressed", data=data))
    np.testing.assert_array_equal(got, picture)


@pytest.mark.parametrize("data", [b"", b"not a picture"])
def test_undecodable_data_is_refused_with_its_size(data):
    pytest.importorskip("cv2")
    with pytest.raises(images.ImageError, match=f"{len(data)} bytes"):
        images.decode(SimpleNamespace(format="jpeg", data=data))


@pytest.mark.parametrize("size", [(300, 400), (3, 70_000)])
def test_a_large_yuv_picture_is_the_same_as_its_rows_one_by_one(size):
    height, width = size
    data = np.random.default_rng(1).integers(0, 256, (height, width * 2), np.uint8)

    def read(rows):
        return images.to_rgb(SimpleNamespace(
            width=width, height=len(rows), step=width * 2, encoding="yuyv", is_bigendian=0,
            data=rows.tobytes()))

    whole = read(data)
    for row in (0, height // 2, height - 1):
        assert np.array_equal(whole[row], read(data[row:row + 1])[0])


def test_what_the_decoder_itself_refuses_is_an_image_error_too(monkeypatch):
    cv2 = pytest.importorskip("cv2")

    def refuse(*_):
        raise cv2.error("CV_IO_MAX_IMAGE_PIXELS")

    monkeypatch.setattr(cv2, "imdecode", refuse)
    with pytest.raises(images.ImageError, match="CV_IO_MAX_IMAGE_PIXELS"):
        images.decode(SimpleNamespace(format="png", data=b"something"))
