# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a link to a remote policy can be in, why, and what it has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

from .dialect import Dialect


class State(IntEnum):
    """OFF: not asked for. CONNECTING: on the way, nothing has failed. WARMING: connected, no good
    reply yet; the first one of a server can take minutes. ACTIVE: replies come in time. DEGRADED:
    something is wrong, see the reason; the link mends itself."""

    OFF = 0
    CONNECTING = 1
    WARMING = 2
    ACTIVE = 3
    DEGRADED = 4


#: Reason codes, and what each is about.
REASONS: Mapping[str, str] = {
    "none": "nothing to report",
    "off": "not started, or stopped",
    "connecting": "a connection is being made",
    "warming": "connected; the first reply is awaited",
    "dns": "the name of the server is not found",
    "refused": "nobody listens on that port",
    "unreachable": "no way to that address",
    "connect_timeout": "no connection in time",
    "tls": "the TLS handshake failed",
    "path": "the server has no OpenPI at that path",
    "auth": "the server wants another token",
    "full": "the server takes no more clients now",
    "http": "the server does not upgrade to a websocket",
    "handshake_timeout": "connected, but no metadata in time",
    "not_openpi": "the first message is no OpenPI metadata",
    "no_policy": "the server has no policy to serve",
    "mapping": "the metadata does not fit the mapping",
    "slow": "a reply is overdue",
    "stalled": "no reply at all; connecting anew",
    "keep_alive": "an idle link does not answer pings",
    "closed": "the server closed the link in good order (1000)",
    "restart": "the server restarts (1012)",
    "server_error": "the server failed and closed (1011)",
    "too_big": "a message was over a size limit (1009)",
    "policy_violation": "the server closed by its rules (1008)",
    "broken": "the link broke",
    "out_of_step": "an answer that nobody asked for; connecting anew",
    "remote_error": "the server answered with an error",
    "malformed": "a reply that cannot be read",
    "shape": "a reply of another shape",
    "non_finite": "a reply with values that are not finite",
    "names": "a reply with other names",
    "unsendable": "an observation that cannot be sent",
    "settings": "a file that the settings name cannot be used",
    "internal": "a fault of the client",
}


@dataclass(frozen=True)
class Reason:
    """:param code: a key of REASONS. :param text: one line for a person, with numbers."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class Counters:
    """Since the start. Every request ends in exactly one of good, late, timed_out, lost, replaced,
    unsendable, remote_error or a refused reply (malformed, shape, non_finite, names), or is still
    on its way."""

    requested: int = 0
    replaced: int = 0
    unsendable: int = 0
    sent: int = 0
    good: int = 0
    late: int = 0
    timed_out: int = 0
    lost: int = 0
    remote_error: int = 0
    malformed: int = 0
    shape: int = 0
    non_finite: int = 0
    names: int = 0
    foreign: int = 0
    duplicate: int = 0
    connects: int = 0
    failed_connects: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def data(self) -> dict[str, int]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


@dataclass(frozen=True)
class LinkStatus:
    """A moment of the link.

    :param since: `time.monotonic()` of the last change of state. :param waiting: a request is on
        its way. :param latency_p50, latency_p95: seconds of the last good replies, None before.
    :param next_try_s: seconds to the next attempt, 0 if there is none to wait for.
    """

    state: State
    reason: Reason
    since: float
    url: str
    dialect: Dialect
    waiting: bool
    next_try_s: float
    latency_p50: float | None
    latency_p95: float | None
    counters: Mapping[str, int]
    metadata: Mapping[str, Any] | None = field(repr=False, default=None)
