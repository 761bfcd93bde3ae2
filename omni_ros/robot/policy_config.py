# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How a learned policy is run on a robot, section `policy:` of a robot YAML."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Mapping

from omni_ros.robot.errors import RobotConfigError, is_finite, known, shown

if TYPE_CHECKING:
    from omni_ros.robot.player_config import PlayerConfig
    from omni_ros.robot.robot import Robot

GUIDANCES = ("none", "rtc")


@dataclass(frozen=True)
class PolicyConfig:
    """When the policy looks, at what, and how its chunks follow each other.

    Every field is explained in config/robots/tabletop.yaml.
    """

    action_rate_hz: float
    execution_horizon: int = 8
    guidance: str = "none"
    slop_s: float = 0.05
    image_timeout_s: float = 0.5
    joints_timeout_s: float = 0.5
    cameras: Mapping[str, str] = field(default_factory=dict)
    life_s: float | None = None
    blind_std: float = 2.0
    noise_seed: int = 0
    head_rate_hz: float | None = None
    prefix_life_s: float = 0.5

    @property
    def dt_ns(self) -> int:
        """Time between two rows of a chunk in nanoseconds."""
        return round(1e9 / self.action_rate_hz)

    def robot_camera(self, name: str) -> str:
        """Return the robot's name of a camera of the bundle: the same if not said otherwise."""
        return self.cameras.get(name, name)

    def __post_init__(self) -> None:
        for name, (kind, low, high, advice) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name in ("life_s", "head_rate_hz"):
                continue
            good = is_finite(value) and (kind is float or isinstance(value, int))
            if not good or not low <= value <= high:
                raise RobotConfigError(
                    f"policy.{name} is {shown(value)}, expected {kind.__name__} {low} to {high}:"
                    f" {advice}"
                )
        if self.guidance not in GUIDANCES:
            raise RobotConfigError(f"policy.guidance is {shown(self.guidance)}; {known(GUIDANCES)}")


_RANGES: dict[str, tuple[type, float, float, str]] = {
    "action_rate_hz": (float, 0.1, 1000.0, "write the rows a second that it was trained at"),
    "execution_horizon": (int, 1, 100000, "write the rows of a chunk to play before the next one"),
    "slop_s": (float, 0.0, 10.0, "write the largest spread of stamps in an observation, s"),
    "image_timeout_s": (float, 0.001, 60.0, "write the oldest picture to look at, in seconds"),
    "joints_timeout_s": (float, 0.001, 60.0, "write the oldest joint state to look at, in seconds"),
    "life_s": (float, 0.001, 3600.0, "write how long a chunk may be played, in seconds"),
    "blind_std": (float, 0.0, 128.0, "write the least spread of grey of a picture, 0 for any"),
    "noise_seed": (int, 0, 2**64 - 1, "write the seed of the noise"),
    "head_rate_hz": (float, 0.1, 1000.0, "write how often a π0's head runs on fresh joints"),
    "prefix_life_s": (float, 0.001, 60.0, "write the oldest pictures that it may run on, seconds"),
}


def policy_config(
    section: Any, *, cameras: Mapping[str, str], player: PlayerConfig
) -> PolicyConfig | None:
    """Build a PolicyConfig from a YAML mapping, None from none; absent fields keep their defaults.

    :param cameras: of the robot, by name. :param player: of the same robot.
    :raises RobotConfigError: unknown or missing fields, wrong types, values out of range, or
        settings that do not go together.
    """
    if section is None:
        return None
    if not isinstance(section, Mapping):
        raise RobotConfigError(f"policy is {shown(section)}, expected a mapping of settings")
    names = [one.name for one in fields(PolicyConfig)]
    for key in section:
        if key not in names:
            raise RobotConfigError(f"policy.{shown(key)} is not a setting; {known(names)}")
    for one in fields(PolicyConfig):
        if one.default is MISSING and one.default_factory is MISSING and one.name not in section:
            raise RobotConfigError(
                f"policy.{one.name} is missing: {_RANGES[one.name][3]}; at another rate its"
                " movements would run at another speed"
            )
    config = PolicyConfig(**{**section, "cameras": _cameras(section.get("cameras", {}), cameras)})
    if config.guidance == "rtc" and player.switching == "ensemble":
        raise RobotConfigError(
            "policy.guidance is 'rtc' and player.switching 'ensemble': an average over old chunks"
            " undoes what guidance does; write switching: latest (or blend), or guidance: none"
        )
    return config


def require_policy(robot: Robot) -> PolicyConfig:
    """Return a robot's policy settings. :raises RobotConfigError: its YAML has none."""
    if robot.policy is None:
        raise RobotConfigError(
            f"robot {robot.name} has no section policy; write at least policy: {{action_rate_hz:"
            " N}, the rows a second that the policy was trained at (config/robots/tabletop.yaml"
            " explains all)"
        )
    return robot.policy


def _cameras(given: Any, cameras: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise RobotConfigError(
            f"policy.cameras is {shown(given)}, expected {{camera of the bundle: camera here}}"
        )
    for name, camera in given.items():
        if not isinstance(name, str) or not name.strip():
            raise RobotConfigError(f"policy.cameras has {shown(name)}, expected a non-empty text")
        if not isinstance(camera, str) or camera not in cameras:
            raise RobotConfigError(
                f"policy.cameras.{name} is {shown(camera)}; known under topics.cameras are "
                f"{', '.join(cameras) or 'none'}"
            )
    if len(set(given.values())) < len(given):
        raise RobotConfigError(
            f"policy.cameras gives one camera to two of the policy's: {shown(dict(given))}"
        )
    return dict(given)
