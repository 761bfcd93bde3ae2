# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy at work is recorded, with all that is needed to do it again; and played into a graph again."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")
pytest.importorskip("mcap")
pytest.importorskip("rosbags")

from rosbags.highlevel import AnyReader  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from omni_ros.bundles import manifest_hash  # noqa: E402
from omni_ros.msg import PlayerStatus, ReplayVerdict  # noqa: E402
from omni_ros.nodes._replay_graph import RELIABLE_QOS  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402
from omni_ros.replay.bag import Bag  # noqa: E402
from omni_ros.replay.configuration import read_configuration  # noqa: E402
from omni_ros.replay.contents import read_contents  # noqa: E402
from omni_ros.replay.recording import BagWriter, Limits  # noqa: E402
from omni_ros.replay.recording_mend import mend  # noqa: E402
from omni_ros.replay.recording_topics import Topic  # noqa: E402

#: Chunks that are recorded at least.
CHUNKS = 8
FRONT = "/front/image_raw"


@pytest.fixture(scope="module")
def robot(policy_robot):
    return policy_robot(guidance="none")


@pytest.fixture(scope="module")
def recorded(policy_tools, tools, robot, bundle, ros_domain, tmp_path_factory):
    """A policy and a player at work, and two recorders: one is ended, one is killed."""
    folder = tmp_path_factory.mktemp("bags")
    graph = tools.Graph(tmp_path_factory.mktemp("recording"))
    bags = {name: folder / name for name in ("ended", "killed")}
    try:
        recorders = {name: graph.start(
            "recorder", name=f"recorder_{name}", bag=str(bag), robot=robot, bundle=str(bundle),
            min_free_mb=0) for name, bag in bags.items()}
        for bag in bags.values():
            tools.eventually(lambda b=bag: (b / "metadata.yaml").exists(), f"a bag\n{graph.logs()}")
        senses = policy_tools.Senses(graph)
        graph.start("action_player", robot=robot)
        graph.bring_up("action_player")
        senses.moving = False
        policy = policy_tools.Policy(graph, tools, "single", robot=robot, bundle=str(bundle))
        for topic in ("policy_record", "action_chunk", "joint_states"):
            tools.eventually(lambda t=topic: graph.node.count_subscribers(t) >= 2, f"ears of {topic}")
        tools.eventually(lambda: graph.node.get_subscriptions_info_by_topic(FRONT) and len(
            graph.node.get_subscriptions_info_by_topic(FRONT)) >= 3, "ears of the camera")
        senses.start()
        policy.say("touch the red block")
        policy.next_chunks(CHUNKS // 2)
        policy.say("touch the green block")
        policy.next_chunks(CHUNKS // 2)
        recorders["killed"].kill()
        killed_ns = time.time_ns()
        senses.stop()
        time.sleep(2.0)  # what was begun comes to its end
        status = recorders["ended"].end()
        said = [to_ns_of(chunk) for chunk in policy.chunks.messages]
        found = {"bags": bags, "status": status, "killed_ns": killed_ns, "chunks": said,
                 "log": recorders["ended"].output}
    finally:
        graph.close()
    return found


def to_ns_of(message) -> int:
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def contents_of(bag: Path):
    with Bag(bag) as opened:
        contents = read_contents(opened)
        assert contents.joints and contents.pictures  # read while the bag is open
        return contents


def test_every_chunk_is_in_the_bag_with_all_that_it_was_decided_from(recorded):
    contents = contents_of(recorded["bags"]["ended"])
    stamps = [chunk.stamp_ns for chunk in contents.chunks]
    # From the first that the recorder, which may meet the policy a chunk late, could hear.
    first = recorded["chunks"].index(stamps[0])
    assert first <= 2 and stamps == recorded["chunks"][first:first + len(stamps)]
    assert len(stamps) > 2
    for chunk in contents.chunks[2:]:  # each stage is met by itself
        for stage in ("vision_encoder", "fusion_backbone", "action_head"):
            assert (stage, chunk.stamp_ns, chunk.observation_seq) in contents.records


def test_of_the_pictures_those_are_kept_that_an_observation_used(recorded):
    contents = contents_of(recorded["bags"]["ended"])
    used = {chunk.stamp_ns for chunk in contents.chunks}
    used |= {stamp for stage, stamp, _ in contents.records if stage == "vision_encoder"}
    for topic, pictures in contents.pictures.items():
        assert {picture.stamp_ns for picture in pictures} == used, topic


def test_the_recording_says_what_it_was_made_with(recorded, bundle, robot):
    info = contents_of(recorded["bags"]["ended"]).info
    assert info.bundle == manifest_hash(bundle)
    text, parameters = read_configuration(info.configuration_yaml)
    assert text == Path(robot).read_text()
    assert parameters["vision_encoder"]["bundle"] == str(bundle)
    assert parameters["action_player"]["dry_run"] is False
    assert dict(zip(info.version_names, info.version_values))["numpy"] == np.__version__


def test_what_was_lost_is_told_and_nothing_was(recorded):
    report = contents_of(recorded["bags"]["ended"]).report
    assert report["pictures_missing"] == [] and report["stopped"] == ""
    assert report["written"]["/action_chunk"] >= CHUNKS - 1
    assert recorded["status"] == 0 and "recorded" in recorded["log"]


def test_latched_topics_keep_their_quality_of_service(recorded):
    with AnyReader([recorded["bags"]["ended"]]) as reader:
        offered = {one.topic: one.ext.offered_qos_profiles[0].durability.name
                   for one in reader.connections}
    assert offered["/instruction"] == offered["/recording_info"] == "TRANSIENT_LOCAL"
    assert offered["/action_chunk"] == offered["/joint_states"] == "VOLATILE"


def test_a_recorder_that_is_killed_loses_at_most_a_second(recorded):
    bag = recorded["bags"]["killed"]
    contents = contents_of(bag)
    last_ns = max(joints.log_ns for joints in contents.joints)
    assert recorded["killed_ns"] - last_ns < 1_000_000_000
    mend(bag)
    with AnyReader([bag]) as reader:
        assert sum(one.msgcount for one in reader.connections) > 100


def test_a_bundle_that_is_not_there_is_refused_before_a_bag_is_made(graph, tmp_path):
    process = graph.start("recorder", bag=str(tmp_path / "bag"), bundle="no_such")
    assert process.popen.wait(timeout=60) == 1
    assert "there is no bundle named 'no_such'" in process.output and "Traceback" not in process.output
    assert not (tmp_path / "bag").exists()


# -- the same bag, played into a graph ---------------------------------------------------------------


@pytest.fixture(scope="module")
def stage(recorded, policy_tools, tools, robot, bundle, tmp_path_factory):
    """The same policy on the bag's clock, without cameras, and with a player that sends nothing."""
    graph = tools.Graph(tmp_path_factory.mktemp("replaying"))
    try:
        graph.statuses = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        graph.verdicts = graph.record(ReplayVerdict, "replay_verdict", RELIABLE_QOS)
        graph.start("action_player", robot=robot, use_sim_time=True, dry_run=True)
        graph.bring_up("action_player")
        policy_tools.Policy(graph, tools, "single", robot=robot, bundle=str(bundle),
                            use_sim_time=True)
        yield graph
    finally:
        graph.close()


@pytest.fixture
def play(stage, recorded, bundle, tmp_path):
    """Play the bag, or another; return the exit status, the report and what was logged."""

    def played(bag: Path | None = None, meanwhile=None, **parameters):
        file = tmp_path / "report.json"
        process = stage.start("replay", bag=str(bag or recorded["bags"]["ended"]), bundle=str(bundle),
                              report=str(file), **parameters)
        if meanwhile is not None:
            meanwhile(process)
        status = process.popen.wait(timeout=120)
        report = json.loads(file.read_text()) if file.exists() else None
        return status, report, process.output

    return played


@pytest.mark.parametrize("rate, rounds", [(0.5, 1), (2.0, 3)])
def test_the_graph_decides_the_same_at_any_rate_and_a_loop_makes_nothing_stale(
        play, stage, recorded, rate, rounds):
    status, report, log = play(rate=rate, rounds=rounds)
    count = len(contents_of(recorded["bags"]["ended"]).chunks)
    assert report is not None and report["verdict"] == "same" and status == 0, log
    assert [one["same"] for one in report["live"]["rounds"]] == [count] * rounds
    assert set(report["live"]["player_stops"]) <= {"CLOCK_JUMP"}
    assert stage.statuses.last.trip_reason == PlayerStatus.REASON_NONE


def test_a_paused_replay_goes_on_where_it_was(play, stage, tools):
    def pause(process) -> None:
        known = len(stage.verdicts)
        tools.eventually(lambda: len(stage.verdicts) > known, f"a verdict\n{process.output}")
        assert stage.call(SetBool, "replay/pause", SetBool.Request(data=True)).success
        time.sleep(1.5)
        count = len(stage.verdicts)
        time.sleep(0.5)
        assert len(stage.verdicts) <= count + 1
        stage.call(SetBool, "replay/pause", SetBool.Request(data=False))

    status, report, log = play(rate=1.0, meanwhile=pause)
    assert (status, report["verdict"]) == (0, "same"), log


def rewritten(bag: Path, target: Path, change) -> Path:
    """Write a bag anew; `change(topic, data)` returns the bytes of a message, None to leave it out."""
    with AnyReader([bag]) as reader:
        writer = BagWriter(target, Limits(free_bytes=0))
        for one in reader.connections:
            writer.add(Topic(one.topic, one.msgtype, one.msgdef.data, one.digest))
        for connection, log_ns, data in reader.messages():
            data = change(connection.topic, bytes(data))
            if data is not None:
                writer.write(connection.topic, data, log_ns)
        writer.close()
    return target


def test_pictures_that_are_missing_make_it_incomplete_and_not_different(play, recorded, tmp_path):
    gone = []

    def without_five(topic: str, data: bytes) -> bytes | None:
        if topic == FRONT and len(gone) < 5:
            gone.append(data)
            return None
        return data

    bag = rewritten(recorded["bags"]["ended"], tmp_path / "bag", without_five)
    status, report, log = play(bag, rate=2.0)
    assert (status, report["verdict"]) == (3, "incomplete"), log
    assert report["counts"]["different"] == 0 and report["counts"]["incomplete"] == 5
    assert len([text for text in report["missing"] if "picture of camera1" in text]) == 5


def test_a_picture_that_is_another_is_different_and_named(play, recorded, tmp_path):
    changed = []

    def brighter(topic: str, data: bytes) -> bytes:
        if topic == FRONT and not changed:
            changed.append(topic)
            return data[:-2000] + bytes(255 - value for value in data[-2000:])
        return data

    bag = rewritten(recorded["bags"]["ended"], tmp_path / "bag", brighter)
    status, report, log = play(bag, rate=2.0)
    assert report["counts"]["same"] == sum(report["counts"].values()) - 1, log
    assert (status, report["verdict"]) == (1, "different")
    assert [one["stage"] for one in report["chunks"] if one["verdict"] == "different"] == ["picture"]


def test_a_bag_is_not_played_beside_drivers(play, stage, policy_tools):
    senses = policy_tools.Senses(stage)
    try:
        status, _, log = play()
    finally:
        for publisher in (senses._joints, *senses._images.values()):
            stage.node.destroy_publisher(publisher)
    assert status == 2 and "end that first" in log and "publishes /joint_states" in log


def test_a_replay_that_is_ended_early_is_incomplete(graph, recorded, bundle, tools):
    process = graph.start("replay", bag=str(recorded["bags"]["ended"]), bundle=str(bundle))
    tools.eventually(lambda: "observations can be shown" in process.output, "that the bag is read")
    time.sleep(0.5)
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(timeout=60) == 3


def test_a_folder_that_is_no_bag_is_refused_in_one_line(graph, tmp_path):
    process = graph.start("replay", bag=str(tmp_path))
    assert process.popen.wait(timeout=60) == 2
    assert "Traceback" not in process.output and str(tmp_path) in process.output


def test_omni_record_mends_a_bag(recorded, tmp_path):
    found = subprocess.run(["omni", "record", "--mend", str(recorded["bags"]["killed"])],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "killed_0.mcap" in found and "messages" in found


def test_omni_record_ends_in_good_order_at_ctrl_c(ros_domain, bundle, robot, tmp_path, tools):
    process = subprocess.Popen(["omni", "record", str(tmp_path / "bag"), "--bundle", str(bundle),
                                "--robot", robot, "--min-free-mb", "0"])
    tools.eventually(lambda: (tmp_path / "bag" / "metadata.yaml").exists(), "a bag")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    with AnyReader([tmp_path / "bag"]) as reader:
        assert "/recording_info" in {one.topic for one in reader.connections}
