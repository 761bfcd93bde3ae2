# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a robot YAML. Everything that could move an arm wrongly is refused here."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Mapping

from omni_ros.robot.errors import RobotConfigError, is_finite, known, shown
from omni_ros.robot.player_config import player_config
from omni_ros.robot.policy_config import policy_config
from omni_ros.robot.robot import Joint, Robot
from omni_ros.robot.units import KINDS, POLICY_UNITS, TOPIC_UNITS

DEFAULT_TOPICS: dict[str, Any] = {
    "joint_states": "joint_states",
    "joint_trajectory": "joint_trajectory_controller/joint_trajectory",
    "forward_position": "forward_position_controller/commands",
    "forward_velocity": "forward_velocity_controller/commands",
    "cameras": {},
}
_ROBOT_KEYS = ("name", "base_frame", "topics", "player", "policy", "joints")
_JOINT_KEYS = (
    "name", "kind", "unit", "policy_name", "policy_unit", "position", "margin",
    "velocity", "acceleration", "jerk", "home", "normalised",
)  # fmt: skip
#: A revolute limit beyond two turns either way is taken for degrees written as radians.
_LARGEST_ANGLE = 4.0 * math.pi
#: What ROS takes for a topic: words of letters, digits, _ and {substitutions} between slashes, no
#: word beginning with a digit; the whole may begin with / or ~/.
_SUBSTITUTION = r"\{[A-Za-z_][A-Za-z0-9_]*\}"
_TOPIC_WORD = rf"(?:[A-Za-z_]|{_SUBSTITUTION})(?:[A-Za-z0-9_]|{_SUBSTITUTION})*"
_TOPIC = re.compile(rf"(?:~?/)?{_TOPIC_WORD}(?:/{_TOPIC_WORD})*")


def load_robot(path: str | Path) -> Robot:
    """Read and check a robot YAML.

    Raises RobotConfigError (a ValueError) naming the joint, the value, what was expected and
    what to write instead.
    """
    path = Path(path)
    data = read_yaml(path)
    try:
        return robot_from_mapping(data)
    except RobotConfigError as error:
        raise RobotConfigError(f"{path}: {error}") from error


def robot_from_text(text: str, what: str) -> Robot:
    """Build a Robot from the text of a YAML that was kept somewhere; `what` names it in errors."""
    from omni_ros.bundles import strict_yaml

    try:
        return robot_from_mapping(strict_yaml.load(text))
    except ValueError as error:
        raise RobotConfigError(f"{what}: the robot YAML in it is refused: {error}") from error


def read_yaml(path: Path) -> Any:
    """Parse a robot file; raises RobotConfigError with its name if it is not plain YAML."""
    # Here, not at the top: bundles are built of more than YAML, and this needs no more of them.
    from omni_ros.bundles import strict_yaml

    try:
        return strict_yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RobotConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise RobotConfigError(
            f"{path}: byte {error.start} is not UTF-8: save the file as UTF-8 text"
        ) from error
    except ValueError as error:
        raise RobotConfigError(f"{path}: is not YAML as expected: {error}") from error


def robot_from_mapping(data: Any) -> Robot:
    """Build a Robot from the parsed YAML; raises RobotConfigError."""
    data = _mapping(data, "the robot YAML", _ROBOT_KEYS)
    entries = data.get("joints")
    if not isinstance(entries, list) or not entries:
        raise RobotConfigError(f"joints is {entries!r}, expected a list with at least one joint")
    joints = tuple(_joint(entry, index) for index, entry in enumerate(entries))
    for attribute in ("name", "policy_name"):
        _no_repeats([getattr(joint, attribute) for joint in joints], attribute)
    _no_permutation(joints)
    topics, player = _topics(data.get("topics", {})), player_config(data.get("player"))
    return Robot(
        name=_word(data.get("name"), "name"),
        base_frame=_word(data.get("base_frame", "base_link"), "base_frame"),
        joints=joints,
        topics=topics,
        player=player,
        policy=policy_config(data.get("policy"), cameras=topics["cameras"], player=player),
    )


def _joint(entry: Any, index: int) -> Joint:
    entry = _mapping(entry, f"joints[{index}]", _JOINT_KEYS)
    name = _word(entry.get("name"), f"joints[{index}].name")
    kind = _choice(entry.get("kind", "revolute"), f"joint {name}: kind", tuple(KINDS))
    unit = _choice(entry.get("unit", KINDS[kind]), f"joint {name}: unit", TOPIC_UNITS)
    if kind != "gripper" and unit != KINDS[kind]:
        raise RobotConfigError(
            f"joint {name}: unit is {unit!r}, expected {KINDS[kind]!r} for a {kind} joint"
        )
    policy_unit = _policy_unit(entry.get("policy_unit", unit), name, unit)
    lower, upper = _position(entry.get("position"), name, unit)
    margin = _number(entry.get("margin", 0.0), f"joint {name}: margin")
    if margin < 0.0 or lower + margin >= upper - margin:
        raise RobotConfigError(
            f"joint {name}: margin is {margin}, expected 0 or more and less than half of the range"
            f" {upper - lower:g}: write a smaller margin"
        )
    home = _number(entry.get("home", (lower + upper) / 2), f"joint {name}: home")
    if not lower + margin <= home <= upper - margin:
        raise RobotConfigError(
            f"joint {name}: home is {home}, expected {lower + margin:g} to {upper - margin:g}"
            " (position limits less the margin)"
        )
    policy_range, joint_range = _normalised(entry.get("normalised"), name, policy_unit)
    return Joint(
        name=name,
        kind=kind,
        unit=unit,
        policy_name=_word(entry.get("policy_name", name), f"joint {name}: policy_name"),
        policy_unit=policy_unit,
        lower=lower,
        upper=upper,
        margin=margin,
        velocity=_positive(entry, name, "velocity", f"{unit}/s"),
        acceleration=_positive(entry, name, "acceleration", f"{unit}/s2"),
        jerk=_positive(entry, name, "jerk", f"{unit}/s3"),
        home=home,
        policy_range=policy_range,
        joint_range=joint_range,
    )


def _policy_unit(given: Any, name: str, unit: str) -> str:
    policy_unit = _choice(given, f"joint {name}: policy_unit", POLICY_UNITS)
    fits = {"rad": ("rad", "deg", "normalised"), "m": ("m", "normalised")}[unit]
    if policy_unit not in fits:
        raise RobotConfigError(
            f"joint {name}: policy_unit is {policy_unit!r}, but the joint moves in {unit!r}:"
            f" write one of {', '.join(fits)}"
        )
    return policy_unit


def _position(given: Any, name: str, unit: str) -> tuple[float, float]:
    lower, upper = _range(given, f"joint {name}: position")
    largest = max(abs(lower), abs(upper))
    if unit == "rad" and largest > _LARGEST_ANGLE:
        raise RobotConfigError(
            f"joint {name}: position is [{lower:g}, {upper:g}], which looks like degrees; expected"
            f" radians within +-{_LARGEST_ANGLE:.2f}: write [{math.radians(lower):.4f},"
            f" {math.radians(upper):.4f}] (policy_unit: deg is for what the policy speaks)"
        )
    return lower, upper


def _normalised(
    given: Any, name: str, policy_unit: str
) -> tuple[tuple[float, float], tuple[float, float]]:
    if policy_unit != "normalised":
        if given is not None:
            raise RobotConfigError(
                f"joint {name}: normalised is given, but policy_unit is {policy_unit!r}: remove it,"
                " or write policy_unit: normalised"
            )
        return (0.0, 1.0), (0.0, 1.0)
    if given is None:
        raise RobotConfigError(
            f"joint {name}: policy_unit is normalised, expected also"
            " normalised: {policy: [lo, hi], joint: [lo, hi]}"
        )
    given = _mapping(given, f"joint {name}: normalised", ("policy", "joint"))
    policy_range = _range(given.get("policy"), f"joint {name}: normalised.policy")
    # The joint may run the other way than the policy, so only equal ends are wrong here.
    joint_range = _range(given.get("joint"), f"joint {name}: normalised.joint", ordered=False)
    return policy_range, joint_range


def _topics(given: Any) -> dict[str, Any]:
    given = _mapping(given, "topics", tuple(DEFAULT_TOPICS))
    topics = {**DEFAULT_TOPICS, **given}
    cameras = _mapping(topics["cameras"], "topics.cameras", None)
    topics["cameras"] = {
        _word(name, "topics.cameras"): _topic(topic, f"topics.cameras.{name}")
        for name, topic in cameras.items()
    }
    for key, topic in topics.items():
        if key != "cameras":
            topics[key] = _topic(topic, f"topics.{key}")
    return topics


def _topic(given: Any, what: str) -> str:
    topic = _word(given, what)
    if not _TOPIC.fullmatch(topic):
        raise RobotConfigError(
            f"{what} is {shown(topic)}, which ROS takes for no topic; expected words of letters,"
            " digits and _, none beginning with a digit, with one / between them"
        )
    return topic


def _mapping(given: Any, what: str, keys: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise RobotConfigError(f"{what} is {shown(given)}, expected a mapping")
    for key in given:
        if keys is not None and key not in keys:
            raise RobotConfigError(f"{what} has an unknown key {key!r}; {known(keys)}")
    return given


def _word(given: Any, what: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise RobotConfigError(f"{what} is {shown(given)}, expected a non-empty text")
    return given


def _choice(given: Any, what: str, choices: tuple[str, ...]) -> str:
    if given not in choices:
        raise RobotConfigError(f"{what} is {shown(given)}; {known(choices)}")
    return given


def _number(given: Any, what: str) -> float:
    if not is_finite(given):
        raise RobotConfigError(f"{what} is {shown(given)}, expected a finite number")
    return float(given)


def _range(given: Any, what: str, ordered: bool = True) -> tuple[float, float]:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise RobotConfigError(f"{what} is {shown(given)}, expected two numbers [lower, upper]")
    lower, upper = (_number(value, what) for value in given)
    if (ordered and lower >= upper) or lower == upper:
        raise RobotConfigError(
            f"{what} is [{lower:g}, {upper:g}], expected the first below the second:"
            " write [lower, upper]"
        )
    return lower, upper


def _positive(entry: Mapping[str, Any], name: str, key: str, unit: str) -> float:
    value = _number(entry.get(key), f"joint {name}: {key}")
    if value <= 0.0:
        raise RobotConfigError(
            f"joint {name}: {key} is {value:g}, expected above 0: write its limit in {unit}"
        )
    return value


def _no_repeats(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise RobotConfigError(
                f"joint {what} {name!r} is given {names.count(name)} times, expected once"
            )


def _no_permutation(joints: tuple[Joint, ...]) -> None:
    """Refuse policy names that are the joint names in another order: chunks are read by either."""
    names = [joint.name for joint in joints]
    policy_names = [joint.policy_name for joint in joints]
    if set(names) != set(policy_names):
        return
    for name, policy_name in zip(names, policy_names):
        if name != policy_name:
            raise RobotConfigError(
                f"joint {name}: policy_name is {policy_name!r}, the name of another joint, and so"
                " on for all: a chunk could mean either; rename the joints of the policy"
            )
