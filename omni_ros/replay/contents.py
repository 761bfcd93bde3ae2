# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bag holds of a policy at work: chunks, what each stage said of them, and what it was shown.

Pictures stay in the bag: here are their stamps only, so that a long bag needs no memory to speak of.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omni_ros.replay.bag import Bag, Entry, Problem
from omni_ros.replay.bag_file import BagError
from omni_ros.replay.types import UnknownType

CHUNK, RECORD, INFO = ("omni_ros/msg/ActionChunk", "omni_ros/msg/StageRecord",
                       "omni_ros/msg/RecordingInfo")
HEARTBEAT, POLICY_STATUS, PLAYER_STATUS = (
    "omni_ros/msg/Heartbeat", "omni_ros/msg/PolicyStatus", "omni_ros/msg/PlayerStatus")
JOINT_STATE, STRING = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
#: Roles that can be told by type alone, where nobody has said what is what.
_BY_TYPE = {CHUNK: "action_chunk", RECORD: "policy_record", HEARTBEAT: "heartbeat",
            POLICY_STATUS: "policy_status", PLAYER_STATUS: "player_status",
            JOINT_STATE: "joint_states", INFO: "recording_info"}
_BY_NAME = ("instruction", "recording_report", "protective_stop")
CAMERA = "camera/"
#: What every replay needs; the rest is read when it is asked for.
_FIRST = ("action_chunk", "policy_record", "recording_report")


@dataclass(frozen=True)
class Chunk:
    """A recorded ActionChunk. values: f64 [rows, joints]; timings: seconds by stage, added up."""

    chunk_id: int
    source: str
    stamp_ns: int
    observation_seq: int
    noise_seed: int
    dt_ns: int
    joint_names: tuple[str, ...]
    joint_units: tuple[str, ...]
    values: np.ndarray
    timings: Mapping[str, float]
    log_ns: int
    message: Any


@dataclass(frozen=True)
class Joints:
    """A recorded JointState; `stamp_ns` 0 if it had none."""

    names: tuple[str, ...]
    positions: np.ndarray
    velocities: np.ndarray
    stamp_ns: int
    log_ns: int


@dataclass(frozen=True, order=True)
class Picture:
    """Where a picture lies: by the header's stamp, and by when it was recorded."""

    stamp_ns: int
    log_ns: int


@dataclass
class Contents:
    """What is in a bag.

    :param topics: by role. :param records: StageRecord messages by stage, stamp and observation_seq;
        an action head's by the stamp of its chunk, which may be of joints after the observation.
    :param report: the recorder's last words. :param raw: messages by topic, as far as they were read.
    """

    bag: Bag
    topics: dict[str, str] = field(default_factory=dict)
    info: Any = None
    chunks: list[Chunk] = field(default_factory=list)
    records: dict[tuple[str, int, int], Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, list[Entry]] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        return self.bag.problems

    @functools.cached_property
    def pictures(self) -> dict[str, list[Picture]]:
        """All pictures by topic, sorted by stamp."""
        topics = {topic for role, topic in self.topics.items() if role.startswith(CAMERA)}
        found: dict[str, list[Picture]] = {topic: [] for topic in topics}
        for entry in self.bag.load((), peek=topics):
            found[entry.topic].append(Picture(stamp_of(entry.data), entry.log_ns))
        return {topic: sorted(pictures) for topic, pictures in found.items()}

    @functools.cached_property
    def joints(self) -> list[Joints]:
        """All joint states, in the order in which they came."""
        found = [Joints(tuple(map(str, one.name)), np.array(one.position, np.float64),
                        np.array(one.velocity, np.float64), to_ns(one.header.stamp), log_ns)
                 for one, log_ns in self.messages("joint_states")]
        return sorted(found, key=lambda one: (one.log_ns, one.stamp_ns))

    @functools.cached_property
    def instructions(self) -> list[tuple[int, str]]:
        """When each sentence came, and the sentence."""
        return sorted((log_ns, str(one.data).strip()) for one, log_ns in
                      self.messages("instruction"))

    def messages(self, role: str) -> Iterator[tuple[Any, int]]:
        """Yield the messages of a role and when each came; what cannot be read is said once."""
        topic = self.topics.get(role)
        if topic is None:
            return
        if topic not in self.raw:
            self.raw[topic] = self.bag.load({topic})
        entries = self.raw[topic]
        faulty, fault = 0, ""
        for entry in entries:
            try:
                message = self.bag.decode(entry)
            except UnknownType as error:
                faulty, fault = len(entries), str(error)
                break
            except ValueError as error:
                faulty, fault = faulty + 1, fault or str(error)
            else:
                yield message, entry.log_ns
        if faulty:
            self.problems.append(Problem(
                f"{faulty} of {len(entries)} messages of {topic} cannot be read: {fault}", lost=True))


def read_contents(bag: Bag, namespace: str = "") -> Contents:
    """Read all but the pictures.

    :param namespace: of the policy, where a bag holds several ones.
    :raises BagError: there is no chunk, or it is not clear which one of several is meant.
    """
    contents = Contents(bag)
    contents.topics = _roles(bag, namespace, contents)
    if "action_chunk" not in contents.topics:
        raise BagError(f"{bag.path} holds no {CHUNK}" + (f" below {namespace}" if namespace else "")
                       + f": there is nothing to compare with. It holds {_list(bag.topics)}")
    first = {topic for role, topic in contents.topics.items() if role in _FIRST}
    contents.raw = {topic: [] for topic in first}
    for entry in bag.load(first):
        contents.raw[entry.topic].append(entry)
    contents.chunks = sorted(_chunks(contents), key=lambda one: (one.log_ns, one.source, one.chunk_id))
    for message, _ in contents.messages("policy_record"):
        stamp = getattr(message, "chunk_stamp", None)  # of a chunk; not in older recordings
        stamp_ns = (to_ns(stamp) if stamp is not None else 0) or to_ns(message.header.stamp)
        contents.records[str(message.stage), stamp_ns, int(message.observation_seq)] = message
    _read_report(contents)
    return contents


def stamp_of(data: bytes) -> int:
    """Return the stamp of a message that begins with a header, from its first bytes."""
    if len(data) < 12:
        return 0
    seconds, nanoseconds = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, 4)
    return seconds * 1_000_000_000 + nanoseconds


def to_ns(stamp: Any) -> int:
    """Nanoseconds of a stamp or a duration."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _chunks(contents: Contents) -> Iterator[Chunk]:
    for message, log_ns in contents.messages("action_chunk"):
        names = tuple(map(str, message.joint_names))
        values = np.array(message.values, np.float64)
        if values.size != int(message.rows) * len(names) or not values.size:
            contents.problems.append(Problem(
                f"chunk {message.chunk_id} has {values.size} values; expected {message.rows} rows of "
                f"{len(names)} joints: it is passed over", lost=True))
            continue
        timings: dict[str, float] = {}
        for entry in message.timings:
            name = str(entry.stage)
            timings[name] = timings.get(name, 0.0) + to_ns(entry.duration) * 1e-9
        yield Chunk(
            int(message.chunk_id), str(message.source), to_ns(message.header.stamp),
            int(message.observation_seq), int(message.noise_seed), to_ns(message.dt), names,
            tuple(map(str, message.joint_units)), values.reshape(-1, len(names)), timings, log_ns,
            message)


def _roles(bag: Bag, namespace: str, contents: Contents) -> dict[str, str]:
    """Return the topic of each role: as the recording says, else by type and name."""
    namespace = "/" + namespace.strip("/") + "/" if namespace.strip("/") else ""
    topics = {topic: kind for topic, kind in bag.topics.items()
              if not namespace or topic.startswith(namespace)}
    infos = [topic for topic, kind in topics.items() if kind == INFO]
    if len(infos) > 1:
        raise BagError(f"{bag.path} holds {len(infos)} recordings ({', '.join(sorted(infos))}): say "
                       "which one by --namespace")
    if infos:
        roles = _said(bag, infos[0], contents)
        if roles:
            return {role: topic for role, topic in roles.items() if topic in bag.topics}
    roles, several = {}, {}
    for topic, kind in sorted(topics.items()):
        role = _BY_TYPE.get(kind)
        last = topic.rsplit("/", 1)[-1]
        if role is None and kind in (STRING, "std_msgs/msg/Bool") and last in _BY_NAME:
            role = last
        if kind in IMAGES:
            role = CAMERA + topic
        if role in roles:
            several.setdefault(role, [roles[role]]).append(topic)
        elif role is not None:
            roles[role] = topic
    wrong = {role: found for role, found in several.items()
             if role in ("action_chunk", "instruction", "joint_states")}
    if wrong:
        role, found = next(iter(wrong.items()))
        raise BagError(f"{bag.path} holds {len(found)} topics that could be {role} "
                       f"({', '.join(found)}): say which one by --namespace")
    return roles


def _said(bag: Bag, topic: str, contents: Contents) -> dict[str, str]:
    """Return the roles that the recording's own message tells, and keep that message."""
    for entry in bag.load({topic}):
        try:
            message = bag.decode(entry)
            contents.info = message
        except ValueError as error:
            bag.problems.append(Problem(f"what the recording says of itself cannot be read: {error}"))
            break
    if contents.info is None:
        return {}
    roles = dict(zip(map(str, contents.info.roles), map(str, contents.info.topics)))
    roles["recording_info"] = topic
    for one, kind in bag.topics.items():
        if kind == STRING and one.endswith("/recording_report"):
            roles.setdefault("recording_report", one)
    return roles


def _read_report(contents: Contents) -> None:
    """Take the recorder's last words, and what it says that it lost."""
    for message, _ in contents.messages("recording_report"):
        try:
            found = json.loads(str(message.data))
        except ValueError:
            continue
        contents.report = found if isinstance(found, dict) else contents.report
    lost = contents.report.get("lost")
    for topic, count in (lost.items() if isinstance(lost, dict) else ()):
        if isinstance(count, int) and count > 0:
            contents.problems.append(Problem(
                f"the recorder lost {count} messages of {topic}", lost=topic in (
                    contents.topics.get("action_chunk"), contents.topics.get("policy_record"))))


def _list(topics: Mapping[str, str]) -> str:
    shown = [f"{topic} ({kind})" for topic, kind in sorted(topics.items())]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "") or (
        "no topic")
