# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A trip that outlives its process."""

from __future__ import annotations

import pytest
from omni_ros.player.latch import TripLatch
from omni_ros.player.reasons import Reason


def latch(tmp_path, player="/action_player", domain="0"):
    return TripLatch(player, domain, tmp_path / "run")


def test_without_a_trip_there_is_none(tmp_path):
    assert latch(tmp_path).load() is Reason.NONE


def test_a_trip_is_found_again_by_the_next_process(tmp_path):
    latch(tmp_path).keep(Reason.NON_FINITE)
    assert latch(tmp_path).load() is Reason.NON_FINITE


def test_a_reset_removes_it(tmp_path):
    first = latch(tmp_path)
    first.keep(Reason.NON_FINITE)
    first.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


def test_a_reset_in_the_next_process_removes_it(tmp_path):
    latch(tmp_path).keep(Reason.NON_FINITE)
    second = latch(tmp_path)
    second.load()
    second.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


@pytest.mark.parametrize("content", [b"", b"NONE", b"\xff\xfe", b"nonsense"])
def test_a_damaged_file_counts_as_a_trip(tmp_path, content):
    one = latch(tmp_path)
    one.keep(Reason.NON_FINITE)
    one.path.write_bytes(content)
    assert latch(tmp_path).load() is Reason.PROTECTIVE_STOP


@pytest.mark.parametrize("content", [b"", b"NONE"])
def test_a_reset_removes_a_damaged_file(tmp_path, content):
    one = latch(tmp_path)
    one.keep(Reason.NON_FINITE)
    one.path.write_bytes(content)
    second = latch(tmp_path)
    second.load()
    second.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


@pytest.mark.parametrize(("player", "domain"), [("/left/action_player", "0"),
                                                ("/action_player", "7")])
def test_players_of_other_names_or_domains_have_trips_of_their_own(tmp_path, player, domain):
    latch(tmp_path).keep(Reason.NON_FINITE)
    assert latch(tmp_path, player, domain).load() is Reason.NONE


def test_a_folder_that_cannot_be_written_raises(tmp_path):
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(OSError):
        latch(tmp_path).keep(Reason.NON_FINITE)
