# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the processes behind heartbeats, so that a killed source is noticed within one tick."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from enum import Enum

from omni_ros.msg import Heartbeat
from omni_ros.nodes._support import pid_scope

#: More sources than this are not watched by process; their heartbeats still count.
MOST_WATCHED = 8


class Seen(Enum):
    """What a heartbeat says about the process behind it."""

    SAME = 1   # the one known so far, or the first of its source
    OTHER = 2  # another process than before: the source was restarted
    ENDED = 3  # it has ended since it beat; the beat was still on its way


@dataclass
class _Process:
    pid: int
    scope: str
    descriptor: int | None = None
    ended: bool = False


class ProcessWatch:
    """A pidfd for each source that beats from this machine and PID namespace.

    A pidfd becomes readable when its process ends, however it ends. Looking costs one poll(). Where
    there is none (another machine, or the system does not allow it) only the beats tell.
    """

    def __init__(self) -> None:
        self._scope = pid_scope()
        self._poll = select.poll()
        self._known: dict[str, _Process] = {}

    def see(self, beat: Heartbeat) -> Seen:
        """Note a heartbeat and begin to watch its process."""
        known = self._known.get(beat.source)
        if known is None and len(self._known) >= MOST_WATCHED:
            # Room for the newest: the ended ones go first, then the one known longest.
            ended = [source for source, process in self._known.items() if process.ended]
            self._forget((ended or list(self._known))[0])
        if known is not None and not known.ended and (
                (known.pid, known.scope) == (beat.pid, beat.pid_scope)):
            return Seen.SAME
        self._forget(beat.source)
        process = _Process(beat.pid, beat.pid_scope)
        self._known[beat.source] = process
        self._open(process)
        if process.ended:
            return Seen.ENDED
        return Seen.SAME if known is None else Seen.OTHER

    def ended(self) -> list[str]:
        """Return the sources whose process has ended since the last look."""
        ready = {descriptor for descriptor, _ in self._poll.poll(0)} if self._known else set()
        gone = [source for source, process in self._known.items() if process.descriptor in ready]
        for source in gone:
            self._end(self._known[source])
        return gone

    def close(self) -> None:
        for source in list(self._known):
            self._forget(source)

    def _open(self, process: _Process) -> None:
        if not self._scope or process.scope != self._scope or not hasattr(os, "pidfd_open"):
            return
        try:
            process.descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            process.ended = True
            return
        except (OSError, OverflowError):
            return  # not allowed here, no descriptors left, or not a process id
        self._poll.register(process.descriptor, select.POLLIN)
        # Ended, but not yet reaped by its parent: can be opened, and is readable at once.
        if process.descriptor in {descriptor for descriptor, _ in self._poll.poll(0)}:
            self._end(process)

    def _end(self, process: _Process) -> None:
        self._close(process)
        process.ended = True

    def _forget(self, source: str) -> None:
        process = self._known.pop(source, None)
        if process is not None:
            self._close(process)

    def _close(self, process: _Process) -> None:
        if process.descriptor is not None:
            self._poll.unregister(process.descriptor)
            os.close(process.descriptor)
            process.descriptor = None
