# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a rosbag2 bag as it is: either storage, compressed or split, whole or not.

A folder with metadata.yaml, a folder that lost it, or a single file. What is damaged is read as far as
it goes, and `problems` says what that means. Nothing is made up for what is missing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from omni_ros.replay.bag_file import BagError, BagFile, Stored
from omni_ros.replay.configuration import SafeLoader
from omni_ros.requirements import require

#: Files of a bag, by storage; a bag compressed by file has one of the endings below behind it.
STORAGES = (".mcap", ".db3")
COMPRESSED = (".zstd", ".zst")

__all__ = ["Bag", "BagError", "Entry", "Problem"]


@dataclass(frozen=True)
class Problem:
    """Something amiss with a bag, in plain words.

    :param lost: messages in between are gone, so that what is left is no whole account of what was
        done; False for an end that came too early, and for mere oddities.
    """

    text: str
    lost: bool = False


class Entry(NamedTuple):
    """A message as it lies in the bag, or its first bytes. `file`: which one, to decode it."""

    topic: str
    log_ns: int
    data: bytes
    file: int


class Bag:
    """An open bag. Use as a context."""

    def __init__(self, path: str | Path) -> None:
        """:raises BagError: there is none, or nothing in it can be read."""
        require("rosbags", "to read a bag")
        self.path = Path(path).expanduser()
        self.problems: list[Problem] = []
        self._folder: tempfile.TemporaryDirectory | None = None
        self._types_notes: set[str] = set()
        self.distro, self._hashes = "", {}
        self.files: list[BagFile] = []
        paths = self._find()
        try:
            self._open(paths)
        except BaseException:
            self.close()
            raise
        #: Type of each topic.
        self.topics: dict[str, str] = {}
        for file in self.files:
            for topic, msgtype in file.topics.items():
                if self.topics.setdefault(topic, msgtype) != msgtype:
                    self.problems.append(Problem(
                        f"{topic} is a {self.topics[topic]} in one file and a {msgtype} in "
                        f"{file.name}: the latter is passed over", lost=True))

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for file in self.files:
            file.close()
        self.files = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # -- reading -----------------------------------------------------------------------------

    def load(self, topics: Collection[str], *, peek: Collection[str] = ()) -> list[Entry]:
        """Return all messages of some topics, in the order of the bag.

        A file that turns out to be damaged on the way is read as far as it goes.
        :param peek: topics of which only the first 16 bytes are kept: a header's stamp.
        """
        found: list[Entry] = []
        for number, file in enumerate(self.files):
            wanted = {*topics, *peek} & {topic for topic, kind in file.topics.items()
                                         if self.topics[topic] == kind}
            found += [Entry(one.topic, one.log_ns,
                            one.data[:16] if one.topic in peek else one.data, number)
                      for one in file.load(wanted, peek)]
            self.problems += [Problem(text, lost) for text, lost in file.take_faults()]
        return found

    def stream(self, topics: Collection[str]) -> Iterator[Entry]:
        """Yield the messages of some topics one by one; after :meth:`load` of the same ones."""
        for number, file in enumerate(self.files):
            wanted = {topic for topic in topics if self.topics[topic] == file.topics.get(topic)}
            for one in file.messages(wanted) if wanted else ():
                yield Entry(one.topic, one.log_ns, one.data, number)

    def decode(self, entry: Entry | Stored, file: int | None = None) -> Any:
        """Return a message as an object.

        :raises UnknownType: its type cannot be had. :raises ValueError: its bytes are something else.
        """
        of = self.files[entry.file if file is None else file]
        message = of.types.decode(self.topics[entry.topic], entry.data)
        for note in of.types.notes:
            if note not in self._types_notes:
                self._types_notes.add(note)
                self.problems.append(Problem(note))
        return message

    # -- opening -----------------------------------------------------------------------------

    def _find(self) -> list[Path]:
        """Return the bag's files in order."""
        path = self.path
        if path.is_file():
            if not _is_storage(path):
                raise BagError(f"{path} is no bag: expected a folder, or a file that ends in "
                               f"{' or '.join(STORAGES)}")
            self._read_metadata(path.parent, only=path.name)
            return [path]
        if not path.is_dir():
            raise BagError(f"there is no bag {path}")
        named = self._read_metadata(path)
        there = sorted(_no_copies([file for file in path.iterdir() if _is_storage(file)], named or ()),
                       key=_natural)
        if named is None:
            if not there:
                raise BagError(f"{path} holds no metadata.yaml and no file that ends in "
                               f"{' or '.join(STORAGES)}: it is no bag")
            return there
        missing = [name for name in named if name not in {file.name for file in there}]
        for name in missing:
            self.problems.append(Problem(f"{name} belongs to the bag and is not there", lost=True))
        extra = [file for file in there if file.name not in named]
        for file in extra:
            self.problems.append(Problem(f"{file.name} is not in metadata.yaml (was the recorder "
                                         "killed?); it is read all the same"))
        known = {file.name: file for file in there}
        files = [known[name] for name in named if name in known] + extra
        if not files:
            raise BagError(f"{path}: none of its {len(named)} files is there: {', '.join(named[:3])}")
        return files

    def _read_metadata(self, folder: Path, only: str | None = None) -> list[str] | None:
        """Return the names of the files; None if metadata.yaml is absent or of no use."""
        file = folder / "metadata.yaml"
        if not file.is_file():
            if only is None:
                self.problems.append(Problem("metadata.yaml is missing (was the recorder killed?); "
                                             "the files are read by their names"))
            return None
        try:
            content = yaml.load(file.read_text(encoding="utf-8"), Loader=SafeLoader)
            facts = content["rosbag2_bagfile_information"]
            names = [Path(str(name)).name for name in facts["relative_file_paths"]]
            if only is not None and only not in names:
                return None  # of another bag in the same folder
            self.distro = str(facts.get("ros_distro") or "")
            # Before version 6 (Iron) no bag says which ROS wrote it, nor has hashes.
            if int(facts.get("version", 0)) >= 6 and self.distro in ("", "rosbags"):
                self.distro = "jazzy"
            for entry in facts["topics_with_message_count"]:
                entry = entry["topic_metadata"]
                if entry.get("serialization_format", "cdr") != "cdr":
                    self.problems.append(Problem(f"{entry['name']} is written as "
                                                 f"{entry['serialization_format']}; expected cdr"))
                self._hashes[str(entry["type"])] = str(entry.get("type_description_hash") or "")
            return names
        except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError,
                AttributeError) as error:
            self.problems.append(Problem(f"metadata.yaml cannot be read ({type(error).__name__}); the "
                                         "files are read by their names"))
            return None

    def _open(self, paths: list[Path]) -> None:
        faults = []
        for path in paths:
            try:
                self.files.append(BagFile(self._unpacked(path), path.name, self._hashes, self.distro))
            except BagError as error:
                faults.append(str(error))
                self.problems.append(Problem(str(error), lost=True))
        if not self.files:
            raise BagError(f"{self.path}: nothing in it can be read: {'; '.join(faults)}")

    def _unpacked(self, path: Path) -> Path:
        """Return a file that is compressed as a whole as one that is not."""
        if path.suffix not in COMPRESSED:
            return path
        from omni_ros.replay.bag_file import unpack

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="omni_replay_")
        target = Path(self._folder.name) / f"{len(self.files)}_{path.stem}"
        fault = unpack(path, target)
        if fault:
            self.problems.append(Problem(fault))
        return target


def _is_storage(path: Path) -> bool:
    suffix = path.suffix if path.suffix not in COMPRESSED else Path(path.stem).suffix
    return path.is_file() and suffix in STORAGES


def _no_copies(files: list[Path], named: Collection[str]) -> list[Path]:
    """Leave out the same messages once more: rosbag2's player leaves what it unpacks beside the packed."""
    packed = {file.stem: file.name for file in files if file.suffix in COMPRESSED}
    copies = {packed[file.name] if file.name in named else file.name for file in files
              if file.name in packed}
    return [file for file in files if file.name not in copies and not file.name.startswith(".")]


def _natural(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
