# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A mapping applied to one robot: its pictures and joints out, the remote policy's rows in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..robot.units import POLICY_UNITS, linear_map
from .errors import SettingsError
from .mapping import Joint, JointField, Key, RemoteMapping, StateField, key_path
from .pictures import resize_with_pad


class JointLike(Protocol):
    """What is asked of a robot's joint; `robot.Joint` has it."""

    name: str
    unit: str
    policy_unit: str
    policy_range: tuple[float, float]
    joint_range: tuple[float, float]


class MissingPicture(ValueError):
    """A camera that has to be shown has no picture."""


class RobotView:
    """The remote policy's view of one robot. Immutable; from any thread."""

    def __init__(
        self, mapping: RemoteMapping, joints: Sequence[JointLike], cameras: Sequence[str],
    ) -> None:
        """
        :param joints: of the robot, in its order. :param cameras: the robot's.
        :raises SettingsError: names or units that the robot does not have; all names are listed.
        """
        self.mapping = mapping
        self._joints = {joint.name: (index, joint) for index, joint in enumerate(joints)}
        self._count = len(joints)
        unknown = [f.camera for f in mapping.observation.cameras if f.camera not in cameras]
        if unknown:
            raise SettingsError(
                f"observation.cameras has {', '.join(unknown)}; the robot has "
                f"{', '.join(cameras) or 'no cameras'}"
            )
        self._state = [self._state_part(part) for part in mapping.observation.state]
        self._columns = self._action_columns()

    def observation(
        self, images: Mapping[str, np.ndarray | None], positions: np.ndarray, prompt: str
    ) -> dict[str, Any]:
        """Return what is sent.

        :param images: by the robot's cameras, uint8 [h, w, 3] RGB. :param positions: f64 [joints]
            in the units of the topics, in the robot's order.
        :raises MissingPicture: of a camera that is not optional.
        :raises ValueError: a position is not finite.
        """
        if not np.isfinite(positions).all():
            raise ValueError("a joint position is not finite; expected a number for every joint")
        fields = self.mapping.observation
        message: dict[str, Any] = dict(fields.constants or {})
        for entry in fields.cameras:
            image = images.get(entry.camera)
            if image is None:
                if entry.optional:
                    continue
                raise MissingPicture(f"no picture of {entry.camera}")
            if entry.size is not None:
                image = resize_with_pad(image, *entry.size)
            image = {"HWC": image, "CHW": image.transpose(2, 0, 1),
                     "BTHWC": image[None, None]}[entry.layout]  # fmt: skip
            _put(message, entry.key, image)
        for part, (index, scale, offset) in zip(fields.state, self._state, strict=True):
            values = np.zeros(part.pad_to or len(index), np.float32)
            values[:len(index)] = (positions[index] - offset) / scale
            _put(message, part.key, values.reshape((1,) * (len(part.layout) - 1) + (-1,)))
        _put(message, fields.prompt.key, [[prompt]] if fields.prompt.nested else prompt)
        return message

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return a reply's values [rows, columns] as f64 [rows, joints], topic units, robot's order.

        :raises ValueError: fewer columns than the mapping names.
        """
        columns, joints, scale, offset = self._columns
        if values.ndim != 2 or values.shape[1] < len(self.mapping.actions.columns):
            raise ValueError(
                f"actions {list(values.shape)}; the mapping names "
                f"{len(self.mapping.actions.columns)} columns"
            )
        absolute = self.mapping.actions.control_mode == "position"
        out = np.empty((len(values), self._count))
        out[:, joints] = values[:, columns] * scale + (offset if absolute else 0.0)
        return out[:self.mapping.actions.rows]

    def _state_part(self, part: StateField) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        where = f"observation.state {'/'.join(key_path(part.key))}"
        found = [self._joint(joint, where) for joint in part.joints]
        index, scale, offset = zip(*found, strict=True)
        return np.array(index), np.array(scale), np.array(offset)

    def _action_columns(self) -> tuple[np.ndarray, ...]:
        found = [
            (column, *self._joint(joint, "actions.columns"))
            for column, joint in enumerate(self.mapping.actions.columns) if joint is not None
        ]
        named = [index for _, index, _, _ in found]
        missing = [name for name, (index, _) in self._joints.items() if index not in named]
        if missing or len(set(named)) != len(named):
            fact = f"missing: {', '.join(missing)}" if missing else "one is named twice"
            raise SettingsError(
                f"actions.columns: every joint of the robot needs one column; {fact}"
            )
        return tuple(map(np.array, zip(*found, strict=True)))

    def _joint(self, given: Joint, where: str) -> tuple[int, float, float]:
        """Return the joint's place, and (scale, offset) with topic = remote * scale + offset."""
        entry = JointField(given) if isinstance(given, str) else given
        if entry.name not in self._joints:
            raise SettingsError(
                f"{where} has {entry.name!r}; the robot's joints are {', '.join(self._joints)}"
            )
        index, joint = self._joints[entry.name]
        if entry.unit is None:
            if entry.normalised is not None:
                raise SettingsError(f"{where}, {entry.name}: normalised without unit: normalised")
            return index, *linear_map(joint.policy_unit, joint.policy_range, joint.joint_range)
        fits = [
            unit
            for unit in POLICY_UNITS
            if unit not in {"rad": ("m",), "m": ("rad", "deg")}[joint.unit]
        ]
        if entry.unit not in fits:
            raise SettingsError(
                f"{where}, {entry.name}: unit is {entry.unit!r}; the joint moves in {joint.unit}: "
                f"write one of {', '.join(fits)}"
            )
        ends = entry.normalised
        if (entry.unit == "normalised") != (ends is not None):
            raise SettingsError(
                f"{where}, {entry.name}: unit: normalised and normalised: {{policy: [lo, hi], "
                "joint: [lo, hi]}} belong together"
            )
        if ends is None:
            return index, *linear_map(entry.unit, (0.0, 1.0), (0.0, 1.0))
        for name, pair in (("policy", ends.policy), ("joint", ends.joint)):
            if len(pair) != 2 or pair[0] == pair[1]:
                raise SettingsError(
                    f"{where}, {entry.name}: normalised.{name} is {list(pair)}; expected two "
                    "different ends"
                )
        return index, *linear_map("normalised", ends.policy, ends.joint)


def _put(message: dict[str, Any], key: Key, value: Any) -> None:
    *maps, name = key_path(key)
    for part in maps:
        message = message.setdefault(part, {})
    message[name] = value
