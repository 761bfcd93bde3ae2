# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the two stages that follow another one have in common: taking over its tensors."""

from __future__ import annotations

import time
from typing import Callable

from omni_ros.msg import StageHandoff, StageTiming
from omni_ros.nodes._stage_node import StageNode
from omni_ros.nodes._stage_record import StageRecorder
from omni_ros.nodes._support import duration_message, to_ns
from omni_ros.programs import ProgramError
from omni_ros.stages import Instruction
from omni_ros.stages.gate import check_content
from omni_ros.stages.tally import State
from omni_ros.stages.transport import hand_off_seconds
from omni_ros.tensors import HandleError, OpenTensors, RingError, SlotOverwritten, TensorError

#: A stage without work looks around this often, seconds.
IDLE_S = 0.25
#: Without a hand-off for this long, a stage says that it waits, seconds. Longer than the time between
#: two statuses: why the last one was dropped has been said by then.
WAITING_AFTER_S = 1.8


class FollowerNode(StageNode):
    """Works on what the stage before hands over, the newest only."""

    #: The stage before, and the topic that it hands over on.
    preceding = topic = ""
    _heard_ns = 0

    def release(self) -> None:
        """Let go of the tensors of others."""
        raise NotImplementedError

    def connect(self) -> None:
        self.make_inbox(self.topic)
        self.recorder = StageRecorder(self, self.stage)
        self.keep(self.recorder.destroy)
        self.keep(self.release)

    def begin(self) -> None:
        self._heard_ns = time.monotonic_ns()

    def between(self) -> float:
        """Do what there is to do without a hand-off; return how long to wait for one, seconds."""
        return IDLE_S

    def treat(self, message: StageHandoff) -> None:
        """Work on a hand-off that was received.

        :raises ValueError, ArithmeticError: what it holds cannot be worked on.
        """
        raise NotImplementedError

    def work(self) -> None:
        message = self.receive()
        if message is None:
            return
        try:
            self.treat(message)
        except (ProgramError, TensorError):
            raise  # of our own program or ring: a stage that cannot work must not seem to
        except (ValueError, ArithmeticError) as error:
            self.drop("malformed", message, error)

    def receive(self) -> StageHandoff | None:
        """Return the newest hand-off if it is to be worked on; else wait a moment."""
        self.listen()
        message, replaced = self.inbox.take()
        if replaced:
            self.tally.dropped("replaced", number=replaced)
        if message is None:
            wait_s = self.between()
            if wait_s > 0.0:
                self._say_waiting()
                self.waiter.wait((*self.sentences, *self.inbox.subscriptions), wait_s)
            return None
        self._heard_ns = time.monotonic_ns()
        self.tally.started()
        try:
            check_content(message)
        except ValueError as error:
            self.drop("malformed", message, error)
            return None
        reason = self.gate.admit(
            bundle=message.bundle, pipeline=message.pipeline, seq=message.observation_seq,
            instruction=sentence_of(message), stamp_ns=to_ns(message.header.stamp),
            now_ns=self.now_ns())
        if reason is not None:
            self.drop(reason, message)
            return None
        return message

    def _say_waiting(self) -> None:
        waited_s = (time.monotonic_ns() - self._heard_ns) * 1e-9
        if waited_s > WAITING_AFTER_S:
            self.tally.set_state(
                State.WAITING, f"no {self.topic} from {self.preceding} for {waited_s:.0f} s")

    def open(self, message: StageHandoff) -> OpenTensors | None:
        """Return the tensors of a hand-off, None if they cannot be had."""
        try:
            opened = self.inbox.open(message)
        except SlotOverwritten:
            self.drop("overwritten", message)
        except RingError as error:
            self.inbox.note_reached(False, message)
            self.drop("unreachable", message, error)
        except HandleError as error:
            self.drop("malformed", message, error)
        else:
            self.inbox.note_reached(True, message)
            return opened
        return None

    def use(self, message: StageHandoff, bind: Callable[[], None]) -> bool:
        """Bind tensors; whether they are what the program takes. Only then it is the newest seen."""
        try:
            if self.inbox.is_new_source(message):
                self.release()  # what was bound belongs to a ring that may be gone
            bind()
        except (ProgramError, ValueError, KeyError) as error:
            self.drop("malformed", message, error)
            return False
        self.gate.accept(pipeline=message.pipeline, seq=message.observation_seq,
                         instruction=sentence_of(message), now_ns=self.now_ns())
        return True

    def still_wanted(self, message: StageHandoff, opened: OpenTensors) -> bool:
        """After the work: whether its result is to be handed on; else it is counted as dropped."""
        self.listen()
        reason = self.gate.still_wanted(
            instruction=sentence_of(message), stamp_ns=to_ns(message.header.stamp),
            now_ns=self.now_ns())
        if self.stopping:
            reason = "stopped"
        if reason is None:
            try:
                opened.check()
            except SlotOverwritten:
                reason = "overwritten"
            except RingError:
                reason = "unreachable"
        if reason is not None:
            self.drop(reason, message)
        return reason is None


def timing(stage: str, seconds: float) -> StageTiming:
    """One stage's time as a message."""
    return StageTiming(stage=stage, duration=duration_message(round(max(0.0, seconds) * 1e9)))


def sentence_of(message: StageHandoff) -> Instruction:
    """The sentence that a hand-off was begun for."""
    return Instruction(message.instruction.strip(), message.instruction_seq)


def hand_off_s(message: StageHandoff) -> float:
    """Seconds since a message was handed over, by the machines' wall clocks; 0 if they cannot tell."""
    return hand_off_seconds(time.time_ns(), to_ns(message.handed_over))


def seconds_by_stage(timings) -> dict[str, float]:
    """Timings of an observation added up by the stage's name."""
    result: dict[str, float] = {}
    for entry in timings:
        result[entry.stage] = result.get(entry.stage, 0.0) + to_ns(entry.duration) * 1e-9
    return result
