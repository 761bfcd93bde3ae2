# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is left in a file of a bag that was cut off or damaged.

An MCAP file is a row of records, each with its length, some of them chunks of records: it is gone
through from the front, without its index. Of an SQLite file the rows are taken one by one up to the first
page that is not there.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from binascii import crc32
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"\x89MCAP0\r\n"
_HEADER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x01, 0x03, 0x04, 0x05, 0x06, 0x0F
_FOOTER = 0x02
#: Bytes of the footer with its head, and of the magic after it.
_TAIL = 9 + 20 + len(MAGIC)
#: Longest record that is believed: one bit can turn a length into anything.
_LONGEST = 1 << 32


class Stored(NamedTuple):
    """A message as it lies in a file."""

    topic: str
    log_ns: int
    data: bytes


@dataclass
class Salvaged:
    """What can be read of a file.

    :param connections: as rosbags has them. :param faults: in words, and whether it leaves a gap.
    """

    connections: list[Any] = field(default_factory=list)
    faults: list[tuple[str, bool]] = field(default_factory=list)
    found: list[Stored] = field(default_factory=list)

    def messages(self) -> Iterator[Stored]:
        """Yield what is left, in the order of its times."""
        yield from self.found


def salvage(path: Path) -> Salvaged:
    """Return what can be read of a damaged file; nothing at all is no error."""
    salvaged = Salvaged()
    try:
        with path.open("rb") as file:
            start = file.read(16)
        if start.startswith(b"SQLite format 3"):
            _from_sqlite(path, salvaged)
        elif start.startswith(MAGIC):
            _Mcap(salvaged).read(path)
        else:
            salvaged.faults.append((f"begins with {start[:8]!r}: neither MCAP nor SQLite", True))
    except OSError as error:
        salvaged.faults.append((f"cannot be read ({error.strerror or error})", True))
    salvaged.found.sort(key=lambda one: one.log_ns)  # stable: equal times stay as they lay
    return salvaged


class _Mcap:
    def __init__(self, salvaged: Salvaged) -> None:
        self._out = salvaged
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._channels: dict[int, str] = {}
        self._last_ns = 0

    def read(self, path: Path) -> None:
        with path.open("rb") as file:
            size = path.stat().st_size
            self._summary(file, size)
            file.seek(len(MAGIC))
            while True:
                at = file.tell()
                if at == size:
                    self._end(f"ends without a summary after {self._when()}")
                    return
                head = file.read(9)
                length = struct.unpack_from("<Q", head, 1)[0] if len(head) == 9 else -1
                if length < 0 or (at + 9 + length > size and head[0] != _CHUNK):
                    self._end(f"is cut off after {self._when()}")
                    return
                if length > _LONGEST or not 0 < head[0] <= 0x0F:
                    self._fault(f"is damaged at byte {at}, after {self._when()}: what follows is not "
                                "read", True)
                    return
                body = file.read(length)
                if head[0] == _DATA_END:
                    return
                if head[0] == _CHUNK:
                    if not self._chunk(body, whole=len(body) == length):
                        return
                else:
                    self._record(head[0], body)

    def _summary(self, file: BinaryIO, size: int) -> None:
        """Take the channels from the end, if it is there: the chunk that tells them may be damaged."""
        file.seek(max(0, size - _TAIL))
        tail = file.read(_TAIL)
        if len(tail) < _TAIL or tail[0] != _FOOTER or not tail.endswith(MAGIC):
            return
        at = struct.unpack_from("<Q", tail, 9)[0]
        while 0 < at < size - _TAIL:
            file.seek(at)
            head = file.read(9)
            length = struct.unpack_from("<Q", head, 1)[0]
            at += 9 + length
            if at > size - _TAIL:
                return
            if head[0] in (_SCHEMA, _CHANNEL):
                self._record(head[0], file.read(length))

    def _chunk(self, body: bytes, *, whole: bool) -> bool:
        """Take a chunk; False if the file ends in it."""
        try:
            size, crc, = struct.unpack_from("<QI", body, 16)
            named = struct.unpack_from("<I", body, 28)[0]
            kind = body[32:32 + named].decode()
            packed = body[40 + named:]
            content = _unpack_part(packed, kind)
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            content, whole = b"", whole and not isinstance(error, struct.error)
        if whole and (len(content) != size or (crc and crc32(content) != crc)):
            self._fault(f"has a damaged chunk after {self._when()}: its messages are lost", True)
            return True
        at = 0
        while at + 9 <= len(content):
            length = struct.unpack_from("<Q", content, at + 1)[0]
            if at + 9 + length > len(content):
                break
            self._record(content[at], content[at + 9:at + 9 + length])
            at += 9 + length
        if not whole:
            self._end(f"is cut off after {self._when()}")
        return whole

    def _record(self, kind: int, body: bytes) -> None:
        try:
            if kind == _SCHEMA:
                number = struct.unpack_from("<H", body)[0]
                name, at = _string(body, 2)
                encoding, at = _string(body, at)
                self._schemas[number] = name, encoding, _string(body, at)[0]
            elif kind == _CHANNEL:
                self._channel(body)
            elif kind == _MESSAGE:
                number, _, log_ns = struct.unpack_from("<HIQ", body)
                topic = self._channels.get(number)
                if topic is not None:
                    self._last_ns = max(self._last_ns, log_ns)
                    self._out.found.append(Stored(topic, log_ns, body[22:]))
        except (struct.error, UnicodeDecodeError) as error:
            self._fault(f"has a record that cannot be read ({error})", True)

    def _channel(self, body: bytes) -> None:
        from rosbags.interfaces import (
            Connection,
            ConnectionExtRosbag2,
            MessageDefinition,
            MessageDefinitionFormat,
        )

        number, schema = struct.unpack_from("<HH", body)
        topic, at = _string(body, 4)
        encoding, _ = _string(body, at)
        if number in self._channels or encoding != "cdr":
            return
        name, kind, text = self._schemas.get(schema, ("", "", ""))
        formats = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}
        definition = MessageDefinition(formats.get(kind, MessageDefinitionFormat.NONE), text)
        self._channels[number] = topic
        self._out.connections.append(Connection(
            number, topic, name, definition, "", 0, ConnectionExtRosbag2("cdr", []), None))

    def _when(self) -> str:
        count = len(self._out.found)
        return f"{count} messages, the last at {self._last_ns * 1e-9:.3f} s" if count else "no message"

    def _end(self, text: str) -> None:
        self._fault(f"{text} (was the recorder killed, or is it still writing?)", False)

    def _fault(self, text: str, lost: bool) -> None:
        self._out.faults.append((text, lost))


def _unpack_part(packed: bytes, kind: str) -> bytes:
    """Unpack as much as is there. :raises ValueError: nothing, or an unknown kind."""
    if kind == "":
        return packed
    if kind == "zstd":
        zstd = zstd_module()
        opener = zstd.ZstdDecompressor()
        try:
            return opener.decompress(packed)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
    if kind == "lz4":
        from lz4.frame import LZ4FrameDecompressor

        try:
            return LZ4FrameDecompressor().decompress(packed)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    raise ValueError(f"compression {kind!r} is not known")


def _string(body: bytes, at: int) -> tuple[str, int]:
    length = struct.unpack_from("<I", body, at)[0]
    if at + 4 + length > len(body):
        raise struct.error(f"a text of {length} bytes in a record of {len(body)}")
    return body[at + 4:at + 4 + length].decode(), at + 4 + length


def zstd_module() -> Any:
    """Return Python's zstd module, or the one that rosbags brings for older Pythons."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _from_sqlite(path: Path, out: Salvaged) -> None:
    from rosbags.interfaces import (
        Connection,
        ConnectionExtRosbag2,
        MessageDefinition,
        MessageDefinitionFormat,
    )

    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    topics: dict[int, str] = {}
    try:
        # Without this SQLite looks at nothing of a file that is shorter than its header says.
        database.execute("PRAGMA writable_schema=ON")
        definitions = _definitions(database)
        for number, topic, kind in database.execute("SELECT id, name, type FROM topics"):
            topics[number] = topic
            encoding, text = definitions.get(kind, ("", ""))
            form = (MessageDefinitionFormat.MSG if encoding == "ros2msg" else
                    MessageDefinitionFormat.IDL if encoding else MessageDefinitionFormat.NONE)
            out.connections.append(Connection(
                number, topic, kind, MessageDefinition(form, text), "", 0,
                ConnectionExtRosbag2("cdr", []), None))
        # By row, not by time: an index has pages of its own, any of which may be gone.
        for number, log_ns, data in database.execute(
                "SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY id"):
            if number in topics:
                out.found.append(Stored(topics[number], log_ns, data))
    except sqlite3.Error as error:
        when = (f"{len(out.found)} messages, the last at {out.found[-1].log_ns * 1e-9:.3f} s"
                if out.found else "no message")
        out.faults.append((f"is cut off or damaged after {when} ({error})", False))
    finally:
        database.close()


def _definitions(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    try:
        return {kind: (encoding, text) for kind, encoding, text in database.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")}
    except sqlite3.Error:
        return {}  # before Iron there was no such table
