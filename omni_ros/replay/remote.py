# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a remote policy answers to the recorded observations, against what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles.named import bundle_folder
from omni_ros.policy.noise import noise as draw_noise
from omni_ros.policy.observation import Observation
from omni_ros.replay.bag import Bag
from omni_ros.replay.contents import read_contents
from omni_ros.replay.feeding import feed
from omni_ros.replay.locate import by_names
from omni_ros.replay.plans import make_plans
from omni_ros.replay.running import Runner
from omni_ros.replay.verdict import Kind, compare_rows


@dataclass
class RemoteReplay:
    """What came of it.

    :param kind: None where the remote draws its own noise: then two equal policies differ too.
    :param by_joint: largest differences, f64 [joints], in units. :param asked: chunks compared.
    """

    kind_or_none: Kind | None
    url: str
    joint_names: tuple[str, ...]
    joint_units: tuple[str, ...]
    by_joint: np.ndarray
    mean: np.ndarray
    asked: int
    refused: list[str]
    tolerance: float
    latency_p50: float

    @property
    def kind(self) -> Kind:
        """For the overall verdict: no verdict of its own spoils none."""
        return Kind.SAME if self.kind_or_none is None else self.kind_or_none

    def text(self) -> str:
        """What was found, in a line or two."""
        worst = ", ".join(f"{name} {value:.2g} {unit}" for name, value, unit in zip(
            self.joint_names, self.by_joint, self.joint_units))
        verdict = "no verdict, as it draws its own noise and two equal policies differ then too" if (
            self.kind_or_none is None) else self.kind_or_none.value
        refused = f"; {len(self.refused)} refused: {self.refused[0]}" if self.refused else ""
        return (f"{self.url} on {self.asked} of the observations: {verdict}; largest difference {worst}; "
                f"{1e3 * self.latency_p50:.0f} ms a reply (p50){refused}")

    def data(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "url": self.url, "verdict": self.kind_or_none.value if self.kind_or_none else None,
            "asked": self.asked, "refused": list(self.refused), "tolerance": self.tolerance,
            "difference": dict(zip(self.joint_names, self.by_joint.tolist())),
            "difference_mean": dict(zip(self.joint_names, self.mean.tolist())),
            "latency_p50": self.latency_p50,
        }

    def section(self) -> Any:
        """Return its part of the page."""
        from omni_ros.report.html import Section, Table

        rows = [(name, f"{worst:.3g}", f"{mean:.3g}", unit) for name, worst, mean, unit in zip(
            self.joint_names, self.by_joint, self.mean, self.joint_units)]
        return Section("Remote policy", self.text(), [
            Table(("joint", "largest difference", "mean", "unit"), rows)])


def replay_remote(bag: str | Path, bundle: str | Path, url: str, *, mapping: Path | None,
                  options: Any, progress: Callable[[int, int], None] | None = None,
                  timeout_s: float = 60.0) -> RemoteReplay:
    """Ask an OpenPI server for each recorded observation.

    :param bundle: whose cameras, joints and noise they are. :param options: a `replaying.Options`.
    :raises LinkError: the server does not answer. :raises ValueError: what does not fit.
    """
    from omni_ros.openpi.agreement import objection
    from omni_ros.openpi.client import RemotePolicy
    from omni_ros.openpi.mapping import load_mapping
    from omni_ros.openpi.settings import RemoteSettings
    from omni_ros.parity.openpi import Pairing, takes_noise
    from omni_ros.replay.replaying import robot_of

    read = None if mapping is None else load_mapping(mapping)
    settings = read.remote if read is not None and read.remote is not None else RemoteSettings(url)
    settings = replace(settings, url=url, reply_timeout_s=timeout_s, remote_timeout_s=timeout_s,
                       warm_up_timeout_s=max(180.0, timeout_s), identical="accept")
    remote = RemotePolicy(settings, expect=read.expectation if read else None, check_metadata=(
        lambda metadata: objection(read, metadata)) if read else None)
    with Bag(Path(bag)) as opened:
        contents = read_contents(opened, options.namespace)
        robot, _ = robot_of(contents, options.robot)
        runner = Runner(bundle_folder(str(bundle)), robot, threads=options.threads)
        remote.start()
        try:
            remote.wait_connected(timeout_s)
            pairing, plans = Pairing(runner.policy, read), make_plans(
                contents, robot, runner.fit, source=options.source, instruction=options.instruction)
            return _ask(url, runner, remote, pairing, feed(contents, plans), len(plans), takes_noise,
                        options, progress, timeout_s)
        finally:
            remote.stop()
            runner.close()


def _ask(url: str, runner: Runner, remote: Any, pairing: Any, fed: Any, total: int, takes_noise: Any,
         options: Any, progress: Callable[[int, int], None] | None, timeout_s: float
         ) -> RemoteReplay:
    shape, names = runner.policy.head.shape, runner.fit.action_names
    same: bool | None = None
    gaps, kinds, refused, waits = [], [], [], []
    tolerance = (options.tolerance if options.tolerance is not None else
                 runner.manifest.tolerance.across_machines)
    for number, (plan, images) in enumerate(fed, 1):
        if progress is not None:
            progress(number, total)
        if plan.missing:
            continue
        shown = pairing.shown(Observation(
            {name: images.get(name) for name in runner.cameras},
            runner.state_for(plan), plan.chunk.stamp_ns))
        message = pairing.message(shown, plan.instruction)
        if same is None:
            same = takes_noise(remote, message, shape, plan.chunk.noise_seed, timeout_s)
        if same:
            message = {**message, "noise": draw_noise(
                shape, seed=plan.chunk.noise_seed, stamp_ns=plan.chunk.stamp_ns)}
        if plan.drawn_noise is not None:
            refused.append(f"chunk {plan.chunk.chunk_id} was drawn as a client asked, with noise and steps "
                           "of its own")
            continue
        if same and plan.leftover is not None:
            refused.append(f"chunk {plan.chunk.chunk_id} went on from the one before, which no request "
                           "can say")
            continue
        outcome = remote.ask(message, timeout_s)
        waits.append(outcome.latency_s)
        recorded = by_names(plan.chunk.values, plan.chunk.joint_names, names)
        rows = pairing.rows(outcome.actions.values)[:len(plan.chunk.values)]
        if recorded is None:
            refused.append(f"chunk {plan.chunk.chunk_id} moves other joints than the bundle")
            continue
        if len(rows) < len(recorded):
            refused.append(f"chunk {plan.chunk.chunk_id} has {len(recorded)} rows, the server gives "
                           f"{len(rows)}")
            continue
        verdict = compare_rows(recorded, rows, tolerance=tolerance, names=names,
                               spread=runner.spread, centre=runner.centre)
        gaps.append(np.abs(recorded - rows))
        kinds.append(verdict.kind)
    table = np.concatenate(gaps) if gaps else np.zeros((1, len(names)))
    kind = None
    if same or not kinds:
        kind = Kind.INCOMPLETE if not kinds else (
            Kind.DIFFERENT if Kind.DIFFERENT in kinds else
            Kind.WITHIN if Kind.WITHIN in kinds else Kind.SAME)
    return RemoteReplay(kind, url, names, runner.fit.action_units,
                        table.max(axis=0), table.mean(axis=0), len(kinds), refused, tolerance,
                        float(np.median(waits)) if waits else 0.0)
