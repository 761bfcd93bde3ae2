# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration's arm says."""

from __future__ import annotations

from omni_ros.cli.demo_instructions import STEPS
from omni_ros.cli.demo_words import SENTENCES, intention, outcome, speech_argument


def test_every_step_can_be_announced():
    for step in STEPS:
        assert step.colour in intention(step.skill, step.colour)
    assert {step.skill for step in STEPS} == set(SENTENCES)


def test_only_a_success_is_called_done():
    assert outcome("success") == "Done."
    assert {outcome(verdict) for verdict in ("wrong", "timeout", "")} == {"That did not work."}


def test_what_the_user_says_of_speech_is_left_as_it_is():
    assert speech_argument(["speech:=false"])[0] == [] and speech_argument(["speech:=false"])[1]
    assert speech_argument(["log_level:=warn", "speech:=true"]) == ([], "")


def test_without_a_voice_the_arm_says_why_it_is_silent(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("OMNI_ROS_BUNDLES", raising=False)
    arguments, why = speech_argument([])
    assert arguments == [] and "make setup" in why
