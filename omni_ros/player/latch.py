# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A trip outlives the process that tripped: kept in a small file until it is reset."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from omni_ros.player.reasons import Reason


def runtime_folder() -> Path:
    """Folder for what must outlive a process but not a reboot; as the system offers it."""
    offered = os.environ.get("XDG_RUNTIME_DIR")
    if offered and os.path.isdir(offered):
        return Path(offered) / "omni_ros"
    return Path(tempfile.gettempdir()) / f"omni_ros-{os.getuid()}"


class TripLatch:
    """The reason of a player's trip, in a file named after the player.

    :param player: the player's fully qualified name, e.g. "/left/action_player".
    :param domain: its ROS domain; two robots on one machine may share a name.
    """

    def __init__(self, player: str, domain: str, folder: Path | None = None) -> None:
        name = player.strip("/").replace("/", ".") or "player"
        self.path = (folder or runtime_folder()) / f"trip-{domain}-{name}"
        self._saved: Reason | None = None

    def load(self) -> Reason:
        """Return the reason kept, Reason.NONE if there is no trip.

        A file that cannot be read or understood counts as a trip: nobody is known to have reset it.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._saved = Reason.NONE
            return Reason.NONE
        except (OSError, UnicodeDecodeError):
            return Reason.PROTECTIVE_STOP
        name = text.strip()
        reason = Reason[name] if name in Reason.__members__ else Reason.NONE
        self._saved = reason if reason is not Reason.NONE else None
        return reason if reason is not Reason.NONE else Reason.PROTECTIVE_STOP

    def keep(self, reason: Reason) -> None:
        """Have the file say `reason` (Reason.NONE removes it); does nothing if it does already.

        :raises OSError: the file cannot be written or removed.
        """
        if reason is self._saved:
            return
        if reason is Reason.NONE:
            self.path.unlink(missing_ok=True)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.path.with_name(self.path.name + ".new")
            fresh.write_text(reason.name + "\n", encoding="utf-8")
            os.replace(fresh, self.path)
        self._saved = reason
