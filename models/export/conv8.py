# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The vocoder's convolutions in 8 bits, with ranges of activations that were seen at export.

Convolutions are most of the vocoder's work, and XNNPACK quantises their inputs by fixed ranges
only. The ranges come from frames that the checkpoint itself says, greedily: what it will be used
for, and nothing that would have to be fetched. Its transformer stays float32.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Mapping

import torch

from ..qwen3_tts.config import VocoderConfig
from ..qwen3_tts.generate import EagerPredictor, EagerTalker, features, rope, window_mask
from ..qwen3_tts.load import (
    QwenCheckpoint, build_predictor, build_talker, codebooks, codec_table, predictor_table,
    text_rows,
)
from .methods import Method

#: Frames that ranges are taken from; about three seconds.
FRAMES = 36


class Quantiser:
    """Vocoder methods and what the checkpoint says."""

    def __init__(self, methods: Mapping[str, Method], checkpoint: QwenCheckpoint) -> None:
        """:param methods: vocoder_N in float32; they are not changed."""
        rows = features(codebooks(checkpoint), spoken(checkpoint, FRAMES))
        self._seen = {
            name: seen(method, checkpoint.config.vocoder, rows) for name, method in methods.items()
        }
        #: The same, with the last of those frames as golden vectors: noise is beyond the ranges.
        self.methods = {
            name: dataclasses.replace(method, golden=self._seen[name][0])
            for name, method in methods.items()
        }

    def quantised(self) -> dict[str, Method]:
        """Return the methods with their convolutions quantised."""
        return {name: quantise(method, self._seen[name][1])
                for name, method in self.methods.items()}


def quantise(method: Method, inputs: list[tuple[torch.Tensor, ...]]) -> Method:
    """Return a method whose convolutions have seen these inputs."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer, get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    how = get_symmetric_quantization_config(is_per_channel=True)
    quantizer = XNNPACKQuantizer().set_global(how)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        exported = torch.export.export(method.module.decoder, inputs[0], strict=False)
        observed = prepare_pt2e(exported.module(), quantizer)
        for values in inputs:
            observed(*values)
        # A copy that shares all but this part: other methods have theirs for other lengths.
        module = copy.copy(method.module)
        module._modules = {**module._modules, "decoder": Converted(convert_pt2e(observed))}
        return dataclasses.replace(method, module=module)


def seen(
    method: Method, config: VocoderConfig, rows: torch.Tensor
) -> tuple[tuple[torch.Tensor, ...], list[tuple[torch.Tensor, ...]]]:
    """Voice rows, n frames at a time; return the last inputs, and all that the convolutions saw."""
    n, found = method.examples[0].shape[0], []
    hook = method.module.decoder.register_forward_pre_hook(
        lambda module, inputs: found.append(tuple(value.clone() for value in inputs)))
    states = [torch.zeros_like(value) for value in method.examples[4:]]
    try:
        for start in range(0, len(rows) - n + 1, n):
            cos, sin = rope(torch.arange(start, start + n), config.stack.head_dim,
                            config.stack.rope_base)
            last = (rows[start:start + n].clone(), cos, sin,
                    window_mask(n, start, config.window), *states)
            with torch.no_grad():
                _, *states = method.module(*last)
            states = [value.clone() for value in states]
    finally:
        hook.remove()
    return last, found


class Converted(torch.nn.Module):
    """A converted graph. Those refuse eval(), which lowering calls on what it is given."""

    def __init__(self, converted: torch.nn.Module) -> None:
        super().__init__()
        self.converted = converted

    def train(self, mode: bool = True) -> Converted:
        return self

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.converted(*inputs))


def spoken(checkpoint: QwenCheckpoint, frames: int) -> torch.Tensor:
    """Return codes int64 [groups, frames] that the checkpoint says greedily, from an empty text."""
    config = checkpoint.config
    codec, ids = codec_table(checkpoint).float(), config.codec_ids
    tables = predictor_table(checkpoint)
    predictor = EagerPredictor(build_predictor(checkpoint), tables)
    talker = EagerTalker(build_talker(checkpoint), frames + 8)
    text = wanted_rows(checkpoint)
    language = next(iter(config.languages.values()))
    head = [ids["think"], ids["think_bos"], language, ids["think_eos"], ids["pad"], ids["bos"]]
    beside = [text["tts_pad"]] * 4 + [text["tts_bos"], text["tts_pad"]]
    prompt = [row + codec[code] for row, code in zip(beside, head, strict=True)]
    hidden, logits = talker(torch.stack(prompt))
    made = []
    for _ in range(frames):
        first = int(logits[:config.vocoder.codes].argmax())
        made.append([first, *predictor(hidden, codec[first])])
        x = codec[first] + text["tts_pad"]
        for group, code in enumerate(made[-1][1:]):
            x = x + tables[group, code].float()
        hidden, logits = talker(x[None])
    return torch.tensor(made).T


def wanted_rows(checkpoint: QwenCheckpoint) -> dict[str, torch.Tensor]:
    """Return the text rows of the marks by name."""
    wanted = {name: checkpoint.config.text_ids[name] for name in ("tts_pad", "tts_bos")}
    found, start = {}, 0
    for rows in text_rows(checkpoint):
        for name, id_ in wanted.items():
            if start <= id_ < start + len(rows):
                found[name] = rows[id_ - start]
        start += len(rows)
    return found
