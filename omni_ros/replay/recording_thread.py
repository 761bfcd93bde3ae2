# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The disk has its own thread: whoever takes messages from the middleware never waits for it.

What waits in between is bounded in bytes. What does not fit is lost, and counted.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from omni_ros.replay.recording import BagWriter
from omni_ros.replay.recording_topics import Topic

#: Bytes that may wait for the disk.
QUEUE_BYTES = 128_000_000
#: Longest sleep between two looks, seconds.
NAP_S = 0.05


class WritingThread:
    """Feeds a bag from a queue."""

    def __init__(self, make: Callable[[], BagWriter], *, queue_bytes: int = QUEUE_BYTES) -> None:
        """
        :param make: makes the bag, at once and in the caller's thread.
        :raises ValueError, OSError: what `make` raises.
        """
        self.bag = make()
        self._queue_bytes = queue_bytes
        self._items: deque = deque()
        self._batch: deque = deque()  # taken out, not all written yet
        self._waiting = 0
        self._overflow: dict[str, int] = {}
        self._news = threading.Condition()
        self._ending = False
        #: Why the thread ended before it was told to, "" if it did not.
        self.fault = ""
        self._thread = threading.Thread(target=self._run, name="disk", daemon=True)
        self._thread.start()

    def add(self, topic: Topic) -> None:
        """Make a topic known."""
        with self._news:
            self._items.append(topic)

    def write(self, topic: str, data: bytes, log_ns: int, sent_ns: int) -> bool:
        """Hand over a message of a known topic; False, and counted, if too much waits already."""
        with self._news:
            if self._waiting + len(data) > self._queue_bytes or self.fault:
                self._overflow[topic] = self._overflow.get(topic, 0) + 1
                return False
            self._items.append((topic, data, log_ns, sent_ns))
            self._waiting += len(data)
        return True

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what waits and finish the bag; False if the disk did not come to an end."""
        with self._news:
            self._ending = True
            self._news.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def stopped(self) -> str:
        """Why nothing is written any more, "" while it is."""
        return self.fault or self.bag.stopped

    @property
    def written(self) -> dict[str, int]:
        """Messages on the disk, by topic."""
        return dict(self.bag.written)

    @property
    def lost(self) -> dict[str, int]:
        """Messages that came here and did not get to the disk, by topic."""
        total = dict(self.bag.lost)
        for topic, count in list(self._overflow.items()):
            total[topic] = total.get(topic, 0) + count
        return total

    def _run(self) -> None:
        try:
            while self._work():
                pass
            self.bag.close()
        except Exception as error:  # noqa: BLE001 - to be shown; the robot moves on
            self._give_up(f"{type(error).__name__}: {error}")

    def _give_up(self, fault: str) -> None:
        """Write no more; what waits is lost, and counted."""
        with self._news:
            self.fault = fault
            for item in (*self._batch, *self._items):
                if not isinstance(item, Topic):
                    self._overflow[item[0]] = self._overflow.get(item[0], 0) + 1
            self._batch, self._items, self._waiting = deque(), deque(), 0

    def _work(self) -> bool:
        with self._news:
            if not self._items and not self._ending:
                self._news.wait(NAP_S)
            self._batch, self._items = self._items, deque()
            ending, some = self._ending, bool(self._batch)
        while self._batch:
            item = self._batch[0]  # taken out once it is written: else it is among what is lost
            if isinstance(item, Topic):
                self.bag.add(item)
            else:
                self.bag.write(*item)
                with self._news:
                    self._waiting -= len(item[1])
            self._batch.popleft()
        self.bag.tick()
        if some and not ending:
            time.sleep(NAP_S)  # many at a time cost less than one by one
        return not (ending and not some)
