# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which process computes on which cpus, with how many threads, and why.

A pure function of the hardware and of what the user overrides, so that each process can ask for
itself and all come to the same answer. Nothing is bound here: see `telemetry.realtime`.

The stages of a policy take turns (one observation is in flight), so each gets all the cores there
are for inference; dividing these among them would only leave some idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omni_ros.telemetry.cpulist import format_cpus
from omni_ros.telemetry.hardware import Hardware
from omni_ros.telemetry.overrides import (
    PLAYER,
    PROCESSES,
    SEPARATE,
    SINGLE,
    TTS,
    Override,
    PlacementError,
    load_overrides,
    overrides_from,
)

__all__ = [
    "PLAYER", "PROCESSES", "SEPARATE", "SINGLE", "TTS", "Override", "Placement", "PlacementError",
    "Share", "load_overrides", "overrides_from", "place",
]  # fmt: skip

#: With fewer cores the player gets none to itself: inference on the other would then have to share
#: with cameras, drivers and all the rest.
CORES_FOR_A_PLAYERS_OWN = 3
#: From as many fast cores on, one is left to cameras, drivers and the rest of the graph.
CORES_TO_SPARE_ONE = 6
#: The player takes a slow core if it is at least this fast, relative to the fastest: its tick at
#: 50 Hz takes 8 % of a fast core, so a slower one would leave little room for higher rates.
SLOW_ENOUGH = 0.5
#: Speech can wait a little, a chunk cannot: a tenth of the weight.
TTS_NICE = 10
#: Where the player must share its only core, the kernel lets it go first.
ONE_CORE_NICE = 5


@dataclass(frozen=True)
class Share:
    """What one process gets.

    :param cpus: bind the thread that computes, and so those it starts, to these; () for no binding.
    :param process_cpus: bind the rest of the process to these; () for no binding.
    :param threads: for `programs.set_threads`; 1 for the player.
    :param nice: priority of the threads that compute; higher gives way.
    """

    cpus: tuple[int, ...]
    process_cpus: tuple[int, ...]
    threads: int
    nice: int = 0

    def __str__(self) -> str:
        where = f"cpu{'s' if len(self.cpus) > 1 else ''} {format_cpus(self.cpus)}"
        where = where if self.cpus else "any cpu"
        count = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        return f"{where}, {count}" + (f", nice {self.nice}" if self.nice else "")


@dataclass(frozen=True)
class Placement:
    """The shares of all processes.

    :param why: one or two sentences with the numbers that decided.
    :param notes: compromises and doubts, each a sentence.
    """

    shares: Mapping[str, Share]
    why: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Share:
        return self.shares[name]

    @property
    def player(self) -> Share:
        """The share of the player."""
        return self.shares[PLAYER]

    def text(self, name: str) -> str:
        """What goes on a status: the share of a process, why, and what to know."""
        return " ".join([f"{self.shares[name]}.", self.why, *self.notes])


@dataclass(frozen=True)
class _Plan:
    """Before overrides: where the player and inference go."""

    player: tuple[int, ...]
    inference: tuple[int, ...]
    others: tuple[int, ...]
    why: str


def place(hardware: Hardware, stages: Sequence[str] = SEPARATE,
          overrides: Mapping[str, Override] | None = None) -> Placement:
    """Choose cpus and threads for the player and for the processes named.

    :param stages: names of PROCESSES, for example (*SEPARATE, TTS).
    :param overrides: what the user wants otherwise; names that are not placed are ignored.
    :raises PlacementError: an unknown name, or a cpu that this process may not use.
    """
    overrides = {name: o for name, o in (overrides or {}).items() if name in (PLAYER, *stages)}
    for name in stages:
        if name not in PROCESSES:
            raise PlacementError(f"{name!r} is no process: known are {', '.join(PROCESSES)}")
    usable = {*hardware.usable, *hardware.isolated} & set(hardware.cpuset) or set(hardware.usable)
    for name, override in overrides.items():
        absent = set(override.cpus or ()) - usable
        if absent:
            raise PlacementError(
                f"placement: {name}: cpus {format_cpus(absent)} cannot be used: "
                f"choose from {format_cpus(usable)} ({hardware.summary()})")
    plan = _plan(hardware, overrides.get(PLAYER, Override()).cpus)
    threads, quota_note = _threads(hardware, plan.inference)
    cores = len(hardware.cores(hardware.usable))
    notes = [quota_note] if quota_note else []
    shares = {PLAYER: Share(plan.player, plan.player, 1)}
    for name in stages:
        nice = ONE_CORE_NICE if cores == 1 else 0
        count = threads
        if name == TTS:
            nice, count = nice + TTS_NICE, max(1, threads // 2)
        shares[name] = Share(plan.inference, plan.others, count, nice)
    for name, override in overrides.items():
        shares[name], note = _overridden(hardware, plan, name, shares[name], override)
        if note:
            notes.append(note)
    if overrides:
        notes.append(f"Overridden: {', '.join(sorted(overrides))}.")
    if hardware.source != "/":
        notes.append(f"Chosen for the hardware of {hardware.source}, not of this machine.")
    return Placement(shares, plan.why, tuple(notes))


def _plan(hardware: Hardware, wanted: tuple[int, ...] | None) -> _Plan:
    fast = hardware.cores(n for n in hardware.usable if hardware.is_fast(n))
    slow = hardware.cores(n for n in hardware.usable if not hardware.is_fast(n))
    if not fast:  # only slow ones are allowed: then they are all there is
        fast, slow = slow, {}
    count = len(fast) + len(slow)
    isolated = tuple(n for n in hardware.isolated
                     if n in hardware.cpuset and n not in hardware.usable)
    if wanted is not None:
        player, why = wanted, f"The player's cpus {format_cpus(wanted)} are given."
    elif isolated:
        player = isolated[-1:]
        why = f"The player has cpu {player[0]}, which the kernel keeps for it (isolcpus)."
    elif count < CORES_FOR_A_PLAYERS_OWN:
        return _shared(hardware, fast, slow, count)
    else:
        player, why = _own_core(hardware, fast, slow)
    taken = {s for n in player for s in hardware.siblings(n)}
    free = {core: cpus for core, cpus in fast.items() if not taken & set(cpus)}
    if not free:  # the player's cpus are all of the fast ones: share rather than compute nowhere
        free = {core: cpus for core, cpus in slow.items() if not taken & set(cpus)} or fast
    why, free = _spare(hardware, free, slow, player, why)
    inference = tuple(cpus[0] for cpus in free.values())
    others = tuple(n for n in hardware.usable if n not in taken) or tuple(hardware.usable)
    kind = "fast " if slow else ""
    why += f" Inference has the {len(inference)} {kind}core{'' if len(inference) == 1 else 's'} " \
           f"{format_cpus(inference)}"
    threads = sum(len(cpus) for cpus in free.values())
    why += ", one hardware thread of each." if threads > len(free) else "."
    rest = [n for cpus in slow.values() for n in cpus if not {n} & {*taken, *inference}]
    if rest:
        why += f" The slow cores {format_cpus(rest)} are for the rest."
    return _Plan(player, inference, others, why)


def _shared(hardware: Hardware, fast: Mapping[int, tuple[int, ...]],
            slow: Mapping[int, tuple[int, ...]], count: int) -> _Plan:
    first = next(iter(fast.values()))[:1]
    if count == 1:
        return _Plan((), (), (), (
            "There is 1 core: the player shares it with inference, which gives way "
            f"(nice {ONE_CORE_NICE}); expect ticks late by milliseconds."))
    other = next(cpus for core, cpus in {**fast, **slow}.items() if core != hardware.by_number[
        first[0]].core)
    return _Plan((), first, (), (
        f"There are 2 cores: inference keeps to cpu {first[0]} with 1 thread and leaves cpu"
        f" {other[0]} alone. The player has no core to itself: it shares what is free with cameras, drivers and"
        " the rest."))


def _own_core(hardware: Hardware, fast: Mapping[int, tuple[int, ...]],
              slow: Mapping[int, tuple[int, ...]]) -> tuple[tuple[int, ...], str]:
    """The player's core: the last of the smallest cluster, far from cpu 0 and its interrupts."""
    speed = max((hardware.speed(core) for core in slow), default=0.0)
    take_slow = bool(slow) and (speed >= SLOW_ENOUGH or len(fast) < CORES_FOR_A_PLAYERS_OWN)
    choice = slow if take_slow else fast
    if take_slow:  # the fastest of the slow ones
        choice = {c: cpus for c, cpus in slow.items() if hardware.speed(c) >= 0.95 * speed}
    clusters: dict[int, list[int]] = {}
    for core in choice:
        clusters.setdefault(hardware.by_number[core].cluster, []).append(core)
    core = min(clusters.values(), key=lambda cores: (len(cores), -max(cores)))[-1]
    total = len(fast) + len(slow)
    why = f"Of {total} cores the player has cpu {choice[core][0]}, which inference stays off"
    if take_slow:
        why += f"; it is a slow one ({speed:.2f} of the fastest)"
    elif slow:
        why += f" (the slow ones have {speed:.2f} of its speed)"
    if len(choice[core]) > 1:
        idle = format_cpus(n for n in choice[core][1:])
        why += f"; its sibling cpu {idle} computes nothing"
    return choice[core][:1], why + "."


def _spare(hardware: Hardware, free: dict[int, tuple[int, ...]],
           slow: Mapping[int, tuple[int, ...]], player: tuple[int, ...],
           why: str) -> tuple[str, dict[int, tuple[int, ...]]]:
    """Leave a core to the rest of the graph if there are many and no slow ones for that."""
    if slow or len(free) + 1 < CORES_TO_SPARE_ONE:
        return why, free
    cluster = hardware.by_number[player[0]].cluster
    beside = [core for core in free if hardware.by_number[core].cluster == cluster]
    # If that empties the player's cluster, the caches of all others belong to inference alone.
    spared = beside[0] if len(beside) == 1 else next(iter(free))
    why += f" Core {spared} is left to cameras, drivers and the rest."
    return why, {core: cpus for core, cpus in free.items() if core != spared}


def _threads(hardware: Hardware, cpus: tuple[int, ...]) -> tuple[int, str]:
    """Threads for inference on these cpus, and a note if a quota decides."""
    count = max(len(hardware.cores(cpus)), 1)
    if hardware.quota is None or math.floor(hardware.quota) - 1 >= count:
        return count, ""
    threads = min(count, max(math.floor(hardware.quota) - 1, 1))
    note = f"A quota of {hardware.quota:g} cores limits inference to {threads} thread" \
           f"{'' if threads == 1 else 's'}, one core's worth being the player's."
    if hardware.quota < 2:
        note = f"Inference can use up the quota of {hardware.quota:g} cores, and then the kernel" \
               " stops the player too for the rest of a period: raise the quota to 2 or more."
    return threads, note


def _overridden(hardware: Hardware, plan: _Plan, name: str, share: Share,
                override: Override) -> tuple[Share, str]:
    note = ""
    if override.cpus is not None:
        threads = share.threads
        if name != PLAYER:
            threads, _ = _threads(hardware, override.cpus)
            shared = {s for n in plan.player for s in hardware.siblings(n)} & set(override.cpus)
            if shared:
                note = f"{name} computes on the player's core (cpus {format_cpus(shared)})."
        share = replace(share, cpus=override.cpus, threads=threads)
        if share.process_cpus and name != PLAYER:
            share = replace(share, process_cpus=tuple(
                sorted({*share.process_cpus, *override.cpus} - set(plan.player)) or override.cpus))
        elif name == PLAYER:
            share = replace(share, process_cpus=override.cpus)
    if override.threads is not None:
        share = replace(share, threads=override.threads)
        if override.cpus is None and override.threads > len(share.cpus):
            # More threads than the cores chosen for it: only the whole machine can hold them.
            share = replace(share, cpus=())
            note = f"{name} has more threads than cores were chosen for it, so it is not bound."
        elif override.threads > len(share.cpus) > 0:
            note = f"{name} has {override.threads} threads on {len(share.cpus)} cpus: they wait " \
                   "for each other."
    if override.nice is not None:
        share = replace(share, nice=override.nice)
    return share, note
