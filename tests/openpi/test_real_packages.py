# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""openpi-client and openpi-server as they are published, against ours."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.dialect import VLLM_PATH, Dialect
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.serving import ServedReply

from .conftest import failed, quick, until

CLIENT = """
import json, sys, numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy
arguments = json.loads(sys.argv[1])
client = WebsocketClientPolicy(arguments["url"], api_key=arguments.get("key"))
observations = np.load(arguments["observations"], allow_pickle=False)
observation = {"images": {name[7:]: observations[name] for name in observations.files
                          if name.startswith("images/")},
               "state": observations["state"], "prompt": str(observations["prompt"]),
               **arguments.get("extra", {})}
answer = client.infer(observation)
chunk = answer if isinstance(answer, np.ndarray) else answer.get("actions")
told = {"metadata": client.get_server_metadata(), "type": type(answer).__name__,
        "numpy": np.__version__}
if chunk is None:
    told["answer"] = answer
else:
    np.save(arguments["out"], chunk)
print(json.dumps(told, default=str))
"""

SERVER = """
import sys, time, numpy as np
import websockets.asyncio.server as server
from openpi_server import WebsocketPolicyServer
from openpi_client.base_policy import BasePolicy

class Policy(BasePolicy):
    calls = 0
    def infer(self, observation):
        self.calls += 1
        time.sleep(float(observation.get("sleep", 0.0)))
        image = observation["images"]["front"]
        rows = np.outer(np.arange(1, 6, dtype=np.float32), observation["state"])
        return {"actions": rows + np.float32(image.mean()), "state": observation["state"]}

real = server.serve
def serve(*arguments, **options):
    started = real(*arguments, **options)
    class Told:
        async def __aenter__(self):
            opened = await started.__aenter__()
            print(opened.sockets[0].getsockname()[1], flush=True)
            return opened
        async def __aexit__(self, *error):
            return await started.__aexit__(*error)
    return Told()
server.serve = serve
WebsocketPolicyServer(Policy(), "127.0.0.1", 0, {"name": "published"}).serve_forever()
"""

OBSERVATION = {"images": {"front": np.full((8, 8, 3), 2, np.uint8)},
               "state": np.array([1, 2, 3], np.float32), "prompt": "go"}  # fmt: skip


class Policy:
    cameras, state_names, metadata = ("front",), ("a", "b", "c"), {"name": "ours"}
    takes = ()

    def infer(self, request):
        rows = np.outer(np.arange(1, 6, dtype=np.float32), request.state)
        return ServedReply(rows + request.images["front"].mean())

    def reset(self, session):
        pass


def ask(environment, tmp_path, url, observation=OBSERVATION, **more):
    """Have the published client ask; return what it got and what it told."""
    images = {f"images/{name}": image for name, image in observation["images"].items()}
    np.savez(tmp_path / "o.npz", **images, state=observation["state"], prompt=observation["prompt"])
    arguments = {
        "url": url,
        "observations": str(tmp_path / "o.npz"),
        "out": str(tmp_path / "a.npy"),
        **more,
    }
    done = subprocess.run([sys.executable, "-P", "-c", CLIENT, json.dumps(arguments)], env=environment,
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    if done.returncode != 0:
        return None, done.stderr
    told = json.loads(done.stdout)
    return (np.load(tmp_path / "a.npy") if "answer" not in told else None), told


@pytest.fixture
def ours():
    server = PolicyServer(Policy(), ServerSettings(port=0))
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize(("path", "kind"), [("", "dict"), (VLLM_PATH, "ndarray")])
def test_the_published_client_drives_our_server_in_both_dialects(
    ours, openpi_packages, tmp_path, path, kind
):
    chunk, told = ask(openpi_packages, tmp_path, ours.url + path, key="any")
    assert told["metadata"]["name"] == "ours" and told["type"] == kind
    assert np.array_equal(chunk, np.outer(np.arange(1, 6), [1, 2, 3]) + 2.0)


def test_the_published_client_is_told_what_is_wrong_with_an_observation(
    ours, openpi_packages, tmp_path
):
    bad = {**OBSERVATION, "state": np.zeros(7, np.float32)}
    _, stderr = ask(openpi_packages, tmp_path, ours.url, bad)
    assert (
        "RuntimeError: Error in inference server:" in stderr and "expected [3]: a, b, c" in stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", VLLM_PATH])
def test_the_published_client_gets_the_bundles_own_chunk_from_omni_serve(
    openpi_packages, tmp_path, run_serve, bundle_observation, path
):
    policy, observation = bundle_observation
    wanted = policy.infer(observation, "stack the red cups", seed=11).actions
    sent = {
        "images": dict(observation.images),
        "state": observation.state,
        "prompt": "stack the red cups",
    }
    chunk, told = ask(openpi_packages, tmp_path, run_serve + path, sent, extra={"seed": 11})
    assert told["metadata"]["cameras"] == list(policy.cameras)
    assert np.array_equal(chunk, wanted)


@pytest.fixture
def theirs(openpi_packages):
    process = subprocess.Popen([sys.executable, "-P", "-c", SERVER], env=openpi_packages, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        yield f"ws://127.0.0.1:{int(process.stdout.readline())}", process
    finally:
        process.kill()
        process.wait()


def test_our_client_drives_the_published_server(theirs, remote):
    policy = remote(quick(theirs[0]))
    outcome = policy.ask(OBSERVATION, 60)
    assert np.array_equal(outcome.actions.values, np.outer(np.arange(1, 6), [1, 2, 3]) + 2.0)
    status = policy.status()
    assert status.dialect is Dialect.OPENPI and status.metadata == {"name": "published"}
    timing = policy.ask({**OBSERVATION, "prompt": "again"}, 60).actions.server_timing
    assert {"infer_ms", "prev_total_ms"} <= set(timing)


def test_an_error_of_the_published_server_is_understood_and_the_link_mended(theirs, remote):
    policy = remote(quick(theirs[0]))
    with pytest.raises(LinkError, match="KeyError: 'images'") as caught:
        policy.ask({"state": np.zeros(3, np.float32)}, 60)
    assert caught.value.reason.code == "remote_error"
    assert policy.ask(OBSERVATION, 60).code == "good"


def test_the_published_server_blocks_a_second_client_while_it_computes(theirs, remote):
    """Field case: the second one gives up in time, and is let in afterwards."""
    first = remote(quick(theirs[0]))
    first.ask(OBSERVATION, 60)
    import time

    first.request({**OBSERVATION, "sleep": 2.0}, deadline=time.monotonic() + 60)
    until(lambda: first.status().waiting)
    second = remote(quick(theirs[0], connect_timeout_s=0.3))
    failed(second, "connect_timeout")
    assert second.ask(OBSERVATION, 60).code == "good"


def test_the_published_server_killed_is_noticed(theirs, remote):
    policy = remote(quick(theirs[0]))
    policy.ask(OBSERVATION, 60)
    theirs[1].kill()
    failed(policy, "refused")
