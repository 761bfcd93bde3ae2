# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""π0 and π0.5 in the nodes, launch file and server that SmolVLA runs in: one argument differs."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS, to_ns
from omni_ros.policy.observation import Observation

TOKENIZER = Path(__file__).parents[2] / "data" / "oracles" / "pi0_given" / "tokenizer"
#: Age of pictures from which the head does not run on them, seconds.
PAST_S = 20.0


@pytest.fixture(scope="module")
def pi0_bundle(tmp_path_factory, policy_robot):
    """Return a bundle by family: tiny ones for the table-top arm, cameras renamed to its own."""
    for module in ("torch", "executorch.exir", "safetensors", "tokenizers"):
        pytest.importorskip(module)
    from omni_ros.models.export.bundle import export_checkpoint
    from omni_ros.models.pi0.random_checkpoint import TINY, as_pi05, write_checkpoint
    from omni_ros.nodes._support import load_robot_parameter

    robot, made = load_robot_parameter("tabletop"), {}

    def make(family: str) -> Path:
        if family in made:
            return made[family]
        folder = tmp_path_factory.mktemp(family)
        config = dataclasses.replace(TINY, action=6, state=6, chunk=16, n_action_steps=16)
        checkpoint = write_checkpoint(
            folder, as_pi05(config) if family == "pi05" else config, tokenizer=TOKENIZER, cameras=2)
        renames = {"observation.images.camera1": "observation.images.base_0_rgb",
                   "observation.images.camera2": "observation.images.left_wrist_0_rgb"}
        path = checkpoint / "policy_preprocessor.json"
        path.write_text(path.read_text().replace(
            '"rename_map": {}', f'"rename_map": {json.dumps(renames)}'))
        home = robot.home
        moments = {"mean": home.tolist(), "std": [0.2] * 6, "q01": (home - 0.4).tolist(),
                   "q99": (home + 0.4).tolist()}
        still = {"mean": [0.0] * 6, "std": [1.0] * 6, "q01": [-2.0] * 6, "q99": [2.0] * 6}
        export_checkpoint(
            checkpoint, folder / f"{family}.bundle",
            joints=",".join(f"{name}:rad" for name in robot.joint_names),
            statistics={"observation.state": still, "action": moments}, isolate=False)
        made[family] = folder / f"{family}.bundle"
        return made[family]

    return make


def decided(policy, tools, stamp_ns, *, joints_ns=None):
    """Rows that belong to the pictures of a moment and the joints of the same, or of another."""
    joints_ns = stamp_ns if joints_ns is None else joints_ns
    images = {b: tools.picture(r, stamp_ns) for r, b in tools.cameras.items()}
    observation = Observation(images, tools.pose(joints_ns), joints_ns)
    return policy.infer(observation, tools.sentence, seed=0).actions.astype(np.float64)


@pytest.mark.parametrize("family", ["pi0", "pi05"])
def test_the_stages_give_the_chunks_of_the_bundle_bit_for_bit(
        family, pi0_bundle, policy_robot, policy_tools, tools, ros_domain, tmp_path):
    from omni_ros.policy.flow_policy import FlowPolicy

    robot = policy_robot(guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0, life_s=600.0)
    folder = pi0_bundle(family)
    graph = tools.Graph(tmp_path)
    try:
        policy = policy_tools.Policy(graph, tools, "separate" if family == "pi0" else "single",
                                     robot=robot, bundle=str(folder),
                                     instruction=policy_tools.sentence)
        senses = policy_tools.Senses(graph)
        start_ns = time.time_ns() - 30_000_000_000
        with FlowPolicy(folder) as reference:
            for stamp_ns in (start_ns, start_ns + 2_000_000_000):
                got = policy.answer(senses, stamp_ns)
                np.testing.assert_array_equal(got, decided(reference, policy_tools, stamp_ns))
        assert policy.status("action_head").head_runs == 0
        assert math.isnan(policy.status("action_head").prefix_age)
    finally:
        graph.close()


@pytest.fixture(scope="module")
def fast(pi0_bundle, policy_robot, policy_tools, tools, ros_domain, tmp_path_factory):
    """A π0 whose head runs on newer joints, on prefixes of some seconds."""
    from omni_ros.policy.flow_policy import FlowPolicy

    robot = policy_robot(guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0,
                         life_s=600.0, head_rate_hz=20.0, prefix_life_s=PAST_S)
    graph = tools.Graph(tmp_path_factory.mktemp("fast"))
    try:
        policy = policy_tools.Policy(graph, tools, "single", robot=robot,
                                     bundle=str(pi0_bundle("pi0")),
                                     instruction=policy_tools.sentence)
        policy.senses = policy_tools.Senses(graph)
        with FlowPolicy(pi0_bundle("pi0")) as policy.reference:
            yield policy
    finally:
        graph.close()


def chunk_of(policy, tools, stamp_ns, timeout_s=10.0):
    def found():
        return next((m for m in policy.chunks.messages if to_ns(m.header.stamp) == stamp_ns), None)

    return tools.eventually(found, f"the chunk of {stamp_ns}\n{policy.graph.logs()}",
                            timeout_s=timeout_s)


def test_on_a_prefix_that_is_too_old_the_head_does_not_run_again(fast, tools):
    stamp_ns = time.time_ns() - round((PAST_S + 15.0) * 1e9)
    fast.answer(fast.senses, stamp_ns)
    known = len(fast.chunks)
    fast.senses.joints(stamp_ns + 100_000_000)
    time.sleep(1.0)
    assert len(fast.chunks) == known
    assert math.isnan(fast.until("action_head", lambda m: True, "a status").prefix_age)


def test_newer_joints_get_a_chunk_of_their_own_from_the_old_pictures(fast, tools, policy_tools):
    stamp_ns = time.time_ns() - 8_000_000_000
    fast.answer(fast.senses, stamp_ns)
    for step in (1, 2):
        joints_ns = stamp_ns + step * 100_000_000
        fast.senses.joints(joints_ns)
        chunk = chunk_of(fast, tools, joints_ns)
        wanted = decided(fast.reference, policy_tools, stamp_ns, joints_ns=joints_ns)
        np.testing.assert_array_equal(policy_tools.rows(chunk), wanted)
        assert [timing.stage for timing in chunk.timings] == ["action_head", "postprocess"]
    status = fast.until("action_head", lambda m: m.head_runs >= 2, "runs on newer joints")
    assert 8.0 <= status.prefix_age <= PAST_S
    # It is no observation more, and none is lost by it.
    assert fast.drops("vision_encoder", "no chunk") == 0


def test_the_same_joints_are_not_decided_from_twice(fast):
    known = len(fast.chunks)
    time.sleep(0.5)
    assert len(fast.chunks) == known


def test_another_sentence_ends_the_runs_on_the_old_prefix(fast):
    fast.say("touch the green block")
    fast.until("action_head", lambda m: m.instruction == "touch the green block", "the sentence")
    known = len(fast.chunks)
    fast.senses.joints(time.time_ns() - 1_000_000_000)
    time.sleep(0.5)
    assert len(fast.chunks) == known


def test_a_head_without_the_state_refuses_a_rate_of_its_own(
        pi0_bundle, policy_robot, tools, ros_domain, tmp_path):
    graph = tools.Graph(tmp_path)
    try:
        process = graph.start("action_head", bundle=str(pi0_bundle("pi05")),
                              robot=policy_robot(guidance="none", head_rate_hz=20.0))
        assert not graph.change_state("action_head", "configure")
        tools.eventually(lambda: "has no state: only a" in process.output,
                         f"the reason\n{process.output}")
    finally:
        graph.close()


@pytest.fixture(scope="module")
def launched(pi0_bundle, policy_robot, tools, ros_domain, tmp_path_factory):
    """The launch file with a π0 for its bundle, and a recorder, until the arm has moved by it for a while."""
    from omni_ros.msg import ActionChunk, PlayerStatus

    folder = tmp_path_factory.mktemp("launched")
    graph = tools.Graph(tmp_path_factory.mktemp("launch"))
    try:
        player = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
        robot = policy_robot(guidance="rtc", player={"switching": "latest"}, head_rate_hz=10.0,
                             prefix_life_s=2.0)
        launch = tools.Process("launch", [
            shutil.which("ros2"), "launch", "omni_ros", "vla.launch.py", "policy:=bundle",
            f"bundle:={pi0_bundle('pi0')}", f"robot:={robot}", "composition:=single",
            "instruction:=touch the red block", "record:=true", f"bag:={folder / 'bag'}"],
            graph.folder)
        graph.processes.append(launch)
        moved = tools.eventually(lambda: any(
            m.state == PlayerStatus.STATE_PLAYING and np.abs(m.command_velocity).max() > 0.02
            for m in player.messages), f"motion\n{graph.logs()}", timeout_s=90.0)
        again = tools.eventually(lambda: [
            m for m in chunks.messages if m.timings[0].stage == "action_head"],
            f"chunks of fresh joints\n{graph.logs()}")
        launch.end()
        yield SimpleNamespace(moved=moved, again=len(again), bag=folder / "bag")
    finally:
        graph.close()


def test_the_launch_file_moves_the_arm_by_a_pi0(launched):
    assert launched.moved and launched.again


def test_what_a_pi0_decided_is_decided_again_from_its_recording(launched, pi0_bundle, tmp_path):
    answer = tmp_path / "replay.json"
    replay = subprocess.run(
        [sys.executable, "-P", "-m", "omni_ros.cli.main", "replay", str(launched.bag), "--bundle",
         str(pi0_bundle("pi0")), "--json", str(answer)], capture_output=True, text=True, timeout=120)
    assert replay.returncode == 0, replay.stdout + replay.stderr
    found = json.loads(answer.read_text())
    assert found["verdict"] == "same" and found["bit_for_bit"] and not found["passed_over"]
    assert found["counts"]["same"] == len(found["chunks"]) > launched.again


def test_the_server_serves_a_pi0(pi0_bundle, tmp_path):
    bundle = str(pi0_bundle("pi0"))
    command = [sys.executable, "-P", "-m", "omni_ros.cli.main"]
    server = subprocess.Popen([*command, "serve", bundle, "--port", "0"], stdout=subprocess.PIPE,
                              text=True)
    try:
        line = ""
        while "openpi" not in line:
            line = server.stdout.readline()
            assert line, "omni serve has ended"
        parity = subprocess.run(
            [*command, "parity", bundle, "--openpi", line.split()[-1], "--json",
             str(tmp_path / "parity.json")], capture_output=True, text=True, timeout=120,
        )
        assert parity.returncode == 0, parity.stdout + parity.stderr
        assert json.loads((tmp_path / "parity.json").read_text())["passed"]
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
