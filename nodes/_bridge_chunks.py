# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a remote policy's reply to a chunk for the player, or the reason why it is none."""

from __future__ import annotations

from array import array

import numpy as np

from omni_ros.msg import ActionChunk
from omni_ros.nodes._player_messages import chunk_from_message
from omni_ros.nodes._support import duration_message, time_message
from omni_ros.openpi.asking import Outcome
from omni_ros.openpi.live import outside
from omni_ros.openpi.observe import RobotView
from omni_ros.player.chunk import Refusal
from omni_ros.robot import Robot
from omni_ros.robot.policy_config import PolicyConfig

MODES = {"position": ActionChunk.CONTROL_POSITION, "velocity": ActionChunk.CONTROL_VELOCITY,
         "position_offset": ActionChunk.CONTROL_POSITION_OFFSET}


class Unplayable(ValueError):
    """A reply that is no motion of this robot. :ivar code: the counter that it is booked to."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class ChunkMaker:
    """Makes chunks of one robot from replies of one remote policy."""

    def __init__(self, robot: Robot, policy: PolicyConfig, view: RobotView, source: str) -> None:
        """:raises ValueError: the remote's actions are not what the player is set to play."""
        actions = view.mapping.actions
        if (actions.control_mode == "velocity") != robot.player.velocity_mode:
            raise ValueError(
                f"actions.control_mode is {actions.control_mode}, but the robot's player.output is "
                f"{robot.player.output}: one of both is in velocities, the other is not")
        self._robot, self._policy, self._view = robot, policy, view
        self._mode = actions.control_mode
        self._slack = view.mapping.replan.limit_slack
        self._deadline_s = view.mapping.replan.deadline_s
        self.period_s = round(1e9 / actions.rate_hz) * 1e-9  # as messages carry it
        self.source = source

    def rows(self, outcome: Outcome, positions: np.ndarray) -> np.ndarray:
        """Return the rows of a good reply, f64 [rows, joints], topic units.

        :param positions: of its observation. :raises Unplayable: code "columns" or "out_of_limits".
        """
        try:
            rows = self._view.rows(outcome.actions.values)[:outcome.actions.valid_rows]
        except ValueError as error:
            raise Unplayable("columns", str(error)) from error
        if not len(rows):
            raise Unplayable("columns", "a reply without rows")
        robot = self._robot
        text = outside(
            rows, lower=robot.lower, upper=robot.upper, velocity=robot.velocity,
            names=robot.joint_names, slack=self._slack, control_mode=self._mode, anchor=positions)
        if text is not None:
            raise Unplayable("out_of_limits", text)
        return rows

    def absolute(self, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return rows as positions, or velocities, to be compared with another policy's."""
        return rows + positions if self._mode == "position_offset" else rows

    def chunk(self, rows: np.ndarray, stamp_ns: int, positions: np.ndarray, number: int
              ) -> ActionChunk:
        """Return the message.

        :param number: higher than that of any chunk before, of this process.
        :raises Unplayable: the player would refuse it, code "chunk".
        """
        robot, dt_ns = self._robot, round(self.period_s * 1e9)
        # An arm at rest starts at the first row, so a chunk ends later by the time that it took.
        life_s = self._policy.life_s or len(rows) * self.period_s + self._deadline_s
        relative = self._mode != "position"
        values = robot.velocity_to_policy(rows) if relative else robot.to_policy(rows)
        message = ActionChunk(
            control_mode=MODES[self._mode], joint_names=list(robot.joint_names),
            joint_units=list(robot.policy_units), rows=len(rows), chunk_id=number,
            observation_seq=number, source=self.source, dt=duration_message(dt_ns),
            life=duration_message(round(life_s * 1e9)))
        message.header.stamp = time_message(stamp_ns)
        message.header.frame_id = robot.base_frame
        message.values = array("d", np.ascontiguousarray(values, np.float64).tobytes())
        if self._mode == "position_offset":
            message.anchor = array("d", robot.to_policy(positions).tobytes())
        parsed = chunk_from_message(message, robot, stamp_ns)
        if isinstance(parsed, Refusal):
            raise Unplayable("chunk", parsed.text)
        return message
