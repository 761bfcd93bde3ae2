# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Camera images between ROS messages and numpy, without cv_bridge.

Works on anything with the fields of sensor_msgs/Image or CompressedImage, so it needs no ROS::

    rgb = to_rgb(msg)                      # uint8 (height, width, 3)
    fill(msg, rgb, encoding="rgb8")        # and back

Rows may be padded (``step``), and no pixel ever passes through a Python list. Where the message
already holds RGB, the result is a view of the message's own buffer: copy it to keep or change it.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from omni_ros.requirements import require

#: Channels of the encodings whose pixels are whole bytes side by side.
_BYTE_CHANNELS = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
#: Byte offsets of (first luma, U, second luma, V) within two pixels.
_YUV422 = {
    "yuv422": (1, 0, 3, 2),  # UYVY
    "uyvy": (1, 0, 3, 2),
    "yuv422_yuy2": (0, 1, 2, 3),  # YUYV
    "yuyv": (0, 1, 2, 3),
}
#: Pairs of pixels that YUV is converted for at a time.
_BLOCK = 1 << 15
ENCODINGS = (*_BYTE_CHANNELS, "mono16", *_YUV422)


class ImageError(ValueError):
    """An image that cannot be read; the message says what came and what was expected."""


def to_rgb(msg: Any) -> np.ndarray:
    """Return an image message as RGB, uint8 (height, width, 3).

    mono16 keeps the upper eight bits (65535 becomes 255), so brightness never depends on the
    picture; depth images should not be read with this. YUV is BT.601 with limited range (16 to
    235), which is what cameras send.

    :param msg: has width, height, encoding, step, is_bigendian and data (bytes-like).
    :raises ImageError: unknown encoding, empty or impossible size, or too little data.
    """
    width, height, step = int(msg.width), int(msg.height), int(msg.step)
    encoding = str(msg.encoding).strip().lower()
    pixel_bytes = _pixel_bytes(encoding)
    if width <= 0 or height <= 0:
        raise ImageError(f"image is {width}x{height} pixels; both sides must be at least 1")
    if encoding in _YUV422 and width % 2:
        raise ImageError(f"{encoding} image is {width} pixels wide; it must be an even number")
    row = width * pixel_bytes
    if step < row:
        raise ImageError(
            f"step is {step} bytes, a row of {width} {encoding} pixels needs {row}; "
            "set step to the bytes between the starts of two rows"
        )
    pixels = _rows(msg.data, height, step, row, f"{width}x{height} {encoding}")
    if encoding == "rgb8":
        return pixels.reshape(height, width, 3)
    if encoding in _YUV422:
        return _yuv422_to_rgb(pixels.reshape(height, width // 2, 4), _YUV422[encoding])
    if encoding == "mono16":
        # The more significant byte is the second one on little-endian cameras.
        grey = pixels.reshape(height, width, 2)[:, :, 0 if msg.is_bigendian else 1]
        return np.repeat(grey[:, :, None], 3, axis=2)
    pixels = pixels.reshape(height, width, pixel_bytes)
    if encoding == "mono8":
        return np.repeat(pixels, 3, axis=2)
    # A view: reversing or dropping channels only changes strides.
    return pixels[:, :, 2::-1] if encoding.startswith("bgr") else pixels[:, :, :3]


def fill(msg: Any, rgb: np.ndarray, *, encoding: str = "rgb8") -> None:
    """Write an RGB picture into an image message: size, encoding, step and data.

    :param rgb: uint8 (height, width, 3), any strides.
    :param encoding: rgb8, bgr8, rgba8, bgra8 (opaque) or mono8 (BT.601 luma).
    :raises ImageError: wrong shape or dtype, or an encoding that is not written.
    """
    rgb = np.asarray(rgb)
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
        raise ImageError(
            f"picture is {rgb.dtype} {rgb.shape}, expected uint8 (height, width, 3)"
        )
    if encoding not in _BYTE_CHANNELS:
        raise ImageError(
            f"cannot write encoding {encoding!r}; use one of {', '.join(_BYTE_CHANNELS)}"
        )
    if encoding == "mono8":
        # Integer arithmetic gives the same pixels under every numpy.
        weighted = rgb.astype(np.uint32) @ np.array([299, 587, 114], dtype=np.uint32)
        pixels = ((weighted + 500) // 1000).astype(np.uint8)[:, :, None]
    else:
        colour = rgb[:, :, ::-1] if encoding.startswith("bgr") else rgb
        pixels = colour
        if encoding.endswith("a8"):
            pixels = np.full((*rgb.shape[:2], 4), 255, dtype=np.uint8)
            pixels[:, :, :3] = colour
    msg.height, msg.width = int(rgb.shape[0]), int(rgb.shape[1])
    msg.encoding = encoding
    msg.is_bigendian = 0
    msg.step = int(rgb.shape[1]) * pixels.shape[2]
    msg.data = byte_array(pixels)


def byte_array(values: np.ndarray) -> array.array:
    """Return uint8 values of any shape as an array.array, the type of a uint8[] ROS field.

    rclpy takes an array.array as it is, but checks the elements of anything else one by one.
    """
    data = array.array("B")
    data.frombytes(np.ascontiguousarray(values, dtype=np.uint8).data.cast("B"))
    return data


def decode(msg: Any) -> np.ndarray:
    """Return a compressed image message (JPEG, PNG) as RGB, uint8 (height, width, 3).

    :param msg: has format and data (bytes-like). The data, not the format, decides the decoder.
    :raises ImageError: the data is not a picture that OpenCV reads.
    :raises omni_ros.requirements.MissingDependency: OpenCV is not installed.
    """
    cv2 = require("cv2", "to decode compressed camera images (or subscribe to image_raw)")
    data = _flat(msg.data)
    fault, picture = "", None
    try:
        picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except cv2.error as error:  # for example of more pixels than OpenCV takes
        fault = f" ({' '.join(str(error).split())[:200]})"
    if picture is None:
        raise ImageError(
            f"compressed image of format {str(msg.format)[:40]!r} with {data.size} bytes could not "
            f"be decoded{fault}; expected a whole JPEG or PNG file"
        )
    return picture[:, :, ::-1]


def _pixel_bytes(encoding: str) -> int:
    if encoding in _BYTE_CHANNELS:
        return _BYTE_CHANNELS[encoding]
    if encoding == "mono16" or encoding in _YUV422:
        return 2
    raise ImageError(
        f"unknown image encoding {encoding!r}; have the camera publish one of "
        f"{', '.join(ENCODINGS)}"
    )


def _flat(data: Any) -> np.ndarray:
    """Return bytes, array.array or a uint8 array as uint8 (n,), without copying."""
    if isinstance(data, np.ndarray):
        return data.reshape(-1).view(np.uint8)
    try:
        return np.frombuffer(data, dtype=np.uint8)
    except (TypeError, ValueError, BufferError):
        if len(data) == 0:
            return np.empty(0, dtype=np.uint8)
        raise ImageError(
            f"image data is a {type(data).__name__}, expected bytes, array.array('B') or uint8"
        ) from None


def _rows(data: Any, height: int, step: int, row: int, what: str) -> np.ndarray:
    """Return the pixels' bytes, uint8 (height, row), without the padding; a view."""
    flat = _flat(data)
    # The last row's padding may be missing: some drivers cut it off.
    needed = step * (height - 1) + row
    if flat.size < needed:
        raise ImageError(
            f"image data has {flat.size} bytes, a {what} image with step {step} needs {needed}"
        )
    return np.lib.stride_tricks.as_strided(
        flat, shape=(height, row), strides=(step, 1), writeable=flat.flags.writeable
    )


def _yuv422_to_rgb(pairs: np.ndarray, offsets: tuple[int, int, int, int]) -> np.ndarray:
    """Convert (height, width / 2, 4) bytes by BT.601, in integers so that all numpys agree.

    Some rows at a time, so that what is in between stays in the processor's cache: a third of the
    time that the whole picture at once takes.
    """
    first, u_at, second, v_at = offsets
    height, half = pairs.shape[:2]
    rgb = np.empty((height, half, 2, 3), np.uint8)
    step = max(1, _BLOCK // half)
    reserved = np.empty((6, min(step, height), half), np.int32)
    for row in range(0, height, step):
        part = pairs[row:row + step]
        lumas, (u, v, chroma, value) = np.split(reserved[:, :len(part)], [2])
        for luma, at in zip(lumas, (first, second)):
            np.multiply(part[:, :, at], 298, out=luma, dtype=np.int32)
            luma += 128 - 298 * 16
        np.subtract(part[:, :, u_at], 128, out=u, dtype=np.int32)
        np.subtract(part[:, :, v_at], 128, out=v, dtype=np.int32)
        for colour, (from_u, from_v) in enumerate(((0, 409), (-100, -208), (516, 0))):
            np.multiply(u, from_u, out=chroma)
            np.multiply(v, from_v, out=value)
            chroma += value
            for side, luma in enumerate(lumas):
                np.add(luma, chroma, out=value)
                value >>= 8
                np.clip(value, 0, 255, out=value)
                rgb[row:row + step, :, side, colour] = value
    return rgb.reshape(height, half * 2, 3)
