# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters that every stage of a policy has."""

from __future__ import annotations

from omni_ros.nodes._share import declare_share
from omni_ros.nodes._support import describe, describe_int

TRANSPORTS = ("auto", "inline")


def declare_parameters(node) -> None:
    """Declare them; all are read at configure."""
    declare = node.declare_parameter
    declare("robot", "tabletop", describe("robot YAML: a path, or a name in config/robots"))
    declare("bundle", "tabletop", describe(
        "bundle of the policy: a path, or the name of one that set-up or you have installed"))
    declare("transport", "auto", describe(
        "auto: tensors by shared memory where the next stage is on this machine, else in the "
        "message; inline: always in the message"))
    declare("ring_slots", 4, describe_int(
        "observations whose tensors are kept before the oldest is overwritten", low=2, high=64))
    declare_share(node)
