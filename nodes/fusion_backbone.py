# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Second stage of a policy: image tokens, sentence and state to keys and values."""

from __future__ import annotations

import time

import numpy as np

from omni_ros.msg import PolicyStatus, StageHandoff
from omni_ros.nodes._runtime import run
from omni_ros.nodes._stage_follower import FollowerNode, hand_off_s, timing
from omni_ros.nodes._stage_record import flat
from omni_ros.nodes._support import to_ns
from omni_ros.policy.observation import check_state
from omni_ros.policy.fusion_stage import FusionBackbone
from omni_ros.programs import TensorSpec
from omni_ros.replay.fingerprints import PREFIX, STATE, VALID
from omni_ros.stages.tally import State


class FusionBackboneNode(FollowerNode):
    """Reads `image_tokens` and `instruction`; writes `prefix`."""

    stage, following = "fusion_backbone", "action_head"
    preceding, topic = "vision_encoder", "image_tokens"

    def load(self) -> None:
        self._backbone = FusionBackbone(self.opened.bundle)
        self.keep(self._backbone.program.close)
        self._backbone.set_state(np.zeros(self.opened.bundle.manifest.dimensions.state, np.float32))
        self._backbone.set_prompt("")
        self._backbone.set_cameras(len(self.fit.cameras))
        self._backbone.run()  # the first takes longer than any other
        self.warm_up_s = self._backbone.run()

    def connect(self) -> None:
        super().connect()
        valid = TensorSpec("valid", self._backbone.valid.shape, "float32")
        self._names = [spec.name for spec in self._backbone.program.outputs] + ["valid"]
        self._outbox = self.make_outbox("prefix", [*self._backbone.program.outputs, valid])
        self.keep(self.release)  # before the outbox closes
        self._truncated = ""

    def release(self) -> None:
        self._backbone.release()

    def treat(self, message: StageHandoff) -> None:
        began = time.perf_counter()
        waited_s = hand_off_s(message)
        opened = self.open(message)
        if opened is None:
            return
        outputs = self._outbox.begin()
        if not self.use(message, lambda: self._bind(message, opened.arrays, outputs)):
            return
        run_s = self._backbone.run()
        np.copyto(outputs["valid"], self._backbone.valid)
        if not self.still_wanted(message, opened):
            return
        around_s = time.perf_counter() - began - run_s
        self._hand_over(message, waited_s + around_s, run_s)
        self._say(message, outputs)

    def _say(self, message: StageHandoff, outputs) -> None:
        """Tell whoever records what the prefix was made of."""
        record, backbone = self.recorder.open(), self._backbone
        if record is not None:
            record.message.prompt = flat(backbone.tokens.ids, "i")
            record.message.prompt_mask = flat(backbone.tokens.mask, "B")
            record.tensor(STATE, backbone.state)
            record.tensor(VALID, backbone.valid)
            record.tensor(PREFIX, *(outputs[spec.name] for spec in backbone.program.outputs))
            self.recorder.publish(record, message)

    def _bind(self, message: StageHandoff, arrays, outputs) -> None:
        """Let the program read and write where the tensors lie.

        :raises ValueError, KeyError, ProgramError: they are not what it takes.
        """
        backbone = self._backbone
        present = len(self.fit.cameras) - len(message.masked_cameras)
        names = [f"image_{slot}" for slot in range(present)]
        if present < 1 or sorted(arrays) != sorted(names):
            raise ValueError(f"tensors {', '.join(arrays) or 'none'} came; expected "
                             f"{', '.join(names) or 'at least image_0'}")
        state = check_state(np.asarray(message.state), self.opened.bundle.manifest.dimensions.state,
                            self.state_names)
        backbone.bind_images([arrays[name] for name in names])
        backbone.bind_outputs(outputs)
        backbone.set_state(state)
        tokens = backbone.set_prompt(message.instruction)
        if tokens.truncated and message.instruction != self._truncated:
            self._truncated = message.instruction
            self.get_logger().warning(
                f"the instruction takes {tokens.full_count} tokens, the policy takes "
                f"{tokens.count}: its end is cut off; say it in fewer words")
        backbone.set_cameras(present)

    @property
    def state_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.opened.bundle.manifest.state_joints)

    def _hand_over(self, came: StageHandoff, around_s: float, run_s: float) -> None:
        done_ns = time.time_ns()
        message = self._outbox.message()
        for field in ("header", "observation_seq", "pipeline", "bundle", "instruction",
                      "instruction_seq", "state", "masked_cameras", "started"):
            setattr(message, field, getattr(came, field))
        message.timings = [*came.timings, timing("hand_off", around_s),
                           timing("fusion_backbone", run_s)]
        self._outbox.hand_over(message, self._names, inline=self.inline, done_ns=done_ns)
        self.tally.handed_on(came.observation_seq, to_ns(came.header.stamp), time.monotonic_ns(),
                             {"hand_off": around_s, "fusion_backbone": run_s})
        self.tally.set_state(State.RUNNING, f"observations go through: {came.instruction}")

    def fill_status(self, message: PolicyStatus) -> None:
        super().fill_status(message)
        backbone = self._backbone if self.opened is not None else None
        if backbone is not None and backbone.tokens is not None:
            message.prompt_tokens = backbone.tokens.full_count
            message.prompt_truncated = backbone.tokens.truncated


def main(argv: list | None = None) -> int:
    return run(FusionBackboneNode, argv)
