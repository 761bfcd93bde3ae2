# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle as a server's policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..policy.observation import Observation
from ..policy.steps import HeadWithSteps
from .errors import RequestError
from .serving import TAKES, ServedReply, ServedRequest

if TYPE_CHECKING:
    from ..policy.flow_policy import FlowPolicy


class ServedBundle:
    """A bundle's policy behind `server.PolicyServer`; for one thread at a time."""

    takes = TAKES

    def __init__(self, policy: FlowPolicy) -> None:
        """:param policy: opened; the caller closes it."""
        self._policy = policy
        self._own_head = policy.head
        manifest = policy.manifest
        self.cameras = policy.cameras
        self.state_names = joint_names(manifest.state_joints, manifest.dimensions.state)
        self.metadata: Mapping[str, Any] = bundle_metadata(policy)

    def infer(self, request: ServedRequest) -> ServedReply:
        """:raises RequestError: the policy does not take it; the text says both sides."""
        policy = self._policy
        steps = self._own_head.steps if request.steps is None else request.steps
        own = steps == self._own_head.steps
        try:
            policy.head = self._own_head if own else HeadWithSteps(
                self._own_head, policy.manifest, steps)
            result = policy.infer(
                Observation(request.images, request.state, request.stamp_ns), request.prompt,
                seed=None if request.noise is not None else request.seed, noise=request.noise,
            )
        except (ValueError, TypeError) as error:
            raise RequestError(str(error)) from error
        finally:
            policy.head = self._own_head
        timings = result.timings
        return ServedReply(result.actions, {
            "seed": result.seed,
            "masked_cameras": list(result.masked_cameras),
            "prompt_truncated": result.prompt_truncated,
            "policy_timing": {
                "preprocess_ms": 1e3 * timings.preprocess,
                "vision_encoder_ms": 1e3 * sum(timings.vision_encoder),
                "fusion_backbone_ms": 1e3 * timings.fusion_backbone,
                "action_head_ms": 1e3 * timings.action_head,
                "num_inference_steps": steps,
            },
        })  # fmt: skip

    def reset(self, session: str) -> None:
        """Nothing is kept from one request to the next."""


def bundle_metadata(policy: FlowPolicy) -> dict[str, Any]:
    """Return what a server of the bundle sends first: vLLM-Omni's keys, and names and units."""
    manifest = policy.manifest
    sizes = manifest.dimensions
    frames = {(camera.height, camera.width) for camera in manifest.cameras}
    wrist = [camera.name for camera in manifest.cameras if "wrist" in camera.name]
    metadata: dict[str, Any] = {
        "policy": manifest.name,
        "family": manifest.family,
        "bundle_sha256": hashlib.sha256(
            (policy.bundle.root / "bundle.yaml").read_bytes()
        ).hexdigest(),
        "n_external_cameras": len(manifest.cameras) - len(wrist),
        "needs_wrist_camera": bool(wrist),
        "needs_stereo_camera": False,
        "needs_session_id": False,
        "max_cameras": len(manifest.cameras),
        "action_space": "joint_position",
        "action_horizon": sizes.chunk,
        "action_dim": sizes.action,
        "cameras": [camera.name for camera in manifest.cameras],
        "camera_resolutions": [[camera.height, camera.width] for camera in manifest.cameras],
        "state_names": list(joint_names(manifest.state_joints, sizes.state)),
        "state_units": joint_units(manifest.state_joints, sizes.state),
        "action_names": list(joint_names(manifest.joints, sizes.action)),
        "action_units": joint_units(manifest.joints, sizes.action),
        "noise_shape": [sizes.chunk, sizes.max_action],
        "num_inference_steps": manifest.flow.steps,
        "takes": list(TAKES),
    }
    if len(frames) == 1:
        metadata["image_resolution"] = list(frames.pop())
    return metadata


def joint_names(joints: Any, width: int) -> tuple[str, ...]:
    """Return the names of a bundle's joints; made-up ones for a raw bundle, which has none."""
    if isinstance(joints, str):
        return tuple(f"joint_{index}" for index in range(width))
    return tuple(joint.name for joint in joints)


def joint_units(joints: Any, width: int) -> list[str]:
    """Return the units of a bundle's joints; "raw" for a raw bundle."""
    return ["raw"] * width if isinstance(joints, str) else [joint.unit for joint in joints]
