# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A remote policy that is asked and never waited for.

    policy = RemotePolicy(RemoteSettings("ws://gpu:8000"))
    policy.start()
    policy.request(observation, deadline=time.monotonic() + 0.5, tag=stamp)   # returns at once
    for outcome in policy.outcomes(): ...                                     # what became of it

A thread of its own connects, keeps the link alive, and makes it anew when it is lost. At most one
request is on its way, because the protocol numbers nothing: a reply belongs to the request that is
awaited, or to none. A newer request takes the place of one that has not been sent yet.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ..requirements import require
from .asking import Expectation, Outcome, Request
from .connection import Connection, LinkError
from .dialect import Dialect
from .linking import keep_linked
from .settings import RemoteSettings
from .sockets import library
from .states import Counters, LinkStatus, Reason, State

#: Outcomes kept for who does not fetch them.
KEPT = 64


class RemotePolicy:
    """The link to one server. Every method may be called from any thread and returns at once,
    but for `stop`, `ask` and `wait_connected`."""

    def __init__(
        self, settings: RemoteSettings, *, expect: Expectation | None = None,
        check_metadata: Callable[[Mapping[str, Any]], str | None] | None = None,
        on_event: Callable[[], None] | None = None, jitter: Callable[[], float] = random.random,
    ) -> None:
        """
        :param expect: what a reply has to have.
        :param check_metadata: says what in them does not fit, None if all does; called in the
            client's thread at each connect. While they do not fit nothing is asked.
        :param on_event: called in the client's thread when the state changed or an outcome is
            there; must return at once. :param jitter: 0 .. 1, spreads the tries to connect.
        """
        self.settings = settings
        self.expect = expect or Expectation()
        self.counters = Counters()
        self.check_metadata = check_metadata
        self._on_event = on_event
        self.jitter = jitter
        self._lock = threading.Condition()
        self._state, self._reason = State.OFF, Reason("off", "not started")
        self._since = time.monotonic()
        self.next_try = 0.0
        self._mailbox: Request | None = None
        self._reset_wanted = False
        self._awaited: int | None = None
        self._last_id = 0
        self._outcomes: deque[Outcome] = deque(maxlen=KEPT)
        self._asked: dict[int, Outcome | None] = {}
        self._latencies: deque[float] = deque(maxlen=100)
        self._url = settings.url
        self._metadata: dict[str, Any] | None = None
        self._dialect = Dialect.UNKNOWN
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self.wake: asyncio.Event | None = None
        self._ended = threading.Event()  # of the thread that runs; each has its own

    def start(self) -> None:
        """Begin to connect. Does nothing if it is started.

        :raises MissingDependency: `websockets` or `msgpack` is not there.
        """
        library()
        require("msgpack", "to speak OpenPI")
        with self._lock:
            if self._thread is not None:
                return
            self._ended = threading.Event()
            self._set_locked(State.CONNECTING, Reason("connecting", f"connecting to {self._url}"))
            self._thread = threading.Thread(
                target=self._work, args=(self._ended,), name="openpi-client", daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float = 3.0) -> None:
        """End the link and the thread; what was asked and not answered is lost."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._ended.set()
        self._notify_loop(cancel=True)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)
        with self._lock:
            request, self._mailbox = self._mailbox, None
        if request is not None:
            self.end(request, "lost", "the client was stopped")
        self.set_state(State.OFF, Reason("off", "stopped"))

    def request(self, observation: Mapping[str, Any], *, deadline: float, tag: Any = None) -> int:
        """Ask for a chunk; return the id that its outcome will have.

        :param observation: must not be changed afterwards.
        :param deadline: `time.monotonic()` after which a reply is of no use.
        :param tag: comes back with the outcome, say the observation's stamp.
        :raises RuntimeError: not started. :raises TypeError: the observation is no mapping.
        """
        if not isinstance(observation, Mapping):
            raise TypeError(f"the observation is a {type(observation).__name__}; expected a mapping")
        with self._lock:
            if self._thread is None:
                raise RuntimeError(
                    "the remote policy is not started; expected start() before request()"
                )
            self._last_id += 1
            request = Request(self._last_id, observation, deadline, tag, time.monotonic())
            before, self._mailbox = self._mailbox, request
            self.counters.requested += 1
        if before is not None:
            self.end(before, "replaced", "a newer observation took its place")
        self._notify_loop()
        return request.id

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Outcome:
        """Ask and wait: for tools, never for a node.

        :raises LinkError: no good reply in time; the reason says what came instead.
        """
        end = time.monotonic() + timeout_s
        with self._lock:
            number = self.request(observation, deadline=end)
            self._asked[number] = None
            self._lock.wait_for(
                lambda: self._asked[number] is not None, max(0.0, end - time.monotonic()) + 0.05)
            outcome = self._asked.pop(number)
            reason = self._reason
        if outcome is None:
            raise LinkError(reason.code, f"no reply within {timeout_s:g} s; {reason}")
        if outcome.code != "good":
            raise LinkError(outcome.code, outcome.text)
        return outcome

    def wait_connected(self, timeout_s: float) -> None:
        """Wait until the server has sent its metadata: for tools, never for a node.

        :raises LinkError: it has not, in time, or they do not fit.
        """
        with self._lock:
            self._lock.wait_for(lambda: self._state in (State.WARMING, State.ACTIVE)
                                or self._reason.code == "mapping", timeout_s)  # fmt: skip
            state, reason = self._state, self._reason
        if state not in (State.WARMING, State.ACTIVE):
            raise LinkError(reason.code, reason.text)

    def reset(self) -> bool:
        """Have the server forget the episode; return whether its dialect has that."""
        with self._lock:
            self._reset_wanted = self._dialect is Dialect.VLLM
            wanted = self._reset_wanted
        self._notify_loop()
        return wanted

    def outcomes(self) -> list[Outcome]:
        """Return what has ended since the last call, oldest first; the last 64 are kept."""
        with self._lock:
            ended = list(self._outcomes)
            self._outcomes.clear()
        return ended

    def status(self) -> LinkStatus:
        with self._lock:
            ordered = sorted(self._latencies) or [None]
            last = len(ordered) - 1
            return LinkStatus(
                state=self._state, reason=self._reason, since=self._since, url=self._url,
                dialect=self._dialect, waiting=self._awaited is not None,
                next_try_s=max(0.0, self.next_try - time.monotonic()) if self.next_try else 0.0,
                latency_p50=ordered[last // 2], latency_p95=ordered[int(0.95 * last)],
                counters=self.counters.data(), metadata=self._metadata,
            )

    # What follows is for the client's own thread: `linking` and `exchange`.

    def set_state(self, state: State, reason: Reason) -> None:
        with self._lock:
            changed = self._set_locked(state, reason)
        if changed and self._on_event is not None:
            self._on_event()

    def _set_locked(self, state: State, reason: Reason) -> bool:
        changed = (state, reason) != (self._state, self._reason)
        if state is not self._state:
            self._since = time.monotonic()
        self._state, self._reason = state, reason
        self._lock.notify_all()
        return changed

    @property
    def state(self) -> State:
        return self._state

    def end(self, request: Request, code: str, text: str, **reply: Any) -> None:
        """Book what became of a request."""
        outcome = Outcome(
            request.id, request.tag, code, text, request.asked, time.monotonic(), **reply
        )
        with self._lock:
            setattr(self.counters, code, getattr(self.counters, code) + 1)
            self._awaited = None if self._awaited == request.id else self._awaited
            if request.id in self._asked:
                self._asked[request.id] = outcome
            else:
                self._outcomes.append(outcome)
            if code == "good":
                self._latencies.append(outcome.latency_s)
            self._lock.notify_all()
        if self._on_event is not None:
            self._on_event()

    def next_request(self) -> Request | None:
        """Take the newest request out, unless its time has passed already."""
        with self._lock:
            request, self._mailbox = self._mailbox, None
            if request is not None and time.monotonic() <= request.deadline:
                self._awaited = request.id
                return request
        if request is not None:
            self.end(request, "timed_out", "its time passed before it could be sent")
        return None

    def take_reset(self) -> bool:
        with self._lock:
            wanted, self._reset_wanted = self._reset_wanted, False
        return wanted

    def meet(self, connection: Connection) -> None:
        """Take note of who is at the other end."""
        with self._lock:
            self._url, self._metadata = connection.url, connection.metadata
            self._dialect = connection.dialect

    def learn(self, dialect: Dialect) -> None:
        with self._lock:
            self._dialect = dialect

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def _notify_loop(self, cancel: bool = False) -> None:
        loop, main, wake = self._loop, self._main, self.wake
        if loop is None or main is None or wake is None:
            return
        try:
            loop.call_soon_threadsafe(main.cancel if cancel else wake.set)
        except RuntimeError:  # closed in the meantime
            pass

    def _work(self, ended: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        try:
            self.wake = asyncio.Event()
            self._main = loop.create_task(keep_linked(self, ended))
            self._loop = loop
            if ended.is_set():
                self._main.cancel()
            try:
                loop.run_until_complete(self._main)
            except asyncio.CancelledError:
                pass
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            if self._loop is loop:  # not that of a thread started since
                self._loop = self._main = self.wake = None
            loop.close()

    def drop_stale(self) -> None:
        """Give up on a request whose time passed while there was no link."""
        with self._lock:
            request = self._mailbox
            if request is None or time.monotonic() <= request.deadline:
                return
            self._mailbox = None
        self.end(request, "timed_out", "its time passed before it could be sent")
