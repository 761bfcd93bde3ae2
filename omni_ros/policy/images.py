# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Camera pictures as a vision encoder wants them: aspect kept, padded, in [-1, 1].

The arithmetic is that of the training code, which resizes with PyTorch's
``interpolate(mode="bilinear", align_corners=False)`` on float32: no antialiasing, source
coordinates ``(i + 0.5) * in / out - 0.5`` in float32, clamped at the borders. SmolVLA puts the
padding left and top; PI0 and PI05 put it on all sides, the odd row or column right and bottom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Output rows that one pass works on: its float scratch stays in the second-level cache.
BLOCK_ROWS = 32


@dataclass(frozen=True)
class ImageRule:
    """How a model family pads and scales.

    :param placement: "end" keeps the picture at the right and bottom (padding left and top);
        "centre" puts it in the middle, an odd remainder going right and bottom.
    :param low, high: what the bytes 0 and 255 become.
    :param pad_value: value of the padding, on the scale of the result (not of the bytes).
    :param clamp: cut what interpolation leaves outside [low, high] by rounding.
    """

    placement: str = "end"
    low: float = -1.0
    high: float = 1.0
    pad_value: float = -1.0
    clamp: bool = False

    def __post_init__(self) -> None:
        if self.placement not in ("end", "centre"):
            raise ValueError(
                f"image placement is {self.placement!r}; expected 'end' (padding left and top) or "
                "'centre'"
            )
        if not self.low < self.high:
            raise ValueError(f"image scale is [{self.low}, {self.high}]; low must be below high")


#: SmolVLA: padding left and top, zeros before the scaling to [-1, 1].
SMOLVLA = ImageRule()
#: PI0 and PI05 as LeRobot 0.6 and openpi have it.
PI0 = ImageRule(placement="centre", clamp=True)
#: PI0 and PI05 as LeRobot 0.4 had it: -1 padded before ``x * 2 - 1``, hence -3.
PI0_LEROBOT_04 = ImageRule(placement="centre", clamp=True, pad_value=-3.0)


def fitted_size(height: int, width: int, *, out_height: int, out_width: int) -> tuple[int, int]:
    """Return the (height, width) of a picture scaled into a frame with its aspect kept.

    The truncation of a float64 quotient is the reference's, rounding errors included.
    :raises ValueError: a side is not positive, or would vanish.
    """
    if min(height, width, out_height, out_width) < 1:
        raise ValueError(
            f"image of {width}x{height} into a frame of {out_width}x{out_height} (width x height): "
            "every side must be at least 1 pixel"
        )
    ratio = max(width / out_width, height / out_height)
    fitted = int(height / ratio), int(width / ratio)
    if min(fitted) < 1:
        raise ValueError(
            f"an image of {width}x{height} (width x height) is too narrow: scaled into "
            f"{out_width}x{out_height} it would be {fitted[1]}x{fitted[0]}; crop it first"
        )
    return fitted


def bilinear_taps(size: int, out_size: int) -> tuple[np.ndarray, ...]:
    """Return which two source pixels make each output pixel, and their weights, along one axis.

    :return: first and second index, intp [out_size], and the weight of each, f32 [out_size].
    """
    # The reference computes coordinates in float32 with a fused multiply-add: one rounding, at the
    # end. At 1000 pixels that rounding is worth 6e-5, so it has to be the same one.
    scale = np.float64(np.float32(size) / np.float32(out_size))
    exact = scale * (np.arange(out_size) + 0.5) - 0.5
    source = np.maximum(exact.astype(np.float32), np.float32(0.0))
    first = np.minimum(source.astype(np.intp), size - 1)
    second = np.minimum(first + 1, size - 1)
    weight = np.clip(source - first.astype(np.float32), np.float32(0.0), np.float32(1.0))
    return first, second, np.float32(1.0) - weight, weight


class Resizer:
    """Resize-with-pad for one input size: all indices, weights and scratch are made here, once."""

    def __init__(self, height: int, width: int, *, out_height: int, out_width: int,
                 rule: ImageRule = SMOLVLA) -> None:
        self.height, self.width = height, width
        self.out_height, self.out_width = out_height, out_width
        self.rule = rule
        rows, columns = fitted_size(height, width, out_height=out_height, out_width=out_width)
        share = 1 if rule.placement == "end" else 2
        self.top, self.left = (out_height - rows) // share, (out_width - columns) // share
        self.rows, self.columns = rows, columns

        first, second, keep, move = bilinear_taps(width, columns)
        # One gather both picks the columns and takes the colours apart: position [colour, column]
        # of a row comes from byte 3 * source column + colour.
        colours = np.arange(3, dtype=np.intp)[:, None]
        self._left_byte = (3 * first + colours).ravel()
        self._right_byte = (3 * second + colours).ravel()
        scale = np.float32((rule.high - rule.low) / 255.0)
        self._left_weight = np.tile(keep * scale, 3)
        self._right_weight = np.tile(move * scale, 3)

        self._up, self._down, up_weight, down_weight = bilinear_taps(height, rows)
        self._up_weight, self._down_weight = up_weight[:, None], down_weight[:, None]

        wide, block = 3 * columns, min(BLOCK_ROWS, rows)
        self._copy = np.empty((height, 3 * width), np.uint8)
        self._bytes = np.empty((min(BLOCK_ROWS, height), wide), np.uint8)
        self._part = np.empty((min(BLOCK_ROWS, height), wide), np.float32)
        self._lines = np.empty((height, wide), np.float32)
        self._upper = np.empty((block, wide), np.float32)
        self._lower = np.empty((block, wide), np.float32)

    def __call__(self, image: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the scaled and padded picture to `out` and return it.

        :param image: uint8 [height, width, 3], RGB; any strides.
        :param out: f32 [3, out_height, out_width].
        :raises ValueError: wrong shape or dtype of either.
        """
        _check_image(image, (self.height, self.width, 3))
        _check_out(out, (3, self.out_height, self.out_width))
        self._columns_pass(image)
        top, left = self.top, self.left
        bottom, right = top + self.rows, left + self.columns
        pad = self.rule.pad_value
        out[:, :top] = pad
        out[:, bottom:] = pad
        out[:, top:bottom, :left] = pad
        out[:, top:bottom, right:] = pad
        self._rows_pass(out[:, top:bottom, left:right])
        return out

    def _columns_pass(self, image: np.ndarray) -> None:
        source = image.reshape(self.height, -1) if image.flags.c_contiguous else None
        if source is None:  # a gather from a strided picture would allocate a copy of it
            source = self._copy
            np.copyto(source.reshape(image.shape), image)
        step = len(self._bytes)
        for start in range(0, self.height, step):
            lines = self._lines[start:start + step]
            size = len(lines)
            block, part = self._bytes[:size], self._part[:size]
            # mode="clip" writes straight to `out`; the default one goes through a copy.
            np.take(source[start:start + size], self._left_byte, axis=1, out=block, mode="clip")
            np.copyto(lines, block)  # a multiply of mixed types would allocate its own buffers
            lines *= self._left_weight
            np.take(source[start:start + size], self._right_byte, axis=1, out=block, mode="clip")
            np.copyto(part, block)
            part *= self._right_weight
            lines += part

    def _rows_pass(self, frame: np.ndarray) -> None:
        low, high = np.float32(self.rule.low), np.float32(self.rule.high)
        by_row = frame.transpose(1, 0, 2)  # [row, colour, column], as the scratch lies
        step = len(self._upper)
        for start in range(0, self.rows, step):
            stop = min(start + step, self.rows)
            upper, lower = self._upper[:stop - start], self._lower[:stop - start]
            np.take(self._lines, self._up[start:stop], axis=0, out=upper, mode="clip")
            np.take(self._lines, self._down[start:stop], axis=0, out=lower, mode="clip")
            upper *= self._up_weight[start:stop]
            lower *= self._down_weight[start:stop]
            upper += lower
            upper += low
            if self.rule.clamp:
                np.clip(upper, low, high, out=upper)
            by_row[start:stop] = upper.reshape(stop - start, 3, self.columns)


class ImageTransform:
    """One camera's pictures to one encoder input, whatever size the camera sends.

    The tables for a size are made when its first picture comes (or at once, with `size`) and kept
    until another size arrives; after that a call allocates nothing of note.
    """

    def __init__(self, *, out_height: int, out_width: int, rule: ImageRule = SMOLVLA,
                 size: tuple[int, int] | None = None) -> None:
        """:param size: (height, width) of the pictures, if known beforehand."""
        self.out_height, self.out_width, self.rule = out_height, out_width, rule
        self._out: np.ndarray | None = None  # most callers bring their own
        self._resizer: Resizer | None = None
        if size is not None:
            self._resizer = self._make(*size)

    def __call__(self, image: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """Return f32 [3, out_height, out_width] in [low, high].

        :param image: uint8 [height, width, 3], RGB.
        :param out: where to write; without it a buffer that the next call overwrites.
        :raises ValueError: wrong shape or dtype.
        """
        _check_image(image, None)
        resizer = self._resizer
        if resizer is None or image.shape[:2] != (resizer.height, resizer.width):
            resizer = self._resizer = self._make(image.shape[0], image.shape[1])
        return resizer(image, self._own() if out is None else out)

    def blank(self, *, out: np.ndarray | None = None) -> np.ndarray:
        """Return what stands for an absent camera: every pixel at the low end (its mask is off)."""
        out = self._own() if out is None else out
        _check_out(out, (3, self.out_height, self.out_width))
        out.fill(self.rule.low)
        return out

    def _own(self) -> np.ndarray:
        if self._out is None:
            self._out = np.empty((3, self.out_height, self.out_width), np.float32)
        return self._out

    def _make(self, height: int, width: int) -> Resizer:
        return Resizer(height, width, out_height=self.out_height, out_width=self.out_width,
                       rule=self.rule)


def check_image(image: np.ndarray, *, out_height: int, out_width: int) -> None:
    """Look whether a picture can be taken: uint8 [height, width, 3], and not too narrow.

    :raises ValueError: it cannot.
    """
    if not isinstance(image, np.ndarray):
        raise ValueError(
            f"image is {type(image).__name__}; expected a numpy array, uint8 [height, width, 3]"
        )
    _check_image(image, None)
    fitted_size(image.shape[0], image.shape[1], out_height=out_height, out_width=out_width)


def _check_image(image: np.ndarray, shape: tuple[int, int, int] | None) -> None:
    good = (image.shape == shape) if shape else (image.ndim == 3 and image.shape[2] == 3)
    if image.dtype != np.uint8 or not good:
        expected = list(shape) if shape else "[height, width, 3]"
        raise ValueError(
            f"image is {image.dtype} {list(image.shape)}; expected uint8 {expected}, RGB: convert "
            "it, or configure the camera with the size it sends"
        )


def _check_out(out: np.ndarray, shape: tuple[int, int, int]) -> None:
    if out.dtype != np.float32 or out.shape != shape:
        raise ValueError(
            f"image output is {out.dtype} {list(out.shape)}; expected float32 {list(shape)}"
        )
