# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a reply to rows that may be offered to a player, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .dialect import Reply
from .errors import ReplyError, brief

#: Arrays that replies carry beside actions; the reference policy returns the state it was given.
NOT_ACTIONS = ("state", "action_mask", "noise")
#: Names that one array of actions goes by.
USUAL = ("actions", "action", "")
#: Limits that hold whatever the metadata says.
MAX_ROWS, MAX_COLUMNS = 4096, 1024


@dataclass(frozen=True)
class Actions:
    """What a remote policy asks for, as it said it: its own units and columns.

    :param values: f64 [rows, columns], finite. :param columns: width of each named part, in order.
    :param valid_rows: how many of the rows the server vouches for.
    """

    values: np.ndarray
    columns: Mapping[str, int]
    valid_rows: int
    server_timing: Mapping[str, float] = field(default_factory=dict)


def read_actions(
    reply: Reply,
    metadata: Mapping[str, Any],
    *,
    keys: Sequence[str] = (),
    horizon: int | None = None,
    width: int | None = None,
) -> Actions:
    """Check a reply against the metadata and what is wanted; return its rows.

    :param keys: the named parts to put side by side, in this order; without them one array of the
        usual name, or the parts that the metadata's `action_keys` lists.
    :param horizon, width: rows and columns that are wanted; None for any.
    :raises ReplyError: with the counter it belongs to.
    """
    for key, label in (("action_space", "action space"), ("embodiment_tag", "embodiment")):
        said, declared = reply.extra.get(key), metadata.get(key)
        if isinstance(said, str) and isinstance(declared, str) and said != declared:
            raise ReplyError("names", f"the reply's {label} is {brief(said)}; the metadata said "
                             f"{brief(declared)}")  # fmt: skip
    parts = {key: _rows(key, reply.named[key]) for key in _pick(reply, metadata, keys)}
    rows = {len(part) for part in parts.values()}
    if len(rows) != 1:
        raise ReplyError("shape", "parts of different lengths: " + ", ".join(
            f"{brief(key)} has {len(part)} rows" for key, part in parts.items()))  # fmt: skip
    values = np.concatenate(list(parts.values()), axis=1)
    _check_sizes(values, metadata, horizon, width, single=len(parts) == 1)
    if not np.isfinite(values).all():
        row, column = map(int, np.argwhere(~np.isfinite(values))[0])
        raise ReplyError("non_finite", f"row {row}, column {column} is not finite")
    return Actions(
        values, {key: part.shape[1] for key, part in parts.items()},
        _valid_rows(reply.extra, len(values)), _timing(reply.extra),
    )


def _pick(reply: Reply, metadata: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    named = [key for key in reply.named if key not in NOT_ACTIONS]
    declared = _declared_keys(metadata)
    if not keys and declared and named != [""]:
        if sorted(named) != sorted(declared):
            raise ReplyError("names", f"the reply has {_list(named)}; the metadata's action_keys "
                             f"are {_list(declared)}")  # fmt: skip
        return declared
    if not keys:
        found = [key for key in USUAL if key in reply.named]
        if found or len(named) == 1:
            return found[:1] or named
        raise ReplyError("names", f"the reply has {_list(named)}; expected 'actions', or write the "
                         "parts and their order into actions.keys of the mapping")  # fmt: skip
    # One bare array is what a server sends that has no name for it.
    if named == [""] and len(keys) == 1:
        return [""]
    missing = [key for key in keys if key not in reply.named]
    if missing:
        raise ReplyError("names", f"the reply has {_list(named)}; expected {_list(keys)}: "
                         f"{_list(missing)} missing")  # fmt: skip
    return list(keys)


def _declared_keys(metadata: Mapping[str, Any]) -> list[str]:
    keys = metadata.get("action_keys")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        return []
    if len(set(keys)) != len(keys):
        raise ReplyError("names", f"the metadata's action_keys have one twice: {_list(keys)}")
    return keys


def _rows(key: str, array: np.ndarray) -> np.ndarray:
    """Return an array as f64 [rows, columns]; a batch of one and one row are taken as such."""
    shape = list(array.shape)
    if array.dtype.kind not in "fiu":
        raise ReplyError("malformed", f"actions {brief(key)} are {array.dtype}; expected numbers")
    if array.ndim == 3 and shape[0] == 1:
        array = array[0]
    elif array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or 0 in array.shape:
        raise ReplyError("shape", f"actions {brief(key)} have the shape {shape}; expected [rows, "
                         "columns], or a batch of one of them, with something in it")  # fmt: skip
    if array.shape[0] > MAX_ROWS or array.shape[1] > MAX_COLUMNS:
        raise ReplyError("shape", f"actions {brief(key)} have the shape {shape}; expected at most "
                         f"{MAX_ROWS} rows of {MAX_COLUMNS}")  # fmt: skip
    return array.astype(np.float64)


def _check_sizes(
    values: np.ndarray, metadata: Mapping[str, Any], horizon: int | None, width: int | None, *,
    single: bool,
) -> None:
    rows, columns = values.shape
    said = whole(metadata.get("action_horizon"))
    for expected, by in ((horizon, "the mapping"), (said, "the metadata")):
        if expected is not None and rows != expected:
            raise ReplyError("shape", f"{rows} rows; {by} says {expected}")
    most = whole(metadata.get("max_action_horizon"))
    if most is not None and rows > most:
        raise ReplyError("shape", f"{rows} rows; the metadata's max_action_horizon is {most}")
    # One figure for several named parts would not say of which.
    said = whole(metadata.get("action_dim")) if single else None
    if said is not None and columns != said:
        raise ReplyError("shape", f"{columns} columns; the metadata's action_dim is {said}")
    if width is not None and columns < width:
        raise ReplyError("shape", f"{columns} columns; the mapping names {width}")


def whole(value: Any) -> int | None:
    """Return a count of the metadata, None if it is not one: booleans and 50.0 are none."""
    return value if type(value) is int and value > 0 else None


def texts(value: Any) -> tuple[str, ...]:
    """Return the words of a list in the metadata, whatever else is in it."""
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(entry for entry in value[:256] if isinstance(entry, str))


def noise_shape(metadata: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the shape of the noise that a server takes, [rows, columns]; None if it says of none
    that a policy could have."""
    shape = metadata.get("noise_shape")
    if not isinstance(shape, (list, tuple)) or len(shape) != 2 or not all(map(whole, shape)):
        return None
    return tuple(shape) if shape[0] <= MAX_ROWS and shape[1] <= MAX_COLUMNS else None


def _valid_rows(extra: Mapping[str, Any], rows: int) -> int:
    valid = extra.get("valid_steps")
    valid = valid.item() if isinstance(valid, np.integer) else valid
    if valid is None:
        return rows
    if type(valid) is not int or not 0 <= valid <= rows:
        raise ReplyError("shape", f"valid_steps is {brief(valid)}; expected 0 to {rows}")
    return valid


def _timing(extra: Mapping[str, Any]) -> dict[str, float]:
    timing = extra.get("server_timing")
    if not isinstance(timing, dict):
        return {}
    return {
        str(key)[:64]: float(value) for key, value in list(timing.items())[:32]
        if isinstance(value, (int, float)) and abs(value) < 1e12
    }


def _list(names: Sequence[str]) -> str:
    return ", ".join(brief(name, 40) for name in names[:12]) or "nothing"
