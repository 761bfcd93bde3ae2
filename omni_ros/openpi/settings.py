# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How a remote policy is reached, and how long anything of it may take."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ..robot.errors import is_finite, shown
from .dialect import VLLM_PATH, Dialect
from .errors import SettingsError

_KINDS = {"bool": "true or false", "int": "an integer", "float": "a finite number", "str": "text",
          "str | None": "text, or nothing"}  # fmt: skip
AUTH = ("bearer", "api-key", "auto")

_RANGES: dict[str, tuple[float, float]] = {
    "connect_timeout_s": (0.05, 600.0),
    "handshake_timeout_s": (0.05, 600.0),
    "warm_up_timeout_s": (0.05, 3600.0),
    "remote_timeout_s": (0.02, 600.0),
    "reply_timeout_s": (0.05, 3600.0),
    "ping_interval_s": (0.02, 600.0),
    "ping_timeout_s": (0.02, 600.0),
    "backoff_s": (0.01, 600.0),
    "backoff_max_s": (0.01, 3600.0),
    "max_reply_bytes": (1024, 1 << 30),
    "max_request_bytes": (1024, 1 << 30),
}


@dataclass(frozen=True)
class RemoteSettings:
    """One remote policy.

    :param url: `ws://` or `wss://`; without a path, vLLM-Omni's is tried first and then `/`.
    :param dialect: "auto", or what the server is known to speak ("vllm", "openpi").
    :param token_file: holds the token; read at each connect, so that it may be replaced.
    :param auth: how the token is sent. "auto" takes Bearer, and Api-Key where that is refused.
    :param ca_file: PEM of the authority that signed the server's certificate, instead of the
        system's. :param plain_token: allow a token to cross a network unencrypted.
    :param proxy: use the proxy that the environment names; links of robots are direct by default.
    :param connect_timeout_s: name, TCP, TLS and upgrade together. :param handshake_timeout_s: then
        until the metadata are there. :param warm_up_timeout_s: the first reply.
    :param remote_timeout_s: a reply later than this degrades the link; the request is not dropped.
    :param reply_timeout_s: after this the link is given up and made anew.
    :param ping_interval_s, ping_timeout_s: keep-alive of an idle link. While a reply is awaited no
        ping is sent: servers that compute in their event loop do not answer them.
    :param backoff_s: wait before the first new try; doubled up to `backoff_max_s`, with jitter.
    :param max_request_bytes: vLLM-Omni's web server closes at 16 MiB, whatever its own limit says.
    :param identical: "drop" takes a reply that equals the one before, to another observation, for
        a duplicate; "accept" is for servers whose policy is a constant.
    """

    url: str
    dialect: str = "auto"
    token_file: str | None = None
    auth: str = "auto"
    ca_file: str | None = None
    plain_token: bool = False
    proxy: bool = False
    connect_timeout_s: float = 5.0
    handshake_timeout_s: float = 5.0
    warm_up_timeout_s: float = 180.0
    remote_timeout_s: float = 0.5
    reply_timeout_s: float = 5.0
    ping_interval_s: float = 5.0
    ping_timeout_s: float = 5.0
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    max_reply_bytes: int = 16 << 20
    max_request_bytes: int = 16 << 20
    identical: str = "drop"

    def __post_init__(self) -> None:
        for entry in fields(self):
            _check_type(entry.name, getattr(self, entry.name), str(entry.type))
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise SettingsError(f"remote.{name} is {value}; expected {low} to {high}")
        _check_choice(
            "dialect", self.dialect, ("auto", *(d.value for d in Dialect if d.value != "unknown"))
        )
        _check_choice("auth", self.auth, AUTH)
        _check_choice("identical", self.identical, ("drop", "accept"))
        parts = self.parts
        if self.remote_timeout_s > self.reply_timeout_s:
            raise SettingsError(
                f"remote.remote_timeout_s is {self.remote_timeout_s}, above reply_timeout_s "
                f"{self.reply_timeout_s}; a reply is overdue before it is given up"
            )
        if self.ca_file is not None and parts.scheme != "wss":
            raise SettingsError(f"remote.ca_file is given, but {self.url} is not encrypted: wss://")
        if self.token_file and parts.scheme == "ws" and not self.plain_token and not is_loopback(
            parts.hostname or ""
        ):
            raise SettingsError(
                f"remote.token_file: the token would cross the network readable by anyone "
                f"({self.url}); use wss://, a tunnel to localhost, or set plain_token: true"
            )

    @property
    def parts(self) -> Any:
        """The split URL. :raises SettingsError: it is no websocket URL."""
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise SettingsError(f"remote.url is {shown(self.url)}: {error}") from error
        # What urlsplit drops in silence would be sent all the same.
        whole = self.url.isascii() and self.url.isprintable() and " " not in self.url
        if not whole or parts.scheme not in ("ws", "wss") or not parts.hostname or parts.fragment:
            raise SettingsError(
                f"remote.url is {shown(self.url)}; expected ws://HOST[:PORT][/PATH] or wss://..."
            )
        if parts.username or parts.password:
            raise SettingsError("remote.url holds a user or password; put a token into token_file")
        return parts

    @property
    def host(self) -> str:
        return self.parts.hostname

    @property
    def port(self) -> int:
        return self.parts.port or (443 if self.parts.scheme == "wss" else 80)

    def urls(self) -> tuple[str, ...]:
        """The addresses to try, in order."""
        parts = self.parts
        if parts.path not in ("", "/"):
            return (self.url,)
        paths = {"vllm": (VLLM_PATH,), "openpi": ("/",)}.get(self.dialect, (VLLM_PATH, "/"))
        return tuple(urlunsplit((parts.scheme, parts.netloc, p, parts.query, "")) for p in paths)

    def read_token(self) -> str | None:
        """Return the token. :raises SettingsError: its file cannot be read or holds none."""
        return None if self.token_file is None else read_token(self.token_file)


def remote_settings(section: Mapping[str, Any]) -> RemoteSettings:
    """Build settings from a YAML mapping. :raises SettingsError: what is wrong with it."""
    if not isinstance(section, Mapping):
        raise SettingsError(f"remote is {shown(section)}; expected a mapping with url")
    known = [entry.name for entry in fields(RemoteSettings)]
    for key in section:
        if key not in known:
            raise SettingsError(f"remote.{key} is not a setting; known are {', '.join(known)}")
    if "url" not in section:
        raise SettingsError("remote.url is missing; expected ws://HOST:PORT")
    return RemoteSettings(**section)


def read_token(path: str | Path) -> str:
    """Return the one line that a token's file holds.

    :raises SettingsError: it cannot be read, or holds something else.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the token cannot be read ({error})") from error
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise SettingsError(f"{path}: expected one line with a token of printable ASCII, no spaces")
    return text


def is_loopback(host: str) -> bool:
    """True for this machine's own addresses; names other than localhost are not looked up."""
    if host.lower() == "localhost" or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(
            f"remote.{name} is {shown(value)}; expected one of {', '.join(choices)}"
        )


def _check_type(name: str, value: Any, kind: str) -> None:
    if "None" in kind and value is None:
        return
    if kind == "bool":
        good = isinstance(value, bool)
    elif kind == "int":
        good = type(value) is int
    elif kind == "float":
        good = is_finite(value)
    else:
        good = isinstance(value, str) and value != ""
    if not good:
        raise SettingsError(
            f"remote.{name} is {shown(value)}; expected {_KINDS[kind]}"
        )
