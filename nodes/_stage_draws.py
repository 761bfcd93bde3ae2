# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Noise and steps that somebody else asks the actions of single observations to be drawn with."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from omni_ros.msg import ActionDraw
from omni_ros.nodes._support import to_ns
from omni_ros.policy.steps import MOST_STEPS

ASKED, USED = "action_draw", "action_drawn"
#: Draws that are kept for observations that have not come yet.
KEPT = 8
DRAWS_QOS = QoSProfile(
    depth=KEPT, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE)


class Draws:
    """The draws of one action head. For its thread."""

    def __init__(self, node: Any) -> None:
        """:param node: a `StageNode`, which ends both at cleanup."""
        self._asked = node.polled(ActionDraw, ASKED, DRAWS_QOS)
        self._used = node.create_publisher(ActionDraw, USED, DRAWS_QOS)
        node.keep(lambda: node.destroy_publisher(self._used))
        self._waiting: OrderedDict[int, ActionDraw] = OrderedDict()

    def forget(self) -> None:
        for _ in self._asked.take(most=KEPT):
            pass
        self._waiting.clear()

    def of(self, stamp_ns: int) -> ActionDraw | None:
        """Return what the observation of a stamp is to be drawn with; None: nobody asks."""
        for message in self._asked.take(most=KEPT):
            self._waiting[to_ns(message.header.stamp)] = message
            while len(self._waiting) > KEPT:
                self._waiting.popitem(last=False)
        return self._waiting.pop(stamp_ns, None)

    def used(self, draw: ActionDraw) -> None:
        """Say that a chunk is drawn with what was asked for."""
        self._used.publish(draw)


def read_draw(draw: ActionDraw, out: np.ndarray) -> int:
    """Write a draw's noise to `out`, f32 [rows, padded action]; return its steps, 0 for the bundle's.

    :raises ValueError: it is not of that size, not finite, or asks for too many steps.
    """
    noise = np.asarray(draw.noise, np.float32)
    if noise.size != out.size or not np.isfinite(noise).all():
        raise ValueError(f"the noise has {noise.size} values, "
                         f"{np.count_nonzero(~np.isfinite(noise))} of them not finite; expected "
                         f"{out.size} finite ones, {list(out.shape)}")
    if draw.steps > MOST_STEPS:
        raise ValueError(f"{draw.steps} steps are asked for; expected at most {MOST_STEPS}")
    out[...] = noise.reshape(out.shape)
    return draw.steps
