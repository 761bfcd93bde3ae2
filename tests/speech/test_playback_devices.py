# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which sound card is meant."""

from __future__ import annotations

import pytest

from omni_ros.speech.playback_devices import Device, DeviceError, choose, outputs

CARDS = [Device(0, "HDA NVidia: HDMI 0 (hw:0,3)", 8, 44100), Device(2, "USB Audio: - (hw:1,0)", 2, 48000),
         Device(3, "pulse", 32, 44100), Device(4, "pulse USB", 2, 44100)]


@pytest.mark.parametrize(("wanted", "index"), [
    ("", 3), ("2", 2), ("usb audio", 2), ("USB", 2), ("pulse", 3), ("PULSE", 3), ("hdmi", 0)])
def test_a_card_is_chosen_by_index_name_or_part_of_it(wanted, index):
    assert choose(CARDS, wanted, default=3).index == index


def test_without_a_choice_of_the_machine_the_first_plays():
    assert choose(CARDS, "", default=-1).index == 0


@pytest.mark.parametrize("wanted", ["bluetooth", "1", "99"])
def test_an_unknown_card_is_answered_with_those_there_are(wanted):
    with pytest.raises(DeviceError, match="USB Audio.*pulse"):
        choose(CARDS, wanted)


def test_a_machine_without_cards_is_told_so():
    with pytest.raises(DeviceError, match="no sound device"):
        choose([], "pulse")


def test_microphones_are_no_speakers():
    found = [{"name": "mic", "max_output_channels": 0, "default_samplerate": 48000.0},
             {"name": "card", "max_output_channels": 2, "default_samplerate": 48000.0}]
    assert outputs(found) == [Device(1, "card", 2, 48000.0)]
