# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When vLLM-Omni hands codec frames to its vocoder: its chunk schedule, rule by rule.

Our own schedule (omni_ros.speech.schedule) follows what the machine costs. This one is for those
who compare with a vLLM-Omni server or replay what one did.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

_log = logging.getLogger(__name__)

FRAME_MS = 80.0
_EWMA_SHARE = 0.3
_SMALLEST_GREEDY = 2
_MS_PER_FLOOR_STEP = 15


@dataclass(frozen=True)
class ChunkRules:
    """What a deployment sets.

    :param chunk_frames: the steady chunk.
    :param left_context_frames: frames of reference speech, or of history, that a window has.
    :param first_chunk_frames: of a request that names none; 0: by the server's load.
    :param ramp: the first chunks, at least two; chunks after them are steady.
    :param adaptive: grow chunks by the buffer of speech that the listener still has.
    :param margin_ms: what of that buffer is not spent.
    """

    chunk_frames: int = 25
    left_context_frames: int = 72
    first_chunk_frames: int = 1
    ramp: tuple[int, ...] = ()
    adaptive: bool = False
    margin_ms: float = 50.0

    def __post_init__(self) -> None:
        if self.chunk_frames < 1:
            raise ValueError(f"chunk_frames is {self.chunk_frames}; expected at least 1")
        if self.left_context_frames < 0 or self.first_chunk_frames < 0:
            raise ValueError(
                f"left_context_frames is {self.left_context_frames} and first_chunk_frames "
                f"{self.first_chunk_frames}; expected 0 or more"
            )


@dataclass(frozen=True)
class Emission:
    """A chunk that goes to the vocoder.

    :param at: frames made when it goes. :param frames: how many of them are new in it.
    :param left_context: frames of history before them; what they sound like is cut off again.
    :param finished: nothing comes after it. An utterance's last one may have no frames.
    """

    at: int
    frames: int
    left_context: int
    finished: bool


def largest_first_chunk(chunk_frames: int) -> int:
    """Return the largest power of two below the steady chunk, at least 1."""
    return 1 << max(0, (chunk_frames - 1).bit_length() - 1)


def dynamic_first_chunk(active: int, slots: int, largest: int) -> int:
    """Return the first chunk by load: 2 frames on an idle server, `largest` on a full one."""
    sizes = [1 << power for power in range(1, largest.bit_length())] or [1]
    load = min(active / slots, 1.0) if slots > 0 else 0.0
    return sizes[round(load * (len(sizes) - 1))]


class CompatSchedule:
    """One utterance's chunks. Ask after every frame."""

    def __init__(
        self,
        rules: ChunkRules = ChunkRules(),
        *,
        first_chunk_frames: int | None = None,
        active: int = 0,
        slots: int = 64,
        reference_frames: int = 0,
        windows: bool = False,
    ) -> None:
        """
        :param first_chunk_frames: what this request asks for; it comes before the rules' own.
        :param active: requests now, of `slots` that the server has. Read once: a request keeps its
            first chunk when the load changes.
        :param reference_frames: of the speech that a cloned voice is taken from; the last ones of
            them are the first chunk's left context.
        :param windows: every chunk carries its history along, as before vLLM-Omni 0.30 kept it in
            the vocoder. The samples are the same.
        """
        self.rules = rules
        self._reference = reference_frames
        self._windows = windows
        self._ramp = _checked_ramp(rules)
        self._first = self._first_chunk(first_chunk_frames, active, slots)
        self._sent = 0
        self._chunks = 0
        self._finished = False
        self._started_ms = 0.0
        self._last_ms = 0.0
        self._ms_per_frame: float | None = None
        self._last_target = self._first
        self._locked = False

    def step(self, made: int, now_ms: float = 0.0, *, finished: bool = False) -> Emission | None:
        """Return the chunk to send now that `made` frames are made, None while there is none.

        :param now_ms: a clock; looked at by the adaptive rule only.
        :param finished: no frame follows. The answer is then always a chunk, maybe an empty one.
        :raises ValueError: fewer frames than before, or a call after the last chunk.
        """
        if self._finished or made < self._sent:
            raise ValueError(
                f"step({made}) after {self._sent} frames were sent"
                + (" and the utterance had ended" if self._finished else "")
            )
        waiting = made - self._sent
        if waiting and waiting >= self._target(now_ms):
            # Adaptive chunks ship all that waits; the decoder takes no more than a steady one.
            frames = min(waiting, self.rules.chunk_frames)
            # The end is told by a chunk of its own: when a frame is made, no one knows it to be
            # the last.
            return self._emit(made, frames, False, now_ms)
        if not finished:
            return None
        if waiting > self.rules.chunk_frames:
            return self._emit(made, self.rules.chunk_frames, False, now_ms)
        return self._emit(made, waiting, True, now_ms)

    def _first_chunk(self, asked: int | None, active: int, slots: int) -> int:
        rules = self.rules
        largest = largest_first_chunk(rules.chunk_frames)
        if rules.adaptive:
            return dynamic_first_chunk(active, slots, largest)
        if self._ramp:
            return self._ramp[0]
        wanted = asked or rules.first_chunk_frames or dynamic_first_chunk(active, slots, largest)
        return min(wanted, rules.chunk_frames)

    def _target(self, now_ms: float) -> int:
        if self._chunks == 0:
            return self._first
        if self.rules.adaptive:
            return self._adaptive_target(now_ms)
        if self._chunks < len(self._ramp):
            return self._ramp[self._chunks]
        return self.rules.chunk_frames

    def _adaptive_target(self, now_ms: float) -> int:
        steady, cost = self.rules.chunk_frames, self._ms_per_frame
        if self._locked:
            return steady
        if cost is None:
            return min(self._last_target + _SMALLEST_GREEDY, steady)
        buffered = self._sent * FRAME_MS - (now_ms - self._started_ms)
        if buffered >= steady * cost + self.rules.margin_ms:
            self._locked = True
            return steady
        greedy = int((buffered - self.rules.margin_ms) / cost) if cost > 0 else steady
        # It grows even when the listener's buffer is empty: smaller chunks cost more a frame.
        floor = self._last_target + max(_SMALLEST_GREEDY, int(cost / _MS_PER_FLOOR_STEP))
        return min(max(greedy, floor, _SMALLEST_GREEDY), steady)

    def _emit(self, made: int, frames: int, finished: bool, now_ms: float) -> Emission:
        if self._chunks == 0:
            self._started_ms = now_ms
        elif frames:
            cost = (now_ms - self._last_ms) / frames
            share = _EWMA_SHARE
            old = self._ms_per_frame
            self._ms_per_frame = cost if old is None else old + share * (cost - old)
        self._last_ms = now_ms
        history = self._reference + (self._sent if self._windows else 0)
        carries = frames > 0 and (self._windows or self._chunks == 0)
        left = min(history, self.rules.left_context_frames) if carries else 0
        self._sent += frames
        self._chunks += 1
        self._last_target = frames
        self._finished = finished
        return Emission(made, frames, left, finished)


def _checked_ramp(rules: ChunkRules) -> tuple[int, ...]:
    ramp = rules.ramp
    if len(ramp) < 2 or any(frames < 1 for frames in ramp):
        if ramp:
            _log.warning("ramp %s is not used: expected two or more positive chunks", list(ramp))
        return ()
    if ramp[-1] != rules.chunk_frames:
        _log.warning(
            "ramp %s ends with %d frames, steady chunks have %d", list(ramp), ramp[-1],
            rules.chunk_frames,
        )
    # The decoder takes no more than a steady chunk at once; vLLM-Omni raises there.
    return tuple(min(frames, rules.chunk_frames) for frames in ramp)
