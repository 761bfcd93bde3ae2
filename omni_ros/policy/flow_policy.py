# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy from a bundle: an observation and a sentence in, a chunk of actions out.

    policy = FlowPolicy("pick_place.bundle", threads=2)
    chunk = policy.infer(Observation(images, state, stamp_ns), "pick up the cube", seed=7)
    chunk.actions                                   # [rows, joints], in the policy's units

Everything is loaded, bound and reserved when the policy is made. A call writes into what is there,
runs the programs and returns its few results as new arrays, so they may be kept.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from ..bundles import Bundle, open_bundle
from ..programs import get_threads, set_threads
from .flow import Guide
from .fusion_stage import FusionBackbone
from .head_stage import ActionHead
from .noise import fill_noise
from .observation import (
    Observation, check_leftover, check_noise, check_state, present_cameras,
)
from .rtc import RtcConfig, RtcGuide
from .turns import Turn
from .vision_stage import VisionEncoder


@dataclass(frozen=True)
class Timings:
    """Seconds of one call.

    :param preprocess: pictures, prompt and state. :param vision_encoder: of each picture, in order.
    :param action_head: all steps with the host's arithmetic. :param steps: the program alone, of
        each step. :param total: the whole call.
    """

    preprocess: float
    vision_encoder: tuple[float, ...]
    fusion_backbone: float
    action_head: float
    steps: tuple[float, ...]
    postprocess: float
    total: float


@dataclass(frozen=True)
class Inference:
    """What a call gives.

    :param actions: f32 [chunk, action], in the units the policy was trained in.
    :param normalised: f32 [chunk, action], the same as the network has them; the rows of it that
        have not been played yet are the next call's `leftover`.
    :param stamp_ns: of the observation. :param seed: of the noise, None if it was given.
    :param prompt_tokens: what the whole prompt needs. :param prompt_truncated: its end was cut off.
    :param masked_cameras: those that the policy went without.
    :param uncovered: see :class:`omni_ros.policy.rtc.RtcGuide`; above 0 deserves a warning.
    """

    actions: np.ndarray
    normalised: np.ndarray
    stamp_ns: int
    seed: int | None
    prompt_tokens: int
    prompt_truncated: bool
    masked_cameras: tuple[str, ...]
    uncovered: int
    timings: Timings


class FlowPolicy:
    """The three stages of a SmolVLA, π0 or π0.5 in one process, keys and values handed on where they
    lie.

    For one thread at a time, others are refused. What goes in is checked before any program runs.
    """

    def __init__(
        self, bundle: Bundle | str | os.PathLike[str], *, threads: int | None = None,
        rtc: RtcConfig | None = None,
    ) -> None:
        """
        :param bundle: an opened one, or a folder, which is verified first (`open_bundle`).
        :param threads: of all programs of this process; None leaves the number as it is. It can
            only be set before the first program is loaded.
        :param rtc: how a chunk follows the one before, where `leftover` is given; the bundle's own
            settings if None.
        :raises BundleError: the bundle is damaged, does not fit, or is none of these.
        :raises ValueError: threads or `rtc` cannot be had so.
        """
        if threads is not None and threads != get_threads():
            set_threads(threads)
        if not isinstance(bundle, Bundle):
            bundle = open_bundle(Path(bundle))
        self.bundle, self.manifest = bundle, bundle.manifest
        self.cameras = tuple(camera.name for camera in self.manifest.cameras)
        joints = self.manifest.state_joints
        self._state_names = () if isinstance(joints, str) else tuple(j.name for j in joints)
        self.encoder = VisionEncoder(bundle)
        self.backbone = FusionBackbone(bundle)
        self.head = ActionHead(bundle, self.backbone.keys_values)
        own = self.manifest.rtc
        self.rtc = RtcGuide(
            rtc or RtcConfig(own.schedule, own.execution_horizon, own.max_guidance_weight,
                             own.window, own.padding),
            chunk=self.head.shape[0], width=self.head.shape[1],
        )
        self._noise = np.empty(self.head.shape, np.float32)
        self._turn = Turn(f"{bundle.root}: the policy", again=False)

    def infer(
        self, observation: Observation, instruction: str, *, seed: int | None = None,
        noise: np.ndarray | None = None, leftover: np.ndarray | None = None, delay: int = 0,
        guide: Guide | None = None, anchor: np.ndarray | None = None,
    ) -> Inference:
        """Compute one chunk.

        :param instruction: the task in words.
        :param seed: with the observation's stamp it decides the noise, the same on any machine.
        :param noise: f32 [chunk, padded action] instead of a seed.
        :param leftover: `normalised` rows of the chunk before that are not played yet at the
            observation's stamp, row 0 first; None for a first chunk.
        :param delay: rows of it that will be played while this call runs.
        :param anchor: f32 [state]: the state of the observation that `leftover` was decided from;
            needed, and only used, where actions are relative to it.
        :param guide: instead of `leftover`: changes every velocity, see `flow.FlowSampler`.
        :raises ValueError: names, shapes, sizes or values that do not fit; with both sides.
        :raises TypeError: the instruction is not text; seed, stamp or `delay` not an integer.
        :raises ProgramError: a program failed; make the policy anew.
        :raises FloatingPointError: the actions are not finite; nothing to move a robot by.
        :raises InUse: another call has not returned.
        """
        with self._turn, self.encoder.turn, self.backbone.turn, self.head.turn:
            return self._infer(
                observation, instruction, seed, noise, leftover, delay, guide, anchor)

    def _infer(
        self, observation: Observation, instruction: str, seed: int | None,
        noise: np.ndarray | None, leftover: np.ndarray | None, delay: int, guide: Guide | None,
        anchor: np.ndarray | None,
    ) -> Inference:
        started = time.perf_counter()
        present, masked = present_cameras(observation.images, self.cameras)
        state = check_state(
            observation.state, self.manifest.dimensions.state, self._state_names
        )
        for name in present:
            self.encoder.check(observation.images[name], camera=name)
        self._set_noise(seed, noise, observation.stamp_ns)
        if guide is None:
            rest = check_leftover(leftover, self.manifest.dimensions.action)
            if rest is not None and self.head.relative:
                rest = self._laid_on(rest, anchor, state)
            self.rtc.begin(rest, delay=delay)
        elif leftover is not None:
            raise ValueError("both leftover and guide were given; expected at most one of them")

        self.backbone.set_state(state)
        tokens = self.backbone.set_prompt(instruction)
        self.backbone.set_cameras(len(present))
        self.head.set_valid(self.backbone.valid)
        self.head.set_state(state)
        preprocess = time.perf_counter() - started
        seconds = []
        for slot, name in enumerate(present):
            before = time.perf_counter()
            self.encoder.prepare(observation.images[name], camera=name)
            preprocess += time.perf_counter() - before
            seconds.append(self.encoder.run(self.backbone.images[slot]))
        backbone = self.backbone.run()
        before = time.perf_counter()
        actions = self.head.denoise(self._noise, guide=guide or self.rtc)
        denoised = time.perf_counter()
        results = self._results(actions, state)
        ended = time.perf_counter()
        return Inference(
            actions=results[0], normalised=results[1], stamp_ns=observation.stamp_ns, seed=seed,
            prompt_tokens=tokens.full_count, prompt_truncated=tokens.truncated,
            masked_cameras=masked, uncovered=self.rtc.uncovered if guide is None else 0,
            timings=Timings(
                preprocess, tuple(seconds), backbone, denoised - before,
                tuple(self.head.seconds.tolist()), ended - denoised, ended - started,
            ),
        )

    def warm_up(self, chunks: int = 2) -> float:
        """Compute chunks of nothing; return the seconds of the last.

        The first call takes longer than any other, since its pages are not there yet: its time is
        no latency to plan with.
        """
        size = next(iter(self.manifest.cameras))
        image = np.zeros((size.height, size.width, 3), np.uint8)
        state = np.zeros(self.manifest.dimensions.state, np.float32)
        observation = Observation(dict.fromkeys(self.cameras, image), state)
        seconds = 0.0
        for _ in range(chunks):
            seconds = self.infer(observation, "", seed=0).timings.total
        return seconds

    def close(self) -> None:
        """Free the programs; results stay valid. :raises InUse: a call has not returned."""
        with self._turn:
            for stage in (self.encoder, self.backbone, self.head):
                stage.program.close()

    def __enter__(self) -> FlowPolicy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _set_noise(self, seed: int | None, noise: np.ndarray | None, stamp_ns: int) -> None:
        if (seed is None) == (noise is None):
            given = "neither" if seed is None else "both"
            raise ValueError(f"{given} of seed and noise were given; expected exactly one of them")
        if noise is None:
            fill_noise(self._noise, seed=seed, stamp_ns=stamp_ns)
            return
        np.copyto(self._noise, check_noise(noise, self._noise.shape))

    def _laid_on(
        self, rest: np.ndarray, anchor: np.ndarray | None, state: np.ndarray
    ) -> np.ndarray:
        """Return rows that were relative to another state as they are relative to this one."""
        if anchor is None:
            raise ValueError(
                "leftover is relative to the state of the observation it was decided from; "
                "expected that state as anchor"
            )
        old = check_state(anchor, self.manifest.dimensions.state, self._state_names)
        return self.head.encode(self.head.decode(rest, old), state)

    def _results(
        self, padded: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        normalised = padded[:, :self.manifest.dimensions.action].copy()
        return self.head.decode(normalised, state), normalised
