# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hardware as a file: recorded on one machine, read on another to see what is chosen for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from omni_ros.telemetry.cpulist import MAX_CPUS, format_cpus, parse_cpus
from omni_ros.telemetry.hardware import Cache, Cpu, Hardware

FORMAT = "omni_ros hardware 1"
_MEMORY = ("total", "available", "limit")
_LISTS = ("possible", "allowed", "cpuset", "isolated")
_KEYS = ("format", "model", "cpus", *_LISTS, "quota", "memory", "caches", "missing")
_CPU_FIELDS = {field.name: field for field in fields(Cpu)}
_MAX_BYTES = 4 << 20


class HardwareError(ValueError):
    """A hardware profile cannot be used; the text says what was given and what was expected."""


def save_hardware(hardware: Hardware, path: str | Path) -> None:
    """Write a profile. An existing file is replaced as a whole."""
    from omni_ros.bundles import strict_yaml

    path = Path(path)
    text = (
        "# What omni_ros read from a machine. Give it to a stage node's `hardware` parameter to\n"
        "# have cores and threads chosen as if that machine were this one.\n"
        + strict_yaml.dump(to_mapping(hardware))
    )
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def load_hardware(path: str | Path) -> Hardware:
    """Read a profile; `source` of what is returned is the path.

    :raises HardwareError: it cannot be read, or something in it cannot be.
    """
    from omni_ros.bundles import strict_yaml

    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise HardwareError(f"more than {_MAX_BYTES} bytes: this is no profile")
        data = strict_yaml.load(path.read_text(encoding="utf-8"))
        return from_mapping(data, str(path))
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        advice = "record one with `omni doctor --record-hardware FILE`"
        raise HardwareError(f"{path}: {error}; {advice}") from error


def to_mapping(hardware: Hardware) -> dict[str, Any]:
    """Return a Hardware as plain types, without its source."""
    cpus = []
    for cpu in hardware.cpus:
        entry = {name: getattr(cpu, name) for name in _CPU_FIELDS}
        cpus.append({k: v for k, v in entry.items() if v is not None and v is not False})
    memory = {name: getattr(hardware, f"memory_{name}") for name in _MEMORY}
    caches = [{"level": c.level, "kind": c.kind, "bytes": c.bytes, "cpus": format_cpus(c.cpus)}
              for c in hardware.caches]  # fmt: skip
    return {
        "format": FORMAT,
        "model": hardware.model,
        "cpus": cpus,
        **{name: format_cpus(getattr(hardware, name)) for name in _LISTS},
        "quota": hardware.quota,
        "memory": memory,
        "caches": caches,
        "missing": list(hardware.missing),
    }


def from_mapping(data: Any, source: str) -> Hardware:
    """Build a Hardware from what `to_mapping` returned.

    :raises HardwareError: a key is unknown or absent, or a value makes no sense.
    """
    data = _mapping(data, "the profile", _KEYS)
    if data.get("format") != FORMAT:
        raise HardwareError(f"format is {data.get('format')!r}, expected {FORMAT!r}")
    entries = data.get("cpus")
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_CPUS:
        raise HardwareError("cpus: expected a list with an entry for each cpu that is online")
    cpus = tuple(sorted((_cpu(entry) for entry in entries), key=lambda cpu: cpu.number))
    numbers = [cpu.number for cpu in cpus]
    if len(set(numbers)) < len(numbers):
        raise HardwareError(f"cpus: a number stands twice in {numbers}")
    if not {cpu.core for cpu in cpus} <= set(numbers):
        raise HardwareError("cpus: a core is the number of a cpu that is not in the list")
    lists = {name: _cpulist(data.get(name, ""), name) for name in _LISTS}
    for name in ("allowed", "cpuset"):
        lists[name] = tuple(n for n in lists[name] if n in numbers) or tuple(numbers)
    lists["isolated"] = tuple(n for n in lists["isolated"] if n in numbers)
    lists["possible"] = tuple(sorted({*lists["possible"], *numbers}))
    quota = data.get("quota")
    if quota is not None and not (_is_number(quota) and 0 < quota <= MAX_CPUS):
        raise HardwareError(f"quota is {quota!r}, expected a number of cores above 0, or null")
    memory = _mapping(data.get("memory") or {}, "memory", _MEMORY)
    missing = data.get("missing") or []
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise HardwareError(f"missing is {missing!r}, expected a list of text")
    return Hardware(
        model=str(data.get("model") or "unknown"),
        cpus=cpus,
        **lists,
        quota=None if quota is None else float(quota),
        caches=tuple(_cache(entry) for entry in data.get("caches") or []),
        **{f"memory_{name}": _whole(memory.get(name), name) for name in _MEMORY},
        missing=tuple(missing),
        source=source,
    )


def _cpu(entry: Any) -> Cpu:
    entry = _mapping(entry, "an entry of cpus", tuple(_CPU_FIELDS))
    values: dict[str, Any] = dict(entry)
    for name in ("number", "core"):
        if type(values.get(name)) is not int or not 0 <= values[name] < MAX_CPUS:
            raise HardwareError(f"cpus: {name} is {values.get(name)!r}, expected a cpu's number")
    if not isinstance(values.setdefault("efficient", False), bool):
        raise HardwareError(f"cpus: efficient is {values['efficient']!r}, expected true or false")
    for name in ("package", "cluster", "capacity", "max_khz"):
        if name in values and _whole(values[name], name) is None:
            del values[name]
    for name in ("capacity", "max_khz"):
        if values.get(name) == 0:
            raise HardwareError(f"cpus: {name} is 0, expected more, or leave it out")
    return Cpu(**values)


def _cache(entry: Any) -> Cache:
    entry = _mapping(entry, "an entry of caches", ("level", "kind", "bytes", "cpus"))
    return Cache(
        level=_whole(entry.get("level"), "level") or 0,
        kind=str(entry.get("kind")),
        bytes=_whole(entry.get("bytes"), "bytes") or 0,
        cpus=_cpulist(entry.get("cpus", ""), "cpus"),
    )


def _mapping(data: Any, what: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise HardwareError(f"{what} is {type(data).__name__}, expected a mapping")
    unknown = [key for key in data if key not in keys]
    if unknown:
        raise HardwareError(f"{what}: {unknown[0]!r} is unknown; known are {', '.join(keys)}")
    return data


def _cpulist(value: Any, name: str) -> tuple[int, ...]:
    try:
        return parse_cpus(str(value if value is not None else ""))
    except ValueError as error:
        raise HardwareError(f"{name}: {error}") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise HardwareError(f"{name} is {value!r}, expected a whole number from 0")
    return value
