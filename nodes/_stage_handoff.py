# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Handing tensors from one stage to the next: over a topic, or by reference in one process."""

from __future__ import annotations

import threading
import time
from typing import Mapping, Sequence

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Header

from omni_ros.msg import StageHandoff, TensorHandle
from omni_ros.nodes._stage_wait import TimedSubscription, Waiter
from omni_ros.nodes._support import COMMAND_QOS, time_message, wait_until_heard
from omni_ros.stages.transport import Reach
from omni_ros.tensors import RingCache, TensorRing, TensorWriter, open_tensors


class LocalLink:
    """Joins two stages of one process: the newest hand-off, by reference."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: StageHandoff | None = None
        self._replaced = 0
        self.reader: Waiter | None = None

    def put(self, message: StageHandoff) -> None:
        with self._lock:
            self._replaced += self._newest is not None
            self._newest = message
            reader = self.reader
        if reader is not None:
            reader.wake()

    def take(self) -> tuple[StageHandoff | None, int]:
        with self._lock:
            newest, replaced = self._newest, self._replaced
            self._newest, self._replaced = None, 0
        return newest, replaced


class HandoffWriter:
    """The slots a stage computes into, and the way they are handed on."""

    def __init__(self, node: Node, topic: str, what: str, specs: Sequence, *, slots: int,
                 inline: bool, link: LocalLink | None) -> None:
        """
        :param specs: of the tensors: name, dtype, shape.
        :param inline: never by shared memory. :raises RingError: there is no room for the ring.
        """
        size = TensorWriter.bytes_needed(specs)
        if inline or link is not None:
            self._ring = TensorRing.private(slots=slots, slot_bytes=size)
        else:
            self._ring = TensorRing.create(what, slots=slots, slot_bytes=size)
        self._node, self._link = node, link
        self._writer = TensorWriter(self._ring, specs)
        self._make = self._handle  # handles are kept by who makes them
        self._publisher = None
        self._message = StageHandoff()  # written anew each time: publishing copies it
        self._header = Header()  # one for all handles
        if link is None:
            self._publisher = node.create_publisher(StageHandoff, topic, COMMAND_QOS)

    @property
    def ring_bytes(self) -> int:
        return self._ring.slots * self._ring.slot_bytes

    @property
    def has_reader(self) -> bool:
        """Whether anybody would get what is handed over now."""
        return self._link is not None or self._publisher.get_subscription_count() > 0

    def begin(self) -> Mapping[str, np.ndarray]:
        """Return the tensors of the next slot, to compute into."""
        return self._writer.begin()

    def message(self) -> StageHandoff:
        """Return the message to be filled and handed over."""
        return self._message if self._link is None else StageHandoff()

    def hand_over(self, message: StageHandoff, names: Sequence[str], *, inline: bool,
                  done_ns: int) -> None:
        """Publish what was computed since :meth:`begin`.

        :param names: of the tensors that were written. :param done_ns: wall clock, when they were.
        """
        self._writer.commit()
        if self._link is not None:
            self._header = Header()  # the reader keeps what it was given
        self._header.stamp = message.header.stamp
        handles = self._writer.handles(self._make, names, inline=inline)
        for handle in handles:
            handle.observation_seq = message.observation_seq
        message.tensors = handles
        message.handed_over = time_message(done_ns)
        if self._link is None:
            self._publisher.publish(message)
        else:
            self._link.put(message)

    def _handle(self) -> TensorHandle:
        return TensorHandle(header=self._header)

    def close(self) -> None:
        if self._publisher is not None:
            wait_until_heard(self._publisher)
            self._node.destroy_publisher(self._publisher)
        self._ring.close()


class HandoffReader:
    """The newest hand-off of the stage before."""

    def __init__(self, node: Node, topic: str, waiter: Waiter, link: LocalLink | None) -> None:
        self._rings = RingCache()
        self._link, self._reach, self._source = link, Reach(), ""
        self.subscriptions: tuple[TimedSubscription, ...] = ()
        if link is None:
            self.subscriptions = (TimedSubscription(node, StageHandoff, topic, COMMAND_QOS),)
        else:
            link.reader = waiter

    @property
    def wants_inline(self) -> bool:
        """Whether the rings of the stage before cannot be reached from here, as far as is known."""
        return self._reach.wants_inline(time.monotonic_ns())

    def take(self) -> tuple[StageHandoff | None, int]:
        """Return the newest message, and how many older ones it replaced."""
        if self._link is not None:
            return self._link.take()
        messages = [message for message, _, _ in self.subscriptions[0].take_timed()]
        return (messages[-1] if messages else None), max(0, len(messages) - 1)

    def open(self, message: StageHandoff):
        """Return the tensors of a message, see `tensors.open_tensors`.

        :raises TensorError: they cannot be had, for one of its reasons.
        """
        return open_tensors(message.tensors, self._rings)

    def is_new_source(self, message: StageHandoff) -> bool:
        """Whether tensors lie in another ring than the last ones did: the stage before began anew."""
        source = message.tensors[0].ring if message.tensors else ""
        new, self._source = source != self._source, source
        return new

    def note_reached(self, reached: bool, message: StageHandoff) -> None:
        """Note whether a ring could be reached."""
        if not reached or any(tensor.transport == TensorHandle.TRANSPORT_SHARED_MEMORY
                              for tensor in message.tensors):
            self._reach.note(reached, time.monotonic_ns())

    def close(self) -> None:
        for subscription in self.subscriptions:
            subscription.destroy()
        if self._link is not None:
            self._link.reader = None
            self._link.take()
        self._rings.close()
