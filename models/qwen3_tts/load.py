# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read a released Qwen3-TTS checkpoint: strictly, and one network's weights at a time.

    DIR/config.json, model.safetensors (or shards), vocab.json, merges.txt, tokenizer_config.json
    DIR/speech_tokenizer/config.json, model.safetensors
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..common.errors import CheckpointError, listed
from ..common.weights import Weights
from . import keys
from .config import QwenConfig
from .read_config import read_config
from .talker import Predictor, Talker
from .vocoder import Vocoder

#: Rows of the text table that are projected together.
_ROWS = 4096


@dataclass(frozen=True)
class QwenCheckpoint:
    """A checkpoint that was checked: names, shapes, sizes, ids. No weights are in memory."""

    folder: Path
    config: QwenConfig
    speech: Weights
    sound: Weights

    @property
    def files(self) -> list[Path]:
        """Files that were read."""
        names = ("config.json", "generation_config.json", "speech_tokenizer/config.json")
        found = [self.folder / name for name in names if (self.folder / name).is_file()]
        return [*found, *self.speech.files, *self.sound.files]


def load_checkpoint(folder: Path | str) -> QwenCheckpoint:
    """Open a checkpoint and check all that it says before a weight is read.

    :raises CheckpointError: the file and what is odd about it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder: expected a Qwen3-TTS checkpoint")
    config = read_config(folder)
    speech, sound = Weights(folder), Weights(folder / "speech_tokenizer")
    speech.refuse_adapters_inside()
    check(speech, keys.talker_file(config))
    check(sound, keys.vocoder_file(config.vocoder), also=keys.inputs_of_quantizer(config.vocoder))
    return QwenCheckpoint(folder, config, speech, sound)


def check(weights: Weights, wanted: Iterable[keys.Part], also: Iterable[keys.Part] = ()) -> None:
    """Refuse tensors that are missing, of another shape, or of no known use."""
    shapes = {part.key: part.shape for part in wanted}
    missing = [key for key in shapes if key not in weights.names]
    if missing:
        raise CheckpointError(
            f"{weights.folder}: {len(missing)} tensors are missing: {listed(missing, 3)}; fetch "
            "all of its files, or correct the sizes in config.json"
        )
    known = {**shapes, **{part.key: part.shape for part in also}}
    for key, shape in known.items():
        found = weights.names.get(key, shape)
        if found != shape:
            raise CheckpointError(
                f"{weights.folder}: {key} has the shape {list(found)}: by config.json it has to be "
                f"{list(shape)}"
            )
    odd = [name for name in weights.names
           if name not in known and not name.startswith(keys.UNUSED)]
    if odd:
        raise CheckpointError(
            f"{weights.folder}: {len(odd)} tensors are of no known use: {listed(odd, 3)}; expected "
            "a checkpoint as released (merge adapters, leave out the optimiser)"
        )


def fill(module: nn.Module, weights: Weights, targets: Iterable[keys.Target]) -> nn.Module:
    """Give a module on no device its parameters."""
    state = {}
    for target in targets:
        parts = [weights.get(part.key) for part in target.parts]
        for part, values in zip(target.parts, parts, strict=True):
            refuse_not_finite(part.key, values, weights)
        tensor = torch.cat(parts) if len(parts) > 1 else parts[0]
        state[target.name] = tensor if target.change is None else target.change(tensor)
    module.load_state_dict(state, strict=True, assign=True)
    return module.eval().requires_grad_(False)


def refuse_not_finite(key: str, values: torch.Tensor, weights: Weights) -> None:
    if not torch.isfinite(values).all():
        raise CheckpointError(
            f"{weights.folder}: {key} holds values that are not finite; fetch it again, or the "
            "training went wrong"
        )


def build_talker(checkpoint: QwenCheckpoint) -> Talker:
    """Return the talker with its weights."""
    with torch.device("meta"):
        module = Talker(checkpoint.config.talker)
    return fill(module, checkpoint.speech, keys.talker(checkpoint.config.talker))


def build_predictor(checkpoint: QwenCheckpoint) -> Predictor:
    """Return the code predictor with its weights."""
    config, width = checkpoint.config.predictor, checkpoint.config.talker.stack.width
    with torch.device("meta"):
        module = Predictor(config, width)
    return fill(module, checkpoint.speech, keys.predictor(config, width))


def build_vocoder(checkpoint: QwenCheckpoint) -> Vocoder:
    """Return the vocoder with its weights."""
    with torch.device("meta"):
        module = Vocoder(checkpoint.config.vocoder)
    return fill(module, checkpoint.sound, keys.vocoder(checkpoint.config.vocoder))


def codebooks(checkpoint: QwenCheckpoint) -> torch.Tensor:
    """Return the rows of all codebooks, float32 [groups, codes, row]."""
    tables = []
    for sums, counts in keys.codebooks(checkpoint.config.vocoder):
        usage = checkpoint.sound.get(counts.key).clamp(min=1e-5)
        tables.append(checkpoint.sound.get(sums.key) / usage[:, None])
        refuse_not_finite(sums.key, tables[-1], checkpoint.sound)
    return torch.stack(tables)


def text_rows(checkpoint: QwenCheckpoint) -> Iterator[torch.Tensor]:
    """Yield the text table as the talker sees it, float32 [some rows, talker's width] at a time."""
    weights = checkpoint.speech
    project = [
        (weights.get(f"talker.text_projection.linear_fc{n}.weight"),
         weights.get(f"talker.text_projection.linear_fc{n}.bias"))
        for n in (1, 2)
    ]
    table = weights.raw(keys.TEXT_TABLE)
    for start in range(0, table.shape[0], _ROWS):
        rows = table[start:start + _ROWS].float()
        rows = F.linear(F.silu(F.linear(rows, *project[0])), *project[1])
        refuse_not_finite(keys.TEXT_TABLE, rows, weights)
        yield rows


def codec_table(checkpoint: QwenCheckpoint) -> torch.Tensor:
    """Return the table of the talker's codes in the file's dtype, [codes, talker's width]."""
    return checkpoint.speech.table(keys.CODEC_TABLE)


def predictor_table(checkpoint: QwenCheckpoint) -> torch.Tensor:
    """Return the tables of the other codes, in the file's dtype, [groups - 1, codes, width]."""
    return torch.stack([
        checkpoint.speech.table(f"{keys.PREDICTOR}.model.codec_embedding.{group}.weight")
        for group in range(checkpoint.config.predictor.groups - 1)
    ])
