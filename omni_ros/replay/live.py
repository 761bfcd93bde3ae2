# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compares what a running graph decides with what was recorded, chunk by chunk.

The same comparison, and the same words, as of a replay without a graph; what this one did is known from
the records of its stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles import Bundle, manifest_hash
from omni_ros.bundles.manifest import read_manifest
from omni_ros.policy.bundle_parts import conventions_of, normaliser
from omni_ros.replay.changes import manifest_changes
from omni_ros.replay.configuration import changed, versions
from omni_ros.replay.contents import Contents, to_ns
from omni_ros.replay.fingerprints import read_fingerprint
from omni_ros.replay.locate import Place, by_names, guess, locate
from omni_ros.replay.plans import FUSION, HEAD, VISION, Plan
from omni_ros.replay.running import Done
from omni_ros.replay.verdict import ChunkVerdict, Kind, compare_rows
from omni_ros.robot import Robot
from omni_ros.stages.fit import fit_robot

STAGES = (VISION, FUSION, HEAD)


@dataclass
class Expectation:
    """How close a chunk has to be.

    :param tolerance: None if not a bit may differ; `why_not` says what speaks against that.
    :param spread: of each joint, what differences are measured by.
    :param centre: of each joint, its units where the network says 0; 0 for those left out.
    :param decode: from the network's numbers and the state to actions in units, as the bundle has it.
    """

    tolerance: float | None
    spread: dict[str, float]
    why_not: list[str] = field(default_factory=list)
    decode: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    centre: dict[str, float] = field(default_factory=dict)


def expect(contents: Contents, bundle: Path, robot: Robot, tolerance: float | None = None
           ) -> Expectation:
    """Return what may be expected of a bundle that runs now.

    :param tolerance: instead of the bundle's.
    :raises BundleError, ValueError: the bundle cannot be read, or does not fit the robot.
    """
    manifest = read_manifest(bundle)
    fit = fit_robot(manifest, robot, robot.policy.cameras if robot.policy else None)
    action = normaliser(Bundle(bundle, manifest), "action")
    ones = np.ones((1, action.width), np.float32)
    spread = np.abs(np.float64(action.inverse(ones) - action.inverse(0 * ones)))[0]
    centre = np.float64(action.inverse(0 * ones))[0]
    why_not = []
    if contents.info is None:
        why_not.append("the bag does not say what it was recorded with")
    else:
        before = dict(zip(map(str, contents.info.version_names), map(str, contents.info.version_values)))
        why_not += [f"{name} differs" for name in changed(before, versions())]
        text = (bundle / "bundle.yaml").read_text(encoding="utf-8")
        if str(contents.info.bundle) != manifest_hash(bundle) and (
                manifest_changes(str(contents.info.manifest), text)):
            why_not.append("it is another bundle than was recorded")
    allowed = manifest.tolerance.across_machines if why_not else None
    conventions = conventions_of(manifest)
    return Expectation(
        allowed if tolerance is None else tolerance, dict(zip(fit.action_names, spread.tolist())),
        why_not, lambda normalised, state: conventions.decode(action.inverse(normalised), state),
        dict(zip(fit.action_names, centre.tolist())))


def judge(plan: Plan, chunk: Any, records: Mapping[str, Any], expected: Expectation) -> ChunkVerdict:
    """Compare one chunk.

    :param chunk: the ActionChunk that the graph gave now. :param records: StageRecord by stage.
    """
    then, names = plan.chunk, plan.chunk.joint_names
    now = np.array(chunk.values, np.float64).reshape(chunk.rows, -1)
    told = tuple(map(str, chunk.joint_names))
    replayed = by_names(now, told, names)
    times = _times(chunk)
    facts = {"chunk_id": then.chunk_id, "stamp_ns": then.stamp_ns, "recorded": then.values,
             "dt_ns": then.dt_ns, "recorded_times": dict(then.timings), "times": times}
    if replayed is None:
        return ChunkVerdict(Kind.DIFFERENT, text=f"it moves {', '.join(told)}; recorded were "
                            f"{', '.join(names)}", stage="joint order", worst=float("inf"), **facts)
    facts["replayed"] = replayed
    spread = np.maximum([expected.spread.get(name, 1.0) for name in names], 1e-12)
    centre = [expected.centre.get(name, 0.0) for name in names]
    rows = compare_rows(then.values, replayed, tolerance=expected.tolerance, names=names,
                        spread=spread, centre=centre)
    facts |= {"worst": rows.worst, "by_joint": rows.by_joint}
    if rows.kind is Kind.SAME:
        return ChunkVerdict(Kind.SAME, text=rows.text, **facts)
    doubt = _other_circumstances(plan, records)
    if doubt:
        return ChunkVerdict(Kind.INCOMPLETE, text=f"{doubt}; {rows.text}", missing=(doubt,), **facts)
    done = _done(now, told, records)
    place = _place(plan, done, expected) if done is not None else None
    kind, text = rows.kind, rows.text
    if kind is Kind.WITHIN and place is not None and place.host:
        kind, text = Kind.DIFFERENT, f"{text}; but what differs is not the programs' rounding"
    if place is not None:
        text = f"first at {place.stage} ({place.text}); {text}"
    return ChunkVerdict(kind, text=text, stage=place.stage if place else "", **facts)


def _place(plan: Plan, done: Done, expected: Expectation) -> Place | None:
    """Return where a chunk first differs, as far as the records tell."""
    if expected.decode is not None and (plan.recorded or plan.state is not None):
        def decode(normalised: np.ndarray) -> np.ndarray:
            return expected.decode(normalised, np.asarray(done.state, np.float32))

        place = locate(plan, done, decode, tolerance=expected.tolerance)
        if place is not None:
            return place
    return guess(plan, done)


def unanswered(plan: Plan, why: str) -> ChunkVerdict:
    """Return the verdict on an observation of which nothing came."""
    return ChunkVerdict(Kind.INCOMPLETE, plan.chunk.chunk_id, plan.chunk.stamp_ns, why, missing=(why,),
                        recorded=plan.chunk.values, dt_ns=plan.chunk.dt_ns,
                        recorded_times=dict(plan.chunk.timings))


def _other_circumstances(plan: Plan, records: Mapping[str, Any]) -> str:
    """Say what was not the same about the observation, so that the chunk could not be; "" if nothing."""
    vision, head = records.get(VISION), records.get(HEAD)
    if vision is not None:
        if plan.instruction and vision.instruction.strip() != plan.instruction:
            return f"the sentence was {vision.instruction!r}, recorded was {plan.instruction!r}"
        taken = dict(zip(vision.joint_names, vision.positions))
        if plan.positions and any(taken.get(name) != value for name, value in plan.positions.items()):
            return "another joint state was taken than then"
        stamps = dict(zip(vision.cameras, map(to_ns, vision.picture_stamps)))
        for wanted in plan.wanted:
            if stamps.get(wanted.camera, wanted.stamp_ns) != wanted.stamp_ns:
                return f"another picture of {wanted.camera} was taken than then"
    if head is not None and head.guided:
        before = 0 if plan.leftover is None else plan.leftover.size
        if plan.delay != head.delay_rows:
            return (f"real-time chunking held {plan.delay} rows of the chunk before, and {head.delay_rows} "
                    "now: that follows how long chunks take")
        if before != len(head.leftover) or (
                before and not np.array_equal(plan.leftover.ravel(), np.array(head.leftover))):
            return "real-time chunking went on from another chunk than then"
    return ""


def _done(now: np.ndarray, names: tuple[str, ...], records: Mapping[str, Any]) -> Done | None:
    if any(stage not in records for stage in STAGES):
        return None
    vision, fusion, head = (records[stage] for stage in STAGES)
    prints = {one.name: read_fingerprint(one) for stage in STAGES for one in records[stage].fingerprints}
    mask = np.array(fusion.prompt_mask, bool)
    return Done(
        actions=now, names=names,
        normalised=np.array(head.normalised, np.float32).reshape(len(now), -1),
        state=np.array(vision.state, np.float64),
        prompt=np.where(mask, np.array(fusion.prompt, np.int64), -1), steps=int(head.steps),
        prints=prints)


def _times(chunk: Any) -> dict[str, float]:
    times: dict[str, float] = {}
    for one in chunk.timings:
        seconds = one.duration.sec + one.duration.nanosec * 1e-9
        times[one.stage] = times.get(one.stage, 0.0) + seconds
    return times
