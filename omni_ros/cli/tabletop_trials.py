# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Trials on the table-top: which, and what came of them. No ROS here.

A trial is an episode of the world (a seed), a sentence, and what it is judged against. Results are
plain dictionaries, so that a report can be made of a file as well as of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from omni_ros.report.rates import wilson

#: Seeds from here on are those of evaluation through the graph; training uses none of them.
FIRST_SEED = 400_000

SUCCESS, WRONG, TIMEOUT = "success", "wrong", "timeout"
VERDICTS = (SUCCESS, WRONG, TIMEOUT)


#: Sentences that ask for nothing that was ever taught.
UNKNOWN = (
    "sing a song", "open the window", "what time is it", "fold the towel", "go home",
    "stack everything", "spin around as fast as you can", "throw it off the table",
    "touch the purple sphere", "qwertz uiop",
)


@dataclass(frozen=True)
class Trial:
    """One episode to run.

    :param colour: of the block it is judged by. :param told: the colour in the sentence; another one
        only in the swap control.
    """

    seed: int
    skill: str
    colour: str
    told: str
    sentence: str


@dataclass(frozen=True)
class Result:
    """What came of a trial.

    :param verdict: judged by `trial.colour`. :param told_verdict: judged by `trial.told`.
    :param seconds: from the sentence to the verdict, in the world's time.
    :param chunks: received meanwhile. :param why: the judge's reason, "" if it gave none.
    """

    trial: Trial
    verdict: str
    told_verdict: str
    seconds: float
    chunks: int
    why: str = ""

    def row(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        own = {name: value for name, value in asdict(self).items() if name != "trial"}
        return {**asdict(self.trial), **own}


def plan_trials(
    skills: Sequence[str], count: int, first_seed: int, colours: Sequence[str],
    phrase: Callable[[str, str, np.random.Generator], str], control: str | None = None,
) -> list[Trial]:
    """Return trials with skills in turn and every colour equally often.

    :param count: of each skill.
    :param phrase: sentence of a skill and a colour; may draw from the generator.
    :param control: "swap": the sentence names the next colour, and not the one that is judged;
        "unknown": it is one of UNKNOWN.
    """
    trials = []
    for index in range(count * len(skills)):
        skill = skills[index % len(skills)]
        number = (index // len(skills)) % len(colours)
        told = colours[(number + (control == "swap")) % len(colours)]
        seed = first_seed + index
        sentence = phrase(skill, told, np.random.default_rng(seed))
        if control == "unknown":
            sentence = UNKNOWN[index % len(UNKNOWN)]
        trials.append(Trial(seed, skill, colours[number], told, sentence))
    return trials


def blocks(trials: Sequence[Trial], size: int) -> Iterable[Sequence[Trial]]:
    """Return the trials in runs of `size`, the last one shorter where they do not come out even."""
    return [trials[start : start + size] for start in range(0, len(trials), size)]


def summarise(rows: Sequence[Mapping[str, Any]], judged: str = "verdict") -> dict[str, Any]:
    """Count verdicts and take times.

    :param rows: as of `Result.row`. :param judged: the verdict to count, "verdict" or
        "told_verdict".
    :return: tries, counts by verdict, Wilson intervals of success and wrong, seconds to success.
    """
    counts = {verdict: sum(row[judged] == verdict for row in rows) for verdict in VERDICTS}
    times = sorted(row["seconds"] for row in rows if row[judged] == SUCCESS)
    return {
        "tries": len(rows),
        **counts,
        "success_interval": wilson(counts[SUCCESS], len(rows)),
        "wrong_interval": wilson(counts[WRONG], len(rows)),
        "seconds_to_success_p50": quantile(times, 0.5),
        "seconds_to_success_p90": quantile(times, 0.9),
    }


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return a quantile of the finite values, None if there are none."""
    known = np.asarray([value for value in values if np.isfinite(value)], dtype=np.float64)
    return float(np.quantile(known, share)) if known.size else None
