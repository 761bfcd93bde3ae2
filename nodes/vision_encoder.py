# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""First stage of a policy: takes an observation when one is due, and encodes its pictures.

It sees the chunks that come out at the end, and so knows when the next observation is due: one is in
flight at a time, and the next is begun while the last chunk plays.
"""

from __future__ import annotations

import time
from array import array

import numpy as np
from sensor_msgs.msg import CompressedImage, Image, JointState

from omni_ros.images import ImageError
from omni_ros.msg import ActionChunk, ActionDraw, PolicyStatus, StageHandoff
from omni_ros.nodes._runtime import run
from omni_ros.nodes._stage_camera import CameraInput
from omni_ros.nodes._stage_draws import ASKED, DRAWS_QOS
from omni_ros.nodes._stage_follower import timing
from omni_ros.nodes._stage_node import STAGES, StageNode
from omni_ros.nodes._stage_record import Record, StageRecorder
from omni_ros.nodes._support import (
    CHUNK_QOS,
    JOINT_STATES_QOS,
    describe,
    time_message,
    to_ns,
)
from omni_ros.policy.intake import NOTHING_NEW, Assembled, ObservationIntake, Waiting
from omni_ros.policy.pace import Pace
from omni_ros.policy.pictures import look_at
from omni_ros.policy.vision_stage import VisionEncoder
from omni_ros.programs import TensorSpec
from omni_ros.replay.fingerprints import IMAGE_TOKENS, PICTURE, PIXELS
from omni_ros.requirements import require
from omni_ros.stages import Freshness, Instruction
from omni_ros.stages.gate import newest, read_sentence
from omni_ros.stages.tally import State

#: Longest sleep while the next observation is not due, or has no pictures yet, seconds.
SLEEP_S = 0.05
#: The stages that an observation goes through afterwards.
LATER = STAGES[1:]
#: How long they are waited for to say what they have heard, seconds.
HEARSAY_S = 1.0


class VisionEncoderNode(StageNode):
    """Reads cameras, joint states, `instruction` and `action_chunk`; writes `image_tokens`."""

    stage = "vision_encoder"
    following = "fusion_backbone"

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.declare_parameter("instruction", "", describe(
            "sentence to begin with; what comes on the topic replaces it"))
        self.declare_parameter("source", "local", describe(
            "name that the action_head gives its chunks"))
        self.declare_parameter("compressed", False, describe(
            "take sensor_msgs/CompressedImage from TOPIC/compressed instead of raw pictures"))
        self._ages = (float("nan"), float("nan"))

    def load(self) -> None:
        self._encoder = VisionEncoder(self.opened.bundle)
        self.keep(self._encoder.program.close)
        self._encoder.run()  # the first takes longer than any other
        self.warm_up_s = self._encoder.run() * len(self.fit.cameras)

    def connect(self) -> None:
        robot = self.robot
        compressed = self.get_parameter("compressed").value
        if compressed:
            require("cv2", "to decode compressed camera images (compressed: true)")
        kind, suffix = (CompressedImage, "/compressed") if compressed else (Image, "")
        self._cameras = {
            name: self.listen_to(CameraInput(self, kind, robot.cameras[camera] + suffix))
            for name, camera in self.fit.cameras.items()}
        self._joints = self.polled(JointState, robot.topics["joint_states"], JOINT_STATES_QOS)
        self._chunks = self.polled(ActionChunk, "action_chunk", CHUNK_QOS)
        self._draws = self.polled(ActionDraw, ASKED, DRAWS_QOS)
        self._intake = ObservationIntake(list(self._cameras), list(robot.joint_names), self.policy)
        self._pace = Pace(self.policy, self.opened.bundle.manifest.dimensions.chunk)
        self._fresh = Freshness(oldest_ns=round(self.policy.image_timeout_s * 1e9))
        self._outbox = self.make_outbox("image_tokens", [
            TensorSpec(f"image_{slot}", self._encoder.shape, "float32")
            for slot in range(len(self._cameras))])
        self._recorder = StageRecorder(self, self.stage)
        self.keep(self._recorder.destroy)
        text = read_sentence(self.get_parameter("instruction").value)
        self.instruction = Instruction(text, time.time_ns())
        # In one process with the others there is nobody who could know more.
        self._ask, self.heard = bool(text) and not self._links, False

    def begin(self) -> None:
        for subscription in (self._joints, self._chunks, self._draws, *self._cameras.values()):
            for _ in subscription.take(most=64):
                pass
        self._source = self.get_parameter("source").value
        self._seq, self._pipeline, self._last_ns = 0, time.time_ns(), 0
        self._stamp_ns = 0
        self._current = self.instruction
        self._connected = False
        self._ask_until = time.monotonic() + HEARSAY_S
        self._simulated = self.get_parameter("use_sim_time").value
        self._intake.reset()
        self._pace.reset()
        self._fresh.reset()
        self.gate.hear(self.instruction)

    # -- the stage's thread --------------------------------------------------------------------

    def work(self) -> None:
        now_ns = self.now_ns()
        self._follow_clock(now_ns)
        self._follow(now_ns)
        news = (*self.sentences, self._chunks, self._draws)
        if not self.instruction.text:
            self.tally.set_state(
                State.WAITING, self.sentence_fault or "no instruction yet: publish one on the topic "
                "instruction (std_msgs/String)")
            self.waiter.wait(news, SLEEP_S)
        elif self._ask and not self.heard and not self._ask_around():
            self.waiter.wait(news, SLEEP_S)
        elif now_ns <= 0:
            self.tally.set_state(State.WAITING, "no clock: use_sim_time is set and no /clock came")
            self.waiter.wait(news, SLEEP_S)
        elif asleep := [stage for stage in LATER if self.is_inactive(stage)]:
            self.tally.set_state(State.WAITING, f"{' and '.join(asleep)} not active: what is handed "
                                 "on would be lost")
            self.waiter.wait(news, SLEEP_S)
        elif not self._is_connected():
            self.tally.set_state(State.WAITING, f"nobody reads image_tokens ({self.following}), or "
                                 "gives action_chunk (action_head): they have not been seen yet")
            self.waiter.wait(news, SLEEP_S)
        elif not self._pace.ready(now_ns):
            due_s = (self._pace.next_ns - now_ns) * 1e-9
            self.waiter.wait(news, min(due_s, SLEEP_S) if due_s > 0.0 else SLEEP_S)
        elif not self._observe(now_ns):
            self.waiter.wait((*self.sentences, *(
                camera.current() for camera in self._cameras.values())), SLEEP_S)

    def _ask_around(self) -> bool:
        """Whether it is known what to do: nothing was said since the launch, or what was.

        Started anew, this process has the parameter; the stages after it may have heard another
        sentence since, from somebody who is gone.
        """
        known = {stage: self._others.get(stage) for stage in LATER}
        said = newest(Instruction(status.instruction, status.instruction_seq)
                      for status in known.values() if status is not None)
        if said is not None:
            self.instruction, self._ask = said, False
            self.gate.hear(said)
        elif all(known.values()) or time.monotonic() > self._ask_until:
            self._ask = False
        return not self._ask and said is None

    def _is_connected(self) -> bool:
        """Whether the first observation would get through, and its chunk back to here."""
        if not self._connected:
            self._connected = self._outbox.has_reader and self.count_publishers("action_chunk") > 0
        return self._connected

    def _follow_clock(self, now_ns: int) -> None:
        """A clock that goes back (a bag in a loop) makes all that is known a thing of the future."""
        if now_ns < self._last_ns:
            self.get_logger().warning(
                f"the clock went back by {(self._last_ns - now_ns) * 1e-9:.3f} s: starting anew")
            self.begin()
        self._last_ns = now_ns

    def _follow(self, now_ns: int) -> None:
        """Take in sentences and chunks."""
        self.listen()
        if self.instruction != self._current:
            self._current = self.instruction
            self.get_logger().info(f"instruction: {self.instruction.text or '(none)'}")
            if self._pace.in_flight:
                self.tally.dropped("past instruction", self._seq)
            self._pace.reset()
            self._fresh.reset()
        for chunk in self._chunks.take():
            if chunk.source == self._source:
                # Decided from fresh joints, a chunk has their stamp, and not the pictures'.
                fresh = (self.policy.head_rate_hz is not None
                         and chunk.observation_seq == self._seq)
                self._pace.arrived(
                    self._stamp_ns if fresh else to_ns(chunk.header.stamp), now_ns)
        if any([True for _ in self._draws.take()]):
            self._pace.reset()  # an observation that somebody asks for is due at once
        if self._pace.lost(now_ns):
            self.tally.dropped("no chunk", self._seq)

    def _observe(self, now_ns: int) -> bool:
        """Take an observation and hand it on, if there is one."""
        self._take_in(now_ns)
        mono_ns = now_ns if self._simulated else time.monotonic_ns()
        found = self._intake.pick(now_ns, mono_ns)
        picked = self._fresh.choose(found if isinstance(found, Assembled) else None,
                                    due_ns=self._pace.next_ns, now_ns=now_ns)
        if picked is None:
            if isinstance(found, Waiting) and (found.code != NOTHING_NEW or found.loud):
                self.tally.set_state(State.WAITING, found.text)
            return False
        for notice in picked.notices:
            self.get_logger().warning(notice, throttle_duration_sec=5.0)
        began_ns = time.monotonic_ns()
        try:
            if picked.stamp_ns < 0:
                raise ImageError(f"pictures are stamped {picked.stamp_ns * 1e-9:g} s: expected no "
                                 "time before 0")
            pictures = look_at({name: picked.images[name] for name in self._cameras},
                               blind_std=self.policy.blind_std, check=self._encoder.check)
        except ImageError as error:
            self.tally.set_state(State.WAITING, str(error))
            return False
        self._encode(picked, pictures, now_ns, mono_ns, began_ns)
        return True

    def _take_in(self, now_ns: int) -> None:
        """Take what cameras and joints have sent; simulated time has one clock for all."""
        for message, came_ns, _ in self._joints.take_timed(most=64):
            self._intake.add_joints(message.name, message.position, to_ns(message.header.stamp),
                                    now_ns if self._simulated else came_ns)
        for name, subscription in self._cameras.items():
            for message, came_ns, _ in subscription.take_timed():
                self._intake.add_image(name, message, to_ns(message.header.stamp),
                                       now_ns if self._simulated else came_ns)

    def _encode(self, picked: Assembled, pictures: dict[str, np.ndarray], now_ns: int,
                mono_ns: int, began_ns: int) -> None:
        self._seq += 1
        self.tally.started()
        self._stamp_ns = picked.stamp_ns
        self._pace.started(picked.stamp_ns, now_ns)
        self._ages = max(picked.ages_s.values()), max(picked.receipt_ages_s.values())
        message, record = self._outbox.message(), self._recorder.open()
        arrays, run_s = self._outbox.begin(), 0.0
        for slot, (name, picture) in enumerate(pictures.items()):
            if self.stopping:
                break  # what there is will not be handed over
            self._encoder.prepare(picture, camera=name)
            if record is not None:
                record.copy(PIXELS + name, self._encoder.pixels)
            run_s += self._encoder.run(arrays[f"image_{slot}"])
        waited_s = (mono_ns - picked.received_ns) * 1e-9
        total_s, done_ns = (time.monotonic_ns() - began_ns) * 1e-9, time.time_ns()
        message.header.stamp = time_message(picked.stamp_ns)
        message.header.frame_id = self.robot.base_frame
        message.observation_seq, message.pipeline = self._seq, self._pipeline
        message.bundle = self.opened.sha256
        message.instruction, message.instruction_seq = self.instruction.text, self.instruction.number
        message.state = array("d", self.fit.state_of(picked.positions, self.robot).tobytes())
        message.started = time_message(now_ns)
        arrival_s = (now_ns - picked.stamp_ns) * 1e-9 - waited_s
        message.timings = [
            timing("arrival", arrival_s), timing("intake", waited_s),
            timing("preprocess", total_s - run_s), timing("vision_encoder", run_s)]
        handed_over = self._hand_over(message, done_ns, {
            "intake": waited_s, "preprocess": total_s - run_s, "vision_encoder": run_s})
        if handed_over and record is not None:
            self._say(record, message, picked, pictures, arrays)

    def _say(self, record: Record, message: StageHandoff, picked: Assembled,
             pictures: dict[str, np.ndarray], arrays) -> None:
        """Tell whoever records what the observation was made of."""
        said = record.message
        said.cameras = list(pictures)
        said.picture_stamps = [time_message(picked.picture_stamps[name]) for name in pictures]
        said.joint_names = list(self.robot.joint_names)
        said.positions = array("d", picked.positions.tobytes())
        said.state, said.masked_cameras = message.state, message.masked_cameras
        for slot, (name, picture) in enumerate(pictures.items()):
            record.tensor(PICTURE + name, picture)
            record.tensor(IMAGE_TOKENS + name, arrays[f"image_{slot}"])
        self._recorder.publish(record, message)

    def _hand_over(self, message: StageHandoff, done_ns: int, timings: dict[str, float]) -> bool:
        """Return whether the observation is still wanted, and so was handed over."""
        stamp_ns = to_ns(message.header.stamp)
        self.listen()
        reason = "stopped" if self.stopping else self.gate.still_wanted(
            instruction=Instruction(message.instruction, message.instruction_seq),
            stamp_ns=stamp_ns, now_ns=self.now_ns())
        if reason is not None:
            self.drop(reason, message)
            self._pace.dropped(stamp_ns)
            return False
        names = [f"image_{slot}" for slot in range(len(self._cameras))]
        self._outbox.hand_over(message, names, inline=self.inline, done_ns=done_ns)
        self.tally.handed_on(message.observation_seq, stamp_ns, time.monotonic_ns(), timings)
        self.tally.set_state(State.RUNNING, f"observations go through: {message.instruction}")
        return True

    def fill_status(self, message: PolicyStatus) -> None:
        super().fill_status(message)
        message.age_by_stamp, message.age_by_receipt = self._ages


def main(argv: list | None = None) -> int:
    return run(VisionEncoderNode, argv)
