# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What every node's `main` shares: spinning."""

from __future__ import annotations

import threading
import time

import pytest

rclpy = pytest.importorskip("rclpy")

from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.lifecycle import LifecycleNode  # noqa: E402

from omni_ros.nodes._runtime import spin_until_signal  # noqa: E402

ACTIVATE = 3


@pytest.fixture
def spun():
    """A lifecycle node that is spun in a thread, and what asks it for things."""
    rclpy.init()
    node, stop = LifecycleNode("asked"), threading.Event()
    thread = threading.Thread(target=spin_until_signal, args=([node], stop))
    thread.start()
    client, executor = rclpy.create_node("asking"), SingleThreadedExecutor()
    executor.add_node(client)

    def ask(kind, service: str, request, timeout_s: float = 10.0):
        """Return the answer; None if there is none in time."""
        asked = client.create_client(kind, f"asked/{service}")
        assert asked.wait_for_service(timeout_sec=30.0)
        future, deadline = asked.call_async(request), time.monotonic() + timeout_s
        while not future.done() and thread.is_alive() and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.05)
        return future.result() if future.done() else None

    yield ask
    stop.set()
    thread.join(timeout=30.0)
    executor.shutdown()
    client.destroy_node()
    node.destroy_node()
    rclpy.shutdown()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_request_that_does_not_fit_the_state_is_refused_and_the_node_lives_on(spun):
    request = ChangeState.Request()
    request.transition.id = ACTIVATE  # of a node that was never configured
    answer = spun(ChangeState, "change_state", request, timeout_s=2.0)
    assert answer is None or not answer.success
    state = spun(GetState, "get_state", GetState.Request())
    assert state is not None and state.current_state.label == "unconfigured"
