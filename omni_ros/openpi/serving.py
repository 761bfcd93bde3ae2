# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a server asks of a policy, and how a client's observation is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .errors import RequestError, brief

#: What of a request a policy may be able to take beside the observation.
TAKES = ("seed", "noise", "num_inference_steps", "stamp_ns")
#: Where clients put the pictures, the state and the sentence.
IMAGE_MAPS = ("images", "image", "video")
STATE_KEYS = ("state", "observation.state", "observation/state")
PROMPT_KEYS = ("prompt", "task", "language", "instruction")
_PREFIXES = ("", "observation.images.", "observation/", "observation.")


@dataclass(frozen=True)
class ServedRequest:
    """An observation as a policy takes it.

    :param images: by the policy's camera names, uint8 [height, width, 3] RGB; None for one that the
        client says is missing. :param state: f32 [state].
    :param seed, noise, steps: None if not given.
    """

    images: Mapping[str, np.ndarray | None]
    state: np.ndarray
    prompt: str
    seed: int | None = None
    noise: np.ndarray | None = None
    steps: int | None = None
    session: str = "default"
    stamp_ns: int = 0


@dataclass(frozen=True)
class ServedReply:
    """:param actions: [rows, columns], finite. :param extra: goes into replies that are maps."""

    actions: np.ndarray
    extra: Mapping[str, Any] = field(default_factory=dict)


class ServedPolicy(Protocol):
    """What is behind a server. `infer` is called by one thread at a time, never by the event loop.

    :ivar metadata: sent to each client first. :ivar cameras: names, in order.
    :ivar state_names: of the joints, in order; their number is the state's width.
    :ivar takes: which of TAKES it honours; another one in a request is refused.
    """

    metadata: Mapping[str, Any]
    cameras: Sequence[str]
    state_names: Sequence[str]
    takes: Sequence[str]

    def infer(self, request: ServedRequest) -> ServedReply:
        """:raises RequestError: the request does not fit; its text goes to the client."""

    def reset(self, session: str) -> None:
        """An episode begins anew."""


def read_request(value: Any, policy: ServedPolicy) -> ServedRequest:
    """Read an observation in any of the layouts that clients send.

    Unlike the reference server nothing is dropped silently: an unknown camera is refused, and so
    is a missing one that was not given as None.

    :raises RequestError: what came and what was expected.
    """
    if not isinstance(value, dict):
        raise RequestError(f"the observation is {brief(value)}; expected a map")
    entries = {key.decode("utf-8", "replace") if isinstance(key, bytes) else key: entry
               for key, entry in value.items()}  # fmt: skip
    sampling = entries.get("sampling_params")
    steps = sampling.get("num_inference_steps") if isinstance(sampling, dict) else None
    steps = entries.get("num_inference_steps", steps)
    session = entries.get("session_id", "default")
    noise = entries.get("noise")
    for name, given in (("seed", entries.get("seed")), ("noise", noise),
                        ("num_inference_steps", steps), ("stamp_ns", entries.get("stamp_ns"))):
        if given is not None and name not in policy.takes:
            raise RequestError(
                f"`{name}` is given, which this policy does not take: leave it out; it takes "
                f"{', '.join(policy.takes) or 'none of ' + ', '.join(TAKES)}"
            )
    return ServedRequest(
        images=_images(entries, policy.cameras),
        state=_state(entries, policy.state_names),
        prompt=_prompt(entries),
        seed=_count(entries.get("seed"), "seed", 0, 2**63 - 1),
        noise=None if noise is None else _noise(noise),
        steps=_count(steps, "num_inference_steps", 1, 1000),
        session=session[:128] if isinstance(session, str) else "default",
        stamp_ns=_count(entries.get("stamp_ns"), "stamp_ns", 0, 2**63 - 1) or 0,
    )


def _images(entries: Mapping[str, Any], cameras: Sequence[str]) -> dict[str, np.ndarray | None]:
    given: dict[str, Any] = {}
    for name in IMAGE_MAPS:
        if isinstance(entries.get(name), dict):
            given.update(entries[name])
    flat = {key: entry for key, entry in entries.items()
            if key not in IMAGE_MAPS and isinstance(entry, np.ndarray) and entry.ndim >= 3
            and key != "noise"}  # fmt: skip
    for camera in cameras:
        flat.update({p + camera: entries[p + camera] for p in _PREFIXES if p + camera in entries})
    given.update(flat)
    images: dict[str, np.ndarray | None] = {}
    for key, entry in given.items():
        key = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
        camera = next((c for c in cameras if key in [p + c for p in _PREFIXES]), None)
        if camera is None:
            raise RequestError(
                f"a picture of the camera {brief(key)}; the policy has {', '.join(cameras)}"
            )
        if camera in images:
            raise RequestError(f"two pictures of the camera {camera}; expected one")
        images[camera] = None if entry is None else _picture(entry, camera)
    missing = [camera for camera in cameras if camera not in images]
    if missing:
        raise RequestError(
            f"no picture of {', '.join(missing)}; expected {', '.join(cameras)} in `images`: give "
            "None (nil) for one that shall be masked"
        )
    return images


def _picture(value: Any, camera: str) -> np.ndarray:
    """Return uint8 [height, width, 3]: batches of one opened, CHW turned, floats 0 to 1 scaled."""
    if not isinstance(value, np.ndarray):
        raise RequestError(f"the picture of {camera} is {brief(value)}; expected an array")
    image = value
    while image.ndim > 3 and image.shape[0] == 1:
        image = image[0]
    if image.ndim == 3 and image.shape[2] != 3 and image.shape[0] == 3:
        image = image.transpose(1, 2, 0)
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape or max(image.shape) > 16384:
        raise RequestError(
            f"the picture of {camera} is {brief(value)}; expected [height, width, 3], RGB"
        )
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    if image.dtype.kind == "f":
        low, high = float(image.min()), float(image.max())
        if low >= 0.0 and high <= 1.0:  # False for NaN
            return np.ascontiguousarray(np.rint(image * 255.0).astype(np.uint8))
        raise RequestError(
            f"the picture of {camera} has floats from {low:g} to {high:g}; expected 0 to 1, or "
            "uint8"
        )
    raise RequestError(f"the picture of {camera} is {image.dtype}; expected uint8")


def _state(entries: Mapping[str, Any], names: Sequence[str]) -> np.ndarray:
    key = next((key for key in STATE_KEYS if key in entries), None)
    if key is None:
        raise RequestError(f"no `state`; expected the {len(names)} values of {', '.join(names)}")
    value = entries[key]
    if isinstance(value, dict):
        missing = [name for name in names if name not in value]
        if missing:
            raise RequestError(f"`{key}` has {brief(list(value))}; missing: {', '.join(missing)}")
        value = [np.asarray(value[name]).reshape(-1) for name in names]
        if any(part.size != 1 for part in value):
            raise RequestError(f"`{key}` has several values for one joint; expected one each")
        value = np.concatenate(value)
    try:
        state = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise RequestError(f"`{key}` is {brief(value)}; expected numbers") from error
    if state.size != len(names) or any(n != 1 for n in state.shape[:-1]):
        raise RequestError(
            f"`{key}` has the shape {list(state.shape)}; expected [{len(names)}]: "
            + ", ".join(names)
        )
    with np.errstate(over="ignore"):
        state = state.reshape(-1).astype(np.float32)  # what is beyond it is not finite
    if not np.isfinite(state).all():
        raise RequestError(f"`{key}` is not finite; expected a number for every joint")
    return state


def _prompt(entries: Mapping[str, Any]) -> str:
    key = next((key for key in PROMPT_KEYS if entries.get(key) is not None), None)
    value = entries.get(key) if key else None
    for _ in range(4):
        if isinstance(value, dict) and len(value) == 1:
            value = next(iter(value.values()))
        elif isinstance(value, (list, np.ndarray)) and np.size(value) == 1:
            value = value.item() if isinstance(value, np.ndarray) else value[0]
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        given = "nothing" if key is None else brief(value)
        raise RequestError(f"the prompt is {given}; expected one sentence in `prompt`")
    if len(value) > 4096:
        raise RequestError(f"the prompt has {len(value)} characters; expected at most 4096")
    return str(value)


def _noise(value: Any) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            noise = np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise RequestError(f"`noise` is {brief(value)}; expected numbers") from error
    return noise[0] if noise.ndim == 3 and noise.shape[0] == 1 else noise


def _count(value: Any, name: str, low: int, high: int) -> int | None:
    if value is None:
        return None
    if (
        isinstance(value, (np.integer, np.ndarray))
        and np.size(value) == 1
        and value.dtype.kind in "iu"
    ):
        value = value.item()
    if type(value) is not int or not low <= value <= high:
        raise RequestError(f"`{name}` is {brief(value)}; expected an integer from {low} to {high}")
    return value
