# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Is what another stage hands over still wanted? Identities are compared, never clocks.

A number that was followed by another one is *past*. So a late message is told from a newer one
without any order between processes, and a message that comes before the news that explains it is
simply news. Nothing is past for good because of one message: what is heard on the topic is never
past, and whoever has been silent for longer than a chunk lives may be followed by anybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: Why an observation is dropped, by the word that the status uses.
DROPS = {
    "replaced": "a newer one came before work began",
    "other bundle": "it comes from a stage with another bundle",
    "out of order": "one as new or newer was seen already",
    "past pipeline": "it is left over from before the first stage was activated anew",
    "past instruction": "it was begun for another sentence",
    "too old": "a chunk of it could not be played any more",
    "overwritten": "its slot was written anew while it was read",
    "unreachable": "its tensors cannot be reached from this process",
    "malformed": "its tensors are not what the program takes, or a field says what cannot be",
    "stopped": "the stage was deactivated meanwhile",
    "not finite": "the policy answered with values that are not finite",
    "no chunk": "no chunk came back in time",
}
#: Past numbers that are remembered.
REMEMBERED = 64
#: Characters of the longest sentence that is taken.
LONGEST_SENTENCE = 10_000
#: Stages of a hand-off that may be timed, and characters of a name of one.
MOST_TIMINGS, LONGEST_NAME = 64, 64


@dataclass(frozen=True)
class Instruction:
    """A sentence, and the number of the message that said it, 0 if that is not known.

    The empty sentence is no instruction.
    """

    text: str = ""
    number: int = 0


def read_sentence(text: str) -> str:
    """Return a sentence as it is used. :raises ValueError: it is too long."""
    text = text.strip()
    if len(text) > LONGEST_SENTENCE:
        raise ValueError(
            f"the instruction has {len(text)} characters ({text[:40]!r}...); expected at most "
            f"{LONGEST_SENTENCE}: say it in fewer words")
    return text


def hear(current: Instruction, text: str, number: int) -> tuple[Instruction, Instruction, str]:
    """Take what was said on the topic.

    :param current: the one in force.
    :return: it as it was said; the one in force now, which the same sentence said again is not; and
        why it is not followed, if it is not.
    """
    fault = ""
    try:
        said = Instruction(read_sentence(text), number)
    except ValueError as error:
        said, fault = Instruction("", number), str(error)
    same = said.text == current.text and current.number
    return said, current if same else said, fault


def newest(said: Iterable[Instruction]) -> Instruction | None:
    """Return the last of what was said on the topic; None if nothing was, as far as is known."""
    return max((one for one in said if one.number), key=lambda one: one.number, default=None)


def check_content(message: Any) -> None:
    """Look at what a hand-off says of itself, apart from its tensors and its state.

    :raises ValueError: something cannot be; with what was expected.
    """
    stamp = message.header.stamp
    if stamp.sec < 0 or stamp.nanosec >= 1_000_000_000:
        raise ValueError(f"its stamp is {stamp.sec} s and {stamp.nanosec} ns; expected 0 s or more "
                         "and less than 1000000000 ns")
    read_sentence(message.instruction)
    if len(message.timings) > MOST_TIMINGS:
        raise ValueError(f"it has {len(message.timings)} timings; expected at most {MOST_TIMINGS}")
    for timing in message.timings:
        if len(timing.stage) > LONGEST_NAME:
            raise ValueError(f"a timing is named {timing.stage[:20]!r}... with {len(timing.stage)} "
                             f"characters; expected at most {LONGEST_NAME}")


class Gate:
    """Decides on each hand-off. For one thread."""

    def __init__(self, bundle: str, life_ns: int) -> None:
        """
        :param bundle: SHA-256 of this stage's manifest.
        :param life_ns: age of an observation that no chunk is worth computing from.
        """
        self._bundle, self._life_ns = bundle, life_ns
        self._pipeline: int | None = None
        self._seq, self._accepted_ns = -1, 0
        self._past_pipelines: deque[int] = deque(maxlen=REMEMBERED)
        # What was said on the topic, and what the present pipeline has worked on.
        self._heard: Instruction | None = None
        self._worked: Instruction | None = None
        self._past_heard: deque[int] = deque(maxlen=REMEMBERED)
        self._past_worked: deque[int] = deque(maxlen=REMEMBERED)

    def hear(self, instruction: Instruction) -> bool:
        """Note a sentence: what was begun for those before is past, unless they say the same.

        :return: whether it is to be followed; work may have overtaken it.
        """
        number = instruction.number
        if number and (number in self._past_heard or number in self._past_worked):
            return False  # work has overtaken it: the news of that will come
        if self._heard is not None and self._heard.number not in (0, number):
            self._past_heard.append(self._heard.number)
        worked = self._worked
        if worked is not None and worked.number not in (0, number) and (
                worked.text != instruction.text):
            self._past_worked.append(worked.number)
            self._worked = None
        self._heard = instruction
        return True

    def admit(self, *, bundle: str, pipeline: int, seq: int, instruction: Instruction,
              stamp_ns: int, now_ns: int) -> str | None:
        """Return None, or the reason to drop it, of `DROPS`. Changes nothing, see `accept`."""
        if bundle != self._bundle:
            return "other bundle"
        if not self._is_silent(now_ns):
            if pipeline != self._pipeline:
                if pipeline in self._past_pipelines:
                    return "past pipeline"
            elif seq <= self._seq:
                return "out of order"
        return self._wanted(pipeline, instruction, stamp_ns, now_ns)

    def accept(self, *, pipeline: int, seq: int, instruction: Instruction, now_ns: int) -> None:
        """Take what was admitted as the newest seen, once its tensors were found to be in order."""
        if pipeline != self._pipeline:
            if self._pipeline is not None:
                self._past_pipelines.append(self._pipeline)
            self._pipeline = pipeline
            self._past_worked.clear()
        elif self._worked is not None and self._worked.number not in (0, instruction.number):
            self._past_worked.append(self._worked.number)
        self._seq, self._worked, self._accepted_ns = seq, instruction, now_ns

    def still_wanted(self, *, instruction: Instruction, stamp_ns: int, now_ns: int) -> str | None:
        """Return None, or why what was admitted is not to be handed on after all."""
        return self._wanted(self._pipeline, instruction, stamp_ns, now_ns)

    def _wanted(self, pipeline: int | None, instruction: Instruction, stamp_ns: int, now_ns: int
                ) -> str | None:
        if self._is_past(pipeline, instruction):
            return "past instruction"
        if now_ns - stamp_ns > self._life_ns:
            return "too old"
        return None

    def _is_past(self, pipeline: int | None, instruction: Instruction) -> bool:
        if instruction.number == 0:
            return False
        if self._heard is not None and instruction.text == self._heard.text:
            return False
        return instruction.number in self._past_heard or (
            pipeline == self._pipeline and instruction.number in self._past_worked)

    def _is_silent(self, now_ns: int) -> bool:
        """Whether the pipeline that is followed has been silent for so long that any may follow."""
        return self._pipeline is None or not 0 <= now_ns - self._accepted_ns <= self._life_ns
