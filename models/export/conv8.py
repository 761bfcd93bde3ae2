# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The vocoder's convolutions in 8 bits, with ranges of activations that were seen at export.

Convolutions are most of the vocoder's work, and XNNPACK quantises their inputs by fixed ranges
only. The ranges come from a sentence that the checkpoint itself says, drawn as it will be: what it is
used for, and nothing that would have to be fetched. Its transformer stays float32.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from omni_ros.speech.qwen3.prompt import AUTO, PromptIds, Prompts
from omni_ros.speech.qwen3.sampling import Draw, draw, random_source

from ..qwen3_tts.config import VocoderConfig
from ..qwen3_tts.generate import EagerPredictor, EagerTalker, features, rope, window_mask
from ..qwen3_tts.load import (
    QwenCheckpoint, build_predictor, build_talker, codebooks, codec_table, predictor_table,
    text_rows,
)
from ..qwen3_tts.tokenizer import tokenizer_text
from .methods import Method

#: Frames that ranges are taken from; about four seconds.
FRAMES = 48
#: What is said in them, and how its codes are drawn: as released checkpoints draw them.
SAID = "Yes, I can see the red block on the table! Shall I put it into the box, or do you want it?"
SEED, HOW = 1, Draw(temperature=0.9, top_k=50)


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
    """Return codes int64 [groups, frames] of a sentence, drawn as a voice draws them, by one seed."""
    config = checkpoint.config
    source = random_source(SEED)

    def choose(logits: torch.Tensor) -> int:
        return draw(logits.reshape(-1).numpy(), HOW, source)

    codec, tables = codec_table(checkpoint).float(), predictor_table(checkpoint)
    predictor = EagerPredictor(build_predictor(checkpoint), tables, choose)
    prompt, pad = prompt_rows(checkpoint, codec)
    talker = EagerTalker(build_talker(checkpoint), len(prompt) + frames)
    hidden, logits = talker(prompt)
    made = []
    for _ in range(frames):
        first = choose(logits[:config.vocoder.codes])
        made.append([first, *predictor(hidden, codec[first])])
        x = codec[first] + pad
        for group, code in enumerate(made[-1][1:]):
            x = x + tables[group, code].float()
        hidden, logits = talker(x[None])
    return torch.tensor(made).T


def prompt_rows(checkpoint: QwenCheckpoint, codec: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the prompt of the sentence [positions, width], and what goes beside frames, [width].

    In English where the checkpoint has it, by its first speaker if it has any.
    """
    from tokenizers import Tokenizer

    config = checkpoint.config
    tokenizer = Tokenizer.from_str(tokenizer_text(checkpoint.folder))
    text, marks, ids = encode(tokenizer, SAID), config.text_ids, config.codec_ids
    languages = {name.lower(): id_ for name, id_ in config.languages.items()}
    speakers = {name.lower(): id_ for name, id_ in config.speakers.items()}
    named = PromptIds(
        role=(marks["im_start"], marks["assistant"], *encode(tokenizer, "\n")),
        tts_pad=marks["tts_pad"], tts_bos=marks["tts_bos"], tts_eos=marks["tts_eos"],
        think=ids["think"], nothink=ids["nothink"], think_bos=ids["think_bos"],
        think_eos=ids["think_eos"], codec_pad=ids["pad"], codec_bos=ids["bos"],
        languages=languages, speakers=speakers,
        dialects={name.lower(): dialect for name, dialect in config.dialects.items()})
    wanted = {*text, *named.role, named.tts_pad, named.tts_bos, named.tts_eos}
    prompts = Prompts(named, Rows(wanted_rows(checkpoint, wanted)), Rows(codec))
    prompt = prompts.whole(text, "english" if "english" in languages else AUTO,
                           next(iter(speakers), "") if config.kind == "custom_voice" else "")
    return torch.from_numpy(prompt), torch.from_numpy(prompts.pad)


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of a text."""
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


class Rows:
    """Embedding rows by id."""

    def __init__(self, rows: Any) -> None:
        """:param rows: float32 [width] tensors, by id."""
        self._rows = rows

    def rows(self, ids: Sequence[int]) -> np.ndarray:
        return np.stack([self._rows[id_].numpy() for id_ in ids])


def wanted_rows(checkpoint: QwenCheckpoint, wanted: Iterable[int]) -> dict[int, torch.Tensor]:
    """Return text rows by id."""
    left, found, start = sorted(wanted), {}, 0
    for rows in text_rows(checkpoint):
        while left and left[0] < start + len(rows):
            found[left[0]] = rows[left[0] - start]
            left.pop(0)
        start += len(rows)
    return found
