# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Brings the lifecycle nodes of a launch up in order, and again when one was respawned.

Launch's own event handlers ask once and wait for ever; a request sent while a killed node's
endpoints linger in discovery is lost. Here every request has a deadline, the state is read anew
before each try, and a new process is told from an old one by the identity of its endpoints.
"""

from __future__ import annotations

import time

from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Bool
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from omni_ros.bringup.order import (
    Managed, NodeState, Transition, ask, observe, see_incarnations, wanted)
from omni_ros.nodes._runtime import run

#: Seconds after which an unanswered request is taken for lost.
REQUEST_TIMEOUT_S = 2.0
#: Configuring may load a bundle and warm it up.
TRANSITION_TIMEOUT_S = 120.0
#: Seconds between two looks at the graph.
PERIOD_S = 0.1

STATES = {
    State.PRIMARY_STATE_UNCONFIGURED: NodeState.UNCONFIGURED,
    State.PRIMARY_STATE_INACTIVE: NodeState.INACTIVE,
    State.PRIMARY_STATE_ACTIVE: NodeState.ACTIVE,
    State.PRIMARY_STATE_FINALIZED: NodeState.FINALIZED,
}


class Link:
    """The service clients to one managed node, and the request in flight."""

    def __init__(self, node: Node, managed: Managed) -> None:
        self.managed = managed
        self.get_state = node.create_client(GetState, f"{managed.name}/get_state")
        self.change_state = node.create_client(ChangeState, f"{managed.name}/change_state")
        self.events = node.resolve_topic_name(f"{managed.name}/transition_event")
        self.future = None
        self.deadline = 0.0
        self.asked: Transition | None = None

    def request(self, client, message, timeout_s: float) -> None:
        self.future = client.call_async(message)
        self.deadline = time.monotonic() + timeout_s


class LifecycleManager(Node):
    """Keeps a list of lifecycle nodes up."""

    def __init__(self) -> None:
        super().__init__("lifecycle_manager")
        names = self.declare_parameter(
            "node_names", Parameter.Type.STRING_ARRAY,
            ParameterDescriptor(description="lifecycle nodes to bring up, in this order",
                                read_only=True)).value or []
        self.links = [Link(self, Managed(name)) for name in names]
        latched = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE,
                             durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._all_active = self.create_publisher(Bool, "~/all_active", latched)
        self._last_all_active = None
        # By the machine's time: a simulated clock may come from a node that is yet to be brought up.
        self.create_timer(PERIOD_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        for link in self.links:
            self._see(link)
            self._collect(link)
        transitions = {id(node): transition for node, transition
                       in wanted([link.managed for link in self.links])}
        for link in self.links:
            if link.future is None and not link.managed.brought_up and not link.managed.given_up:
                self._ask(link, transitions.get(id(link.managed)))
        up = all(link.managed.brought_up for link in self.links)
        if up != self._last_all_active:
            self._last_all_active = up
            self._all_active.publish(Bool(data=up))

    def _see(self, link: Link) -> None:
        infos = self.get_publishers_info_by_topic(link.events)
        known = bool(link.managed.incarnations)
        if see_incarnations(link.managed, {bytes(info.endpoint_gid) for info in infos}):
            link.future = None
            if known:
                self.get_logger().warning(f"{link.managed.name} is back as a new process")

    def _ask(self, link: Link, transition: Transition | None) -> None:
        if not link.managed.incarnations:
            return
        if transition is not None and link.change_state.service_is_ready():
            message = ChangeState.Request()
            message.transition.id = transition.value
            link.asked = transition
            ask(link.managed, transition)
            link.request(link.change_state, message, TRANSITION_TIMEOUT_S)
        elif transition is None and link.get_state.service_is_ready():
            link.asked = None
            link.request(link.get_state, GetState.Request(), REQUEST_TIMEOUT_S)

    def _collect(self, link: Link) -> None:
        if link.future is None:
            return
        node = link.managed
        if not link.future.done():
            if time.monotonic() > link.deadline:
                link.future.cancel()
                link.future = None
                node.state = NodeState.UNKNOWN
            return
        answer, link.future = link.future.result(), None
        if link.asked is None:
            if observe(node, STATES.get(answer.current_state.id, NodeState.UNKNOWN)):
                self.get_logger().info(f"{node.name} is active")
            elif node.found_inactive:
                self.get_logger().warning(
                    f"{node.name} was found inactive, left so; activate it by hand")
            return
        asked, link.asked = link.asked, None
        node.state = NodeState.UNKNOWN  # read anew: the answer tells success, not the state
        if answer.success:
            node.attempts = 0
            return
        node.attempts += 1
        word = asked.name.lower()
        if node.given_up:
            self.get_logger().error(
                f"{node.name} could not {word} in {node.attempts} tries; its own log says why. "
                "Mend the cause and restart it")
        else:
            self.get_logger().warning(f"{node.name} could not {word}, trying again")


def main(argv: list | None = None) -> int:
    return run(LifecycleManager, argv)
