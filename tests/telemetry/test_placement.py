# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which cpus and threads each process gets on machines of all kinds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omni_ros.telemetry.hardware import Cpu, Hardware
from omni_ros.telemetry.placement import (
    PLAYER,
    SEPARATE,
    SINGLE,
    TTS,
    Override,
    PlacementError,
    overrides_from,
    place,
)

CPU = "sys/devices/system/cpu/"
ALL = (*SEPARATE, TTS)


def quota(cores: float) -> dict[str, str]:
    return {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{int(cores * 1e5)} 100000"}


def test_on_the_agx_orin_ten_threads_compute_beside_the_player_and_a_spare_core(recorded):
    chosen = place(recorded("jetson_agx_orin"))
    assert chosen.player.cpus == (11,)
    for stage in SEPARATE:
        assert chosen[stage].cpus == tuple(range(1, 11)) and chosen[stage].threads == 10
    assert "Of 12 cores the player has cpu 11" in chosen.why
    assert "Core 0 is left to cameras" in chosen.why


def test_on_the_six_core_orin_nx_inference_has_a_whole_cluster_with_its_cache(recorded):
    chosen = place(recorded("jetson_orin_nx_6core"))
    assert chosen.player.cpus == (5,)
    assert chosen["fusion_backbone"].cpus == (0, 1, 2, 3)
    assert "Core 4 is left" in chosen.why


def test_on_the_raspberry_pi_three_threads_compute_beside_the_player(recorded):
    chosen = place(recorded("raspberry_pi_5"))
    assert chosen.player.cpus == (3,)
    assert chosen["action_head"].cpus == (0, 1, 2) and chosen["action_head"].threads == 3


def test_on_the_rk3588_only_big_cores_compute(recorded):
    chosen = place(recorded("rk3588_rock_5b"))
    assert chosen["vision_encoder"].cpus == (4, 5, 6) and chosen["vision_encoder"].threads == 3
    assert "slow cores 0-3" in chosen.why


def test_on_the_rk3588_the_player_has_a_big_core_for_the_little_ones_are_too_slow(recorded):
    chosen = place(recorded("rk3588_rock_5b"))
    assert chosen.player.cpus == (7,) and "0.39" in chosen.why


def test_two_big_cores_are_both_for_inference_and_the_player_has_a_little_one(recorded):
    changed = {CPU + "online": "0-5", "proc/self/status": "Cpus_allowed_list:\t0-5\n"}
    chosen = place(recorded("rk3588_rock_5b", changed))
    assert chosen.player.cpus == (3,) and chosen["action_head"].cpus == (4, 5)
    assert "slow one (0.39" in chosen.why


def test_slow_cores_that_are_fast_enough_serve_the_player(made_up):
    files = {CPU + "cpu{0-3}/cpu_capacity": "1024", CPU + "cpu{4-7}/cpu_capacity": "620"}
    chosen = place(made_up(8, files=files))
    assert chosen.player.cpus == (7,) and chosen["vision_encoder"].cpus == (0, 1, 2, 3)


def test_on_two_cores_inference_leaves_one_alone_and_the_compromise_is_stated(recorded):
    chosen = place(recorded("development_vm"))
    assert chosen.player.cpus == ()
    assert chosen["vision_encoder"].cpus == (0,) and chosen["vision_encoder"].threads == 1
    assert "leaves cpu 1 alone" in chosen.why and "no core to itself" in chosen.why


def test_on_one_core_inference_gives_way_and_late_ticks_are_announced(made_up):
    chosen = place(made_up(1))
    assert chosen.player.cpus == () and chosen.player.nice == 0
    assert chosen["vision_encoder"].nice > 0 and chosen["vision_encoder"].threads == 1
    assert "1 core" in chosen.why and "late" in chosen.why


def test_three_cores_are_enough_for_one_of_the_players_own(made_up):
    chosen = place(made_up(3))
    assert chosen.player.cpus == (2,) and chosen["action_head"].threads == 2


def test_the_sibling_of_the_players_core_computes_nothing(made_up):
    chosen = place(made_up(4, threads=2), ALL)
    assert chosen.player.cpus == (3,)
    for name in ALL:
        assert not {3, 7} & {*chosen[name].cpus, *chosen[name].process_cpus}
    assert "its sibling cpu 7" in chosen.why


def test_one_hardware_thread_of_a_core_computes(made_up):
    chosen = place(made_up(4, threads=2))
    assert chosen["action_head"].cpus == (0, 1, 2) and chosen["action_head"].threads == 3
    assert "one hardware thread of each" in chosen.why


def test_hardware_threads_of_two_cores_are_two_cores(made_up):
    assert place(made_up(2, threads=2)).player.cpus == ()


def test_the_player_gets_an_isolated_cpu_and_inference_all_the_others(made_up):
    files = {CPU + "isolated": "2", "proc/self/status": "Cpus_allowed_list:\t0-1,3\n"}
    chosen = place(made_up(4, files=files))
    assert chosen.player.cpus == (2,) and chosen["action_head"].cpus == (0, 1, 3)
    assert "isolcpus" in chosen.why


def test_an_isolated_cpu_that_the_cpuset_forbids_is_not_used(made_up):
    files = {CPU + "isolated": "3", "proc/self/status": "Cpus_allowed_list:\t0-2\n",
             "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpuset.cpus.effective": "0-2"}
    assert place(made_up(4, files=files)).player.cpus == (2,)


@pytest.mark.parametrize("cores, threads", [(1.0, 1), (2.0, 1), (3.5, 2), (4.0, 3), (20.0, 6)])
def test_a_quota_limits_the_threads_and_leaves_the_player_a_cores_worth(made_up, cores, threads):
    assert place(made_up(8, files=quota(cores)))["action_head"].threads == threads


def test_a_quota_that_limits_is_told(made_up):
    text = place(made_up(8, files=quota(3.5))).text("action_head")
    assert "quota of 3.5 cores limits inference to 2 threads" in text


def test_a_quota_below_two_cores_is_warned_of(made_up):
    notes = place(made_up(8, files=quota(1.5))).notes
    assert any("stops the player" in note and "raise the quota" in note for note in notes)


def test_a_quota_that_does_not_limit_is_not_mentioned(made_up):
    assert place(made_up(4, files=quota(4.0))).notes == place(made_up(4)).notes


def test_cores_the_process_may_not_use_are_not_chosen(made_up):
    files = {"proc/self/status": "Cpus_allowed_list:\t2-5\n"}
    chosen = place(made_up(8, files=files))
    assert chosen.player.cpus == (5,) and chosen["action_head"].cpus == (2, 3, 4)


def test_if_only_slow_cores_are_allowed_they_compute(recorded):
    changed = {"proc/self/status": "Cpus_allowed_list:\t0-3\n"}
    chosen = place(recorded("rk3588_rock_5b", changed))
    assert chosen.player.cpus == (3,) and chosen["action_head"].cpus == (0, 1, 2)


def test_speech_has_fewer_threads_and_gives_way(recorded):
    chosen = place(recorded("jetson_agx_orin"), ALL)
    assert chosen[TTS].nice > chosen["action_head"].nice
    assert chosen[TTS].threads == 5 and chosen[TTS].cpus == chosen["action_head"].cpus


def test_stages_in_one_process_get_what_each_would_get_alone(recorded):
    hardware = recorded("raspberry_pi_5")
    assert place(hardware, SINGLE)["policy_stages"] == place(hardware)["action_head"]


def test_the_rest_of_a_process_may_run_anywhere_but_on_the_players_core(recorded):
    chosen = place(recorded("rk3588_rock_5b"))
    assert chosen["action_head"].process_cpus == (0, 1, 2, 3, 4, 5, 6)


def test_the_players_cpu_can_be_given_and_inference_keeps_off_it(recorded):
    chosen = place(recorded("raspberry_pi_5"), ALL, overrides_from({"player": {"cpus": "0"}}))
    assert chosen.player.cpus == (0,)
    assert chosen["action_head"].cpus == (1, 2, 3) and chosen["action_head"].threads == 3
    assert any("Overridden: player" in note for note in chosen.notes)


def test_a_stages_cpus_can_be_given_and_its_threads_follow(recorded):
    chosen = place(recorded("raspberry_pi_5"), overrides={"action_head": Override(cpus=(1, 2))})
    assert chosen["action_head"].cpus == (1, 2) and chosen["action_head"].threads == 2
    assert chosen["vision_encoder"].threads == 3


def test_given_cpus_on_the_players_core_are_obeyed_and_told(recorded):
    chosen = place(recorded("raspberry_pi_5"), overrides={"action_head": Override(cpus=(2, 3))})
    assert chosen["action_head"].cpus == (2, 3)
    assert any("player's core" in note for note in chosen.notes)


def test_fewer_threads_can_be_given(recorded):
    chosen = place(recorded("jetson_agx_orin"), overrides={"action_head": Override(threads=4)})
    assert chosen["action_head"].threads == 4 and chosen["action_head"].cpus == tuple(range(1, 11))


def test_more_threads_than_chosen_cores_are_not_crowded_onto_them(recorded):
    chosen = place(recorded("development_vm"), overrides={"action_head": Override(threads=2)})
    assert chosen["action_head"].threads == 2 and chosen["action_head"].cpus == ()
    assert any("not bound" in note for note in chosen.notes)


def test_more_threads_than_given_cpus_are_obeyed_and_told(recorded):
    override = {"action_head": Override(cpus=(0,), threads=3)}
    notes = place(recorded("raspberry_pi_5"), overrides=override).notes
    assert any("3 threads on 1 cpus" in note for note in notes)


def test_a_priority_can_be_given(recorded):
    chosen = place(recorded("raspberry_pi_5"), ALL, {TTS: Override(nice=3)})
    assert chosen[TTS].nice == 3


def test_one_file_serves_both_compositions(recorded):
    overrides = overrides_from({"policy_stages": {"threads": 1}, "vision_encoder": {"threads": 2}})
    hardware = recorded("raspberry_pi_5")
    assert place(hardware, SEPARATE, overrides)["vision_encoder"].threads == 2
    assert place(hardware, SINGLE, overrides)["policy_stages"].threads == 1


@pytest.mark.parametrize("name", [PLAYER, "action_head"])
def test_a_cpu_that_is_not_there_is_refused_with_those_that_are(recorded, name):
    with pytest.raises(PlacementError, match=r"cpus 4 cannot be used: choose from 0-3 \(4 cores\)"):
        place(recorded("raspberry_pi_5"), overrides={name: Override(cpus=(3, 4))})


def test_an_unknown_process_is_refused_with_the_known_ones(recorded):
    with pytest.raises(PlacementError, match="'camera' is no process: known are player, vision"):
        place(recorded("raspberry_pi_5"), ("camera",))


def test_the_status_text_has_the_share_and_the_reason(recorded):
    text = place(recorded("raspberry_pi_5")).text("action_head")
    assert text.startswith("cpus 0-2, 3 threads. Of 4 cores the player has cpu 3")


@st.composite
def machines(draw):
    cores = draw(st.integers(1, 16))
    threads = draw(st.sampled_from([1, 1, 2]))
    count = cores * threads
    little = draw(st.integers(0, cores))
    ratio = draw(st.sampled_from([250, 397, 600, 800]))
    width = draw(st.sampled_from([2, 4, 16]))
    cpus = tuple(Cpu(n, n % cores, 0, n % cores // width * width,
                     ratio if n % cores < little else 1024) for n in range(count))
    some = st.sets(st.integers(0, count - 1), max_size=count).map(lambda s: tuple(sorted(s)))
    everything = tuple(range(count))
    return Hardware("made up", cpus, everything, draw(some) or everything, draw(some) or everything,
                    draw(st.one_of(st.just(()), some)),
                    draw(st.one_of(st.none(), st.floats(0.1, 32.0))))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines())
def test_whatever_the_machine_shares_can_be_had_and_the_players_core_is_its_own(hardware):
    chosen = place(hardware, ALL)
    player = {s for n in chosen.player.cpus for s in hardware.siblings(n)}
    reachable = {*hardware.usable, *hardware.isolated}
    assert set(chosen.player.cpus) <= reachable
    alone = len(hardware.cores(hardware.usable)) >= 3
    for name in ALL:
        share = chosen[name]
        assert set(share.cpus) <= set(hardware.usable) and set(share.process_cpus) <= reachable
        assert 1 <= share.threads <= max(len(hardware.cores(share.cpus)), 1)
        if alone:
            assert chosen.player.cpus and share.cpus
            assert not player & {*share.cpus, *share.process_cpus}
            assert len({hardware.is_fast(n) for n in share.cpus}) == 1
        if hardware.quota is not None and hardware.quota >= 2:
            assert share.threads <= hardware.quota - 1
    assert chosen.why and chosen == place(hardware, ALL)


CHOICES = st.builds(
    Override,
    cpus=st.one_of(st.none(), st.sets(st.integers(0, 8), min_size=1).map(
        lambda cpus: tuple(sorted(cpus)))),
    threads=st.one_of(st.none(), st.integers(1, 12)),
    nice=st.one_of(st.none(), st.integers(-20, 19)),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), st.dictionaries(st.sampled_from([PLAYER, *ALL]), CHOICES))
def test_whatever_is_overridden_holds_or_is_refused(hardware, overrides):
    try:
        chosen = place(hardware, ALL, overrides)
    except PlacementError:
        usable = {*hardware.usable, *hardware.isolated}
        named = {n for override in overrides.values() for n in override.cpus or ()}
        assert named - (usable & set(hardware.cpuset) or set(hardware.usable))
        return
    for name, override in overrides.items():
        share = chosen[name]
        assert override.cpus in (None, share.cpus)
        assert override.nice in (None, share.nice)
        assert name == PLAYER or override.threads in (None, share.threads)
    for name in ALL:
        if name not in overrides:
            assert 1 <= chosen[name].threads <= max(len(hardware.cores(chosen[name].cpus)), 1)


def test_below_six_cores_none_is_spared(made_up):
    assert place(made_up(5))["action_head"].cpus == (0, 1, 2, 3)


def test_where_there_are_slow_cores_for_the_rest_no_fast_one_is_spared(made_up):
    files = {CPU + "cpu{0-3}/cpu_capacity": "300", CPU + "cpu{4-11}/cpu_capacity": "1024"}
    assert place(made_up(12, files=files))["action_head"].cpus == tuple(range(4, 11))


def test_given_cpus_on_the_players_core_leave_the_rest_of_the_process_off_it(recorded):
    chosen = place(recorded("raspberry_pi_5"), overrides={"action_head": Override(cpus=(2, 3))})
    assert chosen["action_head"].process_cpus == (0, 1, 2)
