# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The client and what servers answer: both dialects, and every reply that must not be played."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.dialect import VLLM_PATH, Dialect
from omni_ros.openpi.asking import Expectation
from omni_ros.openpi.states import State
from omni_ros.openpi.wire import pack, unpack

from .conftest import ACTIONS, failed, quick, reply, until

VLLM_METADATA = {
    "image_resolution": [224, 224], "n_external_cameras": 1, "needs_wrist_camera": True,
    "needs_session_id": False, "action_space": "joint_position", "action_horizon": 4, "action_dim": 3,
}  # fmt: skip
FAULT = {"type": "error", "message": "Internal inference error"}


def answering(*answers, metadata=None, keep=None):
    """Return a handler that sends an answer a request, the last one over and over.

    :param keep: a list that gets the requests.
    """
    left = list(answers)

    async def handle(link, number):
        await link.send(pack(metadata or {}))
        async for message in link:
            if keep is not None:
                keep.append(unpack(message))
            answer = left.pop(0) if len(left) > 1 else left[0]
            for part in answer() if callable(answer) else [answer]:
                await link.send(part)

    return handle


def test_a_map_with_actions_is_a_chunk(serve, remote):
    policy = remote(serve(answering(lambda: [reply()])).url)
    outcome = policy.ask({"state": np.zeros(3)}, 20)
    assert np.array_equal(outcome.actions.values, ACTIONS)
    assert outcome.actions.values.dtype == np.float64 and outcome.actions.values.flags.writeable
    assert outcome.actions.server_timing["infer_ms"] >= 1.0
    assert policy.status().dialect is Dialect.OPENPI and policy.state is State.ACTIVE


def test_a_bare_array_is_a_chunk_and_tells_the_dialect(serve, remote):
    policy = remote(serve(answering(pack(ACTIONS), metadata=VLLM_METADATA)).url)
    assert np.array_equal(policy.ask({}, 20).actions.values, ACTIONS)
    assert policy.status().dialect is Dialect.VLLM


def test_named_parts_are_put_side_by_side_in_the_mappings_order(serve, remote):
    named = {"gripper": np.full((1, 4, 1), 9, np.float32), "arm": ACTIONS[None]}
    policy = remote(serve(answering(pack(named))).url, expect=Expectation(("arm", "gripper")))
    actions = policy.ask({}, 20).actions
    assert actions.values.shape == (4, 4) and actions.columns == {"arm": 3, "gripper": 1}
    assert actions.values[0].tolist() == [0, 1, 2, 9]


def test_a_path_is_added_where_none_is_given(serve, remote):
    seen = []

    async def handle(link, number):
        seen.append(link.request.path)
        await answering(lambda: [reply()])(link, number)

    remote(serve(handle).url).ask({}, 20)
    assert seen == [VLLM_PATH]


def test_another_path_is_tried_where_that_one_is_refused(serve, remote):
    def only_root(connection, request):
        return None if request.path == "/" else connection.respond(403, "no\n")

    policy = remote(serve(answering(lambda: [reply()]), process_request=only_root).url)
    policy.ask({}, 20)
    assert policy.status().url.endswith("/")


@pytest.mark.parametrize("scheme", ["Bearer", "Api-Key"])
def test_a_token_is_sent_in_the_way_the_server_takes(serve, remote, tmp_path, scheme):
    (tmp_path / "token").write_text("s3cret\n")

    def wants(connection, request):
        good = request.headers.get("Authorization") == f"{scheme} s3cret"
        return None if good else connection.respond(401, "no\n")

    server = serve(answering(lambda: [reply()]), process_request=wants)
    policy = remote(quick(server.url, token_file=str(tmp_path / "token")))
    assert policy.ask({}, 20).code == "good"


def test_a_token_never_shows_in_the_status(serve, remote, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")

    def refuse(connection, request):
        return connection.respond(401, "no\n")

    server = serve(answering(reply()), process_request=refuse)
    policy = remote(quick(server.url, token_file=str(tmp_path / "token")))
    failed(policy, "auth")
    assert "s3cret" not in repr(policy.status())


def test_an_error_map_is_no_chunk_and_leaves_the_link_open(serve, remote):
    server = serve(answering(pack(FAULT), pack(ACTIONS), metadata=VLLM_METADATA))
    policy = remote(server.url)
    with pytest.raises(LinkError, match="Internal inference error") as caught:
        policy.ask({}, 20)
    assert caught.value.reason.code == "remote_error"
    assert policy.state is State.DEGRADED and policy.status().reason.code == "remote_error"
    assert policy.ask({}, 20).code == "good"
    assert policy.state is State.ACTIVE and server.connections == 1


def test_a_traceback_and_a_close_are_told_by_their_last_line(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        if number == 1:
            await link.send(
                "Traceback (most recent call last):\n  File \"x.py\"\nKeyError: 'state'\n"
            )
            await link.close(1011, "Internal server error. Traceback included in previous frame.")
            return
        await link.send(reply())
        await link.wait_closed()

    server = serve(handle)
    policy = remote(server.url)
    with pytest.raises(LinkError, match="KeyError: 'state'"):
        policy.ask({}, 20)
    assert policy.ask({}, 20).code == "good"
    assert server.connections == 2 and policy.status().counters["remote_error"] == 1


def test_a_server_without_a_policy_says_so(serve, remote):
    async def handle(link, number):
        await link.send(
            '{"type":"error","error":"Robot policy not available","code":"unsupported"}'
        )
        await link.close(1000)

    policy = remote(serve(handle).url)
    assert "Robot policy not available (unsupported)" in failed(policy, "no_policy")


def test_a_reset_is_sent_where_the_dialect_has_one(serve, remote):
    seen = []
    answers = (pack(ACTIONS), pack({"status": "reset successful"}), pack(ACTIONS + 1))
    policy = remote(serve(answering(*answers, metadata=VLLM_METADATA, keep=seen)).url)
    policy.ask({"state": np.zeros(1)}, 20)
    assert policy.reset() is True
    until(lambda: len(seen) == 2)
    assert seen[1] == {"endpoint": "reset"}
    assert policy.ask({"state": np.ones(1)}, 20).code == "good"


def test_a_reset_is_not_sent_to_a_server_that_would_take_it_for_an_observation(serve, remote):
    seen = []
    policy = remote(serve(answering(lambda: [reply()], keep=seen)).url)
    policy.ask({}, 20)
    assert policy.reset() is False
    policy.ask({}, 20)
    assert len(seen) == 2 and "endpoint" not in seen[1]


def test_a_setting_that_says_the_other_dialect_costs_one_reset_and_is_unlearnt(serve, remote):
    """openpi's server takes a reset for an observation, fails at it, and closes."""
    seen = []

    async def handle(link, number):
        await link.send(pack({}))
        async for message in link:
            seen.append(unpack(message))
            if "state" not in seen[-1]:
                await link.send("Traceback (most recent call last):\nKeyError: 'state'")
                await link.close(1011, "Internal server error")
                return
            await link.send(reply())

    policy = remote(quick(serve(handle).url, dialect="vllm"))
    until(lambda: policy.state is State.WARMING)
    assert policy.reset() is True
    assert "KeyError: 'state'" in failed(policy, "remote_error")
    assert policy.ask({"state": np.zeros(1)}, 20).code == "good" and policy.state is State.ACTIVE
    assert policy.status().dialect is Dialect.OPENPI and policy.reset() is False
    assert [set(message) for message in seen] == [{"endpoint"}, {"state"}]


BAD = {
    "malformed": [pack(3), pack({"a": 1}), b"\xc1", b"", pack({"actions": np.array(["a"])}), pack([1, 2]),
                  pack({"actions": [[1], [1, 2]]})],
    "non_finite": [pack(np.full((4, 3), np.nan, np.float32)), pack(np.full((4, 3), np.inf))],
    "shape": [pack(np.zeros((0, 3))), pack(np.zeros((5, 3))), pack(np.zeros((4, 2))), pack(np.zeros(3)),
              pack(np.zeros((2, 4, 3))), pack({"actions": ACTIONS, "valid_steps": 5})],
    "names": [pack({"a": ACTIONS, "b": ACTIONS}), pack({"actions": ACTIONS, "action_space": "eef"})],
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "index"), [(code, i) for code, bad in BAD.items() for i in range(len(bad))]
)
def test_a_reply_that_cannot_be_played_is_counted_and_dropped(serve, remote, code, index):
    server = serve(answering(BAD[code][index], pack(ACTIONS), metadata=VLLM_METADATA))
    policy = remote(server.url)
    with pytest.raises(LinkError) as caught:
        policy.ask({}, 20)
    assert caught.value.reason.code == code
    assert policy.state is State.DEGRADED and policy.status().counters[code] == 1
    assert policy.ask({}, 20).code == "good" and policy.state is State.ACTIVE


def test_a_reply_that_came_too_late_is_dropped(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await asyncio.sleep(1.5)
        await link.send(reply())
        await link.recv()
        await link.send(reply(ACTIONS + 1))
        await link.wait_closed()

    policy = remote(serve(handle).url)
    until(lambda: policy.state is State.WARMING)
    late = policy.request({}, deadline=time.monotonic() + 1.0)
    until(lambda: policy.status().counters["late"] == 1)
    assert [(o.id, o.code) for o in policy.outcomes()] == [(late, "late")]
    outcome = policy.ask({}, 20)
    assert outcome.actions.values[0, 0] == 1.0  # the second answer, to the second question


def test_a_newer_observation_takes_the_place_of_one_not_sent(serve, remote):
    seen, go = [], asyncio.Event()

    async def handle(link, number):
        await link.send(pack({}))
        async for message in link:
            seen.append(unpack(message)["n"])
            await go.wait()
            await link.send(reply())

    server = serve(handle)
    policy = remote(server.url)
    until(lambda: policy.state is State.WARMING)
    policy.request({"n": 0}, deadline=time.monotonic() + 60)
    until(lambda: seen == [0])
    for n in (1, 2, 3):
        policy.request({"n": n}, deadline=time.monotonic() + 60)
    server.loop.call_soon_threadsafe(go.set)
    until(lambda: policy.status().counters["good"] == 2)
    assert seen == [0, 3]
    assert [o.code for o in policy.outcomes()] == ["replaced", "replaced", "good", "good"]


def test_a_reply_sent_twice_is_played_once(serve, remote):
    answers = [reply(ACTIONS), reply(ACTIONS + 1)]

    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await link.send(answers[0])
        await link.recv()
        await link.send(answers[0])
        await link.send(answers[1])
        await link.wait_closed()

    server = serve(handle)
    policy = remote(server.url)
    assert policy.ask({"n": 0}, 20).actions.values[0, 0] == 0.0
    assert policy.ask({"n": 1}, 20).actions.values[0, 0] == 1.0
    assert policy.status().counters["duplicate"] == 1 and server.connections == 1


def test_an_equal_reply_to_an_equal_observation_is_no_duplicate(serve, remote):
    policy = remote(serve(answering(pack(ACTIONS))).url)
    assert [policy.ask({"n": 0}, 20).code for _ in range(3)] == ["good"] * 3


def test_a_constant_policy_can_be_allowed(serve, remote):
    policy = remote(quick(serve(answering(pack(ACTIONS))).url, identical="accept"))
    assert [policy.ask({"n": n}, 20).code for n in range(3)] == ["good"] * 3


def test_an_answer_that_nobody_asked_for_makes_the_link_anew(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        if number == 1:
            await link.send(reply(ACTIONS * 100))
        async for _ in link:
            await link.send(reply())

    server = serve(handle)
    policy = remote(server.url)
    until(lambda: policy.status().counters["foreign"] == 1)
    until(lambda: server.connections == 2)
    assert np.array_equal(policy.ask({}, 20).actions.values, ACTIONS)


def test_replies_out_of_order_are_told_by_their_numbers(serve, remote):
    async def handle(link, number):
        await link.send(pack({"echoes": ["request_id"]}))
        first = unpack(await link.recv())["request_id"]
        await link.send(reply(request_id=first))
        second = unpack(await link.recv())["request_id"]
        await link.send(reply(ACTIONS * 100, request_id=first))  # of before, once more
        await link.send(reply(ACTIONS * 100, request_id=second + 7))  # of somebody else
        await link.send(reply(ACTIONS + 1, request_id=second))
        await link.wait_closed()

    server = serve(handle)
    policy = remote(server.url)
    policy.ask({"n": 0}, 20)
    assert policy.ask({"n": 1}, 20).actions.values[0, 0] == 1.0
    assert policy.status().counters["foreign"] == 2 and server.connections == 1


def test_a_dialect_that_is_set_wrong_gives_way_to_what_the_answers_prove(serve, remote):
    seen = []
    map_answers = serve(answering(lambda: [reply()], keep=seen))
    policy = remote(quick(map_answers.url, dialect="vllm"))
    assert policy.ask({}, 20).code == "good" and policy.status().dialect is Dialect.OPENPI
    assert policy.reset() is False  # which that server would take for an observation
    bare = serve(answering(pack(ACTIONS), metadata=VLLM_METADATA),
                 process_request=lambda link, request: None if request.path == VLLM_PATH
                 else link.respond(403, ""))  # fmt: skip
    policy = remote(quick(bare.url + VLLM_PATH, dialect="openpi"))
    assert policy.ask({}, 20).code == "good" and policy.status().dialect is Dialect.VLLM
    # Without its path it is not found, and the reason says where to look.
    assert "403" in failed(remote(quick(bare.url, dialect="openpi")), "path")


def test_a_session_id_is_sent_where_it_is_asked_for(serve, remote):
    seen = []
    metadata = {"needs_session_id": True}
    policy = remote(serve(answering(lambda: [reply()], metadata=metadata, keep=seen)).url)
    policy.ask({}, 20)
    policy.ask({"session_id": "mine"}, 20)
    assert seen[0]["session_id"].startswith("omni-") and seen[1]["session_id"] == "mine"


def test_metadata_that_do_not_fit_the_mapping_keep_requests_back(serve, remote):
    seen = []
    server = serve(answering(lambda: [reply()], metadata={"action_dim": 7}, keep=seen))
    policy = remote(server.url, check_metadata=lambda m: f"action_dim is {m['action_dim']}")
    policy.request({}, deadline=time.monotonic() + 60)
    assert "action_dim is 7" in failed(policy, "mapping")
    until(lambda: server.connections >= 2)
    assert seen == []


@pytest.mark.parametrize("observation", [{"a": object()}, {"a": np.array([1j])}])
def test_an_observation_that_cannot_be_sent_is_dropped_and_the_link_kept(
    serve, remote, observation
):
    server = serve(answering(lambda: [reply()]))
    policy = remote(server.url)
    with pytest.raises(LinkError) as caught:
        policy.ask(observation, 20)
    assert caught.value.reason.code == "unsendable"
    assert policy.ask({}, 20).code == "good" and server.connections == 1


def test_an_observation_over_the_size_limit_is_not_sent(serve, remote):
    seen = []
    policy = remote(
        quick(serve(answering(lambda: [reply()], keep=seen)).url, max_request_bytes=2000)
    )
    with pytest.raises(LinkError, match="max_request_bytes is 2000"):
        policy.ask({"image": np.zeros(3000, np.uint8)}, 20)
    assert seen == []


def test_every_request_is_booked_once(serve, remote):
    policy = remote(serve(answering(lambda: [reply()])).url)
    for n in range(200):
        policy.request({"n": n}, deadline=time.monotonic() + (60 if n % 3 else -1))
    booked = ("good", "late", "timed_out", "lost", "replaced", "unsendable", "remote_error", "malformed",
              "shape", "non_finite", "names")  # fmt: skip
    until(lambda: sum(policy.status().counters[code] for code in booked) == 200)
    assert policy.status().counters["requested"] == 200 and not policy.status().waiting


def test_a_request_before_the_start_is_a_mistake():
    from omni_ros.openpi.client import RemotePolicy

    with pytest.raises(RuntimeError, match="not started"):
        RemotePolicy(quick("ws://127.0.0.1:1")).request({}, deadline=0.0)
