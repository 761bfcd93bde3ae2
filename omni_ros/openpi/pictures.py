# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures resized before they are sent, as openpi's clients do it: aspect kept, zeros around.

Servers resize too, without antialiasing, which gives other pixels; a picture that has the right
size already is left alone by all of them. The filter is PIL's bilinear one, which openpi-client
uses: a triangle as wide as the shrinking. PIL rounds to bytes between its two passes, so a few
pixels differ by one.
"""

from __future__ import annotations

import functools

import numpy as np


def resize_with_pad(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a picture uint8 [height, width, 3] of one of any size; itself if it has that size.

    :raises ValueError: not uint8 [h, w, 3], or so narrow that nothing of it would be left.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise ValueError(
            f"picture is {image.dtype} {list(image.shape)}; expected uint8 [height, width, 3], RGB"
        )
    rows, columns = image.shape[:2]
    if (rows, columns) == (height, width):
        return image
    ratio = max(columns / width, rows / height)
    inner = int(rows / ratio), int(columns / ratio)
    if min(inner) < 1:
        raise ValueError(
            f"a picture of {columns}x{rows} (width x height) is too narrow for {width}x{height}; "
            "crop it first"
        )
    # Upright first: whole rows are taken, which lie together. No product of matrices, as BLAS would
    # start threads beside those that have deadlines.
    upright = _squeeze(image.reshape(rows, columns * 3), inner[0])
    lying = upright.reshape(inner[0], columns, 3).transpose(1, 0, 2).reshape(columns, -1)
    small = _squeeze(lying, inner[1]).reshape(inner[1], inner[0], 3).transpose(1, 0, 2)
    small = np.clip(small + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    if inner == (height, width):
        return small
    out = np.zeros((height, width, 3), np.uint8)
    top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
    out[top:top + inner[0], left:left + inner[1]] = small
    return out


def _squeeze(rows: np.ndarray, out: int) -> np.ndarray:
    """Return f32 [out, m] of [n, m]."""
    if len(rows) == out:
        return rows.astype(np.float32)
    first, weights = _taps(len(rows), out)
    result = np.zeros((out, rows.shape[1]), np.float32)
    for tap in range(weights.shape[1]):
        result += rows[np.minimum(first + tap, len(rows) - 1)] * weights[:, tap, None]
    return result


@functools.lru_cache(maxsize=32)
def _taps(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first source pixel of each pixel of an axis, and weights f32 [out, taps]."""
    scale = size / out
    support = max(scale, 1.0)
    centre = (np.arange(out) + 0.5) * scale
    first = np.maximum((centre - support + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + support + 0.5).astype(np.int64), size)
    taps = np.arange(int((last - first).max()))
    distance = np.abs(first[:, None] + taps + 0.5 - centre[:, None]) / support
    weights = np.where(taps < (last - first)[:, None], np.maximum(0.0, 1.0 - distance), 0.0)
    return first, (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
