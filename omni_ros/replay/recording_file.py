# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One MCAP file: written so that it ends with a whole record, and closed although its writer is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from omni_ros import __version__
from omni_ros.requirements import require

PURPOSE = "to write a bag"


class DiskFault(OSError):
    """The disk takes no more; the message says what it said, and of which file."""


class Sink:
    """A file that grows by whole groups of records: what MCAP's writer wants of a stream."""

    def __init__(self, path: Path) -> None:
        """:raises DiskFault: the file cannot be made."""
        self.path, self.committed = path, 0
        self._parts: list[bytes] = []
        self._waiting = 0
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DiskFault(f"{path}: {error.strerror}") from error
        hold(self._file)

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._waiting += len(data)
        return len(data)

    def tell(self) -> int:
        return self.committed + self._waiting

    def flush(self) -> None:
        self.commit()

    def commit(self) -> None:
        """Have all that was written on the disk. :raises DiskFault: none of it is."""
        data, self._parts, self._waiting = b"".join(self._parts), [], 0
        if not data:
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view):]
            os.fdatasync(self._file)
        except OSError as error:
            self._parts = []
            os.ftruncate(self._file, self.committed)
            raise DiskFault(f"{self.path}: {error.strerror}") from error
        self.committed += len(data)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def hold(file: int) -> bool:
    """Mark an open file as being written, until it is closed; False if another process does already.

    True as well on a file system that has no such marks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def new_writer(sink: Sink) -> Any:
    """Return MCAP's writer, started. :raises MissingDependency: it is not installed."""
    writing = require("mcap.writer", PURPOSE)
    # Chunks end when this module says so: at each flush.
    writer = writing.Writer(sink, chunk_size=2**40, compression=writing.CompressionType.ZSTD)
    writer.start(profile="ros2", library=f"omni_ros {__version__}")
    return writer


def close_at(path: Path, size: int) -> int:
    """Cut a file to a size, and close it there if there is room for its summary.

    :return: its size. Readers that need a summary can do without only after `omni record --mend`.
    """
    from omni_ros.replay.recording_mend import close_file

    try:
        os.truncate(path, size)
        close_file(path)
    except OSError:
        os.truncate(path, size)
    return path.stat().st_size
