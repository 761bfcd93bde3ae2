# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import time

import pytest

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.named import bundle_folder
from omni_ros.cli import bench_speech_qwen as bench
from omni_ros.cli.bench_speech_qwen_worker import Player


def run(**changes) -> dict:
    stages = {"talker": 0.01, "predictor": 0.03, "vocoder": 0.02}
    made = {"seconds": 0.06, "rtf": 0.75, "first": 0.2, "prompt": 0.1, "silent": 0.0,
            "stages": stages, "resident": 1_000_000}  # fmt: skip
    return made | changes


def test_a_side_is_summed_up_by_medians_and_spread():
    runs = [run(seconds=0.05 + 0.01 * index) for index in range(5)]
    made = bench.summary(runs)
    assert made["frame"] == pytest.approx({"p10": 0.05, "p50": 0.07, "p90": 0.09})
    assert made["stages"]["predictor"]["p50"] == 0.03


def test_other_sides_are_compared_round_by_round_in_what_both_have():
    slow = {"talker": 0.02, "predictor": 0.09}
    found = {"executorch": [run(), run(seconds=0.12, stages={"talker": 0.02, "predictor": 0.06,
                                                             "vocoder": 0.02})],
             "mtmd": [run(rtf=None, stages=slow), run(rtf=None, stages=slow)]}  # fmt: skip
    made = bench.ratios(found)
    assert made == {"mtmd": {"talker": {"p10": 1.0, "p50": 1.0, "p90": 2.0},
                             "predictor": {"p10": 1.5, "p50": 1.5, "p90": 3.0}}}


def test_the_bench_of_a_tiny_voice_reports_every_stage(capsys):
    try:
        folder = bundle_folder("qwen_tiny")
    except BundleError as error:
        pytest.skip(str(error))
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    arguments = parser.parse_args(["--frames", "4", "--busy", "0"])
    document = bench.measure(arguments, folder, 1, 1)
    quiet = document["halves"]["quiet"]
    assert list(quiet)[0] == "executorch" and set(document["halves"]) == {"quiet"}
    assert all(quiet["executorch"]["stages"][name]["p50"] > 0
               for name in ("talker", "predictor", "vocoder"))
    text = bench.render(document)
    assert "predictor" in text and "RTF" in text and "busy neighbours" not in text


def test_a_listener_counts_what_was_silent():
    player = Player(1000)
    player.take(10)
    assert player.silent_s == 0.0 and 0.0 < player.slack() <= 0.01
    time.sleep(0.03)
    player.take(10)
    assert player.silent_s >= 0.015 and player.slack() > 0.0
