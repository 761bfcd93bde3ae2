# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint names, order and units, which no checkpoint holds: given by the user, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import yaml

from omni_ros.bundles.layout import JointName
from omni_ros.robot.units import POLICY_UNITS

RAW = "raw"
HOW = (
    "write NAME:UNIT,NAME:UNIT,... in the order of the data set's names, or a YAML file with "
    f"`joints: [{{name: ..., unit: ...}}]`; units are {', '.join(POLICY_UNITS)}. The word raw "
    "makes a bundle without names, for comparisons only: no robot is moved by it"
)

Names = Union[tuple[JointName, ...], str]


@dataclass(frozen=True)
class Joints:
    """What actions and states are, "raw" or by name.

    :param state: None where nothing was said about it: then it is the actions' joints, if there are
        as many.
    """

    action: Names
    state: Names | None = None

    def of_width(self, action: int, state: int) -> tuple[Names, Names]:
        """Return names for the actions and for the state.

        :raises ValueError: not as many as the checkpoint has.
        """
        _check_count("actions", self.action, action)
        if self.state is not None:
            _check_count("state values", self.state, state)
            return self.action, self.state
        if self.action != RAW and state != action:
            raise ValueError(
                f"the checkpoint has {action} actions and {state} state values, so the joints of "
                "the actions do not say what the state is; give a YAML file with `joints:` for the "
                "actions and `state:` for the state"
            )
        return self.action, self.action


def parse_joints(given: str | Path | Sequence[Any] | Joints | None) -> Joints:
    """Read what the user gave: "raw", "name:unit,...", a YAML file, or a list of (name, unit).

    :raises ValueError: it is none of these; the message says how to write it.
    """
    if isinstance(given, Joints):
        return given
    if given is None or (isinstance(given, str) and not given.strip()):
        raise ValueError(
            f"joints are not given, and a checkpoint says only how many there are; {HOW}"
        )
    if isinstance(given, str) and given.strip().lower() == RAW:
        return Joints(RAW)
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith((".yaml", ".yml"))):
        return _read_file(Path(given))
    if isinstance(given, str):
        given = [part.split(":", 1) for part in given.split(",")]
    return Joints(_names(given, "joints"))


def _read_file(path: Path) -> Joints:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ValueError(f"{path}: cannot be read ({reason}); {HOW}") from error
    if not isinstance(content, dict) or "joints" not in content:
        raise ValueError(f"{path}: has no list `joints:`; {HOW}")
    unknown = sorted(set(map(str, content)) - {"joints", "state"})
    if unknown:
        raise ValueError(f"{path}: has the unknown key {unknown[0]!r}; expected joints, state")
    state = content.get("state")
    return Joints(
        _names(content["joints"], f"{path}: joints"),
        None if state is None else _names(state, f"{path}: state"),
    )


def _names(given: Any, where: str) -> Names:
    if given == RAW:
        return RAW
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ValueError(f"{where} is {given!r}: expected a list; {HOW}")
    joints = []
    for entry in given:
        if isinstance(entry, dict):
            if set(entry) != {"name", "unit"}:
                raise ValueError(f"{where} has {entry!r}: expected name and unit; {HOW}")
            entry = (entry["name"], entry["unit"])
        if isinstance(entry, JointName):
            entry = (entry.name, entry.unit)
        words = [str(word).strip() for word in entry] if isinstance(entry, Sequence) else []
        if isinstance(entry, str) or len(words) != 2 or not all(words):
            given_as = ":".join(words) if words and not isinstance(entry, str) else entry
            raise ValueError(f"{where} has {given_as!r}: expected a name and a unit; {HOW}")
        name, unit = words
        if unit not in POLICY_UNITS:
            raise ValueError(
                f"{where}: {name} has the unit {unit!r}: expected one of "
                f"{', '.join(POLICY_UNITS)}, the one the data set was recorded in"
            )
        if any(joint.name == name for joint in joints):
            raise ValueError(f"{where} has {name} twice: each name stands once, in order")
        joints.append(JointName(name, unit))
    return tuple(joints)


def _check_count(what: str, names: Names, width: int) -> None:
    if names != RAW and len(names) != width:
        listed = ", ".join(joint.name for joint in names)
        raise ValueError(
            f"{len(names)} joints were given ({listed}), the checkpoint has {width} {what}: name "
            "each, in the order of the data set"
        )
