# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The process that plays: one stream to one sound card, open from beginning to end.

It is a process of its own because the sound callback needs the interpreter's lock: beside one busy
Python thread the callback came too late 163 times in 10 s (docs/measurements/speech_graph.md). It is also
what can be ended when a sound card never returns from a call, and what finds a card that was plugged in
later, since PortAudio looks for cards only once a process.

Started by `playback.Speaker`; it ends when its end of the socket is closed.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omni_ros.requirements import MissingDependency, require
from omni_ros.speech.playback_devices import Device, DeviceError, choose, outputs
from omni_ros.speech.playback_wire import MOST_BYTES, Order, report_bytes, unpack
from omni_ros.speech.resample import LEAST_HZ, MOST_HZ, Resampler
from omni_ros.speech.ring import SampleRing
from omni_ros.telemetry.cpulist import parse_cpus
from omni_ros.telemetry.realtime import set_affinity

#: Seconds of sound that can wait here.
RING_S = 30.0
#: Seconds between two reports, while there is sound and while there is none.
BUSY_S, IDLE_S = 0.02, 0.5
#: A rate that no card has, Hz.
WARM_UP_HZ = 22222.0


@dataclass
class Playing:
    """What the callback counts of an utterance, in samples of the sound card."""

    utterance: int = 0
    begin: int = 0           # position in the ring of its first sample
    ratio: float = 1.0       # samples of the card for one of the voice
    expecting: bool = False  # more is to come; with a dry ring that is an underrun
    ended: bool = False
    first_ns: int = 0        # when its first sample left the card
    done_ns: int = 0         # when its last one did
    dry: int = 0             # times that the ring ran dry
    dry_samples: int = 0
    longest_dry: int = 0


@dataclass
class Card:
    """An open stream and what its callback counts."""

    rate: float
    ring: SampleRing
    priority: int = 0
    playing: Playing = field(default_factory=Playing)
    calls: int = 0
    late: int = 0       # runs of blocks that the card had to do without
    was_late: bool = False
    dry_now: int = 0
    called_ns: int = 0
    priority_text: str = ""

    def callback(self, out: Any, frames: int, times: Any, status: Any) -> None:
        """Fill one block; in PortAudio's thread, every 10 to 20 ms."""
        now = time.monotonic_ns()
        if self.calls == 0 and self.priority:
            self.priority_text = _ask_for(self.priority)
        self.calls += 1
        self.called_ns = now
        self._count_late(bool(status.output_underflow))
        block = np.frombuffer(out, np.float32)
        channels = len(block) // frames
        mono = block if channels == 1 else np.empty(frames, np.float32)
        taken = self.ring.fill(mono)
        if channels > 1:
            block.reshape(frames, channels)[:] = mono[:, None]
        delay = min(max(times.outputBufferDacTime - times.currentTime, 0.0), 1.0)
        self._account(taken, frames, now + round(delay * 1e9))

    def _count_late(self, late: bool) -> None:
        if late and not self.was_late and self.playing.first_ns and not self.playing.done_ns:
            self.late += 1
        self.was_late = late

    def _account(self, taken: int, frames: int, audible_ns: int) -> None:
        playing = self.playing
        if taken and not playing.first_ns and self.ring.read > playing.begin:
            playing.first_ns = audible_ns
        if taken == frames or not playing.first_ns or playing.done_ns:
            self.dry_now = 0
            return
        if playing.ended:
            playing.done_ns = audible_ns + round(taken / self.rate * 1e9)
        elif playing.expecting:
            playing.dry += self.dry_now == 0
            self.dry_now += frames - taken
            playing.dry_samples += frames - taken
            playing.longest_dry = max(playing.longest_dry, self.dry_now)


def _ask_for(priority: int) -> str:
    """Ask for a real-time priority for the calling thread; return the answer."""
    asked = f"SCHED_RR priority {priority} for the sound callback"
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except (OSError, AttributeError) as error:
        return f"{asked}: refused: {error}"
    return f"{asked}: granted"


class Player:
    """Does what the orders say with the ring of a card."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._resampler: Resampler | None = None
        self._waiting: list[np.ndarray] = []  # no room in the ring yet

    def obey(self, order: Order, utterance: int, rate: float, samples: np.ndarray) -> None:
        card, playing = self._card, self._card.playing
        if order is Order.CLEAR:
            self._waiting.clear()
            card.ring.clear()
            self._resampler = None
            playing.expecting, playing.ended = False, True
            if not playing.first_ns:
                playing.done_ns = time.monotonic_ns()
        elif order is Order.BEGIN:
            self._resampler = Resampler(rate, card.rate)
            card.playing = Playing(utterance, card.ring.written, self._resampler.ratio)
        elif utterance != playing.utterance or self._resampler is None:
            return  # of one that was cleared
        elif order is Order.PAUSE:
            playing.expecting = False
        else:
            last = order is Order.END
            playing.expecting = not last
            self._put(self._resampler.push(samples, last=last))
            playing.ended = last
            if last and card.ring.written == playing.begin:
                playing.done_ns = time.monotonic_ns()  # of no samples at all

    def _put(self, samples: np.ndarray) -> None:
        if self._waiting or len(samples) > self._card.ring.room:
            self._waiting.append(samples)
            self.catch_up()
        else:
            self._card.ring.write(samples)

    def catch_up(self) -> None:
        """Move what had to wait into the ring."""
        while self._waiting:
            count = self._card.ring.write(self._waiting[0])
            if count < len(self._waiting[0]):
                self._waiting[0] = self._waiting[0][count:]
                return
            del self._waiting[0]


def open_card(arguments: argparse.Namespace) -> tuple[Any, Card, Device]:
    """Open the stream.

    :raises MissingDependency, DeviceError: no library, or no such card.
    """
    sounddevice = require("sounddevice", "to play speech on a sound card")
    found = list(sounddevice.query_devices())
    device = choose(outputs(found), arguments.device, sounddevice.default.device[1])
    rate = arguments.rate or device.rate
    if not LEAST_HZ <= rate <= MOST_HZ:
        raise DeviceError(f"device_rate is {rate:g} Hz; expected {LEAST_HZ:g} to {MOST_HZ:g}, or 0 for "
                          f"the one that the sound device prefers, {device.rate:g}")
    channels = arguments.channels or min(2, device.channels)
    Resampler(WARM_UP_HZ, rate).push(np.zeros(256, np.float32))  # loads the library, too
    card = Card(rate, SampleRing(round(RING_S * rate)), arguments.priority)
    try:
        stream = sounddevice.RawOutputStream(
            samplerate=rate, channels=channels, dtype="float32", device=device.index,
            latency=arguments.latency, callback=card.callback)
        stream.start()
    except (sounddevice.PortAudioError, ValueError) as error:
        raise DeviceError(f"the sound device {device} does not open with {channels} channels at "
                          f"{rate:g} Hz: {error}") from error
    return stream, card, device


def serve(link: socket.socket, stream: Any, card: Card) -> None:
    """Obey and report until the other side is gone."""
    player = Player(card)
    shown: tuple = ()
    due = 0.0
    while True:
        playing = card.playing
        busy = bool(playing.utterance) and not playing.done_ns
        if select.select([link], [], [], BUSY_S if busy else IDLE_S / 5)[0]:
            packet = link.recv(MOST_BYTES)
            if not packet:
                return
            player.obey(*unpack(packet))
            if select.select([link], [], [], 0)[0]:
                continue  # take all that is there before reporting
        player.catch_up()
        playing, now = card.playing, time.monotonic()
        news = playing.utterance, playing.first_ns, playing.done_ns, playing.ended, card.late
        if news == shown and now < due:
            continue
        shown, due = news, now + (BUSY_S if busy else IDLE_S)
        played = max(0, max(card.ring.read, card.ring.skip_to) - playing.begin)
        link.send(report_bytes(
            utterance=playing.utterance, played=played / playing.ratio, at_ns=card.called_ns,
            first_ns=playing.first_ns, done_ns=playing.done_ns, dry=playing.dry,
            dry_s=playing.dry_samples / card.rate, longest_dry_s=playing.longest_dry / card.rate,
            late=card.late, calls=card.calls, active=bool(stream.active),
            priority=card.priority_text))


def main(words: list[str] | None = None) -> int:
    """Open the card and play; exit status 0 unless the card could not be opened."""
    parser = argparse.ArgumentParser(prog="speaker")
    parser.add_argument("--socket", type=int, required=True, help="file descriptor")
    parser.add_argument("--device", default="")
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--channels", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.06)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--cpus", default="", help="to be bound to, as in 0,1")
    arguments = parser.parse_args(words)
    if arguments.cpus:
        set_affinity(parse_cpus(arguments.cpus))
    link = socket.socket(fileno=arguments.socket)
    try:
        stream, card, device = open_card(arguments)
    except (MissingDependency, ValueError) as error:
        link.send(report_bytes(error=str(error), final=isinstance(error, MissingDependency)))
        return 1
    link.send(report_bytes(device=str(device), name=device.name, rate=card.rate,
                              latency=float(stream.latency)))
    gc.freeze()
    gc.disable()  # a collection would hold up the callback; nothing here makes cycles
    # ALSA writes a line for each late block; they are counted.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        serve(link, stream, card)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:  # noqa: BLE001 - the last place where it can be told
        link.send(report_bytes(error=f"{type(error).__name__}: {error}", final=False))
    # Not through PortAudio: closing a card that hangs would never return.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
