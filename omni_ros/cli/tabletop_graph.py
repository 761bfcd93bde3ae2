# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run episodes in a graph that stands: reset, say the sentence, look, end.

Between two episodes the arm has to be somewhere else at once, which no player would accept of an
arm it holds. So the player is deactivated meanwhile, as an operator would do who moves an arm by
hand. Imports rclpy and the omni_ros messages; import it only where both are known to be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String

from omni_ros.cli import UsageError
from omni_ros.cli.player_probe import STATUS_QOS, PlayerProbe, latched_trip
from omni_ros.msg import ActionChunk, PlayerStatus, PolicyStatus
from omni_ros.nodes._polled import PolledSubscription
from omni_ros.srv import GetContacts, ResetWorld

#: From a reset to the sentence: pictures and joints of the old episode have gone by then.
SETTLE_S = 0.4
ANSWER_S = 10.0


@dataclass(frozen=True)
class Look:
    """What the world tells of itself at an instant; lengths in metres, frame "world"."""

    seconds: float
    tip: np.ndarray
    touched: list[str]
    objects: dict[str, np.ndarray]
    answer: Any


@dataclass(frozen=True)
class ChunkSeen:
    """A chunk as it was received; `values` (rows, joints), times in nanoseconds."""

    received_ns: int
    stamp_ns: int
    dt_ns: int
    joint_names: tuple[str, ...]
    values: np.ndarray
    timings: dict[str, float]


class TabletopGraph(PlayerProbe):
    """The bench's hand in a running graph, and what it sees of it."""

    def __init__(self, check_alive: Callable[[], None]) -> None:
        super().__init__(check_alive)
        self.chunks: list[ChunkSeen] = []
        #: Seconds from an observation to the first command made of it, by its stamp.
        self.to_command: dict[int, float] = {}
        self.policy: dict[str, Any] = {}
        self._joints: Any = None
        self._all_active = False

    def __enter__(self) -> TabletopGraph:
        super().__enter__()
        node = self._node
        many = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE)
        latched = QoSProfile(depth=8, reliability=STATUS_QOS.reliability,
                             durability=STATUS_QOS.durability)
        node.create_subscription(ActionChunk, "action_chunk", self._keep_chunk, many)
        node.create_subscription(PolicyStatus, "policy_status", self._keep_policy, latched)
        node.create_subscription(Bool, "lifecycle_manager/all_active", self._keep_active, STATUS_QOS)
        # Polled: nobody needs a hundred of them a second.
        self._joint_states = PolledSubscription(
            node, JointState, "joint_states", qos_profile_sensor_data)
        self._instruction = node.create_publisher(String, "instruction", STATUS_QOS)
        self._change = node.create_client(ChangeState, "action_player/change_state")
        self._reset = node.create_client(ResetWorld, "world/reset")
        self._contacts = node.create_client(GetContacts, "world/get_contacts")
        return self

    @property
    def node(self) -> Any:
        """The node, for further topics."""
        return self._node

    @property
    def joints(self) -> JointState | None:
        """The newest joint states, None before the first."""
        for message in self._joint_states.take():
            self._joints = message
        return self._joints

    def now_ns(self) -> int:
        """Return the node's time."""
        return self._node.get_clock().now().nanoseconds

    # -- an episode --------------------------------------------------------------------------

    def wait_until_up(self, timeout: float, *, policy: bool) -> None:
        """Wait until every node is active and this one is connected to those it speaks to.

        :param policy: there are policy nodes, which have to hear the sentence.
        :raises RuntimeError: not within `timeout` seconds; the message says what is missing.
        :raises UsageError: the player is TRIPPED, which no waiting ends.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.follow()
            self.spin(0.1)
            if self._status is not None and self._status.state == PlayerStatus.STATE_TRIPPED:
                raise UsageError(latched_trip(self._status, self._topic))
            # On a machine that is late, a sentence said before the two ends know each other is late
            # by seconds.
            heard = not policy or self._instruction.get_subscription_count() > 0
            if self._all_active and self._status is not None and heard:
                return
        missing = "not all nodes are active"
        if self._all_active:
            missing = "no status of the player came" if self._status is None else (
                "nobody listens to the topic instruction")
        raise RuntimeError(
            f"the graph was not up within {timeout:g} s: {missing}; {self.complaint()}")

    def begin(self, seed: int) -> None:
        """End the last episode and start that of a seed; the arm holds, and no sentence stands."""
        self.tell("")
        self._player(Transition.TRANSITION_DEACTIVATE)
        self.ask(self._reset, ResetWorld.Request(seed=seed))
        began = time.monotonic()
        self._player(Transition.TRANSITION_ACTIVATE)
        self._wait(lambda: self._status.state == PlayerStatus.STATE_HOLDING, ANSWER_S,
                   "the player did not hold the arm after a reset of the world")
        self.spin(max(0.0, SETTLE_S - (time.monotonic() - began)))

    def tell(self, sentence: str) -> None:
        """Publish the instruction; it stays until the next one."""
        self._instruction.publish(String(data=sentence))

    def look(self) -> Look:
        """Return the world's truth now."""
        answer = self.ask(self._contacts, GetContacts.Request())
        objects = {name: np.array([at.x, at.y, at.z])
                   for name, at in zip(answer.object_names, answer.object_positions)}
        tip = np.array([answer.tip.x, answer.tip.y, answer.tip.z])
        seconds = answer.stamp.sec + answer.stamp.nanosec * 1e-9
        return Look(seconds, tip, list(answer.touched), objects, answer)

    def complaint(self) -> str:
        """Say in one line what the nodes say of themselves, for a message about what went wrong."""
        said = [f"{stage}: {status.text}" for stage, status in sorted(self.policy.items())]
        if self._status is not None:
            said.append(f"action_player: {self._status.text}")
        return "; ".join(said) or "no node has said anything"

    def ask(self, client: Any, request: Any) -> Any:
        """Call a service and return its answer.

        :raises RuntimeError: there is none, or no answer in time.
        """
        name = client.srv_name
        if not client.wait_for_service(timeout_sec=ANSWER_S):
            self._check_alive()
            raise RuntimeError(f"there is no service {name} within {ANSWER_S:g} s")
        future = client.call_async(request)
        try:
            self._wait(future.done, ANSWER_S, f"no answer from {name}")
        finally:
            if not future.done():
                client.remove_pending_request(future)
        return future.result()

    def _player(self, transition: int) -> None:
        request = ChangeState.Request()
        request.transition.id = transition
        if not self.ask(self._change, request).success:
            word = "activated" if transition == Transition.TRANSITION_ACTIVATE else "deactivated"
            raise RuntimeError(f"the player could not be {word}; {self.complaint()}")

    # -- what comes --------------------------------------------------------------------------

    def _keep(self, message: Any) -> None:
        super()._keep(message)
        if message.chunk_id:
            # The tick that takes a chunk makes a command of it, and `chunk_age` counts from there.
            stamp = message.observation_stamp
            latency = message.observation_age - message.chunk_age
            self.to_command.setdefault(stamp.sec * 1_000_000_000 + stamp.nanosec, latency)

    def _keep_chunk(self, message: ActionChunk) -> None:
        stamp, dt = message.header.stamp, message.dt
        timings: dict[str, float] = {}
        for timing in message.timings:
            seconds = timing.duration.sec + timing.duration.nanosec * 1e-9
            timings[timing.stage] = timings.get(timing.stage, 0.0) + seconds
        self.chunks.append(ChunkSeen(
            self.now_ns(), stamp.sec * 1_000_000_000 + stamp.nanosec,
            dt.sec * 1_000_000_000 + dt.nanosec, tuple(message.joint_names),
            np.array(message.values).reshape(message.rows, -1), timings))

    def _keep_policy(self, message: PolicyStatus) -> None:
        self.policy[message.stage] = message

    def _keep_active(self, message: Bool) -> None:
        self._all_active = message.data
