# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Is what another stage hands over still wanted? Identities are compared, never clocks.

A number that was followed by another one is *past* for good. So a late message is told from a
newer one without any order between processes, and a message that comes before the news that
explains it is simply news.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

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
    "malformed": "its tensors are not what the program takes",
    "stopped": "the stage was deactivated meanwhile",
    "not finite": "the policy answered with values that are not finite",
    "no chunk": "no chunk came back in time",
}
#: Past numbers that are remembered.
REMEMBERED = 64


class Succession:
    """Numbers that follow each other, each of which is past once another one has come.

    0 stands for a number that is not known, and is never past.
    """

    def __init__(self) -> None:
        self.current: int | None = None
        self._past: deque[int] = deque(maxlen=REMEMBERED)

    def past(self, number: int) -> bool:
        """Whether another one has followed it."""
        return number not in (0, self.current) and number in self._past

    def see(self, number: int) -> bool:
        """Note a number that is not past; return whether it is a new one."""
        if number in (0, self.current):
            return False
        if self.current is not None:
            self._past.append(self.current)
        self.current = number
        return True


@dataclass(frozen=True)
class Instruction:
    """A sentence, and the number of the message that said it, 0 if that is not known.

    The empty sentence is no instruction.
    """

    text: str = ""
    number: int = 0


class Gate:
    """Decides on each hand-off. For one thread."""

    def __init__(self, bundle: str, life_ns: int) -> None:
        """
        :param bundle: SHA-256 of this stage's manifest.
        :param life_ns: age of an observation that no chunk is worth computing from.
        """
        self._bundle, self._life_ns = bundle, life_ns
        self._pipelines, self._instructions = Succession(), Succession()
        self._seq = -1

    def hear(self, instruction: Instruction) -> None:
        """Note a sentence: what was begun for those before is past."""
        if not self._instructions.past(instruction.number):
            self._instructions.see(instruction.number)

    def admit(self, *, bundle: str, pipeline: int, seq: int, instruction: int, stamp_ns: int,
              now_ns: int) -> str | None:
        """Return None, and take it as the newest seen, or the reason to drop it, of `DROPS`."""
        if bundle != self._bundle:
            return "other bundle"
        if self._pipelines.past(pipeline):
            return "past pipeline"
        if self._pipelines.see(pipeline):
            self._seq = -1
        if seq <= self._seq:
            return "out of order"
        self._seq = seq
        if self._instructions.past(instruction):
            return "past instruction"
        self._instructions.see(instruction)
        return self.still_wanted(instruction=instruction, stamp_ns=stamp_ns, now_ns=now_ns)

    def still_wanted(self, *, instruction: int, stamp_ns: int, now_ns: int) -> str | None:
        """Return None, or why what was admitted is not to be handed on after all."""
        if self._instructions.past(instruction):
            return "past instruction"
        if now_ns - stamp_ns > self._life_ns:
            return "too old"
        return None
