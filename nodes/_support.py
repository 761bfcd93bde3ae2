# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Small things every node needs: quality of service, stamps, parameters, who it is."""

from __future__ import annotations

import os
from pathlib import Path

import rclpy.duration
from builtin_interfaces.msg import Duration, Time
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSProfile,
    ReliabilityPolicy,
)

from omni_ros.robot import Robot, load_robot
from omni_ros.robot.files import robot_file

#: Longest wait for subscribers to acknowledge the last messages of a publisher, seconds.
LAST_WORDS_S = 0.5
#: Commands and chunks: each one counts, only the newest matters.
COMMAND_QOS = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE)
#: Chunks keep a few, so that a burst is judged one by one and counted.
CHUNK_QOS = QoSProfile(
    depth=8, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE)
#: Status, instruction, stop state: late joiners get the last value.
LATCHED_QOS = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL)
#: The second ear for a stop: best effort and volatile, so that any publisher is heard.
STOP_QOS = QoSProfile(
    depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE)
#: Sensor consumers (REP-2003): best effort, newest only. Matches any publisher.
SENSOR_QOS = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE)
#: Joint states may come from several drivers (arm and gripper, two arms), each with some of the
#: joints: with depth 1 whoever speaks last before a look would hide the others for ever.
JOINT_STATES_QOS = QoSProfile(
    depth=16, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE)


def describe(text: str, *, low: float | None = None, high: float | None = None,
             read_only: bool = False) -> ParameterDescriptor:
    """ParameterDescriptor with a description and, where given, a floating point range."""
    descriptor = ParameterDescriptor(description=text, read_only=read_only)
    if low is not None and high is not None:
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor


def describe_int(text: str, *, low: int, high: int, read_only: bool = False) -> ParameterDescriptor:
    """ParameterDescriptor with a description and an integer range."""
    return ParameterDescriptor(
        description=text, read_only=read_only,
        integer_range=[IntegerRange(from_value=low, to_value=high, step=0)])


def load_robot_parameter(value: str) -> Robot:
    """Load the robot named by a node's `robot` parameter: a path, or a name in config/robots.

    :raises ValueError: no such robot, or its YAML is refused; the message says what to change.
    """
    return load_robot(robot_file(value))


def to_ns(stamp: Time | Duration) -> int:
    """Nanoseconds of a stamp or duration message."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def time_message(ns: int) -> Time:
    """Stamp message of nanoseconds since the epoch."""
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


def duration_message(ns: int) -> Duration:
    """Duration message of nanoseconds; negative ones borrow from the seconds, as the IDL wants."""
    return Duration(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


def pid_scope() -> str:
    """Where a process id of this process means something: boot and PID namespace.

    Two processes with equal scopes can watch each other's pids; else a pid is just a number (another
    machine, another container).
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def wait_until_heard(publisher: Publisher) -> None:
    """Wait, not for ever, until reliable subscribers have what was published.

    A reader that learns of a publisher's end first drops what was still on its way: on a loaded
    machine that is the stop of an arm.
    """
    try:
        publisher.wait_for_all_acked(rclpy.duration.Duration(seconds=LAST_WORDS_S))
    except RuntimeError:
        pass  # this middleware has no acknowledgements
