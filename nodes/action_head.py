# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Last stage of a policy: from keys, values and noise to a chunk of actions for the player."""

from __future__ import annotations

import math
import os
import threading
import time

import numpy as np

from omni_ros.msg import ActionChunk, Heartbeat, PolicyStatus, StageHandoff
from omni_ros.nodes._head_joints import FreshJoints
from omni_ros.nodes._polled import PolledSubscription
from omni_ros.nodes._runtime import run
from omni_ros.nodes._stage_draws import Draws, read_draw
from omni_ros.nodes._stage_follower import (
    IDLE_S,
    FollowerNode,
    hand_off_s,
    seconds_by_stage,
    sentence_of,
    timing,
)
from omni_ros.nodes._stage_node import STAGES, STATUSES_QOS
from omni_ros.nodes._stage_record import Record, StepWatch, flat
from omni_ros.nodes._support import (
    CHUNK_QOS,
    COMMAND_QOS,
    describe,
    duration_message,
    pid_scope,
    time_message,
    to_ns,
)
from omni_ros.policy.flow import Stopped
from omni_ros.policy.head_stage import ActionHead
from omni_ros.policy.latency import LatencyEstimator
from omni_ros.policy.leftover import Leftover
from omni_ros.policy.noise import fill_noise
from omni_ros.policy.observation import check_state
from omni_ros.policy.pace import Pace
from omni_ros.policy.rtc import RtcConfig, RtcGuide
from omni_ros.policy.steps import HeadWithSteps
from omni_ros.stages.held import HeldPrefix
from omni_ros.stages.tally import State

HEARTBEAT_PERIOD_S = 0.05
#: How long configure waits to hear from the stages before how long they take, seconds.
HEARING_S = 1.0
#: How long until joints are looked for again that have not come, seconds.
JOINTS_S = 0.005


class ActionHeadNode(FollowerNode):
    """Reads `prefix` and `instruction`; publishes `action_chunk` and `heartbeat`."""

    stage = "action_head"
    preceding, topic = "fusion_backbone", "prefix"

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.declare_parameter("source", "local", describe(
            "name of this source in chunks and heartbeats"))
        self._chunk_id = self._delay = self._uncovered = 0
        self._heart: threading.Thread | None = None
        self._complaint = ""
        self._held: HeldPrefix | None = None
        self._runs_again = 0

    def load(self) -> None:
        manifest = self.opened.bundle.manifest
        self._head = ActionHead(self.opened.bundle)
        self.keep(self._head.program.close)
        self._held = None
        if self.policy.head_rate_hz is not None:
            if not self._head.takes_state:
                raise ValueError(
                    f"policy.head_rate_hz is {self.policy.head_rate_hz:g}, and the action head of "
                    f"{manifest.name} ({manifest.family}) has no state: only a π0's can be run on "
                    "fresh joints; take head_rate_hz out of the robot YAML")
            self._held = HeldPrefix(
                self.policy.head_rate_hz, round(self.policy.prefix_life_s * 1e9))
        self._noise = np.zeros(self._head.shape, np.float32)
        self._head.denoise(self._noise)  # the first takes longer than any other
        began = time.perf_counter()
        self._head.denoise(self._noise)
        self.warm_up_s = time.perf_counter() - began
        own = manifest.rtc
        self._guide = None if self.policy.guidance != "rtc" else RtcGuide(
            RtcConfig(own.schedule, self.policy.execution_horizon, own.max_guidance_weight,
                      own.window, own.padding),
            chunk=self._head.shape[0], width=self._head.shape[1])
        self._prefix = (manifest.dimensions.prefix,)
        self._leftover = Leftover(manifest.dimensions.chunk, self.policy.dt_ns)

    def connect(self) -> None:
        super().connect()
        self._chunks = self.create_publisher(ActionChunk, "action_chunk", CHUNK_QOS)
        self.keep(lambda: self.destroy_publisher(self._chunks))
        self._beats = self.create_publisher(Heartbeat, "heartbeat", COMMAND_QOS)
        self.keep(lambda: self.destroy_publisher(self._beats))
        self._draws = Draws(self)
        expected_ns = self._expected_ns()
        self._joints = None
        if self._held is not None:
            self._joints = FreshJoints(self)
            if expected_ns > self._held.life_ns:
                raise ValueError(
                    f"after the warm-up: a prefix is {expected_ns / 1e6:.0f} ms old when it comes, "
                    f"and policy.prefix_life_s is {self.policy.prefix_life_s:g}: the head would "
                    "never run on it again; raise prefix_life_s, or take head_rate_hz out")
        # A chunk of fresh joints is as late as the head alone.
        own_ns = expected_ns if self._held is None else round(self.warm_up_s * 1e9)
        self._estimator = LatencyEstimator(expected_ns=own_ns)
        self._pace = Pace(self.policy, self._head.shape[0], expected_latency_ns=expected_ns)
        verdict = self._pace.verdict(expected_ns)
        if verdict is not None and verdict.refused:
            raise ValueError(f"after the warm-up: {verdict.text}")

    def release(self) -> None:
        if self._held is not None:
            self._held.forget()  # its tensors are no longer bound
        self._head.release()

    def _expected_ns(self) -> int:
        """Sum of what each stage took when it was warmed up, as far as they have said."""
        before: dict[str, float] = {}
        statuses = PolledSubscription(self, PolicyStatus, "policy_status", STATUSES_QOS)
        deadline = time.monotonic() + HEARING_S
        while len(before) < 2 and time.monotonic() < deadline:
            for status in statuses.take():
                if (status.bundle == self.opened.sha256 and status.stage in STAGES[:2]
                        and math.isfinite(status.warm_up_s)):
                    before[status.stage] = status.warm_up_s
            time.sleep(0.01)
        statuses.destroy()
        return round((self.warm_up_s + sum(before.values())) * 1e9)

    def begin(self) -> None:
        super().begin()
        self._draws.forget()
        self._leftover.forget()
        self._estimator.reset()
        self._runs_again = self._newest_ns = 0
        if self._held is not None:
            self._held.forget()
            self._joints.forget()
        self._source = self.get_parameter("source").value
        self._complaint = ""

    # -- heartbeat -----------------------------------------------------------------------------

    def after_activation(self) -> None:
        """Beat while active: it says that this process lives, whatever it computes."""
        self._stop_beating = threading.Event()
        self._heart = threading.Thread(
            target=self._beat, args=(self._stop_beating,), name="heartbeat", daemon=True)
        self._heart.start()

    def before_deactivation(self) -> None:
        if self._heart is not None:
            self._stop_beating.set()
            self._heart.join(timeout=1.0)
            self._heart = None

    def _beat(self, stop: threading.Event) -> None:
        beat = Heartbeat(source=self._source, pid=os.getpid(), pid_scope=pid_scope())
        while not stop.wait(HEARTBEAT_PERIOD_S):
            beat.header.stamp = self.get_clock().now().to_msg()
            beat.sequence += 1
            self._beats.publish(beat)

    # -- the stage's thread --------------------------------------------------------------------

    def treat(self, message: StageHandoff) -> None:
        began = time.perf_counter()
        waited_s = hand_off_s(message)
        opened = self.open(message)
        if opened is None or not self.use(message, lambda: self._bind(opened.arrays)):
            if self._held is not None:
                self._held.forget()
            return
        stamp_ns, state = to_ns(message.header.stamp), self._state_of(message)
        if self._held is None:
            self._decide(message, opened, stamp_ns, state, waited_s, began)
            return
        # Always of the newest joints: a chunk that is older than the one that plays is refused.
        fresh = self._joints.read(self.now_ns())
        if fresh is not None and fresh[0] > stamp_ns:
            stamp_ns, state = fresh
        if self._decide(message, opened, stamp_ns, state, waited_s, began):
            self._held.take((message, opened), to_ns(message.header.stamp), self.now_ns())

    def between(self) -> float:
        """Run the head again on newer joints, if it is due."""
        wait_ns = None if self._held is None else self._held.wait_ns(self.now_ns())
        if wait_ns is None:
            return IDLE_S
        if wait_ns > 0:
            return min(IDLE_S, wait_ns * 1e-9)
        message, opened = self._held.what
        wanted = self.gate.still_wanted(
            instruction=sentence_of(message), stamp_ns=self._held.stamp_ns,
            now_ns=self.now_ns()) is None
        if not wanted:
            self._held.forget()
            return IDLE_S
        fresh = self._joints.read(self.now_ns())
        if fresh is None or fresh[0] <= self._newest_ns:
            return JOINTS_S
        if self._decide(message, opened, *fresh, 0.0, time.perf_counter(), again=True):
            self._held.ran(self.now_ns())
        else:
            self._held.forget()
        return 0.0

    def _state_of(self, message: StageHandoff) -> np.ndarray | None:
        """Return the observation's state, where the head or its actions depend on it.

        :raises ValueError: it is not what the policy takes.
        """
        if not (self._head.takes_state or self._head.relative):
            return None
        manifest = self.opened.bundle.manifest
        return check_state(np.asarray(message.state), manifest.dimensions.state,
                           tuple(joint.name for joint in manifest.state_joints))

    def _decide(self, message: StageHandoff, opened, stamp_ns: int, state: np.ndarray | None,
                waited_s: float, began: float, *, again: bool = False) -> bool:
        """Compute a chunk and publish it; whether it was.

        :param stamp_ns: of the state, and so of the chunk. :param again: on a prefix of before.
        """
        head = self._head
        draw = None if again else self._draws.of(to_ns(message.header.stamp))
        if draw is not None:
            steps = read_draw(draw, self._noise)
            if steps and steps != head.steps:
                head = HeadWithSteps(head, self.opened.bundle.manifest, steps)
        else:
            fill_noise(self._noise, seed=self.policy.noise_seed, stamp_ns=stamp_ns)
        self._delay = self._estimator.delay(dt_ns=self.policy.dt_ns)
        if state is not None:
            self._head.set_state(state)
        # What is drawn for somebody else neither continues another chunk nor is it continued.
        own = draw is None
        record, rest = self.recorder.open(), None
        guide = self._guide if own else None
        if guide is not None:
            rest = self._leftover.at(stamp_ns, message.instruction_seq)
            if rest is not None and self._head.relative:
                rest = self._head.encode(rest, state)
            guide.begin(rest, delay=self._delay)
            self._uncovered = guide.uncovered
        ready = time.perf_counter()
        try:
            watch = guide if record is None else StepWatch(record, guide)
            padded = head.denoise(self._noise, guide=watch, stop=self._thread.stopping.is_set)
        except Stopped:
            self.drop("stopped", message)
            return False
        done = time.perf_counter()
        if not self.still_wanted(message, opened):
            return False
        normalised = padded[:, :self.opened.bundle.manifest.dimensions.action].copy()
        try:
            actions = self._head.decode(normalised, state)
        except FloatingPointError:
            self.drop("not finite", message)
            return False
        self._newest_ns = stamp_ns
        if draw is not None:
            self._draws.used(draw)
        before = {} if again else {"hand_off": waited_s + ready - began}
        self._publish(message, stamp_ns, actions, {**before, "action_head": done - ready}, done,
                      again=again)
        if record is not None:
            watch.end(padded)
            fresh = state if stamp_ns != to_ns(message.header.stamp) else None
            said = record.message
            said.chunk_stamp, said.fresh_state = time_message(stamp_ns), flat(fresh, "d")
            said.steps, said.drawn_noise = head.steps, flat(None if own else self._noise)
            said.guided, said.leftover, said.normalised = guide is not None, flat(rest), flat(normalised)
            self._say(record, message)
        # Rows that are relative to a state are kept as the targets that they mean.
        kept = actions if self._head.relative else normalised
        if own:
            self._leftover.keep(kept, stamp_ns, message.instruction_seq)
        return True

    def _say(self, record: Record, message: StageHandoff) -> None:
        """Tell whoever records which chunk it was."""
        said = record.message
        said.source, said.chunk_id = self._source, self._chunk_id
        said.noise_seed, said.delay_rows = self.policy.noise_seed, self._delay
        self.recorder.publish(record, message)

    def _bind(self, arrays) -> None:
        """:raises KeyError, ValueError, ProgramError: they are not what the program reads."""
        valid = arrays["valid"]
        if valid.dtype != np.float32 or valid.shape != self._prefix or not np.isfinite(valid).all():
            raise ValueError(f"valid is {valid.dtype} {list(valid.shape)}; expected finite float32 "
                             f"{list(self._prefix)}")
        self._head.bind_prefix(arrays)
        self._head.set_valid(valid)

    def _publish(self, message: StageHandoff, stamp_ns: int, actions: np.ndarray,
                 seconds: dict[str, float], done: float, *, again: bool) -> None:
        self._chunk_id += 1
        policy = self.policy
        chunk = ActionChunk(
            control_mode=ActionChunk.CONTROL_POSITION,
            joint_names=self.fit.action_names, joint_units=self.fit.action_units,
            dt=duration_message(policy.dt_ns), rows=len(actions), chunk_id=self._chunk_id,
            observation_seq=message.observation_seq, source=self._source,
            noise_seed=policy.noise_seed, life=duration_message(self.life_ns))
        chunk.header.stamp = time_message(stamp_ns)
        chunk.header.frame_id = self.robot.base_frame
        chunk.values.frombytes(actions.astype(np.float64).tobytes())
        seconds["postprocess"] = time.perf_counter() - done
        passed = () if again else message.timings
        chunk.timings = [*passed, *(timing(name, s) for name, s in seconds.items())]
        self._chunks.publish(chunk)
        now_ns, mono_ns = self.now_ns(), time.monotonic_ns()
        self._estimator.add(max(0, now_ns - stamp_ns))
        if again:
            self._runs_again += 1
            self.tally.did_again(mono_ns, seconds)
        else:
            observed_ns = to_ns(message.header.stamp)
            self.tally.handed_on(
                message.observation_seq, observed_ns, mono_ns, seconds_by_stage(chunk.timings),
                max(0, now_ns - observed_ns) * 1e-9)
        self.tally.set_state(State.RUNNING, f"chunks go out: {message.instruction}")
        if self._uncovered:
            self.get_logger().warning(
                f"{self._delay} rows play while a chunk is computed, {self._uncovered} of them "
                "beyond what guidance reaches: raise execution_horizon, or compute faster",
                throttle_duration_sec=10.0)

    # -- status --------------------------------------------------------------------------------

    def fill_status(self, message: PolicyStatus) -> None:
        super().fill_status(message)
        message.delay_rows, message.rtc_uncovered = self._delay, self._uncovered
        age_ns = None if self._held is None else self._held.age_ns(self.now_ns())
        message.prefix_age = math.nan if age_ns is None else age_ns * 1e-9
        message.head_runs = self._runs_again
        if self.opened is not None:
            message.chunk_rows = self.opened.bundle.manifest.dimensions.chunk
        self._judge(message)

    def _judge(self, message: PolicyStatus) -> None:
        """Say it where chunks take so long that each is used up before the next one is there."""
        self._complaint = ""
        if message.latency_p99 == message.latency_p99 and message.observations_handed_on >= 20:
            verdict = self._pace.verdict(round(message.latency_p99 * 1e9))
            if verdict is not None:
                self._complaint = verdict.text
                self.get_logger().warning(verdict.text, throttle_duration_sec=30.0)

    def complaints(self) -> list[str]:
        return [self._complaint] if self._complaint else []


def main(argv: list | None = None) -> int:
    return run(ActionHeadNode, argv)
