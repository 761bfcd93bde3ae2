# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What has to be shown to a policy again for each recorded chunk.

Where the stages of the policy were recorded, they say which pictures and which joint positions they
took, and nothing is left to judgement. In a bag from elsewhere the observation is found as the policy
would have found it: the chunk's stamp is that of its oldest picture, the others are the first ones after
it, and joints are nearest. What was not recorded is listed, not replaced.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omni_ros.policy.joint_history import JointHistory
from omni_ros.replay.contents import CAMERA, Chunk, Contents, Picture, to_ns
from omni_ros.replay.fingerprints import PICTURE, Fingerprint, read_fingerprint
from omni_ros.robot import Robot
from omni_ros.stages.fit import Fit

VISION, FUSION, HEAD = "vision_encoder", "fusion_backbone", "action_head"
#: A gap between two pictures this many times their usual distance is taken for a picture that was lost.
_GAP = 1.6


@dataclass(frozen=True)
class Wanted:
    """One picture that a chunk was decided from.

    :param camera: the bundle's name of it. :param digest: of its RGB bytes, None if not recorded.
    """

    camera: str
    topic: str
    stamp_ns: int
    digest: int | None = None


@dataclass
class Plan:
    """All that a chunk depended on.

    :param positions: by the robot's joint, in topic units. :param state: as recorded, in the policy's
        units; None if it was not. :param fresh_state: the same of joints that came after the
        observation, which the head ran on; None: on the observation's. :param drawn_noise: f32, flat,
        that somebody else asked for, with `steps`; None: that of the chunk's seed and stamp.
    :param leftover: f32 [rows, action], see `policy.rtc`.
    :param records: StageRecord messages. :param missing: what is not in the bag, in plain words.
    :param doubts: why another picture may have been meant.
    """

    chunk: Chunk
    instruction: str = ""
    wanted: tuple[Wanted, ...] = ()
    masked: tuple[str, ...] = ()
    positions: Mapping[str, float] = field(default_factory=dict)
    state: np.ndarray | None = None
    fresh_state: np.ndarray | None = None
    leftover: np.ndarray | None = None
    delay: int = 0
    steps: int = 0
    drawn_noise: np.ndarray | None = None
    prompt: np.ndarray | None = None
    normalised: np.ndarray | None = None
    records: tuple[Any, ...] = ()
    bundle: str = ""
    derived: bool = False
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @functools.cached_property
    def recorded(self) -> dict[str, Fingerprint]:
        """Fingerprints by name, as the stages recorded them."""
        found = (read_fingerprint(one) for record in self.records for one in record.fingerprints)
        return {one.name: one for one in found}


def make_plans(contents: Contents, robot: Robot, fit: Fit, *, source: str = "",
               instruction: str | None = None) -> list[Plan]:
    """Return a plan for each chunk of one source, in the order of the chunks.

    :param source: "" for the one that the stages' records name, else "local", else the only one.
    :param instruction: taken where none was recorded.
    :raises ValueError: several sources, none of them "local"; or none of the one that was given.
    """
    name = source or _source(contents)
    chunks = [chunk for chunk in contents.chunks if chunk.source == name]
    if source and not chunks:
        there = ", ".join(sorted({chunk.source for chunk in contents.chunks})) or "nobody"
        raise ValueError(f"the bag holds no chunk of source {source!r}; expected one whose chunks it "
                         f"holds: {there}")
    if contents.records:
        return [_from_records(contents, chunk, fit) for chunk in chunks]
    finder = _Finder(contents, robot, fit, instruction)
    return [finder.plan(chunk) for chunk in chunks]


def _source(contents: Contents) -> str:
    for (stage, _, _), record in contents.records.items():
        if stage == HEAD and record.source:
            return str(record.source)
    sources = sorted({chunk.source for chunk in contents.chunks})
    if "local" in sources or not sources:
        return "local"
    if len(sources) > 1:
        raise ValueError(f"the bag holds chunks of {', '.join(sources)}: say which ones by --source")
    return sources[0]


# -- as it was recorded --------------------------------------------------------------------------


def _from_records(contents: Contents, chunk: Chunk, fit: Fit) -> Plan:
    seq, head = chunk.observation_seq, contents.records.get(
        (HEAD, chunk.stamp_ns, chunk.observation_seq))
    # Joints that came after the observation stamp the chunk; the head's record says which one it was.
    observed_ns = chunk.stamp_ns if head is None else to_ns(head.header.stamp)
    records = {stage: contents.records.get((stage, observed_ns, seq)) for stage in (VISION, FUSION)}
    records[HEAD] = head
    plan = Plan(chunk, records=tuple(one for one in records.values() if one is not None))
    if head is not None or VISION in chunk.timings or not chunk.timings:  # else unknown which one it was
        _take_observation(plan, contents, records[VISION], fit)
    fusion = records[FUSION]
    if fusion is not None and len(fusion.prompt):
        mask = np.array(fusion.prompt_mask, bool)
        plan.prompt = np.where(mask, np.array(fusion.prompt, np.int64), -1)
    _take_head(plan, records[HEAD])
    return plan


def _take_observation(plan: Plan, contents: Contents, record: Any, fit: Fit) -> None:
    if record is None:
        plan.missing.append(f"the {VISION}'s record of observation {plan.chunk.observation_seq}")
        return
    plan.instruction, plan.bundle = str(record.instruction).strip(), str(record.bundle)
    plan.masked = tuple(map(str, record.masked_cameras))
    robot_cameras = dict(zip(map(str, contents.info.bundle_cameras),
                             map(str, contents.info.robot_cameras))) if contents.info else fit.cameras
    wanted, digests = [], {one.name: int(one.digest) for one in record.fingerprints}
    for camera, stamp in zip(map(str, record.cameras), record.picture_stamps):
        role = CAMERA + robot_cameras.get(camera, camera)
        wanted.append(Wanted(camera, contents.topics.get(role, ""), to_ns(stamp),
                             digests.get(PICTURE + camera)))
    plan.wanted = tuple(wanted)
    plan.positions = dict(zip(map(str, record.joint_names), map(float, record.positions)))
    plan.state = np.array(record.state, np.float64) if len(record.state) else None


def _take_head(plan: Plan, record: Any) -> None:
    if record is None:
        plan.missing.append(f"the {HEAD}'s record of chunk {plan.chunk.chunk_id}")
        return
    width = len(plan.chunk.joint_names)
    plan.steps, plan.delay = int(record.steps), int(record.delay_rows)
    if len(getattr(record, "fresh_state", ())):
        plan.fresh_state = np.array(record.fresh_state, np.float64)
    if len(getattr(record, "drawn_noise", ())):
        plan.drawn_noise = np.array(record.drawn_noise, np.float32)
    if len(record.normalised) == plan.chunk.values.size:
        plan.normalised = np.array(record.normalised, np.float32).reshape(-1, width)
    if record.guided and len(record.leftover):
        plan.leftover = np.array(record.leftover, np.float32).reshape(-1, width)


def picture_words(camera: str, stamp_ns: int) -> str:
    """Return the name of a picture in words."""
    return f"the picture of {camera} stamped {stamp_ns * 1e-9:.6f} s"


# -- as the policy would have found it -----------------------------------------------------------


class _Finder:
    def __init__(self, contents: Contents, robot: Robot, fit: Fit, instruction: str | None) -> None:
        self._contents, self._robot, self._given = contents, robot, instruction
        self._topics = _camera_topics(contents, robot, fit)
        policy = robot.policy
        self._slop_ns = round((policy.slop_s if policy else 0.05) * 1e9)
        self._span_ns = round((policy.image_timeout_s if policy else 0.5) * 1e9) + self._slop_ns
        self._guided = policy is not None and policy.guidance == "rtc"
        self._said = [log_ns for log_ns, _ in contents.instructions]
        self._moved = [one.log_ns for one in contents.joints]
        self._periods = {topic: _period(pictures) for topic, pictures in contents.pictures.items()}
        self._statuses = sorted(
            (to_ns(status.observation_stamp), str(status.instruction))
            for status, _ in contents.messages("policy_status") if str(status.stage) == HEAD)
        self._first = True

    def plan(self, chunk: Chunk) -> Plan:
        plan = Plan(chunk, derived=True)
        taken_ns = self._taken(chunk)
        self._pictures(plan)
        self._joints(plan, taken_ns)
        self._sentence(plan, taken_ns)
        if self._guided and not self._first:
            plan.missing.append("what was left of the chunk before, which it went on from (guidance: "
                                "rtc; only a recorder of this package writes it)")
        self._first = False
        return plan

    def _taken(self, chunk: Chunk) -> int:
        """Return when the observation was taken: what came later cannot have counted."""
        if "arrival" in chunk.timings and "intake" in chunk.timings:
            spent_s = chunk.timings["arrival"] + chunk.timings["intake"]
            return min(chunk.log_ns, chunk.stamp_ns + round(spent_s * 1e9))
        return chunk.log_ns

    def _pictures(self, plan: Plan) -> None:
        stamp_ns, wanted, oldest = plan.chunk.stamp_ns, [], []
        for camera, topic in self._topics.items():
            if topic not in self._contents.pictures:
                plan.missing.append(f"any picture of {camera}: its topic is not in the bag")
                continue
            pictures = self._contents.pictures[topic]
            index = bisect_left(pictures, Picture(stamp_ns, -(1 << 63)))
            if index == len(pictures) or pictures[index].stamp_ns - stamp_ns > self._slop_ns:
                plan.missing.append(f"a picture of {camera} from {stamp_ns * 1e-9:.6f} s to "
                                    f"{self._slop_ns * 1e-6:.0f} ms later")
                continue
            found = pictures[index].stamp_ns
            wanted.append(Wanted(camera, topic, found))
            oldest.append(found == stamp_ns)
            period = self._periods[topic]
            before = pictures[index - 1].stamp_ns if index else None
            if found > stamp_ns and before is not None and period and (
                    found - before > _GAP * period):
                plan.doubts.append(f"{camera} sends a picture every {period * 1e-6:.0f} ms, and none is "
                                   f"there for the {(found - before) * 1e-6:.0f} ms before "
                                   f"{found * 1e-9:.6f} s")
        plan.wanted = tuple(wanted)
        if wanted and not any(oldest) and not plan.missing:
            plan.missing.append(f"the picture that chunk {plan.chunk.chunk_id} is stamped by, "
                                f"{stamp_ns * 1e-9:.6f} s, of any camera")

    def _joints(self, plan: Plan, taken_ns: int) -> None:
        history = JointHistory(self._robot.joint_names, span_ns=self._span_ns)
        first = bisect_left(self._moved, taken_ns - self._span_ns)
        for one in self._contents.joints[first:bisect_right(self._moved, taken_ns)]:
            history.add(one.names, one.positions, one.stamp_ns, one.log_ns)
        pose = history.nearest(plan.chunk.stamp_ns, 0, until_ns=taken_ns + 50_000_000)
        if pose is None:
            names = ", ".join(history.missing())
            plan.missing.append(f"joint states of {names} within {self._span_ns * 1e-9:.2f} s before "
                                f"{taken_ns * 1e-9:.3f} s")
            return
        plan.positions = dict(zip(self._robot.joint_names, map(float, pose.positions)))

    def _sentence(self, plan: Plan, taken_ns: int) -> None:
        index = bisect_right(self._said, taken_ns) - 1
        if index >= 0:
            plan.instruction = self._contents.instructions[index][1]
        elif self._given is not None:
            plan.instruction = self._given
        else:
            # A sentence given when the graph was started is on no topic; the stages repeat it.
            at = bisect_left(self._statuses, (plan.chunk.stamp_ns, ""))
            if at < len(self._statuses):
                plan.instruction = self._statuses[at][1].strip()
        if not plan.instruction:
            plan.missing.append("the instruction: give it by --instruction")


def _camera_topics(contents: Contents, robot: Robot, fit: Fit) -> dict[str, str]:
    """Return the bag's topic of each camera of the bundle."""
    there = {role[len(CAMERA):]: topic for role, topic in contents.topics.items()
             if role.startswith(CAMERA)}
    topics = {}
    for camera, name in fit.cameras.items():
        wanted = robot.cameras[name]
        ends = [f"/{wanted.lstrip('/')}", f"/{wanted.lstrip('/')}/compressed"]
        topics[camera] = there.get(name) or next(
            (topic for topic in there.values() for end in ends if topic.endswith(end)), wanted)
    return topics


def _period(pictures: Sequence[Picture]) -> int:
    stamps = np.array([one.stamp_ns for one in pictures], np.int64)
    return int(np.median(np.diff(stamps))) if len(stamps) > 4 else 0
