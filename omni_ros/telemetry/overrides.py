# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the user wants placed otherwise: section `placement:` of a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_ros.telemetry.cpulist import parse_cpus

PLAYER = "player"
#: One process a stage (`composition:=separate`).
SEPARATE = ("vision_encoder", "fusion_backbone", "action_head")
#: All stages in one process (`composition:=single`).
SINGLE = ("policy_stages",)
TTS = "tts"
PROCESSES = (PLAYER, *SEPARATE, *SINGLE, TTS)

MAX_THREADS = 1024
_KEYS = ("cpus", "threads", "nice")


class PlacementError(ValueError):
    """A placement cannot be had; the text says what was given and what to choose from."""


@dataclass(frozen=True)
class Override:
    """What to use instead of the choice; None leaves the choice."""

    cpus: tuple[int, ...] | None = None
    threads: int | None = None
    nice: int | None = None


def load_overrides(path: str | Path) -> dict[str, Override]:
    """Read a YAML file with the one key `placement`.

    :raises PlacementError: it cannot be read, or says something unknown.
    """
    from omni_ros.bundles import strict_yaml

    path = Path(path)
    try:
        data = strict_yaml.load(path.read_text(encoding="utf-8"))
        if not isinstance(data, Mapping) or list(data) != ["placement"]:
            raise PlacementError("expected one key, placement")
        return overrides_from(data["placement"])
    except OSError as error:
        raise PlacementError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise PlacementError(f"{path}: {error}") from error


def overrides_from(data: Any) -> dict[str, Override]:
    """Check the content of `placement:`, {process: {cpus, threads, nice}}.

    :raises PlacementError: an unknown process or key, or a value that makes no sense.
    """
    overrides = {}
    for name, entry in _mapping({} if data is None else data, "placement", PROCESSES).items():
        entry = _mapping(entry, f"placement: {name}", _KEYS)
        if name == PLAYER and "threads" in entry:
            raise PlacementError("placement: player: threads cannot be chosen, its tick is one")
        overrides[name] = Override(
            cpus=_cpus(entry.get("cpus"), name),
            threads=_whole(entry.get("threads"), f"{name}: threads", 1, MAX_THREADS),
            nice=_whole(entry.get("nice"), f"{name}: nice", -20, 19),
        )
    return overrides


def _mapping(data: Any, what: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise PlacementError(f"{what} is {data!r}, expected a mapping of {', '.join(keys)}")
    for key in data:
        if key not in keys:
            raise PlacementError(f"{what}: {key!r} is unknown; known are {', '.join(keys)}")
    return data


def _cpus(value: Any, name: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise PlacementError(f'placement: {name}: cpus is {value!r}, write them as "0" or "2-3,6"')
    try:
        cpus = parse_cpus(str(value))
    except ValueError as error:
        raise PlacementError(f"placement: {name}: cpus: {error}") from error
    if not cpus:
        raise PlacementError(f"placement: {name}: cpus is empty, leave it out for the choice")
    return cpus


def _whole(value: Any, what: str, low: int, high: int) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not low <= value <= high:
        raise PlacementError(f"placement: {what} is {value!r}, expected {low} to {high}")
    return value
