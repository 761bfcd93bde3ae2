# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tiny checkpoint with the reference's results, read with numpy alone."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.speech.qwen3.prompt import PromptIds, Prompts

ORACLE = Path(__file__).resolve().parents[2] / "data" / "oracles" / "qwen3_tts_given"


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a float16 safetensors file, as float32."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F16"
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            values = np.frombuffer(data[start:end], np.float16).reshape(entry["shape"])
            found[name] = values.astype(np.float32)
    return found


@dataclass
class ArrayTable:
    table: np.ndarray

    def rows(self, ids) -> np.ndarray:
        return self.table[list(ids)]


@pytest.fixture(scope="session")
def oracle() -> SimpleNamespace:
    """`cases`: what the reference made, by number; `config` and `tensors` of the checkpoint."""
    if not ORACLE.is_dir():
        pytest.skip(f"{ORACLE} is not there")
    return SimpleNamespace(
        checkpoint=ORACLE / "ckpt",
        cases=[dict(np.load(path)) for path in sorted(ORACLE.glob("case*.npz"))],
        config=json.loads((ORACLE / "ckpt" / "config.json").read_text()),
        tensors=read_tensors(ORACLE / "ckpt" / "model.safetensors"),
    )


@pytest.fixture(scope="session")
def prompts(oracle) -> Prompts:
    config, talker, tensors = oracle.config, oracle.config["talker_config"], oracle.tensors
    ids = PromptIds(
        role=(config["im_start_token_id"], config["assistant_token_id"], 10),
        tts_pad=config["tts_pad_token_id"],
        tts_bos=config["tts_bos_token_id"],
        tts_eos=config["tts_eos_token_id"],
        think=talker["codec_think_id"],
        nothink=talker["codec_nothink_id"],
        think_bos=talker["codec_think_bos_id"],
        think_eos=talker["codec_think_eos_id"],
        codec_pad=talker["codec_pad_id"],
        codec_bos=talker["codec_bos_id"],
        languages=talker["codec_language_id"] | {"beijing_dialect": 2074},
        speakers=talker["spk_id"] | {"dylan": 2878},
        dialects={"dylan": "beijing_dialect"},
    )
    projected = tensors["talker.model.text_embedding.weight"]
    for number in ("1", "2"):
        weight = tensors[f"talker.text_projection.linear_fc{number}.weight"]
        projected = projected @ weight.T + tensors[f"talker.text_projection.linear_fc{number}.bias"]
        if number == "1":
            projected = projected / (1 + np.exp(-projected))
    codec = tensors["talker.model.codec_embedding.weight"]
    return Prompts(ids, ArrayTable(projected), ArrayTable(codec))
