# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of `omni bench tabletop`, and how they are shown."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omni_ros.cli.launched import rise
from omni_ros.cli.report import format_table
from omni_ros.cli.tabletop_trials import SUCCESS, WRONG, Result, quantile, summarise
from omni_ros.player.reasons import Reason
from omni_ros.report.rates import share_text
from omni_ros.telemetry.provenance import one_line


#: Of a chunk's timings, what is a policy's own work and no cost of having it in a graph; and the
#: camera's share, before the graph can know of the picture.
PROGRAMS = ("vision_encoder", "fusion_backbone", "action_head")
ARRIVAL = "arrival"


def block_figures(graph: Any, before: Any, results: Sequence[Result]) -> dict[str, Any]:
    """Return what a run of trials in one graph gave, plain values.

    :param before: the player's status at its beginning.
    """
    found: dict[str, Any] = {
        "episodes": [result.row() for result in results],
        "seconds": sum(result.seconds for result in results),
        "chunks": sum(result.chunks for result in results),
        "to_command": list(graph.to_command.values()),
        "to_chunk": [sum(chunk.timings.values()) for chunk in graph.chunks if chunk.timings],
        "graph": [sum(seconds for stage, seconds in chunk.timings.items()
                      if stage not in (*PROGRAMS, ARRIVAL))
                  for chunk in graph.chunks if chunk.timings],
        "stages": {},
        "policy": {stage: {"text": status.text, "placement": list(status.placement),
                           "transport": status.transport, "delay_rows": status.delay_rows,
                           "dropped": dict(zip(status.dropped_reasons, map(int, status.dropped)))}
                   for stage, status in graph.policy.items()},
    }
    for chunk in graph.chunks:
        for stage, seconds in chunk.timings.items():
            found["stages"].setdefault(stage, []).append(seconds)
    after = graph.status
    found["player"] = {
        "ticks": rise(before, after, "ticks"), "missed": rise(before, after, "ticks_missed"),
        "p50": after.lateness_p50, "p99": after.lateness_p99, "max": after.lateness_max,
        "refused": named_rise(before.refused, after.refused), "last_refusal": after.last_refusal,
        "limited": named_rise(before.limited, after.limited),
    }
    return found


def named_rise(before: Sequence[int], after: Sequence[int]) -> dict[str, int]:
    """Return by how much the player's counters rose, by the reason's name; those that did."""
    return {Reason(code).name.lower().replace("_", " "): int(new - old)
            for code, (old, new) in enumerate(zip(before, after)) if new > old}


def document(
    arguments: argparse.Namespace, sources: Sequence[str], horizon: int, runs: Sequence[dict],
    facts: dict[str, Any], trouble: str | None,
) -> dict[str, Any]:
    """Return all that is known, ready for JSON.

    :param horizon: rows played of a chunk. :param runs: of `block_figures`, with their source.
    """
    options = {name: str(value) if isinstance(value, Path) else value
               for name, value in vars(arguments).items() if not callable(value)}
    return {
        "bench": "tabletop",
        "options": options,
        "horizon": horizon,
        "sources": [source_figures(source, [run for run in runs if run["source"] == source])
                    for source in sources],
        "runs": list(runs),
        "trouble": trouble,
        "provenance": facts,
    }


def source_figures(source: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what all runs of one source gave together."""
    rows = [row for run in runs for row in run["episodes"]]
    skills = list(dict.fromkeys(row["skill"] for row in rows))
    swapped = any(row["told"] != row["colour"] for row in rows)
    latencies = [value for run in runs for value in run["to_command"]]
    to_chunk = [value for run in runs for value in run["to_chunk"]]
    cost = [value for run in runs for value in run["graph"]]
    stages: dict[str, list[float]] = {}
    for run in runs:
        for stage, values in run["stages"].items():
            stages.setdefault(stage, []).extend(values)
    players = [run["player"] for run in runs]
    refused: Counter[str] = Counter()
    limited: Counter[str] = Counter()
    for player in players:
        refused.update(player["refused"])
        limited.update(player["limited"])
    seconds = sum(run["seconds"] for run in runs)
    return {
        "source": source,
        "name": Path(source).name,
        "bundle": bundle_facts(source),
        "skills": {skill: {
            judged: summarise([row for row in rows if row["skill"] == skill], judged)
            for judged in (("verdict", "told_verdict") if swapped else ("verdict",))
        } for skill in skills},
        "to_command": {"count": len(latencies), "p50": quantile(latencies, 0.5),
                       "p99": quantile(latencies, 0.99)},
        "to_chunk": {"count": len(to_chunk), "p50": quantile(to_chunk, 0.5),
                     "p99": quantile(to_chunk, 0.99)},
        "graph": {"count": len(cost), "p50": quantile(cost, 0.5), "p99": quantile(cost, 0.99)},
        "stages": {stage: {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99)}
                   for stage, values in stages.items()},
        "chunk_rate_hz": sum(run["chunks"] for run in runs) / seconds if seconds else None,
        "ticks": sum(player["ticks"] for player in players),
        "missed": sum(player["missed"] for player in players),
        # Of several runs: the middle median, the worst of the rest.
        "lateness_p50": quantile([player["p50"] for player in players], 0.5),
        "lateness_p99": max((player["p99"] for player in players), default=None),
        "lateness_max": max((player["max"] for player in players), default=None),
        "refused": dict(refused),
        "limited": dict(limited),
    }


def bundle_facts(source: str) -> dict[str, Any] | None:
    """Return what identifies a bundle, None of what is none."""
    if not Path(source).is_dir():
        return None
    from omni_ros.bundles import manifest_hash, read_manifest

    manifest = read_manifest(source)
    return {"name": manifest.name, "manifest_sha256": manifest_hash(source),
            "recipes": {name: entry.recipe for name, entry in manifest.programs.items()}}


def render(found: dict[str, Any], width: int = 80) -> str:
    """Return the report as text: rates, times, what else is worth knowing, the provenance."""
    options = found["options"]
    rates, times = [], []
    for source in found["sources"]:
        for skill, judged in source["skills"].items():
            for how, counts in judged.items():
                tries = counts["tries"]
                label = {"verdict": "", "told_verdict": " (as told)"}[how]
                if len(judged) == 2 and not label:
                    label = " (not told)"
                rates.append([
                    source["name"], skill + label, share_text(counts[SUCCESS], tries),
                    share_text(counts[WRONG], tries), str(counts["timeout"]),
                    f"{_s(counts['seconds_to_success_p50'])} / "
                    f"{_s(counts['seconds_to_success_p90'])}"])
        lateness = " / ".join(_ms(source[f"lateness_{key}"]) for key in ("p50", "p99", "max"))
        rate = source["chunk_rate_hz"]
        times.append([
            source["name"], _pair(source["to_chunk"]), _pair(source["to_command"]),
            "?" if rate is None else f"{rate:.2f}", lateness,
            f"{source['missed']}/{source['ticks']}", str(sum(source["refused"].values()))])
    title = "Table-top episodes through the graph: horizon"
    title += f" {found['horizon']} rows, {options['phrasing']} phrasing, {options['appearance']}"
    title += f" appearance, seeds from {options['seed']}"
    if options["control"]:
        title += f", control {options['control']}"
    lines = [
        "Rates: count, share, 95 % interval (Wilson). s: to success, p50 / p90.",
        "Latencies p50 / p99 in ms from the observation's stamp, to the chunk and to the first "
        "command made of it; lateness of ticks p50 / p99 / max in ms (of several runs the worst).",
    ]
    for source in found["sources"]:
        for what, counts in (("chunks refused by the player", source["refused"]),
                             ("ticks limited", source["limited"])):
            if counts:
                said = ", ".join(f"{count} by {name}" for name, count in counts.items())
                lines.append(f"{source['name']}: {what}: {said}.")
        if source["stages"]:
            said = ", ".join(f"{stage} {_pair(values)}"
                             for stage, values in source["stages"].items())
            lines.append(f"{source['name']}: stages, ms: {said}. All but the arrival of the "
                         f"picture and the three programs: {_pair(source['graph'])}.")
    if found["trouble"]:
        lines.append(f"CUT SHORT: {found['trouble']}")
    lines += ["", one_line(found["provenance"])]
    prose = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
             for line in lines]
    return "\n".join([
        textwrap.fill(title, width), "",
        format_table(("source", "skill", "success", "wrong block", "timeout", "s"), rates), "",
        format_table(("source", "to chunk", "to command", "chunks/s", "tick lateness", "missed",
                      "refused"), times),
        "", *prose])


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.1f}"


def _pair(values: dict[str, Any]) -> str:
    return f"{_ms(values['p50'])} / {_ms(values['p99'])}"
