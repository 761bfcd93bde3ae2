# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A Piper voice's bundle against what onnxruntime made of the same voice, tensor by tensor.

A reference set holds, for some phrases, the symbols, the noise that was drawn and every tensor of
note; see tests/data/oracles/piper_joe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles import BundleError, open_bundle
from omni_ros.bundles.piper_layout import read_symbols, read_table
from omni_ros.parity.rows import FLOAT32, Row, compare
from omni_ros.programs import set_threads
from omni_ros.speech.piper_text import SymbolTable, TextEncoder, frames_of
from omni_ros.speech.piper_windows import ClauseSound, Decoder, Flow

FAMILY = "piper"
#: Sizes of differences against those of the reference. Float32 in another order of summing makes
#: 2e-6 in the flow, and 6e-5 in the samples, which come through 30 convolutions behind it.
FLOW, SAMPLES = 1e-5, 3e-4


def is_reference(folder: Path) -> bool:
    """Whether a folder holds a reference set of a voice."""
    try:
        facts = json.loads((folder / "arch.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.get("family") == FAMILY


def measure(bundle: Path, folder: Path, threads: int) -> dict[str, Any]:
    """Return bundle, recipes, who recorded, and the rows.

    :raises ValueError: no reference, or a bundle that is none of a Piper voice.
    """
    facts = json.loads((folder / "arch.json").read_text(encoding="utf-8"))
    try:
        with np.load(folder / "reference.npz", allow_pickle=False) as stored:
            tensors = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / 'reference.npz'}: cannot be read ({error})") from None
    set_threads(threads)
    opened = open_bundle(bundle)
    if opened.manifest.family != FAMILY:
        raise BundleError(f"{bundle} is of the family {opened.manifest.family}; the reference is "
                          f"of a {FAMILY} voice")
    manifest = opened.manifest
    parts = {part: {n: opened.load(f"{part}_{n}") for n in getattr(manifest, part).sizes}
             for part in ("text", "flow", "decoder")}
    table = SymbolTable(read_symbols(opened), np.array(read_table(opened)), manifest.text.sizes[-1])
    encoder, flow = TextEncoder(parts["text"]), Flow(parts["flow"], manifest.flow.context)
    decoder = Decoder(parts["decoder"], manifest.decoder.context, manifest.sound.frame_samples)
    rows: list[Row] = []
    for case, about in facts["cases"].items():
        given = {name.partition(".")[2]: values for name, values in tensors.items()
                 if name.partition(".")[0] == case}
        rows += _case(case, about["phonemes"], given, table, encoder, flow, decoder)
    return {
        "bundle": manifest.name, "rows": rows, "recorded_by": facts["recorded_by"],
        "recipes": {name: entry.recipe for name, entry in manifest.programs.items()},
    }


def _case(
    case: str, phonemes: str, given: Mapping[str, np.ndarray], table: SymbolTable,
    encoder: TextEncoder, flow: Flow, decoder: Decoder,
) -> list[Row]:
    noise_scale, length, noise_w = map(float, given["scales"])
    mean, spread, durations = encoder.encode(
        table.symbols(phonemes), given["duration_noise"][0].T * noise_w
    )
    frames = given["frames"].reshape(-1).astype(int)
    rows = [
        compare(f"{case}: mean", mean, given["mean"][0].T, FLOAT32),
        compare(f"{case}: log_spread", np.log(spread), given["log_spread"][0].T, FLOAT32),
        compare(f"{case}: durations", frames_of(durations, length, 0), frames, 0.0),
    ]
    # From here on with the reference's durations, so that one frame more is one row's fault.
    drawn = np.repeat(mean, frames, axis=0)
    drawn = drawn + given["noise"][0].T * np.repeat(spread, frames, axis=0) * noise_scale
    drawn = np.ascontiguousarray(drawn.T, np.float32)
    sound = ClauseSound(drawn, flow, decoder)
    made = []
    while not sound.over:
        samples = None
        for samples in sound.steps(decoder.sizes[-1], {}):
            pass
        made.append(samples)
    rows.append(compare(f"{case}: flow", sound.frames, given["decoder_input"][0], FLOW,
                        relative=True))
    rows.append(compare(f"{case}: samples", np.concatenate(made), given["samples"], SAMPLES,
                        relative=True))
    return rows
