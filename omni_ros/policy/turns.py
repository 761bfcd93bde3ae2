# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One thread at a time: whoever comes second is refused, not made to wait, and not let in.

A policy and its stages write into arrays that were reserved once. Two threads in them would each
get a chunk of half the other's observation, and nothing would show it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


class InUse(RuntimeError):
    """Another thread is at work in this object."""


class Turn:
    """A context that one thread at a time is in; `again` lets that thread enter once more."""

    __slots__ = ("_lock", "_what")

    def __init__(self, what: str, *, again: bool = True) -> None:
        """:param what: whose turn it is, for the error."""
        self._what = what
        self._lock = threading.RLock() if again else threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise InUse(
                f"{self._what} is in use by another call that has not returned; make one for each "
                "thread, or let the threads take turns"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def in_turn(method: Method) -> Method:
    """Let a method of an object with a `turn` run only in it."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        with self.turn:
            return method(self, *args, **options)

    return guarded  # type: ignore[return-value]
