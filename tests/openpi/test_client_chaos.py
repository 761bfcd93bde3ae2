# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A server that does whatever it likes: the client lives, books everything once, and comes back."""

from __future__ import annotations

import asyncio
import random
import time

import numpy as np
import pytest

from omni_ros.openpi.states import State
from omni_ros.openpi.wire import pack

from .conftest import quick, reply, until

BOOKED = ("good", "late", "timed_out", "lost", "replaced", "unsendable", "remote_error", "malformed",
          "shape", "non_finite", "names")  # fmt: skip


def mad(rng: random.Random, until_calm):
    """Return a handler that answers at random, and well from some connection on."""

    async def handle(link, number):
        if not until_calm.is_set():
            if rng.random() < 0.15:
                await link.send(rng.choice(["text", b"\xc1", b"", pack([1])]))
                return
            if rng.random() < 0.1:
                link.transport.abort()
                return
        await link.send(pack({}))
        async for _ in link:
            if until_calm.is_set():
                await link.send(reply())
                continue
            act = rng.randrange(12)
            if act == 0:
                await link.close(rng.choice([1000, 1001, 1008, 1009, 1011, 1012, 1013, 3000]))
            elif act == 1:
                link.transport.abort()
            elif act == 2:
                await link.send(bytes(rng.randrange(256) for _ in range(rng.randrange(200))))
            elif act == 3:
                await link.send(pack(np.full((4, 3), np.nan)))
            elif act == 4:
                await asyncio.sleep(0.2)
            elif act == 5:
                for _ in range(3):
                    await link.send(reply())
            elif act == 6:
                await link.send(pack({"type": "error", "message": "\x00\x1b[2J" * 50}))
            elif act == 7:
                await link.send("Traceback\nKeyError: 1")
            elif act == 8:
                await link.send(pack({"actions": np.zeros((2, 2, 2))}))
            elif act == 9:
                await link.send(pack({"status": "reset successful"}))
            else:
                await link.send(reply())

    return handle


@pytest.mark.parametrize("seed", range(6))
def test_a_mad_server_neither_ends_the_client_nor_its_bookkeeping(serve, remote, seed):
    rng, calm = random.Random(seed), asyncio.Event()
    server = serve(mad(rng, calm))
    policy = remote(quick(server.url, remote_timeout_s=0.05, reply_timeout_s=0.1, warm_up_timeout_s=0.1,
                          backoff_s=0.01, backoff_max_s=0.02))  # fmt: skip
    reasons = set()
    for number in range(250):
        observation = {"n": number} if number % 17 else {"n": object()}
        policy.request(observation, deadline=time.monotonic() + rng.choice([-1.0, 0.02, 5.0]))
        time.sleep(0.004)
        reasons.add(policy.status().reason.code)
    server.loop.call_soon_threadsafe(calm.set)
    until(lambda: sum(policy.status().counters[code] for code in BOOKED) == 250)
    assert "internal" not in reasons and policy.status().counters["requested"] == 250
    end = time.monotonic() + 30
    while policy.state is not State.ACTIVE and time.monotonic() < end:
        policy.request({"n": rng.random()}, deadline=time.monotonic() + 5)
        time.sleep(0.05)
    assert policy.state is State.ACTIVE
    assert all(ord(c) >= 32 for reason in [policy.status().reason.text] for c in reason)
