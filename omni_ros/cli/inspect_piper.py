# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni inspect` shows of a Piper voice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def network(manifest: Any) -> Iterable[tuple[str, str]]:
    """Yield what goes in and what comes out.

    :param manifest: an omni_ros.bundles.piper_layout.PiperManifest.
    """
    sound, symbols, drawing = manifest.sound, manifest.symbols, manifest.drawing
    yield "voice", f"{manifest.name} ({manifest.family}), {sound.language}"
    yield "sound", f"{sound.sample_rate} Hz in frames of {sound.frame_samples} samples"
    yield "text", (
        f"phonemes of espeak-ng's voice {symbols.espeak_voice}, {symbols.rows} symbols; programs "
        f"for {_or(manifest.text.sizes)} symbols"
    )
    for part in ("flow", "decoder"):
        windows = getattr(manifest, part)
        yield part, (
            f"windows of {_or(windows.sizes)} frames, {windows.context} of them context on either "
            "side"
        )
    yield "noise", (
        f"{drawing.noise_scale:g} on the sound, {drawing.noise_w:g} on durations, length scale "
        f"{drawing.length_scale:g}"
    )
    licence = manifest.licence
    yield "licence", (
        f"data {licence.data}; {licence.package}; {licence.note} ({licence.file} has the maker's "
        "words)"
    )


def _or(sizes: Iterable[int]) -> str:
    return " or ".join(map(str, sizes))
