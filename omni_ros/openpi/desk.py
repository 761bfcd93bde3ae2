# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is at a server's policy: one inference at a time, first come first served.

A client that waits is told so by the time it took, or to come later; nobody starves silently.
"""

from __future__ import annotations

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .dialect import Dialect
from .errors import OpenPIError
from .server_settings import ServerSettings
from .serving import ServedPolicy, ServedRequest


class Busy(OpenPIError):
    """Another inference is running, and waiting is not allowed or took too long."""


class Gone(Exception):
    """The client was told what is wrong, and let go; or the server ends."""


@dataclass(eq=False)
class Client:
    """One connection. :param previous_ms: from its last request to the reply, if there was one."""

    socket: Any
    dialect: Dialect
    sessions: set[str] = field(default_factory=set)
    previous_ms: float | None = None


class Desk:
    """For one event loop.

    :ivar waiting: how many requests wait for their turn.
    :ivar closed: whoever's turn comes now is let go.
    """

    def __init__(self, policy: ServedPolicy, settings: ServerSettings) -> None:
        self._policy, self._settings = policy, settings
        self.waiting = 0
        self._turn = asyncio.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="openpi-infer")
        self.closed = False

    def close(self) -> None:
        """Begin nothing any more; an inference that runs goes on to its end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def infer(self, client: Client, request: ServedRequest, started: float
                    ) -> dict[str, Any]:
        """Return the reply's map.

        :param started: `time.perf_counter()` when the request came.
        :raises Busy: it is not to wait, or has waited long enough. :raises Gone: the server ends.
        :raises FloatingPointError: the policy's actions are not finite.
        """
        settings = self._settings
        if self._turn.locked() and (
            settings.busy == "refuse" or self.waiting >= settings.max_waiting
        ):
            raise Busy(f"the policy is busy and {self.waiting} requests wait; ask again later")
        self.waiting += 1
        try:
            await asyncio.wait_for(self._turn.acquire(), settings.wait_timeout_s)
        except asyncio.TimeoutError:
            raise Busy(
                f"the policy was busy for {settings.wait_timeout_s:g} s; ask again"
            ) from None
        finally:
            self.waiting -= 1
        try:
            if self.closed:
                raise Gone
            began = time.perf_counter()
            if request.session not in client.sessions:
                if len(client.sessions) >= 1024:
                    client.sessions.clear()
                client.sessions.add(request.session)
                await self._work_on(self._policy.reset, request.session)
            draws = "seed" in self._policy.takes
            if draws and request.seed is None and request.noise is None:
                request = replace(request, seed=random.SystemRandom().randrange(2**31 - 1))
            result = await self._work_on(self._policy.infer, request)
        finally:
            self._turn.release()
        actions = np.asarray(result.actions, np.float32)
        if not np.isfinite(actions).all():
            raise FloatingPointError("the actions are not finite")
        timing = {
            "infer_ms": 1e3 * (time.perf_counter() - began),
            "wait_ms": 1e3 * (began - started),
        }
        if client.previous_ms is not None:
            timing["prev_total_ms"] = client.previous_ms
        return {"actions": actions, "server_timing": timing, **result.extra}

    async def reset(self, client: Client) -> None:
        """Begin the client's sessions anew."""
        client.sessions.clear()
        async with self._turn:
            await self._work_on(self._policy.reset, "default")

    async def _work_on(self, function: Any, argument: Any) -> Any:
        """Call the policy in its thread; there is one, so calls never overlap."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, argument)
