# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Says, to whoever records, what a stage worked on for one observation and what came of it.

Nothing is copied or computed while nobody listens, and nothing before the result was handed on, but
the copy of what the next picture or step would overwrite.
"""

from __future__ import annotations

from array import array
from typing import Callable

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from omni_ros.msg import Fingerprint, StageHandoff, StageRecord
from omni_ros.replay.fingerprints import STEP, fill_fingerprint, fingerprint

TOPIC = "policy_record"
#: Records of some observations, of three stages.
RECORDS_QOS = QoSProfile(
    depth=48, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE)


class StageRecorder:
    """The records of one stage. For its thread."""

    def __init__(self, node: Node, stage: str) -> None:
        self._stage = stage
        self._publisher = node.create_publisher(StageRecord, TOPIC, RECORDS_QOS)
        self._node = node

    def open(self) -> "Record | None":
        """Begin the record of an observation; None if nobody listens."""
        return Record(self._stage) if self._publisher.get_subscription_count() else None

    def publish(self, record: "Record", came: StageHandoff) -> None:
        """Fill in which observation it is about, and publish it."""
        message = record.message
        for name in ("header", "observation_seq", "pipeline", "bundle", "instruction",
                     "instruction_seq"):
            setattr(message, name, getattr(came, name))
        message.fingerprints = [
            fill_fingerprint(Fingerprint(), fingerprint(name, *arrays))
            for name, arrays in record.tensors]
        self._publisher.publish(message)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)


class Record:
    """What is gathered for one observation. `message`: fields beside identity and fingerprints."""

    def __init__(self, stage: str) -> None:
        self.message = StageRecord(stage=stage)
        self.tensors: list[tuple[str, tuple[np.ndarray, ...]]] = []

    def tensor(self, name: str, *arrays: np.ndarray) -> None:
        """Name tensors that stay as they are until the record is published."""
        self.tensors.append((name, arrays))

    def copy(self, name: str, array: np.ndarray) -> None:
        """The same for one that will not."""
        self.tensors.append((name, (array.copy(),)))


class StepWatch:
    """Stands where a flow's guide stands, and notes x before each step; else changes nothing."""

    def __init__(self, record: Record, guide: Callable | None) -> None:
        self._record, self._guide, self._step = record, guide, 0

    def __call__(self, x: np.ndarray, velocity: np.ndarray, t: float) -> np.ndarray:
        self._record.copy(f"{STEP}{self._step}", x)
        self._step += 1
        return velocity if self._guide is None else self._guide(x, velocity, t)

    def end(self, x: np.ndarray) -> None:
        """Note the actions after the last step."""
        self._record.copy(f"{STEP}{self._step}", x)


def flat(values: np.ndarray | None, code: str = "f") -> array:
    """Values of a tensor as a message takes them; none of None.

    :param code: of their type, as `array.array` names it.
    """
    return array(code, b"" if values is None else np.ascontiguousarray(values, code).tobytes())
