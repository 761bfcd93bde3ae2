# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy that is computed by somebody else, asynchronously: the nodes of a graph, say.

    policy = GraphPolicy(cameras=..., state_names=..., metadata=..., publish=publish, timeout_s=2.0)
    PolicyServer(policy).start()
    policy.deliver(stamp_ns, rows)      # from a subscription, whenever a chunk comes

A chunk is known by the stamp of its observation, so one that comes late answers nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .serving import ServedReply, ServedRequest

#: Stamps run ahead of a clock that was set back by no more than this: those who see them allow it.
AHEAD_NS = 25_000_000


class GraphPolicy:
    """A `serving.ServedPolicy`; `deliver` and `refuse` may be called from any thread."""

    def __init__(
        self, *, cameras: Sequence[str], state_names: Sequence[str], metadata: Mapping[str, Any],
        publish: Callable[[ServedRequest, int], None], timeout_s: float,
        clock_ns: Callable[[], int] = time.time_ns, on_reset: Callable[[str], None] | None = None,
        takes: Sequence[str] = (),
    ) -> None:
        """
        :param publish: sends a request's observation on its way, under the stamp that it is given;
            must return at once; called in the server's inference thread.
        :param timeout_s: how long to wait for its chunk.
        :param clock_ns: gives the stamps; two requests in a row never get the same one. It may be
            set back.
        """
        self.cameras, self.state_names = tuple(cameras), tuple(state_names)
        self.metadata, self.takes = dict(metadata), tuple(takes)
        self._publish, self._timeout_s, self._clock_ns = publish, timeout_s, clock_ns
        self._on_reset = on_reset
        self._arrival = threading.Condition()
        self._awaited: int | None = None
        self._last_stamp = 0
        self._reply: ServedReply | None = None
        self._refusal: str | None = None
        self._ended: str | None = None

    @property
    def last_stamp_ns(self) -> int:
        """Return the stamp of the last request."""
        return self._last_stamp

    def infer(self, request: ServedRequest) -> ServedReply:
        """Publish and wait.

        :raises RuntimeError: no chunk in time, or `refuse` was called; the text goes to the client.
        """
        with self._arrival:
            if self._ended is not None:
                raise RuntimeError(self._ended)
            stamp = self._clock_ns()
            if 0 <= self._last_stamp - stamp < AHEAD_NS:
                stamp = self._last_stamp + 1
            self._last_stamp = stamp
            self._awaited, self._reply, self._refusal = stamp, None, None
        try:
            self._publish(request, stamp)
            with self._arrival:
                self._arrival.wait_for(lambda: self._reply or self._refusal, self._timeout_s)
                reply, refusal = self._reply, self._refusal
        finally:
            with self._arrival:
                self._awaited = None
        if refusal is not None:
            raise RuntimeError(refusal)
        if reply is None:
            raise RuntimeError(f"no chunk came within {self._timeout_s:g} s; is the policy active?")
        return reply

    def deliver(self, stamp_ns: int, actions: np.ndarray, **extra: Any) -> bool:
        """Take a chunk; return whether somebody waits for it.

        :param stamp_ns: of its observation. :param actions: [rows, columns], copied.
        :param extra: goes into replies that are maps.
        """
        with self._arrival:
            if stamp_ns != self._awaited:
                return False
            self._reply = ServedReply(np.array(actions, np.float32), extra)
            self._arrival.notify_all()
            return True

    def end(self, text: str) -> None:
        """Let whoever waits, and whoever asks from now on, know that there will be no chunk."""
        with self._arrival:
            self._ended = text
        self.refuse(text)

    def refuse(self, text: str) -> None:
        """Let whoever waits know that there will be no chunk: the policy sees nothing, say."""
        with self._arrival:
            if self._awaited is not None:
                self._refusal = text
                self._arrival.notify_all()

    def reset(self, session: str) -> None:
        """An episode begins anew."""
        if self._on_reset is not None:
            self._on_reset(session)
