# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A trip outlives the process that tripped: kept in a small file until it is reset.

The file is there from configure on and always of the same size, so that keeping a trip overwrites bytes
in place: a disk that is full, or not writable, is noticed while nothing moves yet.
"""

from __future__ import annotations

import os
from pathlib import Path

from omni_ros.player.reasons import Reason

SIZE = 32


def state_folder() -> Path:
    """Folder for what must outlive a process: $OMNI_ROS_STATE, else one of this user.

    Not below XDG_RUNTIME_DIR: a service and a shell see different ones, and it goes at logout.
    """
    given = os.environ.get("OMNI_ROS_STATE")
    return Path(given) if given else Path(f"/var/tmp/omni_ros-{os.getuid()}")


class TripLatch:
    """The reason of a player's trip, in a file named after the player.

    :param player: the player's fully qualified name, e.g. "/left/action_player".
    :param domain: its ROS domain; two robots on one machine may share a name.
    """

    def __init__(self, player: str, domain: str, folder: Path | None = None) -> None:
        name = player.strip("/").replace("/", ".") or "player"
        self.path = (folder or state_folder()) / f"trip-{domain}-{name}"
        self._saved: Reason | None = None

    def load(self) -> Reason:
        """Return the reason kept, Reason.NONE if there is no trip; makes the file if missing.

        A file that cannot be understood counts as a trip: nobody is known to have reset it.

        :raises OSError: the file cannot be made, read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                self._write(Reason.NONE)
            text = self.path.read_bytes()
            self._write_bytes(text.ljust(SIZE)[:SIZE])  # can it be written?
        except OSError as error:
            raise OSError(
                f"trips cannot be kept in {self.path}: {error.strerror or error}; make room, or set "
                "OMNI_ROS_STATE to a folder that can be written") from error
        name = text.decode("ascii", "replace").strip()
        self._saved = Reason[name] if name in Reason.__members__ else None
        return Reason.PROTECTIVE_STOP if self._saved is None else self._saved

    def keep(self, reason: Reason) -> None:
        """Have the file say `reason`; does nothing if it does already.

        :raises OSError: the file cannot be written.
        """
        if reason is not self._saved:
            self._write(reason)
            self._saved = reason

    def _write(self, reason: Reason) -> None:
        self._write_bytes(reason.name.encode().ljust(SIZE - 1) + b"\n")

    def _write_bytes(self, content: bytes) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.pwrite(descriptor, content, 0) != len(content):
                raise OSError("written only in part")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
