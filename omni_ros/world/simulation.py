# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table-top in motion: physics, servos, blocks and what the arm touches."""

from __future__ import annotations

import numpy as np

from omni_ros.world import kinematics
from omni_ros.world.appearance import PLAIN, Appearance
from omni_ros.world.cameras import CameraRig, project
from omni_ros.world.mujoco_gl import mujoco
from omni_ros.world.scene import (
    BLOCK_ANGLE,
    BLOCK_NAMES,
    BLOCK_RADIUS,
    BLOCK_SPACING,
    CUBE_SIDE,
    HOME,
    HOME_SPREAD,
    JOINT_LOWER,
    JOINT_NAMES,
    JOINT_UPPER,
    PAD_ANGLE,
    PAD_NAME,
    PAD_RADIUS,
    PAD_SPACING,
    build_mjcf,
)

#: How far a velocity command's integrated position may lead the measured joint, rad. A blocked
#: velocity-controlled joint pushes with bounded force instead of winding up.
VELOCITY_LEAD = 0.3
#: An episode starts with the tip at least this high, clear of blocks and table.
START_CLEARANCE = 0.05


class Simulation:
    """The arm, its servos, four blocks and the place pad; deterministic, single-threaded.

    Joint arrays are float64 (6,) in the order of ``JOINT_NAMES``, radians; positions are metres
    in frame "world". Not safe to share between threads without a lock.
    """

    joint_names = JOINT_NAMES
    block_names = BLOCK_NAMES

    def __init__(
        self,
        *,
        width: int = 128,
        height: int = 128,
        timestep: float = 0.0025,
        seed: int = 0,
        antialias: bool = False,
        appearance: str = PLAIN,
    ) -> None:
        """:param appearance: "plain", or "varied": light, tints and camera poses of each seed."""
        text = build_mjcf(timestep=timestep, offscreen=(width, height), antialias=antialias)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.timestep = timestep
        self.size = (width, height)
        self.appearance = Appearance(self.model, appearance)
        self._rig = CameraRig(self.model, width, height)
        joints = [self.model.joint(name) for name in JOINT_NAMES]
        self._qpos = np.array([joint.qposadr[0] for joint in joints])
        self._dof = np.array([joint.dofadr[0] for joint in joints])
        self._block_qpos = {n: int(self.model.joint(n).qposadr[0]) for n in BLOCK_NAMES}
        self._block_body = {int(self.model.body(n).id): n for n in BLOCK_NAMES}
        self._pad_qpos = [int(self.model.joint(f"{PAD_NAME}_{axis}").qposadr[0]) for axis in "xy"]
        self._arm_bodies = self._bodies_below("shoulder")
        self._tip = int(self.model.site("tip").id)
        self._velocity: np.ndarray | None = None
        self._target = HOME.copy()
        self.reset(seed)

    # -- episodes ---------------------------------------------------------------------------

    def reset(self, seed: int) -> None:
        """Start an episode: the same seed gives the same one, to the bit.

        Blocks lie area-uniformly in a ring segment before the robot, at least 75 mm apart, any
        way round; the arm is near home with its tip clear of them. The pad lies apart from the
        blocks. Velocity commands end.
        """
        random = np.random.default_rng(seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self._qpos] = _draw_home(random)
        for name, (x, y, yaw) in zip(BLOCK_NAMES, _draw_blocks(random, len(BLOCK_NAMES))):
            self.place_block(name, (x, y, CUBE_SIDE / 2), yaw)
        self.place_pad(_draw_pad(random, self.block_positions()[:, :2]))
        self.appearance.reset(seed)
        self._velocity = None
        self._set_target(self.joint_positions())
        mujoco.mj_forward(self.model, self.data)

    def place_block(self, name: str, position, yaw: float = 0.0) -> None:
        """Put a block's centre somewhere, at rest."""
        start = self._block_qpos[name]
        dof = int(self.model.joint(name).dofadr[0])
        self.data.qpos[start : start + 3] = position
        self.data.qpos[start + 3 : start + 7] = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))
        self.data.qvel[dof : dof + 6] = 0.0

    def place_pad(self, position) -> None:
        """Put the pad's centre at (x, y)."""
        self.data.qpos[self._pad_qpos] = position

    def place_arm(self, positions: np.ndarray) -> None:
        """Put the joints (6,) somewhere, at rest and held there."""
        self.data.qpos[self._qpos] = positions
        self.data.qvel[self._dof] = 0.0
        self.command_position(positions)
        mujoco.mj_forward(self.model, self.data)

    # -- motion -----------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        """Advance physics by a number of time steps."""
        for _ in range(count):
            if self._velocity is not None:
                measured = self.data.qpos[self._qpos]
                target = self._target + self._velocity * self.timestep
                self._set_target(
                    np.clip(target, measured - VELOCITY_LEAD, measured + VELOCITY_LEAD)
                )
            mujoco.mj_step(self.model, self.data)

    def command_position(self, positions: np.ndarray) -> None:
        """Set the servos' targets (6,), clipped to the joints' ranges; ends velocity commands."""
        self._velocity = None
        self._set_target(positions)

    def command_velocity(self, velocities: np.ndarray) -> None:
        """Move at velocities (6,), rad/s, until told otherwise, as a velocity interface does."""
        if self._velocity is None:
            self._set_target(self.joint_positions())
        self._velocity = np.array(velocities, dtype=np.float64)

    def _set_target(self, positions: np.ndarray) -> None:
        self._target = np.clip(positions, JOINT_LOWER, JOINT_UPPER)
        self.data.ctrl[:] = self._target

    # -- measurements -----------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Seconds simulated since the last reset."""
        return float(self.data.time)

    @property
    def target(self) -> np.ndarray:
        """Copy of the servos' targets (6,)."""
        return self._target.copy()

    def joint_positions(self) -> np.ndarray:
        """Return a copy of the measured positions (6,)."""
        return self.data.qpos[self._qpos]

    def joint_velocities(self) -> np.ndarray:
        """Return a copy of the measured velocities (6,), rad/s."""
        return self.data.qvel[self._dof]

    def joint_efforts(self) -> np.ndarray:
        """Return a copy of the servos' torques (6,), Nm."""
        return self.data.actuator_force.copy()

    def tip(self) -> np.ndarray:
        """Return the position (3,) of the point between the fingertips."""
        return self.data.site_xpos[self._tip].copy()

    def block_positions(self) -> np.ndarray:
        """Return the blocks' centres (4, 3) in the order of ``BLOCK_NAMES``."""
        return np.stack([self.data.qpos[a : a + 3] for a in self._block_qpos.values()])

    def pad_position(self) -> np.ndarray:
        """Return the centre (2,) of the place pad, x and y on the table."""
        return self.data.qpos[self._pad_qpos]

    def object_positions(self) -> dict[str, np.ndarray]:
        """Return the centre (3,) of each block and of the pad, by name, blocks first."""
        found = dict(zip(BLOCK_NAMES, self.block_positions()))
        found[PAD_NAME] = np.append(self.pad_position(), 0.0)
        return found

    def block_yaw(self, name: str) -> float:
        """Return a block's heading about z, rad."""
        w, x, y, z = self.data.qpos[self._block_qpos[name] + 3 : self._block_qpos[name] + 7]
        return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))

    def touched(self) -> list[str]:
        """Return what the arm touches now: block names and "table", in order, without repeats."""
        found = []
        table = int(self.model.geom("table").bodyid[0])
        bodies = self.model.geom_bodyid[self.data.contact.geom]
        for first, second in bodies[self.data.contact.dist <= 0.0]:
            for arm, other in ((first, second), (second, first)):
                if arm in self._arm_bodies:
                    name = self._block_body.get(int(other), "table" if other == table else None)
                    if name is not None and name not in found:
                        found.append(name)
        return sorted(found)

    # -- pictures ---------------------------------------------------------------------------

    def render(self, camera: str, out: np.ndarray | None = None) -> np.ndarray:
        """Return a camera's image now, uint8 (height, width, 3) RGB; into `out` if given."""
        return self._rig.draw(self.data, camera, out)

    def project(self, camera: str, points: np.ndarray) -> np.ndarray:
        """Return the pixels (..., 2) that world points (..., 3) fall on in that image."""
        return project(self.data, camera, points, self.size)

    def pose(self) -> np.ndarray:
        """Return a copy of the whole configuration (nq,), for ``CameraRig.draw_pose``."""
        return self.data.qpos.copy()

    def close(self) -> None:
        """Free the drawing context."""
        self._rig.close()

    def _bodies_below(self, root: str) -> frozenset[int]:
        found = {int(self.model.body(root).id)}
        for body in range(self.model.nbody):  # parents come before their children
            if int(self.model.body_parentid[body]) in found:
                found.add(body)
        return frozenset(found)


def _draw_home(random: np.random.Generator) -> np.ndarray:
    while True:
        joints = HOME + random.normal(size=HOME.size) * HOME_SPREAD
        joints = np.clip(joints, JOINT_LOWER, JOINT_UPPER)
        if kinematics.forward(joints)[2] >= START_CLEARANCE:
            return joints


def _draw_blocks(random: np.random.Generator, count: int) -> np.ndarray:
    """Return x, y and yaw (count, 3); starts over when the last blocks find no room."""
    while True:
        placed: list[tuple[float, float, float]] = []
        for _ in range(200):
            # The square root makes the draw uniform by area.
            radius = np.sqrt(random.uniform(BLOCK_RADIUS[0] ** 2, BLOCK_RADIUS[1] ** 2))
            angle = random.uniform(-BLOCK_ANGLE, BLOCK_ANGLE)
            yaw = random.uniform(-np.pi, np.pi)
            x, y = radius * np.cos(angle), radius * np.sin(angle)
            if all(np.hypot(x - a, y - b) >= BLOCK_SPACING for a, b, _ in placed):
                placed.append((x, y, yaw))
            if len(placed) == count:
                return np.array(placed)


def _draw_pad(random: np.random.Generator, blocks: np.ndarray) -> np.ndarray:
    """Return x and y (2,) apart from the blocks (n, 2); where there is no room, as far as can be."""
    best, most = np.zeros(2), -1.0
    for _ in range(200):
        radius = np.sqrt(random.uniform(PAD_RADIUS[0] ** 2, PAD_RADIUS[1] ** 2))
        angle = random.uniform(-PAD_ANGLE, PAD_ANGLE)
        place = np.array([radius * np.cos(angle), radius * np.sin(angle)])
        room = float(np.linalg.norm(blocks - place, axis=1).min())
        if room > most:
            best, most = place, room
        if most >= PAD_SPACING:
            break
    return best
