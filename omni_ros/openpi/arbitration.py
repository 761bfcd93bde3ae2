# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whose chunks are offered to the player, the local policy's or the remote's, and why.

A pure rule over what is known at a moment; it never waits for anything. A remote that is not ACTIVE
is never followed, whatever the rule says: the robot does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

from ..bundles.schema import from_data
from .errors import SettingsError
from .states import Reason, State

USES = ("start", "on_demand", "fallback", "always")
_RANGES = {
    "start_s": (0.1, 600.0), "slow_s": (0.02, 600.0), "hold_s": (0.0, 600.0), "every_s": (0.01, 600.0),
    "probe_s": (0.0, 3600.0), "deadline_s": (0.02, 600.0), "limit_slack": (0.0, 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class ReplanRule:
    """Section `replan:` of a mapping file; every field is explained in config/openpi/.

    :param use: when the remote's chunks are offered. "start": for `start_s` from the beginning of an
        episode. "on_demand": while somebody asks for it. "fallback": while the local policy is
        missing, or its newest observation is older than `slow_s`. "always".
    :param hold_s: a good local policy is handed back to only after so long, so that two policies
        do not take turns. :param every_s: how often the remote is asked while it is wanted.
    :param probe_s: how often while it is not, to keep it warm and to know that it is; 0 never.
    :param deadline_s: age of an observation at which its reply is of no use any more.
    :param limit_slack: rows may leave a joint's limits by this share of its range (the limiter cuts
        them); a reply with rows beyond is dropped.
    """

    use: str = field(default="fallback", metadata={"choices": USES})
    start_s: float = 5.0
    slow_s: float = 0.7
    hold_s: float = 2.0
    every_s: float = 0.3
    probe_s: float = 5.0
    deadline_s: float = 1.0
    limit_slack: float = 0.05

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise SettingsError(f"replan.{name} is {getattr(self, name)}; expected {low} to {high}")


def replan_rule(section: Mapping[str, Any] | None) -> ReplanRule:
    """Build the rule from a YAML mapping. :raises SettingsError: the key that is wrong."""
    try:
        return ReplanRule() if section is None else from_data(ReplanRule, section, "replan")
    except SettingsError:
        raise
    except ValueError as error:
        known = ", ".join(entry.name for entry in fields(ReplanRule))
        raise SettingsError(f"{error} (of replan; known: {known})") from error


class Source(IntEnum):
    """Whose chunks are offered."""

    LOCAL = 0
    REMOTE = 1


@dataclass(frozen=True)
class Moment:
    """What is known. Times in seconds of one clock that never leaps (`time.monotonic()`).

    :param local_age_s: age of the observation behind the newest local chunk; None: there is none.
    :param episode_age_s: since the instruction came or the arm was let go; None: no episode.
    :param demanded: somebody asks for the remote.
    :param unplayable: why its last reply could not be played, though the link is good; None if it could.
    """

    now: float
    link: State
    link_reason: Reason
    local_age_s: float | None
    episode_age_s: float | None
    demanded: bool = False
    unplayable: Reason | None = None


@dataclass(frozen=True)
class Decision:
    """:param code: one word. :param text: for a person. :param ask_every_s: how often to ask the
    remote now; 0: not at all."""

    source: Source
    code: str
    text: str
    ask_every_s: float


class Arbiter:
    """Applies a rule from moment to moment; remembers only whom it chose and since when."""

    def __init__(self, rule: ReplanRule) -> None:
        self.rule = rule
        self._source = Source.LOCAL
        self._local_good_since: float | None = None

    def forget(self) -> None:
        """Begin anew: at a change of mode, or when the clock leapt."""
        self._source, self._local_good_since = Source.LOCAL, None

    def decide(self, moment: Moment) -> Decision:
        """Return who is followed at a moment."""
        wanted, code, text = self._wish(moment)
        # Preferred and without a chunk to play, it would hold the local policy off until the arm stops.
        usable = moment.link is State.ACTIVE and moment.unplayable is None
        asks = self.rule.every_s if wanted else self.rule.probe_s
        if moment.link is State.OFF:
            asks = 0.0
        if wanted and moment.link is State.ACTIVE and not usable:
            code = "remote_unplayable"
            text = f"{text}; but the remote's last reply cannot be played: {moment.unplayable}"
        elif wanted and not usable:
            name = moment.link.name.lower()
            code, text = f"remote_{name}", f"{text}; but the remote is {name}: {moment.link_reason}"
        self._source = Source.REMOTE if wanted and usable else Source.LOCAL
        return Decision(self._source, code, text, asks)

    def _wish(self, moment: Moment) -> tuple[bool, str, str]:
        rule = self.rule
        if rule.use == "always":
            return True, "always", "the rule is always"
        if rule.use == "on_demand":
            return (True, "demanded", "asked for") if moment.demanded else (
                False, "not_demanded", "nobody asks for the remote")  # fmt: skip
        if rule.use == "start":
            age = moment.episode_age_s
            if age is None:
                return False, "no_episode", "no episode has begun"
            if age <= rule.start_s:
                return True, "start", f"the first {rule.start_s:g} s of the episode"
            return False, "start_over", f"the first {rule.start_s:g} s are over"
        return self._fallback(moment)

    def _fallback(self, moment: Moment) -> tuple[bool, str, str]:
        rule, age = self.rule, moment.local_age_s
        if age is None or age > rule.slow_s:
            self._local_good_since = None
            if age is None:
                return True, "local_missing", "there is no local chunk"
            return True, "local_slow", (
                f"the newest local observation is {age:.2f} s old, above slow_s {rule.slow_s:g}")
        if self._local_good_since is None:
            self._local_good_since = moment.now
        steady = moment.now - self._local_good_since
        if self._source is Source.REMOTE and steady < rule.hold_s:
            return True, "local_unproven", f"the local policy is good again, for {steady:.1f} s"
        return False, "local_good", "the local policy is there and in time"
