# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration found out, as plain values, and as a summary in plain words."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omni_ros.cli.launched import rise
from omni_ros.cli.tabletop_table import bundle_facts, named_rise
from omni_ros.cli.tabletop_trials import SUCCESS, quantile
from omni_ros.telemetry.provenance import provenance


def facts_of(
    arguments: argparse.Namespace, robot: Any, graph: Any, before: Any, after: Any,
    done: Sequence[Any],
) -> dict[str, Any]:
    """Return counts, seconds and names, ready for JSON.

    :param before, after: the player's status around the run. :param done: of each step.
    """
    learned = arguments.policy == "bundle"
    bundle = None
    if learned:
        from omni_ros.bundles.named import bundle_folder

        bundle = bundle_facts(str(bundle_folder(arguments.bundle)))
    latencies = list(graph.to_command.values())
    stages: dict[str, list[float]] = {}
    for chunk in graph.chunks:
        for stage, seconds in chunk.timings.items():
            stages.setdefault(stage, []).append(seconds)
    to_chunk = [sum(chunk.timings.values()) for chunk in graph.chunks if chunk.timings]
    seconds = sum((step.ended_ns - step.told_ns) * 1e-9 for step in done)
    rate = robot.player.rate_hz
    return {
        "source": bundle["name"] if bundle else arguments.policy,
        "bundle": bundle,
        "execution_horizon": robot.policy.execution_horizon if learned else None,
        "robot": robot.name,
        "steps": [{
            "skill": step.step.skill, "colour": step.step.colour, "before": step.step.before,
            "sentence": step.step.sentence, "seed": step.seed, "verdict": step.verdict,
            "why": step.why, "seconds": step.seconds, "chunks": len(step.chunks)}
            for step in done],
        "succeeded": sum(step.verdict == SUCCESS for step in done),
        "seconds": seconds,
        "latencies": {
            "to_command": latencies, "to_chunk": to_chunk, "stages": stages,
            "to_command_p50": quantile(latencies, 0.5), "to_command_p99": quantile(latencies, 0.99),
            "to_chunk_p50": quantile(to_chunk, 0.5), "to_chunk_p99": quantile(to_chunk, 0.99)},
        "chunks": sum(len(step.chunks) for step in done),
        "chunk_rate_hz": sum(len(step.chunks) for step in done) / seconds if seconds else None,
        "rate_hz": rate,
        "ticks": rise(before, after, "ticks"),
        "missed": rise(before, after, "ticks_missed"),
        "lateness": {"p50": after.lateness_p50, "p99": after.lateness_p99,
                     "max": after.lateness_max},
        "refused": named_rise(before.refused, after.refused),
        "limited": named_rise(before.limited, after.limited),
        "policy": {stage: {"text": status.text, "placement": list(status.placement)}
                   for stage, status in graph.policy.items()},
        "provenance": provenance(),
    }


def ms(seconds: float | None) -> str:
    """Return seconds in milliseconds, "-" for none."""
    return "-" if seconds is None else f"{seconds * 1e3:.1f} ms"


def pair(values: dict[str, Any], name: str) -> str:
    """Return a median and a 99th percentile in words."""
    return f"p50 {ms(values[f'{name}_p50'])}, p99 {ms(values[f'{name}_p99'])}"


def rows_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and figures of what matters besides the verdicts."""
    def words(counts: dict[str, int], none: str) -> str:
        return ", ".join(f"{count} {name}" for name, count in counts.items()) or none

    late, latencies = facts["lateness"], facts["latencies"]
    rate = facts["chunk_rate_hz"]
    rows = [("observation to command", f"{pair(latencies, 'to_command')} "
                                       f"({len(latencies['to_command'])} chunks)")]
    if latencies["to_chunk"]:
        rows.append(("observation to chunk", pair(latencies, "to_chunk")))
    rate_text = "no rate" if rate is None else f"{rate:.1f} a second"
    return rows + [
        ("chunks", f"{facts['chunks']}, {rate_text}, refused: {words(facts['refused'], 'none')}"),
        ("ticks", f"{facts['ticks']} at {facts['rate_hz']:g} Hz, {facts['missed']} missed"),
        ("tick lateness", f"p50 {ms(late['p50'])}, p99 {ms(late['p99'])}, max {ms(late['max'])}"),
        ("tick limited", words(facts["limited"], "never")),
    ]


def summary(facts: dict[str, Any], report: Path) -> str:
    """Return the summary in plain words."""
    steps = facts["steps"]
    lines = [f"The arm did what it was told in {facts['succeeded']} of {len(steps)} instructions "
             f"({facts['source']})."]
    sentences = [f"{step['before']} ... {step['sentence']}" if step["before"] else step["sentence"]
                 for step in steps]
    wide = max(map(len, sentences), default=0)
    for number, (step, sentence) in enumerate(zip(steps, sentences), 1):
        why = f"  {step['why']}" if step["verdict"] == "wrong" else ""
        lines.append(f"  {number}  {sentence:{wide}}  {step['verdict']:7}  "
                     f"{step['seconds']:.1f} s{why}")
    rows = [*rows_of(facts), ("report", str(report / "report.html"))]
    width = max(len(name) for name, _ in rows)
    lines += [f"  {name:{width}}  {text}" for name, text in rows]
    lines += [f"not well: {text}" for text in facts["trouble"]]
    return "\n".join(lines)
