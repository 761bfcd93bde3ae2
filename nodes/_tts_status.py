# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the speech node says of itself: `speech_status`, the log and /diagnostics."""

from __future__ import annotations

import os
from array import array
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_updater import Updater
from rclpy.clock import Clock, ClockType

from omni_ros.msg import SpeechStatus
from omni_ros.nodes._support import LATCHED_QOS, pid_scope
from omni_ros.speech.playback import DeviceState
from omni_ros.speech.queue_tally import Figures

#: Seconds between two statuses when nothing changes.
STATUS_PERIOD_S = 1.0


class SpeechReport:
    """Publishes the node's status and answers the diagnostic updater."""

    def __init__(self, node: Any) -> None:
        """:param node: a `TtsNode`."""
        self._node = node
        self._scope = pid_scope()
        self._sequence = 0
        self._shown: tuple = ()
        self._due_ns = 0
        self._publisher = node.create_publisher(SpeechStatus, "speech_status", LATCHED_QOS)
        self._updater = Updater(node)
        self._updater.setHardwareID(node.get_fully_qualified_name())
        for name, task in (("state", self._state_task), ("sound device", self._device_task),
                           ("speech", self._speech_task), ("timing", self._timing_task),
                           ("placement", self._placement_task)):
            self._updater.add(name, task)
        # By the machine's time: a simulated clock may never come.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.destroy_timer(self._updater.timer)
        self._updater.timer = node.create_timer(
            self._updater.period, self._updater.update, clock=steady)
        self._steady = steady

    def look(self, *, now: bool = False) -> None:
        """Publish a status if there is news, or it is time, or `now`."""
        mono_ns = self._steady.now().nanoseconds
        message = self._message()
        key = (message.state, message.text, message.device_state, message.device,
               message.utterance_id, message.speaking, message.waiting, message.spoken,
               message.aborted, message.refused)
        if now or key != self._shown or mono_ns >= self._due_ns:
            self._shown, self._due_ns = key, mono_ns + round(STATUS_PERIOD_S * 1e9)
            self._sequence += 1
            message.sequence = self._sequence
            self._publisher.publish(message)

    def _figures(self) -> Figures:
        desk = self._node.desk
        return desk.tally.figures() if desk is not None else Figures()

    def _message(self) -> SpeechStatus:
        node, figures = self._node, self._figures()
        state, text = node.describe_state()
        message = SpeechStatus(
            state=state, text=text, pid=os.getpid(), pid_scope=self._scope,
            voice=node.voice_name, placement=node.placement_texts,
            goals=figures.goals, spoken=figures.spoken, aborted=figures.aborted,
            refused=figures.refused, underruns=figures.underruns, text_waits=figures.text_waits,
            longest_gap=figures.longest_gap_s, first_audio_p50=figures.first_audio[0],
            first_audio_p99=figures.first_audio[1], real_time_factor=figures.real_time_factor,
            slack_min=figures.slack_min_s, timing_names=list(figures.timings),
            timing_p50=array("d", [low for low, _ in figures.timings.values()]),
            timing_p99=array("d", [high for _, high in figures.timings.values()]))
        message.header.stamp = node.get_clock().now().to_msg()
        if node.desk is not None:
            message.utterance_id, message.speaking = node.desk.speaking()
            message.waiting = len(node.desk.queue.waiting)
        if node.speaker is not None:
            speaker = node.speaker
            message.device_state, message.device = int(speaker.state), speaker.text
            message.device_rate, message.device_latency = speaker.rate, speaker.latency_s
            message.device_underruns, message.device_losses = speaker.late, speaker.losses
            if speaker.priority_text:
                message.placement = [*node.placement_texts, speaker.priority_text]
        return message

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)

    # -- diagnostic tasks ----------------------------------------------------------------------

    def _state_task(self, out):
        state, text = self._node.describe_state()
        level = DiagnosticStatus.ERROR if state == SpeechStatus.STATE_ERROR else DiagnosticStatus.OK
        out.summary(level, text or ("inactive", "idle", "speaking", "stopped")[state])
        return out

    def _device_task(self, out):
        speaker = self._node.speaker
        if speaker is None:
            out.summary(DiagnosticStatus.OK, "not configured")
            return out
        missing = speaker.state is DeviceState.MISSING
        out.summary(DiagnosticStatus.WARN if missing else DiagnosticStatus.OK, speaker.text)
        out.add("lost", str(speaker.losses))
        out.add("device underruns", str(speaker.late))
        out.add("device latency ms", f"{speaker.latency_s * 1e3:.0f}")
        return out

    def _speech_task(self, out):
        figures = self._figures()
        level = DiagnosticStatus.WARN if figures.underruns else DiagnosticStatus.OK
        out.summary(level, f"{figures.spoken} spoken, {figures.aborted} aborted, {figures.refused} "
                           f"refused, {figures.underruns} underruns")
        out.add("longest gap ms", f"{figures.longest_gap_s * 1e3:.0f}")
        out.add("waits for text", str(figures.text_waits))
        return out

    def _timing_task(self, out):
        figures = self._figures()
        first, rare = figures.first_audio
        out.summary(DiagnosticStatus.OK, "nothing timed yet" if first != first else (
            f"first audio after {first * 1e3:.0f} ms (p99 {rare * 1e3:.0f}), real-time factor "
            f"{figures.real_time_factor:.2f}"))
        out.add("least slack ms", f"{figures.slack_min_s * 1e3:.0f}")
        for name, (median, high) in figures.timings.items():
            out.add(f"{name} p50/p99 ms", f"{median * 1e3:.2f} / {high * 1e3:.2f}")
        return out

    def _placement_task(self, out):
        texts = self._node.placement_texts
        out.summary(DiagnosticStatus.OK, texts[0] if texts else "not configured")
        for number, text in enumerate(texts[1:]):
            out.add(str(number), text)
        return out
