# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Train the table-top policy: frames, then the vision tower alone, then everything.

Time, if not steps, is the budget: rates of learning follow the share of it that is used, so that
a slower machine trains less far but on the whole schedule. What was reached is kept every few
minutes; the same command goes on from there.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from omni_ros.world.tasks import SKILLS

from ..smolvla.policy import SmolVLA
from . import data
from .batched import Batched
from .batches import BatchMaker, Statistics, statistics
from .checkpoint import write_checkpoint
from .eager import EagerPolicy
from .episode import CAMERAS
from .objective import Heads, initialise, joint_loss, see_loss
from .practice import Practice, Progress
from .sizes import CONFIG
from .words import Sentences, train_tokenizer

#: Share of a run from which on the policy's own ways are worth learning from.
OWN_FROM = 0.12


@dataclass(frozen=True)
class Options:
    """What a training run is given.

    :param minutes: of training, without making frames. :param frames: of the expert.
    :param steps: train for so many steps, whatever the time; 0 goes by `minutes`.
    :param own: most frames of the policy's own ways, which the expert labels, too; 0 for none.
    """

    out: Path
    minutes: float = 70.0
    steps: int = 0
    frames: int = 80_000
    own: int = 16_000
    seed: int = 1
    threads: int = 1
    processes: int = 2
    batch: int = 12
    instructions: int = 4
    draws: int = 2
    # Once it reads, seeing is what it lacks: from then on more frames, fewer instructions each.
    late_share: float = 0.4
    late_batch: int = 18
    late_instructions: int = 2
    rate: float = 8e-4
    see_share: float = 0.03  # of the time: the vision tower alone
    evaluate_minutes: float = 5.0
    episodes: int = 20  # of each skill, at each evaluation


def learning_rate(share: float, step: int, peak: float) -> float:
    """Flat for 30 % of the time, then a cosine to 2 %; 200 steps of warm-up."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(max((share - 0.3) / 0.7, 0.0), 1.0)))
    return peak * (0.02 + 0.98 * cosine) * min(1.0, (step + 1) / 200)


class Training:
    """One run; everything it needs to go on lies in `out` / "work"."""

    def __init__(self, options: Options, report: Callable[[str], None]) -> None:
        """:param report: takes lines for people."""
        self.options, self.report = options, report
        self.work = options.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        tokenizer = self.work / "tokenizer" / "tokenizer.json"
        if not tokenizer.is_file():
            train_tokenizer(tokenizer, CONFIG.text.vocabulary)
        self.sentences = Sentences(tokenizer, CONFIG.language)
        self.progress = Progress()

        self.model = SmolVLA(CONFIG, len(CAMERAS))
        self.heads = Heads(CONFIG)
        self.tokens = torch.nn.Parameter(torch.zeros(CONFIG.text.vocabulary, CONFIG.text.width))
        initialise(self.model, self.heads, self.tokens.data)
        self.network = Batched(self.model, self.tokens)
        self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.average_tokens = torch.nn.Parameter(self.tokens.detach().clone(), requires_grad=False)
        self.parameters = [*self.model.parameters(), *self.heads.parameters(), self.tokens]
        self.optimiser = torch.optim.AdamW(
            self.parameters, lr=options.rate, betas=(0.9, 0.95), weight_decay=0.01
        )
        self.practice = Practice(options.episodes)

    # -- frames -----------------------------------------------------------------------------

    def prepare(self, progress: Callable[[int], None]) -> None:
        """Make the frames if they are not there, and measure statistics."""
        options = self.options
        folder = self.work / "frames"
        if not (folder / "complete").is_file():
            data.generate_all(folder, options.frames, seed=options.seed,
                              processes=options.processes, progress=progress)
            (folder / "complete").touch()
        self.frames = data.load(folder)
        random = np.random.default_rng(options.seed + 1)
        self.statistics = statistics(self.frames, random)
        own = self.work / "own"
        if options.own:
            self.own = data.load(own, "r+") if own.is_dir() else data.create(own, options.own)
        self.resume()
        self.maker = BatchMaker(
            [(self.frames, len(self.frames))], self.statistics, self.sentences,
            frames=options.batch, instructions=options.instructions,
            seed=options.seed * 7919 + self.progress.step,
        )
        self._use_own()

    # -- steps ------------------------------------------------------------------------------

    def run(self, shown: Callable[[Progress, dict[str, float]], None]) -> None:
        """Train until the time is used; `shown` is called every few steps."""
        options, state = self.options, self.progress
        started = time.monotonic() - state.seconds
        saved = evaluated = state.seconds
        means: dict[str, float] = {}
        with ThreadPoolExecutor(1) as pool:
            ahead = None
            while (share := self.share()) < 1.0:
                seeing = share < options.see_share
                if seeing:
                    losses = self.see_step(self.maker.look(options.batch * 3))
                else:
                    batch = ahead.result() if ahead is not None else self.maker()
                    if share > options.late_share:
                        self.maker.frames = options.late_batch
                        self.maker.instructions = options.late_instructions
                    ahead = pool.submit(self.maker)
                    losses = self.joint_step(batch, share)
                state.step += 1
                self.follow()
                state.seconds = time.monotonic() - started
                for name, value in losses.items():
                    means[name] = 0.98 * means.get(name, float(value)) + 0.02 * float(value)
                shown(state, means)
                if state.seconds - saved > 180:
                    self.save()
                    saved = state.seconds
                if not seeing and state.seconds - evaluated > options.evaluate_minutes * 60:
                    if ahead is not None:
                        ahead.result()
                        ahead = None
                    self.evaluate(means)
                    self.collect(share)
                    self.write()
                    state.seconds = time.monotonic() - started
                    evaluated = state.seconds
            if ahead is not None:
                ahead.result()
        self.evaluate(means)
        self.save()
        self.write()

    def share(self) -> float:
        """Return how much of the run is done, 0 to 1."""
        if self.options.steps:
            return self.progress.step / self.options.steps
        return self.progress.seconds / (self.options.minutes * 60)

    def see_step(self, look) -> dict[str, torch.Tensor]:
        images = self.network.images(look.pixels.flatten(0, 1))
        images = images.unflatten(0, look.pixels.shape[:2])
        loss = see_loss(self.heads, images, look, math.sqrt(CONFIG.text.width))
        self._descend(loss, learning_rate(0.0, self.progress.step, self.options.rate))
        return {"see": loss.detach()}

    def joint_step(self, batch, share: float) -> dict[str, torch.Tensor]:
        loss, parts = joint_loss(self.network, self.heads, batch, self.options.draws)
        self._descend(loss, learning_rate(share, self.progress.step, self.options.rate))
        return parts

    def _descend(self, loss: torch.Tensor, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()

    @torch.no_grad()
    def follow(self) -> None:
        """Move the averaged weights towards those of now."""
        keep = min(0.9985, (1 + self.progress.step) / (10 + self.progress.step))
        pairs = zip([*self.average.parameters(), self.average_tokens],
                    [*self.model.parameters(), self.tokens], strict=True)
        slow, fast = zip(*pairs, strict=True)
        torch._foreach_lerp_(list(slow), [value.detach() for value in fast], 1 - keep)

    # -- the policy in the world --------------------------------------------------------------

    def policy(self, seed: int = 0) -> EagerPolicy:
        return EagerPolicy(Batched(self.average, self.average_tokens), self.statistics,
                           self.sentences, seed)

    def evaluate(self, means: dict[str, float]) -> None:
        """Add a point to the curve."""
        state = self.progress
        point = {**means, "minutes": state.seconds / 60, "step": state.step}
        point |= self.practice.evaluate(self.policy())
        state.curve.append(point)
        rates = ", ".join(
            f"{skill} {point[f'{skill}_success']:.0%} (wrong {point[f'{skill}_wrong']:.0%})"
            for skill in SKILLS
        )
        self.report(f"{point['minutes']:.1f} min, step {state.step}: {rates}")

    def collect(self, share: float) -> None:
        """Keep frames of the policy's own ways: the expert will say what to do from there."""
        state = self.progress
        if self.options.own and share >= OWN_FROM:
            self.practice.collect(self.policy(state.own_seed), self.own, state)
            self._use_own()

    def _use_own(self) -> None:
        if self.options.own and self.progress.own_filled >= 500:
            self.maker.sets[1:] = [(self.own, self.progress.own_filled)]
            # Up to a quarter of all frames, as they become many.
            self.maker.shares[1:] = [min(0.33, self.progress.own_filled / 12_000)]

    # -- what is kept -------------------------------------------------------------------------

    def write(self) -> None:
        """Write the checkpoint from the averaged weights."""
        write_checkpoint(self.options.out / "checkpoint", self.average, self.average_tokens,
                         self.statistics, self.work / "tokenizer")

    def save(self) -> None:
        """Keep what is needed to go on."""
        content = {
            "model": self.model.state_dict(), "heads": self.heads.state_dict(),
            "tokens": self.tokens.data, "average": self.average.state_dict(),
            "average_tokens": self.average_tokens.data, "optimiser": self.optimiser.state_dict(),
            "progress": asdict(self.progress), "statistics": asdict(self.statistics),
        }
        torch.save(content, self.work / "state.new")
        (self.work / "state.new").replace(self.work / "state.pt")

    def resume(self) -> None:
        """Go on from what was kept, if anything was."""
        path = self.work / "state.pt"
        if not path.is_file():
            return
        kept = torch.load(path, weights_only=False)  # our own file
        self.model.load_state_dict(kept["model"])
        self.heads.load_state_dict(kept["heads"])
        self.average.load_state_dict(kept["average"])
        self.tokens.data.copy_(kept["tokens"])
        self.average_tokens.data.copy_(kept["average_tokens"])
        self.optimiser.load_state_dict(kept["optimiser"])
        self.progress = Progress(**kept["progress"])
        self.statistics = Statistics(**kept["statistics"])
        torch.manual_seed(self.options.seed + self.progress.step)
        self.report(f"going on after {self.progress.seconds / 60:.1f} min")
