# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters that every stage of a policy has, and the share of the machine that follows from them."""

from __future__ import annotations

from omni_ros.nodes._support import describe, describe_int
from omni_ros.telemetry.hardware import this_machine
from omni_ros.telemetry.hardware_profile import load_hardware
from omni_ros.telemetry.placement import SEPARATE, SINGLE, Override, Share, load_overrides, place
from omni_ros.telemetry.cpulist import parse_cpus

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
    declare("threads", 0, describe_int(
        "threads that a program computes with; 0: as the placement says", low=0, high=256))
    declare("cpus", "", describe(
        "cpus to compute on, e.g. '3', '2,3' or '2-3'; empty: as the placement says"))
    declare("placement", "", describe(
        "YAML file with the section `placement:`, what to place otherwise; empty: none"))
    declare("hardware", "", describe(
        "recorded profile of a machine to place for, instead of this one; empty: this one"))


def share_of(node, process: str) -> tuple[Share, list[str]]:
    """Return what a process gets of the machine, and the reasons in words.

    :param process: the node's own, or that which it shares with the other stages.
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
    placement = place(hardware, SINGLE if process in SINGLE else SEPARATE, overrides)
    return placement[process], [placement.text(process)]
