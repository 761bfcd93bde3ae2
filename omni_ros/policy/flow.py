# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Flow matching on the host: from noise at t = 1 to actions at t = 0, one network call a step.

Formulas: LeRobot's and openpi's samplers, ``t = 1 + k * dt`` with ``dt = -1 / steps`` and
``x <- x + dt * v``; the time embedding is openpi's ``create_sinusoidal_pos_embedding``.
"""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

#: (x f32 [chunk, width], step, t) -> v f32 [chunk, width]; it may hand out its own buffer.
Velocity = Callable[[np.ndarray, int, float], np.ndarray]
#: (x, v, t) -> v' of the same shape; may change v in place.
Guide = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


class Stopped(Exception):
    """The actions were not wanted any more, and are not finished."""


def step_times(steps: int) -> np.ndarray:
    """Return the times of the steps, f32 [steps]: 1, 1 - 1/steps, ... 1/steps.

    Counted, not summed: summing dt loses or gains a step by rounding at some step counts.
    :raises ValueError: `steps` is below 1.
    """
    if steps < 1:
        raise ValueError(f"flow steps is {steps}; expected at least 1")
    dt = -1.0 / steps
    return np.array([1.0 + step * dt for step in range(steps)], dtype=np.float64).astype(np.float32)


def time_embedding(times: np.ndarray, *, width: int, min_period: float, max_period: float
                   ) -> np.ndarray:
    """Return the sine-cosine embedding of flow times, f32 [len(times), width]: sines, then cosines.

    ``period_i = min * (max / min) ** linspace(0, 1, width / 2)``, ``angle = 2 pi t / period``;
    in float64, rounded to float32 at the end. Mind the 2 pi: with it left out the network still
    runs, on times it never saw.

    :param times: [n], as :func:`step_times` gives them.
    :raises ValueError: an odd width, or periods that are not 0 < min < max.
    """
    if width < 2 or width % 2:
        raise ValueError(f"time embedding width is {width}; expected an even number of 2 or more")
    if not 0.0 < min_period < max_period:
        raise ValueError(
            f"time embedding periods are {min_period} and {max_period}; expected 0 < min < max"
        )
    share = np.linspace(0.0, 1.0, width // 2, dtype=np.float64)
    period = min_period * (max_period / min_period) ** share
    angle = (1.0 / period * 2 * math.pi)[None, :] * np.asarray(times, np.float64)[:, None]
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)


class FlowSampler:
    """The Euler loop, on buffers reserved once."""

    def __init__(self, *, steps: int, chunk: int, width: int) -> None:
        """:param chunk: rows. :param width: the padded action width."""
        self.times = step_times(steps)
        self.dt = -1.0 / steps
        self._x = np.empty((chunk, width), np.float32)
        self._change = np.empty((chunk, width), np.float32)

    @property
    def steps(self) -> int:
        """Network calls per chunk."""
        return len(self.times)

    def __call__(self, noise: np.ndarray, velocity: Velocity, *, guide: Guide | None = None,
                 stop: Callable[[], bool] | None = None) -> np.ndarray:
        """Integrate from `noise` and return the actions, f32 [chunk, width].

        The result is this object's buffer: the next call overwrites it. `noise` is left as it is.

        :param noise: f32 [chunk, width].
        :param velocity: the network; called once a step with the current x, which it must not keep.
        :param guide: changes a velocity before it is used (real-time chunking).
        :param stop: asked before each step whether to give up.
        :raises ValueError: a shape differs. :raises Stopped: `stop` said so.
        """
        x, change = self._x, self._change
        _check_shape("noise", noise, x.shape)
        np.copyto(x, noise)
        scale = np.float32(self.dt)
        for step in range(len(self.times)):
            if stop is not None and stop():
                raise Stopped(f"stopped before step {step + 1} of {len(self.times)}")
            t = float(self.times[step])
            v = velocity(x, step, t)
            _check_shape("velocity", v, x.shape)
            if guide is not None:
                v = guide(x, v, t)
                _check_shape("the guide's velocity", v, x.shape)
            np.multiply(v, scale, out=change)
            np.add(x, change, out=x)
        return x


def _check_shape(name: str, value: np.ndarray, shape: tuple[int, ...]) -> None:
    if getattr(value, "shape", None) != shape:
        given = list(value.shape) if hasattr(value, "shape") else type(value).__name__
        raise ValueError(f"{name} is {given}; expected {list(shape)} (chunk, width)")
