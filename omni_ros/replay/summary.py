# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a replay found, as text for a person and as plain values for a program."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from omni_ros.replay.replaying import Replay
from omni_ros.replay.verdict import ChunkVerdict, Kind

#: Lines of each list that the text shows; the JSON has them all.
SHOWN = 8


def document(result: Replay) -> dict[str, Any]:
    """Return all that was found, ready for JSON. What is infinite or not a number is null."""
    return {
        "replay": result.bag,
        "verdict": result.overall.value,
        "bundle": {"name": result.bundle, "sha256": result.sha256,
                   "recorded_sha256": result.recorded_sha256 or None},
        "against": result.against or None,
        "bit_for_bit": result.bits,
        "why_not_bit_for_bit": list(result.why_not),
        "tolerance": None if result.bits else result.tolerance,
        "derived": result.derived,
        "chunks": [_chunk(one, result) for one in result.tally.verdicts],
        "counts": result.tally.counts,
        "missing": list(result.missing),
        "problems": [{"text": one.text, "lost": one.lost} for one in result.problems],
        "changes": [{"what": one.what, "before": one.before, "now": one.now,
                     "stage": one.stage or None} for one in result.changes],
        "passed_over": list(result.passed_over),
        "player": None if result.player is None else result.player.data(),
        "remote": None if result.remote is None else result.remote.data(),
        "seconds": {name: _number(value) for name, value in result.seconds.items()},
        "versions": dict(result.versions),
    }


def summary(result: Replay, width: int = 80) -> str:
    """Return the verdict in a few lines: it, why, what is missing, what was changed."""
    against = f"against {result.against}" if result.against else "against what was recorded"
    lines = [f"{result.overall.value.upper()}: {result.bundle} on {result.bag}, {against}",
             _indent(_counts(result), width)]
    lines += _listed([_line(one) for one in result.tally.verdicts if one.kind is Kind.DIFFERENT],
                     width)
    if any(one.kind in (Kind.DIFFERENT, Kind.WITHIN) for one in result.tally.verdicts):
        worst = worst_by_joint(result)
        lines.append(_indent("largest difference: " + ", ".join(
            f"{name} {value:.2g} {unit}" for name, value, unit in
            zip(result.joint_names, worst, result.joint_units)), width))
    if result.player is not None:
        lines.append(_indent(result.player.text(), width))
    if result.remote is not None:
        lines.append(_indent(result.remote.text(), width))
    for heading, texts in (
            ("not in the bag:", result.missing),
            ("the bag:", [one.text for one in result.problems]),
            ("changed since:" if not result.against else "the other bundle differs in:",
             [str(one) for one in result.changes]),
            ("passed over:", result.passed_over)):
        if texts:
            lines += [heading, *_listed(texts, width)]
    lines.append(_expected(result, width))
    seconds = result.seconds
    if seconds.get("policy"):
        count = len(result.tally.verdicts)
        lines.append(_indent(
            f"{count} chunks in {seconds['total']:.1f} s, {count / seconds['total']:.0f} a second; "
            f"the policy took {seconds['policy']:.1f} s of it", width))
    return "\n".join(lines)


def _counts(result: Replay) -> str:
    counts = [f"{count} {kind}" for kind, count in result.tally.counts.items() if count]
    text = f"{len(result.tally.verdicts)} chunks: {', '.join(counts) or 'none'}"
    stages: dict[str, int] = {}
    for one in result.tally.verdicts:
        if one.kind is not Kind.SAME and one.stage:
            stages[one.stage] = stages.get(one.stage, 0) + 1
    if stages:
        text += "; first at " + ", ".join(f"{stage} ({count})" for stage, count in stages.items())
    if result.derived:
        text += ("; what each was decided from was worked out from stamps, as the bag holds no records "
                 "of the stages")
    return text


def _line(one: ChunkVerdict) -> str:
    return f"chunk {one.chunk_id} at {one.stamp_ns * 1e-9:.3f} s {one.kind.value}: {one.text}"


def _expected(result: Replay, width: int) -> str:
    if result.bits:
        why = f" (asked for, although {'; '.join(result.why_not)})" if result.why_not else (
            ": the same machine, versions and bundle")
        return _indent(f"every bit had to be the same{why}", width)
    why = "; ".join(result.why_not) or "a tolerance was given"
    return _indent(f"allowed was {result.tolerance:g} of a normalised action, relative to 1 or the "
                   f"largest: {why}", width)


def _listed(texts: list[str], width: int) -> list[str]:
    lines = [_indent(text, width) for text in texts[:SHOWN]]
    return lines + ([f"  and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else [])


def _indent(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)


def _chunk(one: ChunkVerdict, result: Replay) -> dict[str, Any]:
    names = result.joint_names if len(one.by_joint) == len(result.joint_names) else ()
    return {
        "chunk_id": one.chunk_id, "stamp_ns": one.stamp_ns, "verdict": one.kind.value,
        "stage": one.stage or None, "text": one.text, "worst": _number(one.worst),
        "difference": {name: _number(value) for name, value in zip(names, one.by_joint)},
        "missing": list(one.missing),
        "seconds": {name: _number(value) for name, value in one.times.items()},
    }


def _number(value: Any) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None


def worst_by_joint(result: Replay) -> np.ndarray:
    """Return the largest difference of each joint over all chunks, f64 [joints], in units."""
    tables = [one.by_joint for one in result.tally.verdicts
              if len(one.by_joint) == len(result.joint_names)]
    return np.max(tables, axis=0) if tables else np.zeros(len(result.joint_names))
