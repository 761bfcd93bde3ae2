# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Another number of Euler steps than the bundle's, for one chunk."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .flow import FlowSampler, Guide, time_embedding


#: More steps than this are asked for by mistake; each is a run of the program.
MOST_STEPS = 1000


class HeadWithSteps:
    """An action head that takes another number of Euler steps.

    The network is given the time of each step, so any number may be taken; how good the actions
    are with one that it was not trained to be run with is another matter.
    """

    def __init__(self, head: Any, manifest: Any, steps: int) -> None:
        """:param head: a `head_stage.ActionHead` of the bundle that `manifest` is of."""
        flow, sizes = manifest.flow, manifest.dimensions
        self._head = head
        self._sampler = FlowSampler(steps=steps, chunk=sizes.chunk, width=sizes.max_action)
        self._times = time_embedding(
            self._sampler.times, width=sizes.expert_width, min_period=flow.min_period,
            max_period=flow.max_period,
        )
        self.seconds = np.zeros(steps)

    @property
    def steps(self) -> int:
        """Runs of the program a chunk."""
        return self._sampler.steps

    def denoise(self, noise: np.ndarray, *, guide: Guide | None = None,
                stop: Callable[[], bool] | None = None) -> np.ndarray:
        """As `head_stage.ActionHead.denoise`."""
        return self._sampler(noise, self._step, guide=guide, stop=stop)

    def _step(self, x: np.ndarray, step: int, t: float) -> np.ndarray:
        program = self._head.program
        np.copyto(program.input("noisy"), x)
        np.copyto(program.input("time"), self._times[step:step + 1])
        self.seconds[step] = program.run()
        return program.output("velocity")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._head, name)
