# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the last pictures of each camera until it is known which of them an observation used."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

#: How long pictures are kept: an observation is told of when its tokens were handed on.
KEEP_S = 5.0
KEEP_BYTES = 256_000_000
#: How long a picture that was used is waited for, seconds: on its way to here it may be late.
WAIT_S = 2.0
#: Pictures remembered as written: one may serve two observations.
REMEMBERED = 64


class Held(NamedTuple):
    """A serialised picture. :param log_ns, sent_ns: when it came, and when it was sent."""

    data: bytes
    log_ns: int
    sent_ns: int
    came_s: float


class PictureBox:
    """Pictures by topic and stamp; times in seconds of a monotonic clock."""

    def __init__(self, keep_bytes: int = KEEP_BYTES) -> None:
        self._keep_bytes = keep_bytes
        self._held: OrderedDict[tuple[str, int], Held] = OrderedDict()
        self._bytes = 0
        self._wanted: dict[tuple[str, int], float] = {}
        self._given: OrderedDict[tuple[str, int], None] = OrderedDict()

    def add(self, topic: str, stamp_ns: int, picture: Held) -> Held | None:
        """Keep a picture; return it if it is wanted already."""
        key = topic, stamp_ns
        if self._wanted.pop(key, None) is not None:
            self._remember(key)
            return picture
        self._drop(key)
        self._held[key] = picture
        self._bytes += len(picture.data)
        while self._held:
            first = next(iter(self._held))
            if (self._bytes <= self._keep_bytes
                    and picture.came_s - self._held[first].came_s <= KEEP_S):
                break
            self._drop(first)
        return None

    def want(self, topic: str, stamp_ns: int, now_s: float) -> Held | None:
        """Return a picture that was used, once; None if it was given before, or has not come yet."""
        key = topic, stamp_ns
        held = self._held.get(key)
        if held is not None:
            self._drop(key)
            self._remember(key)
            return held
        if key not in self._given:
            self._wanted.setdefault(key, now_s)
        return None

    def missing(self, now_s: float, *, all_of_them: bool = False) -> list[tuple[str, int]]:
        """Return, once, (topic, stamp) of what was used and has not come in time."""
        gone = [key for key, since in self._wanted.items() if all_of_them or now_s - since > WAIT_S]
        for key in gone:
            del self._wanted[key]
        return gone

    def _drop(self, key: tuple[str, int]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held.data)

    def _remember(self, key: tuple[str, int]) -> None:
        self._given[key] = None
        while len(self._given) > REMEMBERED:
            self._given.popitem(last=False)


def stamp_of(data: bytes) -> int:
    """Return the stamp, ns, of a serialised message that begins with a Header.

    :raises ValueError: too short.
    """
    if len(data) < 12:
        raise ValueError(f"a message of {len(data)} bytes; expected a Header at its beginning")
    order = "little" if data[1] & 1 else "big"
    return (int.from_bytes(data[4:8], order, signed=True) * 1_000_000_000
            + int.from_bytes(data[8:12], order))
