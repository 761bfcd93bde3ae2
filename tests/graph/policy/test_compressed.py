# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compressed pictures over DDS: read as what they show, and harmless where they show nothing."""

from __future__ import annotations

import array
import time

import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage, JointState

from omni_ros.msg import ActionChunk, PolicyStatus, StageHandoff
from omni_ros.nodes._stage_node import STATUSES_QOS
from omni_ros.nodes._support import (
    CHUNK_QOS,
    COMMAND_QOS,
    load_robot_parameter,
    time_message,
    to_ns,
)
from omni_ros.tensors import RingCache, open_tensors

cv2 = pytest.importorskip("cv2")
ROBOT = load_robot_parameter("tabletop")


@pytest.fixture(scope="module")
def encoder(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """The vision encoder alone; the test is its cameras, and reads what it hands over."""
    graph = tools.Graph(tmp_path_factory.mktemp("compressed"))
    try:
        graph.eventually = tools.eventually
        graph.handed_over = graph.record(StageHandoff, "image_tokens", COMMAND_QOS)
        graph.statuses = graph.record(PolicyStatus, "policy_status", STATUSES_QOS)
        graph.chunks = graph.publisher(ActionChunk, "action_chunk", CHUNK_QOS, wait=False)
        graph.start("vision_encoder", bundle=str(bundle), threads=1, compressed=True,
                    cpus="0", instruction=policy_tools.sentence, robot=policy_robot(
                        guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0, life_s=2.0))
        graph.bring_up("vision_encoder")
        graph.joints = graph.publisher(JointState, "joint_states", 50)
        graph.cameras = {camera: graph.publisher(
            CompressedImage, f"{ROBOT.cameras[camera]}/compressed") for camera in policy_tools.cameras}
        yield graph
    finally:
        graph.close()


def png(pixels: np.ndarray) -> bytes:
    return cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes()


def show(graph, stamp_ns: int, data: dict[str, bytes]) -> None:
    joints = JointState(name=list(ROBOT.joint_names), position=ROBOT.home.tolist())
    joints.header.stamp = time_message(stamp_ns)
    graph.joints.publish(joints)
    for camera, publisher in graph.cameras.items():
        message = CompressedImage(format="rgb8; png compressed", data=array.array("B", data[camera]))
        message.header.stamp = time_message(stamp_ns)
        publisher.publish(message)


def test_png_pictures_give_the_tokens_of_what_they_show(encoder, reference, policy_tools):
    stamp_ns = time.time_ns()
    pictures = {camera: policy_tools.picture(camera, stamp_ns) for camera in encoder.cameras}
    show(encoder, stamp_ns, {camera: png(pixels) for camera, pixels in pictures.items()})
    message = encoder.eventually(lambda: next(
        (m for m in encoder.handed_over.messages if to_ns(m.header.stamp) == stamp_ns), None),
        f"tokens\n{encoder.logs()}")
    tokens = open_tensors(message.tensors, RingCache()).arrays
    reference.encoder.release()
    for slot, pixels in enumerate(pictures.values()):
        np.testing.assert_array_equal(tokens[f"image_{slot}"], reference.encoder.encode(pixels))


@pytest.mark.parametrize("data, said", [
    (b"", "0 bytes"), (b"no picture", "10 bytes"), (png(np.full((1, 900, 3), 7, np.uint8)), "narrow")])
def test_what_cannot_be_used_is_said_and_harmless(encoder, data, said):
    moment = time.monotonic()

    def heard() -> bool:
        show(encoder, time.time_ns(), dict.fromkeys(encoder.cameras, data))
        time.sleep(0.2)
        return any(said in m.text for _, m in encoder.statuses.since(moment))

    encoder.eventually(heard, f"the reason: {said}\n{encoder.logs()}")
    assert encoder.state("vision_encoder") == "active"
