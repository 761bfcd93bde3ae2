# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The two dialects of OpenPI servers, and which of them is spoken at the other end.

Both send metadata first and take observations as maps. They differ in the path, in replies (a bare
array against a map with `server_timing`), in errors (a map, link stays open, against text followed
by close 1011) and in `reset`, which only one of them knows. Nothing in the protocol says which it
is, so evidence is gathered: what no server of the other dialect would do decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from .errors import ReplyError, WireError, brief
from .wire import LIMITS, Limits, unpack


class Dialect(Enum):
    """UNKNOWN is spoken to in the words that both understand."""

    UNKNOWN = "unknown"
    VLLM = "vllm"
    OPENPI = "openpi"


#: The only path of vLLM-Omni; openpi's own server takes any path but /healthz.
VLLM_PATH = "/v1/realtime/robot/openpi"
#: Keys of vLLM-Omni's handshake that openpi's free-form metadata would hardly have together.
_VLLM_KEYS = frozenset(
    {"image_resolution", "action_horizon", "needs_session_id", "n_external_cameras"}
)


@dataclass(frozen=True)
class Reply:
    """An answer with arrays. :param named: by name; one without a name has the name "".

    :param extra: what else the map said, such as `server_timing`.
    """

    named: Mapping[str, np.ndarray]
    extra: Mapping[str, Any] = field(default_factory=dict)
    dialect: Dialect = Dialect.UNKNOWN


@dataclass(frozen=True)
class RemoteFault:
    """The server says that it failed. :param closes: it is going to close the link."""

    text: str
    closes: bool
    code: str = ""
    dialect: Dialect = Dialect.UNKNOWN


@dataclass(frozen=True)
class ResetDone:
    """The answer to a reset."""

    dialect: Dialect = Dialect.VLLM


def read_metadata(message: bytes | str, limits: Limits = LIMITS) -> dict[str, Any] | RemoteFault:
    """Read a server's first message.

    :return: its metadata; or a fault where a server with no policy says so and closes.
    :raises ReplyError: it is neither: this is no OpenPI server.
    """
    if isinstance(message, str):
        fault = _json_fault(message)
        if fault is not None:
            return fault
        raise ReplyError(
            "malformed", f"the first message is text ({brief(message)}); expected the metadata of "
            "an OpenPI server: is this its port and path?")  # fmt: skip
    try:
        value = unpack(message, limits)
    except WireError as error:
        raise ReplyError(
            "malformed", f"the first message is no OpenPI metadata ({error}); is this its port and "
            "path?") from error  # fmt: skip
    if not isinstance(value, dict):
        raise ReplyError("malformed", f"the metadata is {brief(value)}; expected a map")
    if _is_fault(value):
        return RemoteFault(_text(value.get("message", value.get("error"))), True,
                           _text(value.get("code", "")))  # fmt: skip
    return {_text(key): entry for key, entry in value.items()}


def read_reply(message: bytes | str, limits: Limits = LIMITS) -> Reply | RemoteFault | ResetDone:
    """Read a server's answer, in whichever dialect; what it proves about it is in `dialect`.

    :raises ReplyError: it cannot be read, or has no arrays.
    """
    if isinstance(message, str):
        # Only openpi's server answers in text: the traceback, and then it closes.
        fault = _json_fault(message)
        return fault or RemoteFault(_last_line(message), True, "", Dialect.OPENPI)
    try:
        value = unpack(message, limits)
    except WireError as error:
        raise ReplyError("malformed", f"the reply cannot be read: {error}") from error
    if isinstance(value, np.ndarray):
        return Reply({"": value}, dialect=Dialect.VLLM)
    if not isinstance(value, dict):
        raise ReplyError("malformed", f"the reply is {brief(value)}; expected an array or a map")
    if _is_fault(value):
        return RemoteFault(_text(value.get("message", "")), False, _text(value.get("code", "")),
                           Dialect.VLLM)  # fmt: skip
    entries = {_text(key): entry for key, entry in value.items()}
    if len(entries) != len(value):
        raise ReplyError("names", "the reply has one name as text and as bytes; expected one")
    # Beside actions the reference policies answer with the state, and timings of the model.
    named = {key: entry for key, entry in entries.items() if isinstance(entry, np.ndarray)}
    extra = {key: entry for key, entry in entries.items() if key not in named}
    if named:
        dialect = Dialect.OPENPI if "server_timing" in extra else Dialect.UNKNOWN
        return Reply(named, extra, dialect)
    if isinstance(entries.get("status"), str) and "reset" in entries["status"]:
        return ResetDone()
    if any(isinstance(entry, list) for entry in entries.values()):
        return Reply(_lists(entries), extra, Dialect.UNKNOWN)
    raise ReplyError("malformed", f"the reply has no arrays, only {_names(entries)}")


def evidence(
    *, path: str = "", server: str = "", metadata: Mapping[str, Any] | None = None
) -> Dialect:
    """Return what the handshake says about the dialect.

    :param path: that was taken. :param server: the response's `Server` header.
    """
    name = server.lower()
    if "uvicorn" in name or "hypercorn" in name:
        return Dialect.VLLM
    told = (metadata or {}).get("dialect")
    if isinstance(told, str) and told in (Dialect.VLLM.value, Dialect.OPENPI.value):
        return Dialect(told)
    if path.rstrip("/").endswith(VLLM_PATH) and metadata and len(_VLLM_KEYS & set(metadata)) >= 2:
        return Dialect.VLLM
    if "websockets" in name and not path.rstrip("/").endswith(VLLM_PATH):
        return Dialect.OPENPI
    return Dialect.UNKNOWN


def settle(known: Dialect, found: Dialect) -> Dialect:
    """Return what is known now: an answer outweighs the handshake."""
    return known if found is Dialect.UNKNOWN else found


def _lists(entries: Mapping[str, Any]) -> dict[str, np.ndarray]:
    named = {}
    for key, entry in entries.items():
        if isinstance(entry, list):
            try:
                array = np.array(entry, np.float64)
            except (ValueError, TypeError, OverflowError) as error:
                raise ReplyError("malformed", f"{brief(key)} is a ragged list: {error}") from error
            named[key] = array
    return named


def _is_fault(value: Mapping[Any, Any]) -> bool:
    kind = value.get("type", value.get(b"type"))
    return isinstance(kind, (str, bytes)) and kind in ("error", b"error")


def _json_fault(text: str) -> RemoteFault | None:
    if len(text) > 65536 or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not _is_fault(value):
        return None
    return RemoteFault(_text(value.get("error", value.get("message", ""))), True,
                       _text(value.get("code", "")), Dialect.VLLM)  # fmt: skip


def _last_line(text: str) -> str:
    """Return what a traceback ends with: the error itself."""
    lines = [line.strip() for line in text[-4096:].splitlines() if line.strip()]
    return _text(lines[-1]) if lines else "an error without a text"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return brief(value)
    return "".join(c if c.isprintable() else " " for c in value[:300])


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(brief(key, 40) for key in list(entries)[:8]) or "nothing"
