# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the scene's cameras, and says how world points project into their images."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from omni_ros.world.mujoco_gl import mujoco
from omni_ros.world.scene import CAMERAS


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole without distortion, in ROS terms: the centre of the first pixel is (0, 0)."""

    width: int
    height: int
    focal: float
    centre_x: float
    centre_y: float

    def matrix(self) -> list[float]:
        """Return K, row-major, 9 values."""
        return [self.focal, 0.0, self.centre_x, 0.0, self.focal, self.centre_y, 0.0, 0.0, 1.0]

    def projection(self) -> list[float]:
        """Return P, row-major, 12 values."""
        k = self.matrix()
        return [*k[0:3], 0.0, *k[3:6], 0.0, *k[6:9], 0.0]


def intrinsics(camera: str, width: int, height: int) -> Intrinsics:
    """Return the intrinsics of a camera of the scene drawn at a size in pixels."""
    focal = height / 2 / np.tan(np.radians(CAMERAS[camera].fovy_deg) / 2)
    return Intrinsics(width, height, float(focal), (width - 1) / 2, (height - 1) / 2)


def project(data: mujoco.MjData, camera: str, points: np.ndarray, size: tuple[int, int]):
    """Return pixels (..., 2), x right and y down, of world points (..., 3).

    :param size: (width, height) in pixels.
    """
    view = intrinsics(camera, *size)
    position = data.camera(camera).xpos
    rotation = data.camera(camera).xmat.reshape(3, 3)  # columns: right, up, backwards
    local = (np.asarray(points, dtype=np.float64) - position) @ rotation
    depth = -local[..., 2]
    return np.stack(
        [
            view.centre_x + view.focal * local[..., 0] / depth,
            view.centre_y - view.focal * local[..., 1] / depth,
        ],
        axis=-1,
    )


class CameraRig:
    """Draws cameras at one size.

    The drawing context belongs to the thread that first draws; build one rig a thread.
    """

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        limit = (model.vis.global_.offwidth, model.vis.global_.offheight)
        if width > limit[0] or height > limit[1]:
            raise ValueError(
                f"image of {width}x{height} does not fit the scene's off-screen buffer of "
                f"{limit[0]}x{limit[1]}; build the scene with a larger `offscreen`"
            )
        self.width = width
        self.height = height
        self._model = model
        self._renderer: mujoco.Renderer | None = None
        self._scratch: mujoco.MjData | None = None

    def draw(
        self, data: mujoco.MjData, camera: str, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the camera's image, uint8 (height, width, 3) RGB; into `out` if given."""
        if self._renderer is None:
            self._renderer = mujoco.Renderer(self._model, self.height, self.width)
            # At the interpreter's end the graphics library goes first, and closing then fails.
            self._finalizer = weakref.finalize(self, self._renderer.close)
            flags = self._renderer.scene.flags
            flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
            flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._renderer.update_scene(data, camera)
        return self._renderer.render(out=out)

    def draw_pose(
        self, qpos: np.ndarray, camera: str, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Like `draw`, for the configuration `qpos` (nq,) alone."""
        if self._scratch is None:
            self._scratch = mujoco.MjData(self._model)
        if not np.array_equal(self._scratch.qpos, qpos) or self._scratch.time == 0.0:
            self._scratch.qpos[:] = qpos
            self._scratch.time = 1.0  # marks the scratch data as posed at least once
            mujoco.mj_kinematics(self._model, self._scratch)
            mujoco.mj_camlight(self._model, self._scratch)
        return self.draw(self._scratch, camera, out)

    def close(self) -> None:
        """Free the drawing context; call it from the thread that drew."""
        if self._renderer is not None:
            self._finalizer()
            self._renderer = None
