# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a name to a connected socket, with nothing that can hold a thread back.

`getaddrinfo` blocks for as long as the resolver likes, and Python joins the threads of its pools at
exit: with the radio off a node would not end. So names are looked up in a daemon thread that is
simply left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import socket
import ssl
import threading
from types import SimpleNamespace
from typing import Any

from ..requirements import MissingDependency, require
from .errors import SettingsError

#: Older ones have another asyncio client.
LEAST = (15, 0)


@functools.lru_cache(maxsize=1)
def library() -> SimpleNamespace:
    """Return what is used of `websockets`: client, server, exceptions, http.

    :raises MissingDependency: it is absent or too old.
    """
    require("websockets", "to speak OpenPI")
    from websockets.version import version

    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < LEAST:
        raise MissingDependency(
            f"websockets {version} is installed; expected {LEAST[0]}.{LEAST[1]} or later: pip "
            f"install 'websockets>={LEAST[0]}'"
        )
    import websockets.asyncio.client as client
    import websockets.asyncio.server as server
    from websockets import exceptions, frames

    return SimpleNamespace(client=client, server=server, exceptions=exceptions, frames=frames)


async def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
    """Return `getaddrinfo`'s entries for TCP. :raises OSError: the name is not found."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[tuple[Any, ...]]] = loop.create_future()

    def settle(result: list[tuple[Any, ...]] | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result or [])
        else:
            future.set_exception(error)

    def work() -> None:
        try:
            outcome = (socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), None)
        except (OSError, UnicodeError) as error:
            outcome = (None, error if isinstance(error, OSError) else socket.gaierror(
                socket.EAI_NONAME, f"{host!r} is no host name"))
        # The loop may have been closed while the resolver took its time.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name="openpi-dns", daemon=True).start()
    return await future


async def open_socket(host: str, port: int, timeout_s: float) -> socket.socket:
    """Return a connected, non-blocking socket; each address of the name is tried in turn.

    :param timeout_s: for all of them: one that swallows packets (a network without IPv6, say) must
        not use up the time of the others.
    :raises OSError: the name is not found, or none answers; the last one's error.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    addresses = await resolve(host, port)
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.wait_for(loop.sock_connect(sock, address), timeout_s / len(addresses))
            return sock
        except asyncio.TimeoutError:
            sock.close()
            failure = TimeoutError(errno.ETIMEDOUT, f"no answer from {address[0]}")
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure or OSError(f"{host} has no address")


def client_context(ca_file: str | None) -> ssl.SSLContext:
    """Return a TLS context that checks certificate and name.

    :raises SettingsError: the file cannot be read or holds no certificate.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"{ca_file}: no certificates can be read ({error})") from error
