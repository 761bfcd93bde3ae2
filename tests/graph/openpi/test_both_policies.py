# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The trained table-top policy at both ends: compared, replanning, and served by the graph."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from std_msgs.msg import String

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.named import bundle_folder
from omni_ros.msg import ActionChunk, BridgeStatus, ChunkDifference, PolicyStatus
from omni_ros.nodes._stage_node import STATUSES_QOS
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS

pytest.importorskip("executorch")
pytest.importorskip("tokenizers")
try:
    bundle_folder("tabletop")
except BundleError:
    pytest.skip("the table-top bundle is not installed", allow_module_level=True)

STAGES = ("vision_encoder", "fusion_backbone", "action_head")
ALL_CPUS = ",".join(map(str, sorted(os.sched_getaffinity(0))))
SENTENCE = "touch the red block"
PATIENCE_S = 90.0


@pytest.fixture
def served(tools, tmp_path):
    """`omni serve` with the bundle; its URL."""
    said = tmp_path / "serve.log"
    with said.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "omni_ros.cli.main", "serve", "tabletop", "--port", "0"],
            stdout=sink, stderr=subprocess.STDOUT)
    try:
        found = tools.eventually(lambda: re.search(r"ws://127\.0\.0\.1:\d+", said.read_text()),
                                 "omni serve", PATIENCE_S)
        yield found.group() + "/"
    finally:
        process.terminate()
        process.wait(30)


def start_stages(graph) -> None:
    graph.start("policy_stages", threads=1, cpus=ALL_CPUS, bundle="tabletop")
    for step in ("configure", "activate"):
        for stage in STAGES:
            assert graph.change_state(stage, step), graph.logs()


def test_the_same_bundle_at_both_ends_decides_the_same(graph, tools, tmp_path, served, openpi_tools):
    # The arm stands still: nobody plays what is decided.
    differences = graph.record(ChunkDifference, "openpi_bridge/difference", CHUNK_QOS)
    chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
    statuses = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
    graph.start("world", image_rate=10.0)
    graph.bring_up("world")
    start_stages(graph)
    mapping = openpi_tools.write_mapping(tmp_path, remote={
        "remote_timeout_s": 20.0, "reply_timeout_s": 20.0})
    graph.start("openpi_bridge", mode="parity", openpi=served, mapping=mapping)
    graph.bring_up("openpi_bridge")
    sentences = graph.publisher(String, "instruction", LATCHED_QOS)
    sentences.publish(String(data=SENTENCE))
    tools.eventually(lambda: len(differences) >= 3, f"differences\n{graph.logs()}", PATIENCE_S)
    for message in differences.messages:
        assert message.same_noise and message.rows == 16
        gaps = np.array(message.differences).reshape(message.rows, -1)
        assert gaps.max() < 2e-3, gaps.max(axis=0)
    assert {message.source for message in chunks.messages} == {"local"}
    tools.eventually(lambda: statuses.last.pairs >= 3, "pairs on the status")
    assert max(statuses.last.largest_difference) < 2e-3


def test_the_trained_policy_moves_the_arm_from_afar(graph, tools, tmp_path, served, openpi_tools):
    robot = openpi_tools.Bridged(graph, tools, tmp_path, served, remote={
        "remote_timeout_s": 5.0}, replan={"deadline_s": 1.0})
    robot._sentences.publish(String(data=SENTENCE))
    robot.until_remote_plays()
    moment = time.monotonic()
    robot.eventually(lambda: max((np.ptp(column) for column in zip(
        *(m.position for _, m in robot.joints.since(moment)))), default=0.0) > 0.1,
        f"the arm moves\n{graph.logs()}")


@pytest.fixture
def recorder(graph, tools, tmp_path):
    """A recorder that is there before the policy, so that it misses none of its chunks."""
    process = graph.start("recorder", bag=str(tmp_path / "bag"), robot="tabletop", bundle="tabletop",
                          min_free_mb=0)
    tools.eventually(lambda: (tmp_path / "bag" / "metadata.yaml").exists(), f"a bag\n{graph.logs()}")
    return process


@pytest.fixture
def graph_server(graph, tools):
    """The stages behind the bridge's `serve`, and the URL."""
    statuses = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
    start_stages(graph)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]  # the same after a restart
    graph.start("openpi_bridge", serve=True, serve_port=port)
    graph.bring_up("openpi_bridge")
    return tools.eventually(lambda: statuses and statuses.last.serving, "serving")


@pytest.fixture
def ask():
    """Ask a server once; returns its good reply. Keyword arguments go beside the observation."""
    from omni_ros.openpi.client import RemotePolicy
    from omni_ros.openpi.settings import RemoteSettings

    clients = {}

    def ask(url: str, sentence: str = SENTENCE, patience_s: float = 60.0, **extra):
        if url not in clients:
            clients[url] = RemotePolicy(RemoteSettings(
                url, remote_timeout_s=30.0, reply_timeout_s=30.0, identical="accept",
                backoff_s=0.05, backoff_max_s=0.2))
            clients[url].start()
        rng = np.random.default_rng(1)
        return clients[url].ask({
            "images": {name: rng.integers(0, 256, (96, 96, 3), np.uint8)
                       for name in ("front", "wrist")},
            "state": np.full(6, 0.1, np.float32), "prompt": sentence, **extra}, patience_s)

    yield ask
    for client in clients.values():
        client.stop()


def test_a_client_drives_the_policy_of_the_graph_and_what_it_draws_with_is_honoured(
        graph, tools, tmp_path, recorder, graph_server, ask, served):
    from omni_ros.openpi.connection import LinkError

    chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
    for topic in ("policy_record", "front/image_raw", "wrist/image_raw", "joint_states"):
        ears = 2 if topic != "policy_record" else 1  # the stages', and the recorder's
        tools.eventually(lambda t=topic, n=ears: graph.node.count_subscribers(t) >= n, f"ears of {topic}")

    def rows(url: str, **extra):
        return ask(url, **extra).actions.values

    for sentence in (SENTENCE, SENTENCE, "pick up the green block"):
        drawn = rows(graph_server, sentence=sentence)
        assert drawn.shape == (16, 6)
        tools.eventually(lambda: any(np.allclose(
            np.array(m.values).reshape(m.rows, -1), drawn, atol=1e-6)
            for m in chunks.messages), "the chunk on the graph")
    # The same observation and draw decide the same as in `omni serve`, and another draw another.
    noise = np.random.default_rng(3).normal(size=(16, 6)).astype(np.float32)
    usual = rows(graph_server, seed=7, stamp_ns=5)
    for extra in ({"seed": 7, "stamp_ns": 5}, {"seed": 8, "stamp_ns": 5}, {"seed": 7, "stamp_ns": 6},
                  {"seed": 7, "stamp_ns": 5, "num_inference_steps": 3}, {"noise": noise}):
        found = rows(graph_server, **extra)
        assert np.allclose(found, rows(served, **extra), atol=1e-5), extra
        assert np.array_equal(found, usual) == (extra == {"seed": 7, "stamp_ns": 5}), extra
    with pytest.raises(LinkError, match=r"`noise` has the shape \[3, 3\]"):
        rows(graph_server, noise=np.zeros((3, 3), np.float32))
    with pytest.raises(LinkError, match="has a NUL in it"):
        rows(graph_server, sentence="touch\0the red block")
    # While somebody else says sentences nobody is served; afterwards the client's is said again.
    statuses = graph.record(PolicyStatus, "policy_status", STATUSES_QOS)
    other = graph.publisher(String, "instruction", LATCHED_QOS)
    other.publish(String(data="something else"))
    tools.eventually(lambda: any(m.instruction == "something else" for m in statuses.messages),
                     "the other sentence is heard")
    with pytest.raises(LinkError, match="on /instruction would mix with what clients send"):
        rows(graph_server)
    graph.node.destroy_publisher(other)

    def alone() -> bool:
        try:
            return np.array_equal(rows(graph_server, seed=7, stamp_ns=5), usual)
        except LinkError as error:
            assert "would mix" in str(error)
            return False

    tools.eventually(alone, "served again, and by the client's sentence")
    # And what clients drew is done again from a recording, bit for bit.
    assert recorder.end() == 0, recorder.output
    replay = subprocess.run(
        [sys.executable, "-P", "-m", "omni_ros.cli.main", "replay", str(tmp_path / "bag"), "--bundle",
         "tabletop", "--json", str(tmp_path / "replay.json")], capture_output=True, text=True, timeout=120)
    assert replay.returncode == 0, replay.stdout + replay.stderr
    found = json.loads((tmp_path / "replay.json").read_text())
    assert found["verdict"] == "same" and found["counts"]["same"] == len(chunks.messages) >= 10


def test_no_client_drives_a_robot_that_is_there(graph):
    graph.start("world", image_rate=0.0)
    graph.bring_up("world")
    graph.start("openpi_bridge", serve=True, serve_port=0)
    assert graph.change_state("openpi_bridge", "configure"), graph.logs()
    assert not graph.change_state("openpi_bridge", "activate")
    assert "would mix with what clients" in graph.logs()


def test_clients_outlive_a_restart_of_the_bridge_and_a_robot_that_comes_later_ends_what_they_may_do(
        graph, tools, graph_server, ask):
    from omni_ros.openpi.connection import LinkError

    statuses = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
    sentences = graph.record(String, "instruction", LATCHED_QOS)
    port = int(graph_server.rsplit(":", 1)[1])

    def answered() -> bool:
        try:
            return ask(graph_server, patience_s=2.0).code == "good"
        except LinkError:  # connecting anew
            return False

    tools.eventually(answered, "an answer")
    # A client waits for a stage that is not there; the bridge, told to stop, waits for neither.
    assert graph.change_state("vision_encoder", "deactivate")
    waiting = threading.Thread(target=lambda: pytest.raises(
        LinkError, ask, graph_server, "pick up the green block", patience_s=8.0))
    waiting.start()
    tools.eventually(lambda: sentences.last.data == "pick up the green block", "its sentence")
    assert graph.change_state("openpi_bridge", "deactivate")
    assert "RuntimeError: the bridge is deactivated" in graph.logs()
    tools.eventually(lambda: not statuses.last.serving, "no longer serving")
    waiting.join()
    assert graph.change_state("vision_encoder", "activate")
    # Somebody else has the port: said, and no longer than it lasts.
    with socket.create_server(("127.0.0.1", port)):
        assert not graph.change_state("openpi_bridge", "activate")
        assert "set serve_port to another one" in graph.logs() and not statuses.last.serving
    for step in ("cleanup", "configure", "activate"):
        assert graph.change_state("openpi_bridge", step), graph.logs()
    tools.eventually(answered, "answers after a cleanup", PATIENCE_S)
    next(p for p in graph.processes if p.name == "openpi_bridge").kill()
    graph.start("openpi_bridge", serve=True, serve_port=port)
    graph.bring_up("openpi_bridge")
    tools.eventually(answered, f"answers after a kill\n{graph.logs()}", PATIENCE_S)
    # And now there is a robot.
    graph.start("action_player")
    graph.bring_up("action_player", to="inactive")

    def refused() -> bool:  # once the bridge has found it
        try:
            ask(graph_server)
        except LinkError as error:
            return "action_player would move the robot" in str(error)
        return False

    tools.eventually(refused, "refused for the player's sake")
