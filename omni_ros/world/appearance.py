# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How the scene looks: as built, or with light, tints and camera poses drawn from a seed.

A policy that has only seen one light takes the light for the scene. "varied" is what such a policy
is trained on in part, and what it can be evaluated on. Only what is drawn changes: no geometry that
collides, no masses.
"""

from __future__ import annotations

import numpy as np

from omni_ros.world.mujoco_gl import mujoco

PLAIN = "plain"
VARIED = "varied"
APPEARANCES = (PLAIN, VARIED)

#: Keeps the looks of a seed apart from the episode of the same seed.
_STREAM = 0x6C6F6F6B

#: Spread of a camera's position, metres, and of its direction, radians.
CAMERA_SHIFT = {"front": 0.004, "wrist": 0.001}
CAMERA_TURN = {"front": 0.012, "wrist": 0.010}
#: By how much the share of a colour may move, either way.
BLOCK_TINT, SURFACE_TINT, ARM_TINT = 0.10, 0.22, 0.15


class Appearance:
    """Sets the looks of a model for a seed; always from the looks as built, never on top."""

    def __init__(self, model: mujoco.MjModel, mode: str = PLAIN) -> None:
        """:raises ValueError: `mode` is none of ``APPEARANCES``."""
        if mode not in APPEARANCES:
            raise ValueError(f"appearance is {mode!r}; use one of {', '.join(APPEARANCES)}")
        self.mode = mode
        self._model = model
        self._built = {
            name: getattr(model, name).copy()
            for name in ("light_dir", "light_diffuse", "geom_rgba", "mat_rgba", "cam_pos",
                         "cam_quat")
        }
        self._ambient = model.vis.headlight.ambient.copy()

    def reset(self, seed: int) -> None:
        """Set the looks of a seed."""
        self.restore()
        if self.mode == VARIED:
            self.vary(np.random.default_rng([seed, _STREAM]))

    def restore(self) -> None:
        """Go back to the looks as built."""
        for name, values in self._built.items():
            getattr(self._model, name)[:] = values
        self._model.vis.headlight.ambient[:] = self._ambient

    def vary(self, random: np.random.Generator) -> None:
        """Draw light, tints and camera poses."""
        model = self._model
        warmth = 1.0 + random.uniform(-0.06, 0.06) * np.array([1.0, 0.0, -1.0])
        model.vis.headlight.ambient[:] = self._ambient * random.uniform(0.75, 1.2) * warmth
        for light in range(model.nlight):
            direction = self._built["light_dir"][light] + random.normal(size=3) * 0.25
            model.light_dir[light] = direction / np.linalg.norm(direction)
            model.light_diffuse[light] *= random.uniform(0.6, 1.35) * warmth
        for material in range(model.nmat):
            name = model.material(material).name
            spread = SURFACE_TINT if name in ("table", "edge", "floor", "mat") else ARM_TINT
            model.mat_rgba[material, :3] *= _tint(random, spread)
        for geom in range(model.ngeom):
            if model.geom(geom).name.startswith("block_"):
                model.geom_rgba[geom, :3] *= _tint(random, BLOCK_TINT)
        np.clip(model.mat_rgba, 0.0, 1.0, out=model.mat_rgba)
        np.clip(model.geom_rgba, 0.0, 1.0, out=model.geom_rgba)
        for name, shift in CAMERA_SHIFT.items():
            camera = model.camera(name).id
            model.cam_pos[camera] += random.normal(size=3) * shift
            turn = random.normal(size=3) * CAMERA_TURN[name]
            mujoco.mju_quatIntegrate(model.cam_quat[camera], turn, 1.0)


def _tint(random: np.random.Generator, spread: float) -> np.ndarray:
    """Return factors (3,): one brightness for all, and a third of it for each channel alone."""
    return (1.0 + random.uniform(-spread, spread)) * (
        1.0 + random.uniform(-spread / 3, spread / 3, size=3)
    )
