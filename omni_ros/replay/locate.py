# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where a chunk that came out otherwise first differs, on its way from pictures to joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from omni_ros.replay.fingerprints import (
    IMAGE_TOKENS, PICTURE, PIXELS, PREFIX, STATE, STEP, VALID, Fingerprint)
from omni_ros.replay.plans import Plan
from omni_ros.replay.running import Done

#: Stages in their order. The first group is arithmetic of the host, which no other machine or version
#: explains: whatever differs there was changed.
ORDER, UNITS, PICTURES, PIXEL, TOKENS, NORMALISATION, NOISE = (
    "joint order", "units", "picture", "pixels", "tokens", "normalisation", "noise")
VISION, PREFIX_STAGE, STEPS = "vision encoder", "prefix", "step"
HOST = (ORDER, UNITS, PICTURES, PIXEL, TOKENS, NORMALISATION, NOISE)
#: What other rounding of a host's float32 can come to, of a value of 1.
_ROUNDING = 1e-6

#: From normalised actions to units, f32 [rows, action] both.
Decode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Place:
    """Where it first differs. `host`: in arithmetic that other machines do not do otherwise."""

    stage: str
    text: str
    host: bool = False


def locate(plan: Plan, done: Done, decode: Decode, *, tolerance: float | None) -> Place | None:
    """Return the first stage that differs from what was recorded; None if the recording cannot tell.

    :param done: run with `look`. :param decode: from the network's numbers to units, as it is now.
    :param tolerance: of what programs compute; None: no bit may differ.
    """
    for check in (_state, _pictures, _prompt, _normalised_state, _network):
        place = check(plan, done, tolerance)
        if place is not None:
            return place
    return _decoding(plan, done, decode)


def guess(plan: Plan, done: Done) -> Place | None:
    """Return the stage where actions alone tell it: joints changed over, or another scale of them."""
    recorded = plan.chunk.values
    replayed = by_names(done.actions.astype(np.float64), done.names, plan.chunk.joint_names)
    if replayed is None or recorded.shape != replayed.shape or len(recorded) < 4:
        return None
    order = _permutation(recorded.T, replayed.T)
    if order is not None:
        return Place(ORDER, _order_words(plan.chunk.joint_names, order), host=True)
    residual = 0.0
    for column in range(recorded.shape[1]):
        known = np.stack([replayed[:, column], np.ones(len(replayed))], axis=1)
        solution, *_ = np.linalg.lstsq(known, recorded[:, column], rcond=None)
        residual = max(residual, float(np.abs(known @ solution - recorded[:, column]).max()))
    if residual < 1e-6 * max(1.0, float(np.abs(recorded).max())):
        return Place(NORMALISATION, "the recorded actions are these on another scale: other "
                     "statistics of the actions", host=True)
    return None


def by_names(values: np.ndarray, names: Sequence[str], wanted: Sequence[str]) -> np.ndarray | None:
    """Return columns in another order of joints; None if the joints are others."""
    if sorted(names) != sorted(wanted):
        return None
    return values[:, [list(names).index(name) for name in wanted]]


def _state(plan: Plan, done: Done, _: float | None) -> Place | None:
    if plan.state is None or np.array_equal(plan.state, done.state):
        return None
    if plan.state.shape != done.state.shape:
        return Place(ORDER, f"the state has {len(done.state)} values, recorded were "
                     f"{len(plan.state)}", host=True)
    order = _permutation(plan.state[:, None], done.state[:, None])
    if order is not None:
        names = [f"value {index}" for index in range(len(order))]
        return Place(ORDER, "of the state: " + _order_words(names, order), host=True)
    worst = int(np.abs(plan.state - done.state).argmax())
    return Place(UNITS, f"value {worst} of the state was {plan.state[worst]:.6g} and is now "
                 f"{done.state[worst]:.6g} of the same joint positions", host=True)


def _pictures(plan: Plan, done: Done, _: float | None) -> Place | None:
    for name in done.prints:
        if name.startswith(PICTURE) and _apart(plan, done, name, 0.0) is not None:
            return Place(PICTURES, f"{name[len(PICTURE):]}: the bytes decode to another picture",
                         host=True)
    for name in done.prints:
        if name.startswith(PIXELS):
            apart = _apart(plan, done, name, _ROUNDING)
            if apart is not None:
                return Place(PIXEL, f"{name[len(PIXELS):]}: {_far(apart)}", host=True)
    return None


def _prompt(plan: Plan, done: Done, _: float | None) -> Place | None:
    if plan.prompt is None or np.array_equal(plan.prompt, done.prompt):
        return None
    before, now = (ids[ids >= 0] for ids in (plan.prompt, done.prompt))
    same = min(len(before), len(now))
    first = next((at for at in range(same) if before[at] != now[at]), same)
    return Place(TOKENS, f"{plan.instruction!r} was {len(before)} tokens and is {len(now)}, the first "
                 f"to differ is token {first}: {_at(before, first)} then, {_at(now, first)} now",
                 host=True)


def _normalised_state(plan: Plan, done: Done, _: float | None) -> Place | None:
    apart = _apart(plan, done, STATE, _ROUNDING)
    return None if apart is None else Place(
        NORMALISATION, f"of the state: {_far(apart)}", host=True)


def _network(plan: Plan, done: Done, tolerance: float | None) -> Place | None:
    limit = tolerance or 0.0
    for name in done.prints:
        if name.startswith(IMAGE_TOKENS):
            apart = _apart(plan, done, name, limit)
            if apart is not None:
                return Place(VISION, f"{name[len(IMAGE_TOKENS):]}: {_far(apart)}")
    for name, host in ((VALID, True), (PREFIX, False)):
        apart = _apart(plan, done, name, 0.0 if host else limit)
        if apart is not None:
            return Place(PREFIX_STAGE, ("which tokens count" if host else "keys and values")
                         + f": {_far(apart)}", host=host)
    apart = _apart(plan, done, f"{STEP}0", _ROUNDING)
    if apart is not None:
        return Place(NOISE, f"seed {plan.chunk.noise_seed} with this stamp gave other noise: "
                     f"{_far(apart)}", host=True)
    if plan.steps and plan.steps != done.steps:
        return Place(STEPS, f"the flow had {plan.steps} steps and has {done.steps}", host=True)
    for step in range(1, done.steps + 1):
        apart = _apart(plan, done, f"{STEP}{step}", limit)
        if apart is not None:
            return Place(f"{STEPS} {step}", f"of {done.steps}: {_far(apart)}")
    return None


def _decoding(plan: Plan, done: Done, decode: Decode) -> Place | None:
    """After the last step: what the recorded numbers of the network come to in units now."""
    if by_names(done.actions, done.names, plan.chunk.joint_names) is None:
        return Place(ORDER, f"the joints are {', '.join(done.names)}; recorded were "
                     f"{', '.join(plan.chunk.joint_names)}", host=True)
    if plan.normalised is None or plan.normalised.shape != done.normalised.shape:
        return None
    recorded, now = plan.chunk.values, decode(plan.normalised).astype(np.float64)
    if not np.allclose(recorded, now, rtol=_ROUNDING, atol=_ROUNDING):
        gap = np.abs(recorded - now).max(axis=0)
        worst = int(gap.argmax())
        return Place(NORMALISATION, f"of the actions: the network's numbers are the same, "
                     f"{plan.chunk.joint_names[worst]} differs by {gap[worst]:.2g}", host=True)
    if tuple(done.names) != plan.chunk.joint_names:
        moved = [f"column {at} moved {before} and moves {after}" for at, (before, after) in
                 enumerate(zip(plan.chunk.joint_names, done.names)) if before != after]
        return Place(ORDER, "of the actions: " + ", ".join(moved[:2]), host=True)
    return None


def _apart(plan: Plan, done: Done, name: str, limit: float) -> float | None:
    """Return how far a tensor is off, None if it is not, or if that is not known."""
    before, now = plan.recorded.get(name), done.prints.get(name)
    if before is None or now is None or before.same(now):
        return None
    distance = before.distance(now)
    return None if limit and distance <= limit * max(1.0, _size(before)) else distance


def _size(one: Fingerprint) -> float:
    return one.scale if math.isfinite(one.scale) else 1.0


def _far(distance: float) -> str:
    if not math.isfinite(distance):
        return "of another size, or not finite"
    return "off by a rounding" if distance == 0.0 else f"off by about {distance:.1e} (RMS)"


def _permutation(recorded: np.ndarray, replayed: np.ndarray) -> list[int] | None:
    """Return which row each recorded row was found in, None if it is the same order or no order."""
    order = []
    for row in recorded:
        close = [at for at, other in enumerate(replayed) if at not in order
                 and np.allclose(row, other, rtol=1e-6, atol=1e-9)]
        if not close:
            return None
        order.append(min(close, key=lambda at: at != len(order)))
    return None if order == list(range(len(order))) else order


def _order_words(names: Sequence[str], order: Sequence[int]) -> str:
    moved = [f"{names[at]} is where {names[now]} was" for now, at in enumerate(order) if at != now]
    return ", ".join(moved[:3]) + (", ..." if len(moved) > 3 else "")


def _at(ids: np.ndarray, index: int) -> str:
    return str(int(ids[index])) if index < len(ids) else "none"
