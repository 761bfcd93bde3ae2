# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whose chunks are offered, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_ros.openpi.arbitration import USES, Arbiter, Moment, ReplanRule, Source, replan_rule
from omni_ros.openpi.errors import SettingsError
from omni_ros.openpi.states import Reason, State


def moment(now=0.0, link=State.ACTIVE, local=0.1, episode=None, demanded=False) -> Moment:
    return Moment(now, link, Reason("none", "as it is"), local, episode, demanded)


def test_by_default_the_remote_only_fills_in():
    arbiter = Arbiter(replan_rule(None))
    assert arbiter.decide(moment()).source is Source.LOCAL
    decision = arbiter.decide(moment(local=None))
    assert decision.source is Source.REMOTE and decision.code == "local_missing"


def test_a_slow_local_policy_is_filled_in_for_with_both_numbers():
    decision = Arbiter(ReplanRule(slow_s=0.5)).decide(moment(local=0.9))
    assert decision.source is Source.REMOTE and decision.code == "local_slow"
    assert "0.90 s" in decision.text and "0.5" in decision.text


def test_the_local_policy_is_handed_back_to_once_it_has_been_good_for_a_while():
    arbiter = Arbiter(ReplanRule(hold_s=2.0))
    arbiter.decide(moment(0.0, local=None))
    assert arbiter.decide(moment(1.0)).code == "local_unproven"
    assert arbiter.decide(moment(2.5)).source is Source.REMOTE
    assert arbiter.decide(moment(2.6, local=5.0)).code == "local_slow"  # it begins anew
    assert arbiter.decide(moment(3.0)).source is Source.REMOTE
    assert arbiter.decide(moment(5.1)).source is Source.LOCAL


@given(st.sampled_from(USES), st.sampled_from([s for s in State if s is not State.ACTIVE]),
       st.none() | st.floats(0, 100), st.none() | st.floats(0, 100), st.booleans())  # fmt: skip
def test_a_remote_that_is_not_active_is_never_followed(use, link, local, episode, demanded):
    decision = Arbiter(ReplanRule(use=use)).decide(moment(0.0, link, local, episode, demanded))
    assert decision.source is Source.LOCAL


def test_why_a_wanted_remote_is_not_followed_is_told():
    decision = Arbiter(ReplanRule(use="always")).decide(moment(link=State.DEGRADED))
    assert decision.code == "remote_degraded" and "as it is" in decision.text
    assert decision.ask_every_s == ReplanRule().every_s  # asking is what mends it


def test_a_remote_whose_last_reply_could_not_be_played_is_not_followed_but_asked_on():
    wrong = replace(moment(), unplayable=Reason("out_of_limits", "lift asks for 41 rad"))
    decision = Arbiter(ReplanRule(use="always")).decide(wrong)
    assert decision.source is Source.LOCAL and decision.code == "remote_unplayable"
    assert "41 rad" in decision.text and decision.ask_every_s == ReplanRule().every_s
    # A link that is down as well says so first.
    down = replace(wrong, link=State.DEGRADED)
    assert Arbiter(ReplanRule(use="always")).decide(down).code == "remote_degraded"


def test_a_remote_that_is_lost_is_left_at_once():
    arbiter = Arbiter(ReplanRule(use="always"))
    assert arbiter.decide(moment(0.0)).source is Source.REMOTE
    assert arbiter.decide(moment(0.001, link=State.DEGRADED)).source is Source.LOCAL


def test_for_starts_the_remote_has_the_first_seconds():
    arbiter = Arbiter(ReplanRule(use="start", start_s=5.0))
    assert arbiter.decide(moment(episode=None)).code == "no_episode"
    assert arbiter.decide(moment(episode=4.9)).source is Source.REMOTE
    assert arbiter.decide(moment(episode=5.1)).source is Source.LOCAL


def test_on_demand_it_is_followed_while_it_is_asked_for():
    arbiter = Arbiter(ReplanRule(use="on_demand"))
    sources = [arbiter.decide(moment(demanded=demanded)).source for demanded in (False, True, False)]
    assert sources == [Source.LOCAL, Source.REMOTE, Source.LOCAL]


def test_a_remote_that_is_not_wanted_is_kept_warm():
    rule = ReplanRule(use="on_demand", probe_s=7.0, every_s=0.2)
    assert Arbiter(rule).decide(moment()).ask_every_s == 7.0
    assert Arbiter(rule).decide(moment(demanded=True)).ask_every_s == 0.2
    assert Arbiter(rule).decide(moment(link=State.OFF)).ask_every_s == 0.0


@pytest.mark.parametrize("section", [{"use": "never"}, {"slow_s": 0}, {"holds": 1}, {"hold_s": "1"}, []])
def test_a_rule_that_is_wrong_is_refused(section):
    with pytest.raises(SettingsError, match="replan|use"):
        replan_rule(section)
