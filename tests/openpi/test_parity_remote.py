# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity BUNDLE --openpi URL`, and `omni serve` at the other end."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
import yaml

from omni_ros.cli import main
from omni_ros.openpi.mapping import mapping_from_data
from omni_ros.openpi.served import ServedBundle, bundle_metadata
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.serving import ServedRequest
from omni_ros.openpi.wire import pack, unpack
from omni_ros.policy.observation import Observation

from .conftest import quick, until

TASK = "stack the red cups"


@pytest.fixture(scope="module")
def policy(bundle_observation):
    return bundle_observation[0]


@pytest.fixture
def request_of(bundle_observation):
    observation = bundle_observation[1]

    def make(**changed):
        return ServedRequest(**{"images": observation.images, "state": observation.state, "prompt": TASK,
                                "seed": 5, **changed})  # fmt: skip

    return make


def test_a_seed_gives_the_policys_own_chunk(bundle_observation, request_of):
    policy, observation = bundle_observation
    wanted = policy.infer(observation, TASK, seed=5).actions
    reply = ServedBundle(policy).infer(request_of())
    assert np.array_equal(reply.actions, wanted) and reply.extra["seed"] == 5


def test_noise_wins_over_a_seed(bundle_observation, request_of):
    policy, observation = bundle_observation
    noise = np.random.default_rng(1).normal(size=policy.head.shape).astype(np.float32)
    wanted = policy.infer(observation, TASK, noise=noise).actions
    assert np.array_equal(ServedBundle(policy).infer(request_of(noise=noise)).actions, wanted)


def test_another_number_of_steps_is_taken_for_one_request(bundle_observation, request_of):
    policy, _ = bundle_observation
    served = ServedBundle(policy)
    own = served.infer(request_of()).actions
    fewer = served.infer(request_of(steps=3))
    assert fewer.extra["policy_timing"]["num_inference_steps"] == 3
    assert not np.array_equal(fewer.actions, own) and np.isfinite(fewer.actions).all()
    assert np.array_equal(served.infer(request_of(steps=policy.manifest.flow.steps)).actions, own)
    assert np.array_equal(served.infer(request_of()).actions, own)


def test_steps_asked_for_are_euler_steps_of_the_same_flow(bundle_observation, request_of):
    """With the number of steps that the bundle has, the other way of stepping gives the same bits."""
    from omni_ros.policy.steps import HeadWithSteps

    policy, observation = bundle_observation
    wanted = policy.infer(observation, TASK, seed=5).actions
    own = policy.head
    try:
        policy.head = HeadWithSteps(own, policy.manifest, own.steps)
        assert np.array_equal(policy.infer(observation, TASK, seed=5).actions, wanted)
    finally:
        policy.head = own


@pytest.mark.parametrize(("changed", "text"), [
    ({"noise": np.zeros((3, 3), np.float32)}, "expected finite values"),
    ({"state": np.zeros(3, np.float32)}, "the policy takes"),
])  # fmt: skip
def test_what_the_policy_refuses_is_the_clients_to_know(policy, request_of, changed, text):
    from omni_ros.openpi.errors import RequestError

    with pytest.raises(RequestError, match=text):
        ServedBundle(policy).infer(request_of(**changed))


def test_metadata_say_what_the_bundle_is(policy):
    metadata = unpack(pack(bundle_metadata(policy)))
    sizes = policy.manifest.dimensions
    assert metadata["action_horizon"] == sizes.chunk and metadata["action_dim"] == sizes.action
    assert metadata["cameras"] == list(policy.cameras)
    assert metadata["noise_shape"] == [sizes.chunk, sizes.max_action]
    assert len(metadata["bundle_sha256"]) == 64


@pytest.mark.slow
def test_omni_parity_against_omni_serve_finds_no_difference_at_all(
    run_serve, exported, capsys, tmp_path
):
    out = tmp_path / "rows.json"
    status = main.main(["parity", str(exported("smolvla_given", "fp32")), "--openpi", run_serve,
                        "--observations", "2", "--json", str(out)])  # fmt: skip
    text = capsys.readouterr().out
    assert status == 0 and "noise same for both" in text and "joints pass" in text
    document = json.loads(out.read_text())
    assert document["passed"] is True and np.array(document["by_row"]).max() == 0.0
    assert np.array(document["by_row"]).shape == (document["rows"], len(document["joints"]))


@pytest.mark.slow
def test_omni_parity_takes_recorded_observations(run_serve, exported, policy, capsys, tmp_path):
    rng = np.random.default_rng(2)
    arrays = {f"images/{c.name}": rng.integers(0, 256, (2, 33, 47, 3), np.uint8)
              for c in policy.manifest.cameras}  # fmt: skip
    np.savez(tmp_path / "o.npz", **arrays, state=rng.normal(size=(2, policy.manifest.dimensions.state)),
             prompt=np.array(["one", "two"]))  # fmt: skip
    words = ["parity", str(exported("smolvla_given", "fp32")), "--openpi", run_serve]
    assert main.main([*words, "--observations", str(tmp_path / "o.npz")]) == 0
    assert "2 observations" in capsys.readouterr().out
    np.savez(tmp_path / "bad.npz", state=np.zeros((2, 6)))
    assert main.main([*words, "--observations", str(tmp_path / "bad.npz")]) == 2
    assert "lacks images/" in capsys.readouterr().err


@pytest.fixture
def compare(policy, remote):
    """Compare with a server's answers; return the document."""
    from omni_ros.parity.openpi import Pairing, compare_remote, synthetic

    def run(url, mapping=None, **options):
        observations = synthetic(policy, 2, 0)
        client = remote(quick(url, identical="accept", remote_timeout_s=9.0))
        pairing = Pairing(policy, mapping)
        client.ask(pairing.message(pairing.shown(observations[0]), TASK), 60)
        return compare_remote(policy, client, pairing, observations, [TASK] * 2, **options)

    return run


def server_of(policy, change=lambda actions, observation: actions, metadata=None):
    """A fake remote that computes with the bundle itself, and then does as told."""
    rng = np.random.default_rng(8)

    async def handle(link, number):
        await link.send(pack(metadata or {}))
        async for message in link:
            value = unpack(message)
            noise = value.get("noise") if "takes_noise" in (metadata or {}) else None
            if noise is None:
                noise = rng.normal(size=policy.head.shape).astype(np.float32)
            result = await asyncio.to_thread(
                policy.infer,
                Observation(value["images"], value["state"]),
                value["prompt"],
                noise=noise,
            )
            await link.send(pack(change(result.actions, value)))

    return handle


def test_a_joint_that_differs_is_named_with_where_it_differs(policy, serve, compare):
    def change(actions, value):
        actions = actions.copy()
        actions[7, 2] += 0.5
        return actions

    document = compare(serve(server_of(policy, change, {"takes_noise": True})).url)
    worst = document["joints"][2]
    assert document["noise"] == "same for both" and document["passed"] is False
    assert (
        worst["passed"] is False
        and worst["row"] == 7
        and worst["largest"] == pytest.approx(0.5, 1e-3)
    )
    assert [joint["passed"] for joint in document["joints"]].count(False) == 1


def test_a_tolerance_can_be_given(policy, serve, compare):
    server = serve(server_of(policy, lambda actions, _: actions + 0.5, {"takes_noise": True}))
    assert compare(server.url, tolerance=0.6)["passed"] is True


def test_a_remote_that_draws_its_own_noise_gets_no_verdict(policy, serve, compare):
    document = compare(serve(server_of(policy)).url)
    assert document["noise"] == "drawn by the remote" and document["passed"] is None
    assert all(joint["spread"] < 5 for joint in document["joints"])


def test_another_policy_with_its_own_noise_stands_out(policy, serve, compare):
    document = compare(serve(server_of(policy, lambda actions, _: actions + 100.0)).url)
    assert all(joint["spread"] > 20 for joint in document["joints"])


def test_through_a_mapping_both_see_the_same_pictures_and_units(policy, serve, compare):
    import math

    names = [f"joint_{i}" for i in range(policy.manifest.dimensions.action)]
    degrees = [{"name": name, "unit": "deg"} for name in names]
    mapping = mapping_from_data(yaml.safe_load(json.dumps({
        "observation": {
            "cameras": [{"camera": camera, "key": ["images", camera], "size": [64, 64]}
                        for camera in policy.cameras],
            "state": [{"key": "state", "joints": degrees}],
        },
        "actions": {"columns": degrees[::-1], "rate_hz": 10},
    })))  # fmt: skip
    rng = []

    async def handle(link, number):
        await link.send(pack({"takes": ["noise"]}))
        async for message in link:
            value = unpack(message)
            rng.append({image.shape for image in value["images"].values()})
            result = await asyncio.to_thread(
                policy.infer, Observation(value["images"], np.radians(value["state"])), value["prompt"],
                **({"noise": value["noise"]} if "noise" in value else {"seed": 0}))  # fmt: skip
            await link.send(pack(result.actions[:, ::-1] * np.float32(180 / math.pi)))

    document = compare(serve(handle).url, mapping, tolerance=0.05)
    assert document["passed"] is True and rng[0] == {(64, 64, 3)}


def test_nobody_there_is_told_in_a_line(exported, capsys, free_port):
    status = main.main(["parity", str(exported("smolvla_given", "fp32")), "--openpi",
                        f"ws://127.0.0.1:{free_port}", "--timeout", "1"])  # fmt: skip
    assert status == 2 and "nobody listens" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--oracle", "x", "b"], ["--recipe", "fp32"]])
def test_a_remote_is_compared_with_a_bundle_and_nothing_else(words, capsys):
    assert main.main(["parity", "--openpi", "ws://127.0.0.1:1", *words]) == 2
    assert "expected BUNDLE" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--timeout nan", "--tolerance nan", "--tolerance -1", "--seed -1"])
def test_a_number_that_is_none_to_compare_by_is_refused(words, capsys):
    """A tolerance that is no number would be compared with and never exceeded."""
    name, value = words.split()
    assert main.main(["parity", "b", "--openpi", "ws://127.0.0.1:1", name, value]) == 2
    assert name in (said := capsys.readouterr().err) and "expected" in said


def test_something_to_compare_with_is_asked_for(capsys):
    assert main.main(["parity", "x.bundle"]) == 2
    assert "neither --oracle nor --openpi" in capsys.readouterr().err


def test_a_bundle_served_through_our_own_client_is_the_bundle(bundle_observation, remote):
    policy, observation = bundle_observation
    server = PolicyServer(ServedBundle(policy), ServerSettings(port=0))
    server.start()
    try:
        client = remote(quick(server.url, remote_timeout_s=9.0))
        sent = {"images": observation.images, "state": observation.state, "prompt": TASK, "seed": 4}
        values = client.ask(sent, 60).actions.values
        until(lambda: server.counters.served == 1)
    finally:
        server.stop()
    assert np.array_equal(values, policy.infer(observation, TASK, seed=4).actions)
