# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a released checkpoint become which parameter of ours, and of what shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .config import Layers, PredictorConfig, QwenConfig, TalkerConfig, VocoderConfig

TEXT_TABLE = "talker.model.text_embedding.weight"
CODEC_TABLE = "talker.model.codec_embedding.weight"
PREDICTOR = "talker.code_predictor"
QUANTIZER = "decoder.quantizer"
#: What belongs to a checkpoint, and no part of what speaks: cloning a voice, making codes of sound.
UNUSED = ("speaker_encoder.", "encoder.")


@dataclass(frozen=True)
class Part:
    """A tensor of the checkpoint and its shape."""

    key: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """A parameter of ours: parts put together along their first dimension, then changed."""

    name: str
    parts: tuple[Part, ...]
    change: Callable[[torch.Tensor], torch.Tensor] | None = None


def linear(key: str, name: str, out: int, given: int, *, bias: bool) -> Iterator[Target]:
    yield Target(f"{name}.weight", (Part(f"{key}.weight", (out, given)),))
    if bias:
        yield Target(f"{name}.bias", (Part(f"{key}.bias", (out,)),))


def vector(key: str, name: str, width: int) -> Target:
    return Target(name, (Part(key, (width,)),))


def packed(
    keys: list[tuple[str, int]], name: str, given: int, *, bias: bool
) -> Iterator[Target]:
    yield Target(f"{name}.weight", tuple(Part(f"{key}.weight", (n, given)) for key, n in keys))
    if bias:
        yield Target(f"{name}.bias", tuple(Part(f"{key}.bias", (n,)) for key, n in keys))


def stack(key: str, name: str, sizes: Layers) -> Iterator[Target]:
    """Layers of talker or predictor, and the norm behind them."""
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    for index in range(sizes.layers):
        here, ours = f"{key}.layers.{index}", f"{name}.layers.{index}"
        own = f"{here}.self_attn"
        yield vector(f"{here}.input_layernorm.weight", f"{ours}.attention_norm.weight", sizes.width)
        yield from packed(
            [(f"{own}.q_proj", queries), (f"{own}.k_proj", keys), (f"{own}.v_proj", keys)],
            f"{ours}.attention.qkv", sizes.width, bias=sizes.bias,
        )
        for norm in ("q_norm", "k_norm"):
            yield vector(f"{own}.{norm}.weight", f"{ours}.attention.{norm}.weight", sizes.head_dim)
        yield from linear(f"{own}.o_proj", f"{ours}.attention.out", sizes.width, queries,
                          bias=sizes.bias)
        yield vector(f"{here}.post_attention_layernorm.weight", f"{ours}.mlp_norm.weight",
                     sizes.width)
        yield from packed(
            [(f"{here}.mlp.gate_proj", sizes.mlp), (f"{here}.mlp.up_proj", sizes.mlp)],
            f"{ours}.mlp.gate_up", sizes.width, bias=False,
        )
        yield from linear(f"{here}.mlp.down_proj", f"{ours}.mlp.down", sizes.width, sizes.mlp,
                          bias=False)
    yield vector(f"{key}.norm.weight", f"{name}.norm.weight", sizes.width)


def talker(config: TalkerConfig) -> Iterator[Target]:
    yield from stack("talker.model", "stack", config.stack)
    yield from linear("talker.codec_head", "head", config.codes, config.stack.width, bias=False)


def predictor(config: PredictorConfig, given: int) -> Iterator[Target]:
    width = config.stack.width
    if given != width:
        yield from linear(f"{PREDICTOR}.small_to_mtp_projection", "project", width, given,
                          bias=True)
    yield from stack(f"{PREDICTOR}.model", "stack", config.stack)
    for group in range(config.groups - 1):
        yield from linear(f"{PREDICTOR}.lm_head.{group}", f"heads.{group}", config.codes, width,
                          bias=False)


def tables(config: QwenConfig) -> Iterator[Target]:
    """Tables and the projection of the text's, by names of ours."""
    sizes, width = config.talker, config.talker.stack.width
    yield Target("text", (Part(TEXT_TABLE, (sizes.text_rows, sizes.text_width)),))
    yield Target("codec", (Part(CODEC_TABLE, (sizes.codes, width)),))
    for group in range(config.predictor.groups - 1):
        yield Target(f"predictor.{group}", (Part(
            f"{PREDICTOR}.model.codec_embedding.{group}.weight", (config.predictor.codes, width)),))
    for ours, out in (("1", sizes.text_width), ("2", width)):
        yield from linear(f"talker.text_projection.linear_fc{ours}", f"project_{ours}", out,
                          sizes.text_width, bias=True)


def snake(key: str, name: str, channels: int) -> Iterator[Target]:
    yield Target(f"{name}.a", (Part(f"{key}.alpha", (channels,)),),
                 lambda t: torch.exp(t)[None, :, None])
    yield Target(f"{name}.inverse_b", (Part(f"{key}.beta", (channels,)),),
                 lambda t: (1.0 / (torch.exp(t) + 1e-9))[None, :, None])


def conv(key: str, name: str, *shape: int, bias: int) -> Iterator[Target]:
    yield Target(f"{name}.weight", (Part(f"{key}.weight", shape),))
    yield Target(f"{name}.bias", (Part(f"{key}.bias", (bias,)),))


def vocoder(config: VocoderConfig) -> Iterator[Target]:
    yield from quantizer_projections(config)
    latent, sizes = config.latent, config.stack
    yield from conv("decoder.pre_conv.conv", "pre_conv.conv", latent, config.projected, 3,
                    bias=latent)
    yield from pre_transformer(sizes, latent)
    parts = 0
    for index, ratio in enumerate(config.ratios):
        here = f"decoder.upsample.{index}"
        yield from conv(f"{here}.0.conv", f"decoder.parts.{parts}", latent, latent, ratio,
                        bias=latent)
        ours = f"decoder.parts.{parts + 1}"
        yield from conv(f"{here}.1.dwconv.conv", f"{ours}.mix.conv", latent, 1, 7, bias=latent)
        yield vector(f"{here}.1.norm.weight", f"{ours}.norm.weight", latent)
        yield vector(f"{here}.1.norm.bias", f"{ours}.norm.bias", latent)
        yield from linear(f"{here}.1.pwconv1", f"{ours}.up", 4 * latent, latent, bias=True)
        yield from linear(f"{here}.1.pwconv2", f"{ours}.down", latent, 4 * latent, bias=True)
        yield vector(f"{here}.1.gamma", f"{ours}.gamma", latent)
        parts += 2
    channels = config.channels
    yield from conv("decoder.decoder.0.conv", f"decoder.parts.{parts}.conv", channels, latent, 7,
                    bias=channels)
    parts += 1
    for index, rate in enumerate(config.rates):
        here, half = f"decoder.decoder.{index + 1}.block", channels // 2
        yield from snake(f"{here}.0", f"decoder.parts.{parts}", channels)
        yield from conv(f"{here}.1.conv", f"decoder.parts.{parts + 1}.conv", channels, half,
                        2 * rate, bias=half)
        for unit in range(3):
            ours, theirs = f"decoder.parts.{parts + 2 + unit}", f"{here}.{unit + 2}"
            yield from snake(f"{theirs}.act1", f"{ours}.snake_1", half)
            yield from conv(f"{theirs}.conv1.conv", f"{ours}.conv_1.conv", half, half, 7, bias=half)
            yield from snake(f"{theirs}.act2", f"{ours}.snake_2", half)
            yield from conv(f"{theirs}.conv2.conv", f"{ours}.conv_2", half, half, 1, bias=half)
        parts, channels = parts + 5, half
    last = len(config.rates) + 1
    yield from snake(f"decoder.decoder.{last}", f"decoder.parts.{parts}", channels)
    yield from conv(f"decoder.decoder.{last + 1}.conv", f"decoder.parts.{parts + 1}.conv", 1,
                    channels, 7, bias=1)


def quantizer_projections(config: VocoderConfig) -> Iterator[Target]:
    for ours in ("first", "rest"):
        yield Target(
            f"{ours}.weight",
            (Part(f"{QUANTIZER}.rvq_{ours}.output_proj.weight",
                  (config.projected, config.codebook_dim, 1)),),
            lambda t: t[:, :, 0],
        )


def pre_transformer(sizes: Layers, latent: int) -> Iterator[Target]:
    key = "decoder.pre_transformer"
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    yield from linear(f"{key}.input_proj", "into", sizes.width, latent, bias=True)
    for index in range(sizes.layers):
        here, ours = f"{key}.layers.{index}", f"layers.{index}"
        for theirs, name, out in (("q", "q", queries), ("k", "k", keys), ("v", "v", keys)):
            yield from linear(f"{here}.self_attn.{theirs}_proj", f"{ours}.{name}", out, sizes.width,
                              bias=sizes.bias)
        yield from linear(f"{here}.self_attn.o_proj", f"{ours}.out", sizes.width, queries,
                          bias=sizes.bias)
        for theirs, name in (("input_layernorm.weight", "attention_norm.weight"),
                             ("post_attention_layernorm.weight", "mlp_norm.weight"),
                             ("self_attn_layer_scale.scale", "attention_scale"),
                             ("mlp_layer_scale.scale", "mlp_scale")):
            yield vector(f"{here}.{theirs}", f"{ours}.{name}", sizes.width)
        for name, out, given in (("gate", sizes.mlp, sizes.width), ("up", sizes.mlp, sizes.width),
                                 ("down", sizes.width, sizes.mlp)):
            yield from linear(f"{here}.mlp.{name}_proj", f"{ours}.mlp.{name}", out, given,
                              bias=False)
    yield vector(f"{key}.norm.weight", "norm.weight", sizes.width)
    yield from linear(f"{key}.output_proj", "out_of", latent, sizes.width, bias=True)


def codebooks(config: VocoderConfig) -> Iterator[tuple[Part, Part]]:
    """Yield sums and counts of each codebook in order: a row is its sum by its count."""
    for index in range(config.groups):
        where = "rvq_first.vq.layers.0" if index == 0 else f"rvq_rest.vq.layers.{index - 1}"
        key = f"{QUANTIZER}.{where}._codebook"
        yield (Part(f"{key}.embedding_sum", (config.codes, config.codebook_dim)),
               Part(f"{key}.cluster_usage", (config.codes,)))


def inputs_of_quantizer(config: VocoderConfig) -> Iterator[Part]:
    """What only making codes of sound needs, and is saved beside."""
    for ours in ("first", "rest"):
        yield Part(f"{QUANTIZER}.rvq_{ours}.input_proj.weight",
                   (config.codebook_dim, config.projected, 1))


def talker_file(config: QwenConfig) -> Iterator[Part]:
    """All tensors of model.safetensors that speaking needs."""
    width = config.talker.stack.width
    for targets in (talker(config.talker), predictor(config.predictor, width), tables(config)):
        for target in targets:
            yield from target.parts


def vocoder_file(config: VocoderConfig) -> Iterator[Part]:
    """All tensors of speech_tokenizer/model.safetensors that speaking needs."""
    for target in vocoder(config):
        yield from target.parts
    for pair in codebooks(config):
        yield from pair
