# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A request to a remote policy, what its reply has to have, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .dialect import Dialect
from .replies import Actions

#: Name under which a server that numbers its replies returns a request's number.
REQUEST_ID = "request_id"


@dataclass(frozen=True)
class Request:
    """:param deadline, asked: `time.monotonic()`."""

    id: int
    observation: Mapping[str, Any]
    deadline: float
    tag: Any
    asked: float


@dataclass(frozen=True)
class Expectation:
    """What a reply has to have; see `replies.read_actions`."""

    keys: tuple[str, ...] = ()
    horizon: int | None = None
    width: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a request.

    :param code: "good", or the counter that it was booked to. :param text: why, for a person.
    :param asked, ended: `time.monotonic()`. :param actions: of a good one.
    """

    id: int
    tag: Any
    code: str
    text: str
    asked: float
    ended: float
    actions: Actions | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    dialect: Dialect = Dialect.UNKNOWN

    @property
    def latency_s(self) -> float:
        return self.ended - self.asked
