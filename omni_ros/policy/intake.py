# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From what cameras and joints send to one observation: what belongs together, and how old it is.

The semantics of message_filters' ApproximateTime with three differences. The newest set wins, and
older pictures are passed over. Joints come by name, from any number of messages. And it is loud:
where no set is found it says which camera or joint is missing, by how much, and what was allowed.

Ages are taken twice, by the stamp and by when a message came, because a clock that is wrong makes
one of them right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from omni_ros.policy.joint_history import JointHistory, Pose
from omni_ros.robot import PolicyConfig

#: How far a stamp may lie ahead of the clock, as clocks differ: the player's default too.
FUTURE_NS = 50_000_000
#: Waiting for longer than this deserves a warning.
LOUD_S = 1.0

NO_PICTURE = "no_picture"  # a camera has not sent any
PICTURE_STALE = "picture_stale"  # a camera has stopped sending
NOT_SYNCHRONISED = "not_synchronised"  # no pictures within the slop
NO_JOINTS = "no_joints"  # a joint was never measured
JOINTS_STALE = "joints_stale"  # joint states have stopped
JOINTS_APART = "joints_apart"  # no joint state within the slop
CLOCK = "clock"  # stamps that cannot be: ahead of the clock, or far behind it and just sent
NOTHING_NEW = "nothing_new"  # all is well, the next pictures have not come
CODES = (NO_PICTURE, PICTURE_STALE, NOT_SYNCHRONISED, NO_JOINTS, JOINTS_STALE, JOINTS_APART, CLOCK,
         NOTHING_NEW)


class Picture(NamedTuple):
    """An image message that was received."""

    message: Any
    stamp_ns: int
    received_ns: int


@dataclass(frozen=True)
class Assembled:
    """One observation, not yet converted.

    :param stamp_ns: of its oldest picture; it is the observation's. :param images: messages by
        camera. :param positions: float64 [joints], as published, each sample the nearest in stamp.
    :param ages_s: by stamp, of each camera and "joints", at the time it was picked.
    :param receipt_ages_s: the same by when they came. :param received_ns: when the last of its
        pictures came, on the monotonic clock. :param notices: of what deserves a warning all the
        same, in plain words.
    """

    stamp_ns: int
    images: Mapping[str, Any]
    positions: np.ndarray
    picture_stamps: Mapping[str, int]
    ages_s: Mapping[str, float]
    receipt_ages_s: Mapping[str, float]
    received_ns: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """Why there is no observation.

    :param code: one of `CODES`. :param text: the same with names and numbers.
    :param for_s: since one was first asked for in vain.
    """

    code: str
    text: str
    for_s: float = 0.0

    @property
    def loud(self) -> bool:
        """True if a person should hear of it."""
        return self.for_s >= LOUD_S


class ObservationIntake:
    """Keeps the last few messages and picks what belongs together. For one thread."""

    def __init__(self, cameras: Sequence[str], joints: Sequence[str], config: PolicyConfig, *,
                 keep: int = 4, span_s: float = 0.0) -> None:
        """
        :param cameras: all of which an observation has. :param joints: names as published, in the
            order of `Assembled.positions`. :param keep: pictures kept of each camera.
        :param span_s: how far back joints are kept at least, for :meth:`at`.
        """
        self._cameras, self._config, self._keep = tuple(cameras), config, keep
        self._slop_ns = round(config.slop_s * 1e9)
        self._joints = JointHistory(joints, span_ns=round(
            max(config.image_timeout_s + config.slop_s, span_s) * 1e9))
        self.reset()

    def reset(self) -> None:
        """Forget all messages, as after a jump of the clock or while inactive."""
        self._pictures: dict[str, deque[Picture]] = {
            camera: deque(maxlen=self._keep) for camera in self._cameras
        }
        self._joints.clear()
        self._last_stamp_ns = self._last_now_ns = -1
        self._since_ns: int | None = None

    def add_image(self, camera: str, message: Any, stamp_ns: int, received_ns: int) -> None:
        """Take a picture.

        :param received_ns: on the monotonic clock; with simulated time, on that one like stamps.
        :raises KeyError: not one of the cameras.
        """
        self._pictures[camera].append(Picture(message, int(stamp_ns), int(received_ns)))

    def add_joints(self, names: Sequence[str], positions: Sequence[float], stamp_ns: int,
                   received_ns: int) -> None:
        """Take a joint state; of any of the joints, and of others, which are passed over.

        A stamp of 0 (a driver that sets none) counts as the time at which it came.
        """
        self._joints.add(names, positions, int(stamp_ns), int(received_ns))

    def pick(self, now_ns: int, mono_now_ns: int) -> Assembled | Waiting:
        """Return the newest observation that there is and was not picked before, or why not.

        :param now_ns: ROS time. :param mono_now_ns: of the clock of `received_ns`.
        """
        if now_ns < self._last_now_ns:
            self.reset()
        self._last_now_ns = now_ns
        clock = _Clock(now_ns, mono_now_ns)
        for pictures in self._sets(clock):
            stamp_ns = min(picture.stamp_ns for picture in pictures.values())
            pose = self._joints.nearest(stamp_ns, clock.offset_ns, until_ns=now_ns + FUTURE_NS)
            if pose is not None and self._pose_fits(pose, clock):
                self._last_stamp_ns, self._since_ns = stamp_ns, None
                return self._assembled(stamp_ns, pictures, pose, clock)
        if self._since_ns is None:
            self._since_ns = mono_now_ns
        code, text = self._reason(clock)
        return Waiting(code, text, (mono_now_ns - self._since_ns) * 1e-9)

    def at(self, stamp_ns: int, now_ns: int, mono_now_ns: int) -> Assembled | None:
        """Return the observation of a stamp that somebody else has picked, however old it is.

        None if a message of it is not kept, or any more.
        """
        pictures = {}
        for camera, kept in self._pictures.items():
            late = [p for p in kept if 0 <= p.stamp_ns - stamp_ns <= self._slop_ns]
            if not late:
                return None
            pictures[camera] = min(late, key=lambda p: p.stamp_ns)
        clock = _Clock(now_ns, mono_now_ns)
        pose = self._joints.nearest(stamp_ns, clock.offset_ns, until_ns=now_ns + FUTURE_NS)
        if (min(p.stamp_ns for p in pictures.values()) != stamp_ns or pose is None
                or pose.spread_ns > self._slop_ns):
            return None
        return self._assembled(stamp_ns, pictures, pose, clock)

    def _sets(self, clock: _Clock) -> Iterator[dict[str, Picture]]:
        """Yield sets of pictures within the slop, the newest first: by their oldest stamp."""
        usable = {
            camera: sorted((p for p in kept if self._usable(p, clock)), key=lambda p: p.stamp_ns)
            for camera, kept in self._pictures.items()
        }
        oldest = {p.stamp_ns for kept in usable.values() for p in kept}
        for stamp_ns in sorted(oldest, reverse=True):
            if stamp_ns <= self._last_stamp_ns:
                return
            pictures = {}
            for camera, kept in usable.items():
                # The first one not before it: the nearest of those it can be the oldest of.
                index = bisect_left(kept, stamp_ns, key=lambda p: p.stamp_ns)
                if index == len(kept) or kept[index].stamp_ns - stamp_ns > self._slop_ns:
                    break
                pictures[camera] = kept[index]
            else:
                yield pictures

    def _usable(self, picture: Picture, clock: _Clock) -> bool:
        limit = self._config.image_timeout_s
        return (-FUTURE_NS <= clock.age_ns(picture.stamp_ns) <= limit * 1e9
                and clock.receipt_age_ns(picture.received_ns) <= limit * 1e9)

    def _pose_fits(self, pose: Pose, clock: _Clock) -> bool:
        limit = self._config.joints_timeout_s
        return (pose.spread_ns <= self._slop_ns and clock.age_ns(pose.oldest_ns) <= limit * 1e9
                and clock.receipt_age_ns(pose.received_ns) <= limit * 1e9)

    def _assembled(self, stamp_ns: int, pictures: dict[str, Picture], pose: Pose, clock: _Clock
                   ) -> Assembled:
        ages = {camera: clock.age_ns(p.stamp_ns) * 1e-9 for camera, p in pictures.items()}
        receipt = {camera: clock.receipt_age_ns(p.received_ns) * 1e-9
                   for camera, p in pictures.items()}
        ages["joints"] = clock.age_ns(pose.oldest_ns) * 1e-9
        receipt["joints"] = clock.receipt_age_ns(pose.received_ns) * 1e-9
        half = self._config.image_timeout_s / 2
        notices = tuple(
            f"{name} was stamped {ages[name] - receipt[name]:.2f} s before it came: its clock is "
            "off, or it is slow to send" for name in ages if ages[name] - receipt[name] > half
        )
        return Assembled(
            stamp_ns=stamp_ns, images={camera: p.message for camera, p in pictures.items()},
            positions=pose.positions, picture_stamps={c: p.stamp_ns for c, p in pictures.items()},
            ages_s=ages, receipt_ages_s=receipt,
            received_ns=max(p.received_ns for p in pictures.values()), notices=notices,
        )

    def _reason(self, clock: _Clock) -> tuple[str, str]:
        from omni_ros.policy.intake_reasons import reason

        return reason(self._pictures, self._joints, self._config, clock, self._last_stamp_ns)


@dataclass(frozen=True)
class _Clock:
    now_ns: int
    mono_now_ns: int

    @property
    def offset_ns(self) -> int:
        """What has to be added to a time of receipt to compare it with stamps."""
        return self.now_ns - self.mono_now_ns

    def age_ns(self, stamp_ns: int) -> int:
        return self.now_ns - stamp_ns

    def receipt_age_ns(self, received_ns: int) -> int:
        return self.mono_now_ns - received_ns
