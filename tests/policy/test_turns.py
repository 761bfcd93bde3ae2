# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Who comes second is refused."""

from __future__ import annotations

import threading

import pytest

from omni_ros.policy.turns import InUse, Turn, in_turn


def elsewhere(action) -> BaseException | None:
    """Run in another thread; return what it raised."""
    raised = []

    def run():
        try:
            action()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    return raised[0] if raised else None


class Stage:
    def __init__(self) -> None:
        self.turn = Turn("the stage")

    @in_turn
    def outer(self, action=lambda: None):
        action()
        return self.inner()

    @in_turn
    def inner(self):
        return 3


def test_another_thread_is_refused_by_name_while_a_method_runs():
    stage = Stage()
    raised = []
    stage.outer(lambda: raised.append(elsewhere(stage.inner)))
    assert isinstance(raised[0], InUse) and "the stage is in use" in str(raised[0])


def test_a_method_may_call_another_of_its_own():
    assert Stage().outer() == 3


def test_a_turn_ends_with_the_method_even_if_it_raises():
    stage = Stage()
    with pytest.raises(ZeroDivisionError):
        stage.outer(lambda: 1 / 0)
    assert elsewhere(stage.inner) is None


def test_a_turn_that_is_not_given_again_refuses_its_own_thread_too():
    turn = Turn("the policy", again=False)
    with turn, pytest.raises(InUse), turn:
        pass
