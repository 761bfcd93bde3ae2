# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the three stages of a policy have in common: lifecycle, thread, bundle, sentence, hand-offs."""

from __future__ import annotations

import traceback
from functools import partial
from typing import Any, Callable

from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String

from omni_ros.bundles.named import bundle_folder
from omni_ros.msg import PolicyStatus, StageHandoff
from omni_ros.nodes._runtime import Transitions, logged
from omni_ros.nodes._share import share_of
from omni_ros.nodes._stage_handoff import HandoffReader, HandoffWriter, LocalLink
from omni_ros.nodes._stage_parameters import TRANSPORTS, declare_parameters
from omni_ros.nodes._stage_status import StageStatus
from omni_ros.nodes._stage_thread import StageThread
from omni_ros.nodes._stage_wait import TimedSubscription, Waiter, deeper
from omni_ros.nodes._support import COMMAND_QOS, LATCHED_QOS, load_robot_parameter, pid_scope, to_ns
from omni_ros.policy.pace import chunk_life_ns
from omni_ros.programs import get_threads, set_threads
from omni_ros.robot.policy_config import require_policy
from omni_ros.stages import Gate, Instruction, Opened, Tally, fit_robot, open_stage
from omni_ros.stages.gate import hear
from omni_ros.stages.tally import State
from omni_ros.stages.transport import Reader, hand_over_inline
from omni_ros.telemetry.placement import SEPARATE, SINGLE
from omni_ros.telemetry.realtime import set_affinity, set_nice

#: Longest wait for the piece of work in progress when a stage is deactivated, seconds.
END_TIMEOUT_S = 30.0
#: Statuses of the three stages, of two incarnations each, and room.
STATUSES_QOS = deeper(LATCHED_QOS, 8)
#: The stages of a policy, in order; what others say of themselves is passed over.
STAGES = ("vision_encoder", "fusion_backbone", "action_head")


class StageNode(Transitions, LifecycleNode):
    """Subclasses say which stage they are, and fill `load`, `connect`, `begin` and `work`.

    `load`, `begin` and `work` run in the stage's thread, all else in the executor's.
    """

    stage = ""
    following: str | None = None
    #: Reasons to drop that are part of good order, and not logged.
    quiet_drops = frozenset({"replaced", "past instruction", "stopped", "past pipeline"})

    def __init__(self, *, process: str | None = None, links: dict[str, LocalLink] | None = None):
        """
        :param process: the one that is shared with the other stages, None if it is this stage's own.
        :param links: topic -> link to a stage of the same process.
        """
        super().__init__(self.stage)
        self._process, self._links = process or self.stage, links or {}
        declare_parameters(self)
        self.tally = Tally()
        self.placement_texts: list[str] = []
        self.opened: Opened | None = None
        self.warm_up_s = 0.0
        self.waiter = Waiter(self)
        self._thread: StageThread | None = None
        self._teardown: list[Callable[[], None]] = []
        self._others: dict[str, PolicyStatus] = {}
        self._scope = pid_scope()
        self._inline_only = False
        self.instruction = Instruction()
        self.sentence_fault, self.heard = "", False
        self.inbox: HandoffReader | None = None
        self._status = StageStatus(self)

    # -- for subclasses ------------------------------------------------------------------------

    def load(self) -> None:
        """Load the program and warm it up; set `warm_up_s`."""
        raise NotImplementedError

    def connect(self) -> None:
        """Make publishers and subscriptions."""

    def begin(self) -> None:
        """Forget what was before the activation."""

    def after_activation(self) -> None:
        """Begin what goes on beside the work."""

    def before_deactivation(self) -> None:
        """End that; also where nothing was begun."""

    def work(self) -> None:
        """Do the next thing there is to do, or wait a moment."""
        raise NotImplementedError

    def fill_status(self, message: PolicyStatus) -> None:
        """Add what this class knows to a status."""
        message.instruction, message.instruction_seq = self.instruction.text, self.instruction.number
        message.placement = self.placement_texts
        message.warm_up_s = self.warm_up_s
        if self.opened is not None:
            message.bundle = self.opened.sha256
            message.memory_need_bytes = self.opened.need
            message.memory_have_bytes = self.opened.have or 0
        if self.following is not None and self.opened is not None:
            message.transport = "inline" if self.inline else (
                "by reference" if self._links else "shared memory")
        message.wants_inline = self.inbox is not None and self.inbox.wants_inline

    def complaints(self) -> list[str]:
        """Say what deserves a warning in /diagnostics."""
        return []

    # -- lifecycle -----------------------------------------------------------------------------

    @logged
    def on_configure(self, state):
        try:
            self._configure()
        except BaseException:
            self._free()
            raise
        self._status.look(now=True)

    def _configure(self) -> None:
        get = self.get_parameter
        if get("transport").value not in TRANSPORTS:
            raise ValueError(f"transport is {get('transport').value!r}; "
                             f"expected one of {', '.join(TRANSPORTS)}")
        self._inline_only = get("transport").value == "inline"
        self.robot = load_robot_parameter(get("robot").value)
        self.policy = require_policy(self.robot)
        folder = bundle_folder(get("bundle").value)
        self._share, text = share_of(
            self, self._process, SINGLE if self._process in SINGLE else SEPARATE)
        self.placement_texts = [text]
        if self._share.process_cpus:
            self.placement_texts.append(str(set_affinity(self._share.process_cpus)))
        self._thread = StageThread(self.stage)
        self._thread.do(partial(self._prepare, folder))
        self._others.clear()
        self.keep(partial(self.destroy_subscription, self.create_subscription(
            PolicyStatus, "policy_status", self._on_status, STATUSES_QOS)))
        # Two, so that a latched sentence is heard at once, and one from a volatile publisher at all.
        latched = TimedSubscription(self, String, "instruction", LATCHED_QOS)
        self._teardown.append(latched.destroy)
        self.sentences = (latched, self.polled(String, "instruction", COMMAND_QOS))
        self.connect()
        manifest = self.opened.bundle.manifest
        self.get_logger().info(
            f"bundle {manifest.name} ({self.opened.sha256[:12]}), needs {self.opened.need / 1e6:.0f} MB"
            f"; warm after {self.warm_up_s * 1e3:.1f} ms; {self.placement_texts[0]}")

    def _prepare(self, folder) -> None:
        """In the stage's thread: bind it, then load, so that the program's pool is bound as well."""
        share = self._share
        asked = ([set_affinity(share.cpus)] if share.cpus else []) + (
            [set_nice(share.nice)] if share.nice else [])
        self.placement_texts += [str(answer) for answer in asked]
        if share.threads != get_threads():
            set_threads(share.threads)
        self.opened = open_stage(folder, self.stage, together=bool(self._links))
        manifest = self.opened.bundle.manifest
        self.fit = fit_robot(manifest, self.robot, self.policy.cameras)
        self.life_ns = chunk_life_ns(self.policy, manifest.dimensions.chunk)
        self.load()

    @logged
    def on_activate(self, state):
        self.tally.reset()
        self.gate = Gate(self.opened.sha256, self.life_ns)
        self._thread.do(self._begin)
        self._thread.begin(self.work, self._failed)
        self.after_activation()
        self._status.look(now=True)

    def _begin(self) -> None:
        self.tally.set_state(State.WAITING, "active; nothing has come yet")
        if self.inbox is not None:
            self.inbox.take()  # from before: nothing to act on
        self.begin()

    def _tell_state(self) -> None:
        self._status.look(now=True)

    def _end(self) -> None:
        """Stop work; what is being computed is thrown away."""
        self.before_deactivation()
        if self._thread is not None and not self._thread.end(self.waiter.wake, END_TIMEOUT_S):
            self.exit_status = 1
            self.stop_requested.set()
            raise RuntimeError(f"a program did not end within {END_TIMEOUT_S:g} s; ending the process")
        self.tally.set_state(State.INACTIVE, "")

    def _free(self) -> None:
        """Undo what configure made, as far as it got."""
        self._status.connections.subscriptions = ()
        while self._teardown:
            self._teardown.pop()()
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        self.opened, self.inbox, self.warm_up_s = None, None, 0.0

    def _failed(self) -> None:
        """The stage's thread ended by an exception: a process that stands still is worse than none."""
        text = traceback.format_exc()
        self.tally.set_state(State.ERROR, text.strip().splitlines()[-1])
        self.get_logger().fatal(f"the stage stops, ending the process:\n{text}")
        self.exit_status = 1
        self.stop_requested.set()

    # -- connections ---------------------------------------------------------------------------

    def keep(self, destroy: Callable[[], Any]) -> None:
        """Have something undone at cleanup."""
        self._teardown.append(destroy)

    def polled(self, kind, topic: str, qos) -> TimedSubscription:
        """Subscribe, to be read by the stage's thread."""
        return self.listen_to(TimedSubscription(self, kind, topic, qos))

    def listen_to(self, subscription: Any) -> Any:
        """Have /diagnostics watch a subscription, and cleanup end it."""
        self._teardown.append(subscription.destroy)
        self._status.connections.subscriptions = (*self._status.connections.subscriptions, subscription)
        return subscription

    def make_inbox(self, topic: str) -> None:
        """Listen to the stage before."""
        self.inbox = HandoffReader(self, topic, self.waiter, self._links.get(topic))
        self.keep(self.inbox.close)
        self._status.connections.subscriptions = (*self._status.connections.subscriptions, *self.inbox.subscriptions)

    def make_outbox(self, topic: str, specs) -> HandoffWriter:
        outbox = HandoffWriter(
            self, topic, topic, specs, slots=self.get_parameter("ring_slots").value,
            inline=self._inline_only, link=self._links.get(topic))
        self.keep(outbox.close)
        return outbox

    def _on_status(self, message: PolicyStatus) -> None:
        if message.stage in STAGES:
            self._others[message.stage] = message

    def is_inactive(self, stage: str) -> bool:
        """Whether another stage has said that it is not active; one that says nothing is believed."""
        other = self._others.get(stage)
        return other is not None and other.state == PolicyStatus.STATE_INACTIVE

    @property
    def inline(self) -> bool:
        """Whether the next stage has to get the tensors in the message."""
        if self._links:
            return self._inline_only
        other = self._others.get(self.following)
        reader = None if other is None else Reader(other.pid_scope, other.wants_inline)
        return self._inline_only or hand_over_inline(self._scope, reader)

    # -- the stage's thread --------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self._thread.stopping.is_set()

    def now_ns(self) -> int:
        return self.get_clock().now().nanoseconds

    def listen(self) -> None:
        """Take the newest sentence; the same one said again changes nothing."""
        heard = [(came_ns, sent_ns, message.data) for subscription in self.sentences
                 for message, came_ns, sent_ns in subscription.take_timed()]
        for _, sent_ns, text in sorted(heard):
            said, now, fault = hear(self.instruction, text, sent_ns)
            if self.gate.hear(said):
                self.instruction, self.sentence_fault, self.heard = now, fault, True

    def drop(self, reason: str, message: StageHandoff, error: Exception | None = None) -> None:
        """Count an observation as dropped; what was wrong with it is said on the status."""
        self.tally.dropped(reason, message.observation_seq, to_ns(message.header.stamp))
        if error is not None:
            self.tally.set_state(State.WAITING, f"dropped, {reason}: {error}")
            self.get_logger().warning(
                f"observation {message.observation_seq} dropped, {reason}: {error}",
                throttle_duration_sec=5.0)
