# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closes the files of a recording that was killed: the half of a record at the end goes, a summary comes.

Readers that need the summary (rosbags, and `ros2 bag play` to be quick) then open it. Nothing else is
changed: the messages stay where they are.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omni_ros.replay.recording_file import hold
from omni_ros.replay.recording_metadata import NAME, BagFile, write_metadata
from omni_ros.replay.recording_topics import Topic
from omni_ros.requirements import require

MAGIC = b"\x89MCAP0\r\n"
_DATA_END, _FOOTER = 0x0F, 0x02
_CHUNK, _INDEX, _SCHEMA, _CHANNEL, _MESSAGE = 0x06, 0x07, 0x03, 0x04, 0x05


@dataclass
class Contents:
    """What is in a file up to `end`, the last byte that a whole record ends with.

    :param damaged: chunks before that which cannot be read; they stay where they are, in no index.
    """

    end: int = len(MAGIC)
    closed: bool = False
    schemas: dict[int, Any] = field(default_factory=dict)
    channels: dict[int, Any] = field(default_factory=dict)
    chunks: list[Any] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    start_ns: int = 2**64 - 1
    end_ns: int = 0
    damaged: int = 0

    @property
    def messages(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Mended:
    """What was done to a file.

    :param cut: bytes of the record that was not whole. :param damaged: chunks that cannot be read.
    """

    name: str
    messages: int
    cut: int
    was_closed: bool
    damaged: int = 0


def mend(folder: str | Path) -> list[Mended]:
    """Close all files of a bag that are not, in place, and write its metadata anew.

    :return: one entry a file, in order. :raises ValueError: it holds no MCAP files, or one is none.
    :raises OSError: it cannot be written.
    """
    root = Path(folder)
    paths = sorted(root.glob("*.mcap"), key=_order) if root.is_dir() else [root]
    if not paths:
        raise ValueError(f"{root} has no .mcap files; give the folder of a bag in MCAP")
    done, files, topics = [], [], {}
    for path in paths:
        contents, cut = close_file(path)
        done.append(Mended(path.name, contents.messages, cut, contents.closed,
                           contents.damaged))
        file = BagFile(path.name, size=path.stat().st_size)
        for number, channel in contents.channels.items():
            topics.setdefault(channel.topic, _topic(channel, contents.schemas.get(channel.schema_id)))
            if contents.counts[number]:
                file.add(channel.topic, contents.start_ns, contents.counts[number])
                file.end_ns = contents.end_ns
        files.append(file)
    if root.is_dir() and not (all(one.was_closed for one in done) and (root / NAME).exists()):
        write_metadata(root, files, list(topics.values()))
    return done


def close_file(path: Path) -> tuple[Contents, int]:
    """Close one file where its last whole record ends, unless it is closed.

    :return: what is in it, and how many bytes were cut off.
    :raises ValueError: not an MCAP file, or one that a recorder is writing.
    :raises OSError: the summary cannot be written.
    """
    contents = scan(path)
    if contents.closed:
        return contents, 0
    with path.open("r+b") as file:
        if not hold(file.fileno()):
            raise ValueError(f"{path} is being written by a recorder: stop that first; it closes the "
                             "file itself")
        contents = scan(path)  # as it is now that nobody writes it
        if contents.closed:
            return contents, 0
        size = path.stat().st_size
        os.truncate(path, contents.end)
        file.seek(contents.end)
        file.write(_summary(contents))
        file.flush()
        os.fsync(file.fileno())
    return contents, size - contents.end


def scan(path: Path) -> Contents:
    """Read a file as far as its records are whole. :raises ValueError: not an MCAP file."""
    records = require("mcap.records", "to mend a bag")
    contents = Contents()
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path} is no MCAP file: it begins otherwise")
        index_of, channels, skipped = None, [], 0
        for code, body, start, end in _records(file, path.stat().st_size):
            if code == _DATA_END:
                contents.closed = _is_closed(file, path.stat().st_size)
                break
            if code == _CHUNK:
                chunk = _parse(records.Chunk, body)
                inside = None if chunk is None else _take(contents, chunk, records)
                if inside is None:
                    # The file ends before it, unless what follows is whole.
                    index_of, skipped = None, skipped + 1
                    continue
                index_of = records.ChunkIndex(
                    chunk_length=end - start, chunk_start_offset=start,
                    compression=chunk.compression, compressed_size=len(chunk.data),
                    message_end_time=chunk.message_end_time, message_index_length=0,
                    message_index_offsets={}, message_start_time=chunk.message_start_time,
                    uncompressed_size=chunk.uncompressed_size)
                contents.chunks.append(index_of)
                contents.damaged, skipped = contents.damaged + skipped, 0
                channels.append(inside)
            elif code == _INDEX:
                if index_of is None:
                    continue
                index_of.message_index_offsets[int.from_bytes(body[:2], "little")] = start
                index_of.message_index_length += end - start
            elif code in (_SCHEMA, _CHANNEL, _MESSAGE):  # others write them outside of chunks as well
                kind = {_SCHEMA: records.Schema, _CHANNEL: records.Channel, _MESSAGE: records.Message}[code]
                record = _parse(kind, body, *((len(body),) if code == _MESSAGE else ()))
                if record is None:
                    break
                _count(contents, record, records)
            contents.end = end
    for index, inside in zip(contents.chunks, channels, strict=True):
        if set(index.message_index_offsets) != inside:  # cut off in the middle of them
            index.message_index_offsets, index.message_index_length = {}, 0
    return contents


def _records(file: io.BufferedReader, size: int) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield (code, body, where it starts, where it ends) of each whole record."""
    while True:
        start = file.tell()
        head = file.read(9)
        if len(head) < 9:
            return
        code, length = head[0], int.from_bytes(head[1:], "little")
        if start + 9 + length > size or code == 0:  # a lost mains may leave zeros
            return
        yield code, file.read(length), start, start + 9 + length


def _is_closed(file: io.BufferedReader, size: int) -> bool:
    file.seek(max(0, size - len(MAGIC)))
    return file.read() == MAGIC


def _parse(kind: Any, body: bytes, *more: int) -> Any:
    stream = require("mcap.data_stream", "to mend a bag").ReadDataStream(io.BytesIO(body))
    try:
        return kind.read(stream, *more)
    except Exception:  # noqa: BLE001 - whatever it is, the record is not whole
        return None


def _take(contents: Contents, chunk: Any, records: Any) -> set[int] | None:
    """Add what is in a chunk; return the channels of its messages, None if it is damaged."""
    breakup = require("mcap.stream_reader", "to mend a bag").breakup_chunk
    try:
        inside = breakup(chunk, validate_crc=True)
    except Exception:  # noqa: BLE001 - decompressors raise errors of their own
        return None
    channels = set()
    for record in inside:
        _count(contents, record, records)
        if isinstance(record, records.Message):
            channels.add(record.channel_id)
    return channels


def _count(contents: Contents, record: Any, records: Any) -> None:
    if isinstance(record, records.Schema):
        contents.schemas[record.id] = record
    elif isinstance(record, records.Channel):
        contents.channels[record.id] = record
    elif isinstance(record, records.Message):
        contents.counts[record.channel_id] += 1
        contents.start_ns = min(contents.start_ns, record.log_time)
        contents.end_ns = max(contents.end_ns, record.log_time)


def _summary(contents: Contents) -> bytes:
    """Return the bytes from the end of data to the end of the file."""
    records = require("mcap.records", "to mend a bag")
    builder = require("mcap.data_stream", "to mend a bag").RecordBuilder()
    records.DataEnd(0).write(builder)
    data_end = builder.end()
    start = contents.end + len(data_end)
    groups = []
    statistics = records.Statistics(
        attachment_count=0, channel_count=len(contents.channels),
        channel_message_counts=dict(contents.counts), chunk_count=len(contents.chunks),
        message_count=contents.messages, message_end_time=contents.end_ns,
        message_start_time=contents.start_ns if contents.messages else 0, metadata_count=0,
        schema_count=len(contents.schemas))
    for code, entries in ((_SCHEMA, contents.schemas.values()), (_CHANNEL, contents.channels.values()),
                          (0x0B, [statistics]), (0x08, contents.chunks)):
        before = builder.count
        for entry in entries:
            entry.write(builder)
        if builder.count > before:
            groups.append(records.SummaryOffset(
                group_opcode=code, group_start=start + before, group_length=builder.count - before))
    offsets = start + builder.count
    for group in groups:
        group.write(builder)
    summary = builder.end()
    crc = zlib.crc32(struct.pack("<BQQQ", _FOOTER, 20, start, offsets), zlib.crc32(summary))
    records.Footer(summary_start=start, summary_offset_start=offsets, summary_crc=crc).write(builder)
    return data_end + summary + builder.end() + MAGIC


def _topic(channel: Any, schema: Any) -> Topic:
    import yaml

    qos = yaml.safe_load(channel.metadata.get("offered_qos_profiles", "") or "[]") or []
    return Topic(channel.topic, schema.name if schema is not None else "",
                 schema.data.decode() if schema is not None else "",
                 channel.metadata.get("topic_type_hash", ""), qos)


def _order(path: Path) -> tuple[int, str]:
    number = path.stem.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1), path.name
