# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a remote policy is shown of the robot, under which names, and what its columns mean.

One YAML a remote policy; see config/openpi/. Read and checked here, applied in `observe`, held
against the server's metadata in `agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Optional, Union

from ..bundles import strict_yaml
from ..bundles.schema import from_data
from ..robot.errors import shown
from .arbitration import ReplanRule, replan_rule
from .errors import SettingsError
from .asking import REQUEST_ID, Expectation
from .settings import RemoteSettings, remote_settings

#: How a picture lies in its array: B and T are batch and time, of one each.
PICTURE_LAYOUTS = ("HWC", "CHW", "BTHWC")
STATE_LAYOUTS = ("D", "BD", "BTD")
CONTROL_MODES = ("position", "position_offset", "velocity")
#: What metadata call the control modes.
ACTION_SPACES = {
    "joint_position": "position", "joint_positions": "position", "joint_velocity": "velocity",
    "joint_delta": "position_offset", "delta_joint_position": "position_offset",
}  # fmt: skip

#: Values of a state, zeros included.
MOST_VALUES = 4096
#: What servers take for something else than a part of the observation.
RESERVED = ("endpoint", REQUEST_ID)

Key = Union[str, tuple[str, ...]]


def _choice(default: str, choices: tuple[str, ...]) -> Any:
    return field(default=default, metadata={"choices": choices})


@dataclass(frozen=True)
class CameraField:
    """A picture. :param camera: the robot's. :param key: where it goes; a list for maps in maps.

    :param size: [height, width] to resize to; None sends what the camera gives.
    :param optional: leave it out when there is no picture; else nothing is asked without it.
    """

    camera: str
    key: Key
    size: Optional[tuple[int, ...]] = None
    layout: str = _choice("HWC", PICTURE_LAYOUTS)
    optional: bool = False


@dataclass(frozen=True)
class Ends:
    """The same two poses in each unit, for `normalised`."""

    policy: tuple[float, ...]
    joint: tuple[float, ...]


@dataclass(frozen=True)
class JointField:
    """A joint by the robot's name. :param unit: that the remote policy speaks; without it, what the
    robot YAML says of its own policy."""

    name: str
    unit: Optional[str] = None
    normalised: Optional[Ends] = None


Joint = Union[str, JointField]


@dataclass(frozen=True)
class StateField:
    """Joint positions, f32, in this order. :param pad_to: zeros behind them."""

    key: Key
    joints: tuple[Joint, ...]
    layout: str = _choice("D", STATE_LAYOUTS)
    pad_to: Optional[int] = None


@dataclass(frozen=True)
class PromptField:
    """The sentence. :param nested: sent as [[text]]."""

    key: Key = "prompt"
    nested: bool = False


@dataclass(frozen=True)
class ObservationFields:
    """:param constants: sent as they are, say `session_id` or `embodiment`; by top-level key."""

    cameras: tuple[CameraField, ...]
    state: tuple[StateField, ...]
    prompt: PromptField = PromptField()
    constants: Optional[dict[str, Union[str, int, float, bool]]] = None


@dataclass(frozen=True)
class ActionFields:
    """What comes back.

    :param columns: the joint of each column, in order; null for one that is not used. Further
        columns are passed over (pi0 pads to 32).
    :param keys: the named parts to put side by side first. :param rate_hz: rows a second.
    :param horizon: rows of a chunk, if it is known. :param rows: how many of them to use.
    """

    columns: tuple[Union[str, JointField, None], ...]
    rate_hz: float = field(metadata={"range": (0.1, 1000.0)})
    keys: tuple[str, ...] = ()
    control_mode: str = _choice("position", CONTROL_MODES)
    horizon: Optional[int] = None
    rows: Optional[int] = None


@dataclass(frozen=True)
class _File:
    """The file as a whole, but for `remote` and `replan`."""

    observation: ObservationFields
    actions: ActionFields


@dataclass(frozen=True)
class RemoteMapping:
    """A mapping file. :param remote: None where the file leaves it out, to be given otherwise."""

    observation: ObservationFields
    actions: ActionFields
    remote: RemoteSettings | None = None
    replan: ReplanRule = ReplanRule()

    @property
    def expectation(self) -> Expectation:
        """What replies have to have."""
        return Expectation(self.actions.keys, self.actions.horizon, len(self.actions.columns))


def load_mapping(path: str | Path) -> RemoteMapping:
    """Read a mapping file. :raises SettingsError: with the file and the key that is wrong."""
    path = Path(path)
    try:
        return mapping_from_data(strict_yaml.load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from error


def mapping_from_data(data: Any) -> RemoteMapping:
    """Build a mapping from parsed YAML. :raises SettingsError: the key that is wrong."""
    if not isinstance(data, Mapping):
        raise SettingsError("the mapping file is no mapping; expected observation, actions, remote")
    rest = {key: value for key, value in data.items() if key not in ("remote", "replan")}
    for key in rest:
        if key not in (sections := [entry.name for entry in fields(_File)]):
            raise SettingsError(
                f"unknown section {shown(key)}; known are {', '.join(sections)}, remote, replan")
    try:
        read = from_data(_File, rest)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    remote = remote_settings(data["remote"]) if data.get("remote") is not None else None
    rule = replan_rule(data.get("replan"))
    mapping = RemoteMapping(read.observation, read.actions, remote, rule)
    check_mapping(mapping)
    return mapping


def check_mapping(mapping: RemoteMapping) -> None:
    """:raises SettingsError: two things under one key, or sizes that are none."""
    seen: dict[tuple[str, ...], str] = {}

    def claim(key: Key, what: str) -> None:
        path = key_path(key)
        if not path or not all(path):
            raise SettingsError(f"{what}: the key is empty; write the name the remote policy knows")
        if path[0] in RESERVED:
            raise SettingsError(f"{what} would be sent as {path[0]}, which servers take for a request "
                                "of another kind or for its number; write another key")  # fmt: skip
        for other, owner in seen.items():
            short = min(len(other), len(path))
            if other[:short] == path[:short]:
                raise SettingsError(f"{what} and {owner} would both be sent as {'/'.join(path)}")
        seen[path] = what

    observation = mapping.observation
    if all(entry.optional for entry in observation.cameras):
        raise SettingsError(
            f"observation.cameras has {len(observation.cameras)}, none of which has to be there; "
            "expected at least one that is not optional: by its pictures it is known when to ask")
    for entry in observation.cameras:
        claim(entry.key, f"camera {entry.camera}")
        if entry.size is not None and (
            len(entry.size) != 2 or not all(8 <= n <= 4096 for n in entry.size)
        ):
            raise SettingsError(
                f"camera {entry.camera}: size is {list(entry.size)}; expected [height, width], 8 "
                "to 4096"
            )
    for part in observation.state:
        claim(part.key, f"state {'/'.join(key_path(part.key))}")
        if not part.joints or (part.pad_to is not None and part.pad_to < len(part.joints)):
            raise SettingsError(
                f"state {'/'.join(key_path(part.key))}: {len(part.joints)} joints, pad_to "
                f"{part.pad_to}; expected at least one, and no more than pad_to"
            )
        if (part.pad_to or 0) > MOST_VALUES:
            raise SettingsError(f"state {'/'.join(key_path(part.key))}: pad_to is {part.pad_to}; "
                                f"expected at most {MOST_VALUES}")  # fmt: skip
    claim(observation.prompt.key, "the prompt")
    for key in observation.constants or ():
        claim(key, f"the constant {key}")
    actions = mapping.actions
    for name, value in (("horizon", actions.horizon), ("rows", actions.rows)):
        if value is not None and not 1 <= value <= 4096:
            raise SettingsError(f"actions.{name} is {value}; expected 1 to 4096")
    if len(set(actions.keys)) != len(actions.keys):
        raise SettingsError(f"actions.keys has one twice: {', '.join(actions.keys)}")


def key_path(key: Key) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)
