# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy behind an OpenPI websocket, in both dialects.

    server = PolicyServer(policy, ServerSettings(port=8000))
    server.start()          # in a thread of its own; or: await server.run()
    ...
    server.stop()

One inference at a time, in a thread beside the event loop: pings, health and refusals go on while
it runs. What a client sends is checked before the policy sees it, and what is wrong is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

from ..requirements import require
from .dialect import VLLM_PATH, Dialect
from .errors import RequestError, WireError
from . import door
from .asking import REQUEST_ID
from .desk import Busy, Client, Desk, Gone
from .server_settings import ServerSettings
from .serving import ServedPolicy, read_request
from .sockets import library
from .wire import Limits, pack, unpack

log = logging.getLogger(__name__)
#: websockets logs a traceback for each stranger that knocks; here they are counted instead.
_strangers = logging.getLogger(f"{__name__}.strangers")
_strangers.addHandler(logging.NullHandler())
_strangers.propagate = False


#: A client that takes nothing for so long is gone: it holds a place that others wait for.
SEND_TIMEOUT_S = 10.0
#: Longest wait for the clients' goodbyes when the server ends, seconds.
PART_S = 2.0


@dataclass
class ServerCounters:
    """Since the start. `refused`: turned away at the door; `busy`: told to come later;
    `invalid`: requests that did not fit; `failed`: the policy's own errors."""

    accepted: int = 0
    refused: int = 0
    served: int = 0
    busy: int = 0
    invalid: int = 0
    failed: int = 0
    resets: int = 0
    left: int = 0


class PolicyServer:
    """Serves one policy to several clients."""

    def __init__(self, policy: ServedPolicy, settings: ServerSettings | None = None) -> None:
        """:raises MissingDependency: `websockets` or `msgpack` is not there.
        :raises SettingsError: token or certificate cannot be read."""
        self.settings = settings or ServerSettings()
        self.counters = ServerCounters()
        self._library = library()
        require("msgpack", "to speak OpenPI")
        self._policy = policy
        self._token = self.settings.token()
        self._context = self.settings.context()
        self._limits = Limits(bytes=self.settings.max_request_bytes)
        self._metadata = {
            dialect: pack({"takes": list(policy.takes), **policy.metadata,
                           "dialect": dialect.value, "echoes": echoes})
            # A bare array has no room for a number.
            for dialect, echoes in ((Dialect.VLLM, []), (Dialect.OPENPI, [REQUEST_ID]))
        }
        self._clients: set[Client] = set()
        self._desk: Desk | None = None
        self._ended: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._bound = threading.Event()
        self._failure: BaseException | None = None
        #: (host, port) once it listens.
        self.address: tuple[str, int] | None = None

    @property
    def url(self) -> str:
        """Where openpi-client reaches it; vLLM-style clients add their path."""
        scheme = "ws" if self._context is None else "wss"
        host, port = self.address or (self.settings.host, self.settings.port)
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return self._desk.waiting if self._desk is not None else 0

    def start(self) -> None:
        """Serve in a thread; returns once it listens. :raises OSError: the port cannot be had."""
        self._thread = threading.Thread(target=self._work, name="openpi-server", daemon=True)
        self._thread.start()
        self._bound.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self, timeout_s: float = 30.0) -> None:
        """Close every client (1012) and end. An inference that runs is waited for, so that the
        policy may be closed afterwards; what waits for its turn is dropped."""
        self._end()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def wait(self) -> None:
        """Return when the server has ended; signals get through."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)

    def _end(self) -> None:
        loop, ended = self._loop, self._ended
        if loop is not None and ended is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

    def _work(self) -> None:
        try:
            asyncio.run(self.run())
        except BaseException as error:
            self._failure = error
            if self._bound.is_set():
                log.exception("the OpenPI server has ended")
        finally:
            self._bound.set()

    async def run(self) -> None:
        """Serve until `stop` is called or the task is cancelled. :raises OSError: no port."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._desk = Desk(self._policy, self.settings)
        settings = self.settings
        try:
            server = await self._library.server.serve(
                self._handle, settings.host, settings.port, ssl=self._context, compression=None,
                max_size=settings.max_request_bytes, max_queue=2, origins=[None],
                process_request=self._admit, ping_interval=settings.ping_interval_s,
                ping_timeout=settings.ping_interval_s, close_timeout=1.0, open_timeout=10.0,
                server_header="omni_ros", logger=_strangers,
            )
            try:
                self.address = next(iter(server.sockets)).getsockname()[:2]
                self._bound.set()
                await self._ended.wait()
            finally:
                self._desk.closed = True
                await self._part()
                server.close()
                await server.wait_closed()
        finally:
            self._desk.close()
            self._loop = None

    async def _part(self) -> None:
        """Say 1012 to everybody; who does not read is not waited for."""
        sockets = [client.socket for client in self._clients]
        closing = [asyncio.ensure_future(each.close(1012, "the server ends")) for each in sockets]
        if closing:
            await asyncio.wait(closing, timeout=PART_S)
        for each in sockets:
            each.transport.abort()
        await asyncio.gather(*closing, return_exceptions=True)

    def _admit(self, connection: Any, request: Any) -> Any:
        response = door.answer(
            connection, request, self.settings, self._token, len(self._clients)
        )
        self.counters.refused += response is not None and response.status_code != 200
        return response

    async def _handle(self, socket: Any) -> None:
        path = door.plain_path(socket.request.path)
        dialect = Dialect.OPENPI
        if self.settings.dialect == "vllm" or (
            self.settings.dialect == "auto" and path == VLLM_PATH
        ):
            dialect = Dialect.VLLM
        client = Client(socket, dialect)
        # Between two upgrades at once only one may have got the last place.
        if len(self._clients) >= self.settings.max_clients:
            self.counters.refused += 1
            await socket.close(1013, f"{self.settings.max_clients} clients is the limit")
            return
        self._clients.add(client)
        self.counters.accepted += 1
        try:
            await _send(socket, self._metadata[dialect])
            while True:
                message = await self._next(client)
                if message is None:
                    return
                await self._answer(client, message)
        except (Gone, self._library.exceptions.ConnectionClosed):
            self.counters.left += 1
        finally:
            self._clients.discard(client)

    async def _next(self, client: Client) -> bytes | None:
        idle = self.settings.idle_timeout_s or None
        while True:
            try:
                message = await asyncio.wait_for(client.socket.recv(), idle)
            except asyncio.TimeoutError:
                await client.socket.close(1000, f"nothing was asked for {idle:g} s")
                return None
            if isinstance(message, bytes) and message:
                return message
            # vLLM-Omni ignores these, and its client hangs; being told is better.
            await self._complain(client, "an empty or text message; expected a binary msgpack map")

    async def _answer(self, client: Client, message: bytes) -> None:
        started = time.perf_counter()
        try:
            value = unpack(message, self._limits)
            endpoint = value.get("endpoint") if isinstance(value, dict) else None
            if isinstance(endpoint, str) and endpoint == "reset":
                await self._reset(client)
                return
            request = read_request(value, self._policy)
            number = value.get(REQUEST_ID)
            reply = await self._desk.infer(client, request, started)
        except Gone:
            raise
        except Busy as error:
            self.counters.busy += 1
            await self._complain(client, str(error), close=1013)
            return
        except (WireError, RequestError) as error:
            self.counters.invalid += 1
            await self._complain(client, str(error))
            return
        except Exception as error:
            self.counters.failed += 1
            log.exception("the policy failed")
            await self._complain(client, f"the policy failed: {type(error).__name__}: {error}")
            return
        if client.dialect is Dialect.VLLM:
            await _send(client.socket, pack(reply["actions"]))
        else:
            if type(number) is int:
                reply[REQUEST_ID] = number
            await _send(client.socket, pack(reply))
        self.counters.served += 1
        client.previous_ms = 1e3 * (time.perf_counter() - started)

    async def _reset(self, client: Client) -> None:
        self.counters.resets += 1
        await self._desk.reset(client)
        await _send(client.socket, pack({"status": "reset successful"}))

    async def _complain(self, client: Client, text: str, close: int = 1011) -> None:
        """Say what is wrong as the client's dialect has it."""
        if client.dialect is Dialect.VLLM:
            await _send(client.socket, pack({"type": "error", "message": text}))
            return
        await _send(client.socket, text)
        await client.socket.close(close, "what was wrong is in the previous frame")
        raise Gone


async def _send(socket: Any, message: bytes | str) -> None:
    """:raises Gone: the client reads nothing any more; the connection is ended."""
    try:
        await asyncio.wait_for(socket.send(message), SEND_TIMEOUT_S)
    except asyncio.TimeoutError:
        socket.transport.abort()
        raise Gone from None
