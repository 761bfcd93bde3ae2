# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of a recording as they lie in it, fetched in about the order in which they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omni_ros.replay.bag import Bag, Entry
from omni_ros.replay.contents import stamp_of
from omni_ros.replay.plans import Plan


class PictureStore:
    """Reads ahead no farther than is asked for, and holds what will be asked for later."""

    def __init__(self, bag: Bag, plans: Iterable[Plan]) -> None:
        """:param plans: whose pictures are wanted; all others are passed over."""
        self._bag = bag
        self._uses: dict[tuple[str, int], int] = {}
        for plan in plans:
            for wanted in plan.wanted:
                key = wanted.topic, wanted.stamp_ns
                self._uses[key] = self._uses.get(key, 0) + 1
        self._topics = {topic for topic, _ in self._uses}
        self.begin()

    def begin(self) -> None:
        """Go back to the beginning."""
        self._held: dict[tuple[str, int], bytes] = {}
        self._left = dict(self._uses)
        self._entries: Iterator[Entry] = self._bag.stream(self._topics)

    def fetch(self, topic: str, stamp_ns: int) -> bytes | None:
        """Return a picture as a serialised message, None if it is not there after all.

        Each is given as often as it is wanted from the beginning.
        """
        key = topic, stamp_ns
        while key not in self._held:
            entry = next(self._entries, None)
            if entry is None:
                return None
            found = entry.topic, stamp_of(entry.data)
            if self._left.get(found, 0):
                self._held.setdefault(found, bytes(entry.data))
        self._left[key] = self._left.get(key, 0) - 1
        return self._held[key] if self._left[key] > 0 else self._held.pop(key)
