# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the world node: name, default, description, range."""

from __future__ import annotations

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from omni_ros.world.appearance import APPEARANCES, PLAIN
from omni_ros.world.arm import CONTROLLERS, JOINT_TRAJECTORY
from omni_ros.world.scene import CAMERAS


def _parameter(text: str, *, low=None, high=None, fixed: bool = True) -> ParameterDescriptor:
    """Describe a parameter; `fixed` ones are read when the node starts and stay."""
    descriptor = ParameterDescriptor(description=text, read_only=fixed)
    if isinstance(low, int):
        descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=0)]
    elif low is not None:
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=low, to_value=high, step=0.0)
        ]
    return descriptor


PARAMETERS = {
    "image_width": (96, _parameter("Width of the images, pixels.", low=16, high=1920)),
    "image_height": (96, _parameter("Height of the images, pixels.", low=16, high=1080)),
    "image_rate": (
        20.0,
        _parameter("Images a second of each camera; 0 draws none.", low=0.0, high=120.0),
    ),
    "cameras": (
        ["front", "wrist"],
        _parameter(f"Cameras to publish, of: {', '.join(CAMERAS)}."),
    ),
    "antialias": (
        False,
        _parameter("Smooth edges, at three times the drawing time. Policies are trained without."),
    ),
    "appearance": (
        PLAIN,
        _parameter(
            f"How the scene looks, one of: {', '.join(APPEARANCES)}. varied: light, tints and "
            "camera poses drawn from the seed of the episode."
        ),
    ),
    "joint_state_rate": (
        100.0,
        _parameter("Joint states a second; at most the 200 Hz of control.", low=1.0, high=200.0),
    ),
    "controller": (
        JOINT_TRAJECTORY,
        _parameter(f"The active controller, one of: {', '.join(CONTROLLERS)}."),
    ),
    "interpolate_from_desired_state": (
        True,
        _parameter(
            "A trajectory that starts now starts from the commanded state, not the measured one. "
            "As in ros2_control, where the default is false; position servos that follow with a "
            "lag, as these do, stutter without it.",
            fixed=False,
        ),
    ),
    "cmd_timeout": (
        0.0,
        _parameter(
            "Seconds after a trajectory's last point when the arm is told to stay where it was "
            "measured; 0 never, as in ros2_control.",
            low=0.0,
            high=3600.0,
            fixed=False,
        ),
    ),
    "seed": (
        0,
        _parameter("Seed of the episode at configure.", low=0, high=2**62, fixed=False),
    ),
    "publish_clock": (
        False,
        _parameter("Publish /clock, and stamp everything with simulated time."),
    ),
    "clock_rate": (200.0, _parameter("/clock messages a second.", low=10.0, high=200.0)),
    "real_time_factor": (
        1.0,
        _parameter(
            "Simulated seconds a second; other than 1 needs publish_clock.", low=0.05, high=20.0
        ),
    ),
}


def check(value) -> None:
    """Refuse combinations that no range can.

    :param value: returns a parameter's value by its name.
    :raises ValueError: saying what was given and what to change.
    """
    if value("controller") not in CONTROLLERS:
        raise ValueError(
            f"controller is {value('controller')!r}; use one of {', '.join(CONTROLLERS)}"
        )
    if value("appearance") not in APPEARANCES:
        raise ValueError(
            f"appearance is {value('appearance')!r}; use one of {', '.join(APPEARANCES)}"
        )
    unknown = [name for name in value("cameras") if name not in CAMERAS]
    if unknown:
        raise ValueError(f"unknown cameras {unknown}; the scene has {', '.join(CAMERAS)}")
    if not value("publish_clock") and value("real_time_factor") != 1.0:
        raise ValueError(
            f"real_time_factor is {value('real_time_factor')} without publish_clock, so the arm "
            "would not move at the speed its stamps say; set publish_clock true"
        )
    if value("use_sim_time") and not value("publish_clock"):
        raise ValueError(
            "use_sim_time is true and publish_clock is false, so the world waits for a clock that "
            "only it could give; set publish_clock true, or use_sim_time false"
        )
