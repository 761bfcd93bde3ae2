# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bag says of a topic: its type, in full and as a hash, and with what quality of service it came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

#: Durability of rmw_qos_durability_policy_t.
TRANSIENT_LOCAL = 1
#: A field of an interface of another package, or of the same one.
_FIELD = re.compile(r"^\s*([A-Za-z][\w/]*)(?:<=\d+)?(?:\[[^\]]*\])?\s+[A-Za-z]\w*", re.MULTILINE)
_PRIMITIVES = frozenset(
    "bool byte char float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 string wstring"
    .split())
_FOREVER = {"sec": 9223372036, "nsec": 854775807}


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    :param name: fully qualified. :param type: as `std_msgs/msg/String`. :param definition: of it and all
        that it is made of, in the .msg format. :param type_hash: RIHS01, "" if unknown. :param qos: offered
        profiles, as rosbag2 writes them.
    """

    name: str
    type: str
    definition: str = ""
    type_hash: str = ""
    qos: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def encoding(self) -> str:
        """Of the schema in MCAP."""
        return "ros2msg" if self.definition else ""

    @property
    def latched(self) -> bool:
        """True if late joiners get the last message."""
        return any(profile["durability"] == TRANSIENT_LOCAL for profile in self.qos)

    @property
    def qos_text(self) -> str:
        """Profiles in YAML, as metadata of version 8 and the channels of MCAP have them."""
        return yaml.safe_dump([dict(profile) for profile in self.qos], sort_keys=False) \
            if self.qos else ""


def qos_entry(*, reliable: bool, latched: bool, depth: int = 0) -> dict[str, Any]:
    """Return a profile as rosbag2 (to Jazzy) writes it: numbers of the rmw enumerations.

    :param depth: 0 if it is not known, as it is not of publishers that were discovered.
    """
    return {
        "history": 1 if depth else 3, "depth": depth,
        "reliability": 1 if reliable else 2, "durability": TRANSIENT_LOCAL if latched else 2,
        "deadline": dict(_FOREVER), "lifespan": dict(_FOREVER), "liveliness": 1,
        "liveliness_lease_duration": dict(_FOREVER), "avoid_ros_namespace_conventions": False,
    }


def full_definition(kind: str, share: Callable[[str], str | Path]) -> str:
    """Return the .msg text of a type and, each behind a line, of all types in it.

    :param kind: as `sensor_msgs/msg/Image`. :param share: gives the share folder of a package.
    :return: "" if one of the files is not there.
    """
    texts: dict[str, str] = {}
    wanted = [kind]
    while wanted:
        one = wanted.pop(0)
        if one in texts:
            continue
        package, _, name = one.split("/")
        try:
            texts[one] = (Path(share(package)) / "msg" / f"{name}.msg").read_text(encoding="utf-8")
        except (OSError, LookupError):
            return ""
        for used in _FIELD.findall(texts[one]):
            if used in _PRIMITIVES:
                continue
            parts = used.split("/")
            wanted.append(f"{parts[0]}/msg/{parts[-1]}" if len(parts) > 1 else f"{package}/msg/{used}")
    first, *others = texts
    parts = [texts[first]]
    for one in others:
        package, _, name = one.split("/")
        parts.append(f"{'=' * 80}\nMSG: {package}/{name}\n{texts[one]}")
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def known_hash(kind: str, share: Callable[[str], str | Path]) -> str:
    """Return the RIHS01 hash that is installed beside a type's definition, "" before Iron."""
    package, _, name = kind.split("/")
    try:
        text = (Path(share(package)) / "msg" / f"{name}.json").read_text(encoding="utf-8")
        return next(entry["hash_string"] for entry in json.loads(text)["type_hashes"]
                    if entry["type_name"] == kind)
    except (OSError, LookupError, ValueError, StopIteration):
        return ""
