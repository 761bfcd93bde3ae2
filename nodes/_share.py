# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The share of the machine that a node computes with, and the parameters that decide it."""

from __future__ import annotations

from collections.abc import Sequence

from omni_ros.nodes._support import describe, describe_int
from omni_ros.telemetry.cpulist import parse_cpus
from omni_ros.telemetry.hardware import this_machine
from omni_ros.telemetry.hardware_profile import load_hardware
from omni_ros.telemetry.placement import Override, Share, load_overrides, place


def declare_share(node) -> None:
    """Declare them; all are read at configure."""
    declare = node.declare_parameter
    declare("threads", 0, describe_int(
        "threads to compute with; 0: as the placement says", low=0, high=256))
    declare("cpus", "", describe(
        "cpus to compute on, e.g. '3', '2,3' or '2-3'; empty: as the placement says"))
    declare("placement", "", describe(
        "YAML file with the section `placement:`, what to place otherwise; empty: none"))
    declare("hardware", "", describe(
        "recorded profile of a machine to place for, instead of this one; empty: this one"))


def share_of(node, process: str, processes: Sequence[str]) -> tuple[Share, str]:
    """Return what a process gets of the machine, and why in words.

    :param process: the node's own, or that which it shares with others.
    :param processes: all that are placed beside each other, this one among them.
    :raises ValueError: a parameter, or a file that it names, is refused.
    """
    def get(name: str):
        return node.get_parameter(name).value

    hardware = load_hardware(get("hardware")) if get("hardware") else this_machine()
    overrides = dict(load_overrides(get("placement"))) if get("placement") else {}
    if get("threads") or get("cpus"):
        before = overrides.get(process, Override())
        overrides[process] = Override(
            cpus=parse_cpus(get("cpus")) if get("cpus") else before.cpus,
            threads=get("threads") or before.threads, nice=before.nice)
    placement = place(hardware, processes, overrides)
    return placement[process], placement.text(process)
