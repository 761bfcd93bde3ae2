# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A player in simulated time, with an arm that follows and a check of every command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omni_ros.player import Player, Refusal, check_joint_trajectory, command_points, parse_chunk
from omni_ros.robot import load_robot

ROBOTS = Path(__file__).parents[2] / "config" / "robots"
START_NS = 1_700_000_000 * 10**9


class Rig:
    """Player, clock and arm. The arm reaches each command exactly unless `frozen`."""

    def __init__(self, robot, start_ns: int = START_NS, measured=None) -> None:
        self.robot = robot
        self.player = Player(robot)
        self.period_ns = robot.player.period_ns
        self.period_s = robot.player.period_s
        self.now_ns = start_ns
        self.measured = np.array(robot.home if measured is None else measured)
        self.frozen = False
        self.sensing = True
        self.beating = True
        self.source = "test"
        self.next_id = 1
        self.commands = []
        self.checker = LimitChecker(robot)

    def start(self, settle_s: float = 0.3) -> Rig:
        """Activate and run until the arm is held and known to be still."""
        self.player.activate(self.now_ns)
        self.run(settle_s)
        return self

    def tick(self, after_ns: int | None = None):
        """One period: measurement, heartbeat, tick; checks and keeps the command."""
        self.now_ns += self.period_ns if after_ns is None else after_ns
        if self.sensing:
            self.player.on_joint_state(
                self.robot.joint_names, self.measured.tolist(), [], self.now_ns, self.now_ns
            )
        if self.beating:
            self.player.on_heartbeat(self.source, self.now_ns)
        command = self.player.tick(self.now_ns)
        if command is not None:
            self.checker.check(command)
            self.commands.append(command)
            if self.robot.player.velocity_mode:
                step = command.velocity * self.period_s
            else:
                step = command.position - self.measured
            if not self.frozen:
                self.measured = self.measured + step
        return command

    def first_command(self):
        """Tick until there is a command, for as long as joint states need to agree at most."""
        for _ in range(round(self.robot.player.still_window_s / self.period_s) + 2):
            command = self.tick()
            if command is not None:
                return command
        raise AssertionError("no command after the still window")

    def run(self, seconds: float):
        """Tick for a time; returns the commands of it."""
        before = len(self.commands)
        for _ in range(round(seconds / self.period_s)):
            self.tick()
        return self.commands[before:]

    def fields(self, values, age_s=0.0, dt_s=1 / 30, life_s=10.0, **more):
        """Fields of a good ActionChunk from an observation `age_s` ago."""
        values = np.asarray(values, dtype=np.float64)
        fields = {
            "stamp_ns": self.now_ns - round(age_s * 1e9),
            "dt_ns": round(dt_s * 1e9),
            "life_ns": round(life_s * 1e9),
            "control_mode": 2 if self.robot.player.velocity_mode else 1,
            "joint_names": self.robot.joint_names,
            "joint_units": self.robot.policy_units,
            "rows": len(values),
            "values": values.ravel(),
            "chunk_id": self.next_id,
            "source": self.source,
            "received_ns": self.now_ns,
        }
        fields.update(more)
        self.next_id = fields["chunk_id"] + 1
        return fields

    def send(self, values, **options) -> Refusal | None:
        """Parse a chunk and offer it; returns the refusal, if any."""
        chunk = parse_chunk(robot=self.robot, **self.fields(values, **options))
        return self.player.on_chunk(chunk, self.now_ns)

    def path(self, function, rows: int = 30, dt_s: float = 1 / 30, age_s: float = 0.0, **options):
        """Send a chunk of function(t), t in seconds since START_NS, for the instants it is due."""
        stamp_s = (self.now_ns - START_NS) * 1e-9 - age_s
        due = stamp_s + dt_s * np.arange(1, rows + 1)
        return self.send([function(t) for t in due], age_s=age_s, dt_s=dt_s, **options)

    def sine(self, amplitude: float = 0.3, hz: float = 0.5, **options):
        """Send a chunk of a sine around home, one curve whatever the time of sending."""
        return self.path(
            lambda t: self.robot.home + amplitude * np.sin(2.0 * np.pi * hz * t), **options
        )

    def status(self):
        return self.player.status(self.now_ns)


class LimitChecker:
    """Checks each command and its stop against every limit, by differences as they were sent."""

    def __init__(self, robot) -> None:
        self.robot = robot
        self.period_s = robot.player.period_s
        self.lower = robot.lower + robot.margin
        self.upper = robot.upper - robot.margin
        self.last = None  # (p, v, a) of the last command
        self.plan = None
        # Differences of rounded positions: three divisions by the period amplify 1e-16.
        self.noise = 1e-15 / self.period_s**3

    def check(self, command) -> None:
        robot, period = self.robot, self.period_s
        ahead = np.vstack((command.ahead_position, command.tail_position))
        if command.rebased or self.last is None:
            # A new start: from rest, at a pose one step before this command.
            zero = np.zeros_like(robot.lower)
            p0, v0, a0 = command.position - command.velocity * period, zero, zero
        else:
            p0, v0, a0 = self.last
            if command.periods > 2 and robot.player.output == "forward_position":
                # Two missed ticks: the controller stood at the last position meanwhile.
                v0, a0 = 0.0 * v0, 0.0 * a0
        if command.periods > 1 and robot.player.output == "joint_trajectory":
            # Missed ticks: the controller went on along the plan that it had.
            for _ in range(command.periods - 1):
                p0, v0, a0 = self.plan.pop(0) if self.plan else (p0, 0.0 * v0, 0.0 * a0)
        positions = np.vstack((command.position[None], ahead))
        velocities = np.vstack(
            (command.velocity[None], command.ahead_velocity, command.tail_velocity)
        )
        assert np.isfinite(positions).all() and np.isfinite(velocities).all()
        states = []
        for index, p in enumerate(positions):
            v = velocities[index] if robot.player.velocity_mode else (p - p0) / period
            a = (v - v0) / period
            j = (a - a0) / period
            self._within(p0, p, v, a, j)
            np.testing.assert_allclose(v, velocities[index], atol=1e-9)
            p0, v0, a0 = p, velocities[index], (velocities[index] - v0) / period
            states.append((p0, v0, a0))
        assert not velocities[-1].any(), "the plan must end at rest"
        self.last, self.plan = states[0], states[1:]

    def _within(self, p0, p, v, a, j) -> None:
        robot = self.robot
        if not robot.player.velocity_mode:
            assert (p >= np.minimum(self.lower, p0) - 1e-12).all()
            assert (p <= np.maximum(self.upper, p0) + 1e-12).all()
        assert (np.abs(v) <= robot.velocity * (1 + 1e-6) + self.noise).all()
        assert (np.abs(a) <= robot.acceleration * (1 + 1e-6) + self.noise).all()
        assert (np.abs(j) <= robot.jerk * (1 + 1e-6) + self.noise).all()


def configured(robot, **player):
    """The robot with other player settings."""
    return replace(robot, player=replace(robot.player, **player))


@pytest.fixture(scope="session")
def tabletop():
    return load_robot(ROBOTS / "tabletop.yaml")


@pytest.fixture(scope="session")
def make_rig(tabletop):
    """make_rig(robot=None, start_ns=..., measured=..., **player settings) -> Rig, not started."""

    def make(robot=None, start_ns=START_NS, measured=None, **player):
        return Rig(configured(robot or tabletop, **player), start_ns, measured)

    return make


@pytest.fixture
def rig(make_rig):
    return make_rig().start()


@pytest.fixture
def velocity_rig(make_rig):
    return make_rig(output="forward_velocity", switching="latest").start()


@pytest.fixture(scope="session")
def accepted():
    """accepted(rig, command): what a trajectory controller says to the command, None if fine."""

    def judge(rig, command):
        return check_joint_trajectory(
            rig.robot.joint_names,
            command_points(command, rig.period_ns),
            controller_joints=rig.robot.joint_names,
            stamp_ns=0,
            now_ns=rig.now_ns,
        )

    return judge
