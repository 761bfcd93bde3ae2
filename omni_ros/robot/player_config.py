# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the action player, section `player:` of a robot YAML."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Mapping

from omni_ros.robot.errors import RobotConfigError, is_finite, known, shown

OUTPUTS = ("joint_trajectory", "forward_position", "forward_velocity")
SWITCHINGS = ("latest", "blend", "ensemble")


@dataclass(frozen=True)
class PlayerConfig:
    """How chunks are played, in seconds and Hz.

    Every field is explained in config/robots/tabletop.yaml.
    """

    rate_hz: float = 50.0
    output: str = "joint_trajectory"
    switching: str = "blend"
    blend_s: float = 0.2
    ensemble_coeff: float = 0.01
    ramp_in_s: float = 0.5
    observation_timeout_s: float = 2.0
    joint_state_timeout_s: float = 0.25
    heartbeat_timeout_s: float = 0.5
    require_heartbeat: bool = True
    future_tolerance_s: float = 0.05
    clock_jump_s: float = 1.0
    reset_cooldown_s: float = 0.5
    resume_tolerance: float = 0.02
    still_window_s: float = 0.1
    still_speed: float = 0.05
    max_rows: int = 512
    max_chunks: int = 8
    lookahead: int = 2

    @property
    def period_ns(self) -> int:
        """Nominal time between two ticks in nanoseconds."""
        return round(1e9 / self.rate_hz)

    @property
    def period_s(self) -> float:
        """Nominal time between two ticks in seconds, exactly `period_ns`."""
        return self.period_ns * 1e-9

    @property
    def velocity_mode(self) -> bool:
        """True where the output, and so every chunk, is in velocities."""
        return self.output == "forward_velocity"

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), field.type)
        _check_choice("output", self.output, OUTPUTS)
        _check_choice("switching", self.switching, SWITCHINGS)
        for name, (low, high, advice) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise RobotConfigError(
                    f"player.{name} is {value}, expected {low} to {high}: {advice}"
                )


_RANGES: dict[str, tuple[float, float, str]] = {
    "rate_hz": (1.0, 1000.0, "write the tick rate in Hz, 50 is a good start"),
    "blend_s": (0.0, 10.0, "write the overlap of two chunks in seconds"),
    "ensemble_coeff": (-10.0, 10.0, "write the decay per chunk; positive favours older chunks"),
    "ramp_in_s": (0.0, 30.0, "write the seconds to ease from rest into a chunk"),
    "observation_timeout_s": (0.01, 600.0, "write the oldest observation to act on, in seconds"),
    "joint_state_timeout_s": (0.01, 60.0, "write the longest gap between joint states, in seconds"),
    "heartbeat_timeout_s": (0.02, 60.0, "write the longest gap between heartbeats, in seconds"),
    "future_tolerance_s": (0.0, 10.0, "write how far clocks may differ, in seconds"),
    "clock_jump_s": (0.05, 3600.0, "write the leap of the clock that empties the queues, seconds"),
    "reset_cooldown_s": (0.0, 600.0, "write the shortest time from trip to reset, in seconds"),
    "resume_tolerance": (0.0, 1.0, "write a fraction of the joint's range, 0.02 is a good start"),
    "still_window_s": (0.0, 10.0, "write the seconds without motion that count as still"),
    "still_speed": (0.0001, 1.0, "write a fraction of the joint's velocity limit"),
    "max_rows": (1, 100000, "write the most rows a chunk may have"),
    "max_chunks": (1, 256, "write the most chunks kept at once"),
    "lookahead": (1, 4, "write how many planned setpoints go out before the stop"),
}


def player_config(section: Mapping[str, Any] | None) -> PlayerConfig:
    """Build a PlayerConfig from a YAML mapping; absent fields keep their defaults.

    Raises RobotConfigError for unknown fields, wrong types and values out of range.
    """
    if section is None:
        return PlayerConfig()
    if not isinstance(section, Mapping):
        raise RobotConfigError(f"player is {section!r}, expected a mapping of settings")
    names = [field.name for field in fields(PlayerConfig)]
    for key in section:
        if key not in names:
            raise RobotConfigError(f"player.{key} is not a setting; {known(names)}")
    return PlayerConfig(**section)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RobotConfigError(f"player.{name} is {value!r}; {known(choices)}")


def _check_type(name: str, value: Any, kind: Any) -> None:
    # Annotations are strings here (`from __future__ import annotations`).
    if kind == "bool":
        good = isinstance(value, bool)
    elif kind == "int":
        good = isinstance(value, int) and is_finite(value)
    elif kind == "float":
        good = is_finite(value)
    else:
        good = isinstance(value, str)
    if not good:
        raise RobotConfigError(f"player.{name} is {shown(value)}, expected a finite {kind} value")
