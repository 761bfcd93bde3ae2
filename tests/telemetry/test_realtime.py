# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Asking for real-time treatment. What alters a process is tried in a child."""

from __future__ import annotations

import os

import pytest
from omni_ros.cli.children import try_python
from omni_ros.telemetry import realtime


def in_child(code: str) -> str:
    outcome = try_python("from omni_ros.telemetry import realtime\n" + code)
    assert outcome.ok, outcome.error
    return outcome.output


def test_permissions_are_told_and_looking_changes_nothing():
    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    found = realtime.permissions()
    assert found.cpus == tuple(sorted(os.sched_getaffinity(0)))
    assert found.fifo.granted == (found.fifo.answer == "granted")
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before
    assert found.as_dict()["fifo"]["asked"] == "SCHED_FIFO priority 50"


def test_trying_fifo_agrees_with_asking_for_it():
    granted = in_child("print(realtime.set_fifo(50).granted)")
    assert granted == str(realtime.try_fifo(50).granted)


def test_fifo_holds_for_the_thread_that_asked_once_granted():
    text = in_child(
        "import os\n"
        "answer = realtime.set_fifo(7)\n"
        "policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK\n"
        "print(answer.granted == (policy == os.SCHED_FIFO))"
    )
    assert text == "True"


def test_a_refusal_of_fifo_says_what_to_change():
    # Without the privilege, as on most machines; it is given up if this one has it.
    text = in_child(
        "import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "answer = realtime.set_fifo(50)\n"
        "print(answer.granted, '|', answer)"
    )
    granted, _, answer = text.partition(" | ")
    assert granted == "False" and "refused" in answer and "rtprio" in answer


@pytest.mark.parametrize("priority", [0, -1, 1000, 1 << 70])
def test_an_impossible_priority_is_an_answer_and_not_an_error(priority):
    answer = realtime.set_fifo(priority)
    assert not answer.granted and answer.answer.startswith("refused")


@pytest.mark.parametrize("cpus", [[], [4096], [-1], [1 << 70], ["a"]])
def test_impossible_cpus_are_an_answer_and_not_an_error(cpus):
    before = os.sched_getaffinity(0)
    answer = realtime.set_affinity(cpus)
    assert not answer.granted and answer.answer.startswith("refused")
    assert os.sched_getaffinity(0) == before


def test_affinity_is_set_to_the_cpus_asked_for():
    text = in_child(
        "import os\n"
        "last = max(os.sched_getaffinity(0))\n"
        "print(realtime.set_affinity([last]).granted, os.sched_getaffinity(0) == {last})"
    )
    assert text == "True True"


def test_memory_is_locked_or_the_refusal_tells_the_limit():
    text = in_child("print(realtime.lock_memory())")
    assert "granted" in text or "RLIMIT_MEMLOCK" in text


def test_too_low_a_limit_is_refused_and_later_allocations_still_work():
    text = in_child(
        "import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096))\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "answer = realtime.lock_memory()\n"
        "block = bytearray(50_000_000)\n"
        "print(answer.granted, '|', answer)"
    )
    granted, _, answer = text.partition(" | ")
    assert granted == "False" and "RLIMIT_MEMLOCK is 0.0 MiB" in answer and "memlock" in answer


@pytest.mark.parametrize(
    ("unlimited", "asked"),
    [(False, "memory locked as it is now"), (True, "memory locked, now and later")],
)
def test_pages_to_come_are_locked_only_where_no_limit_can_make_that_fail(unlimited, asked):
    # A later allocation beyond a limit would end in MemoryError in the middle of a tick.
    text = in_child(
        f"realtime._may_lock_all = lambda: {unlimited}\nprint(realtime.lock_memory().asked)"
    )
    assert text == asked


def test_the_collector_is_stopped_and_what_lives_is_frozen():
    text = in_child(
        "import gc\n"
        "answer = realtime.freeze_gc()\n"
        "print(answer.granted, gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    assert text == "True False True"


def test_an_answer_reads_as_question_and_answer():
    assert str(realtime.Answer("SCHED_FIFO priority 50", True, "granted")) == (
        "SCHED_FIFO priority 50: granted"
    )


def test_a_lowered_priority_holds_for_the_thread_that_asked_and_those_it_starts():
    text = in_child(
        "import os, threading\n"
        "nice = lambda: os.getpriority(os.PRIO_PROCESS, 0)\n"
        "before, seen = nice(), []\n"
        "def work():\n"
        "    answer = realtime.set_nice(before + 3)\n"
        "    child = threading.Thread(target=lambda: seen.append(nice()))\n"
        "    child.start(); child.join()\n"
        "    seen.append(answer.granted)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join()\n"
        "print(seen == [before + 3, True], nice() == before)"
    )
    assert text == "True True"


def test_a_raised_priority_without_the_privilege_is_refused_with_who_may():
    text = in_child(
        "import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_NICE, (0, 0))\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "answer = realtime.set_nice(-5)\n"
        "print(answer.granted, '|', answer)"
    )
    granted, _, answer = text.partition(" | ")
    assert granted == "False" and "refused" in answer and "CAP_SYS_NICE" in answer
