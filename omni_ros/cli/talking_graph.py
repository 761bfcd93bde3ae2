# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Talk through a running graph: goals, stops, and what the speech node says of itself.

Imports rclpy and the omni_ros messages; import it only where both are known to be there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from rclpy.action import ActionClient
from std_srvs.srv import Trigger

from omni_ros.action import Speak
from omni_ros.cli.player_probe import STATUS_QOS, PlayerProbe
from omni_ros.msg import PolicyStatus, SpeechStatus
from omni_ros.nodes._stage_node import STATUSES_QOS

ANSWER_S = 60.0
STATES = {4: "succeeded", 5: "canceled", 6: "aborted"}


@dataclass
class Said:
    """A goal that has ended; seconds."""

    state: str
    sent: float      # monotonic
    took_s: float
    first_audio_s: float
    audio_s: float
    message: str


class TalkingGraph(PlayerProbe):
    """Follows a player, if there is one, and talks. All calls spin."""

    def __enter__(self) -> TalkingGraph:
        super().__enter__()
        self._speech: Any = None
        self.policy: dict[str, Any] = {}
        self._client = ActionClient(self._node, Speak, "speak")
        self._stop = self._node.create_client(Trigger, "tts/stop")
        self._node.create_subscription(SpeechStatus, "speech_status", self._keep_speech, STATUS_QOS)
        self._node.create_subscription(PolicyStatus, "policy_status", self._keep_policy, STATUSES_QOS)
        return self

    def _keep_speech(self, message: SpeechStatus) -> None:
        self._speech = message

    def _keep_policy(self, message: PolicyStatus) -> None:
        self.policy[message.stage] = message

    def wait_until_it_speaks(self, timeout: float) -> SpeechStatus:
        """Wait until the speech node is active.

        :raises RuntimeError: it is not in time.
        """
        self._wait(lambda: self._speech is not None and self._speech.state in (1, 2),
                   timeout, "the speech node is not active")
        self._wait(self._client.server_is_ready, timeout, "no action speak")
        return self._speech

    def speech_status(self) -> SpeechStatus:
        """Return the next status of the speech node."""
        before = self._speech.sequence
        self._wait(lambda: self._speech.sequence != before, 10.0, "no status of the speech node")
        return self._speech

    def send(self, text: str) -> Any:
        """Send a goal; return its handle, and its result's future and when it was sent."""
        sent = time.monotonic()
        answer = self._client.send_goal_async(Speak.Goal(text=text))
        self._wait(answer.done, ANSWER_S, "no answer to a goal")
        handle = answer.result()
        if not handle.accepted:
            raise RuntimeError("a goal was rejected: the speech node is not active")
        return handle, handle.get_result_async(), sent

    def end(self, result: Any, sent: float, timeout: float = ANSWER_S) -> Said:
        """Wait for the end of a goal."""
        self._wait(result.done, timeout, "no end of a goal")
        took_s = time.monotonic() - sent
        answer = result.result()
        return Said(STATES.get(answer.status, str(answer.status)), sent, took_s,
                    seconds(answer.result.first_audio_latency),
                    seconds(answer.result.audio_duration), answer.result.message)

    def cancel(self, handle: Any) -> None:
        """Cancel a goal."""
        answer = handle.cancel_goal_async()
        self._wait(answer.done, ANSWER_S, "no answer to a cancel")

    def stop(self) -> float:
        """Call the stop service; return when it was called, monotonic seconds."""
        called = time.monotonic()
        answer = self._stop.call_async(Trigger.Request())
        self._wait(answer.done, ANSWER_S, "no answer to a stop")
        return called

    def talk_for(self, texts: list[str], wanted_s: float) -> list[Said]:
        """Say the texts one after the other, again and again, until the time is over."""
        said, end = [], time.monotonic() + wanted_s
        while time.monotonic() < end:
            _, result, sent = self.send(texts[len(said) % len(texts)])
            said.append(self.end(result, sent))
        return said


def seconds(duration: Any) -> float:
    """Return a duration message in seconds."""
    return duration.sec + duration.nanosec * 1e-9
