# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Requests and replies on one link: what is sent, awaited, taken and thrown away."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .asking import REQUEST_ID, Expectation, Request
from .connection import Connection, LinkError
from .dialect import Dialect, RemoteFault, Reply, ResetDone, read_reply, settle
from .errors import ReplyError, WireError
from .replies import read_actions, texts
from .settings import RemoteSettings
from .states import Reason, State
from .wire import pack

if TYPE_CHECKING:
    from .client import RemotePolicy

@dataclass
class _Awaited:
    request: Request | None  # None: a reset
    sent: float
    digest: bytes
    overdue: bool = False


class Exchange:
    """Drives one connection until it ends."""

    def __init__(
        self, policy: RemotePolicy, connection: Connection, settings: RemoteSettings,
        expect: Expectation,
    ) -> None:
        self._policy, self._connection = policy, connection
        self._settings, self._expect = settings, expect
        self._awaited: _Awaited | None = None
        self._sending: asyncio.Future[None] | None = None
        self._sent_at = 0.0
        self._pinging: asyncio.Future[None] | None = None
        self._last: tuple[bytes, bytes] = (b"", b"")  # digests of the last reply and its question
        self._quiet_since = time.monotonic()
        self._session = f"omni-{uuid.uuid4().hex[:12]}"
        self._echoes = REQUEST_ID in texts(connection.metadata.get("echoes"))
        #: A good reply came, in time or not.
        self.answered = False
        self._warm = False

    async def run(self, *, warm: bool) -> Reason:
        """Use the link until it ends; return why.

        :param warm: the server has answered before, on a link that it closed because it was idle.
        """
        policy = self._policy
        self._warm = warm
        if warm:
            policy.set_state(State.ACTIVE, Reason("none", "connected again"))
        else:
            policy.set_state(
                State.WARMING, Reason("warming", "connected; the first reply is awaited")
            )
        receiving = asyncio.ensure_future(self._connection.receive())
        waking = asyncio.ensure_future(policy.wake.wait())
        try:
            while True:
                policy.wake.clear()
                self._send_next()
                done, _ = await asyncio.wait(
                    {task for task in (receiving, waking, self._sending, self._pinging) if task},
                    timeout=self._patience(), return_when=asyncio.FIRST_COMPLETED,
                )
                if self._sending is not None and self._sending.done():
                    self._sending.result()  # raises what ended the link
                    self._sending = None
                self._see_pong()
                if waking in done:
                    waking = asyncio.ensure_future(policy.wake.wait())
                if receiving in done:
                    self._take(receiving.result())
                    receiving = asyncio.ensure_future(self._connection.receive())
                self._watch()
        except LinkError as error:
            self._lose(str(error))
            return error.reason
        except asyncio.CancelledError:
            self._lose("the client was stopped")
            raise
        except Exception as error:
            self._lose(f"a fault of the client: {type(error).__name__}: {error}")
            raise
        finally:
            tasks = [t for t in (receiving, waking, self._sending, self._pinging) if t is not None]
            for task in tasks:
                task.cancel()
            # Not each by itself: a cancellation of this task would be taken for that of theirs.
            await asyncio.gather(*tasks, return_exceptions=True)

    def _see_pong(self) -> None:
        if self._pinging is None or not self._pinging.done():
            return
        ping, self._pinging = self._pinging, None
        self._quiet_since = time.monotonic()
        error = ping.exception()
        # While a reply is awaited its own limits count: a server that computes may answer no ping.
        if error is not None and (self._awaited is None or error.reason.code != "keep_alive"):
            raise error

    def _send_next(self) -> None:
        """Send what there is, if nothing is awaited: in a task, as a stuck link takes no more."""
        if self._awaited is not None or self._sending is not None:
            return
        request: Request | None = None
        if self._policy.take_reset() and self._policy.dialect is Dialect.VLLM:
            message = pack({"endpoint": "reset"})
        else:
            request = self._policy.next_request()
            if request is None:
                return
            try:
                message = pack(self._addressed(request))
                if len(message) > self._settings.max_request_bytes:
                    raise WireError(
                        f"an observation of {len(message)} bytes; remote.max_request_bytes is "
                        f"{self._settings.max_request_bytes}: send smaller pictures"
                    )
            except WireError as error:
                self._policy.set_state(State.DEGRADED, Reason("unsendable", str(error)))
                self._policy.end(request, "unsendable", str(error))
                return
            self._policy.counters.sent += 1
        digest = hashlib.sha256(message).digest() if request is not None else b""
        self._awaited = _Awaited(request, time.monotonic(), digest)
        self._policy.counters.bytes_sent += len(message)
        self._sending, self._sent_at = (
            asyncio.ensure_future(self._connection.send(message)), self._awaited.sent)

    def _addressed(self, request: Request) -> dict[str, Any]:
        observation = dict(request.observation)
        if self._echoes:
            observation[REQUEST_ID] = request.id
        if self._connection.metadata.get("needs_session_id") is True:
            observation.setdefault("session_id", self._session)
        return observation

    def _patience(self) -> float:
        """Seconds until something has to be looked at."""
        now, settings = time.monotonic(), self._settings
        if self._awaited is None and self._sending is not None:
            marks = (settings.remote_timeout_s, settings.reply_timeout_s)
            return max(0.001, marks[self._policy.state is State.DEGRADED] + self._sent_at - now)
        if self._awaited is None:
            due = self._quiet_since + settings.ping_interval_s - now
            return settings.ping_timeout_s + 1.0 if self._pinging is not None else max(0.0, due)
        waited = now - self._awaited.sent
        marks = [self._limit()]
        if self._is_warm() and not self._awaited.overdue:
            marks.append(settings.remote_timeout_s)
        return max(0.001, min(marks) - waited)

    def _is_warm(self) -> bool:
        return self._warm or self.answered

    def _limit(self) -> float:
        settings = self._settings
        return settings.reply_timeout_s if self._is_warm() else settings.warm_up_timeout_s

    def _watch(self) -> None:
        """See whether a reply is overdue, or an idle link still there."""
        now, settings = time.monotonic(), self._settings
        awaited = self._awaited
        if awaited is None and self._sending is not None:
            self._watch_sending(now - self._sent_at)
            return
        if awaited is None:
            if now - self._quiet_since >= settings.ping_interval_s and self._pinging is None:
                self._pinging = asyncio.ensure_future(
                    self._connection.ping(settings.ping_timeout_s)
                )
            return
        waited = now - awaited.sent
        if waited >= self._limit():
            text = f"no reply within {self._limit():g} s"
            self._finish("timed_out", text)
            raise LinkError("stalled", f"{text}; connecting anew")
        if self._is_warm() and not awaited.overdue and waited >= settings.remote_timeout_s:
            awaited.overdue = True
            self._policy.set_state(State.DEGRADED, Reason(
                "slow", f"no reply for {settings.remote_timeout_s:g} s (remote_timeout_s)"))

    def _watch_sending(self, taken_s: float) -> None:
        """An answer came before all of the question was taken: nothing can be asked meanwhile."""
        settings, text = self._settings, "the server answered, but does not read on"
        if taken_s >= settings.reply_timeout_s:
            raise LinkError("stalled", f"{text} for {settings.reply_timeout_s:g} s; connecting anew")
        if taken_s >= settings.remote_timeout_s and self._policy.state is not State.DEGRADED:
            self._policy.set_state(State.DEGRADED, Reason(
                "slow", f"{text} for {settings.remote_timeout_s:g} s (remote_timeout_s)"))

    def _take(self, message: bytes | str) -> None:
        """Sort a message: a reply to what is awaited, or something else."""
        policy, now = self._policy, time.monotonic()
        policy.counters.bytes_received += len(message)
        self._quiet_since = now
        raw = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
        digest = hashlib.sha256(raw).digest()
        try:
            answer = read_reply(message, self._connection.limits)
        except ReplyError as error:
            self._refuse(error)
            return
        policy.learn(settle(policy.dialect, answer.dialect))
        if isinstance(answer, RemoteFault):
            self._fail(answer)
        elif self._awaited is None:
            self._stray(digest)
        elif isinstance(answer, ResetDone) or self._awaited.request is None:
            if not isinstance(answer, ResetDone) or self._awaited.request is not None:
                raise LinkError("out_of_step", "an answer of the wrong kind; connecting anew")
            self._awaited = None
        elif self._echoes and answer.extra.get(REQUEST_ID) != self._awaited.request.id:
            policy.counters.foreign += 1
        elif self._repeats(digest):
            policy.counters.duplicate += 1
        else:
            self._last = (digest, self._awaited.digest)
            self._accept(answer, now)

    def _repeats(self, digest: bytes) -> bool:
        """Whether a reply is the last one over again, though something else was asked."""
        reply, question = self._last
        return (not self._echoes and self._settings.identical == "drop" and digest == reply
                and self._awaited.digest != question)  # fmt: skip

    def _stray(self, digest: bytes) -> None:
        policy = self._policy
        if digest == self._last[0]:
            policy.counters.duplicate += 1
            return
        policy.counters.foreign += 1
        if not self._echoes:
            # Which answer belongs to which question cannot be told any more.
            raise LinkError("out_of_step", "an answer that nobody asked for; connecting anew")

    def _accept(self, reply: Reply, now: float) -> None:
        policy, awaited, expect = self._policy, self._awaited, self._expect
        try:
            actions = read_actions(
                reply, self._connection.metadata, keys=expect.keys, horizon=expect.horizon,
                width=expect.width,
            )
        except ReplyError as error:
            self._refuse(error)
            return
        was_warm = self._is_warm()
        self.answered = True
        in_time = now - awaited.sent <= self._settings.remote_timeout_s
        if in_time or not was_warm:
            policy.set_state(State.ACTIVE, Reason("none", "replies come in time"))
        elif policy.state is not State.DEGRADED:
            policy.set_state(
                State.DEGRADED, Reason("slow", f"a reply took {now - awaited.sent:.2f} s")
            )
        if now > awaited.request.deadline:
            self._finish("late", f"its reply came {now - awaited.request.deadline:.3f} s too late")
            return
        self._finish("good", "", actions=actions, extra=reply.extra, dialect=policy.dialect)

    def _refuse(self, error: ReplyError) -> None:
        """Throw a reply away. It has answered what was awaited, if anything was."""
        if self._awaited is None:
            self._policy.counters.foreign += 1
            raise LinkError("out_of_step", f"an answer that nobody asked for: {error}")
        # The state first: who sees the outcome sees the state that it led to.
        self._policy.set_state(State.DEGRADED, Reason(error.code, str(error)))
        self._finish(error.code, str(error))

    def _fail(self, fault: RemoteFault) -> None:
        reason = Reason("remote_error", f"the server says: {fault.text}")
        self._policy.set_state(State.DEGRADED, reason)
        self._finish("remote_error", reason.text)
        if fault.closes:
            # Whatever would be asked on this link now would be lost.
            raise LinkError(reason.code, reason.text)

    def _lose(self, why: str) -> None:
        self._finish("lost", why)

    def _finish(self, code: str, text: str, **reply: Any) -> None:
        awaited, self._awaited = self._awaited, None
        if awaited is not None and awaited.request is not None:
            self._policy.end(awaited.request, code, text, **reply)
