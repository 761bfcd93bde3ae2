# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the launch file makes of its arguments; nothing is started here."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest

pytest.importorskip("launch_ros")
from launch import LaunchContext  # noqa: E402
from launch_ros.utilities import evaluate_parameters  # noqa: E402

from omni_ros.robot.files import robot_file  # noqa: E402

FILE = Path(__file__).parents[2] / "launch" / "vla.launch.py"


def made(**arguments: str) -> dict[str, dict]:
    """Return {node: its parameters} for the given launch arguments."""
    launch = runpy.run_path(str(FILE))
    context = LaunchContext()
    defaults = {name: default for name, (default, _) in launch["ARGUMENTS"].items()}
    context.launch_configurations.update({**defaults, **arguments})
    found = {}
    for node in launch["make_nodes"](context):
        [parameters] = evaluate_parameters(context, node._Node__parameters)
        found[node.node_executable] = parameters
    return found


@pytest.mark.parametrize("seed", ["-1", "1.5", "", "9223372036854775808", "1" + 30 * "0"])
def test_a_seed_that_no_parameter_can_hold_is_refused_with_the_range(seed):
    with pytest.raises(ValueError, match=f"{seed!r}.*0 to 9223372036854775807"):
        made(seed=seed)


@pytest.mark.parametrize("seed", ["0", "9223372036854775807"])
def test_the_ends_of_the_range_of_seeds_are_passed_on(seed):
    assert made(seed=seed)["world"]["seed"] == int(seed)


@pytest.mark.parametrize("folder", ["a b", "arm #2", "x: y", "[1]", "'"])
def test_a_robot_path_reaches_the_nodes_as_it_was_written(tmp_path, folder):
    path = tmp_path / folder / "my arm #2: left.yaml"
    path.parent.mkdir()
    shutil.copy(robot_file("tabletop"), path)
    assert made(robot=str(path))["action_player"]["robot"] == str(path)
    assert made(robot=str(path), policy="scripted")["scripted_policy"]["robot"] == str(path)


STAGES = ["vision_encoder", "fusion_backbone", "action_head"]


def test_without_a_word_the_bundle_of_the_table_top_acts():
    assert made()["policy_stages"]["bundle"] == "tabletop"


def test_the_stages_of_a_policy_are_one_process_with_three_nodes_or_three_processes():
    assert "policy_stages" in made(policy="bundle", composition="single")
    separate = made(policy="bundle", composition="separate")
    assert set(STAGES) <= set(separate) and "policy_stages" not in separate


@pytest.mark.parametrize("composition", ["single", "separate"])
def test_stages_are_brought_up_in_the_order_of_the_data_behind_the_player(composition):
    names = made(policy="bundle", composition=composition)["lifecycle_manager"]["node_names"]
    assert list(names) == ["world", "action_player", *STAGES]


def test_a_sentence_and_a_bundle_reach_the_first_stage_as_they_were_written():
    nodes = made(policy="bundle", composition="separate", instruction="touch: the #1 block",
                 bundle="/a b/c: d", transport="inline")
    first = nodes["vision_encoder"]
    assert (first["instruction"], first["bundle"], first["transport"]) == (
        "touch: the #1 block", "/a b/c: d", "inline")
    assert "instruction" not in nodes["action_head"]


def test_speech_is_brought_up_apart_from_what_acts():
    quiet, loud = made(), made(speech="true", voice="x", sound_device="7")
    assert "tts" not in quiet
    assert (loud["tts"]["voice"], loud["tts"]["device"]) == ("x", "7")
    assert list(loud["lifecycle_manager"]["node_names"]) == ["tts"]
