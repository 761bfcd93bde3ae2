# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One file of a bag: through rosbags if it is whole, else as far as it can be read."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from omni_ros.replay.bag_salvage import Salvaged, Stored, salvage
from omni_ros.replay.types import Types

#: How a message that was compressed by itself begins; one that was not begins with 0.
_ZSTD = b"\x28\xb5\x2f\xfd"
#: A file up to this size is kept in memory, if what it holds is not larger than this, bytes.
HELD_FILE, HELD_BYTES = 64_000_000, 256_000_000


class BagError(ValueError):
    """A bag that cannot be read at all, or not for what was asked; the message says why."""


class BagFile:
    """An open file of a bag."""

    def __init__(self, path: Path, name: str, hashes: dict[str, str], distro: str) -> None:
        """
        :param name: for messages. :param hashes: of types, from metadata.yaml. :param distro: of it.
        :raises BagError: nothing in it can be read.
        """
        self.name, self._path = name, path
        self._reader: Any = None
        self._salvaged: Salvaged | None = None
        self._faults: list[tuple[str, bool]] = []
        self._held: list[Stored] | None = None  # [] if it is too much
        try:
            self._reader = _open(path)
            connections = list(self._reader.connections)
        except Exception as error:  # rosbags' readers fail in as many ways as a file can be damaged
            self._give_up(error)
            connections = self._salvaged.connections
        #: Type of each topic.
        self.topics: dict[str, str] = {one.topic: one.msgtype for one in connections}
        definitions = {one.msgtype: one.msgdef for one in connections}
        known = {one.msgtype: one.digest or hashes.get(one.msgtype, "") for one in connections}
        self.types = Types(definitions, known, distro=distro)

    def messages(self, topics: Collection[str]) -> Iterator[Stored]:
        """Yield the messages of some topics in the order of their times.

        :raises BagError: the file turns out to be damaged; :meth:`load` reads it all the same.
        """
        if self._salvaged is not None:
            yield from (one for one in self._salvaged.messages() if one.topic in topics)
            return
        if self._held is None and self._path.stat().st_size <= HELD_FILE:
            self._hold()
        if self._held:
            yield from (one for one in self._held if one.topic in topics)
        else:
            yield from self._read(topics)

    def _hold(self) -> None:
        """Read a small file once and keep it: what takes longest is unpacking, and looking at records."""
        held, size = [], 0
        for one in self._read(set(self.topics)):
            held.append(one)
            size += len(one.data)
            if size > HELD_BYTES:
                held = []
                break
        self._held = held

    def _read(self, topics: Collection[str]) -> Iterator[Stored]:
        wanted = [one for one in self._reader.connections if one.topic in topics]
        if not wanted:
            return
        try:
            for connection, log_ns, data in self._reader.messages(wanted):
                if data[:4] == _ZSTD:
                    data = _decompressed(data)
                yield Stored(connection.topic, log_ns, data)
        except GeneratorExit:
            raise
        except Exception as error:
            raise BagError(f"{self.name}: {_words(error)}") from error

    def load(self, topics: Collection[str], peek: Collection[str] = ()) -> list[Stored]:
        """Return the messages of some topics; of those in `peek` the first 16 bytes."""
        def kept() -> list[Stored]:
            return [one._replace(data=bytes(one.data[:16])) if one.topic in peek else one
                    for one in self.messages(topics)]

        try:
            return kept()
        except BagError as error:
            self._give_up(error.__cause__ or error)
            return kept()

    def take_faults(self) -> list[tuple[str, bool]]:
        """Return what was found to be wrong since the last call: words, and whether it leaves a gap."""
        faults, self._faults = self._faults, []
        return faults

    def close(self) -> None:
        """Close the file."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _give_up(self, error: BaseException) -> None:
        """Read the rest without an index, record by record."""
        self.close()
        self._held = None
        self._salvaged = salvage(self._path)
        if not self._salvaged.connections:
            raise BagError(f"{self.name}: {_words(error)}; nothing in it can be read")
        self._faults += [(f"{self.name} {text}", lost) for text, lost in self._salvaged.faults]


def unpack(path: Path, target: Path) -> str:
    """Unpack a file that was compressed as a whole, as far as it goes; return what was wrong."""
    zstd = _zstd()
    with path.open("rb") as packed, target.open("wb") as plain:
        try:
            with zstd.open(packed, "rb") as stream:
                shutil.copyfileobj(stream, plain)
        except (EOFError, OSError, zstd.ZstdError) as error:
            return f"{path.name} is cut off or damaged ({error}); it is read as far as it goes"
    return ""


def _open(path: Path) -> Any:
    from rosbags.rosbag2 import Reader

    reader = Reader(path)
    reader.open()
    return reader


def _decompressed(data: bytes) -> bytes:
    return _zstd().decompress(data)


def _zstd() -> Any:
    from omni_ros.replay.bag_salvage import zstd_module

    return zstd_module()


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
