# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The page that `omni replay --report` writes: the verdict, the plots, every chunk."""

from __future__ import annotations

from pathlib import Path

from omni_ros.replay import plots
from omni_ros.replay.replaying import Replay
from omni_ros.replay.summary import worst_by_joint
from omni_ros.replay.verdict import Kind
from omni_ros.report.html import Picture, Section, Table, page
from omni_ros.telemetry.provenance import one_line

#: Chunks in the table; those that are not the same come first.
ROWS = 200

_LEADS = {
    Kind.SAME: "The policy decided the same again, bit for bit.",
    Kind.WITHIN: "The policy decided the same again, but for rounding that the bundle allows.",
    Kind.DIFFERENT: "The policy decided something else from the same observations.",
    Kind.INCOMPLETE: "Nothing differs in what there is, but not everything was recorded.",
}


def write_page(path: Path, result: Replay) -> None:
    """Write the page. :raises OSError: it cannot be written."""
    path.write_text(html(result), encoding="utf-8")


def html(result: Replay) -> str:
    """Return the page as text."""
    verdicts, names, units = result.tally.verdicts, result.joint_names, result.joint_units
    compared = result.against or "what was recorded"
    count, seconds = len(verdicts), result.seconds
    tiles = [(result.overall.value, "verdict")]
    tiles += [(str(number), f"chunks {kind}") for kind, number in result.tally.counts.items()
              if number]
    if seconds.get("total"):
        tiles.append((f"{count / seconds['total']:.0f} /s", "observations replayed"))
    sections = [
        Section("What was compared", f"{result.bundle} on {result.bag}, against {compared}. "
                + _expectation(result), _changes(result)),
        _missing(result),
        Section("Actions", "Rows of each chunk, as recorded and as computed again from the same "
                "pictures, joint positions, sentence and noise.",
                _picture(plots.actions_overlaid(verdicts, names, units),
                         "recorded and computed actions by joint")),
        Section("Difference over time", "By joint; a difference that grows or comes and goes tells "
                "more than its largest value.",
                [*_picture(plots.differences(verdicts, names, units),
                           "largest difference of each chunk by joint"),
                 Table(("joint", "largest difference", "unit"), [
                     (name, f"{value:.3g}", unit) for name, value, unit in
                     zip(names, worst_by_joint(result), units)])]),
        Section("Time", "What a chunk took in the graph from its pictures' intake on, and what the policy "
                "alone takes here.", _picture(plots.times_of_chunks(verdicts), "time of each chunk")),
    ]
    for part in (result.player, result.remote):
        if part is not None:
            sections.append(part.section())
    sections.append(_chunks(result))
    footer = one_line()
    return page(f"Replay: {result.overall.value}", _LEADS[result.overall], tiles,
                [section for section in sections if section is not None], footer)


def _expectation(result: Replay) -> str:
    if result.bits:
        return "Every bit had to be the same."
    return (f"Allowed was {result.tolerance:g} of a normalised action, relative to 1 or the largest: "
            f"{'; '.join(result.why_not) or 'as asked for'}.")


def _changes(result: Replay) -> list[Table]:
    if not result.changes:
        return []
    return [Table(("changed", "was", "is", "decides"), [
        (one.what, one.before, one.now, one.stage or "") for one in result.changes])]


def _missing(result: Replay) -> Section | None:
    texts = [*result.missing, *(one.text for one in result.problems), *result.passed_over]
    if not texts:
        return None
    return Section("What is missing or amiss in the bag", "Nothing was made up for it.",
                   [Table(("",), [(text,) for text in texts[:ROWS]])])


def _chunks(result: Replay) -> Section:
    ordered = sorted(result.tally.verdicts, key=lambda one: one.kind is Kind.SAME)
    rows = [(f"{one.chunk_id}", f"{one.stamp_ns * 1e-9:.3f}", one.kind.value, one.stage, one.text)
            for one in ordered[:ROWS]]
    more = len(ordered) - len(rows)
    text = "Those that are not the same first."
    if more > 0:
        text += f" {more} more are in the JSON (--json)."
    return Section("Chunks", text, [Table(("chunk", "stamp, s", "verdict", "first at", ""), rows)])


def _picture(data: bytes | None, alt: str) -> list[Picture]:
    return [Picture(data, alt)] if data else []
