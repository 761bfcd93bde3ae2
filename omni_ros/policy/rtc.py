# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Real-time chunking as arithmetic between network calls: a new chunk that continues the old one.

While a chunk is computed the arm plays on. The rows it will have played by then (the delay) are
held to the old plan, the rows after them are drawn towards it with falling weight.

Formulas: Black et al., Real-Time Execution of Action Chunking Flow Policies (2025), in the form
LeRobot runs (t = 1 - tau counts down): ``x1 = x - t v``, ``error = (previous - x1) W``,
``v' = v - g error``. LeRobot's vector-Jacobian product goes through ``x - t v`` with v held
constant, so it is the identity and no gradient of the network is needed.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import numpy as np

SCHEDULES = ("LINEAR", "EXP", "ONES", "ZEROS")
WINDOWS = ("horizon", "paper")
PADDINGS = ("last", "zero")


@dataclass(frozen=True)
class RtcConfig:
    """How strongly a new chunk follows the old one. Defaults are LeRobot's but for the padding.

    :param schedule: weight of the rows after the delay: LINEAR or EXP falling, ONES, or ZEROS.
    :param execution_horizon: rows that are played from a chunk before the next one takes over.
    :param window: where the weights end: "horizon" at `execution_horizon` (LeRobot), "paper" at
        chunk - `execution_horizon`, the last row for which the old plan exists at all.
    :param padding: how an old plan that ends inside the window goes on: "last" repeats its last
        row, as the arm that has run out of rows holds it; "zero" ends the window with the plan
        and fills with zeros (LeRobot's processor; zero decodes to the mean of the data).
    """

    schedule: str = "LINEAR"
    execution_horizon: int = 10
    max_guidance_weight: float = 10.0
    window: str = "horizon"
    padding: str = "last"

    def __post_init__(self) -> None:
        for name, value, known in (("schedule", self.schedule, SCHEDULES),
                                   ("window", self.window, WINDOWS),
                                   ("padding", self.padding, PADDINGS)):
            if value not in known:
                raise ValueError(f"rtc {name} is {value!r}; expected one of {', '.join(known)}")
        if self.execution_horizon < 1:
            raise ValueError(
                f"rtc execution_horizon is {self.execution_horizon}; expected at least 1 row"
            )
        if not 0.0 < self.max_guidance_weight < math.inf:
            raise ValueError(
                f"rtc max_guidance_weight is {self.max_guidance_weight}; expected above 0, finite"
            )


def prefix_weights(*, schedule: str, start: int, end: int, total: int) -> np.ndarray:
    """Return W, f32 [total]: 1 before `start`, the schedule from there to `end`, then 0.

    `start` beyond `end` counts as `end`; `end` beyond `total` stretches nothing, as in LeRobot.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"rtc schedule is {schedule!r}; expected one of {', '.join(SCHEDULES)}")
    start, end = max(0, min(start, end)), max(0, end)
    weights = np.zeros(total, np.float32)
    if schedule == "ONES":
        weights[:end] = 1.0
        return weights
    weights[:start] = 1.0
    rows = min(end, total) - start
    if schedule == "ZEROS" or rows <= 0:
        return weights
    # linspace(1, 0, rows + 2) without its ends, as PyTorch has it: the step in float32, each half
    # counted from its own end, one rounding.
    step = np.float64(np.float32(-1.0) / np.float32(rows + 1))
    index = np.arange(1, rows + 1)
    ramp = np.where(index < (rows + 2) // 2, 1.0 + step * index, -step * (rows + 1 - index))
    ramp = ramp.astype(np.float32)
    if schedule == "EXP":
        ramp = ramp * (np.expm1(ramp) / np.float32(math.e - 1.0))
    weights[start:start + rows] = ramp
    return weights


def guidance_weight(t: float, *, maximum: float) -> float:
    """Return g at flow time `t` (1 is noise, 0 is data), in float32 as the reference computes it.

    ``(1 - tau) / tau * (tau^2 + (1 - tau)^2) / (1 - tau)^2`` with tau = 1 - t, at most `maximum`;
    infinite at t = 1, hence `maximum`; undefined at t = 0, where no step starts: 0.
    """
    tau = np.float32(1.0 - t)
    rest = np.float32(1.0) - tau
    if tau <= 0.0:
        return float(maximum)
    if rest <= 0.0:
        return 0.0
    weight = (rest / tau) * ((rest * rest + tau * tau) / (rest * rest))
    return float(min(weight, np.float32(maximum)))


class RtcGuide:
    """Guides the velocities of one chunk; a `guide` for :class:`omni_ros.policy.flow.FlowSampler`.

    Call :meth:`begin` before each chunk.
    """

    def __init__(self, config: RtcConfig, *, chunk: int, width: int) -> None:
        """:param chunk: rows of a chunk. :param width: the padded action width."""
        if config.window == "paper" and config.execution_horizon >= chunk:
            raise ValueError(
                f"rtc execution_horizon is {config.execution_horizon} of a chunk of {chunk} rows; "
                "the paper's window needs fewer: nothing of the old plan would be left"
            )
        self.config = config
        self.active = False
        #: Rows that will have been played before the new chunk arrives, yet lie past the window:
        #: the new chunk need not agree with what the arm did there. Above 0 deserves a warning.
        self.uncovered = 0
        self.weights = np.zeros(chunk, np.float32)
        self._previous = np.zeros((chunk, width), np.float32)
        self._error = np.empty((chunk, width), np.float32)
        self._guided = np.empty((chunk, width), np.float32)

    def begin(self, leftover: np.ndarray | None, *, delay: int) -> None:
        """Take the rest of the old plan; None or no rows (a first chunk) switches guiding off.

        :param leftover: f32 [rows, action width], normalised actions not yet played at the
            observation's stamp, row 0 first; [rows, up to the padded width].
        :param delay: rows that will be played while the new chunk is computed.
        :raises TypeError: `delay` is not an integer. :raises ValueError: negative, too wide, or
            not finite.
        """
        delay = _whole(delay)
        self.active = leftover is not None and len(leftover) > 0
        self.uncovered = 0
        self.weights.fill(0.0)
        if not self.active:
            return
        chunk, width = self._previous.shape
        if leftover.ndim != 2 or leftover.shape[1] > width:
            raise ValueError(
                f"rtc leftover is {list(leftover.shape)}; expected [rows, at most {width}]"
            )
        if not np.isfinite(leftover).all():
            raise ValueError("rtc leftover holds values that are not finite; drop that plan")
        rows = min(len(leftover), chunk)
        # Columns past the action width stay zero: so they were in training.
        self._previous.fill(0.0)
        self._previous[:rows, :leftover.shape[1]] = leftover[:rows]
        end = min(self.config.execution_horizon, chunk)
        if self.config.window == "paper":
            end = chunk - self.config.execution_horizon
        if self.config.padding == "last":
            self._previous[rows:, :leftover.shape[1]] = leftover[rows - 1]
        else:
            end = min(end, len(leftover))
        self.uncovered = max(0, delay - end)
        self.weights[:] = prefix_weights(
            schedule=self.config.schedule, start=delay, end=end, total=chunk
        )

    def __call__(self, x: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        """Return the guided velocity f32 [chunk, width], in this object's buffer.

        :param x: f32 [chunk, width]. :param v: the network's velocity at x; left as it is.
        :param t: flow time, 1 (noise) to 0.
        """
        if not self.active:
            return v
        error, guided = self._error, self._guided
        np.multiply(v, np.float32(t), out=error)
        np.subtract(x, error, out=error)
        np.subtract(self._previous, error, out=error)
        np.multiply(error, self.weights[:, None], out=error)
        weight = guidance_weight(t, maximum=self.config.max_guidance_weight)
        np.multiply(error, np.float32(weight), out=error)
        np.subtract(v, error, out=guided)
        return guided


def _whole(delay: int) -> int:
    try:
        delay = operator.index(delay)
    except TypeError:
        raise TypeError(
            f"rtc delay is {delay!r}; expected an integer number of rows, 0 where none is known"
        ) from None
    if delay < 0:
        raise ValueError(f"rtc delay is {delay}; expected 0 or more rows")
    return delay
