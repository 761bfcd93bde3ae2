# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Does a mapping fit what the server says about itself?

Metadata are free-form: whatever a server does not say, or says in another form, is no objection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import brief
from .mapping import ACTION_SPACES, JointField, RemoteMapping, key_path
from .replies import whole


def objections(mapping: RemoteMapping, metadata: Mapping[str, Any]) -> list[str]:
    """Return what does not fit, each with both sides and what to change; empty if all does."""
    return [*_pictures(mapping, metadata), *_actions(mapping, metadata), *_names(mapping, metadata)]


def objection(mapping: RemoteMapping, metadata: Mapping[str, Any]) -> str | None:
    """Return all of them as one text, None if there is none: for `client.RemotePolicy`."""
    found = objections(mapping, metadata)
    return "; ".join(found) if found else None


def _pictures(mapping: RemoteMapping, metadata: Mapping[str, Any]) -> list[str]:
    found, cameras = [], mapping.observation.cameras
    wanted = metadata.get("image_resolution")
    if isinstance(wanted, list) and len(wanted) == 2 and all(map(whole, wanted)):
        for entry in cameras:
            if entry.size is None or list(entry.size) != wanted:
                given = "not resized" if entry.size is None else f"{list(entry.size)}"
                found.append(f"camera {entry.camera} is sent {given}; the server says image_resolution"
                             f" {wanted} (height, width): set its size to that")  # fmt: skip
    most = whole(metadata.get("max_cameras"))
    if most is not None and len(cameras) > most:
        found.append(f"{len(cameras)} cameras are sent; the server takes {most} (max_cameras)")
    external = metadata.get("n_external_cameras")
    least = external if type(external) is int and 0 <= external < 64 else 0
    wrist = metadata.get("needs_wrist_camera") is True
    if len(cameras) < least + wrist:
        found.append(f"{len(cameras)} cameras are sent; the server wants {least} external ones"
                     f"{' and one at the wrist' if wrist else ''}")  # fmt: skip
    if metadata.get("needs_stereo_camera") is True:
        found.append("the server wants a stereo camera, which cannot be sent")
    return found


def _actions(mapping: RemoteMapping, metadata: Mapping[str, Any]) -> list[str]:
    found, actions = [], mapping.actions
    horizon, width = whole(metadata.get("action_horizon")), whole(metadata.get("action_dim"))
    if horizon is not None and actions.horizon is not None and horizon != actions.horizon:
        found.append(
            f"actions.horizon is {actions.horizon}; the server says action_horizon {horizon}"
        )
    keys = metadata.get("action_keys")
    parts = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    if width is not None and len(actions.columns) > width and not (parts and len(keys) > 1):
        found.append(
            f"actions.columns names {len(actions.columns)}; the server says action_dim {width}"
        )
    if parts and actions.keys and not set(actions.keys) <= set(keys):
        found.append(f"actions.keys are {', '.join(actions.keys)}; the server says action_keys "
                     f"{', '.join(brief(key, 40) for key in keys[:12])}")  # fmt: skip
    space = metadata.get("action_space")
    if isinstance(space, str):
        means = ACTION_SPACES.get(space)
        if means is None and any(
            word in space for word in ("cartesian", "eef", "ee_", "end_effector")
        ):
            found.append(f"the server's action_space is {brief(space)}; only joints can be played")
        elif means is not None and means != actions.control_mode:
            found.append(f"actions.control_mode is {actions.control_mode}; the server says "
                         f"action_space {brief(space)}, which is {means}")  # fmt: skip
    rate = metadata.get("action_rate_hz")
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate != actions.rate_hz:
        found.append(
            f"actions.rate_hz is {actions.rate_hz:g}; the server says action_rate_hz {rate:g}"
        )
    return found


def _names(mapping: RemoteMapping, metadata: Mapping[str, Any]) -> list[str]:
    """Hold names against servers that state them, as `omni serve` does."""
    found, fields = [], mapping.observation
    cameras = _texts(metadata.get("cameras"))
    if cameras:
        sent = [key_path(entry.key)[-1] for entry in fields.cameras]
        bare = [
            name.removeprefix("observation.images.").removeprefix("observation/") for name in sent
        ]
        for name in bare:
            if name not in cameras:
                found.append(
                    f"a camera is sent as {brief(name)}; the server has {_listed(cameras)}"
                )
        missing = [name for name in cameras if name not in bare]
        if missing:
            found.append(f"nothing is sent for the server's cameras {_listed(missing)}")
    joints = _texts(metadata.get("state_names"))
    width = sum(part.pad_to or len(part.joints) for part in fields.state)
    if joints and len(joints) != width:
        found.append(
            f"{width} joint values are sent; the server takes {len(joints)}: {_listed(joints)}"
        )
    units = _texts(metadata.get("action_units"))
    for index, (column, unit) in enumerate(zip(mapping.actions.columns, units)):
        given = column.unit if isinstance(column, JointField) else None
        if given is not None and unit != "raw" and given != unit:
            found.append(
                f"actions.columns[{index}] is {column.name} in {given}; the server says {_listed([unit])}"
            )
    return found


def _texts(value: Any) -> list[str]:
    good = isinstance(value, list) and len(value) <= 256 and all(isinstance(v, str) for v in value)
    return value if good else []


def _listed(names: list[str]) -> str:
    """Show names of the other side: some, short, and nothing that a terminal would obey."""
    shown = ["".join(c if c.isprintable() else " " for c in name[:40]) for name in names[:12]]
    return ", ".join([*shown, f"and {len(names) - 12} more"] if len(names) > 12 else shown)
