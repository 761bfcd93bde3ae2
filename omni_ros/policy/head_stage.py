# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy's last stage: keys, values and noise to actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..bundles import Bundle, BundleError
from ..programs import zeros
from ..programs.binding import BindingCache
from .bundle_parts import (
    bind_zeros, check_family, check_names, conventions_of, normaliser, prefix_layout, rope_table,
)
from .flow import FlowSampler, Guide, time_embedding
from .prefix import action_positions
from .turns import Turn, in_turn


class ActionHead:
    """Keys and values, and noise, to actions: one run of the program a step."""

    def __init__(self, bundle: Bundle, keys_values: Mapping[str, np.ndarray] | None = None) -> None:
        """
        :param keys_values: for :meth:`bind_prefix`; without them, arrays of its own.
        :raises BundleError: the program does not load, or is of another family.
        :raises ValueError: an array is missing or does not fit.
        """
        check_family(bundle)
        manifest = bundle.manifest
        self.turn = Turn(f"{bundle.root}: the action head")
        sizes, flow = manifest.dimensions, manifest.flow
        if (flow.t_start, flow.dt) != (1.0, -1.0 / flow.steps):
            raise BundleError(
                f"{bundle.root}: flow goes from {flow.t_start} by {flow.dt} in {flow.steps} steps; "
                f"expected from 1.0 by {-1.0 / flow.steps}"
            )
        self._chunk = sizes.chunk
        self._sampler = FlowSampler(
            steps=flow.steps, chunk=sizes.chunk, width=sizes.max_action
        )
        self._times = time_embedding(
            self._sampler.times, width=sizes.expert_width, min_period=flow.min_period,
            max_period=flow.max_period,
        )
        layout = prefix_layout(bundle)
        #: Whether the head takes the state, and so can be run again on another one.
        self.takes_state = manifest.prefix.state == "suffix"
        self._suffix = sizes.chunk + self.takes_state
        self._rope = rope_table(manifest, layout.length + self._suffix)
        self._normaliser = normaliser(bundle, "action")
        self._conventions = conventions_of(manifest)
        self.program = bundle.load("action_head")
        self._noisy, self._time, self._valid, self._cos, self._sin = (
            bind_zeros(self.program, name) for name in ("noisy", "time", "valid", "cos", "sin")
        )
        bound = {"noisy", "time", "valid", "cos", "sin"}
        if self.takes_state:
            self._state = bind_zeros(self.program, "state")
            self._state_normaliser = normaliser(bundle, "state")
            bound.add("state")
        self._wanted = tuple(s.name for s in self.program.inputs if s.name not in bound)
        self._bindings = BindingCache(self.program, inputs=self._wanted)
        self._own: dict[str, np.ndarray] | None = None
        if keys_values is None:
            self.release()
        else:
            self.bind_prefix(keys_values)
        self._velocity = self.program.output("velocity")
        #: Seconds of each step of the last call.
        self.seconds = np.zeros(flow.steps)

    @property
    def steps(self) -> int:
        """Runs of the program a chunk."""
        return self._sampler.steps

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of noise and padded actions, [chunk, padded action]."""
        return self._noisy.shape

    @in_turn
    def bind_prefix(self, keys_values: Mapping[str, np.ndarray]) -> None:
        """Read keys and values from other arrays from now on, without a copy.

        :param keys_values: what :attr:`FusionBackbone.keys_values` has; others are passed over.
        :raises ValueError: one is missing. :raises ProgramError: one does not fit.
        """
        check_names(keys_values, self._wanted, "the action head reads")
        self._bindings.bind(keys_values)

    @in_turn
    def release(self) -> None:
        """Read memory of its own, and forget all other."""
        if self._own is None:
            self._own = {s.name: zeros(s.shape, s.dtype) for s in self.program.inputs
                         if s.name in self._wanted}
        self._bindings.forget()
        self._bindings.bind(self._own)

    @in_turn
    def set_valid(self, valid: np.ndarray) -> None:
        """Say which tokens of the prefix count: f32 [prefix], :attr:`FusionBackbone.valid`."""
        if not np.array_equal(valid, self._valid):
            np.copyto(self._valid, valid)
            self._rope.pick(action_positions(valid, self._suffix), self._cos, self._sin)

    @in_turn
    def set_state(self, state: np.ndarray) -> None:
        """Take the state that actions are decided from, f32 [state], where the head has it."""
        if self.takes_state:
            self._state_normaliser.forward(self._conventions.state(state), out=self._state[0])

    @in_turn
    def denoise(self, noise: np.ndarray, *, guide: Guide | None = None,
                stop: Callable[[], bool] | None = None) -> np.ndarray:
        """Return normalised actions f32 [chunk, padded action]; the next call overwrites them.

        :param noise: f32 [chunk, padded action]. :param guide, stop: see `flow.FlowSampler`.
        :raises ValueError: wrong shape. :raises flow.Stopped: `stop` said so.
        """
        return self._sampler(noise, self._step, guide=guide, stop=stop)

    @property
    def relative(self) -> bool:
        """Whether actions are relative to the state of their observation."""
        return self._conventions.anchored

    def decode(self, actions: np.ndarray, state: np.ndarray | None = None) -> np.ndarray:
        """Return actions in the data set's units, a new f32 [chunk, action], of padded ones.

        :param state: of their observation, in the data set's units; needed if they are `relative`
            to it.
        :raises FloatingPointError: some are not finite; nothing to move a robot by.
        :raises ValueError: there is no state, and it is needed.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            decoded = self._conventions.decode(self._normaliser.inverse(actions), state)
        if not np.isfinite(decoded).all():
            raise FloatingPointError(
                f"{self.program.path.parent}: the policy answered with actions that are not "
                "finite; the observation may be far from anything it was trained on, or the export "
                "at fault (omni inspect --verify)"
            )
        return decoded

    def encode(self, actions: np.ndarray, state: np.ndarray | None = None) -> np.ndarray:
        """Return actions in the data set's units as the network has them: what `decode` undoes.

        Rows of an old chunk are laid on another observation so: their targets stay where they are.

        :param state: of the observation that they shall be relative to.
        :raises ValueError: there is no state, and it is needed.
        """
        return self._normaliser.forward(self._conventions.encode(actions, state))

    def _step(self, x: np.ndarray, step: int, t: float) -> np.ndarray:
        np.copyto(self._noisy, x)
        np.copyto(self._time, self._times[step:step + 1])
        self.seconds[step] = self.program.run()
        return self._velocity
