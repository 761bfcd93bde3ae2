# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read and check config.json of a Qwen3-TTS checkpoint and of its speech tokenizer.

Nothing comes from defaults of the reference's classes: released files differ from them (number of
code groups, layers, key heads, ids). What is left out there is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError
from ..common.fields import Fields
from ..common.weights import read_json
from .config import (
    ASSISTANT, CODEC_IDS, KINDS, TEXT_IDS, Layers, PredictorConfig, QwenConfig, TalkerConfig,
    VocoderConfig,
)


def read_config(folder: Path) -> QwenConfig:
    """Read and check config.json, generation_config.json and speech_tokenizer/config.json.

    :raises CheckpointError: with the file, the field, what it is and what was expected.
    """
    where = folder / "config.json"
    top = read_json(where)
    if top.get("model_type") != "qwen3_tts":
        raise CheckpointError(
            f"{where}: model_type is {top.get('model_type')!r}: expected qwen3_tts"
        )
    kind = str(top.get("tts_model_type"))
    if kind not in KINDS:
        raise CheckpointError(
            f"{where}: tts_model_type is {kind!r}: expected one of {', '.join(KINDS)}"
        )
    tokenizer = top.get("tokenizer_type")
    if tokenizer != "qwen3_tts_tokenizer_12hz":
        raise CheckpointError(
            f"{where}: tokenizer_type is {tokenizer!r}: expected qwen3_tts_tokenizer_12hz (the one "
            "of 25 Hz has another decoder)"
        )
    fields = Fields(top, str(where))
    talker = fields.section("talker_config")
    predictor = talker.section("code_predictor_config")
    stack = read_stack(talker)
    check_mrope(talker, stack)
    sizes = TalkerConfig(
        stack, talker.whole("vocab_size"), talker.whole("text_vocab_size"),
        talker.whole("text_hidden_size"), talker.whole("max_position_embeddings"),
    )
    groups = talker.whole("num_code_groups", low=2, high=64)
    if predictor.whole("num_code_groups", groups) != groups:
        raise CheckpointError(
            f"{predictor.where}: num_code_groups is {predictor.values['num_code_groups']}, "
            f"talker_config has {groups}: expected the same"
        )
    refuse_sliding(predictor)
    own = PredictorConfig(read_stack(predictor), predictor.whole("vocab_size"), groups)
    vocoder = read_vocoder(folder / "speech_tokenizer" / "config.json", groups)
    if own.codes > vocoder.codes:
        raise CheckpointError(
            f"{predictor.where}: vocab_size is {own.codes}, the codebooks of the speech tokenizer "
            f"have {vocoder.codes} rows: expected no more codes than rows"
        )
    codec = ids(talker, CODEC_IDS, sizes.codes)
    text = ids(fields, TEXT_IDS, sizes.text_rows, {"assistant_token_id": ASSISTANT})
    languages = table(talker, "codec_language_id", sizes.codes)
    if not languages:
        raise CheckpointError(f"{talker.where}: codec_language_id is empty: expected languages")
    speakers = table(talker, "spk_id", sizes.codes) if kind != "voice_design" else {}
    if kind == "custom_voice" and not speakers:
        raise CheckpointError(
            f"{talker.where}: spk_id is empty: expected the speakers of a custom_voice checkpoint "
            "(a checkpoint without any has the tts_model_type base)"
        )
    return QwenConfig(
        kind, sizes, own, vocoder, text, codec, languages, speakers,
        read_dialects(talker, speakers, languages), read_sampling(folder),
    )


def read_stack(fields: Fields) -> Layers:
    """Read the sizes of a stack of layers."""
    if fields.values.get("hidden_act") != "silu":
        raise CheckpointError(
            f"{fields.where}: hidden_act is {fields.values.get('hidden_act')!r}: expected silu"
        )
    width, heads = fields.whole("hidden_size"), fields.whole("num_attention_heads", high=1024)
    kv_heads = fields.whole("num_key_value_heads", high=1024)
    if heads % kv_heads:
        raise CheckpointError(
            f"{fields.where}: num_attention_heads is {heads}, num_key_value_heads {kv_heads}: "
            "expected a multiple"
        )
    head_dim = fields.whole("head_dim", width // heads, low=2, high=1024)
    if head_dim % 2:
        raise CheckpointError(f"{fields.where}: head_dim is {head_dim}: expected an even number")
    return Layers(
        width, fields.whole("intermediate_size"), fields.whole("num_hidden_layers", high=512),
        heads, kv_heads, head_dim,
        float(fields.number("rms_norm_eps", low=1e-12, high=1e-2)),
        float(fields.number("rope_theta", low=1.0, high=1e12)),
        fields.flag("attention_bias", False),
    )


def check_mrope(fields: Fields, stack: Layers) -> None:
    """Refuse positions other than the ones a speech prompt has: three that are always equal."""
    refuse_sliding(fields)
    scaling = fields.values.get("rope_scaling")
    if scaling is None:
        return
    kinds = {scaling.get("type", "default"), scaling.get("rope_type", "default")} if isinstance(
        scaling, Mapping) else {repr(scaling)}
    sections = scaling.get("mrope_section", []) if isinstance(scaling, Mapping) else []
    whole = isinstance(sections, list) and all(type(section) is int for section in sections)
    if kinds != {"default"} or not whole or sum(sections) != stack.head_dim // 2:
        raise CheckpointError(
            f"{fields.where}: rope_scaling is {scaling!r}: expected the type default and "
            f"mrope_section that adds up to {stack.head_dim // 2} (half of head_dim)"
        )


def refuse_sliding(fields: Fields) -> None:
    if fields.values.get("use_sliding_window"):
        raise CheckpointError(
            f"{fields.where}: use_sliding_window is true: expected false, as released"
        )


def read_vocoder(where: Path, groups: int) -> VocoderConfig:
    """Read speech_tokenizer/config.json."""
    top = Fields(read_json(where), str(where))
    if top.values.get("model_type") != "qwen3_tts_tokenizer_12hz":
        raise CheckpointError(
            f"{where}: model_type is {top.values.get('model_type')!r}: expected "
            "qwen3_tts_tokenizer_12hz"
        )
    fields = top.section("decoder_config")
    rates, ratios = whole_list(fields, "upsample_rates"), whole_list(fields, "upsampling_ratios")
    quantizers = fields.whole("num_quantizers")
    if quantizers != groups:
        raise CheckpointError(
            f"{fields.where}: num_quantizers is {quantizers}, the talker makes {groups} codes a "
            "frame: expected the same"
        )
    if fields.whole("num_semantic_quantizers", 1) != 1:
        raise CheckpointError(f"{fields.where}: num_semantic_quantizers: expected 1")
    samples = top.whole("decode_upsample_rate")
    total = 1
    for factor in (*rates, *ratios):
        total *= factor
    if total != samples:
        raise CheckpointError(
            f"{where}: decode_upsample_rate is {samples}, the factors of decoder_config make "
            f"{total}: expected the same"
        )
    projected, channels = fields.whole("codebook_dim", low=2), fields.whole("decoder_dim")
    if projected % 2 or channels % 2 ** len(rates):
        raise CheckpointError(
            f"{fields.where}: codebook_dim is {projected} and decoder_dim {channels}: expected "
            f"multiples of 2 and of {2 ** len(rates)}"
        )
    return VocoderConfig(
        read_stack(fields), fields.whole("sliding_window", low=2, high=4096),
        fields.whole("codebook_size"), quantizers, projected // 2, projected,
        fields.whole("latent_dim"), channels, rates, ratios, top.whole("output_sample_rate"), total,
    )


def whole_list(fields: Fields, name: str) -> tuple[int, ...]:
    values = fields.values.get(name)
    good = isinstance(values, list) and values and all(
        type(v) is int and 1 <= v <= 64 for v in values)
    if not good:
        raise CheckpointError(f"{fields.where}: {name} is {values!r}: expected a list of factors")
    return tuple(values)


def ids(
    fields: Fields, names: Mapping[str, str], rows: int, defaults: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Read ids by our names, each below `rows`."""
    defaults = defaults or {}
    return {
        ours: fields.whole(theirs, defaults.get(theirs), low=0, high=rows - 1)
        for ours, theirs in names.items()
    }


def table(fields: Fields, name: str, rows: int) -> dict[str, int]:
    """Read a mapping of names to ids, each below `rows`."""
    values = fields.values.get(name) or {}
    good = isinstance(values, Mapping) and all(
        type(v) is int and 0 <= v < rows for v in values.values())
    if not good:
        raise CheckpointError(
            f"{fields.where}: {name} is {values!r:.80}: expected names with ids below {rows}"
        )
    return {str(key).lower(): value for key, value in values.items()}


def read_dialects(
    fields: Fields, speakers: Mapping[str, int], languages: Mapping[str, int]
) -> dict[str, str]:
    """Read which speakers speak a dialect, and which."""
    values = fields.values.get("spk_is_dialect") or {}
    if not isinstance(values, Mapping):
        raise CheckpointError(
            f"{fields.where}: spk_is_dialect is {values!r:.80}: expected speakers and dialects"
        )
    found = {str(k).lower(): str(v).lower() for k, v in values.items() if v not in (False, None)}
    for speaker, dialect in found.items():
        if speaker not in speakers or dialect not in languages:
            raise CheckpointError(
                f"{fields.where}: spk_is_dialect says {speaker!r} speaks {dialect!r}: expected one "
                "of spk_id and one of codec_language_id"
            )
    return found


def read_sampling(folder: Path) -> dict[str, Any]:
    """Read how the checkpoint wants to be sampled; the reference's defaults where it says nothing.
    """
    path = folder / "generation_config.json"
    fields = Fields(read_json(path) if path.is_file() else {}, str(path))
    return {
        "top_k": fields.whole("top_k", 50, low=0),
        "top_p": fields.number("top_p", 1.0, low=0, high=1),
        "temperature": fields.number("temperature", 0.9, low=0, high=100),
        "repetition_penalty": fields.number("repetition_penalty", 1.05, low=0.1, high=10),
        "sub_top_k": fields.whole("subtalker_top_k", 50, low=0),
        "sub_top_p": fields.number("subtalker_top_p", 1.0, low=0, high=1),
        "sub_temperature": fields.number("subtalker_temperature", 0.9, low=0, high=100),
        "min_tokens": 2, "max_tokens": fields.whole("max_new_tokens", 4096),
    }
