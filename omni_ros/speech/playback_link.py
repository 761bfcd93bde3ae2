# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The connection to the process that plays: start it, send orders, receive reports, end it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
from typing import TYPE_CHECKING, Any

from omni_ros.speech.playback_wire import connection, read_report

if TYPE_CHECKING:
    from omni_ros.speech.playback import SpeakerSettings

#: Bytes of a report at most.
REPORT_BYTES = 1 << 16
#: Larger packets have samples, and leave so much of the socket's buffer for orders.
ORDER_BYTES, ROOM_BYTES = 1 << 10, 3 << 14
#: Ctrl-C is for the node, which ends the process in good order. Not a session of its own, where there
#: is a choice: the kernel weighs sessions against each other, and this one would have to wait its turn.
_APART: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True})


class Link:
    """A running process that plays, and our end of the socket."""

    def __init__(self, process: subprocess.Popen, ours: socket.socket, log: Any) -> None:
        self._process, self._socket, self._log = process, ours, log
        self._wake_read, self._wake_write = os.pipe()
        self.ended = False
        self._most = ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - ROOM_BYTES

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, packet: bytes) -> bool:
        """Send one packet if there is room for it; never waits.

        One with samples leaves room for orders behind it: a stop must not find the way blocked.
        """
        try:
            if len(packet) > ORDER_BYTES and (
                    0 < (unread := self._unread()) and unread + len(packet) > self._most):
                return False
            self._socket.send(packet)
        except (OSError, ValueError):  # no room, or gone, or closed
            return False
        return True

    def _unread(self) -> int:
        """Return the bytes that the process has not taken yet, as the kernel counts them."""
        answer = fcntl.ioctl(self._socket, termios.TIOCOUTQ, struct.pack("i", 0))
        return int(struct.unpack("i", answer)[0])

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return the reports that came, after waiting for the first of them for a while."""
        ready = select.select([self._socket, self._wake_read], [], [], timeout_s)[0]
        reports: list[dict[str, Any]] = []
        while self._socket in ready:
            try:
                packet = self._socket.recv(REPORT_BYTES)
            except BlockingIOError:
                break
            except OSError:
                packet = b""
            if not packet:
                self.ended = True
                break
            reports.append(read_report(packet))
        return reports

    def wake(self) -> None:
        """End a `receive` of another thread."""
        try:
            os.write(self._wake_write, b"x")
        except OSError:
            pass

    def kill(self) -> None:
        """End the process, whatever it hangs in."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)

    def epitaph(self) -> str:
        """Say how it ended, and its last words."""
        try:
            status = f"status {self._process.wait(1.0)}"
        except subprocess.TimeoutExpired:
            status = "still running"
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines()]
        # ALSA reports each late block; that is counted, and is not why a process ends.
        words = [line for line in lines if line and "underrun occurred" not in line]
        return ", ".join([status, *words[-1:]])

    def close(self) -> None:
        """End it and free what belongs to it."""
        self._socket.close()
        try:
            self._process.wait(0.3)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        for end in (self._wake_read, self._wake_write):
            os.close(end)
        self._log.close()


def spawn(settings: SpeakerSettings) -> Link:
    """Start the process that plays.

    :raises OSError, ValueError: it does not start.
    """
    log = tempfile.TemporaryFile()
    try:
        ours, theirs = connection()
    except OSError:
        log.close()
        raise
    words = [sys.executable, "-m", "omni_ros.speech.playback_process",
             f"--socket={theirs.fileno()}", f"--device={settings.device}",
             f"--rate={settings.rate!r}", f"--channels={settings.channels}",
             f"--latency={settings.latency_s!r}", f"--priority={settings.priority}",
             "--cpus=" + ",".join(map(str, settings.cpus))]
    try:
        process = subprocess.Popen(
            words, pass_fds=[theirs.fileno()], env=environment(), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, cwd="/", **_APART)
    except (OSError, ValueError):
        ours.close()
        log.close()
        raise
    finally:
        theirs.close()
    return Link(process, ours, log)


def environment() -> dict[str, str]:
    """Return the environment in which the process finds the same omni_ros as this one."""
    import omni_ros

    root = os.path.dirname(os.path.dirname(os.path.abspath(omni_ros.__file__)))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, root]), "OMP_NUM_THREADS": "1"}
