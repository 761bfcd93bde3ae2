# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where the robot serves its policy, to whom, and how much of it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from .errors import SettingsError
from .settings import is_loopback, read_token

DIALECTS = ("auto", "vllm", "openpi")
BUSY = ("wait", "refuse")

_RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65535),
    "max_clients": (1, 1024),
    "max_waiting": (0, 1024),
    "wait_timeout_s": (0.01, 3600.0),
    "idle_timeout_s": (0.0, 86400.0),
    "max_request_bytes": (1024, 1 << 30),
    "ping_interval_s": (0.1, 3600.0),
}


@dataclass(frozen=True)
class ServerSettings:
    """A policy server.

    :param host: loopback by default. Anything else wants a token, or `insecure`.
    :param port: 0 takes a free one.
    :param dialect: "auto" speaks vLLM-Omni's at its path and openpi's at any other; the others
        speak one only.
    :param token_file: clients send what it holds, as Bearer or Api-Key.
    :param cert_file, key_file: PEM, for wss.
    :param busy: what a request meets while another one is computed: "wait" lets up to
        `max_waiting` wait, first come first served, each for `wait_timeout_s`; beyond that, and
        with "refuse", it is answered with an error that says so.
    :param idle_timeout_s: a client that asks nothing for so long is let go (1000); 0 never.
    :param max_clients: beyond that an upgrade is answered with 503.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    dialect: str = "auto"
    token_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure: bool = False
    busy: str = "wait"
    max_waiting: int = 4
    wait_timeout_s: float = 30.0
    max_clients: int = 4
    idle_timeout_s: float = 60.0
    max_request_bytes: int = 16 << 20
    ping_interval_s: float = 20.0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not low <= value <= high
            ):
                raise SettingsError(f"serve.{name} is {value!r}; expected {low} to {high}")
        for name, choices in (("dialect", DIALECTS), ("busy", BUSY)):
            if getattr(self, name) not in choices:
                raise SettingsError(
                    f"serve.{name} is {getattr(self, name)!r}; expected one of {', '.join(choices)}"
                )
        if (self.cert_file is None) != (self.key_file is None):
            raise SettingsError("serve.cert_file and key_file belong together; one is missing")
        if not is_loopback(self.host) and self.token_file is None and not self.insecure:
            raise SettingsError(
                f"serve.host is {self.host}: anyone on that network could use the policy. Give a "
                "token_file, bind to 127.0.0.1 and use a tunnel, or set insecure"
            )

    def token(self) -> str | None:
        """:raises SettingsError: the file cannot be read."""
        return None if self.token_file is None else read_token(self.token_file)

    def context(self) -> ssl.SSLContext | None:
        """:raises SettingsError: certificate or key cannot be read."""
        if self.cert_file is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"{self.cert_file}, {self.key_file}: cannot be used ({error})"
            ) from error
        return context
