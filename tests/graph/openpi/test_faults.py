# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every way for a remote to go wrong: the state it leads to, and an arm that goes on by itself.

One graph serves all of it: each fault begins while the remote's chunks play, leads to its state while
the local policy takes over without a stop, and ends with the remote playing again.
"""

from __future__ import annotations

import asyncio
import http
import threading
import time
from typing import Any

import numpy as np
import pytest

from omni_ros.msg import BridgeStatus, PlayerStatus

pytest.importorskip("websockets")

MOVING = (PlayerStatus.STATE_PLAYING, PlayerStatus.STATE_RAMPING_IN)
ROWS = 16


class Faulty:
    """An openpi-style server that waves an arm, until it is told to go wrong."""

    def __init__(self, robot: Any) -> None:
        self._robot, self.mode, self._open = robot, "good", True
        self._began = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        assert self._began.wait(10.0)
        self.url = f"ws://127.0.0.1:{self.port}/"

    def become(self, mode: str) -> None:
        self.mode = mode

    async def _run(self) -> None:
        from websockets.asyncio.server import serve

        self.port = 0
        while True:
            server = await serve(
                self._handle, "127.0.0.1", self.port, process_request=self._admit, compression=None)
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._began.set()
            while self.mode != "refused":
                await asyncio.sleep(0.01)
            server.close()
            while self.mode == "refused":
                await asyncio.sleep(0.01)

    def _admit(self, connection: Any, request: Any) -> Any:
        if self.mode == "path":
            return connection.respond(http.HTTPStatus.FORBIDDEN, "not here")
        return None

    def _reply(self, shift: float = 0.0, rows: int = ROWS) -> bytes:
        from omni_ros.openpi.wire import pack

        robot = self._robot
        values = np.tile(robot.to_policy(robot.home), (rows, 1))
        values[:, 0] += 0.4 * np.sin(2.0 * (time.monotonic() + np.arange(rows) / 15.0)) + shift
        return pack({"actions": values.astype(np.float32), "server_timing": {"infer_ms": 1.0}})

    async def _handle(self, link: Any) -> None:
        from omni_ros.openpi.wire import pack

        if self.mode == "not_openpi":
            await link.send("hello")
            return
        if self.mode == "mute":
            await asyncio.sleep(60.0)
        await link.send(pack({}))
        async for _ in link:
            mode = self.mode
            if mode == "path":
                await link.close(1011, "elsewhere")
            elif mode in ("not_openpi", "mute"):
                await link.close(1011, "gone")
            elif mode == "torn":
                link.transport.write(b"\x82\x7e\x10\x00" + b"x" * 100)
                await asyncio.sleep(0.05)
                link.transport.abort()
            elif mode == "huge":
                await link.send(bytes(17 << 20))
            elif mode == "twice":
                await link.send(reply := self._reply())
                await link.send(reply)
            elif mode == "foreign":
                await link.send(self._reply())
                await link.send(self._reply(0.1))
            elif mode in ("1000", "1011", "1012"):
                if mode == "1000":
                    self.mode = "good"
                await link.close(int(mode), "as a test wants it")
            elif mode == "traceback":
                await link.send("Traceback (most recent call last):\nRuntimeError: CUDA")
                await link.close(1011, "Internal server error")
            elif mode == "map":
                await link.send(pack({"type": "error", "message": "Internal inference error"}))
            elif mode == "garbage":
                await link.send(b"\xdd\xff\xff\xff\xff")  # an array of four thousand million
            elif mode == "non_finite":
                await link.send(self._reply(np.nan))
            elif mode == "limits":
                await link.send(self._reply(40.0))
            elif mode == "text":
                await link.send(pack({"actions": ["left", "right"]}))
            elif mode != "silent":
                await link.send(self._reply())


@pytest.fixture(scope="module")
def faulty(openpi_tools):
    return Faulty(openpi_tools.robot)


@pytest.fixture(scope="module")
def robot(module_graph, tools, tmp_path_factory, openpi_tools, faulty):
    return openpi_tools.Bridged(
        module_graph, tools, tmp_path_factory.mktemp("mapping"), faulty.url, local=True,
        remote={"connect_timeout_s": 1.0, "handshake_timeout_s": 1.0, "reply_timeout_s": 1.5})


def hands_over(robot: Any, faulty: Any, mode: str) -> tuple[float, Any]:
    """Let the remote go wrong; returns when, and a wait for a bridge status since."""
    faulty.become("good")
    robot.until_remote_plays()
    moment = time.monotonic()
    faulty.become(mode)
    robot.until(robot.player, lambda s: s.source == "scripted" and s.state in MOVING,
                f"{mode}: the local policy plays", moment)
    return moment, lambda condition, what: robot.until(robot.bridge, condition, what, moment)


def mends(robot: Any, faulty: Any, moment: float) -> None:
    faulty.become("good")
    robot.until_remote_plays()
    assert not robot.stops(moment)


@pytest.mark.parametrize(("mode", "reasons"), [
    ("refused", {"refused"}),
    ("path", {"path"}),
    ("not_openpi", {"not_openpi"}),
    ("mute", {"handshake_timeout"}),
    ("silent", {"slow", "stalled"}),
    ("torn", {"broken"}),
    ("huge", {"too_big"}),
    ("foreign", {"out_of_step"}),
    ("1011", {"server_error"}),
    ("1012", {"restart"}),
    ("traceback", {"remote_error", "server_error"}),
    ("map", {"remote_error"}),
    ("garbage", {"malformed"}),
    ("text", {"malformed"}),
    ("non_finite", {"non_finite"}),
])
def test_a_fault_of_the_remote_has_a_reason_and_hands_over_without_a_stop(
        robot, faulty, mode, reasons):
    moment, until = hands_over(robot, faulty, mode)
    until(lambda s: s.link == BridgeStatus.LINK_DEGRADED and s.reason in reasons,
          f"DEGRADED for {reasons}")
    mends(robot, faulty, moment)


def test_replies_out_of_the_limits_hand_over_though_the_link_is_good(robot, faulty):
    moment, until = hands_over(robot, faulty, "limits")
    until(lambda s: s.decision == "remote_unplayable" and s.link == BridgeStatus.LINK_ACTIVE,
          "remote_unplayable")
    mends(robot, faulty, moment)


def test_an_idle_close_is_no_fault(robot, faulty):
    faulty.become("good")
    robot.until_remote_plays()
    time.sleep(1.2)  # a link that lasted
    connects, moment = robot.count("connects"), time.monotonic()
    faulty.become("1000")
    robot.until(robot.bridge, lambda s: s.link == BridgeStatus.LINK_ACTIVE
                and dict(zip(s.counter_names, s.counters))["connects"] > connects, "connected anew",
                moment)
    robot.until_remote_plays()
    assert not robot.stops(moment)


def test_a_reply_sent_twice_is_played_once(robot, faulty):
    faulty.become("good")
    robot.until_remote_plays()
    moment = time.monotonic()
    faulty.become("twice")
    robot.until(robot.bridge, lambda s: dict(zip(s.counter_names, s.counters)).get(
        "duplicate", 0) > 3, "duplicates are counted", moment)
    faulty.become("good")
    played = [m.chunk_id for _, m in robot.chunks.since(moment) if m.source.startswith("openpi:")]
    assert len(played) == len(set(played))
    robot.until_remote_plays()


@pytest.mark.parametrize(("url", "reason"), [
    ("ws://no-such-host.invalid:8000/", "dns"),
    ("wss://127.0.0.1:{port}/", "tls"),
])
def test_an_address_that_leads_nowhere_leaves_the_local_policy_alone(robot, faulty, url, reason):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    def reach(address: str) -> None:
        for step in ("deactivate", "cleanup"):
            assert robot.graph.change_state("openpi_bridge", step)
        request = SetParameters.Request(
            parameters=[Parameter("openpi", value=address).to_parameter_msg()])
        assert robot.graph.call(
            SetParameters, "openpi_bridge/set_parameters", request).results[0].successful
        robot.graph.bring_up("openpi_bridge")

    faulty.become("good")
    moment = time.monotonic()
    reach(url.format(port=faulty.port))
    robot.until(robot.bridge, lambda s: s.link == BridgeStatus.LINK_DEGRADED and s.reason == reason,
                reason, moment)
    robot.until(robot.player, lambda s: s.source == "scripted" and s.state in MOVING,
                "the local policy plays", time.monotonic())
    reach(faulty.url)
    robot.until_remote_plays()
