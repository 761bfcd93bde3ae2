# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench tabletop`: what it refuses, plans, counts and tells; no graph is started here."""

from __future__ import annotations

import argparse
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from omni_ros.cli import UsageError, bench_tabletop, tabletop_launch
from omni_ros.cli.tabletop_table import block_figures, document, render
from omni_ros.cli.tabletop_trials import Result, Trial, blocks, plan_trials, summarise
from omni_ros.robot.errors import RobotConfigError
from omni_ros.telemetry.provenance import provenance

COLOURS = ("red", "green", "blue", "yellow")
FACTS = provenance()


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_tabletop.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("words", [
    ("--episodes", "0"), ("--block", "0"), ("--seed", "-1"), ("--domain", "300"),
    ("--horizon", "0"), ("--json", "/no/such/folder/file.json"),
    ("--expert", "--bundle", "tabletop"), ("--expert", "--control", "swap"),
])  # fmt: skip
def test_an_option_out_of_range_or_out_of_place_is_refused_by_name(words):
    with pytest.raises(UsageError, match=words[0]):
        bench_tabletop.check(arguments(*words))


def test_the_defaults_are_accepted():
    bench_tabletop.check(arguments())


def test_a_bundle_that_is_named_twice_is_refused(tmp_path):
    with pytest.raises(UsageError, match="twice"):
        bench_tabletop.resolve([str(tmp_path), f"{tmp_path}/"])


def planned(count: int, skills=("touch",), control=None) -> list[Trial]:
    def phrase(skill, colour, random):
        return f"{skill} {colour} {random.integers(1000)}"

    return plan_trials(skills, count, 500, COLOURS, phrase, control)


def test_every_skill_meets_every_colour_equally_often():
    trials = planned(8, ("touch", "pick_up"))
    assert set(Counter((t.skill, t.colour) for t in trials).values()) == {2}


def test_every_trial_has_a_seed_of_its_own():
    assert [t.seed for t in planned(3, ("touch", "pick_up"))] == list(range(500, 506))


def test_a_trial_does_not_depend_on_how_many_follow():
    assert planned(4) == planned(9)[:4]


def test_swapped_sentences_name_another_colour_than_the_judged_one():
    trials = planned(8, control="swap")
    assert all(t.told != t.colour and t.told in t.sentence for t in trials)
    assert {t.told for t in trials} == set(COLOURS)


def test_a_sentence_that_asks_for_nothing_taught_names_no_colour():
    assert not any(colour in t.sentence for t in planned(20, control="unknown") for colour in COLOURS)


def test_the_bench_draws_its_sentences_from_the_held_out_ones_only_if_asked():
    tasks = pytest.importorskip("omni_ros.world.tasks")
    words = ("--skill", "all", "--episodes", "4", "--phrasing")
    for phrasing, others in (("trained", tasks.HELD_OUT), ("held_out", tasks.TRAINING)):
        known = {sentence.format(colour) for sentences in others.values()
                 for sentence in sentences for colour in tasks.COLOURS}
        assert not {t.sentence for t in bench_tabletop.plan(arguments(*words, phrasing))} & known


def test_blocks_keep_every_trial_in_order():
    assert [list(part) for part in blocks(planned(5), 2)] == [
        planned(5)[:2], planned(5)[2:4], planned(5)[4:]]


def result(verdict: str, seconds: float = 1.0, told_verdict: str = "") -> Result:
    trial = Trial(1, "touch", "red", "green" if told_verdict else "red", "touch it")
    return Result(trial, verdict, told_verdict or verdict, seconds, 3)


def rows(*verdicts: str) -> list[dict]:
    return [result(verdict, float(index)).row() for index, verdict in enumerate(verdicts)]


def test_verdicts_are_counted_and_only_successes_are_timed():
    counts = summarise(rows("success", "wrong", "success", "timeout"))
    assert [counts[key] for key in ("tries", "success", "wrong", "timeout")] == [4, 2, 1, 1]
    assert counts["seconds_to_success_p50"] == 1.0


def test_a_skill_that_never_succeeded_has_no_time_to_success():
    assert summarise(rows("timeout"))["seconds_to_success_p50"] is None


# -- the graph ---------------------------------------------------------------------------------


def status(ticks: int = 0, refused: int = 0) -> SimpleNamespace:
    counts = np.zeros(25, int)
    counts[6] = refused
    return SimpleNamespace(ticks=ticks, ticks_missed=0, lateness_p50=1e-4, lateness_p99=2e-3,
                           lateness_max=5e-3, refused=counts, limited=np.zeros(25, int),
                           last_refusal="")


def found(results, *, swap=False, trouble=None):
    graph = SimpleNamespace(to_command={1: 0.05, 2: 0.07}, status=status(500, 2), policy={},
                            chunks=[SimpleNamespace(timings={"vision_encoder": 0.01, "hand": 0.02})])
    runs = [{"source": "/b/fp32", **block_figures(graph, status(), results)}]
    words = arguments("--control", "swap") if swap else arguments()
    return document(words, ["/b/fp32"], 8, runs, FACTS, trouble)


def test_the_table_has_the_counts_the_interval_and_the_horizon():
    text = render(found([result("success")] * 49 + [result("wrong")]))
    assert "49/50 98 % (90 to 100)" in text and "1/50 2 % (0 to 10)" in text
    assert "horizon 8 rows" in text and "2 by starved" in text


def test_the_table_has_latencies_in_milliseconds():
    line = next(line for line in render(found([result("success")])).splitlines()
                if line.startswith("fp32") and "/500" in line)
    assert "30.0 / 30.0" in line and "60.0 / 69.8" in line


def test_a_swap_is_judged_by_what_was_told_and_by_what_was_not():
    text = render(found([result("wrong", told_verdict="success")] * 4, swap=True))
    not_told, told = (next(line for line in text.splitlines() if how in line)
                      for how in ("(not told)", "(as told)"))
    assert "0/4" in not_told.split("%")[0] and "4/4 100" in told.split("%")[0]


def test_a_run_that_was_cut_short_says_so():
    assert "CUT SHORT: action_head died" in render(
        found([result("success")], trouble="action_head died (exit code -9)"))


def test_the_command_names_the_bundle_and_only_what_was_asked_for(tmp_path):
    robot = tmp_path / "robot.yaml"
    plain = bench_tabletop.command(arguments(), "/b/int8", robot)
    assert "bundle:=/b/int8" in plain and not any("transport" in word for word in plain)
    words = arguments("--transport", "inline", "--appearance", "varied")
    assert {"transport:=inline", "appearance:=varied"} <= set(
        bench_tabletop.command(words, "/b/int8", robot))


def test_the_expert_needs_no_policy_node(tmp_path):
    assert "policy:=none" in bench_tabletop.command(arguments("--expert"), "expert", tmp_path)


def test_a_changed_robot_file_keeps_all_else(tmp_path):
    changed = tabletop_launch.changed_robot("", tmp_path, cameras={"front": "blank/front"})
    new = yaml.safe_load(changed.read_text())
    old = yaml.safe_load(tabletop_launch.robot_file("").read_text())
    assert new["topics"]["cameras"].pop("front") == "blank/front"
    old["topics"]["cameras"].pop("front")
    assert new == old


def test_a_robot_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RobotConfigError, match="no robot"):
        tabletop_launch.changed_robot("nobody", tmp_path)


LOG = """\
[world-1] [INFO] [world]: up
[action_head-4] [ERROR] [17.2] [action_head]: on_configure failed: needs 12 MB, has 3 MB
[lifecycle_manager-3] [ERROR] [17.3] [lifecycle_manager]: action_head could not configure in 3 \
tries; its own log says why. Mend the cause and restart it
[ERROR] [fusion_backbone-5]: process has died [pid 7, exit code -9, cmd '/x/fusion_backbone'].
"""


def test_a_node_that_died_is_named_with_its_exit_code():
    assert "fusion_backbone died (exit code -9)" in tabletop_launch.deaths(LOG)


def test_a_node_that_could_not_be_configured_is_named_with_its_own_reason():
    refused = next(text for text in tabletop_launch.deaths(LOG) if "configure" in text)
    assert refused.startswith("action_head could not configure: ") and "has 3 MB" in refused


def test_nodes_that_end_in_good_order_are_not_deaths():
    assert tabletop_launch.deaths("[INFO] [world-1]: process has finished cleanly [pid 3]") == []


def test_the_watch_raises_once_the_log_tells_of_a_death(tmp_path):
    log, asked = tmp_path / "log", []
    log.write_text("[INFO] up\n")
    check = tabletop_launch.watching(lambda: asked.append(1), log)
    check()
    log.write_text(log.read_text() + LOG)
    with pytest.raises(RuntimeError, match="action_head could not configure.*fusion_backbone died"):
        check()
    assert asked == [1]
