# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which chunks may be played: one source at a time, in order, alive, and not too old."""

from __future__ import annotations

import math

from omni_ros.player.chunk import Chunk, Refusal
from omni_ros.player.inputs import Source, Sources
from omni_ros.player.reasons import Reason
from omni_ros.robot import PlayerConfig


def refuse(chunk: Chunk, reason: Reason, text: str) -> Refusal:
    """Word a refusal of a parsed chunk."""
    words = f"chunk {chunk.chunk_id} of {chunk.source[:40]!r}: {text}"
    return Refusal(reason, words, chunk.source, chunk.chunk_id)


class Gate:
    """Follows one source from its first accepted chunk until it is released."""

    def __init__(self, config: PlayerConfig) -> None:
        """Take timeouts and tolerances from the settings."""
        self._config = config
        self._sources = Sources()
        self._last_stamp_ns = 0
        self._not_before_ns = 0
        self.source = ""
        self._preferred = ""

    def prefer(self, source: str) -> None:
        """Let good chunks of one source take over from another that is followed; "" for none's.

        Nothing else changes: its chunks are judged as any, and whoever is followed plays on until
        one of them is good.
        """
        self._preferred = source

    def beat(self, source: str, now_ns: int) -> None:
        """Take a heartbeat; it also lets in a source whose process had ended.

        One without a name says nothing of any source: it is passed over.
        """
        if not source.strip():
            return
        entry = self._source(source)
        entry.beat_ns, entry.exited = now_ns, False

    def exited(self, source: str) -> None:
        """Take the end of a source's process; another may come under the same name."""
        entry = self._source(source)
        entry.exited, entry.beat_ns, entry.last_id = True, None, -1

    def beat_age_s(self, now_ns: int) -> float:
        """Age of the followed source's heartbeat, seconds; NaN if there is none."""
        return self._sources.beat_age_s(self.source, now_ns) if self.source else math.nan

    def release(self, lost: bool = False) -> None:
        """Follow nobody; `lost` if the source may be another process when it comes back."""
        if lost and self.source:
            self._source(self.source).last_id = -1
        self.source = ""

    def only_after(self, now_ns: int) -> None:
        """From now on refuse what was decided from older observations."""
        self._not_before_ns = now_ns

    def rebase(self, now_ns: int) -> None:
        """Forget stamps and ids after a jump of the clock, count ages anew.

        What was decided before a reset stays refused: a leap may have been a mere pause. Only a
        clock that went back before the reset makes its time meaningless.
        """
        self._sources.rebase(now_ns)
        self._last_stamp_ns = 0
        if now_ns < self._not_before_ns:
            self._not_before_ns = 0

    def follow(self, chunk: Chunk) -> None:
        """Take note of a chunk that is played."""
        self.source = chunk.source
        self._source(chunk.source).last_id = chunk.chunk_id
        self._last_stamp_ns = chunk.stamp_ns

    def judge(self, chunk: Chunk, now_ns: int) -> Refusal | None:
        """Return why a chunk is not to be played, or None. Order: source, order, life, ages."""
        if not chunk.source.strip():
            text = "it names no source; fill in `source` with the name that its heartbeats carry"
            return refuse(chunk, Reason.FOREIGN_SOURCE, text)
        if self.source and chunk.source not in (self.source, self._preferred):
            return refuse(chunk, Reason.FOREIGN_SOURCE, f"{self.source!r} is followed now")
        text = self._out_of_order(chunk)
        if text:
            return refuse(chunk, Reason.OUT_OF_ORDER, text)
        text = self._lifeless(chunk.source, now_ns)
        if text:
            return refuse(chunk, Reason.HEARTBEAT_LOST, text)
        age = (now_ns - chunk.stamp_ns) * 1e-9
        config = self._config
        if age < -config.future_tolerance_s:
            text = (
                f"stamped {-age:.3f} s in the future, tolerance {config.future_tolerance_s:g} s:"
                " check the clocks"
            )
            return refuse(chunk, Reason.FUTURE_STAMP, text)
        if age > config.observation_timeout_s:
            text = f"observation is {age:.3f} s old, limit {config.observation_timeout_s:g} s"
            return refuse(chunk, Reason.OBSERVATION_STALE, text)
        if age > chunk.life_ns * 1e-9:
            text = f"{age:.3f} s old, its life is {chunk.life_ns * 1e-9:g} s"
            return refuse(chunk, Reason.CHUNK_STALE, text)
        return None

    def _source(self, name: str) -> Source:
        """Return what is known of a source; that of the followed one is never given up for it."""
        return self._sources.get(name, keep=self.source)

    def _out_of_order(self, chunk: Chunk) -> str:
        last_id = self._source(chunk.source).last_id
        if chunk.chunk_id <= last_id:
            return f"the last chunk had id {last_id}, this one answers an earlier request"
        if chunk.stamp_ns < self._not_before_ns:
            return "its observation is from before the reset"
        if chunk.stamp_ns < self._last_stamp_ns:
            behind = (self._last_stamp_ns - chunk.stamp_ns) * 1e-9
            return f"its observation is {behind:.3f} s older than that of the last chunk"
        return ""

    def _lifeless(self, name: str, now_ns: int) -> str:
        """Say why a source does not count as alive, or nothing."""
        if self._source(name).exited:
            return "its process ended and has not beaten since"
        age = self._sources.beat_age_s(name, now_ns)
        if math.isnan(age) and self._config.require_heartbeat:
            return "the source has sent no heartbeat; publish one, or set require_heartbeat: false"
        if age > self._config.heartbeat_timeout_s:
            return f"last heartbeat {age:.3f} s ago, limit {self._config.heartbeat_timeout_s:g} s"
        return ""
