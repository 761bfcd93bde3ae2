# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which sound card is meant: by index, by part of its name, or the machine's own choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The value of a node's `device` parameter for no sound card at all, on purpose.
NO_DEVICE = "none"


class DeviceError(ValueError):
    """There is no such sound card; the message lists those that there are."""


@dataclass(frozen=True)
class Device:
    """A sound card, or what stands for one (a sound server).

    :param rate: the sample rate that it prefers, Hz.
    """

    index: int
    name: str
    channels: int
    rate: float

    def __str__(self) -> str:
        return f"{self.index} '{self.name}' ({self.channels} channels, {self.rate:g} Hz)"


def outputs(found: Sequence[Mapping[str, Any]]) -> list[Device]:
    """Return the devices that play, of what `sounddevice.query_devices()` gives."""
    return [Device(index, str(entry["name"]), int(entry["max_output_channels"]),
                   float(entry["default_samplerate"]))
            for index, entry in enumerate(found) if entry["max_output_channels"] > 0]


def choose(devices: Sequence[Device], wanted: str, default: int = -1) -> Device:
    """Return the device that is meant.

    :param wanted: "" for the machine's own choice, an index, or a name or part of one; upper and
        lower case are the same. Indices differ from boot to boot, names do not. A whole name goes
        before a part of one, and the first before those behind.
    :param default: index of the machine's own choice, -1 if it has none.
    :raises DeviceError: there is none, or none that fits.
    """
    wanted = wanted.strip()
    if not devices:
        raise DeviceError("there is no sound device that plays")
    if not wanted:
        return next((one for one in devices if one.index == default), devices[0])
    if wanted.isdecimal():
        fitting = [one for one in devices if one.index == int(wanted)]
    else:
        name = wanted.casefold()
        fitting = [one for one in devices if one.name.casefold() == name] or [
            one for one in devices if name in one.name.casefold()]
    if not fitting:
        raise DeviceError(f"no sound device fits {wanted!r}; there are: "
                          + ", ".join(map(str, devices)))
    return fitting[0]
