# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Running a bundle on a recorded observation, as its three nodes did, and looking on if asked to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles import Bundle, manifest_hash
from omni_ros.policy.bundle_parts import normaliser
from omni_ros.policy.noise import fill_noise
from omni_ros.policy.observation import check_leftover, check_state
from omni_ros.policy.rtc import RtcConfig
from omni_ros.policy.smolvla import SmolVLAPolicy
from omni_ros.policy.steps import MOST_STEPS, HeadWithSteps
from omni_ros.replay.fingerprints import (
    IMAGE_TOKENS, PICTURE, PIXELS, PREFIX, STATE, STEP, VALID, Fingerprint, fingerprint)
from omni_ros.replay.plans import Plan
from omni_ros.robot import Robot
from omni_ros.stages.fit import Fit, fit_robot


@dataclass
class Done:
    """What came of an observation this time.

    :param actions: f32 [rows, joints] in the policy's units; `names` are the robot's joints.
    :param normalised: the same as the network has them. :param state: f64 in the policy's units.
    :param prompt: int64 token ids, -1 where one does not count. :param prints: fingerprints by name,
        none unless they were asked for. :param seconds: by part; "look" is what looking on took.
    """

    actions: np.ndarray
    names: tuple[str, ...]
    normalised: np.ndarray
    state: np.ndarray
    prompt: np.ndarray
    steps: int
    prints: dict[str, Fingerprint] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Runner:
    """A bundle on a robot, ready to be run. For one thread."""

    def __init__(self, bundle: Bundle | Path, robot: Robot, *, threads: int | None = None) -> None:
        """
        :raises BundleError: the bundle is damaged or of a family that cannot be run again.
        :raises ValueError: it does not fit the robot.
        """
        self.policy = open_policy(bundle, robot, threads=threads)
        self.manifest, self.robot = self.policy.manifest, robot
        self.sha256 = manifest_hash(self.policy.bundle.root)
        self.fit: Fit = fit_robot(
            self.manifest, robot, robot.policy.cameras if robot.policy else None)
        #: Units of each action to one of the network's, f64 [action].
        action = normaliser(self.policy.bundle, "action")
        ones = np.ones((1, action.width), np.float32)
        self.spread = np.abs(np.float64(action.inverse(ones) - action.inverse(0 * ones)))[0]
        #: Units of each action where the network says 0, f64 [action].
        self.centre = np.float64(action.inverse(0 * ones))[0]
        self._noise = np.empty(self.policy.head.shape, np.float32)
        with suppress(FloatingPointError):  # it will be said of each chunk
            self.policy.warm_up(1)

    @property
    def cameras(self) -> tuple[str, ...]:
        return self.policy.cameras

    def state_of(self, positions: Mapping[str, float]) -> np.ndarray:
        """Return the state f64 [state] of positions by joint.

        :raises ValueError: a joint is missing.
        """
        missing = [name for name in self.robot.joint_names if name not in positions]
        if missing:
            raise ValueError(f"no position of {', '.join(missing)} was recorded")
        ordered = np.array([positions[name] for name in self.robot.joint_names], np.float64)
        return self.fit.state_of(ordered, self.robot)

    def state_for(self, plan: Plan) -> np.ndarray:
        """Return the state f64 [state] that the actions of a plan were decided from.

        :raises ValueError: a joint is missing.
        """
        return self.state_of(plan.positions) if plan.fresh_state is None else plan.fresh_state

    def decode(self, normalised: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return what the network's numbers come to in units, f32 [rows, action].

        :param state: of their observation, see :meth:`state_of`.
        """
        return self.policy.head.decode(normalised, check_state(
            state, self.manifest.dimensions.state))

    def run(self, plan: Plan, images: Mapping[str, np.ndarray], *, look: bool = False) -> Done:
        """Compute the chunk of an observation again.

        :param images: RGB uint8 [height, width, 3] by the bundle's cameras; those it goes without left
            out. :param look: take fingerprints on the way.
        :raises ValueError: they do not fit the bundle. :raises FloatingPointError: no finite actions.
        """
        policy = self.policy
        present = [name for name in policy.cameras if name in images]
        if not present:
            raise ValueError(f"no picture of any camera ({', '.join(policy.cameras)})")
        watch = _Watch(look)
        began = time.perf_counter()
        state = self.state_of(plan.positions)
        given = check_state(state, self.manifest.dimensions.state)
        policy.backbone.set_state(given)  # first: a prompt may have the state in it
        tokens = policy.backbone.set_prompt(plan.instruction)
        policy.backbone.set_cameras(len(present))
        policy.head.set_valid(policy.backbone.valid)
        head_state = given if plan.fresh_state is None else check_state(
            plan.fresh_state, self.manifest.dimensions.state)
        policy.head.set_state(head_state)
        for slot, name in enumerate(present):
            policy.encoder.prepare(images[name], camera=name)
            watch.note(PICTURE + name, images[name])
            watch.note(PIXELS + name, policy.encoder.pixels)
            policy.encoder.run(policy.backbone.images[slot])
            watch.note(IMAGE_TOKENS + name, policy.backbone.images[slot])
        policy.backbone.run()
        watch.note(STATE, policy.backbone.state)
        watch.note(PREFIX, *policy.backbone.keys_values.values())
        watch.note(VALID, policy.backbone.valid)
        head = self._draw(plan)
        policy.rtc.begin(check_leftover(plan.leftover, self.manifest.dimensions.action),
                         delay=plan.delay)
        padded = head.denoise(self._noise, guide=watch.guide(policy.rtc))
        watch.note(f"{STEP}{head.steps}", padded)
        normalised = padded[:, :self.manifest.dimensions.action].copy()
        actions = policy.head.decode(normalised, head_state)
        total = time.perf_counter() - began
        return Done(actions, self.fit.action_names, normalised, state,
                    np.where(tokens.mask, tokens.ids, -1).astype(np.int64), head.steps,
                    watch.prints, {"policy": total - watch.seconds, "look": watch.seconds})

    def _draw(self, plan: Plan) -> Any:
        """Fill in the noise of a plan, and return the head with as many steps as it was drawn with.

        :raises ValueError: noise of another size than the bundle's, or a number of steps that is none.
        """
        head, noise = self.policy.head, plan.drawn_noise
        if noise is None:
            fill_noise(self._noise, seed=plan.chunk.noise_seed, stamp_ns=plan.chunk.stamp_ns)
            return head
        if not 1 <= plan.steps <= MOST_STEPS:
            raise ValueError(f"it was drawn in {plan.steps} steps; expected 1 to {MOST_STEPS}")
        if noise.size != self._noise.size:
            raise ValueError(f"it was drawn with noise of {noise.size} values; the bundle takes "
                             f"{self._noise.size}, {list(self._noise.shape)}")
        self._noise[...] = noise.reshape(self._noise.shape)
        return head if plan.steps == head.steps else HeadWithSteps(head, self.manifest, plan.steps)

    def close(self) -> None:
        """Free the programs."""
        self.policy.close()


class _Watch:
    """Takes fingerprints, or nothing at all."""

    def __init__(self, look: bool) -> None:
        self._look, self._step = look, 0
        self.prints: dict[str, Fingerprint] = {}
        self.seconds = 0.0

    def note(self, name: str, *arrays: np.ndarray) -> None:
        if self._look:
            began = time.perf_counter()
            self.prints[name] = fingerprint(name, *arrays)
            self.seconds += time.perf_counter() - began

    def guide(self, inner):
        """Return a guide that does what `inner` does and sees what each step begins with."""
        if not self._look:
            return inner

        def guide(x: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
            self.note(f"{STEP}{self._step}", x)
            self._step += 1
            return inner(x, v, t)

        return guide


def open_policy(bundle: Bundle | Path, robot: Robot, *, threads: int | None = None) -> SmolVLAPolicy:
    """Open a bundle with the guidance that the robot's YAML asks for.

    :raises BundleError: it is damaged, or of a family that has no stages.
    """
    from omni_ros.bundles import open_bundle

    opened = bundle if isinstance(bundle, Bundle) else open_bundle(Path(bundle))
    own, policy = opened.manifest.rtc, robot.policy
    rtc = None if policy is None else RtcConfig(
        own.schedule, policy.execution_horizon, own.max_guidance_weight, own.window, own.padding)
    return SmolVLAPolicy(opened, threads=threads, rtc=rtc)
