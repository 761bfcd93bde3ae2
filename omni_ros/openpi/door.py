# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Who is let in to a policy server, before anything of a websocket is spoken."""

from __future__ import annotations

import hmac
import http
from typing import Any

from .dialect import VLLM_PATH
from .server_settings import ServerSettings

#: Answered without a token, as openpi and vLLM-Omni do.
HEALTH = {"/healthz": "OK\n", "/health": '{"status": "healthy"}\n'}


def plain_path(target: str) -> str:
    """Return a request's path without query and without a slash at its end."""
    return target.split("?", 1)[0].rstrip("/") or "/"


def answer(
    connection: Any, request: Any, settings: ServerSettings, token: str | None, clients: int
) -> Any:
    """Return the response to an upgrade; None lets it through.

    :param connection, request: websockets' own. :param clients: that are in already.
    """
    path = plain_path(request.path)
    if path in HEALTH:
        return connection.respond(http.HTTPStatus.OK, HEALTH[path])
    if settings.dialect == "vllm" and path != VLLM_PATH:
        return connection.respond(http.HTTPStatus.FORBIDDEN, f"expected the path {VLLM_PATH}\n")
    if token is not None and not _holds(request.headers, token):
        return connection.respond(
            http.HTTPStatus.UNAUTHORIZED, "expected a token: Bearer or Api-Key\n"
        )
    if clients >= settings.max_clients:
        response = connection.respond(
            http.HTTPStatus.SERVICE_UNAVAILABLE,
            f"{settings.max_clients} clients are connected, which is the limit\n",
        )
        response.headers["Retry-After"] = "1"
        return response
    return None


def _holds(headers: Any, token: str) -> bool:
    scheme, _, given = "".join(headers.get_all("Authorization")).partition(" ")
    # In a time that does not tell how much of it was right.
    good = hmac.compare_digest(given.strip().encode(), token.encode())
    return good and scheme.lower() in ("bearer", "api-key")
