# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Who may be configured or activated next."""

from __future__ import annotations

import itertools

import pytest

from omni_ros.bringup.order import (
    MAX_ATTEMPTS,
    Managed,
    NodeState,
    Transition,
    ask,
    observe,
    see_incarnations,
    wanted,
)

CONFIGURE, ACTIVATE = Transition.CONFIGURE, Transition.ACTIVATE


def node(name: str, state: NodeState, **more) -> Managed:
    return Managed(name, incarnations={name.encode()}, state=state, **more)


def asked(*nodes: Managed) -> list[tuple[str, Transition]]:
    return [(found.name, transition) for found, transition in wanted(list(nodes))]


def test_the_first_node_is_configured_first():
    first, second = (node(name, NodeState.UNCONFIGURED) for name in "ab")
    assert asked(first, second) == [("a", CONFIGURE)]


def test_the_second_is_configured_when_the_first_is():
    assert asked(node("a", NodeState.INACTIVE), node("b", NodeState.UNCONFIGURED)) == [
        ("b", CONFIGURE)]


def test_nothing_is_activated_before_everything_is_configured():
    found = asked(node("a", NodeState.INACTIVE), node("b", NodeState.UNKNOWN))
    assert found == []


def test_nodes_are_activated_in_order():
    first, second = (node(name, NodeState.INACTIVE) for name in "ab")
    assert asked(first, second) == [("a", ACTIVATE)]
    observe(first, NodeState.ACTIVE)
    assert asked(first, second) == [("b", ACTIVATE)]


def test_a_node_that_has_not_appeared_is_asked_nothing():
    assert asked(Managed("a", state=NodeState.UNCONFIGURED)) == []


def test_a_node_that_has_not_appeared_holds_back_those_after_it():
    assert asked(Managed("a"), node("b", NodeState.UNCONFIGURED)) == []


def test_a_respawned_node_is_brought_up_while_the_others_run():
    running = node("a", NodeState.ACTIVE, brought_up=True)
    assert asked(running, node("b", NodeState.UNCONFIGURED)) == [("b", CONFIGURE)]
    assert asked(running, node("b", NodeState.INACTIVE)) == [("b", ACTIVATE)]


def test_a_first_node_that_is_respawned_does_not_wait_for_the_later_ones():
    later = node("b", NodeState.ACTIVE, brought_up=True)
    assert asked(node("a", NodeState.UNCONFIGURED), later) == [("a", CONFIGURE)]
    assert asked(node("a", NodeState.INACTIVE), later) == [("a", ACTIVATE)]


@pytest.mark.parametrize("state", [NodeState.INACTIVE, NodeState.UNCONFIGURED])
def test_what_an_operator_took_down_stays_down(state):
    found = node("a", NodeState.ACTIVE)
    observe(found, NodeState.ACTIVE)
    observe(found, state)
    assert asked(found) == []


def test_a_node_that_an_operator_took_down_does_not_hold_back_a_respawned_one():
    down = node("a", NodeState.INACTIVE, brought_up=True)
    assert asked(down, node("b", NodeState.INACTIVE)) == [("b", ACTIVATE)]


def test_a_node_that_failed_too_often_is_left_alone():
    assert asked(node("a", NodeState.UNCONFIGURED, attempts=MAX_ATTEMPTS)) == []


def test_a_node_that_was_given_up_holds_back_those_after_it():
    failed = node("a", NodeState.UNCONFIGURED, attempts=MAX_ATTEMPTS)
    assert asked(failed, node("b", NodeState.UNCONFIGURED)) == []


def test_a_new_process_is_tried_again_after_its_name_was_given_up():
    failed = node("a", NodeState.UNCONFIGURED, attempts=MAX_ATTEMPTS)
    assert see_incarnations(failed, {b"another"})
    failed.state = NodeState.UNCONFIGURED
    assert asked(failed) == [("a", CONFIGURE)]


def test_the_same_process_seen_again_is_nothing_new():
    found = Managed("a")
    assert see_incarnations(found, {b"one"})
    assert not see_incarnations(found, {b"one"})


def test_endpoints_of_a_dead_process_that_linger_are_nothing_new():
    found = Managed("a")
    see_incarnations(found, {b"one"})
    assert see_incarnations(found, {b"one", b"two"})
    assert not see_incarnations(found, {b"two"})
    assert not see_incarnations(found, {b"one", b"two"})


def test_a_new_process_forgets_what_was_known_of_the_old_one():
    found = node("a", NodeState.ACTIVE, brought_up=True)
    see_incarnations(found, {b"two"})
    assert found.state is NodeState.UNKNOWN and not found.brought_up


def test_coming_up_is_told_once():
    found = node("a", NodeState.INACTIVE)
    assert observe(found, NodeState.ACTIVE)
    assert not observe(found, NodeState.ACTIVE)


def test_every_order_of_good_answers_brings_everything_up():
    # Three nodes that do what they are asked; which of the wanted transitions is done first varies.
    follow = {CONFIGURE: NodeState.INACTIVE, ACTIVATE: NodeState.ACTIVE}
    for choices in itertools.product(range(2), repeat=6):
        nodes = [node(name, NodeState.UNCONFIGURED) for name in "abc"]
        for choice in choices:
            found = wanted(nodes)
            chosen, transition = found[choice % len(found)]
            ask(chosen, transition)
            observe(chosen, follow[transition])
        assert all(found.brought_up for found in nodes)


@pytest.mark.parametrize("first", [[], [NodeState.UNKNOWN], [NodeState.UNCONFIGURED]])
def test_a_node_that_somebody_else_made_inactive_is_not_activated(first):
    # The manager was respawned after an operator had deactivated the node: the arm must not move.
    found = node("a", NodeState.UNKNOWN)
    for state in [*first, NodeState.INACTIVE]:
        assert not observe(found, state)
    assert found.found_inactive and asked(found) == []


def test_a_node_that_was_found_inactive_does_not_hold_back_the_others():
    down, later = node("a", NodeState.UNKNOWN), node("b", NodeState.UNCONFIGURED)
    observe(down, NodeState.INACTIVE)
    assert asked(down, later) == [("b", CONFIGURE)]


def test_a_node_that_was_found_active_is_up_and_stays_down_once_it_is_taken_down():
    found = node("a", NodeState.UNKNOWN)
    assert observe(found, NodeState.ACTIVE)
    observe(found, NodeState.INACTIVE)
    assert asked(found) == [] and not found.found_inactive


def test_a_node_whose_answer_to_configure_was_lost_is_activated_all_the_same():
    found = node("a", NodeState.UNCONFIGURED)
    ask(found, CONFIGURE)
    found.state = NodeState.UNKNOWN  # the request timed out; the state is read anew
    observe(found, NodeState.INACTIVE)
    assert asked(found) == [("a", ACTIVATE)]


def test_a_respawned_process_is_brought_up_though_the_last_one_was_found_inactive():
    found = node("a", NodeState.UNKNOWN)
    observe(found, NodeState.INACTIVE)
    see_incarnations(found, {b"two"})
    observe(found, NodeState.UNCONFIGURED)
    assert asked(found) == [("a", CONFIGURE)] and not found.found_inactive


def test_what_was_asked_of_the_last_process_does_not_count_for_a_new_one():
    found = node("a", NodeState.UNCONFIGURED)
    ask(found, CONFIGURE)
    see_incarnations(found, {b"two"})
    observe(found, NodeState.INACTIVE)
    assert asked(found) == []
