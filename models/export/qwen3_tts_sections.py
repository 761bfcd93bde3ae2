# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a Qwen3-TTS bundle has beside its programs: tables, and the manifest's own part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omni_ros.bundles import qwen3_tts as bundle_layout

from ..qwen3_tts import load
from ..qwen3_tts.config import Layers
from .qwen3_tts_parts import Shape

TOKENIZER = "tokenizer.json"
TABLES = {name: f"{name}.npy" for name in ("text", "codec", "predictor", "codebooks")}


def write_tables(checkpoint: load.QwenCheckpoint, folder: Path) -> None:
    """Write the tables, the text's a few rows at a time."""
    config = checkpoint.config
    shape = (config.talker.text_rows, config.talker.stack.width)
    table = np.lib.format.open_memmap(folder / TABLES["text"], mode="w+", dtype=np.float32,
                                      shape=shape)
    start = 0
    for rows in load.text_rows(checkpoint):
        table[start:start + len(rows)] = rows.numpy()
        start += len(rows)
    table.flush()
    del table
    for name, values in (("codec", load.codec_table(checkpoint)),
                         ("predictor", load.predictor_table(checkpoint)),
                         ("codebooks", load.codebooks(checkpoint))):
        rows = values.reshape(-1, values.shape[-1]).float().numpy()
        np.save(folder / TABLES[name], np.ascontiguousarray(rows))


def speech_section(
    checkpoint: load.QwenCheckpoint, shape: Shape, gguf: Mapping[str, str]
) -> bundle_layout.Speech:
    """Return the manifest's description of the network."""
    config = checkpoint.config
    talker, predictor, vocoder = config.talker, config.predictor, config.vocoder
    with torch.device("meta"):
        tails = load.Vocoder(vocoder).tails

    def sizes(stack: Layers, *names: str) -> dict[str, Any]:
        return {name: getattr(stack, name) for name in names}

    common = ("layers", "kv_heads", "head_dim", "rope_base")
    return bundle_layout.Speech(
        kind=config.kind,
        talker=bundle_layout.TalkerSizes(
            **sizes(talker.stack, "width", "heads", *common), codes=talker.codes,
            contexts=shape.contexts, prefill=shape.prefill, limit=talker.positions,
        ),
        predictor=bundle_layout.PredictorSizes(
            **sizes(predictor.stack, "width", "heads", *common), codes=predictor.codes,
            groups=predictor.groups,
        ),
        vocoder=bundle_layout.VocoderSizes(
            **sizes(vocoder.stack, *common), codes=vocoder.codes, row=vocoder.codebook_dim,
            window=vocoder.window, chunks=shape.chunks, tails=tuple(c for c, _ in tails),
            lengths=tuple(n for _, n in tails),
        ),
        text_ids=bundle_layout.TextIds(**config.text_ids),
        codec_ids=bundle_layout.CodecIds(**config.codec_ids),
        languages=dict(config.languages), speakers=dict(config.speakers),
        dialects=dict(config.dialects), sampling=bundle_layout.Sampling(**config.sampling),
        gguf=dict(gguf),
    )
