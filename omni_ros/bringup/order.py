# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which node may be configured or activated next. No ROS here: states in, transitions out.

A node is known by its name; each process that carries the name is an *incarnation* of it. A new
incarnation (first start, respawn) is brought up once. After that it is left alone: an operator who
deactivates a node does not want it back.

A process always begins unconfigured. One that is configured or active although this manager has not
asked for it was put there by somebody, perhaps before the manager itself was respawned: it is left
as found, or a restart of the manager would move an arm that an operator took down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

#: A transition that failed this often in a row is not tried again: the cause is not timing.
MAX_ATTEMPTS = 3


class NodeState(Enum):
    """Primary states of lifecycle_msgs/State; anything in between counts as UNKNOWN."""

    UNKNOWN = 0
    UNCONFIGURED = 1
    INACTIVE = 2
    ACTIVE = 3
    FINALIZED = 4


class Transition(Enum):
    """Transitions of lifecycle_msgs/Transition used here."""

    CONFIGURE = 1
    ACTIVATE = 3


@dataclass
class Managed:
    """What is known of one node."""

    name: str
    incarnations: set = field(default_factory=set)
    state: NodeState = NodeState.UNKNOWN
    brought_up: bool = False
    attempts: int = 0
    #: This manager has asked this incarnation to configure, whether or not the answer came.
    asked_to_configure: bool = False
    #: This incarnation was inactive before this manager asked anything of it.
    found_inactive: bool = False

    @property
    def given_up(self) -> bool:
        return self.attempts >= MAX_ATTEMPTS


def see_incarnations(node: Managed, seen: set) -> bool:
    """Note the processes seen under the node's name; return whether there is a new one."""
    new = seen - node.incarnations
    node.incarnations |= seen
    if new:
        node.state, node.brought_up, node.attempts = NodeState.UNKNOWN, False, 0
        node.asked_to_configure = node.found_inactive = False
    return bool(new)


def wanted(order: list[Managed]) -> list[tuple[Managed, Transition]]:
    """Return the transitions to ask for now.

    All nodes are configured in order, then activated in order: nothing is active before everything
    is known to be configurable. A node that was up once does not hold back the others later.
    """
    result = []
    earlier_configured = earlier_active = True
    all_configured = all(
        node.brought_up or node.state in (NodeState.INACTIVE, NodeState.ACTIVE) for node in order)
    for node in order:
        if not node.brought_up and not node.given_up and node.incarnations:
            if node.state is NodeState.UNCONFIGURED and earlier_configured:
                result.append((node, Transition.CONFIGURE))
            elif node.state is NodeState.INACTIVE and earlier_active and all_configured:
                result.append((node, Transition.ACTIVATE))
        configured = node.brought_up or node.state in (NodeState.INACTIVE, NodeState.ACTIVE)
        earlier_configured = earlier_configured and configured
        earlier_active = earlier_active and (node.brought_up or node.state is NodeState.ACTIVE)
    return result


def ask(node: Managed, transition: Transition) -> None:
    """Note that a transition is being asked for: what follows from it is this manager's doing."""
    if transition is Transition.CONFIGURE:
        node.asked_to_configure = True


def observe(node: Managed, state: NodeState) -> bool:
    """Note a node's state; return whether it has just come up.

    One that somebody else made inactive counts as up from then on: it is not to be touched, and does
    not hold back the others.
    """
    node.state = state
    if state is NodeState.INACTIVE and not node.brought_up and not node.asked_to_configure:
        node.brought_up = node.found_inactive = True
        return False
    if state is NodeState.ACTIVE and not node.brought_up:
        node.brought_up = True
        return True
    return False
