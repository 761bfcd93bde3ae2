# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the stage nodes decide, free of ROS: does a bundle fit a robot, is a hand-off to be used."""

from __future__ import annotations

from omni_ros.stages.fit import Fit, fit_robot
from omni_ros.stages.freshness import Freshness
from omni_ros.stages.gate import DROPS, Gate, Instruction
from omni_ros.stages.opening import Opened, open_stage
from omni_ros.stages.tally import Tally

__all__ = [
    "DROPS", "Fit", "Freshness", "Gate", "Instruction", "Opened", "Tally", "fit_robot", "open_stage",
]
