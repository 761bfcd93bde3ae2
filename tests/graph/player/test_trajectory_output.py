# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""JointTrajectory commands of a player that moves the simulated arm: chunks of a sine at 5 Hz.

One recording serves all; each test asserts one property of it.
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from omni_ros.player.reasons import State  # noqa: E402

AMPLITUDE, PERIOD_S = 0.3, 2.0
CHUNKS, CHUNK_RATE_HZ = 25, 5.0


def sine(rig, stamp_ns: int, rows: int = 45, dt_s: float = 1 / 30) -> np.ndarray:
    """All joints on one sine of the clock, each at a phase of its own so that none stands."""
    times = stamp_ns * 1e-9 % 1000.0 + dt_s * np.arange(1, rows + 1)
    phase = np.arange(6) * math.pi / 7
    amplitude = np.array([1, 1, 1, 1, 1, 0.5]) * AMPLITUDE
    return rig.robot.home + amplitude * np.sin(2 * math.pi * times[:, None] / PERIOD_S + phase)


class World:
    """The simulated arm, and what its controller says."""

    def __init__(self, graph, tools) -> None:
        self.eventually = tools.eventually
        self.states = graph.record(JointState, "joint_states", qos_profile_sensor_data)
        self.diagnostics = graph.record(DiagnosticArray, "/diagnostics")
        self.process = graph.start("world", image_rate=0.0)
        graph.bring_up("world")
        tools.eventually(lambda: self.states, "joint states")

    def controller(self) -> dict[str, str]:
        """The world's next diagnostics."""
        begin = time.monotonic()

        def values():
            return [s.values for _, m in self.diagnostics.since(begin) for s in m.status
                    if s.name.endswith("simulation")]

        return {v.key: v.value for v in self.eventually(values, "the world's diagnostics")[0]}


def trace(rig, chunks: int = CHUNKS) -> None:
    """Send chunks of the sine at 5 Hz, the first few to ease in."""
    source = rig.make_source()
    for _ in range(chunks):
        stamp_ns = rig.now_ns
        chunk = source.message(sine(rig, stamp_ns))
        chunk.header.stamp.sec, chunk.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        time.sleep(0.06)  # the inference
        rig.chunks.publish(chunk)
        time.sleep(1 / CHUNK_RATE_HZ - 0.06)


@pytest.fixture(scope="module")
def recording(module_graph, tmp_path_factory, kit, tools):
    """Five seconds of motion of the world's arm."""
    world = World(module_graph, tools)
    path = tools.robot_writer(tmp_path_factory.mktemp("robot"))(**kit.PATIENT)
    process = module_graph.start("action_player", robot=path)
    rig = kit.Rig(module_graph, process, path, tools.eventually)
    rig.configure()
    rig.activate(world=True)
    began, before = len(rig.commands), rig.status
    trace(rig)
    status = rig.status
    controller = world.controller()
    messages = rig.commands.messages[began:]
    # Past the ramp, up to where the last chunk was sent.
    path = rig.path_of(messages)
    moving = [m for m, p in zip(messages, path) if (p != path[0]).any()][50:200]
    yield SimpleNamespace(rig=rig, messages=messages, moving=moving, before=before,
                          status=status, world=world, controller=controller)
    rig.close()


def seconds(duration) -> float:
    return duration.sec + duration.nanosec * 1e-9


def test_the_recording_moves_throughout(recording):
    assert len(recording.moving) >= 100
    assert recording.status.stops == 0
    assert recording.status.chunks_played == CHUNKS


def test_every_point_carries_a_velocity_for_each_joint(recording):
    assert all(len(p.velocities) == len(p.positions) == 6
               for m in recording.messages for p in m.points)


def test_velocities_do_not_fall_to_zero_where_chunks_meet(recording):
    """Each joint of a sine stands twice in a period, for an instant; never all of them."""
    velocity = np.array([m.points[0].velocities for m in recording.moving])
    assert (np.abs(velocity).max(axis=1) > 0.2).all()
    assert (velocity != 0.0).all()


def test_velocities_change_from_message_to_message_by_no_more_than_the_acceleration_allows(
        recording):
    rig = recording.rig
    velocity = np.array([m.points[0].velocities for m in recording.moving])
    # Over a missed tick there are two periods for it.
    missed = recording.status.ticks_missed
    over = np.abs(np.diff(velocity, axis=0)) > rig.robot.acceleration * rig.period_s + 1e-6
    assert over.any(axis=1).sum() <= missed


def test_positions_velocities_accelerations_and_jerks_stay_within_the_limits(recording):
    recording.rig.assert_within_limits(recording.messages)


def test_stamps_are_zero_so_that_no_message_ends_in_the_past(recording):
    assert {(m.header.stamp.sec, m.header.stamp.nanosec) for m in recording.messages} == {(0, 0)}


def test_the_first_point_is_a_whole_period_ahead(recording):
    first = [seconds(m.points[0].time_from_start) for m in recording.messages]
    assert min(first) >= recording.rig.period_s - 1e-9


def test_times_rise_strictly_within_each_message(recording):
    for message in recording.messages:
        assert (np.diff([seconds(p.time_from_start) for p in message.points]) > 0).all()


def test_each_message_ends_at_rest(recording):
    assert not any(any(m.points[-1].velocities) for m in recording.messages)


def test_each_message_of_a_moving_arm_holds_its_stop(recording):
    assert all(len(m.points) >= 3 for m in recording.moving)


def test_the_controller_of_the_arm_takes_every_message(recording):
    assert recording.controller["commands refused"] == "0"
    assert int(recording.controller["commands accepted"]) >= 100


def test_the_arm_traces_the_whole_sine(recording):
    rig = recording.rig
    states = recording.world.states.messages
    pan = np.array([m.position[list(m.name).index("shoulder_pan")] for m in states])
    reach = np.abs(pan - rig.robot.home[0])
    assert 0.8 * AMPLITUDE < reach.max() < 1.2 * AMPLITUDE


def test_every_tick_commands(recording):
    before, status = recording.before, recording.status
    assert status.commands - before.commands == status.ticks - before.ticks


def test_a_killed_player_leaves_the_controller_with_a_stop_within_the_limits(recording):
    """The last of this file: it ends the player."""
    rig, world = recording.rig, recording.world
    rig.until(State.STALE)
    rig.at_rest()
    source = rig.make_source("again")
    stamp_ns = rig.now_ns
    source.send(sine(rig, stamp_ns), age_s=0.0)
    rig.moving(0.3)
    rig.process.kill()
    last = rig.commands.last
    end = np.array(last.points[-1].positions)
    rig.eventually(
        lambda: np.abs(world.states.last.velocity).max() < 0.01
        and np.abs(np.array(world.states.last.position) - end).max() < 0.02,
        "the arm to stand where the last message ends")
