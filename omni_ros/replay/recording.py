# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a rosbag2 bag, in MCAP, that a full disk or SIGKILL cannot take more than a moment of.

The folder can be read from its first second on: `metadata.yaml` is there from the start, and what is in a
file always ends with a whole record, unless the process was killed within one write. Each file begins
with the last message of each latched topic, so that it can be read without the ones before it.

Serialised messages go in as they came. Free of ROS; one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from omni_ros.replay.recording_file import DiskFault, Sink, close_at, new_writer
from omni_ros.replay.recording_metadata import BagFile, write_metadata
from omni_ros.replay.recording_topics import Topic

#: Beside the bag's files; given up when the disk is full, so that the last file can be closed.
RESERVE = ".reserve"
RESERVE_BYTES = 512 * 1024
#: How often `metadata.yaml` gets the counts of the file that is being written, seconds.
METADATA_S = 5.0
#: Least bytes between two splits, beside what latched topics take: else a split could beget the next.
LEAST_FILE_BYTES = 64 * 1024
#: Chunk of a file that is written before it is due, bytes.
CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """How much is kept, and how much can be lost.

    :param file_bytes, file_s: at which the next file is begun; seconds 0: never for its length.
    :param total_bytes: of all files. :param keep: what is kept beyond it: "first" stops the recording,
        "last" gives up the oldest file.
    :param flush_s: most that SIGKILL or a lost mains takes away, seconds. :param free_bytes: that are
        left to others on the disk; the recording stops before.
    """

    file_bytes: int = 512_000_000
    file_s: float = 0.0
    total_bytes: int = 8_000_000_000
    keep: str = "first"
    flush_s: float = 0.5
    free_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        if self.keep not in ("first", "last"):
            raise ValueError(f"keep is {self.keep!r}; expected 'first' or 'last'")
        if not LEAST_FILE_BYTES <= self.file_bytes <= self.total_bytes:
            raise ValueError(
                f"a file of {self.file_bytes} bytes, {self.total_bytes} in all; expected "
                f"{LEAST_FILE_BYTES} <= a file <= all")
        if self.keep == "last" and 2 * self.file_bytes > self.total_bytes:
            raise ValueError(
                f"keep 'last' with files of {self.file_bytes} bytes and {self.total_bytes} in all: one "
                "is given up whole, so let all be at least twice a file")
        if not 0.0 < self.flush_s <= 1.0 or self.file_s < 0.0 or self.free_bytes < 0:
            raise ValueError(
                f"flush_s is {self.flush_s:g}, file_s {self.file_s:g}, free_bytes {self.free_bytes}; "
                "expected 0 < flush_s <= 1, the others from 0")


class BagWriter:
    """A bag that is being written."""

    def __init__(self, folder: str | Path, limits: Limits | None = None, *,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        """
        :param folder: of the bag; must not exist.
        :raises ValueError: it exists. :raises OSError: it cannot be made.
        """
        self.folder, self.limits = Path(folder), limits or Limits()
        #: Why nothing is written any more, "" while it is.
        self.stopped = ""
        #: Files that were given up for newer ones.
        self.files_dropped = 0
        #: Messages that reached the disk, and those that an error took, by topic.
        self.written: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self._now = monotonic
        self._topics: dict[str, Topic] = {}
        self._latched: dict[str, tuple[bytes, int, int]] = {}
        self._files: list[BagFile] = []
        self._number = 0
        self._writer = self._sink = None
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError:
            raise ValueError(f"{self.folder} is there already; give a folder that is not") from None
        (self.folder / RESERVE).write_bytes(b"\0" * RESERVE_BYTES)
        self._open()

    @property
    def bytes_written(self) -> int:
        """Of all files, as far as they are on the disk."""
        return sum(file.size for file in self._files)

    def has(self, topic: str) -> bool:
        return topic in self._topics

    def add(self, topic: Topic) -> None:
        """Make a topic known; that must come before its first message."""
        if topic.name not in self._topics:
            self._topics[topic.name] = topic
            self.written.setdefault(topic.name, 0)
            self._metadata_due = 0.0
            self._register(topic)

    def write(self, topic: str, data: bytes, log_ns: int, sent_ns: int | None = None) -> bool:
        """Take a serialised message.

        :param log_ns: when it was received. :param sent_ns: when it was sent, if that is known.
        :return: whether it is in; if not, it is counted as lost.
        :raises KeyError: the topic was not made known.
        """
        known = self._topics[topic]
        if self.stopped:
            self.lost[topic] = self.lost.get(topic, 0) + 1
            return False
        sent_ns = log_ns if sent_ns is None else sent_ns
        if known.latched:
            self._latched[topic] = data, log_ns, sent_ns
        self._put(topic, data, log_ns, sent_ns)
        if self._pending_bytes > CHUNK_BYTES:
            self.flush()
        return not self.stopped

    def tick(self) -> None:
        """Flush if that is due. Call it a few times a `flush_s`."""
        if not self.stopped and self._now() >= self._flush_due:
            self.flush()

    def flush(self) -> None:
        """Write to the disk what was taken, and split if it is time."""
        if self.stopped:
            return  # counted as it came
        self._flush_due = self._now() + self.limits.flush_s
        try:
            if self._pending:
                self._spare_room()
                self._writer.flush()
        except DiskFault as error:
            self._fail(str(error))
            return
        self._note_written()
        if self._now() >= self._metadata_due:
            self._write_metadata()
        file, limits = self._files[-1], self.limits
        old = limits.file_s and file.count and self._now() - self._begun >= limits.file_s
        if file.size >= limits.file_bytes or old:
            self._split()
        elif self.bytes_written >= limits.total_bytes and limits.keep == "first":
            self._stop(f"all of {limits.total_bytes / 1e6:.0f} MB (max_mb) are used")

    def close(self) -> None:
        """Finish the last file. What cannot be written any more is counted as lost."""
        self.flush()
        if not self.stopped:
            self._stop("closed")

    # -- one file after the other --------------------------------------------------------------

    def _open(self) -> None:
        path = self.folder / f"{self.folder.name}_{self._number}.mcap"
        self._sink = Sink(path)
        self._number += 1
        self._files.append(BagFile(path.name))
        self._pending: list[tuple[str, int, bool]] = []
        self._pending_bytes = 0
        self._begun, self._flush_due, self._metadata_due = self._now(), self._now(), 0.0
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._writer = new_writer(self._sink)
        for topic in self._topics.values():
            self._register(topic)
        for name, (data, log_ns, sent_ns) in self._latched.items():
            self._put(name, data, max(log_ns, self._last_ns), sent_ns, again=True)
        self._writer.flush()
        self._note_written()
        self._write_metadata()

    _last_ns = 0

    def _register(self, topic: Topic) -> None:
        schema = self._schemas.get(topic.type)
        if schema is None:
            schema = self._schemas[topic.type] = self._writer.register_schema(
                topic.type, topic.encoding, topic.definition.encode())
        self._channels[topic.name] = self._writer.register_channel(
            topic.name, "cdr", schema,
            {"offered_qos_profiles": topic.qos_text, "topic_type_hash": topic.type_hash})

    def _put(self, topic: str, data: bytes, log_ns: int, sent_ns: int, again: bool = False) -> None:
        self._writer.add_message(self._channels[topic], log_ns, data, sent_ns)
        self._pending.append((topic, log_ns, again))
        self._pending_bytes += len(data)
        self._last_ns = max(self._last_ns, log_ns)

    def _note_written(self) -> None:
        file = self._files[-1]
        for topic, log_ns, again in self._pending:
            self.written[topic] = self.written.get(topic, 0) + (not again)
            file.add(topic, log_ns)
        self._pending, self._pending_bytes = [], 0
        file.size = self._sink.committed

    def _spare_room(self) -> None:
        room = os.statvfs(self.folder)
        free = room.f_bavail * room.f_frsize
        if free < self.limits.free_bytes:
            raise DiskFault(f"{free / 1e6:.0f} MB are free on the disk of {self.folder}, and "
                            f"{self.limits.free_bytes / 1e6:.0f} MB (min_free_mb) are left to others")

    def _split(self) -> None:
        try:
            self._writer.finish()
            self._sink.commit()
        except DiskFault as error:
            self._fail(str(error))
            return
        self._sink.close()
        self._files[-1].size = self._sink.committed
        limits = self.limits
        if limits.keep == "first" and self.bytes_written >= limits.total_bytes:
            self._end(f"all of {limits.total_bytes / 1e6:.0f} MB (max_mb) are used")
            return
        # What the next file may grow to has to fit as well.
        while (limits.keep == "last" and len(self._files) > 1
               and self.bytes_written + limits.file_bytes > limits.total_bytes):
            oldest = self._files.pop(0)
            (self.folder / oldest.name).unlink(missing_ok=True)
            self.files_dropped += 1
        try:
            self._open()
        except (DiskFault, OSError) as error:
            self._fail(str(error))

    def _stop(self, why: str) -> None:
        try:
            self._writer.finish()
            self._sink.commit()
        except DiskFault as error:
            self._fail(str(error))
            return
        self._sink.close()
        self._files[-1].size = self._sink.committed
        self._end(why)

    def _end(self, why: str) -> None:
        self.stopped = why
        (self.folder / RESERVE).unlink(missing_ok=True)
        self._write_metadata()

    def _fail(self, why: str) -> None:
        """The disk takes no more: keep what is on it, and close the file with the room held for that."""
        for topic, _, again in self._pending:
            self.lost[topic] = self.lost.get(topic, 0) + (not again)
        self._pending, self._pending_bytes = [], 0
        self.stopped = why
        (self.folder / RESERVE).unlink(missing_ok=True)
        file = self._files[-1]
        self._sink.close()
        if file.count:
            file.size = close_at(self._sink.path, self._sink.committed)
        else:  # not even the latched topics are in
            self._files.pop()
            self._sink.path.unlink(missing_ok=True)
        self._write_metadata()

    def _write_metadata(self) -> None:
        self._metadata_due = self._now() + METADATA_S
        try:
            write_metadata(self.folder, self._files, list(self._topics.values()))
        except OSError:
            pass  # the one before stays; the files say the same
