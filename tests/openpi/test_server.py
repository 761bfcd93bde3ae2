# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy server, in both dialects, and what it does not let happen."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from omni_ros.openpi.dialect import VLLM_PATH
from omni_ros.openpi.errors import RequestError
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.serving import TAKES, ServedReply
from omni_ros.openpi.wire import pack, unpack

from .conftest import ACTIONS, until

OBSERVATION = {
    "images": {"front": np.zeros((4, 6, 3), np.uint8)},
    "state": np.zeros(3),
    "prompt": "go",
}


class Policy:
    """Answers with what it was asked; may be held."""

    cameras = ("front",)
    state_names = ("a", "b", "c")
    takes = TAKES
    metadata = {"action_horizon": 4, "action_dim": 3}

    def __init__(self) -> None:
        self.asked, self.resets, self.running, self.most = [], [], 0, 0
        self.go = threading.Event()
        self.go.set()

    def infer(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        self.asked.append(request)
        self.go.wait(30)
        self.running -= 1
        if request.prompt == "fail":
            raise RuntimeError("no such thing")
        if request.prompt == "refuse":
            raise RequestError("too many steps")
        if request.prompt == "big":
            return ServedReply(np.zeros((1000, 1000)))
        if request.prompt == "nan":
            return ServedReply(np.full((4, 3), np.nan))
        return ServedReply(ACTIONS + request.state, {"seed": request.seed})

    def reset(self, session):
        self.resets.append(session)


@pytest.fixture
def policy():
    return Policy()


@pytest.fixture
def served(policy):
    started = []

    def start(**settings) -> SimpleNamespace:
        server = PolicyServer(policy, ServerSettings(port=0, **settings))
        server.start()
        started.append(server)
        return server

    yield start
    policy.go.set()
    for server in started:
        server.stop()


class Client:
    """One raw websocket that has read the metadata."""

    def __init__(
        self, stack: contextlib.ExitStack, server: PolicyServer, path: str, headers
    ) -> None:
        self.link = stack.enter_context(connect(
            server.url + path, additional_headers=headers, compression=None, max_size=None))  # fmt: skip
        self.metadata = unpack(self.link.recv(timeout=20))

    def send(self, value: object) -> None:
        self.link.send(value if isinstance(value, (bytes, str)) else pack(value))

    def ask(self, value: object) -> object:
        self.send(value)
        answer = self.link.recv(timeout=20)
        return answer if isinstance(answer, str) else unpack(answer)

    def closed(self) -> int:
        with pytest.raises(ConnectionClosed) as caught:
            self.link.recv(timeout=20)
        return caught.value.rcvd.code


@pytest.fixture
def client():
    with contextlib.ExitStack() as stack:
        def make(server, path="/", **headers):
            return Client(stack, server, path, headers)

        yield make


def vllm(server, client):
    return client(server, VLLM_PATH)


def test_metadata_come_first_and_say_what_the_policy_does(served, client):
    metadata = client(served()).metadata
    assert metadata["action_horizon"] == 4 and metadata["dialect"] == "openpi"


def test_openpis_dialect_answers_with_a_map_and_timings(served, client):
    link = client(served())
    first, second = link.ask(OBSERVATION), link.ask(OBSERVATION)
    assert np.array_equal(first["actions"], ACTIONS) and first["actions"].dtype == np.float32
    assert first["server_timing"]["infer_ms"] >= 0 and first["server_timing"]["wait_ms"] >= 0
    assert "prev_total_ms" not in first["server_timing"]
    assert second["server_timing"]["prev_total_ms"] > 0


def test_vllms_dialect_answers_with_a_bare_array(served, client):
    link = vllm(served(), client)
    assert link.metadata["dialect"] == "vllm" and link.metadata["echoes"] == []
    assert np.array_equal(link.ask(OBSERVATION), ACTIONS)


def test_a_number_is_returned_where_the_reply_has_room_for_it(served, client):
    link = client(served())
    assert "request_id" in link.metadata["echoes"]
    assert link.ask({**OBSERVATION, "request_id": 41})["request_id"] == 41


def test_seed_noise_and_steps_reach_the_policy(served, client, policy):
    noise = np.ones((1, 4, 8), np.float32)
    client(served()).ask({**OBSERVATION, "seed": 7, "noise": noise,
                          "sampling_params": {"num_inference_steps": 3, "other": 1}})  # fmt: skip
    asked = policy.asked[0]
    assert (asked.seed, asked.steps, asked.noise.shape) == (7, 3, (4, 8))


def test_without_a_seed_one_is_drawn_and_told(served, client, policy):
    link = client(served())
    seeds = [link.ask(OBSERVATION)["seed"] for _ in range(3)]
    assert len(set(seeds)) == 3 and all(0 <= seed < 2**31 for seed in seeds)


def test_vllms_errors_are_maps_and_the_link_stays(served, client):
    link = vllm(served(), client)
    for bad in ({}, [1], b"\xc1", "text", b"", {**OBSERVATION, "prompt": "refuse"},
                {**OBSERVATION, "prompt": "fail"}, {**OBSERVATION, "prompt": "nan"}):  # fmt: skip
        answer = link.ask(bad)
        assert answer["type"] == "error" and answer["message"]
    assert np.array_equal(link.ask(OBSERVATION), ACTIONS)


@pytest.mark.parametrize(("prompt", "text"), [("refuse", "too many steps"), ("fail", "no such thing"),
                                              ("nan", "not finite")])  # fmt: skip
def test_openpis_errors_are_text_and_then_a_close(served, client, prompt, text):
    link = client(served())
    answer = link.ask({**OBSERVATION, "prompt": prompt})
    assert isinstance(answer, str) and text in answer and "Traceback" not in answer
    assert link.closed() == 1011


def test_a_reset_is_answered_and_begins_sessions_anew(served, client, policy):
    link = vllm(served(), client)
    link.ask({**OBSERVATION, "session_id": "A"})
    link.ask({**OBSERVATION, "session_id": "A"})
    assert link.ask({"endpoint": "reset"}) == {"status": "reset successful"}
    link.ask({**OBSERVATION, "session_id": "A"})
    assert policy.resets == ["A", "default", "A"]


@pytest.mark.parametrize("endpoint", ["infer", 5, np.zeros(2)], ids=str)
def test_another_endpoint_is_an_observation(served, client, endpoint):
    assert np.array_equal(vllm(served(), client).ask({**OBSERVATION, "endpoint": endpoint}), ACTIONS)


@pytest.mark.parametrize("path", ["/healthz", "/health"])
def test_health_is_told_while_the_policy_computes(served, client, policy, path):
    server = served(token_file=None)
    policy.go.clear()
    client(server).send(OBSERVATION)
    until(lambda: policy.running)
    with urllib.request.urlopen("http" + server.url[2:] + path, timeout=20) as answer:
        assert answer.status == 200


def test_pings_are_answered_while_the_policy_computes(served, client, policy):
    link = client(served())
    policy.go.clear()
    link.send(OBSERVATION)
    until(lambda: policy.running)
    assert link.link.ping().wait(20)


def test_one_inference_at_a_time_first_come_first_served(served, client, policy):
    server = served()
    policy.go.clear()
    links = [client(server) for _ in range(4)]
    for number, link in enumerate(links):
        link.send({**OBSERVATION, "state": np.full(3, number)})
        until(lambda: server.waiting + policy.running == number + 1)  # noqa: B023
    policy.go.set()
    answers = [unpack(link.link.recv(timeout=20)) for link in links]
    assert [answer["actions"][0, 0] for answer in answers] == [0, 1, 2, 3]
    assert [request.state[0] for request in policy.asked] == [0, 1, 2, 3] and policy.most == 1
    assert answers[3]["server_timing"]["wait_ms"] > 0


def test_a_client_beyond_those_that_may_wait_is_told_so(served, client, policy):
    server = served(max_waiting=1)
    policy.go.clear()
    first, second, third = (vllm(server, client) for _ in range(3))
    first.send(OBSERVATION)
    until(lambda: policy.running)
    second.send(OBSERVATION)
    until(lambda: server.waiting == 1)
    assert "busy" in third.ask(OBSERVATION)["message"]
    policy.go.set()
    assert np.array_equal(unpack(second.link.recv(timeout=20)), ACTIONS)


def test_where_nobody_may_wait_openpis_client_is_told_and_let_go(served, client, policy):
    server = served(busy="refuse")
    policy.go.clear()
    client(server).send(OBSERVATION)
    until(lambda: policy.running)
    link = client(server)
    assert "busy" in link.ask(OBSERVATION)
    assert link.closed() == 1013


def test_nobody_waits_longer_than_allowed(served, client, policy):
    server = served(wait_timeout_s=0.1)
    policy.go.clear()
    client(server).send(OBSERVATION)
    until(lambda: policy.running)
    assert "busy for 0.1 s" in vllm(server, client).ask(OBSERVATION)["message"]


def test_a_client_that_leaves_in_the_middle_stops_nobody(served, client, policy):
    server = served()
    policy.go.clear()
    leaving = client(server)
    leaving.send(OBSERVATION)
    until(lambda: policy.running)
    leaving.link.close()
    staying = client(server)
    staying.send(OBSERVATION)
    policy.go.set()
    assert np.array_equal(unpack(staying.link.recv(timeout=20))["actions"], ACTIONS)
    assert policy.most == 1


def test_more_clients_than_allowed_are_turned_away(served, client):
    server = served(max_clients=2)
    kept = [client(server) for _ in range(2)]
    with pytest.raises(InvalidStatus) as caught:
        client(server)
    assert caught.value.response.status_code == 503
    assert caught.value.response.headers["Retry-After"] == "1"
    kept[0].link.close()
    until(lambda: len(server._clients) == 1)
    assert np.array_equal(client(server).ask(OBSERVATION)["actions"], ACTIONS)


def test_a_message_over_the_limit_closes_the_link(served, client):
    link = client(served(max_request_bytes=5000))
    link.send({**OBSERVATION, "more": np.zeros(6000, np.uint8)})
    assert link.closed() == 1009


def test_a_client_that_asks_nothing_is_let_go(served, client, policy):
    link = client(served(idle_timeout_s=2.0))
    policy.go.clear()
    link.send(OBSERVATION)
    until(lambda: policy.running)
    time.sleep(2.5)  # computing is not idling
    policy.go.set()
    assert "actions" in unpack(link.link.recv(timeout=20))
    assert link.closed() == 1000


@pytest.fixture
def deaf(request, served, policy, monkeypatch):
    """A server, and a client that asks for more than fits on the way and reads nothing."""
    monkeypatch.setattr("omni_ros.openpi.server.SEND_TIMEOUT_S", request.param)
    server = served(ping_interval_s=1000.0)
    with connect(server.url, compression=None, max_size=None, max_queue=1, close_timeout=0.1) as link:
        asking = threading.Thread(
            target=lambda: [link.send(pack({**OBSERVATION, "prompt": "big"})) for _ in range(8)])
        asking.start()
        asking.join(20)

        def stuck() -> bool:
            before = server.counters.served
            time.sleep(0.3)
            return before == server.counters.served == len(policy.asked) - 1 and not policy.running

        until(lambda: stuck() or server.counters.left)
        yield server
        with contextlib.suppress(OSError):
            link.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("deaf", [1.0], indirect=True)
def test_a_client_that_reads_nothing_does_not_hold_its_place(deaf, client):
    until(lambda: deaf.counters.left == 1 and not deaf._clients)
    assert "actions" in client(deaf).ask(OBSERVATION)


@pytest.mark.parametrize("deaf", [100.0], indirect=True)
def test_a_client_that_reads_nothing_does_not_hold_up_the_end(deaf):
    deaf.stop(timeout_s=20)
    assert not deaf._thread.is_alive()


def test_a_server_that_ends_says_so(served, client):
    server = served()
    link = client(server)
    server.stop()
    assert link.closed() == 1012


def test_a_server_that_ends_waits_for_the_policy_and_drops_the_rest(served, client, policy):
    server = served()
    policy.go.clear()
    for link in (client(server), client(server)):
        link.send(OBSERVATION)
    until(lambda: policy.running and server.waiting == 1)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    until(lambda: server._ended.is_set())
    assert policy.running == 1
    policy.go.set()
    stopping.join(20)
    assert policy.running == 0 and len(policy.asked) == 1


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer s3cret", "Api-Key s3cret"])
def test_the_token_lets_in(served, client, tmp_path, header):
    (tmp_path / "t").write_text("s3cret\n")
    link = client(served(token_file=str(tmp_path / "t")), Authorization=header)
    assert "actions" in link.ask(OBSERVATION)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer s3cre"}, {"Authorization": "s3cret"},
                                     {"Authorization": "Basic s3cret"}])  # fmt: skip
def test_without_the_token_nothing_is_told(served, client, tmp_path, headers):
    (tmp_path / "t").write_text("s3cret\n")
    server = served(token_file=str(tmp_path / "t"))
    with pytest.raises(InvalidStatus) as caught:
        client(server, **headers)
    assert caught.value.response.status_code == 401
    with urllib.request.urlopen("http" + server.url[2:] + "/healthz", timeout=20) as answer:
        assert answer.read() == b"OK\n"


def test_a_page_in_a_browser_of_this_machine_is_turned_away(served, client):
    with pytest.raises(InvalidStatus) as caught:
        client(served(), Origin="https://example.org")
    assert caught.value.response.status_code == 403


def test_vllms_dialect_alone_has_one_path(served, client):
    server = served(dialect="vllm")
    with pytest.raises(InvalidStatus) as caught:
        client(server)
    assert caught.value.response.status_code == 403
    assert np.array_equal(vllm(server, client).ask(OBSERVATION), ACTIONS)


def test_openpis_dialect_alone_is_spoken_at_any_path(served, client):
    assert "actions" in vllm(served(dialect="openpi"), client).ask(OBSERVATION)


def test_it_listens_on_this_machine_only(served):
    server = served()
    assert server.address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_an_error(policy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(OSError):
            PolicyServer(policy, ServerSettings(port=taken.getsockname()[1])).start()


def test_it_can_run_in_a_loop_of_the_callers(policy, client):
    async def main():
        server = PolicyServer(policy, ServerSettings(port=0))
        task = asyncio.ensure_future(server.run())
        while server.address is None:
            await asyncio.sleep(0.01)
        answer = await asyncio.to_thread(lambda: client(server).ask(OBSERVATION))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return answer

    assert "actions" in asyncio.run(main())


def test_our_client_and_our_server_understand_each_other(served, remote, policy):
    for path in ("", "/any"):
        asker = remote(served().url + path)
        outcome = asker.ask({**OBSERVATION, "seed": 1}, 20)
        assert np.array_equal(outcome.actions.values, ACTIONS)
    assert asker.status().dialect.value == "openpi"
