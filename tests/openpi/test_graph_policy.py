# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Served through somebody else who answers by stamp."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.graph_policy import GraphPolicy
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings

from .conftest import ACTIONS, quick

OBSERVATION = {"images": {"front": np.zeros((4, 4, 3), np.uint8)}, "state": [0.0, 1.0], "prompt": "go"}


@pytest.fixture
def through(remote):
    """Serve a graph that does as told with each request; return a client of it, and the policy."""
    servers = []

    def start(act, **options):
        def publish(request, stamp):
            threading.Thread(target=act, args=(policy, request, stamp), daemon=True).start()

        policy = GraphPolicy(cameras=("front",), state_names=("a", "b"), metadata={"n": 1},
                             publish=publish, timeout_s=options.pop("timeout_s", 20.0), **options)  # fmt: skip
        servers.append(PolicyServer(policy, ServerSettings(port=0)))
        servers[-1].start()
        return remote(quick(servers[-1].url, dialect="openpi")), policy

    yield start
    for server in servers:
        server.stop()


def test_a_request_is_answered_by_the_chunk_of_its_stamp(through):
    def act(policy, request, stamp):
        assert not policy.deliver(stamp - 1, ACTIONS * 100)  # of an observation before
        assert policy.deliver(stamp, ACTIONS + request.state[1], chunk_id=7)
        assert policy.deliver(stamp + 1, ACTIONS * 100) is False

    client, _ = through(act)
    outcome = client.ask(OBSERVATION, 20)
    assert np.array_equal(outcome.actions.values, ACTIONS + 1) and outcome.extra["chunk_id"] == 7


def test_no_chunk_in_time_is_told(through):
    client, policy = through(lambda *_: None, timeout_s=0.1)
    with pytest.raises(LinkError, match="no chunk came within 0.1 s"):
        client.ask(OBSERVATION, 20)
    assert policy.deliver(policy._last_stamp, ACTIONS) is False  # too late


def test_a_graph_that_gives_up_says_why(through):
    client, _ = through(lambda policy, *_: policy.refuse("the policy was deactivated"))
    with pytest.raises(LinkError, match="deactivated"):
        client.ask(OBSERVATION, 20)


def test_two_requests_never_have_one_stamp(through):
    stamps = []

    def act(policy, request, stamp):
        stamps.append(stamp)
        policy.deliver(stamp, ACTIONS + len(stamps))

    client, _ = through(act, clock_ns=lambda: 1_000)
    for number in range(3):
        client.ask({**OBSERVATION, "state": [number, 0.0]}, 20)
    assert stamps == [1000, 1001, 1002]


def test_a_clock_that_was_set_back_is_followed(through):
    """Stamps that ran on from before would lie in the future, and nobody would act on them."""
    stamps, clock = [], [5 * 10**9, 5 * 10**9 - 10**7, 2 * 10**9]

    def act(policy, request, stamp):
        stamps.append(stamp)
        policy.deliver(stamp, ACTIONS + len(stamps))

    client, _ = through(act, clock_ns=lambda: clock[len(stamps)])
    for number in range(3):
        client.ask({**OBSERVATION, "state": [number, 0.0]}, 20)
    assert stamps == [5 * 10**9, 5 * 10**9 + 1, 2 * 10**9]


def test_who_waits_and_who_asks_later_are_told_that_the_graph_has_ended(through):
    asked = []

    def act(policy, request, stamp):
        asked.append(stamp)
        policy.end("the bridge is deactivated")

    client, policy = through(act, timeout_s=300.0)
    for number in range(2):
        with pytest.raises(LinkError, match="deactivated"):
            client.ask({**OBSERVATION, "state": [number, 0.0]}, 20)
    assert len(asked) == 1


def test_what_the_graph_cannot_be_told_is_refused(through):
    client, _ = through(lambda policy, request, stamp: policy.deliver(stamp, ACTIONS))
    with pytest.raises(LinkError, match="`seed` is given, which this policy does not take"):
        client.ask({**OBSERVATION, "seed": 3}, 20)


def test_a_reset_reaches_the_graph(through):
    resets = []
    client, policy = through(lambda policy, request, stamp: policy.deliver(stamp, ACTIONS),
                             on_reset=resets.append)  # fmt: skip
    client.ask(OBSERVATION, 20)
    end = time.monotonic() + 20
    while not resets and time.monotonic() < end:
        time.sleep(0.01)
    assert resets == ["default"]
