# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity --openpi --bag`: a remote policy on what a robot saw."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omni_ros.cli import main

pytest.importorskip("websockets")
pytest.importorskip("msgpack")


@pytest.fixture(scope="module")
def server(runner):
    """The bundle of the recording, served."""
    from omni_ros.openpi.served import ServedBundle
    from omni_ros.openpi.server import PolicyServer
    from omni_ros.openpi.server_settings import ServerSettings

    server = PolicyServer(ServedBundle(runner.policy), ServerSettings(port=0))
    server.start()
    yield server
    server.stop()


def parity(*words) -> int:
    return main.main(["parity", *map(str, words)])


def test_the_recordings_own_policy_agrees_with_itself_from_afar(
        server, bundle, recording, tmp_path, capsys):
    report = tmp_path / "report.json"
    assert parity(bundle, "--openpi", server.url, "--bag", recording, "--json", report) == 0
    document = json.loads(report.read_text())
    assert document["observations"] >= 3 and document["noise"] == "same for both"
    assert max(joint["largest"] for joint in document["joints"]) == 0.0
    assert f"of the recording {recording}" in " ".join(capsys.readouterr().out.split())


def test_another_policy_is_told_from_it_on_the_same_recording(
        server, changed_bundle, recording):
    other = changed_bundle(lambda manifest: replace(
        manifest, flow=replace(manifest.flow, steps=2, dt=-0.5),
        dimensions=replace(manifest.dimensions, steps=2)))
    assert parity(other, "--openpi", server.url, "--bag", recording) == 1


def test_a_bag_without_observations_says_what_is_missing(
        server, bundle, write_bag, session, robot_file, capsys):
    pictureless = [m for m in session() if m.kind != "sensor_msgs/msg/Image"]
    bag = write_bag(pictureless)
    assert parity(bundle, "--openpi", server.url, "--bag", bag) == 2
    assert "no observation that is whole" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["--robot", "tabletop"], "--robot is for --bag"),
    (["--bag", "x", "--observations", "y.npz"], "expected one of them")])
def test_options_that_contradict_each_other_are_refused(bundle, words, said, capsys):
    assert parity(bundle, "--openpi", "ws://127.0.0.1:1", *words) == 2
    assert said in capsys.readouterr().err
