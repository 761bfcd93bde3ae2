# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the sound callback and the orders do to an utterance, without a sound card."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.speech import playback_process
from omni_ros.speech.playback_devices import DeviceError
from omni_ros.speech.playback_process import Card, Player, open_card
from omni_ros.speech.playback_wire import MOST_SAMPLES, Broken, Order, pack, unpack
from omni_ros.speech.ring import SampleRing

RATE = 8000.0
BLOCK = 80


@pytest.fixture
def card() -> Card:
    return Card(RATE, SampleRing(8000))


@pytest.fixture
def player(card) -> Player:
    return Player(card)


def play(card: Card, blocks: int = 1, *, channels: int = 1, late: bool = False) -> np.ndarray:
    """Have the callback called; return what it gave, of the first channel."""
    heard = []
    for _ in range(blocks):
        out = bytearray(4 * BLOCK * channels)
        card.callback(out, BLOCK, SimpleNamespace(outputBufferDacTime=1.05, currentTime=1.0),
                      SimpleNamespace(output_underflow=late))
        heard.append(np.frombuffer(out, np.float32).reshape(BLOCK, channels))
    return np.concatenate(heard)[:, -1]


def order(player: Player, *fields, samples: int = 0) -> None:
    """Send an order over the wire's format."""
    data = np.full(samples, 0.5, np.float32) if samples else None
    kind, number, *rate = fields
    player.obey(*unpack(pack(kind, number, *rate, samples=data)))


def test_an_utterance_is_played_and_done_when_its_last_sample_is(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=100)
    order(player, Order.END, 1)
    assert np.count_nonzero(play(card, 3)) == 100
    playing = card.playing
    assert playing.first_ns and playing.done_ns > playing.first_ns and playing.dry == 0


def test_every_channel_gets_the_same(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    assert (play(card, channels=3) == 0.5).all()


def test_samples_that_come_too_late_are_one_underrun_however_long(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    play(card, 4)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    order(player, Order.END, 1)
    play(card, 2)
    assert (card.playing.dry, card.playing.dry_samples) == (1, 3 * BLOCK)
    assert card.playing.longest_dry == 3 * BLOCK


def test_before_the_first_sample_and_in_a_pause_nothing_is_missing(card, player):
    order(player, Order.BEGIN, 1, RATE)
    play(card, 2)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    order(player, Order.PAUSE, 1)
    play(card, 4)
    assert card.playing.dry == 0


def test_a_clear_is_silence_with_the_next_block(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=4000)
    assert play(card).all()
    order(player, Order.CLEAR, 0)
    assert not play(card).any() and card.playing.done_ns


def test_what_still_comes_of_a_cleared_utterance_is_not_played(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.CLEAR, 0)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    order(player, Order.BEGIN, 2, RATE)
    order(player, Order.SAMPLES, 1, samples=BLOCK)
    assert not play(card).any()


def test_more_than_the_ring_holds_waits_for_room(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=10_000)
    order(player, Order.END, 1)
    count = np.count_nonzero(play(card, 50))
    player.catch_up()
    assert count + np.count_nonzero(play(card, 100)) == 10_000


def test_an_utterance_without_samples_is_done_and_was_never_heard(card, player):
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.END, 1)
    assert card.playing.done_ns and not card.playing.first_ns


def test_late_blocks_in_a_row_are_counted_once_and_only_while_something_plays(card, player):
    play(card, 3, late=True)
    order(player, Order.BEGIN, 1, RATE)
    order(player, Order.SAMPLES, 1, samples=4000)
    play(card)
    play(card, 3, late=True)
    play(card)
    play(card, 1, late=True)
    assert card.late == 2


@pytest.mark.parametrize("packet", [b"", b"abc", pack(Order.END, 1)[:-4],
                                    pack(Order.END, 1) + b"x" * 4, b"\xff" * 20])
def test_what_is_no_order_is_refused(packet):
    with pytest.raises(Broken):
        unpack(packet)


def test_too_many_samples_for_one_order_are_refused():
    with pytest.raises(ValueError, match=f"at most {MOST_SAMPLES}"):
        pack(Order.SAMPLES, 1, samples=np.zeros(MOST_SAMPLES + 1, np.float32))


def test_a_rate_that_no_device_has_is_refused_with_the_one_to_ask_for(monkeypatch):
    found = [{"name": "card", "max_output_channels": 2, "default_samplerate": 48000.0}]
    library = SimpleNamespace(query_devices=lambda: found, default=SimpleNamespace(device=[-1, 0]))
    monkeypatch.setattr(playback_process, "require", lambda *_: library)
    with pytest.raises(DeviceError, match="device_rate is 11 Hz; expected 1000 to .* 48000"):
        open_card(SimpleNamespace(device="", rate=11.0, channels=0))
