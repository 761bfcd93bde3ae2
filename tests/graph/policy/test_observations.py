# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What cameras and joints may do to a policy: late, silent, covered, of any size, of any QoS."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from omni_ros.images import fill
from omni_ros.msg import PolicyStatus
from omni_ros.nodes._support import time_message, to_ns


@pytest.fixture(scope="module")
def shared(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """With real-time chunking, at 30 rows a second."""
    graph = tools.Graph(tmp_path_factory.mktemp("observations"))
    try:
        robot = policy_robot(player={"switching": "latest"}, guidance="rtc", action_rate_hz=30.0,
                             execution_horizon=4, image_timeout_s=2.0, joints_timeout_s=2.0,
                             life_s=4.0)
        policy = policy_tools.Policy(graph, tools, "single", robot=robot, bundle=str(bundle),
                                     instruction=policy_tools.sentence)
        policy.senses = policy_tools.Senses(graph)
        yield policy
        policy.senses.stop()
    finally:
        graph.close()


@pytest.fixture
def policy(shared):
    """Chunks go out, of an observation of now; counters and estimates begin anew."""
    shared.senses.usual()
    shared.senses.stop()
    for stage in ("vision_encoder", "fusion_backbone", "action_head"):
        assert shared.graph.change_state(stage, "deactivate")
    for stage in ("vision_encoder", "fusion_backbone", "action_head"):
        assert shared.graph.change_state(stage, "activate")
    shared.senses.start()
    shared.next_chunks(1)
    yield shared
    shared.senses.stop()


def waits(policy, said: str, timeout_s: float = 5.0) -> PolicyStatus:
    """The encoder waits, says why on its status, and warns in the log."""
    status = policy.until("vision_encoder", lambda s: s.state == PolicyStatus.STATE_WAITING
                          and said in s.text, f"waiting: {said}")
    policy.eventually(lambda: said in policy.said("vision_encoder"),
                      f"a warning: {said}\n{policy.graph.logs()}", timeout_s)
    return status


def test_the_second_chunk_under_guidance_has_a_whole_delay(policy):
    policy.next_chunks(3)
    status = policy.until("action_head", lambda s: s.observations_handed_on >= 3, "three chunks")
    # What was measured, rounded up to rows of a thirtieth of a second.
    assert 1 <= status.delay_rows <= np.ceil(30.0 * status.latency_p99) + 1
    assert status.state == PolicyStatus.STATE_RUNNING


def test_one_slow_observation_does_not_inflate_the_delay_for_ever(policy):
    policy.senses.stop()
    time.sleep(1.0)
    for late in [0.7] + 36 * [0.3]:
        stamp_ns = time.time_ns() - round(late * 1e9)
        policy.senses.show(stamp_ns)
        policy.eventually(lambda: to_ns(policy.chunks.last.header.stamp) >= stamp_ns, "its chunk")
    status = policy.until("action_head", lambda s: s.observations_handed_on >= 37, "its status")
    # 0.3 s and what is computed, in rows of a thirtieth.
    assert 9 <= status.delay_rows < 21


def test_a_still_robot_and_a_still_picture_do_not_stop_the_policy(policy):
    policy.senses.moving = False
    chunks = policy.next_chunks(8)
    identities = [chunk.chunk_id for chunk in chunks]
    assert identities == sorted(set(identities))


def test_the_stages_of_a_chunk_add_up_to_its_latency(policy):
    policy.senses.stop()
    time.sleep(0.2)
    for stage in ("vision_encoder", "action_head"):
        assert policy.graph.change_state(stage, "deactivate")
        assert policy.graph.change_state(stage, "activate")
    policy.senses.size = (480, 640)
    known = len(policy.chunks)
    while len(policy.chunks) == known:
        policy.senses.show()
        time.sleep(0.5)
    chunk = policy.chunks.messages[known]
    assert [timing.stage for timing in chunk.timings] == [
        "arrival", "intake", "preprocess", "vision_encoder", "hand_off", "fusion_backbone",
        "hand_off", "action_head", "postprocess"]
    status = policy.until("action_head", lambda s: s.observations_handed_on == 1, "its status")
    timings = dict(zip(status.timing_names, status.timing_p50))
    assert timings["preprocess"] > timings["vision_encoder"], "a large picture, a tiny network"
    # Two milliseconds for a machine that is busy just between two stages.
    assert sum(timings.values()) == pytest.approx(status.latency_p50, rel=0.1, abs=0.002)


def test_a_camera_that_is_20_ms_behind_is_matched(policy):
    policy.senses.late["wrist"] = 0.02
    policy.next_chunks(3)


def test_a_camera_that_is_200_ms_behind_is_warned_of_and_stops_chunks(policy):
    policy.senses.stop()
    time.sleep(0.2)
    policy.senses.late["wrist"] = 0.2
    # Five pictures at 30 Hz: none of one camera is within 50 ms of any of the other.
    start_ns = time.time_ns()
    for frame in range(5):
        policy.senses.show(start_ns + frame * 33_000_000)
        time.sleep(0.033)
    status = waits(policy, "camera2")
    assert "50 ms" in status.text, "how far apart they may be"
    assert all(to_ns(chunk.header.stamp) < start_ns - 200_000_000
               for chunk in policy.chunks.messages)


def test_a_camera_that_stops_sending_is_named(policy):
    policy.senses.gone = {"front"}
    waits(policy, "camera1")


def test_a_covered_camera_is_named_and_stops_chunks(policy):
    policy.senses.covered = {"front"}
    waits(policy, "camera camera1 shows nothing")
    known = len(policy.chunks)
    time.sleep(0.5)
    assert len(policy.chunks) == known
    policy.senses.covered = set()
    policy.next_chunks(1)


@pytest.mark.parametrize("size", [(480, 640), (720, 1280), (31, 77), (1, 1), (1, 400)])
def test_pictures_of_any_size_are_taken(policy, size):
    policy.senses.stop()
    policy.senses.size = size
    policy.senses.start(rate_hz=4.0)
    if 1 in size:
        waits(policy, "shows nothing" if size == (1, 1) else "too narrow")
    else:
        policy.next_chunks(2)


def test_padded_rows_and_other_encodings_are_read_as_what_they_show(policy, expected, policy_tools):
    """The chunk differs from the one of unpadded RGB pictures in nothing."""
    policy.senses.stop()
    time.sleep(0.3)
    for stage in ("vision_encoder", "action_head"):  # no leftover: the chunk is as if the first
        policy.graph.change_state(stage, "deactivate")
        policy.graph.change_state(stage, "activate")
    stamp_ns = time.time_ns()
    policy.senses.joints(stamp_ns)
    for camera, encoding in (("front", "rgb8"), ("wrist", "bgr8")):
        publish_padded(policy, camera, stamp_ns, encoding, policy_tools.picture)
    chunk = policy.eventually(lambda: next((m for m in policy.chunks.messages if to_ns(
        m.header.stamp) == stamp_ns), None), f"the chunk\n{policy.graph.logs()}")
    np.testing.assert_array_equal(policy_tools.rows(chunk), expected(stamp_ns))


def publish_padded(policy, camera: str, stamp_ns: int, encoding: str, picture) -> None:
    """Twelve bytes behind each row that belong to no picture."""
    from sensor_msgs.msg import Image

    message = Image()
    fill(message, picture(camera, stamp_ns), encoding=encoding)
    plain = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)
    padded = np.pad(plain, ((0, 0), (0, 12)), constant_values=255)
    message.step += 12
    message.data = padded.tobytes()
    message.header.stamp = time_message(stamp_ns)
    policy.senses._images[camera].publish(message)


def test_an_unknown_encoding_is_said_and_harmless(policy):
    policy.senses.stop()
    from sensor_msgs.msg import Image

    def send() -> None:
        for _ in range(8):
            stamp_ns = time.time_ns()
            policy.senses.joints(stamp_ns)
            for camera in ("front", "wrist"):
                message = Image(width=4, height=4, step=12, encoding="bayer_magic", data=bytes(48))
                message.header.stamp = time_message(stamp_ns)
                policy.senses._images[camera].publish(message)
            time.sleep(0.15)

    # Beside the wait: once no more pictures come, that is what is said.
    sender = threading.Thread(target=send)
    sender.start()
    waits(policy, "bayer_magic")
    sender.join()


@pytest.mark.parametrize("reliability", [ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE])
def test_best_effort_and_reliable_cameras_are_both_heard(policy, policy_tools, reliability):
    policy.senses.stop()
    known = len(policy.chunks)
    senses = policy_tools.Senses(policy.graph, qos=QoSProfile(
        depth=2, reliability=reliability, durability=DurabilityPolicy.VOLATILE))
    senses.start()
    try:
        policy.eventually(lambda: len(policy.chunks) >= known + 3, "chunks")
    finally:
        senses.stop()


def test_joints_of_two_drivers_are_put_together_by_name(policy):
    from sensor_msgs.msg import JointState

    policy.senses.stop()
    known = len(policy.chunks)
    for _ in range(6):
        stamp_ns = time.time_ns()
        for names, values in ((["gripper"], [0.2]), (
                ["elbow_flex", "shoulder_pan", "wrist_roll", "shoulder_lift", "wrist_flex"],
                [0.35, 0.0, 0.0, -0.6, 0.2])):
            message = JointState(name=names, position=values)
            message.header.stamp = time_message(stamp_ns)
            policy.senses._joints.publish(message)
        for camera in ("front", "wrist"):
            policy.senses.image(camera, stamp_ns, np.random.default_rng(1).integers(
                0, 256, (48, 64, 3), np.uint8))
        time.sleep(0.2)
    assert len(policy.chunks) >= known + 2
