# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What speech.launch.py makes of its arguments; nothing is started here."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("launch_ros")
from launch import LaunchContext  # noqa: E402
from launch_ros.utilities import evaluate_parameters  # noqa: E402

FILE = Path(__file__).parents[2] / "launch" / "speech.launch.py"


def made(**arguments: str) -> dict[str, dict]:
    launch = runpy.run_path(str(FILE))
    context = LaunchContext()
    defaults = {name: default for name, (default, _) in launch["ARGUMENTS"].items()}
    context.launch_configurations.update({**defaults, **arguments})
    return {node.node_executable: evaluate_parameters(context, node._Node__parameters)[-1]
            for node in launch["make_nodes"](context)}


def test_a_device_that_is_a_number_or_yaml_stays_a_text():
    assert made(device="2")["tts"]["device"] == "2"
    assert made(device="USB: card #1")["tts"]["device"] == "USB: card #1"


def test_a_node_that_somebody_else_brings_up_gets_no_manager():
    assert "lifecycle_manager" in made() and "lifecycle_manager" not in made(manage="false")


@pytest.mark.parametrize(("arguments", "word"), [
    ({"volume": "loud"}, "0 to 1"), ({"params": "/nowhere.yaml"}, "no such file")])
def test_what_cannot_be_is_refused_at_once(arguments, word):
    with pytest.raises(ValueError, match=word):
        made(**arguments)
