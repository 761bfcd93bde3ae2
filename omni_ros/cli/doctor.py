# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni doctor`: what this machine offers, and what is amiss.

A problem is something that is there and broken. What is merely not installed is a note, since no
machine needs all of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial

import omni_ros
from omni_ros.cli import UsageError, checks_machine, checks_software
from omni_ros.cli.report import (
    NOTE,
    PROBLEM,
    Finding,
    format_findings,
    paint,
    terminal_width,
    wants_colour,
    write,
)
from omni_ros.telemetry.hardware import read_hardware
from omni_ros.telemetry.hardware_profile import load_hardware, save_hardware
from omni_ros.telemetry.provenance import provenance

Check = Callable[[], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    checks_software.ros,
    checks_software.python,
    checks_machine.machine,
    checks_machine.placement,
    checks_machine.realtime,
    checks_software.backends,
    checks_software.world,
    checks_software.audio,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni doctor`."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    profile = parser.add_mutually_exclusive_group()
    profile.add_argument("--record-hardware", metavar="FILE",
                         help="write what placement reads from this machine to a profile, no more")
    profile.add_argument("--hardware", metavar="FILE",
                         help="show only the CPU placement, for the machine of a recorded profile")
    parser.epilog = "Exit status 1 if there is a problem: something that is there but broken."


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 1 if there is a problem among them."""
    if arguments.record_hardware:
        try:
            save_hardware(read_hardware(), arguments.record_hardware)
        except OSError as error:
            raise UsageError(f"{arguments.record_hardware}: {error.strerror}") from error
        write(f"recorded: {arguments.record_hardware}")
        return 0
    checks = CHECKS
    if arguments.hardware:
        checks = (partial(checks_machine.placement, load_hardware(arguments.hardware)),)
    findings = examine(checks)
    problems = sum(finding.mark == PROBLEM for finding in findings)
    notes = sum(finding.mark == NOTE for finding in findings)
    if arguments.json:
        document = {
            "problems": problems,
            "findings": [asdict(finding) for finding in findings],
            "provenance": provenance(),
        }
        write(json.dumps(document, indent=2))
        return int(problems > 0)
    colour = wants_colour(sys.stdout)
    width = terminal_width()
    write(paint(f"omni doctor {omni_ros.__version__}", "heading", colour) + "\n")
    write(format_findings(findings, width=width, colour=colour))
    summary = f"{_count(problems, 'problem')}, {_count(notes, 'note')}"
    write("\n" + paint(summary, PROBLEM if problems else "ok", colour))
    return int(problems > 0)


def examine(checks: Iterable[Check]) -> list[Finding]:
    """Run the checks. One that fails to run is reported as a note and does not stop the others."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except Exception as error:
            name = getattr(check, "__name__", "check")
            fact = f"this check could not be made: {type(error).__name__}: {error}"
            findings.append(Finding("Not checked", name, NOTE, fact))
    return findings


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
