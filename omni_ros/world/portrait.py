# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A picture of the arm for people: where it stands, and the path its tip has taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from omni_ros.world import kinematics
from omni_ros.world.scene import PAD_NAME

SIZE = (960, 720)
TRAIL_COLOUR = (235, 64, 180)
#: The most segments that are drawn; more cannot be told apart.
SEGMENTS = 2000


def trail_picture(joint_positions: np.ndarray, blocks: Mapping[str, Sequence[float]]) -> np.ndarray:
    """Draw the arm at its last pose, the blocks and the pad, and the path of the tip.

    :param joint_positions: (times, 6) radians.
    :param blocks: centre of each block, and of the pad, by name, metres, frame "world".
    :return: RGB, uint8 (height, width, 3).
    """
    import cv2

    from omni_ros.world.simulation import Simulation

    simulation = Simulation(width=SIZE[0], height=SIZE[1], antialias=True)
    try:
        for name, centre in blocks.items():
            if name == PAD_NAME:
                simulation.place_pad(centre[:2])
            else:
                simulation.place_block(name, centre)
        simulation.place_arm(joint_positions[-1])
        image = np.ascontiguousarray(simulation.render("overview"))
        step = max(1, len(joint_positions) // SEGMENTS)
        tips = kinematics.forward(joint_positions[::step])
        pixels = np.round(simulation.project("overview", tips) * 16).astype(np.int32)
    finally:
        simulation.close()
    cv2.polylines(image, [pixels.reshape(-1, 1, 2)], False, TRAIL_COLOUR, 2, cv2.LINE_AA, 4)
    return image
