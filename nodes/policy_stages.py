# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The three stages of a policy in one process: the same nodes, tensors handed on by reference."""

from __future__ import annotations

import re
import sys

from rclpy.lifecycle import LifecycleNode

from omni_ros.nodes._runtime import run
from omni_ros.nodes._stage_handoff import LocalLink
from omni_ros.nodes.action_head import ActionHeadNode
from omni_ros.nodes.fusion_backbone import FusionBackboneNode
from omni_ros.nodes.vision_encoder import VisionEncoderNode

PROCESS = "policy_stages"


def make_nodes() -> list[LifecycleNode]:
    """Make the stages, joined by links; each keeps its name and its own lifecycle."""
    links = {"image_tokens": LocalLink(), "prefix": LocalLink()}
    return [make(process=PROCESS, links=links)
            for make in (VisionEncoderNode, FusionBackboneNode, ActionHeadNode)]


def without_names(argv: list[str]) -> list[str]:
    """Leave out `-r __node:=NAME`, which would give all three the same name."""
    kept: list[str] = []
    for argument in argv:
        if re.fullmatch(r"__(node|name):=.*", argument) and kept and kept[-1] in ("-r", "--remap"):
            kept.pop()
        else:
            kept.append(argument)
    return kept


def main(argv: list | None = None) -> int:
    return run(make_nodes, without_names(argv if argv is not None else sys.argv))
