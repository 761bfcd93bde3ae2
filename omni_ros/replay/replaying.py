# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recording done again: every chunk computed once more from what it was decided from, and compared.

    result = replay("bags/pick", "pick_place.bundle")
    result.overall                   # Kind.SAME, WITHIN, INCOMPLETE or DIFFERENT
    print(summary(result))           # omni_ros.replay.summary
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles.named import bundle_folder
from omni_ros.replay.bag import Bag, Problem
from omni_ros.replay.changes import Change, manifest_changes, robot_changes, version_changes
from omni_ros.replay.comparing import Judge
from omni_ros.replay.configuration import changed, read_configuration, versions
from omni_ros.replay.contents import Contents, read_contents
from omni_ros.replay.feeding import feed
from omni_ros.replay.plans import HEAD, Plan, make_plans
from omni_ros.replay.running import Done, Runner
from omni_ros.replay.verdict import Kind, Tally, worst_of
from omni_ros.robot import Robot, load_robot
from omni_ros.robot.files import robot_file
from omni_ros.robot.load import robot_from_text

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """How to replay.

    :param robot: a robot YAML or its name, instead of the recorded one. :param namespace, source: which
        policy of a bag with several ones. :param instruction: where none was recorded.
    :param tolerance: instead of the bundle's. :param strict: not a bit may differ, whatever was changed.
    :param threads: of the programs; None leaves their number as it is.
    """

    robot: str = ""
    namespace: str = ""
    source: str = ""
    instruction: str | None = None
    tolerance: float | None = None
    strict: bool = False
    threads: int | None = None


@dataclass
class Replay:
    """What came of it.

    :param against: name of the bundle that was compared with instead of the recording, "" if none.
    :param bits: whether not a bit was allowed to differ; `why_not` says what speaks against it.
    :param seconds: by part: "read" (bag, pictures), "policy", "compare", "total" (all but opening).
    """

    bag: str
    bundle: str
    sha256: str
    recorded_sha256: str
    against: str = ""
    bits: bool = True
    why_not: list[str] = field(default_factory=list)
    tolerance: float = 0.0
    derived: bool = False
    joint_names: tuple[str, ...] = ()
    joint_units: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    player: Any = None
    remote: Any = None

    @property
    def overall(self) -> Kind:
        """The verdict on all of it."""
        kinds = [self.tally.overall]
        if self.missing or any(problem.lost for problem in self.problems):
            kinds.append(Kind.INCOMPLETE)
        kinds += [part.kind for part in (self.player, self.remote) if part is not None]
        return worst_of(kinds)


def replay(bag: str | os.PathLike[str], bundle: str | os.PathLike[str], *,
           against: str | os.PathLike[str] | None = None, options: Options = Options(),
           progress: Progress | None = None) -> Replay:
    """Compute each chunk of a bag again and compare.

    :param bundle: a folder, or a name as `bundle:=` takes it. :param against: another bundle; the two
        are compared on what was recorded, and the recorded chunks are left aside.
    :param progress: called with chunks done and chunks in all.
    :raises ValueError: bag, bundle or robot cannot be used, or do not fit; it says what to change.
    """
    with Bag(Path(bag)) as opened:
        contents = read_contents(opened, options.namespace)
        robot, robot_text = robot_of(contents, options.robot)
        runner = Runner(bundle_folder(str(bundle)), robot, threads=options.threads)
        other = None
        try:
            if against is not None:
                other = Runner(bundle_folder(str(against)), robot, threads=options.threads)
            return _Replaying(contents, runner, other, options, robot_text).run(progress)
        finally:
            runner.close()
            if other is not None:
                other.close()


def replay_with(bag: str | os.PathLike[str], runner: Runner, *, options: Options = Options()
                ) -> Replay:
    """Like :func:`replay`, with a bundle that is open already; it is left open."""
    with Bag(Path(bag)) as opened:
        contents = read_contents(opened, options.namespace)
        _, robot_text = robot_of(contents, options.robot)
        return _Replaying(contents, runner, None, options, robot_text).run(None)


def robot_of(contents: Contents, given: str = "") -> tuple[Robot, str]:
    """Return the robot that was recorded, or the one that is given, and its text.

    :raises ValueError: neither.
    """
    if given:
        path = robot_file(given)
        return load_robot(path), path.read_text(encoding="utf-8")
    if contents.info is None:
        raise ValueError(f"{contents.bag.path} does not say which robot it was recorded with: give its "
                         "YAML by --robot")
    text, _ = read_configuration(str(contents.info.configuration_yaml))
    return robot_from_text(text, str(contents.bag.path)), text


class _Replaying:
    def __init__(self, contents: Contents, runner: Runner, other: Runner | None, options: Options,
                 robot_text: str) -> None:
        self.contents, self.runner, self.other, self.options = contents, runner, other, options
        info = contents.info
        self.result = Replay(
            bag=str(contents.bag.path), bundle=runner.manifest.name, sha256=runner.sha256,
            recorded_sha256="" if info is None else str(info.bundle),
            against=other.manifest.name if other else "", versions=versions(),
            joint_names=runner.fit.action_names, joint_units=runner.fit.action_units,
            problems=contents.problems)
        self._expectation(robot_text)
        result = self.result
        self.judge = Judge(runner, None if result.bits else result.tolerance, result.changes)

    def _expectation(self, robot_text: str) -> None:
        """Decide whether bits have to be equal, and note what was changed since."""
        result, info = self.result, self.contents.info
        tolerance = self.runner.manifest.tolerance.across_machines
        text = (self.runner.policy.bundle.root / "bundle.yaml").read_text(encoding="utf-8")
        if self.other is not None:
            tolerance = max(tolerance, self.other.manifest.tolerance.across_machines)
            theirs = (self.other.policy.bundle.root / "bundle.yaml").read_text(encoding="utf-8")
            result.changes = manifest_changes(text, theirs)
            if self.other.sha256 != self.runner.sha256:
                result.why_not.append("two bundles are compared")
        elif info is None:
            result.why_not.append("the bag does not say what it was recorded with")
        else:
            before = dict(zip(map(str, info.version_names), map(str, info.version_values)))
            recorded_robot, _ = read_configuration(str(info.configuration_yaml))
            result.changes = (robot_changes(recorded_robot, robot_text)
                              + manifest_changes(str(info.manifest), text)
                              + version_changes(before, result.versions))
            result.why_not += [f"{name} differs" for name in changed(before, result.versions)]
            # Exported again from the same checkpoint it has another date, and is the same.
            if result.recorded_sha256 != result.sha256 and manifest_changes(str(info.manifest), text):
                result.why_not.append("it is another bundle than was recorded")
        result.bits = self.options.strict or not result.why_not
        result.tolerance = tolerance if self.options.tolerance is None else self.options.tolerance
        if self.options.tolerance is not None and not self.options.strict:
            result.bits = False

    def run(self, progress: Progress | None) -> Replay:
        result, contents = self.result, self.contents
        began = time.perf_counter()
        plans = make_plans(contents, self.runner.robot, self.runner.fit, source=self.options.source,
                           instruction=self.options.instruction)
        result.derived = any(plan.derived for plan in plans)
        self._missing_chunks(plans)
        order = {id(plan): index for index, plan in enumerate(plans)}
        verdicts: list[Any] = [None] * len(plans)
        policy_s = 0.0
        for number, (plan, images) in enumerate(feed(contents, plans), 1):
            if plan.missing:
                verdicts[order[id(plan)]] = self.judge.unknown(plan)
            else:
                try:
                    plan = self._reference(plan, images)
                except (ValueError, FloatingPointError) as error:
                    verdict = self.judge.impossible(plan, f"{result.against} cannot compute it: {error}")
                else:
                    verdict = self.judge.judge(plan, images)
                policy_s += verdict.times["policy"]
                verdicts[order[id(plan)]] = verdict
            if progress is not None:
                progress(number, len(plans))
        result.tally = Tally([verdict for verdict in verdicts if verdict is not None])
        total = time.perf_counter() - began
        result.seconds = {"policy": policy_s, "total": total, "around": total - policy_s}
        frames = dict.fromkeys(what for plan in plans for what in plan.missing)
        result.missing += list(frames)
        return result

    def _reference(self, plan: Plan, images: dict[str, np.ndarray]) -> Plan:
        """Return the plan with what it is compared with: as recorded, or the other bundle's."""
        if self.other is None:
            return plan
        return compared_with(plan, self.other.run(plan, images, look=True))

    def _missing_chunks(self, plans: list[Plan]) -> None:
        """List chunks that a stage says it made and that are not in the bag, and others' chunks."""
        contents, known = self.contents, {(plan.chunk.stamp_ns, plan.chunk.chunk_id) for plan in plans}
        for (stage, stamp_ns, _), record in contents.records.items():
            if stage == HEAD and (stamp_ns, int(record.chunk_id)) not in known:
                self.result.missing.append(f"chunk {int(record.chunk_id)}, stamped "
                                           f"{stamp_ns * 1e-9:.6f} s")
        ours = {plan.chunk.source for plan in plans}
        others: dict[str, int] = {}
        for chunk in contents.chunks:
            if chunk.source not in ours:
                others[chunk.source] = others.get(chunk.source, 0) + 1
        self.result.passed_over = [f"{count} chunks of {source}" for source, count in others.items()]


def compared_with(plan: Plan, done: Done) -> Plan:
    """Turn a plan into one whose recorded side is what another run gave; the same object, changed."""
    plan.chunk = replace(plan.chunk, values=done.actions.astype(np.float64), joint_names=done.names)
    plan.state, plan.prompt, plan.normalised = done.state, done.prompt, done.normalised
    plan.recorded, plan.steps = done.prints, done.steps
    return plan
