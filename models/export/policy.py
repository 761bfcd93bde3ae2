# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bundle of a policy says beside its programs, taken from the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from omni_ros.bundles import BundleError, layout
from omni_ros.bundles.names import is_name
from omni_ros.bundles.tokenizer_trial import try_tokenizer
from omni_ros.policy.rtc import RtcConfig

from ..common.checkpoint import PolicyCheckpoint
from ..common.errors import CheckpointError
from ..common.examples import example_inputs, golden_inputs, input_names, output_names
from ..common.processors import ACTION, STATE
from ..common.statistics import Statistics
from ..common.steps import POSTPROCESSOR, PREPROCESSOR
from ..common.weights import read_json
from .joints import Names

TOKENIZER, STATISTICS, EMBEDDINGS = "tokenizer.json", "statistics.json", "embeddings.npy"
TABLE_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class PolicyExport:
    """A policy's checkpoint, one stage's weights at a time. Subclasses say what is their own."""

    stages = ("vision_encoder", "fusion_backbone", "action_head")
    #: Of what `load_checkpoint` takes beside those that all families have.
    own_options: tuple[str, ...] = ()
    #: The role and usual text of the token that pads prompts.
    pad: tuple[str, str]
    load_checkpoint: Callable[..., PolicyCheckpoint]
    build_stage: Callable[[PolicyCheckpoint, str], tuple[nn.Module, Any]]
    build: Callable[..., nn.Module]

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        """:param options: of the family's `load_checkpoint`."""
        self.folder, self.options = folder, self.taken(options)
        # No weights yet: names, shapes, sizes, statistics and prompt are checked all the same.
        self.checkpoint = type(self).load_checkpoint(folder, stages=(), **self.options)
        if self.checkpoint.tokenizer.folder is None:
            raise CheckpointError(
                f"{folder} has no tokenizer beside it and a bundle needs one: the checkpoint names "
                f"{self.checkpoint.tokenizer.name!r}; pass backbone=DIR, a local copy of its "
                "config.json and tokenizer files"
            )
        self._check_tokenizer()
        self._check_cameras()
        self.pad_token = self.checkpoint.tokenizer.token_id(*self.pad)

    def taken(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options without those of other families.

        :raises CheckpointError: one of these is given.
        """
        others = {"aloha", "relative", "vision_heads"} - set(self.own_options)
        for name in others & set(options):
            if options[name] is not None:
                raise CheckpointError(
                    f"{name}={options[name]}: {self.folder} is of a family that has no such "
                    "option; leave it out"
                )
        return {name: value for name, value in options.items() if name not in others}

    @property
    def widths(self) -> tuple[int, int]:
        """Values of an action and of a state."""
        return self.checkpoint.config.action, self.checkpoint.config.state

    @property
    def sources(self) -> tuple[list[Path], list[Path]]:
        """Files of the checkpoint and of the backbone that the bundle was made from."""
        checkpoint = self.checkpoint
        paths = (checkpoint.folder / name for name in (PREPROCESSOR, POSTPROCESSOR))
        files = [*checkpoint.files, *(path for path in paths if path.is_file())]
        tokenizer = checkpoint.tokenizer.folder
        backbone = sorted(path for path in tokenizer.iterdir() if path.suffix == ".json")
        return list(dict.fromkeys(files)), backbone

    def load(self, stage: str) -> tuple[nn.Module, Any]:
        """Return a stage with its weights, and the network around it without."""
        checkpoint = type(self).load_checkpoint(self.folder, stages=(stage,), **self.options)
        return type(self).build_stage(checkpoint, stage)

    def names(self, model: Any, stage: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of a stage's inputs and outputs."""
        return input_names(model)[stage], output_names(model)[stage]

    def examples(self, model: Any, stage: str) -> tuple[torch.Tensor, ...]:
        """Return the inputs that a stage is exported with."""
        return example_inputs(model, seed=0)[stage]

    def golden(self, model: Any, stage: str) -> tuple[torch.Tensor, ...]:
        """Return other inputs than the examples."""
        return golden_inputs(model, stage)

    def write_files(self, folder: Path) -> None:
        """Write tokenizer, statistics and token table."""
        checkpoint = self.checkpoint
        content = (checkpoint.tokenizer.folder / "tokenizer.json").read_bytes()
        (folder / TOKENIZER).write_bytes(content)
        statistics = (checkpoint.state_statistics, checkpoint.action_statistics)
        text = json.dumps({s.feature: plain(s) for s in statistics}, indent=1)
        (folder / STATISTICS).write_text(text + "\n", encoding="utf-8")
        table = checkpoint.token_table.contiguous()
        if table.dtype == torch.bfloat16:
            table = table.view(torch.uint16)
        np.save(folder / EMBEDDINGS, table.numpy())

    def sections(self) -> dict[str, Any]:
        """Return the parts of the manifest that describe the network and what surrounds it."""
        checkpoint, config = self.checkpoint, self.checkpoint.config
        text, prompt = config.text, checkpoint.tokenizer
        state, action = checkpoint.state_statistics, checkpoint.action_statistics
        if state.eps != action.eps:
            raise CheckpointError(
                f"{self.folder}: eps is {state.eps} for the state and {action.eps} for actions: "
                "expected the same; save the processors again"
            )
        rows, width = checkpoint.token_table.shape
        prefix, length = self.prefix()
        return {
            "dimensions": layout.Dimensions(
                chunk=config.chunk, action=config.action, state=config.state,
                max_action=config.max_action, max_state=config.max_state, steps=config.steps,
                prefix=length, image_tokens=config.image_tokens,
                language_tokens=config.language, layers=config.layers, kv_heads=text.kv_heads,
                head_dim=text.head_dim, expert_width=config.expert_width,
                action_steps=config.n_action_steps,
            ),
            "cameras": tuple(self.camera(key) for key in checkpoint.cameras),
            "empty_cameras": checkpoint.empty_cameras,
            "rename_map": dict(checkpoint.rename_map),
            "features": layout.Features(STATE, ACTION),
            "prefix": prefix,
            "tokenizer": layout.Tokenizer(
                TOKENIZER, prompt.max_length, prompt.padding, prompt.newline, self.pad_token,
                "right", self.state_width,
            ),
            "embeddings": layout.Embeddings(
                EMBEDDINGS, TABLE_DTYPES[checkpoint.token_table.dtype], rows, width
            ),
            "normalisation": layout.Normalisation(STATISTICS, state.mode, action.mode, state.eps),
            "flow": layout.Flow(
                config.steps, 1.0, -1.0 / config.steps, config.min_period, config.max_period
            ),
            "rtc": self.rtc(),
        }

    #: Values that a prompt's state is padded to.
    state_width = 0

    def prefix(self) -> tuple[layout.Prefix, int]:
        """Return what the backbone sees, and how many tokens."""
        raise NotImplementedError

    def named(self, joints: Names, state: Names) -> dict[str, Any]:
        """Return the parts of the manifest that need the joints' names: of actions and state."""
        return {"joints": joints, "state_joints": state}

    def camera(self, key: str) -> layout.Camera:
        """Return a camera by its key, with the robot's name of it."""
        shape = self.checkpoint.camera_shapes.get(key, ())
        config = self.checkpoint.config
        height, width = shape[1:] if len(shape) == 3 else (config.image_height, config.image_width)
        return layout.Camera(self.checkpoint.camera_names[key], key, height, width)

    def rtc(self) -> layout.Rtc:
        """Return what the checkpoint says about real-time chunking, else LeRobot's defaults."""
        where = self.folder / "config.json"
        asked = read_json(where).get("rtc_config") or {}
        if not isinstance(asked, Mapping):
            raise CheckpointError(f"{where}: rtc_config is {asked!r}: expected an object")
        own = RtcConfig()
        try:
            config = RtcConfig(
                schedule=str(asked.get("prefix_attention_schedule", own.schedule)).upper(),
                execution_horizon=int(asked.get("execution_horizon", own.execution_horizon)),
                max_guidance_weight=float(
                    asked.get("max_guidance_weight", own.max_guidance_weight)
                ),
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{where}: rtc_config: {error}") from None
        return layout.Rtc(
            bool(asked.get("enabled", False)), config.schedule, config.execution_horizon,
            config.max_guidance_weight, config.window, config.padding,
        )

    def _check_tokenizer(self) -> None:
        """Refuse a tokenizer that no bundle would be opened with."""
        checkpoint = self.checkpoint
        try:
            try_tokenizer(
                checkpoint.tokenizer.folder / TOKENIZER,
                max_length=checkpoint.tokenizer.max_length, rows=len(checkpoint.token_table),
            )
        except BundleError as error:
            raise CheckpointError(str(error)) from None

    def _check_cameras(self) -> None:
        """Refuse cameras that no bundle can have."""
        checkpoint = self.checkpoint
        for key in checkpoint.cameras:
            if not is_name(checkpoint.camera_names[key]):
                raise CheckpointError(
                    f"{self.folder}: {key} gives a camera the name "
                    f"{checkpoint.camera_names[key]!r}: expected letters, digits, _ and ., up to "
                    "64; rename it in policy_preprocessor.json: rename_map"
                )
        if checkpoint.slots > layout.MAX_SLOTS:
            raise CheckpointError(
                f"{self.folder} has {len(checkpoint.cameras)} cameras and "
                f"{checkpoint.empty_cameras} empty ones: expected up to {layout.MAX_SLOTS} "
                "together; pass cameras=N"
            )


def plain(statistics: Statistics) -> dict[str, list[float]]:
    """Return statistics for JSON; float32 survives it exactly."""
    return {name: [float(v) for v in values] for name, values in statistics.values.items()}
