# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bundle of a Piper voice says beside its programs, taken from the checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from omni_ros.bundles.piper_layout import Drawing, Licence, Sound, Symbols, Windows

from ..common.errors import CheckpointError
from ..piper.decoder import CONTEXT
from ..piper.flow import reach
from ..piper.load import Loader, find_checkpoint

FAMILY = "piper"
SYMBOLS, TABLE, CARD = "symbols.json", "symbols.npy", "MODEL_CARD"
#: Symbols of a clause, with those between them; frames of a window of the flow, of the decoder.
#: The first decoder window is what the first sound waits for, the last one what costs least.
SIZES = {"text": (96, 192, 256), "flow": (128,), "decoder": (24, 48, 96)}
INPUTS = {"text": ("symbols", "mask", "noise"), "flow": ("drawn", "mask"), "decoder": ("frames",)}
OUTPUTS = {"text": ("mean", "spread", "durations"), "flow": ("frames",), "decoder": ("samples",)}
#: What `omni export` asks for that is a policy's.
FOREIGN = ("backbone", "base", "dataset", "statistics", "cameras")


class PiperExport:
    """A Piper voice, one program's weights at a time."""

    stages = tuple(f"{part}_{size}" for part, sizes in SIZES.items() for size in sizes)

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        for option in FOREIGN:
            if options.get(option) is not None:
                raise CheckpointError(f"{option} is given, and a voice has none: leave it out")
        self.checkpoint = find_checkpoint(folder)
        self.config = self.checkpoint.config
        self._loader: Loader | None = None

    @property
    def sources(self) -> tuple[list[Path], list[Path]]:
        """Files of the voice; there is no backbone."""
        return self.checkpoint.files, []

    @property
    def loader(self) -> Loader:
        """The weights, read when they are first wanted."""
        if self._loader is None:
            self._loader = Loader(self.checkpoint)
        return self._loader

    def load(self, stage: str) -> tuple[nn.Module, None]:
        """Return a part with its weights."""
        part, size = split(stage)
        loader = self.loader
        if part == "text":
            return loader.text(size), None
        return (loader.flow() if part == "flow" else loader.decoder()), None

    def names(self, model: None, stage: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of a program's inputs and outputs."""
        part, _ = split(stage)
        return INPUTS[part], OUTPUTS[part]

    def examples(self, model: None, stage: str) -> tuple[torch.Tensor, ...]:
        """Return the inputs that a program is exported with."""
        return self._inputs(stage, seed=0, share=1.0)

    def golden(self, model: None, stage: str) -> tuple[torch.Tensor, ...]:
        """Return other inputs than the examples: another seed, three quarters of the length."""
        return self._inputs(stage, seed=1, share=0.75)

    def _inputs(self, stage: str, *, seed: int, share: float) -> tuple[torch.Tensor, ...]:
        part, size = split(stage)
        width, draw = self.config.sizes.width, torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=draw)

        if part == "decoder":
            return (normal(1, width, size),)
        mask = (torch.arange(size) < round(size * share)).float()
        if part == "flow":
            return normal(1, width, size), mask.reshape(1, 1, size)
        table = self.loader.symbols()
        rows = torch.randint(0, max(self.config.symbols.values()), (size,), generator=draw)
        rows[::2] = 0
        return table[rows].contiguous(), mask.reshape(size, 1), normal(size, 2)

    def write_files(self, folder: Path) -> None:
        """Write symbols, their table and the maker's words."""
        loader = self.loader
        table = loader.symbols().numpy()
        # Whatever no part takes would be missing from the voice.
        for part in (loader.text(SIZES["text"][0]), loader.flow(), loader.decoder()):
            del part
        loader.check_all_taken()
        text = json.dumps(dict(self.config.symbols), indent=0)
        (folder / SYMBOLS).write_text(text + "\n", encoding="utf-8")
        np.save(folder / TABLE, table)
        if self.checkpoint.card is None:
            (folder / CARD).write_text("No model card came with the voice.\n", encoding="utf-8")
        else:
            shutil.copyfile(self.checkpoint.card, folder / CARD)

    def sections(self) -> dict[str, Any]:
        """Return the parts of the manifest that describe the voice."""
        config = self.config
        table = self.loader.symbols()
        return {
            "family": FAMILY,
            "sound": Sound(config.sample_rate, config.sizes.frame_samples, config.language),
            "symbols": Symbols(config.espeak_voice, SYMBOLS, TABLE, *table.shape),
            "drawing": Drawing(config.noise_scale, config.noise_w, config.length_scale),
            "text": Windows(SIZES["text"], 0),
            "flow": Windows(SIZES["flow"], reach(config.sizes)),
            "decoder": Windows(SIZES["decoder"], CONTEXT),
            "licence": self.licence(),
        }

    def licence(self) -> Licence:
        """Return what the card and the package say."""
        words = self.checkpoint.card.read_text("utf-8") if self.checkpoint.card else ""
        said = [line.partition(":")[2].strip() for line in words.splitlines()
                if line.lstrip("* ").startswith("License:")]
        trained = [line.strip() for line in words.splitlines() if line.startswith("Finetuned")]
        return Licence(
            data=said[0] if said else "not said",
            package=package_licence(self.checkpoint.folder),
            note=" ".join(trained) or "none",
            file=CARD,
        )


def split(stage: str) -> tuple[str, int]:
    """Return part and size of a program by its name."""
    part, _, size = stage.rpartition("_")
    return part, int(size)


def package_licence(folder: Path) -> str:
    """Return the licence of the Python package that a voice came in, if it did."""
    package = folder.parent
    for metadata in package.parent.glob(f"{package.name}-*.dist-info/METADATA"):
        for line in metadata.read_text(encoding="utf-8").splitlines():
            if line.startswith(("License-Expression:", "License:")):
                return f"{package.name}: {line.partition(':')[2].strip()}"
    return "not from a package"
