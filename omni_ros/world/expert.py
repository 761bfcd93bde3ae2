# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A scripted expert that knows where everything is, for every task from any state.

It has no memory: what to do follows from the joints and the blocks alone, so a policy that sees
them can imitate it, and any state can be labelled for any task. A chunk is found without a
simulation, by letting the joints follow their targets; all of it is numpy over many states at once.

Motion is in polar coordinates about the pan axis, in a funnel: travel above the blocks, come down
as what is off (place, roll, opening) becomes small. Units: metres, radians, seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omni_ros.world import kinematics
from omni_ros.world.grasping import (
    CORNER_GRIP,
    between_fingers,
    grasp_tilt,
    hand_frame,
    in_hand,
    nearest_roll,
)
from omni_ros.world.scene import CUBE_SIDE, GRIPPER_OPEN, JOINT_LOWER, JOINT_UPPER
from omni_ros.world.tasks import PICK_UP, PLACE, SKILLS, TOUCH

RATE_HZ = 15.0
ROWS = 16

#: Fastest change of a joint's target, rad/s; below the robot's 3 rad/s.
JOINT_SPEED = 2.8
#: Speeds of the hand: along the table, up and down (m/s), roll, tilt, gripper (rad/s).
LEVEL, VERTICAL, ROLL, TILT, GRIP = 0.26, 0.16, 2.0, 1.6, 2.4
#: Closing is planned slower than it is, so that lifting is not planned too early.
CLOSING = 1.8

CLOSED = JOINT_LOWER[5]
REST_GRIP = 0.2  # of a touch
RELEASE_GRIP = 0.45  # opening that lets a block go without meeting its neighbours
EASE = 0.0025  # rise a row while closing on what may lie askew
HOVER, CARRY, LIFTED = 0.072, 0.085, 0.100  # heights of the tip
TOUCH_GAP = 0.006  # of the tip above a block's top
GRASP_DEPTH = 0.006  # of the tip below a block's centre
CLEARANCE = 0.011  # of the fixed finger from a block's face, coming down
ON_PAD = 0.014  # a block this near to the pad's centre stays there

PHASES = ("travel", "descend", "close", "lift", "carry", "lower", "release", "retreat", "stay")
_PHASE = {name: index for index, name in enumerate(PHASES)}


@dataclass(frozen=True)
class Plan:
    """:param rows: joint targets (n, rows, 6). :param phase: index into ``PHASES`` (n,)."""

    rows: np.ndarray
    phase: np.ndarray


def plan(
    joints: np.ndarray,
    blocks: np.ndarray,
    yaws: np.ndarray,
    pad: np.ndarray,
    skill: np.ndarray,
    target: np.ndarray,
    *,
    rows: int = ROWS,
) -> Plan:
    """Return joint targets for the next rows, one each 1 / ``RATE_HZ`` seconds.

    :param joints: measured (n, 6). :param blocks: centres (n, 4, 3). :param yaws: (n, 4).
    :param pad: centre (n, 2). :param skill: index into ``tasks.SKILLS`` (n,).
    :param target: index of the block (n,).
    """
    state = _Rollout(joints, blocks, yaws, pad, skill, target)
    targets = np.empty((len(state.joints), rows, 6))
    first = state.phase
    for row in range(rows):
        state.advance()
        if row == 0:
            first = state.phase
        targets[:, row] = state.command()
    return Plan(targets, first)


class _Rollout:
    """Hand and target block as they move when every target is reached."""

    def __init__(self, joints, blocks, yaws, pad, skill, target) -> None:
        self.joints = np.array(joints, dtype=np.float64)
        n = np.arange(len(self.joints))
        self.pad = np.asarray(pad, dtype=np.float64)
        self.skill, self.target = np.asarray(skill), np.asarray(target)
        self.blocks = np.array(blocks, dtype=np.float64)
        self.yaw = np.asarray(yaws)[n, self.target]
        tip = kinematics.forward(self.joints)
        self.reach = np.hypot(tip[:, 0], tip[:, 1])
        self.pan = self.joints[:, 0].copy()
        # With the tip behind the pan axis, its angle is not the pan; out of every task's way.
        self.z = tip[:, 2]
        self.tilt = kinematics.tilt_of(self.joints)
        self.roll = self.joints[:, 4].copy()
        self.grip = self.joints[:, 5].copy()
        self.grip_target = self.grip.copy()
        self.phase = np.zeros(len(n), dtype=np.int64)
        self.last = self.joints.copy()
        self._n = n

    def tip(self) -> np.ndarray:
        return np.stack([self.reach * np.cos(self.pan), self.reach * np.sin(self.pan), self.z], -1)

    def advance(self) -> None:
        """Decide and move by one row."""
        dt = 1.0 / RATE_HZ
        n, tip = self._n, self.tip()
        frame = hand_frame(self.pan, self.tilt, self.roll)
        local = np.einsum("nji,nbj->nbi", frame, self.blocks - tip[:, None])
        holding = in_hand(local, self.grip[:, None], self.blocks[..., 2] - CUBE_SIDE / 2)
        between = between_fingers(local) | holding
        mine = between[n, self.target]
        block = self.blocks[n, self.target]
        other = between.copy()
        other[n, self.target] = False
        holds_other = other.any(axis=1)
        held = holding[n, self.target]
        touch, pick, place = (
            self.skill == SKILLS.index(name) for name in (TOUCH, PICK_UP, PLACE)
        )

        off_pad = np.hypot(*(block[:, :2] - self.pad).T)
        on_pad = place & (off_pad < ON_PAD) & (block[:, 2] < CUBE_SIDE / 2 + 0.0035)
        # What lies in the hand and is not wanted there is put down where it is.
        unwanted = (holds_other & ~mine) | (mine & (touch | on_pad))

        # -- coming to a block, or over it
        block_pan = np.arctan2(block[:, 1], block[:, 0])
        wanted_roll = np.where(touch, 0.0, nearest_roll(block_pan, self.yaw, self.roll))
        axis = block_pan + wanted_roll
        aside = np.where(touch, 0.0, CLEARANCE)[:, None]
        goal = block[:, :2] + aside * np.stack([np.cos(axis), np.sin(axis)], axis=-1)
        goal_z = block[:, 2] + np.where(touch, CUBE_SIDE / 2 + TOUCH_GAP, -GRASP_DEPTH)
        goal_z = np.maximum(goal_z, 0.008)
        hover = np.full(len(n), HOVER)
        open_to = np.where(touch, REST_GRIP, GRIPPER_OPEN)
        distance = np.hypot(*(goal - tip[:, :2]).T)
        amiss = distance + np.where(
            touch, 0.0,
            0.035 * np.maximum(np.abs(wanted_roll - self.roll) - 0.04, 0.0)
            + 0.06 * np.maximum(GRIPPER_OPEN - 0.08 - self.grip, 0.0),
        )
        lowest, ramp = np.where(touch, 0.008, 0.004), np.where(touch, 0.045, 0.014)
        phase = np.where(amiss < lowest + ramp, _PHASE["descend"], _PHASE["travel"])

        # -- with the block in the hand
        grip = open_to
        closing = mine & ~held & ~unwanted & (local[n, self.target, 2] > 0.0) & ~touch
        stay = closing | (held & pick) | unwanted
        goal = np.where(stay[:, None], tip[:, :2], goal)
        wanted_roll = np.where(stay | held, self.roll, wanted_roll)
        amiss = np.where(stay, 0.0, amiss)
        grip = np.where(closing, CLOSED, grip)
        easing = closing & (self.grip < CORNER_GRIP - 0.03)
        goal_z = np.where(easing, self.z + EASE / 0.6, goal_z)
        phase = np.where(closing, _PHASE["close"], phase)

        lift = held & pick
        goal_z = np.where(lift, LIFTED, goal_z)
        grip = np.where(held & ~unwanted, CLOSED, grip)
        phase = np.where(lift, _PHASE["lift"], phase)

        carry = held & place & ~unwanted
        offset = block[:, :2] - tip[:, :2]
        goal = np.where(carry[:, None], self.pad - offset, goal)
        down_z = CUBE_SIDE / 2 + 0.0015 + (tip[:, 2] - block[:, 2])
        goal_z = np.where(carry, np.maximum(down_z, 0.008), goal_z)
        hover = np.where(carry, CARRY, hover)
        amiss = np.where(carry, off_pad, amiss)
        lowest, ramp = np.where(carry, 0.006, lowest), np.where(carry, 0.022, ramp)
        phase = np.where(carry, np.where(off_pad < 0.020, _PHASE["lower"], _PHASE["carry"]), phase)

        # -- letting go: down to the table if need be, open, and up
        holder = np.where(mine, self.target, np.argmax(other, axis=1))
        bottom = self.blocks[n, holder, 2] - CUBE_SIDE / 2
        high = unwanted & (bottom > 0.004)
        loose = unwanted & ~high & (self.grip > RELEASE_GRIP - 0.06)
        grip = np.where(unwanted, np.where(high, CLOSED, RELEASE_GRIP), grip)
        goal_z = np.where(unwanted, np.where(high, self.z - bottom + 0.001, self.z), goal_z)
        goal_z = np.where(loose, HOVER, goal_z)
        phase = np.where(unwanted, np.where(high, _PHASE["lower"], _PHASE["release"]), phase)
        phase = np.where(loose, _PHASE["retreat"], phase)

        # -- done: above the block on the pad
        done = on_pad & ~unwanted
        goal_z = np.where(done, HOVER, goal_z)
        goal = np.where(done[:, None] & (self.z < HOVER - 0.03)[:, None], tip[:, :2], goal)
        wanted_roll = np.where(done, self.roll, wanted_roll)
        grip = np.where(done, np.where(self.z > HOVER - 0.03, GRIPPER_OPEN, RELEASE_GRIP), grip)
        amiss = np.where(done, 0.0, amiss)
        phase = np.where(done, np.where(self.z > HOVER - 0.015, _PHASE["stay"],
                                        _PHASE["retreat"]), phase)

        # -- the funnel: no lower than what is amiss allows; no sideways below that
        share = np.clip((amiss - lowest) / ramp, 0.0, 1.0)
        floor = np.where(stay | done, goal_z, goal_z + np.maximum(hover - goal_z, 0.0) * share)
        free = np.clip(1.0 - (floor - self.z - 0.006) / 0.020, 0.0, 1.0)
        free = np.where(stay | done, 1.0, free)

        # -- move
        goal_reach = np.hypot(goal[:, 0], goal[:, 1])
        turn = np.arctan2(goal[:, 1], goal[:, 0]) - self.pan
        turn = (turn + np.pi) % (2 * np.pi) - np.pi
        along = np.stack([goal_reach - self.reach, turn * np.maximum(self.reach, 0.10)], axis=-1)
        length = np.linalg.norm(along, axis=-1)
        step = np.minimum(LEVEL * dt, 0.6 * length) * free / np.maximum(length, 1e-9)
        self.reach = self.reach + along[:, 0] * step
        self.pan = self.pan + along[:, 1] * step / np.maximum(self.reach, 0.10)
        self.z = self.z + _towards(floor - self.z, VERTICAL * dt)
        self.roll = self.roll + _towards(wanted_roll - self.roll, ROLL * dt) * free
        self.tilt = self.tilt + _towards(grasp_tilt(self.reach, self.z) - self.tilt, TILT * dt)
        speed = np.where(grip < self.grip, np.where(touch, GRIP, CLOSING), GRIP) * dt
        self.grip = self.grip + np.clip(grip - self.grip, -speed, speed)
        self.grip_target = self.grip.copy()
        self.grip_target[closing | held] = np.maximum(
            CLOSED, self.grip[closing | held] - 0.15
        )
        blocked = (closing | held) & (self.grip < 0.214)
        self.grip = np.where(blocked, 0.214, self.grip)
        self.phase = phase

        # -- a held block moves along
        carried = held & (grip <= CLOSED + 1e-9)
        if carried.any():
            frame = hand_frame(self.pan, self.tilt, self.roll)
            moved = self.tip() + np.einsum("nij,nj->ni", frame, local[n, self.target])
            index = np.flatnonzero(carried)
            self.blocks[index, self.target[index]] = moved[index]

    def command(self) -> np.ndarray:
        """Return the joint targets (n, 6) of where the hand is now, as fast as joints may go."""
        wanted = kinematics.inverse(
            self.tip(), tilt=self.tilt, roll=self.roll, gripper=self.grip_target, strict=False
        )
        wanted[:, 0] = np.clip(self.pan, JOINT_LOWER[0], JOINT_UPPER[0])
        limit = JOINT_SPEED / RATE_HZ
        step = wanted - self.last
        # All joints of the arm slow down together, and the hand is where that takes it: joints that
        # lag one by one would take it through the table.
        slower = np.minimum(1.0, limit / np.maximum(np.abs(step[:, :5]).max(axis=1), 1e-9))
        step[:, :5] *= slower[:, None]
        step[:, 5] = np.clip(step[:, 5], -limit, limit)
        self.last = self.last + step
        late = slower < 1.0
        if late.any():
            tip = kinematics.forward(self.last[late])
            self.reach[late] = np.hypot(tip[:, 0], tip[:, 1])
            self.z[late] = tip[:, 2]
            self.pan[late] = self.last[late, 0]
            self.tilt[late] = kinematics.tilt_of(self.last[late])
            self.roll[late] = self.last[late, 4]
        return self.last.copy()


def _towards(gap: np.ndarray, most: float) -> np.ndarray:
    """Return a step that closes a gap: fast, then ever slower."""
    return np.clip(0.6 * gap, -most, most)
