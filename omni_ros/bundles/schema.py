# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Dataclasses from parsed YAML and back, strictly: nothing unknown, nothing missing, no guesses."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin

from omni_ros.bundles.errors import BundleError, short

T = TypeVar("T")

#: Sizes in bytes stay below this: more than any robot has, and safe to add up.
LARGEST = 1 << 48
#: Characters of one text.
MAX_TEXT = 4096
#: Kinds of values as a person calls them; what is not here is a dataclass.
_WORDS = {str: "text", int: "an integer", float: "a number", bool: "true or false",
          type(None): "null", tuple: "a list", dict: "a mapping"}


def number(low: float, high: float, *, default: Any = MISSING) -> Any:
    """Return a field for a number from `low` to `high`, both allowed."""
    return field(default=default, metadata={"range": (low, high)})


def size(low: int = 0, high: int = LARGEST, *, default: Any = MISSING) -> Any:
    """Return a field for a count of things or bytes."""
    return number(low, high, default=default)


def one_of(*choices: object, default: Any = MISSING) -> Any:
    """Return a field that has one of a few values."""
    return field(default=default, metadata={"choices": choices})


def from_data(kind: type[T], data: Any, where: str = "") -> T:
    """Build a value of type `kind` from parsed YAML.

    Known kinds: dataclasses, str, int, float, bool, None, tuple[X, ...], dict[str, X], unions.

    :param where: the place in the file, for messages.
    :raises BundleError: a key is unknown or missing, or a value has another type or range.
    """
    if is_dataclass(kind):
        return _dataclass(kind, data, where)
    origin = get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(kind, data, where)
    if origin is tuple:
        _expect(isinstance(data, list), data, "a list", where)
        item = get_args(kind)[0]
        items = [from_data(item, value, f"{where}[{i}]") for i, value in enumerate(data)]
        return tuple(items)  # type: ignore[return-value]
    if origin is dict:
        _expect(isinstance(data, dict), data, "a mapping", where)
        item = get_args(kind)[1]
        for key in data:
            _check_text(key, f"{where}: the key")
        entries = {key: from_data(item, x, _join(where, key)) for key, x in data.items()}
        return entries  # type: ignore[return-value]
    return _scalar(kind, data, where)


def to_data(value: Any) -> Any:
    """Return what `from_data` was given: dicts, lists and plain values."""
    if is_dataclass(value):
        return {entry.name: to_data(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    return value


def _dataclass(kind: Any, data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), data, "a mapping", where)
    known = {entry.name: entry for entry in fields(kind)}
    for key in data:
        if key not in known:
            raise BundleError(
                f"unknown key {short(_join(where, key))}; known here: {', '.join(known)}"
            )
    hints = typing.get_type_hints(kind)
    values = {}
    for name, entry in known.items():
        place = _join(where, name)
        if name not in data:
            if entry.default is MISSING:
                raise BundleError(f"the key {place} is missing")
            continue
        values[name] = from_data(hints[name], data[name], place)
        _check_field(entry.metadata, values[name], place)
    return kind(**values)


def _union(kind: Any, data: Any, where: str) -> Any:
    # The unions of a manifest differ in their YAML kind, so that picks the member.
    for member in get_args(kind):
        origin = get_origin(member) or member
        wanted = {tuple: list, dict: dict, type(None): type(None)}.get(origin, origin)
        if is_dataclass(origin):
            wanted = dict
        if type(data) is wanted:
            return from_data(member, data, where)
    names = [_WORDS.get(get_origin(member) or member, "a mapping") for member in get_args(kind)]
    raise BundleError(f"{where} is {short(data)}, expected {' or '.join(names)}")


def _scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is float:
        number_given = isinstance(data, (int, float)) and not isinstance(data, bool)
        _expect(number_given, data, "a number", where)
        try:
            value = float(data)
        except OverflowError:
            value = math.inf
        _expect(math.isfinite(value), data, "a finite number", where)
        return value
    _expect(type(data) is kind, data, _WORDS.get(kind, str(kind)), where)
    if kind is str:
        _check_text(data, where)
    return data


def _check_text(text: str, where: str) -> None:
    """Refuse what would not be one line of a message or a table."""
    if not text.isprintable():
        raise BundleError(f"{where} is {short(text)}, which holds characters not to be printed")
    if len(text) > MAX_TEXT:
        raise BundleError(f"{where} has {len(text)} characters, expected up to {MAX_TEXT}")


def _check_field(metadata: Any, value: Any, where: str) -> None:
    if "choices" in metadata and value not in metadata["choices"]:
        choices = ", ".join(map(str, metadata["choices"]))
        raise BundleError(f"{where} is {short(value)}, expected one of: {choices}")
    if "range" in metadata:
        low, high = metadata["range"]
        for item in value if isinstance(value, tuple) else (value,):
            if item is not None and not low <= item <= high:
                raise BundleError(f"{where} is {short(item)}, expected {low} to {high}")


def _expect(condition: bool, data: Any, expected: str, where: str) -> None:
    if not condition:
        raise BundleError(f"{where or 'the file'} is {short(data)}, expected {expected}")


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else str(key)
