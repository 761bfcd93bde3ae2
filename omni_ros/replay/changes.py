# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What was changed since a recording: between two manifests, two robots, two sets of versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from omni_ros.replay import locate
from omni_ros.replay.configuration import SafeLoader, changed

#: Of a manifest: what says nothing about actions.
_IDLE = ("manifest_sha256", "provenance", "memory", "golden", "tolerance", "name", "format")
#: The stage that a field of the manifest decides, by how its path begins.
_STAGES = (
    ("joints", locate.ORDER), ("state_joints", locate.ORDER), ("image.", locate.PIXEL),
    ("cameras", locate.PIXEL), ("empty_cameras", locate.PREFIX_STAGE),
    ("tokenizer.", locate.TOKENS), ("normalisation.", locate.NORMALISATION),
    ("embeddings.", locate.PREFIX_STAGE), ("prefix.", locate.PREFIX_STAGE),
    ("programs.vision_encoder", locate.VISION), ("programs.fusion_backbone", locate.PREFIX_STAGE),
    ("programs.action_head", locate.STEPS), ("flow.", locate.STEPS), ("rtc.", locate.STEPS),
)
#: In the order in which an observation meets them.
_ORDER = (locate.ORDER, locate.UNITS, locate.PIXEL, locate.TOKENS, locate.NORMALISATION,
          locate.VISION, locate.PREFIX_STAGE, locate.STEPS)


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was. `stage`: that it decides, "" if no single one."""

    what: str
    before: str
    now: str
    stage: str = ""

    def __str__(self) -> str:
        return f"{self.what} was {self.before}, is {self.now}"


def manifest_changes(recorded: str, now: str) -> list[Change]:
    """Return what differs between two texts of bundle.yaml, in the order of the stages."""
    if recorded == now:
        return []
    before, after = (_completed(_mapping(text)) for text in (recorded, now))
    if not before or not after:
        return []
    # A hash says more by the file's purpose than by its name.
    files = {**_files(before), **_files(after)}
    found = []
    for path, old, new in _walk(before, after, ""):
        top = path.split(".", 1)[0]
        if top in _IDLE or path.endswith(".bytes") or path.startswith("programs.") and (
                path.rsplit(".", 1)[-1] not in ("recipe", "method")):
            continue
        name = path
        if top == "files":
            file = path[len("files."):].removesuffix(".sha256")
            name = files.get(file, "")
            if not name:
                continue
            path = f"{file}'s sha256"
            old, new = old[:12] if isinstance(old, str) else old, new[:12] if isinstance(
                new, str) else new
        found.append(Change(path, _short(old), _short(new), _stage_of(name)))
    return sorted(found, key=lambda one: _ORDER.index(one.stage) if one.stage in _ORDER else
                  len(_ORDER))


def version_changes(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
    """Return the decisive versions that differ."""
    return [Change(name, before or "not recorded", after or "absent")
            for name, (before, after) in changed(recorded, now).items()]


def robot_changes(recorded: str, now: str) -> list[Change]:
    """Return what differs between two texts of a robot YAML."""
    found: list[Change] = []
    if recorded == now:
        return found
    for path, old, new in _walk(_mapping(recorded), _mapping(now), ""):
        stage = locate.UNITS if path.startswith("joints") else ""
        found.append(Change(f"robot {path}", _short(old), _short(new), stage))
    return found


def _stage_of(path: str) -> str:
    return next((stage for start, stage in _STAGES if path.startswith(start)), "")


def _files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what each file is for, as the path of the entry that names it."""
    purpose = {}
    for part in ("tokenizer", "embeddings", "normalisation"):
        entry = manifest.get(part)
        if isinstance(entry, Mapping) and isinstance(entry.get("file"), str):
            purpose[entry["file"]] = f"{part}.file"
    programs = manifest.get("programs")
    for name, entry in (programs.items() if isinstance(programs, Mapping) else ()):
        if isinstance(entry, Mapping) and isinstance(entry.get("file"), str):
            purpose[entry["file"]] = f"programs.{name}"
    return purpose


def _completed(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a manifest with what it leaves to its defaults: an exporter of today may write that out."""
    from omni_ros.bundles import schema
    from omni_ros.bundles.kinds import kind_of

    signs = ("format", "manifest_sha256")
    data = {key: value for key, value in manifest.items() if key not in signs}
    try:
        return schema.to_data(schema.from_data(kind_of(data["family"]).manifest, data))
    except (ValueError, KeyError, TypeError):
        return manifest  # of another version of this package, perhaps: compared as it is


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        found = yaml.load(text, Loader=SafeLoader)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _walk(before: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, old and new of what differs; missing is None."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _walk(before.get(key), now.get(key), f"{path}.{key}" if path else str(key))
    elif (isinstance(before, list) and isinstance(now, list) and len(before) == len(now)):
        for index, (old, new) in enumerate(zip(before, now)):
            yield from _walk(old, new, f"{path}[{index}]")
    elif before != now:
        yield path, before, now


def _short(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
