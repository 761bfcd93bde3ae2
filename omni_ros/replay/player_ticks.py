# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When a recorded player ticked, which command came of each tick, and when it took each chunk.

A bag says when a message reached the recorder, which on a busy machine is long after. The player's
status knows better: its stamp is a tick's own time, with how many ticks, missed ones and commands there
were until then, which command was the last, which chunk is played and for how long it has been there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omni_ros.replay.contents import to_ns

#: Commands over which the shortest way from the player to the recorder is looked for.
_WINDOW = 101
#: A pause of the commands longer than this is not filled with ticks, seconds.
_LONGEST_PAUSE_S = 600.0


@dataclass(frozen=True)
class Tick:
    """One tick. `command`: index of the recorded command that came of it, None if none did."""

    now_ns: int
    command: int | None


def ticks_of(commands: Sequence[tuple[int, np.ndarray]], statuses: Sequence[Any], period_ns: int
             ) -> tuple[list[Tick], bool]:
    """Return the ticks of a recording, and whether the statuses told them.

    :param commands: when each came to the recorder, and its values in the order of the joints.
    :param statuses: PlayerStatus messages in their order.
    """
    known = _from_statuses(commands, statuses, period_ns)
    if known:
        return known, True
    return _from_times([at for at, _ in commands], period_ns), False


def arrivals(statuses: Sequence[Any]) -> dict[tuple[str, int, int], int]:
    """Return when chunks were taken, as the statuses tell: by source, chunk_id and stamp."""
    found = {}
    for one in statuses:
        if int(one.chunk_id) and np.isfinite(one.chunk_age):
            key = str(one.source), int(one.chunk_id), to_ns(one.observation_stamp)
            found[key] = to_ns(one.header.stamp) - round(float(one.chunk_age) * 1e9)
    return found


def _from_statuses(commands: Sequence[tuple[int, np.ndarray]], statuses: Sequence[Any],
                   period_ns: int) -> list[Tick]:
    """Return the ticks between the first and the last status; [] if they do not fit the commands."""
    offset = _offset(commands, statuses)
    if offset is None:
        return []
    ticks: list[Tick] = []
    before = None
    for one in statuses:
        if before is None or int(one.ticks) < int(before.ticks):
            before, ticks = one, []  # a player that was started anew counts from 0
            continue
        count = int(one.ticks) - int(before.ticks)
        sent = min(count, int(one.commands) - int(before.commands))
        # A change of state is said at once, so ticks without a command are those before one.
        indices = [int(one.commands) - (count - number) - 1 + offset for number in
                   range(1, count + 1)]
        indices = [index if number >= count - sent and 0 <= index < len(commands) else None
                   for number, index in enumerate(indices)]
        steps = _steps(commands, indices)
        late = int(np.argmax(steps)) if len(steps) else 0
        missed = int(one.ticks_missed) - int(before.ticks_missed)
        begin_ns, end_ns = to_ns(before.header.stamp), to_ns(one.header.stamp)
        for at, index in zip(_spread(begin_ns, end_ns, count, missed, late, period_ns), indices):
            ticks.append(Tick(at, index))
        before = one
    return ticks


def _spread(begin_ns: int, end_ns: int, count: int, missed: int, late: int, period_ns: int
            ) -> list[int]:
    """Return the times of `count` ticks after `begin_ns`, the last at `end_ns`.

    Where deadlines were missed, ticks are a period apart but before one, `late`, that came after them
    all; or that came so late that a deadline counted as missed, and the next one was in time again.
    """
    whole = round((end_ns - begin_ns) / period_ns)
    parts = np.ones(count)
    if missed > 0 and count:
        if whole >= count + missed:
            parts[late] += missed
        else:
            parts[late] += 0.6
            if late + 1 < count:
                parts[late + 1] -= 0.6
    share = np.cumsum(parts) / max(1e-9, parts.sum())
    return [begin_ns + round((end_ns - begin_ns) * float(part)) for part in share]


def _steps(commands: Sequence[tuple[int, np.ndarray]], indices: Sequence[int | None]) -> np.ndarray:
    """Return how far each command went beyond what the two about it did; 0 where that is not known."""
    found = np.zeros(len(indices))
    for at, index in enumerate(indices):
        if index is not None and 1 < index < len(commands) - 1:
            before, step, after = (float(np.abs(commands[index + by][1] - commands[index + by - 1][1]
                                                ).sum()) for by in (-1, 0, 1))
            found[at] = step - 0.5 * (before + after)
    return found


def _offset(commands: Sequence[tuple[int, np.ndarray]], statuses: Sequence[Any]) -> int | None:
    """Return what to add to a status's count of commands to get an index of those recorded.

    The last command is on the status too, bit for bit; where the arm moves it is like no other.
    """
    at: dict[bytes, list[int]] = {}
    for index, (_, values) in enumerate(commands):
        at.setdefault(values.tobytes(), []).append(index)
    votes: Counter[int] = Counter()
    for one in statuses:
        for values in (one.command_position, one.command_velocity):
            found = at.get(np.ascontiguousarray(values, np.float64).tobytes(), ())
            if len(found) == 1 and int(one.commands):
                votes[found[0] - (int(one.commands) - 1)] += 1
    best = votes.most_common(1)
    return best[0][0] if best and best[0][1] >= 2 else None


def _from_times(received: list[int], period_ns: int) -> list[Tick]:
    """Return ticks as the times of the commands tell.

    Ticks are a period apart and a command leaves at once, so the commands that came soonest after their
    tick tell when that was. A pause in the commands is filled with ticks that gave none.
    """
    log = np.array(received, np.int64)
    steps = np.maximum(1, np.rint(np.diff(log) / period_ns).astype(np.int64))
    steps = np.minimum(steps, round(_LONGEST_PAUSE_S * 1e9 / period_ns))
    number = np.concatenate([[0], np.cumsum(steps)])
    late = log - number * period_ns
    half = _WINDOW // 2
    base = np.array([late[max(0, at - half):at + half + 1].min() for at in range(len(late))])
    ticks: list[Tick] = []
    for index, at in enumerate((number * period_ns + base).tolist()):
        missing = int(number[index] - number[index - 1]) - 1 if index else 0
        ticks += [Tick(ticks[-1].now_ns + step * period_ns, None) for step in range(1, missing + 1)]
        ticks.append(Tick(at, index))
    return ticks
