# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One websocket to an OpenPI server, from the name to the metadata, and why it failed or ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any

from .dialect import Dialect, RemoteFault, evidence, read_metadata
from .errors import OpenPIError, ReplyError, SettingsError, brief
from .settings import RemoteSettings
from .sockets import client_context, library, open_socket
from .states import Reason
from .wire import Limits

CLOSE_TIMEOUT_S = 1.0


class LinkError(OpenPIError):
    """No connection, or none any more. :ivar reason: why."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(code, text)


@dataclass
class Connection:
    """A link whose metadata have arrived. For one task at a time."""

    socket: Any
    url: str
    metadata: dict[str, Any]
    dialect: Dialect
    limits: Limits = field(repr=False)
    #: The metadata as they came: what is in them can be compared in no other way.
    said: bytes = field(repr=False, default=b"")

    async def send(self, message: bytes) -> None:
        """:raises LinkError: the link has ended."""
        try:
            await self.socket.send(message)
        except library().exceptions.ConnectionClosed as error:
            raise closed(error) from error

    async def receive(self) -> bytes | str:
        """Wait for a message. :raises LinkError: the link has ended."""
        try:
            return await self.socket.recv()
        except library().exceptions.ConnectionClosed as error:
            raise closed(error) from error

    async def ping(self, timeout_s: float) -> None:
        """:raises LinkError: no answer in time, or the link has ended."""
        async def there_and_back() -> None:
            # A peer that reads nothing holds the ping itself up.
            await (await self.socket.ping())

        try:
            await asyncio.wait_for(there_and_back(), timeout_s)
        except library().exceptions.ConnectionClosed as error:
            raise closed(error) from error
        except asyncio.TimeoutError:
            raise LinkError(
                "keep_alive", f"an idle link did not answer a ping within {timeout_s:g} s"
            ) from None

    async def close(self) -> None:
        """End the link; a peer that does not answer is waited for briefly."""
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.socket.close(), CLOSE_TIMEOUT_S)
        self.socket.transport.abort()


async def open_connection(settings: RemoteSettings) -> Connection:
    """Connect, upgrade and read the metadata; paths and ways to send a token are tried in turn.

    :raises LinkError: with the reason; of the last try.
    :raises MissingDependency: `websockets` is not there.
    """
    library()
    try:
        token = settings.read_token()
    except SettingsError as error:
        raise LinkError("settings", str(error)) from error
    schemes = {"bearer": ("Bearer",), "api-key": ("Api-Key",)}.get(
        settings.auth, ("Bearer", "Api-Key")
    )
    headers = [None] if token is None else [f"{scheme} {token}" for scheme in schemes]
    failure: LinkError | None = None
    for url in settings.urls():
        for header in headers:
            try:
                return await _open(settings, url, header)
            except LinkError as error:
                # What a first failure says is the better hint if another way fails too.
                failure = failure or error
                if error.reason.code != "auth":
                    break
        # Only a server that answers "not here" is worth another path.
        if failure.reason.code not in ("path", "auth"):
            break
    raise failure


async def _open(settings: RemoteSettings, url: str, authorization: str | None) -> Connection:
    stage = ["connect"]
    try:
        upgraded = await asyncio.wait_for(
            _upgrade(settings, url, authorization, stage), settings.connect_timeout_s
        )
    except asyncio.TimeoutError:
        raise LinkError("connect_timeout", _timeout_text(settings, stage[0])) from None
    except LinkError:
        raise
    except Exception as error:
        raise _refusal(error, settings, url) from error
    limits = Limits(bytes=settings.max_reply_bytes)
    try:
        message = await asyncio.wait_for(upgraded.recv(), settings.handshake_timeout_s)
        metadata = read_metadata(message, limits)
        if isinstance(metadata, RemoteFault):
            code = f" ({metadata.code})" if metadata.code else ""
            raise LinkError("no_policy", f"{settings.host} serves no policy: {metadata.text}{code}")
    except asyncio.TimeoutError:
        await _discard(upgraded)
        raise LinkError("handshake_timeout", f"no metadata within {settings.handshake_timeout_s:g} "
                        f"s of connecting to {url}; is this an OpenPI server?") from None  # fmt: skip
    except library().exceptions.ConnectionClosed as error:
        raise closed(error) from error
    except ReplyError as error:
        await _discard(upgraded)
        raise LinkError("not_openpi", f"{url}: {error}") from error
    except BaseException:
        await _discard(upgraded)
        raise
    server = upgraded.response.headers.get("Server", "") if upgraded.response else ""
    known = Dialect.UNKNOWN if settings.dialect == "auto" else Dialect(settings.dialect)
    if known is Dialect.UNKNOWN:
        known = evidence(path=upgraded.request.path, server=server, metadata=metadata)
    return Connection(upgraded, url, metadata, known, limits, message)


async def _upgrade(
    settings: RemoteSettings, url: str, authorization: str | None, stage: list[str]
) -> Any:
    options: dict[str, Any] = {}
    secure = settings.parts.scheme == "wss"
    if secure:
        options["ssl"] = client_context(settings.ca_file)
    if settings.proxy:
        options["proxy"] = True
    else:
        options["proxy"] = None
        options["sock"] = await open_socket(
            settings.host, settings.port, settings.connect_timeout_s)
        if secure:
            options["server_hostname"] = settings.host
    stage[0] = "upgrade"
    try:
        return await library().client.connect(
            url, compression=None, max_size=settings.max_reply_bytes, ping_interval=None,
            open_timeout=None, close_timeout=CLOSE_TIMEOUT_S, max_queue=8,
            additional_headers={"Authorization": authorization} if authorization else None,
            user_agent_header="omni_ros", **options,
        )
    except BaseException:
        if options.get("sock") is not None:
            options["sock"].close()
        raise


def closed(error: Any) -> LinkError:
    """Return why a link ended, from websockets' ConnectionClosed."""
    received, sent = error.rcvd, error.sent
    if received is None and sent is not None and sent.code == 1009:
        return LinkError("too_big", f"the server sent more than is taken: {brief(sent.reason, 120)};"
                         " raise remote.max_reply_bytes if that was meant")  # fmt: skip
    if received is None:
        cause = error.__cause__
        text = f" ({cause})" if cause is not None and str(cause) else ""
        return LinkError("broken", f"the link broke without a close{text}")
    said = f": {brief(received.reason, 120)}" if received.reason else ""
    code = {1000: "closed", 1001: "restart", 1006: "broken", 1008: "policy_violation",
            1009: "too_big", 1011: "server_error", 1012: "restart", 1013: "full"}.get(
                received.code, "broken")  # fmt: skip
    words = {
        "closed": "the server closed the link in good order",
        "restart": "the server is going away or restarts",
        "policy_violation": "the server closed the link by its rules",
        "too_big": "the server takes no message of that size: send smaller pictures",
        "server_error": "the server failed and closed the link",
        "full": "the server asks to try again later",
    }.get(code, "the server closed the link")
    return LinkError(code, f"{words} ({received.code}){said}")


def _refusal(error: BaseException, settings: RemoteSettings, url: str) -> LinkError:
    """Return what a failed connection means."""
    exceptions = library().exceptions
    where = f"{settings.host}:{settings.port}"
    if isinstance(error, exceptions.InvalidStatus):
        return _status(error.response, settings, url)
    if isinstance(error, socket.gaierror):
        return LinkError("dns", f"the name {settings.host!r} is not found ({error.strerror}); "
                         "check it, or write an address")  # fmt: skip
    if isinstance(error, ssl.SSLError):
        text = getattr(error, "verify_message", "") or error.reason or str(error)
        return LinkError("tls", f"TLS with {where} failed: {text}; for a private authority give "
                         "its certificate as remote.ca_file")  # fmt: skip
    if isinstance(error, ConnectionRefusedError):
        return LinkError("refused", f"nobody listens on {where}")
    if isinstance(error, exceptions.InvalidHandshake | exceptions.InvalidURI):
        return LinkError("http", f"{url} does not answer as a websocket: {brief(str(error), 160)}")
    if isinstance(error, ConnectionError) and settings.parts.scheme == "wss":
        return LinkError(
            "tls", f"{where} hung up on the TLS handshake; does it speak TLS (wss), or ws?"
        )
    if isinstance(error, (EOFError, ConnectionResetError, exceptions.ConnectionClosed)):
        return LinkError("broken", f"{where} closed the connection while it was being made")
    if isinstance(error, TimeoutError):
        return LinkError("connect_timeout", _timeout_text(settings, "connect"))
    if isinstance(error, ValueError) and "redirect" in str(error):
        return LinkError("http", f"{url} sends elsewhere, where a token must not go unasked; write "
                         "the address that is meant")  # fmt: skip
    if isinstance(error, OSError):
        code = "unreachable" if error.errno in (
            errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT) else "broken"
        return LinkError(code, f"no connection to {where}: {error.strerror or error}")
    if isinstance(error, SettingsError):
        return LinkError("settings", str(error))
    raise error


def _status(response: Any, settings: RemoteSettings, url: str) -> LinkError:
    status = response.status_code
    if status == 401:
        given = "none was sent: remote.token_file" if settings.token_file is None else (
            f"{settings.token_file} holds another")
        return LinkError("auth", f"{url} wants a token (401); {given}")
    if status == 403:
        return LinkError("path", f"{url} is refused (403): the path is not that of an OpenPI "
                         "server, or the token is not allowed there")  # fmt: skip
    if status in (404, 405, 426) or status == 200:
        return LinkError("path", f"{url} is no OpenPI server ({status}); check port and path")
    if status in (429, 503):
        return LinkError("full", f"{url} takes no more clients now ({status})")
    return LinkError("http", f"{url} answers with status {status}")


def _timeout_text(settings: RemoteSettings, stage: str) -> str:
    where, limit = f"{settings.host}:{settings.port}", f"{settings.connect_timeout_s:g} s"
    if stage == "connect":
        return f"no connection to {where} within {limit}"
    return (f"{where} took the connection but did not answer within {limit}; it may be busy with "
            "another client")  # fmt: skip


async def _discard(link: Any) -> None:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(link.close(), CLOSE_TIMEOUT_S)
    link.transport.abort()
