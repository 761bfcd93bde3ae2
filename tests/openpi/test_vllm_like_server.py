# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A server that behaves in everything a client can see as vLLM-Omni 0.30 was measured to."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.dialect import VLLM_PATH, Dialect
from omni_ros.openpi.asking import Expectation
from omni_ros.openpi.mapping import load_mapping
from omni_ros.openpi.observe import RobotView
from omni_ros.openpi.states import State
from omni_ros.openpi.wire import pack, unpack
from omni_ros.robot import load_robot

from .conftest import ROOT, failed, quick, until

PI0 = {"image_resolution": [224, 224], "n_external_cameras": 1, "needs_wrist_camera": True,
       "needs_stereo_camera": False, "needs_session_id": False, "action_space": "joint_position",
       "action_horizon": 50, "action_dim": 32, "max_cameras": 3}  # fmt: skip
GROOT = {"image_resolution": [180, 320], "needs_session_id": True, "embodiment_tag": "x",
         "action_horizon": 40, "action_keys": ["eef_9d", "gripper_position", "joint_position"]}  # fmt: skip


DREAMZERO = {"image_resolution": [180, 320], "n_external_cameras": 2, "needs_wrist_camera": True,
             "needs_session_id": True, "action_horizon": 24, "action_dim": 8}  # fmt: skip


class Like:
    """One such server; its facts are those of the specification, its numbers smaller.

    :param limit: bytes of a message at which its web server closes (16 MiB there).
    :param idle_s: after which it lets go of a client that asks nothing (30 s there).
    """

    def __init__(self, metadata=PI0, *, limit=16 << 20, idle_s=30.0, key=None):
        self.metadata, self.limit, self.idle_s, self.key = metadata, limit, idle_s, key
        self.asked, self.first = [], []
        self.seen: set[str] = set()

    def admit(self, link, request):
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return link.respond(401, '{"error":"Unauthorized"}')
        return None if request.path == VLLM_PATH else link.respond(403, "")

    async def __call__(self, link, number):
        await link.send(pack(self.metadata))
        seen, current = set(), "default"
        while True:
            try:
                message = await asyncio.wait_for(link.recv(), self.idle_s)
            except asyncio.TimeoutError:
                await link.close(1000)
                return
            if len(message) > self.limit:
                await link.close(1009)
                return
            if isinstance(message, str) or not message:
                continue  # without a word
            try:
                observation = unpack(message)
                assert isinstance(observation, dict)
            except Exception:
                await link.send(pack({"type": "error", "message": "Invalid request payload"}))
                continue
            if observation.pop("endpoint", None) == "reset":
                seen.clear()
                await link.send(pack({"status": "reset successful"}))
                continue
            current = observation.get("session_id", current)
            self.first.append(current not in seen)
            seen.add(current)
            self.asked.append(observation)
            if observation.get("prompt") == "fail":
                await link.send(pack({"type": "error", "message": "Internal inference error"}))
                continue
            await link.send(pack(self.infer(observation)))

    def infer(self, observation):
        rng = np.random.default_rng(observation.get("seed"))
        if self.metadata is GROOT:
            return {key: rng.normal(size=(1, 40, width)).astype(np.float32)
                    for key, width in (("joint_position", 7), ("eef_9d", 9), ("gripper_position", 1))}
        shape = (self.metadata["action_horizon"], self.metadata["action_dim"])
        return rng.normal(size=shape).astype(np.float32)


@pytest.fixture
def start(serve):
    def begin(like):
        return serve(like, process_request=like.admit, server_header="uvicorn")

    return begin


def test_pi0_is_driven_through_the_mapping_that_comes_along(start, remote):
    like = Like()
    mapping = load_mapping(ROOT / "config" / "openpi" / "vllm_pi0.yaml")
    robot = load_robot(ROOT / "config" / "robots" / "tabletop.yaml")
    view = RobotView(mapping, robot.joints, list(robot.cameras))
    from omni_ros.openpi.agreement import objection

    policy = remote(quick(start(like).url), expect=mapping.expectation,
                    check_metadata=lambda metadata: objection(mapping, metadata))  # fmt: skip
    picture = np.full((480, 640, 3), 90, np.uint8)
    message = view.observation({"front": picture, "wrist": picture}, np.zeros(6), "pick up")
    outcome = policy.ask(message, 20)
    assert view.rows(outcome.actions.values).shape == (25, 6)
    assert policy.status().dialect is Dialect.VLLM and policy.state is State.ACTIVE
    sent = like.asked[0]
    assert set(sent["images"]) == {"base_0_rgb", "left_wrist_0_rgb"}
    assert all(image.shape == (224, 224, 3) for image in sent["images"].values())
    assert sent["state"].shape == (6,) and sent["prompt"] == "pick up"


def test_groots_named_parts_and_session_are_handled(start, remote):
    like = Like(GROOT)
    wanted = Expectation(("joint_position", "gripper_position"), 40, 8)
    policy = remote(start(like).url, expect=wanted)
    outcome = policy.ask({"video": {}}, 20)
    assert outcome.actions.values.shape == (40, 8)
    assert outcome.actions.columns == {"joint_position": 7, "gripper_position": 1}
    policy.ask({"video": {}, "n": 1}, 20)
    assert policy.reset() is True
    policy.ask({"video": {}, "n": 2}, 20)
    assert len({each["session_id"] for each in like.asked}) == 1
    assert like.first == [True, False, True]


def test_an_inference_error_leaves_the_link_open(start, remote):
    server = start(Like())
    policy = remote(server.url)
    policy.ask({"prompt": "go"}, 20)
    with pytest.raises(LinkError, match="Internal inference error"):
        policy.ask({"prompt": "fail"}, 20)
    assert policy.ask({"prompt": "on"}, 20).code == "good" and server.connections == 1


def test_a_message_over_the_web_servers_limit_is_told_by_its_close(start, remote):
    server = start(Like(limit=1000))
    policy = remote(server.url)
    with pytest.raises(LinkError, match="send smaller pictures"):
        policy.ask({"image": np.zeros(2000, np.uint8)}, 20)
    assert policy.ask({"image": np.zeros(10, np.uint8)}, 20).code == "good"
    assert server.connections == 2


def test_being_let_go_of_while_idle_is_no_fault_and_costs_no_warming_up(start, remote):
    server = start(Like(idle_s=2.0))
    policy = remote(server.url)
    policy.ask({"n": 0}, 20)
    until(lambda: server.connections >= 3)  # twice, though nothing was asked in between
    until(lambda: policy.state is State.ACTIVE)
    assert policy.ask({"n": 1}, 20).code == "good"
    assert policy.status().counters["lost"] == 0


def test_its_key_is_sent_as_it_wants_it_and_the_other_way_is_refused(start, remote, tmp_path):
    (tmp_path / "t").write_text("s3cret")
    url = start(Like(key="s3cret")).url
    assert remote(quick(url, token_file=str(tmp_path / "t"))).ask({}, 20).code == "good"
    other = remote(quick(url, token_file=str(tmp_path / "t"), auth="api-key"))
    failed(other, "auth")


def test_any_other_path_is_refused(start, remote):
    url = start(Like()).url + "/policy"
    policy = remote(url)
    assert "403" in failed(policy, "path")


def test_a_setting_that_says_the_other_dialect_is_refused_by_the_path(start, remote):
    policy = remote(quick(start(Like()).url, dialect="openpi"))
    assert "403" in failed(policy, "path")


def test_dreamzeros_flat_keys_session_and_shape_are_handled(start, remote):
    like = Like(DREAMZERO)
    policy = remote(start(like).url, expect=Expectation(horizon=24, width=8))
    observation = {"observation/joint_position": np.zeros(7, np.float32),
                   "observation/gripper_position": np.zeros(1, np.float32), "prompt": "go"}
    assert policy.ask(observation, 20).actions.values.shape == (24, 8)
    assert set(like.asked[0]) == {*observation, "session_id"}


def test_a_client_that_hurries_is_held_to_one_request_at_a_time(start, remote):
    like = Like()
    policy = remote(start(like).url)
    for n in range(50):
        policy.request({"n": n, "seed": n}, deadline=time.monotonic() + 60)
        time.sleep(0.002)
    until(lambda: policy.status().counters["good"] + policy.status().counters["replaced"] == 50)
    chunks = {o.id: o.actions.values for o in policy.outcomes() if o.code == "good"}
    for number, values in chunks.items():
        expected = np.random.default_rng(number - 1).normal(size=(50, 32)).astype(np.float32)
        assert np.array_equal(values, expected)  # each reply to its own question
