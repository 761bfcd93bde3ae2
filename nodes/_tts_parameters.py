# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the speech node, and what follows from them."""

from __future__ import annotations

from omni_ros.nodes._share import declare_share
from omni_ros.nodes._support import describe, describe_int
from omni_ros.speech import Voice, open_voice
from omni_ros.speech.playback import SpeakerSettings
from omni_ros.telemetry.placement import Share


def declare_parameters(node) -> None:
    """Declare them; all are read at configure, `volume` at any time."""
    declare = node.declare_parameter
    declare("voice", "voice_joe", describe(
        "bundle of the voice that speaks if a goal names none: a path, or the name of an installed one"))
    declare("voice_options", [""], describe(
        "what only voices of one family know, each as name=value, e.g. talker=llama.cpp; of `voice`, "
        "see docs/speech_qwen3.md"))
    declare("voices", [""], describe("bundles of more voices, that goals can name"))
    declare("device", "", describe(
        "sound device: part of its name, or an index; empty: the machine's own choice; none: no "
        "sound, AudioChunk only"))
    declare("device_rate", 0.0, describe(
        "sample rate of the device, Hz; 0: the one it prefers", low=0.0, high=768000.0))
    declare("device_channels", 0, describe_int("0: one or two, as the device has", low=0, high=64))
    declare("device_latency", 0.06, describe(
        "seconds that a sample waits in the device's buffer: less is sooner silent after a stop, more "
        "survives a busier machine", low=0.005, high=1.0))
    declare("device_priority", 1, describe_int(
        "real-time priority (SCHED_RR) to ask for the thread that fills the device's buffer; 0: do not "
        "ask", low=0, high=98))
    declare("volume", 1.0, describe("of all that is said", low=0.0, high=1.0))
    declare("ahead_s", 3.0, describe(
        "seconds of speech that are made ahead of what is heard", low=0.5, high=20.0))
    declare("continue_timeout_s", 2.0, describe(
        "how long, in silence, the next part of an utterance is waited for after a goal said that more "
        "text follows", low=0.1, high=600.0))
    declare_share(node)


def speaker_settings(node, share: Share) -> SpeakerSettings:
    """Return how the sound device is to be played."""
    def get(name: str):
        return node.get_parameter(name).value

    return SpeakerSettings(
        device=get("device"), rate=get("device_rate"), channels=get("device_channels"),
        latency_s=get("device_latency"), priority=get("device_priority"), ahead_s=get("ahead_s"),
        cpus=share.process_cpus)


def load_voices(node, share: Share) -> dict[str, Voice]:
    """Load the voices, in the thread that will speak: its binding and priority become theirs.

    :return: by the names that goals use: those of the bundles.
    :raises ValueError, ImportError, RuntimeError: one cannot be had; with what to do.
    """
    bundles = [node.get_parameter("voice").value, *node.get_parameter("voices").value]
    options = voice_options(node.get_parameter("voice_options").value)
    voices: dict[str, Voice] = {}
    try:
        for index, bundle in enumerate(bundles):
            if bundle:
                voice = open_voice(bundle, share.threads, share.cpus or None,
                                   options if index == 0 else None)
                if voice.name in voices:
                    voice.close()
                    raise ValueError(f"two voices are named {voice.name!r}; name each bundle once in "
                                     "the parameters voice and voices")
                voices[voice.name] = voice
    except BaseException:
        close_voices(voices)
        raise
    return voices


def voice_options(given: list[str]) -> dict[str, str]:
    """Return options by name. :raises ValueError: one is not of the form name=value."""
    options = {}
    for item in filter(None, given):
        name, equals, value = item.partition("=")
        if not name or not equals:
            raise ValueError(f"voice_options has {item!r}; write name=value, as in talker=llama.cpp")
        options[name.strip()] = value.strip()
    return options


def close_voices(voices: dict[str, Voice]) -> None:
    """Free them."""
    for voice in voices.values():
        voice.close()
