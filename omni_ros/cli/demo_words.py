# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration's arm says: what it is about to do, and whether it succeeded."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

VOICE = "voice_joe"
#: How long a voice is waited for; it is loaded while the policy is.
PATIENCE_S = 20.0
LAST_WORDS_S = 8.0
SENTENCES = {
    "touch": "I will touch the {} block.",
    "pick_up": "I will pick up the {} block.",
    "place": "I will put the {} block on the pad.",
}
#: By a step's verdict; any other did not succeed either.
OUTCOMES = {"success": "Done."}
FAILED = "That did not work."


def intention(skill: str, colour: str) -> str:
    """Return the sentence for what is about to be done."""
    return SENTENCES[skill].format(colour)


def outcome(verdict: str) -> str:
    """Return the sentence for how it went."""
    return OUTCOMES.get(verdict, FAILED)


def speech_argument(launch_arguments: list[str]) -> tuple[list[str], str]:
    """Return the launch argument that lets the arm speak, and why it does not, "" if it does.

    What the user says of `speech` is left as it is. Without a sound device it speaks to the topic.
    """
    given = [word for word in launch_arguments if word.startswith("speech:=")]
    if given:
        return [], "" if given[-1].endswith("true") else "it was told not to"
    from omni_ros.bundles.errors import BundleError
    from omni_ros.bundles.named import bundle_folder

    try:
        bundle_folder(VOICE)
    except BundleError:
        return [], f"there is no voice {VOICE}; `make setup` makes it"
    missing = [name for name in ("executorch", "sounddevice") if find_spec(name) is None]
    if missing:
        return [], f"{missing[0]} is not installed"
    return ["speech:=true"], ""


class Words:
    """Says sentences on the topic `say`; heard if somebody speaks there."""

    def __init__(self, graph: Any, patience_s: float) -> None:
        """
        :param graph: a PlayerProbe whose node is used.
        :param patience_s: how long a voice is waited for; 0.0 if none is to come.
        """
        from std_msgs.msg import String

        from omni_ros.cli.player_probe import STATUS_QOS
        from omni_ros.msg import SpeechStatus

        self._message, self._graph, self._status = String, graph, None
        self._publisher = graph.node.create_publisher(String, "say", 10)
        if patience_s <= 0.0:
            return
        graph.node.create_subscription(SpeechStatus, "speech_status", self._keep, STATUS_QOS)
        # Without it the arm goes on without words.
        self._until(lambda: self._status is not None and self._publisher.get_subscription_count()
                    and self._status.state != self._status.STATE_INACTIVE, patience_s)

    def _keep(self, status: Any) -> None:
        self._status = status

    def _until(self, condition: Callable[[], Any], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while not condition() and time.monotonic() < end:
            self._graph.spin(0.1)

    def finish(self) -> None:
        """Let the last sentences be heard, if there is a voice; not for ever."""
        if self._status is not None and self._status.state != self._status.STATE_INACTIVE:
            self._graph.spin(0.3)  # the last one may be on its way
            self._until(lambda: self._status.state == self._status.STATE_IDLE, LAST_WORDS_S)

    def say(self, text: str) -> None:
        """Have a sentence said, after those before it."""
        self._publisher.publish(self._message(data=text))
