# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Between the player's plain data and ROS messages."""

from __future__ import annotations

from array import array

from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from omni_ros.msg import ActionChunk, PlayerStatus
from omni_ros.nodes._support import duration_message, time_message, to_ns
from omni_ros.player.chunk import Chunk, Refusal, parse_chunk
from omni_ros.player.command import Command, PlayerStatusData
from omni_ros.player.trajectory import command_points
from omni_ros.robot import Robot


def chunk_from_message(message: ActionChunk, robot: Robot, received_ns: int) -> Chunk | Refusal:
    """Check and convert an ActionChunk."""
    return parse_chunk(
        robot=robot,
        stamp_ns=to_ns(message.header.stamp),
        dt_ns=to_ns(message.dt),
        life_ns=to_ns(message.life),
        control_mode=message.control_mode,
        joint_names=message.joint_names,
        joint_units=message.joint_units,
        rows=message.rows,
        values=message.values,
        anchor=message.anchor,
        chunk_id=message.chunk_id,
        observation_seq=message.observation_seq,
        source=message.source,
        noise_seed=message.noise_seed,
        received_ns=received_ns,
    )


def command_message(command: Command, robot: Robot) -> JointTrajectory | Float64MultiArray:
    """Return the message of the robot's output mode that carries a command."""
    output = robot.player.output
    if output == "joint_trajectory":
        message = JointTrajectory(joint_names=robot.joint_names)
        message.points = [
            JointTrajectoryPoint(
                positions=array("d", point.positions), velocities=array("d", point.velocities),
                time_from_start=duration_message(point.time_from_start_ns))
            for point in command_points(command, robot.player.period_ns)
        ]
        return message
    values = command.velocity if output == "forward_velocity" else command.position
    return Float64MultiArray(data=array("d", values.tobytes()))


def status_message(status: PlayerStatusData, *, sequence: int, dry_run: bool,
                   lateness: tuple[float, float, float], realtime: list[str],
                   last_refusal: Refusal | None) -> PlayerStatus:
    """Return the PlayerStatus message of a status.

    :param lateness: p50, p99 and maximum in seconds.
    """
    counters = status.counters
    message = PlayerStatus(
        sequence=sequence, state=int(status.state), reasons=array("B", status.reasons),
        trip_reason=int(status.trip_reason), text=status.text, source=status.source,
        chunk_id=status.chunk_id, observation_stamp=time_message(status.observation_stamp_ns),
        dry_run=dry_run, observation_age=status.observation_age, chunk_age=status.chunk_age,
        joint_state_age=status.joint_state_age, heartbeat_age=status.heartbeat_age,
        joint_names=list(status.joint_names),
        command_position=array("d", status.command_position),
        command_velocity=array("d", status.command_velocity),
        joint_reasons=array("B", status.joint_reasons),
        lateness_p50=lateness[0], lateness_p99=lateness[1], lateness_max=lateness[2],
        ticks=counters.ticks, ticks_missed=counters.ticks_missed, commands=counters.commands,
        chunks_received=counters.chunks_received, chunks_played=counters.chunks_played,
        rows_dropped_late=counters.rows_dropped_late, refused=array("Q", counters.refused),
        limited=array("Q", counters.limited), stops=counters.stops, realtime=realtime,
        last_refusal=last_refusal.text if last_refusal else "",
    )
    message.header.stamp = time_message(status.stamp_ns)
    return message
