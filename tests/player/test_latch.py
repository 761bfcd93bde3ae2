# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A trip that outlives its process."""

from __future__ import annotations

import pytest
from omni_ros.player.latch import TripLatch
from omni_ros.player.reasons import Reason


def latch(tmp_path, player="/action_player", domain="0"):
    return TripLatch(player, domain, tmp_path / "run")


def tripped(tmp_path) -> TripLatch:
    one = latch(tmp_path)
    one.load()
    one.keep(Reason.NON_FINITE)
    return one


def test_without_a_trip_there_is_none(tmp_path):
    assert latch(tmp_path).load() is Reason.NONE


def test_a_trip_is_found_again_by_the_next_process(tmp_path):
    tripped(tmp_path)
    assert latch(tmp_path).load() is Reason.NON_FINITE


def test_a_reset_removes_it(tmp_path):
    first = latch(tmp_path)
    first.load()
    first.keep(Reason.NON_FINITE)
    first.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


def test_a_reset_in_the_next_process_removes_it(tmp_path):
    tripped(tmp_path)
    second = latch(tmp_path)
    second.load()
    second.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"nonsense"])
def test_a_damaged_file_counts_as_a_trip(tmp_path, content):
    one = tripped(tmp_path)
    one.path.write_bytes(content)
    assert latch(tmp_path).load() is Reason.PROTECTIVE_STOP


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_reset_mends_a_damaged_file(tmp_path, content):
    one = tripped(tmp_path)
    one.path.write_bytes(content)
    second = latch(tmp_path)
    second.load()
    second.keep(Reason.NONE)
    assert latch(tmp_path).load() is Reason.NONE


@pytest.mark.parametrize(("player", "domain"), [("/left/action_player", "0"),
                                                ("/action_player", "7")])
def test_players_of_other_names_or_domains_have_trips_of_their_own(tmp_path, player, domain):
    tripped(tmp_path)
    assert latch(tmp_path, player, domain).load() is Reason.NONE


def test_a_folder_that_cannot_be_made_is_refused_before_anything_moves(tmp_path):
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(OSError, match="OMNI_ROS_STATE"):
        latch(tmp_path).load()


def test_keeping_a_trip_needs_no_further_room_on_the_disk(tmp_path):
    one = latch(tmp_path)
    one.load()
    before = one.path.stat()
    one.keep(Reason.ACCELERATION_LIMIT)
    after = one.path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)


def test_the_name_of_every_reason_fits(tmp_path):
    one = latch(tmp_path)
    one.load()
    for reason in Reason:
        one.keep(reason)
        assert latch(tmp_path).load() is reason


def test_the_folder_does_not_depend_on_the_session_of_the_user(monkeypatch):
    monkeypatch.delenv("OMNI_ROS_STATE", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    shell = TripLatch("/action_player", "0").path
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert TripLatch("/action_player", "0").path == shell
