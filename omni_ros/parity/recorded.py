# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Observations of a recording, as the local policy decided from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..policy.observation import Observation


@dataclass(frozen=True)
class FromBag:
    """:param policy: the bundle, opened. :param lacking: of how many chunks something is missing,
    and what of the first of them."""

    policy: Any
    observations: list[Observation]
    prompts: list[str]
    lacking: int = 0
    example: str = ""


@contextlib.contextmanager
def from_bag(path: Path, bundle: Path, *, robot: str = "", count: int, threads: int
             ) -> Iterator[FromBag]:
    """Open a bundle, and take at most `count` observations of a bag, spread over its length.

    :param robot: its YAML, where the bag does not say. :raises ValueError: the bag has none that is
        whole, or does not fit the bundle. :raises BagError: it cannot be read.
    """
    from ..replay.bag import Bag
    from ..replay.contents import read_contents
    from ..replay.feeding import feed
    from ..replay.plans import make_plans
    from ..replay.replaying import robot_of
    from ..replay.running import Runner

    with Bag(path) as bag, contextlib.ExitStack() as opened:
        contents = read_contents(bag)
        found, _ = robot_of(contents, robot)
        runner = Runner(bundle, found, threads=threads)
        opened.callback(runner.close)
        plans = make_plans(contents, found, runner.fit)
        # A camera that is not in the bag has no topic.
        whole = [plan for plan in plans if not plan.missing and plan.wanted
                 and all(wanted.topic for wanted in plan.wanted)]
        picked = [whole[index * len(whole) // min(count, len(whole))]
                  for index in range(min(count, len(whole)))]
        made = {}
        for plan, images in feed(contents, picked):
            if not plan.missing:
                made[id(plan)] = Observation(
                    {name: images.get(name) for name in runner.cameras},
                    runner.state_for(plan), plan.chunk.stamp_ns)
        chosen = [plan for plan in picked if id(plan) in made]
        lacking = [plan.missing[0] if plan.missing else "a camera's pictures" for plan in plans
                   if plan.missing or id(plan) not in {id(one) for one in whole}]
        if not chosen:
            why = f": {lacking[0]} is not in it" if lacking else ""
            raise ValueError(f"{path} has no observation that is whole{why}; expected pictures, joints "
                             "and chunks of a policy, as record:=true keeps them")
        yield FromBag(runner.policy, [made[id(plan)] for plan in chosen],
                      [plan.instruction for plan in chosen], len(lacking),
                      lacking[0] if lacking else "")
