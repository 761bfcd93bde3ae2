# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Says sentences aloud: the action `speak`, the topic `say`, the service `~/stop`.

What is said next, and how far it is, is decided in `omni_ros.speech`. Two threads here: the executor's
serves goals, stops and status; the other one computes speech and hands it to the speaker, which is a
process of its own.
"""

from __future__ import annotations

import itertools
import time
import traceback
from array import array
from functools import partial

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from omni_ros.msg import AudioChunk, SpeechStatus
from omni_ros.nodes import _tts_parameters as parameters
from omni_ros.nodes._runtime import Transitions, logged, run
from omni_ros.nodes._share import share_of
from omni_ros.nodes._stage_thread import StageThread
from omni_ros.nodes._stage_wait import deeper
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS
from omni_ros.nodes._tts_goals import SpeakGoals
from omni_ros.nodes._tts_status import SpeechReport
from omni_ros.speech.playback import Speaker
from omni_ros.speech.queue import Refused, Request, Result
from omni_ros.speech.queue_desk import STUCK_S, Desk
from omni_ros.speech.queue_run import News, Piece
from omni_ros.telemetry.placement import SEPARATE, TTS
from omni_ros.telemetry.realtime import set_affinity, set_nice

#: Seconds between two looks at how far things are.
LOOK_PERIOD_S = 0.05
#: Longest wait for the voice to come back when the node is deactivated, seconds.
END_TIMEOUT_S = 10.0
#: Chunks come faster than they are played.
AUDIO_QOS = deeper(CHUNK_QOS, 64)


class TtsNode(Transitions, LifecycleNode):
    """Owns the voices, the desk that speaks with them and the speaker."""

    def __init__(self) -> None:
        super().__init__("tts")
        parameters.declare_parameters(self)
        self.desk: Desk | None = None
        self.speaker: Speaker | None = None
        self.voice_name = ""
        self.placement_texts: list[str] = []
        self._voices: dict = {}
        self._thread: StageThread | None = None
        self._active = False
        self._fault, self._given_up = "", False
        self._was_audible: bool | None = None
        self._numbers = itertools.count(1)
        self._teardown: list = []
        self._goals: SpeakGoals | None = None
        self._soon = self.create_guard_condition(self._look)
        self._report = SpeechReport(self)
        self.create_timer(LOOK_PERIOD_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    # -- lifecycle -----------------------------------------------------------------------------

    @logged
    def on_configure(self, state):
        try:
            self._configure()
        except BaseException:
            self._free()
            raise
        self._report.look(now=True)

    def _configure(self) -> None:
        share, text = share_of(self, TTS, (*SEPARATE, TTS))
        self.placement_texts = [text]
        if share.process_cpus:
            self.placement_texts.append(str(set_affinity(share.process_cpus)))
        self._thread = StageThread("speech")
        self._thread.do(partial(self._prepare, share))
        self.voice_name = next(iter(self._voices))
        self.speaker = Speaker(parameters.speaker_settings(self, share), self._on_device)
        self.speaker.open()
        self._audio = self.create_publisher(AudioChunk, "audio_chunk", AUDIO_QOS)
        self._is_speaking = self.create_publisher(Bool, "is_speaking", LATCHED_QOS)
        says = self.create_subscription(String, "say", self._on_say, 10)
        stop = self.create_service(Trigger, "~/stop", self._on_stop)
        self._goals = SpeakGoals(self)
        self._teardown += [partial(self.destroy_publisher, self._audio),
                           partial(self.destroy_publisher, self._is_speaking),
                           partial(self.destroy_subscription, says),
                           partial(self.destroy_service, stop), self._goals.destroy]
        self._was_audible = None
        self.get_logger().info(
            f"voice {self.voice_name}, {self.speaker.text}; {self.placement_texts[0]}")
        for name, voice in self._voices.items():
            # Of voices that measure themselves: that they are too slow, before it is heard.
            if verdict := getattr(voice, "verdict", ""):
                self.get_logger().warning(f"voice {name}: {verdict}")

    def _prepare(self, share) -> None:
        """In the thread that speaks: bind it, then load, so that the voices' threads are bound too."""
        asked = ([set_affinity(share.cpus)] if share.cpus else []) + (
            [set_nice(share.nice)] if share.nice else [])
        self.placement_texts += [str(answer) for answer in asked]
        self._voices = parameters.load_voices(self, share)

    @logged
    def on_activate(self, state):
        self.desk = Desk(
            self._voices, self.speaker, publish=self._publish, news=self._soon.trigger,
            continue_s=self.get_parameter("continue_timeout_s").value)
        self._fault = ""
        self._thread.begin(self.desk.work, self._failed)
        self._active, self._goals.desk = True, self.desk
        self._look()

    def _tell_state(self) -> None:
        self._report.look(now=True)

    def _end(self) -> None:
        """Stop at once, and tell those who wait for it."""
        if self.desk is None:
            return
        self._active = False
        self._goals.desk = None
        self.desk.stop("the node was deactivated")
        came_back = self._thread.end(self.desk.wake, 0.0 if self._given_up else END_TIMEOUT_S)
        self._tell()
        if not came_back:
            self._give_up(f"the voice did not come back within {END_TIMEOUT_S:g} s of a stop")
            self._goals.arrive()
            raise TimeoutError(self._fault)
        self.desk = None

    def _give_up(self, why: str) -> None:
        """End the process: a thread that hangs cannot be ended otherwise. It is not waited for again."""
        if not self._given_up:
            self._given_up = True
            self._fault = f"{why}; ending the process. If it happens again, try another voice"
            self.get_logger().fatal(self._fault)
        self.exit_status = 1
        self.stop_requested.set()

    def _free(self) -> None:
        """Undo what configure made, as far as it got."""
        while self._teardown:
            self._teardown.pop()()
        if self.speaker is not None:
            self.speaker.close()
        if self._thread is not None:
            self._thread.do(partial(parameters.close_voices, self._voices))
            self._thread.close()
        self._voices, self._thread, self.speaker, self._goals = {}, None, None, None
        self.voice_name = ""

    def _failed(self) -> None:
        """The thread that speaks ended by an exception."""
        text = traceback.format_exc()
        self._fault = text.strip().splitlines()[-1]
        self.get_logger().fatal(f"speech stops, ending the process:\n{text}")
        self.exit_status = 1
        self.stop_requested.set()

    # -- goals ---------------------------------------------------------------------------------

    def _on_say(self, message: String) -> None:
        if self._active and message.data.strip():
            request = Request(("say", next(self._numbers)), message.data,
                              accepted_ns=time.monotonic_ns())
            try:
                self.desk.take(request)
            except Refused as refusal:
                self._warn(f"{message.data[:60]!r} is not said: {refusal}")

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        count = self.desk.stop("it was stopped") if self.desk is not None else 0
        response.success = True
        response.message = (
            f"{count} utterance{'s' if count > 1 else ''} stopped" if count else
            "nothing was being said")
        self._look()
        return response

    def _on_device(self, bad: bool, text: str) -> None:
        if bad:
            self.get_logger().warning(text)
        else:  # rclpy lets a line of code log at one level only
            self.get_logger().info(text)

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text, throttle_duration_sec=1.0)

    # -- what is told --------------------------------------------------------------------------

    def _publish(self, piece: Piece) -> None:
        """In the thread that speaks."""
        message = AudioChunk(
            utterance_id=piece.utterance, sequence=piece.sequence, first_sample=piece.first_sample,
            sample_rate=piece.rate, channels=1, last=piece.last,
            samples=array("h", np.rint(piece.samples * 32767.0).astype("<i2").tobytes()))
        message.header.stamp = self.get_clock().now().to_msg()
        self._audio.publish(message)

    def _look(self) -> None:
        """Tell what is new; in the executor's thread."""
        if self.desk is not None:
            self.desk.volume = self.get_parameter("volume").value
            self._tell()
            if self.desk.stuck_s() > STUCK_S and not self._fault:
                self._give_up(f"the voice has not come back from an abort for {STUCK_S:g} s")
        if self._goals is not None:
            audible = self.desk is not None and self.desk.audible
            if audible is not self._was_audible:
                self._was_audible = audible
                self._is_speaking.publish(Bool(data=audible))
        self._report.look()

    def _tell(self) -> None:
        for news in self.desk.look():
            if not self._goals.tell(news) and news.result is not None:
                self._log_said(news)

    def _log_said(self, news: News) -> None:
        """Of a sentence from the topic nobody but the log can tell what became of it."""
        if news.result is Result.REFUSED:
            self._warn(f"what was to be said is refused: {news.text}")

    def describe_state(self) -> tuple[int, str]:
        """Return SpeechStatus' state and text."""
        if self._fault:
            return SpeechStatus.STATE_ERROR, self._fault
        if self.desk is None:
            return SpeechStatus.STATE_INACTIVE, ""
        name, speaking = self.desk.speaking()
        return (SpeechStatus.STATE_SPEAKING, speaking) if name else (SpeechStatus.STATE_IDLE, "")


def main(argv: list | None = None) -> int:
    return run(TtsNode, argv)
