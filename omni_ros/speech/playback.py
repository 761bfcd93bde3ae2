# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The speaker: samples go in, sound comes out, and silence when it is told so.

The sound card belongs to a process of its own (`playback_process` says why); here is what watches
it. Without a card the clock plays: all goes on as if there were one, and nobody hears it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from omni_ros.speech.playback_devices import NO_DEVICE
from omni_ros.speech.playback_link import Link, spawn
from omni_ros.speech.playback_track import Track
from omni_ros.speech.playback_wire import MOST_SAMPLES, Order, pack

#: A card that takes no block for so long stands still, seconds.
STALL_S = 2.0
#: Longest time for a card to open, seconds.
OPEN_S = 10.0
#: Seconds between two tries to open a card: the first, and the longest.
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 30.0
#: A card that played for so long is taken to be well again: the next try is soon.
WELL_S = 10.0
#: How long a writer sleeps while there is no room, seconds.
NAP_S = 0.02


class DeviceState(IntEnum):
    """As in SpeechStatus."""

    NONE = 0     # on purpose
    OPENING = 1
    OPEN = 2
    MISSING = 3  # no card, or it does not open; tried again


@dataclass(frozen=True)
class SpeakerSettings:
    """
    :param device: "" for the machine's own choice, an index, part of a name, or "none".
    :param rate: of the card, Hz; 0 for the one it prefers. :param channels: 0 for up to two.
    :param latency_s: of the card's buffer. Lower: sooner silent, and sooner dry on a busy machine.
    :param priority: SCHED_RR priority of the sound callback; 0 not to ask.
    :param ahead_s: how much may wait to be played; a writer blocks at more.
    :param cpus: what the process is bound to; () for no binding.
    """

    device: str = ""
    rate: float = 0.0
    channels: int = 0
    latency_s: float = 0.06
    priority: int = 1
    ahead_s: float = 3.0
    cpus: tuple[int, ...] = ()


class Speaker:
    """Plays one utterance at a time. All methods are for any thread, and none but `write` waits."""

    def __init__(self, settings: SpeakerSettings = SpeakerSettings(),
                 notify: Callable[[bool, str], None] | None = None) -> None:
        """:param notify: told of what changes, (whether it is bad, text), from a thread of its own."""
        self._settings = settings
        self._notify = notify or (lambda bad, text: None)
        self._lock = threading.Condition()
        self._track: Track | None = None
        self._number = 0
        self._link: Link | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        #: What to say about the card.
        self.state, self.text = DeviceState.NONE, "no sound device, as asked: on the topic only"
        self.rate = self.latency_s = 0.0
        #: Why there is no card, "" if there is one, or none was asked for.
        self.fault = ""
        #: Times that the card ran out of blocks, and that it was lost.
        self.late = self.losses = self._late_before = 0
        self.priority_text = ""

    # -- opening and closing -------------------------------------------------------------------

    def open(self, wait_s: float = OPEN_S) -> bool:
        """Begin to play; wait until the card is open or is known not to open. True if it is."""
        if self._settings.device.strip().casefold() == NO_DEVICE:
            return False
        self.state, self.text = DeviceState.OPENING, "the sound device is being opened"
        self._closing.clear()
        self._thread = threading.Thread(target=self._supervise, name="speaker", daemon=True)
        self._thread.start()
        with self._lock:
            self._lock.wait_for(lambda: self.state is not DeviceState.OPENING, wait_s)
            return self.state is DeviceState.OPEN

    def close(self) -> None:
        """End the process that plays."""
        self._closing.set()
        self.clear()
        link = self._link
        if link is not None:
            link.wake()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        self.state, self.text = DeviceState.NONE, "closed"

    @property
    def pid(self) -> int:
        """Process id of what plays, 0 if there is none."""
        link = self._link
        return link.pid if link is not None else 0

    # -- an utterance --------------------------------------------------------------------------

    def begin(self, rate: float) -> Track:
        """Begin an utterance; what there was before is cleared unless it is over."""
        self.clear()
        with self._lock:
            self._number += 1
            device = self.state is DeviceState.OPEN
            self._track = Track(self._number, rate, device)
            if device:
                self._track.unsent = pack(Order.BEGIN, self._number, rate)
                self._flush(self._track)
            return self._track

    def write(self, track: Track, samples: np.ndarray) -> bool:
        """Hand over samples; blocks while enough waits. False if the utterance is over.

        :param samples: float32 [n] in -1..1.
        """
        for begin in range(0, len(samples), MOST_SAMPLES):
            if not self._write(track, samples[begin:begin + MOST_SAMPLES]):
                return False
        return not track.over

    def _write(self, track: Track, piece: np.ndarray) -> bool:
        packet = pack(Order.SAMPLES, track.number, samples=piece) if track.device else b""
        with self._lock:
            while not track.over and track is self._track:
                if track.slack_s() < self._settings.ahead_s and (
                        not track.device or (self._flush(track) and self._tell(packet))):
                    track.wrote(len(piece), time.monotonic_ns())
                    return True
                self._lock.wait(NAP_S)
        return False

    def pause(self, track: Track) -> None:
        """Nothing more comes for the moment, and that is nobody's fault."""
        self._note(track, Order.PAUSE)
        track.paused = True

    def end(self, track: Track) -> None:
        """No more comes; the utterance is over when what waits has been played."""
        if self._note(track, Order.END):
            with self._lock:
                track.end(time.monotonic_ns())

    def _note(self, track: Track, order: Order) -> bool:
        packet = pack(order, track.number)
        with self._lock:
            while not track.over and track is self._track:
                if not track.device or (self._flush(track) and self._tell(packet)):
                    return True
                self._lock.wait(NAP_S)
        return False

    def clear(self) -> None:
        """Silence, at once; the running utterance is over."""
        with self._lock:
            track, self._track = self._track, None
            if track is None or track.over:
                return
            track.played, track.at_ns = track.position(), time.monotonic_ns()
            track.cleared = True
            if track.device and self._link is not None and not self._tell(pack(Order.CLEAR, 0)):
                self._link.kill()  # it reads no orders: this silences it too
            self._lock.notify_all()

    def _flush(self, track: Track) -> bool:
        """Send what begins a track, unless that was done; whether it is."""
        if track.unsent and self._tell(track.unsent):
            track.unsent = b""
        return not track.unsent

    def _tell(self, packet: bytes) -> bool:
        return self._link is not None and self._link.send(packet)

    # -- watching the process ------------------------------------------------------------------

    def _supervise(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._closing.is_set():
            began = time.monotonic()
            final = self._run_once()
            if self._closing.is_set() or final:
                return
            if time.monotonic() - began > WELL_S:
                retry_s = FIRST_RETRY_S
            self._closing.wait(retry_s)
            retry_s = min(2.0 * retry_s, LAST_RETRY_S)

    def _run_once(self) -> bool:
        """Start the process and listen until it ends; return whether no try will do better."""
        try:
            link = spawn(self._settings)
        except (OSError, ValueError) as error:  # ValueError: a device's name with a zero byte
            self._lose(f"the process that plays does not start: {error}")
            return False
        self._link = link
        try:
            why, final = self._listen(link)
        except Exception as error:  # noqa: BLE001 - whoever waits for the sound is to be told
            why, final = f"{type(error).__name__}: {error}", False
        finally:
            with self._lock:
                self._link = None
            link.close()
        if not self._closing.is_set():
            self._lose(why)
        return final

    def _listen(self, link: Link) -> tuple[str, bool]:
        """Take in reports until there are no more; return why, and whether for good."""
        deadline, calls, report = time.monotonic() + OPEN_S, -1, {}
        while not self._closing.is_set():
            for report in link.receive(0.2):
                if "error" in report:
                    return report["error"], report["final"]
                if "device" in report:
                    self._opened(report)
                    deadline = time.monotonic() + STALL_S
                    continue
                if report["calls"] != calls:
                    calls, deadline = report["calls"], time.monotonic() + STALL_S
                self._take(report)
                if not report["active"]:
                    return "the sound device ended its stream", False
            if link.ended:
                return f"the process that plays ended ({link.epitaph()})", False
            if time.monotonic() > deadline:
                what = f"takes no sound for {STALL_S:g} s" if calls >= 0 else (
                    f"does not open within {OPEN_S:g} s")
                return f"the sound device {what}", False
        return "", False

    def _opened(self, report: dict) -> None:
        with self._lock:
            self.state, self.fault = DeviceState.OPEN, ""
            self.text = f"{report['device']}, played at {report['rate']:g} Hz"
            self.rate, self.latency_s = report["rate"], report["latency"]
            self._late_before = self.late
            self._lock.notify_all()
        self._notify(False, f"sound device {self.text}")

    def _take(self, report: dict) -> None:
        with self._lock:
            self.late = self._late_before + report["late"]
            self.priority_text = report["priority"]
            track = self._track
            if track is not None and track.number == report["utterance"]:
                track.report(report)
            self._lock.notify_all()

    def _lose(self, why: str) -> None:
        with self._lock:
            before = self.state, self.text
            self.state, self.fault = DeviceState.MISSING, why
            self.text = f"{why}. On the topic only"
            if before[0] is DeviceState.OPEN:
                self.losses += 1
            if self._track is not None and self._track.device and not self._track.over:
                self._track.lost = why
            self._lock.notify_all()
        if before != (self.state, self.text):
            self._notify(True, self.text)
