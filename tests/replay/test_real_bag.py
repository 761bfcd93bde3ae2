# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Half a minute of the default graph as its recorder wrote it, done again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rosbags")
pytest.importorskip("executorch")

from omni_ros.bundles import BundleError  # noqa: E402
from omni_ros.bundles.named import bundle_folder  # noqa: E402
from omni_ros.replay.bag import Bag  # noqa: E402
from omni_ros.replay.changes import manifest_changes  # noqa: E402
from omni_ros.replay.configuration import changed, versions  # noqa: E402
from omni_ros.replay.contents import read_contents  # noqa: E402
from omni_ros.replay.player import replay_player  # noqa: E402
from omni_ros.replay.replaying import Options, replay  # noqa: E402
from omni_ros.replay.verdict import Kind  # noqa: E402

BAG = Path(__file__).resolve().parents[1] / "data" / "bags" / "tabletop_30s"
if not BAG.is_dir():
    pytest.skip("no recording", allow_module_level=True)


@pytest.fixture(scope="module")
def tabletop() -> Path:
    try:
        return bundle_folder("tabletop")
    except BundleError:
        pytest.skip("no bundle: make setup exports it")


@pytest.fixture(scope="module")
def info():
    with Bag(BAG) as bag:
        return read_contents(bag).info


def test_it_is_small_enough_to_keep():
    assert sum(file.stat().st_size for file in BAG.iterdir()) < 5_000_000


@pytest.mark.slow
def test_it_comes_out_the_same_ten_times_of_ten(tabletop, info):
    """Bit for bit where it was recorded; elsewhere within what the bundle allows for."""
    known = dict(zip(info.version_names, info.version_values))
    here = not changed(known, versions()) and not manifest_changes(
        info.manifest, (tabletop / "bundle.yaml").read_text(encoding="utf-8"))
    for _ in range(10):
        result = replay(BAG, tabletop)
        kinds = {one.kind for one in result.tally.verdicts}
        assert len(result.tally.verdicts) > 40 and not result.missing
        assert result.bits == here
        assert kinds == {Kind.SAME} if here else kinds <= {Kind.SAME, Kind.WITHIN}


def test_the_same_policy_in_int8_is_within_tolerance_and_the_recipe_is_named():
    try:
        other = bundle_folder("tabletop_int8")
    except BundleError:
        pytest.skip("no int8 bundle: make setup exports it")
    result = replay(BAG, other)
    assert result.overall is Kind.WITHIN
    assert "programs.vision_encoder.recipe was fp32, is int8" in map(str, result.changes)


def test_the_player_commands_the_same_again_to_within_a_tick():
    result = replay_player(BAG, Options())
    assert result.kind in (Kind.SAME, Kind.WITHIN)
    assert result.compared > 1000 and result.alone[0] < 50
    assert (result.typical < 0.5 * result.allowed).all()


@pytest.mark.parametrize(("field", "value"), [("blend_s", 0.0), ("ramp_in_s", 1.5)])
def test_a_changed_player_is_seen_in_its_commands(info, tmp_path, field, value):
    robot = yaml.safe_load(yaml.safe_load(info.configuration_yaml)["robot"])
    robot["player"][field] = value
    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump(robot), encoding="utf-8")
    result = replay_player(BAG, Options(robot=str(file)))
    assert result.kind is Kind.DIFFERENT


def test_a_changed_limit_is_seen_in_the_commands(info, tmp_path):
    robot = yaml.safe_load(yaml.safe_load(info.configuration_yaml)["robot"])
    for joint in robot["joints"]:
        joint["velocity"] *= 0.3
    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump(robot), encoding="utf-8")
    assert replay_player(BAG, Options(robot=str(file))).kind is Kind.DIFFERENT


def test_the_player_is_part_of_the_verdict_and_of_what_is_written(tabletop, tmp_path, capsys):
    from omni_ros.cli import main

    file = tmp_path / "facts.json"
    status = main.main(["replay", str(BAG), "--bundle", str(tabletop), "--player", "--json", str(file)])
    facts = json.loads(file.read_text(encoding="utf-8"))
    assert status == 0 and facts["verdict"] == "within tolerance"
    assert facts["player"]["verdict"] == "within tolerance"
    assert "the player, run again: within tolerance" in " ".join(capsys.readouterr().out.split())
