# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle against a remote policy: the same observations to both, differences per joint and row.

Where the remote takes noise, both get the same and every figure is a fault or a rounding. Where it
draws its own, two good policies differ too: then means over several draws are compared, in units of
what the draws themselves vary by, and nothing is called passed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..openpi.client import RemotePolicy
from ..openpi.mapping import RemoteMapping
from ..openpi.observe import RobotView
from ..openpi.pictures import resize_with_pad
from ..openpi.replies import noise_shape, texts
from ..policy.bundle_parts import normaliser
from ..policy.noise import noise as draw_noise
from ..policy.observation import Observation
from ..policy.smolvla import SmolVLAPolicy
from .rows import FLOAT32
from .policy import INT8_ACTIONS

#: Chunks of each observation where the remote draws its own noise.
DRAWS = 8
SAME, OWN = "same for both", "drawn by the remote"


@dataclass(frozen=True)
class _BundleJoint:
    """A bundle's joint as a robot's, so that mappings apply: its units stand for the topics'."""

    name: str
    unit: str
    policy_unit: str
    policy_range: tuple[float, float] = (0.0, 1.0)
    joint_range: tuple[float, float] = (0.0, 1.0)


class Pairing:
    """How an observation of the bundle is shown to the remote, and what comes back is read."""

    def __init__(self, policy: SmolVLAPolicy, mapping: RemoteMapping | None) -> None:
        """
        :param mapping: None sends the bundle's own names, as `omni serve` takes them.
        :raises SettingsError: it names what the bundle does not have.
        """
        from ..openpi.served import joint_names, joint_units

        manifest = policy.manifest
        self.names = joint_names(manifest.joints, manifest.dimensions.action)
        self.units = joint_units(manifest.joints, manifest.dimensions.action)
        self._sizes = {entry.camera: entry.size for entry in
                       (mapping.observation.cameras if mapping else ()) if entry.size}  # fmt: skip
        self._view = None
        if mapping is not None:
            joints = [
                _BundleJoint(name, "m" if unit == "m" else "rad", "rad" if unit == "raw" else unit)
                for name, unit in zip(self.names, self.units, strict=True)
            ]
            self._view = RobotView(mapping, joints, policy.cameras)
            self._joints = joints

    def shown(self, observation: Observation) -> Observation:
        """Return the observation with the pictures that the remote sees: both get the same."""
        images = {
            name: image if image is None or name not in self._sizes else resize_with_pad(
                image, *self._sizes[name])
            for name, image in observation.images.items()
        }
        return Observation(images, observation.state, observation.stamp_ns)

    def message(self, observation: Observation, prompt: str) -> dict[str, Any]:
        if self._view is None:
            return {
                "images": dict(observation.images),
                "state": observation.state,
                "prompt": prompt,
            }
        scale, offset = self._scales()
        return self._view.observation(
            observation.images, observation.state * scale + offset, prompt
        )

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return remote rows f64 [rows, joints] in the bundle's units and order."""
        if self._view is None:
            if values.shape[1] < len(self.names):
                raise ValueError(
                    f"the remote answers with {values.shape[1]} columns, the bundle moves "
                    f"{len(self.names)} joints; a mapping can say which they are"
                )
            return values[:, :len(self.names)]
        scale, offset = self._scales()
        return (self._view.rows(values) - offset) / scale

    def _scales(self) -> tuple[np.ndarray, np.ndarray]:
        from ..robot.units import linear_map

        maps = [linear_map(j.policy_unit, j.policy_range, j.joint_range) for j in self._joints]
        return np.array([scale for scale, _ in maps]), np.array([offset for _, offset in maps])


def synthetic(policy: SmolVLAPolicy, count: int, seed: int) -> list[Observation]:
    """Return made-up observations: smooth pictures, states as spread as the training data's."""
    rng, statistics = np.random.default_rng(seed), normaliser(policy.bundle, "state")
    made = []
    for index in range(count):
        images = {}
        for camera in policy.manifest.cameras:
            coarse = rng.integers(0, 256, (6, 8, 3), np.uint8).astype(np.float64)
            rows = np.linspace(0, 5, camera.height), np.linspace(0, 7, camera.width)
            top, left = rows[0].astype(int).clip(0, 4), rows[1].astype(int).clip(0, 6)
            down, right = (rows[0] - top)[:, None, None], (rows[1] - left)[None, :, None]
            corner = [coarse[np.ix_(top + i, left + j)] for i in (0, 1) for j in (0, 1)]
            upper = corner[0] * (1 - right) + corner[1] * right
            lower = corner[2] * (1 - right) + corner[3] * right
            images[camera.name] = np.rint(upper * (1 - down) + lower * down).astype(np.uint8)
        size = policy.manifest.dimensions.state
        state = statistics.inverse(rng.normal(0, 0.7, size).astype(np.float32))
        made.append(Observation(images, state, stamp_ns=index))
    return made


def recorded(path: Path, policy: SmolVLAPolicy) -> tuple[list[Observation], list[str]]:
    """Read observations: an .npz with `images/CAMERA` [n, h, w, 3], `state` [n, joints] and, if
    there is, `prompt` (one, or n). :raises ValueError: it holds something else."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as .npz ({error})") from error
    wanted = ["state", *(f"images/{name}" for name in policy.cameras)]
    missing = [key for key in wanted if key not in arrays]
    if missing or len({len(arrays[key]) for key in wanted if key in arrays}) != 1:
        fact = f"lacks {', '.join(missing)}" if missing else "has entries of different lengths"
        raise ValueError(f"{path}: {fact}; expected {', '.join(wanted)}, each [n, ...]")
    count = len(arrays["state"])
    prompts = np.atleast_1d(arrays.get("prompt", np.array([""])))
    prompts = [str(prompts[i if len(prompts) == count else 0]) for i in range(count)]
    made = [Observation({name: arrays[f"images/{name}"][i] for name in policy.cameras},
                        arrays["state"][i], stamp_ns=i) for i in range(count)]  # fmt: skip
    return made, prompts


def takes_noise(remote: RemotePolicy, message: Mapping[str, Any], shape: tuple[int, int], seed: int,
                timeout_s: float) -> bool:  # fmt: skip
    """Find out whether the remote uses the noise it is sent.

    A server that says so is believed; another is asked with one noise twice and then with another.
    """
    metadata = remote.status().metadata or {}
    if "noise" in texts(metadata.get("takes")):
        return metadata.get("noise_shape") is None or noise_shape(metadata) == tuple(shape)
    chunks = []
    for stamp in (0, 0, 1):
        sent = {**message, "noise": draw_noise(shape, seed=seed, stamp_ns=stamp)}
        chunks.append(remote.ask(sent, timeout_s).actions.values)
    return np.array_equal(chunks[0], chunks[1]) and not np.array_equal(chunks[0], chunks[2])


def compare_remote(
    policy: SmolVLAPolicy,
    remote: RemotePolicy,
    pairing: Pairing,
    observations: Sequence[Observation],
    prompts: Sequence[str],
    *,
    seed: int = 0,
    timeout_s: float = 30.0,
    tolerance: float | None = None,
) -> dict[str, Any]:
    """Ask both; return the document.

    :param tolerance: of the largest difference, in the bundle's units; None for what rounding
        explains, by the bundle's recipe.
    :raises LinkError: the remote gave no good reply. :raises ValueError: shapes that do not pair.
    """
    shown = [pairing.shown(observation) for observation in observations]
    messages = [pairing.message(o, p) for o, p in zip(shown, prompts, strict=True)]
    same = takes_noise(remote, messages[0], policy.head.shape, seed, timeout_s)
    draws = 1 if same else DRAWS
    ours, theirs, seconds = [], [], ([], [])
    for index, (observation, message, prompt) in enumerate(
        zip(shown, messages, prompts, strict=True)
    ):
        pair: tuple[list, list] = ([], [])
        for draw in range(draws):
            noise = draw_noise(policy.head.shape, seed=seed + draw, stamp_ns=index)
            result = policy.infer(observation, prompt, noise=noise)
            extra = {"noise": noise} if same else {"seed": seed + draw}
            outcome = remote.ask({**message, **extra}, timeout_s)
            pair[0].append(result.actions.astype(np.float64))
            pair[1].append(pairing.rows(outcome.actions.values))
            seconds[0].append(result.timings.total)
            seconds[1].append(outcome.latency_s)
        ours.append(pair[0])
        theirs.append(pair[1])
    rows = min(ours[0][0].shape[0], theirs[0][0].shape[0])
    local, far = (np.array([[chunk[:rows] for chunk in draws] for draws in side])
                  for side in (ours, theirs))  # fmt: skip
    gap = np.abs(local.mean(axis=1) - far.mean(axis=1))  # [observations, rows, joints]
    joints = [_joint(pairing, column, local, far, gap, same, policy, tolerance)
              for column in range(gap.shape[2])]  # fmt: skip
    return {
        "bundle": policy.manifest.name,
        "remote": remote.status().url,
        "dialect": remote.status().dialect.value,
        "noise": SAME if same else OWN,
        "draws": draws,
        "observations": len(observations),
        "rows": rows,
        "joints": joints,
        "by_row": gap.max(axis=0).tolist(),
        "seconds": {
            "local_p50": float(np.median(seconds[0])),
            "remote_p50": float(np.median(seconds[1])),
        },
        "metadata": _plain(remote.status().metadata),
        "passed": all(joint["passed"] for joint in joints) if same else None,
    }


def _joint(
    pairing: Pairing, column: int, local: np.ndarray, far: np.ndarray, gap: np.ndarray, same: bool,
    policy: SmolVLAPolicy, tolerance: float | None,
) -> dict[str, Any]:
    values = gap[..., column]
    observation, row = np.unravel_index(int(values.argmax()), values.shape)
    limit = tolerance
    if limit is None:
        span = float(np.abs(local[..., column] - local[..., column].mean()).max())
        fp32 = {entry.recipe for entry in policy.manifest.programs.values()} == {"fp32"}
        # Numbers in the thousands are no nearer to each other than 1e-4 in float32.
        size = max(1.0, float(np.abs(local[..., column]).max()) / 100.0)
        limit = FLOAT32 * size if fp32 else max(INT8_ACTIONS * span, FLOAT32 * size)
    spread = None
    if not same:
        variance = local[..., column].var(axis=1, ddof=1) + far[..., column].var(axis=1, ddof=1)
        error = np.sqrt(variance / local.shape[1])
        ratio = values / np.maximum(error, 1e-12)
        spread = float(np.sqrt(np.mean(np.minimum(ratio, 1e6) ** 2)))
    largest = float(values.max())
    return {
        "name": pairing.names[column], "unit": pairing.units[column], "largest": largest,
        "mean": float(values.mean()), "observation": int(observation), "row": int(row),
        "tolerance": limit if same else None, "spread": spread,
        "passed": bool(largest <= limit) if same else None,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Return metadata as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)[:80]
