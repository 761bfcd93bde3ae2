# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A message becomes a picture whatever its encoding, and a covered camera shows."""

from __future__ import annotations

import array
from types import SimpleNamespace as Message

import numpy as np
import pytest

from omni_ros import images
from omni_ros.policy.images import check_image
from omni_ros.policy.pictures import grey_spread, is_covered, look_at, read_picture


def scene(height=48, width=64):
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8"])
def test_a_raw_image_is_read_as_rgb(encoding):
    message = Message()
    images.fill(message, scene(), encoding=encoding)
    assert (read_picture(message) == scene()).all()


def test_padded_rows_are_read_as_the_picture_without_them():
    width, height, step = 100, 50, 3 * 100 + 12
    picture = scene(height, width)
    data = np.full((height, step), 77, np.uint8)
    data[:, :3 * width] = picture.reshape(height, -1)
    message = Message(width=width, height=height, step=step, encoding="rgb8", is_bigendian=0,
                      data=array.array("B", data.tobytes()))
    assert (read_picture(message) == picture).all()


def test_a_compressed_image_is_read_as_rgb():
    cv2 = pytest.importorskip("cv2")
    data = cv2.imencode(".png", scene()[:, :, ::-1])[1].tobytes()
    message = Message(format="rgb8; png compressed", data=array.array("B", data))
    assert (read_picture(message) == scene()).all()


def test_an_unknown_encoding_is_refused_with_those_there_are():
    message = Message(width=2, height=2, step=4, encoding="16UC1", is_bigendian=0, data=bytes(8))
    with pytest.raises(images.ImageError, match="16uc1.*rgb8"):
        read_picture(message)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_picture_of_one_grey_is_a_covered_camera(level):
    assert is_covered(np.full((480, 640, 3), level, np.uint8), 2.0)


def test_the_noise_of_a_dark_sensor_is_still_a_covered_camera():
    noise = np.random.default_rng(0).integers(0, 4, (480, 640, 3)).astype(np.uint8)
    assert is_covered(noise, 2.0)


@pytest.mark.parametrize("size", [(96, 96), (480, 640), (720, 1280), (1, 1000)])
def test_a_picture_that_shows_something_is_none(size):
    assert not is_covered(scene(*size), 2.0)


def test_a_small_thing_on_an_even_table_is_something():
    table = np.full((480, 640, 3), 180, np.uint8)
    table[200:240, 300:340] = (200, 30, 30)
    assert not is_covered(table, 2.0)


def test_with_a_limit_of_0_any_picture_will_do():
    assert not is_covered(np.zeros((48, 64, 3), np.uint8), 0.0)


def test_the_spread_is_that_of_the_grey_values():
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, 32:] = 100
    assert grey_spread(halves) == pytest.approx(50, abs=0.1)


def raw(picture):
    message = Message()
    images.fill(message, picture)
    return message


def only_512(picture, *, camera):
    check_image(picture, out_height=512, out_width=512)


@pytest.mark.parametrize("size", [(1, 600), (600, 1)])
def test_a_picture_too_narrow_to_be_scaled_is_refused_with_its_camera(size):
    with pytest.raises(images.ImageError, match="camera wrist: .*too narrow"):
        look_at({"front": raw(scene()), "wrist": raw(scene(*size))}, blind_std=2.0, check=only_512)


@pytest.mark.parametrize("message", [
    Message(width=2, height=2, step=6, encoding="magic", is_bigendian=0, data=bytes(12)),
    Message(width=2**32 - 1, height=2**32 - 1, step=2**32 - 1, encoding="mono8", is_bigendian=0,
            data=b""),
    Message(width=4, height=4, step=0, encoding="rgb8", is_bigendian=0, data=bytes(48)),
])
def test_whatever_is_wrong_with_a_picture_is_said_with_its_camera(message):
    with pytest.raises(images.ImageError, match="cannot be read: camera front: "):
        look_at({"front": message}, blind_std=2.0, check=only_512)


def test_one_that_no_memory_can_hold_is_refused_too(monkeypatch):
    def no_memory(message):
        raise MemoryError

    monkeypatch.setattr(images, "to_rgb", no_memory)
    with pytest.raises(images.ImageError, match="no memory"):
        look_at({"front": raw(scene())}, blind_std=2.0)


def test_covered_cameras_are_named():
    lid = raw(np.zeros((48, 64, 3), np.uint8))
    with pytest.raises(images.ImageError, match="camera front, wrist shows nothing"):
        look_at({"front": lid, "wrist": lid}, blind_std=2.0)


def test_what_is_good_is_returned_by_camera():
    got = look_at({"front": raw(scene()), "wrist": raw(scene(20, 30))}, blind_std=2.0,
                  check=only_512)
    assert (got["front"] == scene()).all() and (got["wrist"] == scene(20, 30)).all()
