# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Servers that behave as a test says, a wire that can be cut, and clients with short limits."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.openpi.client import RemotePolicy
from omni_ros.openpi.settings import RemoteSettings
from omni_ros.openpi.states import State
from omni_ros.openpi.wire import pack

# A robot that asks no remote has neither.
if find_spec("websockets") is None or find_spec("msgpack") is None:
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).resolve().parents[2]
#: Limits of the tests: long enough for a busy machine, where nothing is waited for to its end.
QUICK = {
    "connect_timeout_s": 5.0, "handshake_timeout_s": 5.0, "warm_up_timeout_s": 20.0,
    "remote_timeout_s": 5.0, "reply_timeout_s": 10.0, "backoff_s": 0.02, "backoff_max_s": 0.05,
}  # fmt: skip
ACTIONS = np.arange(12, dtype=np.float32).reshape(4, 3)


def quick(url: str, **changed: object) -> RemoteSettings:
    return RemoteSettings(url, **{**QUICK, **changed})


def until(condition: Callable[[], object], timeout_s: float = 20.0) -> object:
    """Wait for something to become true; return it."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
    return value


def failed(policy: RemotePolicy, code: str) -> str:
    """Wait until a client was DEGRADED for a reason; return the reason's text.

    By its history: a state may be over sooner than a busy machine looks.
    """

    def found() -> list[str]:
        return [status.reason.text for status in list(policy.history)
                if (status.state, status.reason.code) == (State.DEGRADED, code)]  # fmt: skip

    until(found)
    return found()[-1]


def reply(actions: np.ndarray = ACTIONS, **extra: object) -> bytes:
    """An answer of openpi's dialect."""
    return pack(
        {"actions": actions, "server_timing": {"infer_ms": 1.0 + time.monotonic()}, **extra}
    )


@pytest.fixture
def serve() -> Iterator[Callable[..., SimpleNamespace]]:
    """Start a websocket server whose connections a coroutine handles; in a thread of its own.

    `handler(socket, number)`; the number counts connections from 1.
    """
    started = []

    def start(handler: Callable, *, port: int = 0, **options: object) -> SimpleNamespace:
        from websockets.asyncio.server import serve as websocket_serve

        bound, box = threading.Event(), SimpleNamespace(connections=0)

        async def handle(link: object) -> None:
            box.connections += 1
            await handler(link, box.connections)

        async def main() -> None:
            box.loop, box.ended = asyncio.get_running_loop(), asyncio.Event()
            async with websocket_serve(
                handle, "127.0.0.1", port, compression=None, max_size=None, close_timeout=0.2,
                **options,
            ) as server:
                box.port = server.sockets[0].getsockname()[1]
                bound.set()
                await box.ended.wait()

        def end() -> None:
            if box.thread.is_alive():
                box.loop.call_soon_threadsafe(box.ended.set)
                box.thread.join(10)

        box.thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        box.thread.start()
        assert bound.wait(10)
        box.url, box.stop = f"ws://127.0.0.1:{box.port}", end
        started.append(box)
        return box

    yield start
    for box in started:
        box.stop()


@pytest.fixture
def remote() -> Iterator[Callable[..., RemotePolicy]]:
    """Start a client, given a URL or settings; its jitter is fixed, its `history` all it was in."""
    started = []

    def note(policy: RemotePolicy) -> None:
        policy.history.append(policy.status())

    def start(settings: RemoteSettings | str, **options: object) -> RemotePolicy:
        if isinstance(settings, str):
            settings = quick(settings)
        policy = RemotePolicy(settings, jitter=lambda: 0.5, on_event=lambda: note(policy), **options)
        policy.history = []
        policy.start()
        started.append(policy)
        return policy

    yield start
    for policy in started:
        policy.stop()


@pytest.fixture
def wire() -> Iterator[Callable[[int], SimpleNamespace]]:
    """A TCP relay to a port of this machine that can stop forwarding, as a radio does, or break."""
    relays = []

    def start(port: int) -> SimpleNamespace:
        listener = socket.create_server(("127.0.0.1", 0))
        box = SimpleNamespace(
            port=listener.getsockname()[1], flowing=threading.Event(), ended=False, sockets=[],
            limit=None,
        )  # fmt: skip
        box.flowing.set()

        def pump(source: socket.socket, target: socket.socket, downstream: bool) -> None:
            passed = 0
            try:
                while data := source.recv(65536):
                    box.flowing.wait()
                    if downstream and box.limit is not None and passed + len(data) > box.limit:
                        target.sendall(data[:box.limit - passed])
                        target.shutdown(socket.SHUT_RDWR)
                        source.shutdown(socket.SHUT_RDWR)
                        return
                    passed += len(data)
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def accept() -> None:
            while not box.ended:
                try:
                    near, _ = listener.accept()
                    far = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    return
                box.sockets += [near, far]
                for arguments in ((near, far, False), (far, near, True)):
                    threading.Thread(target=pump, args=arguments, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        box.url = f"ws://127.0.0.1:{box.port}"
        relays.append((box, listener))
        return box

    yield start
    for box, listener in relays:
        box.ended = True
        box.flowing.set()
        listener.close()
        for each in box.sockets:
            each.close()


@pytest.fixture(scope="session")
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def openpi_packages() -> dict[str, str]:
    """The environment of a process that can import openpi_client and openpi_server as published.

    openpi-client asks for numpy below 2 though it runs with either, so it cannot be installed beside
    what is pinned here: it is put, without its dependencies, into a folder apart.
    """
    folder = Path(sys.prefix) / "share" / "omni_ros" / "openpi_packages"
    if not (folder / "openpi_server").is_dir():
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder),
             "-c", str(ROOT / "requirements" / "constraints.txt"), "openpi-client", "openpi-server"],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            pytest.skip(
                f"openpi-client and openpi-server cannot be installed: {done.stderr[-300:]}"
            )
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture(scope="session")
def bundle_observation(exported: Callable[..., Path]) -> Iterator[tuple[object, object]]:
    """A small SmolVLA opened from its bundle, and something to show it."""
    from omni_ros.policy.observation import Observation
    from omni_ros.policy.smolvla import SmolVLAPolicy

    rng = np.random.default_rng(3)
    with SmolVLAPolicy(exported("smolvla_given", "fp32")) as policy:
        images = {camera.name: rng.integers(0, 256, (camera.height, camera.width, 3), np.uint8)
                  for camera in policy.manifest.cameras}  # fmt: skip
        state = rng.normal(0, 10, policy.manifest.dimensions.state).astype(np.float32)
        yield policy, Observation(images, state)


@pytest.fixture(scope="session")
def run_serve(exported: Callable[..., Path]) -> Iterator[str]:
    """The address of `omni serve` with that bundle."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "omni_ros.cli.main", "serve", str(exported("smolvla_given", "fp32")),
         "--port", "0"], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = ""
        while "openpi" not in line:
            line = process.stdout.readline()
            assert line, "omni serve has ended"
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
