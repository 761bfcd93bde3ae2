# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration's arm says: what it is about to do, and whether it succeeded."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

VOICE = "voice_joe"
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

    def __init__(self, node: Any) -> None:
        from std_msgs.msg import String

        self._message = String
        self._publisher = node.create_publisher(String, "say", 10)

    def say(self, text: str) -> None:
        """Have a sentence said, after those before it."""
        self._publisher.publish(self._message(data=text))
