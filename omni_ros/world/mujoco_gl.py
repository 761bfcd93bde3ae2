# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Imports MuJoCo with a renderer that needs neither a GPU nor a display.

MuJoCo picks its renderer once, when it is first imported, so every module of the world takes it
from here. Set MUJOCO_GL yourself (for example to "egl") to choose another.
"""

from __future__ import annotations

import os

os.environ.setdefault("MUJOCO_GL", "osmesa")
if os.environ["MUJOCO_GL"] == "osmesa":
    # MuJoCo asks PyOpenGL for the same platform and refuses to start if they differ.
    os.environ.setdefault("PYOPENGL_PLATFORM", "osmesa")

try:
    import mujoco
except ImportError as error:
    raise ImportError(
        f"the simulated world needs MuJoCo, which failed to import ({error}); install it with "
        "`pip install mujoco` and, for drawing without a GPU, the system package libosmesa6, or "
        "run with a real robot (world:=none)"
    ) from error

__all__ = ["mujoco"]
