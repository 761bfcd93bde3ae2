# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""LeRobot itself as the baseline of `omni bench policy`, if this Python has it.

Only its public interface is relied on: `SmolVLAPolicy.from_pretrained`, `predict_action_chunk`, and
the processors that `make_pre_post_processors` reads. What its parts are called inside is looked
for, to give each stage a time; where a release calls them otherwise, there is the time of a chunk
only.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli import UsageError
from omni_ros.telemetry.provenance import package_version

#: Releases with these processors, first and first beyond. Each reads what it saved itself; a file
#: of a newer one may have fields that an older one refuses.
RELEASES = ((0, 4), (0, 7))
#: Where LeRobot has what our programs are, from the policy's `model` on.
PARTS = {"vision_encoder": "vlm_with_expert.embed_image", "action_head": "denoise_step"}


def check() -> str:
    """Return LeRobot's version.

    :raises UsageError: it is not installed here, or of a release that is not known to work.
    """
    other = "or use --baseline eager, the same network in PyTorch without LeRobot"
    if find_spec("lerobot") is None:
        raise UsageError(
            "--baseline lerobot: LeRobot is not installed in this Python; install lerobot[smolvla] "
            f"{span()} beside omni_ros, {other}"
        )
    version = package_version("lerobot") or "unknown"
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or not RELEASES[0] <= tuple(map(int, numbers.groups())) < RELEASES[1]:
        raise UsageError(
            f"--baseline lerobot: LeRobot {version} is installed; expected {span()}. Install one "
            f"of these, {other}"
        )
    return version


def span() -> str:
    (_, first), (_, beyond) = RELEASES
    return f"0.{first} to 0.{beyond - 1}"


def lerobot_side(options: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """Load the checkpoint with LeRobot; return facts and what runs one chunk.

    :raises ValueError: LeRobot does not take it, in its own words.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a bench fetches nothing
    import torch

    from omni_ros.cli.policy_worker import TASK, clock, pictures, resident

    torch.set_num_threads(options["threads"])
    torch.set_grad_enabled(False)
    policy, pre, post = load(Path(options["checkpoint"]), options["backbone_found"])
    images = pictures(options["camera_keys"])
    state = torch.zeros(1, options["state"])
    seconds: dict[str, float] = {}
    clocked = [
        name for name, path in PARTS.items() if clock_part(policy, name, path, seconds, clock)
    ]

    def run() -> dict[str, Any]:
        seconds.clear()
        started = time.perf_counter()
        batch = {key: as_lerobot(image) for key, image in images.items()}
        batch = pre({**batch, "observation.state": state, "task": TASK})
        prepared = time.perf_counter()
        actions = policy.predict_action_chunk(batch)
        predicted = time.perf_counter()
        post(actions)
        ended = time.perf_counter()
        stages = {"preprocess": prepared - started, "postprocess": ended - predicted}
        if len(clocked) == len(PARTS):
            stages |= seconds
            # What remains: its prefix, and resizing the pictures.
            stages["fusion_backbone"] = predicted - prepared - sum(seconds.values())
        return {"seconds": ended - started, "resident": resident(), "stages": stages}

    versions = {name: package_version(name) for name in ("lerobot", "transformers", "torch")}
    return versions, run


def load(checkpoint: Path, backbone: str | None) -> tuple[Any, Any, Any]:
    """Return LeRobot's policy and processors of a checkpoint, on the processor."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import make_pre_post_processors
    from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy

    overrides: dict[str, Any] = {"device_processor": {"device": "cpu"}}
    try:
        config = PreTrainedConfig.from_pretrained(checkpoint)
        config.device = "cpu"
        config.load_vlm_weights = False  # the checkpoint has them
        config.compile_model = False
        if backbone is not None:
            config.vlm_model_name = backbone
            overrides["tokenizer_processor"] = {"tokenizer_name": backbone}
        policy = SmolVLAPolicy.from_pretrained(checkpoint, config=config)
        pre, post = make_pre_post_processors(
            policy.config, pretrained_path=str(checkpoint), preprocessor_overrides=overrides,
            postprocessor_overrides={"device_processor": {"device": "cpu"}},
        )
    except Exception as error:  # noqa: BLE001 - of many kinds, and none of them ours
        raise ValueError(
            f"LeRobot {package_version('lerobot')} does not take {checkpoint}: "
            f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        ) from error
    return policy.eval(), pre, post


def clock_part(
    policy: Any, name: str, path: str, seconds: dict[str, float], clock: Callable[..., None]
) -> bool:
    """Add up the time of a method below `policy.model`; whether there is one."""
    owner, *_, method = policy.model, *path.split(".")
    for part in path.split(".")[:-1]:
        owner = getattr(owner, part, None)
    if not callable(getattr(owner, method, None)):
        return False
    clock(owner, name, seconds, method=method)
    return True


def as_lerobot(image: np.ndarray) -> Any:
    """Return a picture as LeRobot's processors take it: f32 [1, 3, height, width] in [0, 1]."""
    import torch

    return torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
