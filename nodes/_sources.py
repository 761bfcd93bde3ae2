# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the processes behind heartbeats, so that a killed source is noticed within one tick."""

from __future__ import annotations

import os
import select

from omni_ros.msg import Heartbeat
from omni_ros.nodes._support import pid_scope

#: More sources than this are not watched by process; their heartbeats still count.
MOST_WATCHED = 8


class ProcessWatch:
    """A pidfd for each source that beats from this machine and PID namespace.

    A pidfd becomes readable when its process ends, however it ends. Looking costs one poll().
    """

    def __init__(self) -> None:
        self._scope = pid_scope()
        self._poll = select.poll()
        self._watched: dict[str, tuple[int, int]] = {}  # source -> (pid, pidfd)

    def see(self, beat: Heartbeat) -> bool:
        """Note a heartbeat; return whether the source is another process than before."""
        known = self._watched.get(beat.source)
        if known is not None and known[0] == beat.pid:
            return False
        if known is not None:
            self._forget(beat.source)
        if (not self._scope or beat.pid_scope != self._scope or not hasattr(os, "pidfd_open")
                or len(self._watched) >= MOST_WATCHED):
            return known is not None
        try:
            descriptor = os.pidfd_open(beat.pid)
        except OSError:
            return True  # it ended between beating and being looked at
        self._watched[beat.source] = (beat.pid, descriptor)
        self._poll.register(descriptor, select.POLLIN)
        return known is not None

    def ended(self) -> list[str]:
        """Return the sources whose process has ended since the last look."""
        ready = {descriptor for descriptor, _ in self._poll.poll(0)} if self._watched else set()
        gone = [source for source, (_, descriptor) in self._watched.items() if descriptor in ready]
        for source in gone:
            self._forget(source)
        return gone

    def close(self) -> None:
        for source in list(self._watched):
            self._forget(source)

    def _forget(self, source: str) -> None:
        _, descriptor = self._watched.pop(source)
        self._poll.unregister(descriptor)
        os.close(descriptor)
