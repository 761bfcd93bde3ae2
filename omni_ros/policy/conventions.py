# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What training did to states and actions outside normalisation, and its way back.

    robot units -> [ALOHA's joints to the policy's] -> [less the state, of actions] -> normalised

Actions that are relative to the state are relative to that of the observation, all rows of a chunk
alike: they become absolute once, when the chunk is decoded, and stay so however the robot moves.

ALOHA (adapt_to_pi_aloha): two arms of six joints and a gripper. Joints 1, 2, 8 and 9 are negated. A
gripper is a share of the way of its finger; the policy has it as the motor's angle. Which angles are
0 and 1 is where releases differ, and with the wrong ones grippers open and close again and again:

    openpi    (angle - 0.5476) / (1.6296 - 0.5476) of the state; actions are angles less 0.5476
    lerobot   (angle - 0.4) / (1.5 - 0.4), of state and actions (also openpi's first release)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

NEGATED, GRIPPERS = (1, 2, 8, 9), (6, 13)
#: The finger's way in metres at the shares 0 and 1, and the linkage between it and the motor.
WAY = (0.01844, 0.05800)
ARM, HORN = 0.036, 0.022
#: The motor's angle at the shares 0 and 1 of an action.
JOINT = (-0.6213, 1.4910)
#: Angles that are 0 and 1 to the policy: of the state, and of actions.
ANGLES = {
    "openpi": ((0.5476, 1.6296), (0.5476, 1.5476)),
    "lerobot": ((0.4, 1.5), (0.4, 1.5)),
}


class Conventions:
    """Both directions, on float32; `aloha` and `relative` as in a bundle's manifest."""

    def __init__(self, aloha: str = "none", relative: Sequence[bool] = ()) -> None:
        """:raises ValueError: nobody's constants are called so."""
        if aloha != "none" and aloha not in ANGLES:
            raise ValueError(f"aloha is {aloha!r}; expected none, {', '.join(ANGLES)}")
        self.aloha = aloha
        self.relative = np.array(relative, np.bool_)
        #: Whether actions need a state to be decoded.
        self.anchored = bool(self.relative.any())
        #: Whether there is nothing to do.
        self.plain = aloha == "none" and not self.anchored

    def state(self, state: np.ndarray) -> np.ndarray:
        """Return a state, f32 [state] in the data set's units, as the policy has it."""
        if self.aloha == "none":
            return state
        made = np.array(state, np.float32)
        made[..., NEGATED] *= -1.0
        (low, high), _ = ANGLES[self.aloha]
        way = np.float64(made[..., GRIPPERS]) * (WAY[1] - WAY[0]) + WAY[0]
        # Beyond the linkage's reach there is no angle; where the finger is at 0 it is not defined.
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = (HORN**2 + way**2 - ARM**2) / (2 * HORN * way)
        angle = np.arcsin(np.clip(np.nan_to_num(sine, nan=-1.0), -1.0, 1.0))
        made[..., GRIPPERS] = (angle - low) / (high - low)
        return made

    def decode(self, actions: np.ndarray, state: np.ndarray | None) -> np.ndarray:
        """Return a policy's actions [rows, action], no longer normalised, in the data set's units.

        :param state: of the observation, in the data set's units; needed if `anchored`.
        :raises ValueError: it is missing.
        """
        if self.plain:
            return actions
        made = np.array(actions, np.float32)
        if self.anchored:
            made += self._offset(state, made.shape[-1])
        if self.aloha != "none":
            made[..., NEGATED] *= -1.0
            _, (low, high) = ANGLES[self.aloha]
            angle = made[..., GRIPPERS] * (high - low) + low
            made[..., GRIPPERS] = (angle - JOINT[0]) / (JOINT[1] - JOINT[0])
        return made

    def encode(self, actions: np.ndarray, state: np.ndarray | None) -> np.ndarray:
        """Return actions in the data set's units as the policy has them, to be normalised.

        :raises ValueError: `state` is missing.
        """
        if self.plain:
            return actions
        made = np.array(actions, np.float32)
        if self.aloha != "none":
            made[..., NEGATED] *= -1.0
            _, (low, high) = ANGLES[self.aloha]
            angle = made[..., GRIPPERS] * (JOINT[1] - JOINT[0]) + JOINT[0]
            made[..., GRIPPERS] = (angle - low) / (high - low)
        if self.anchored:
            made -= self._offset(state, made.shape[-1])
        return made

    def _offset(self, state: np.ndarray | None, width: int) -> np.ndarray:
        if state is None:
            raise ValueError(
                "actions are relative to the state of the observation, and no state was given; "
                "expected that of the observation that they were decided from"
            )
        offset = np.zeros(width, np.float32)
        mask = self.relative[:width]
        offset[mask] = self.state(np.asarray(state, np.float32))[:width][mask]
        return offset
