# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which tensor of a π0 or π0.5 checkpoint becomes which parameter of ours, and of what shape.

Files name the same tensors in several ways; `canonical` brings all to LeRobot's of today.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..common.errors import CheckpointError
from ..common.keys import Entry, gated_mlp, linear, norm, siglip
from .config import Pi0Config

PAIR = "model.paligemma_with_expert"
PALIGEMMA = f"{PAIR}.paligemma"
VISION = f"{PALIGEMMA}.model.vision_tower.vision_model"
PROJECTOR = f"{PALIGEMMA}.model.multi_modal_projector.linear"
TEXT = f"{PALIGEMMA}.model.language_model"
TOKENS = f"{TEXT}.embed_tokens.weight"
#: Tied to the token table: files have either, or both.
TOKENS_TIED = f"{PALIGEMMA}.lm_head.weight"
EXPERT = f"{PAIR}.gemma_expert.model"
#: Marks π0.5: its norms are set by time.
ADAPTIVE = f"{EXPERT}.layers.0.input_layernorm.dense.weight"

#: transformers before 4.52 nested otherwise.
OLD_NESTING = (
    (f"{PALIGEMMA}.vision_tower.", f"{PALIGEMMA}.model.vision_tower."),
    (f"{PALIGEMMA}.multi_modal_projector.", f"{PALIGEMMA}.model.multi_modal_projector."),
    (f"{PALIGEMMA}.language_model.model.", f"{TEXT}."),
    (f"{PALIGEMMA}.language_model.lm_head.", f"{PALIGEMMA}.lm_head."),
)


def canonical(names: Iterable[str], *, adaptive: bool) -> dict[str, str]:
    """Map names as LeRobot writes them today to those of a file.

    :raises CheckpointError: two names of the file mean the same tensor.
    """
    names = list(names)
    bare = not any(name.startswith("model.") for name in names)
    wrong, right = ("action_time_mlp_", "time_mlp_") if adaptive else (
        "time_mlp_", "action_time_mlp_")
    found: dict[str, str] = {}
    for name in names:
        plain = f"model.{name}" if bare else name
        for old, new in OLD_NESTING:
            if plain.startswith(old):
                plain = new + plain.removeprefix(old)
        if plain.startswith(f"model.{wrong}"):
            plain = f"model.{right}{plain.removeprefix(f'model.{wrong}')}"
        if plain in found:
            raise CheckpointError(
                f"{found[plain]} and {name} are both {plain}: expected one of them; remove the "
                "other, or save the policy again"
            )
        found[plain] = name
    return found


def is_adaptive(names: Iterable[str]) -> bool:
    """Whether a file's names are those of a π0.5."""
    return any(name.endswith("layers.0.input_layernorm.dense.weight") for name in names)


def entries(config: Pi0Config) -> Iterator[Entry]:
    """Yield every tensor that is used, but the token table, which is no parameter."""
    yield from siglip(VISION, "vision_encoder", config.vision)
    yield from linear(PROJECTOR, "vision_encoder.connector", config.text.width,
                      config.vision.width, bias=True)
    yield from text_entries(config)
    yield from expert_entries(config)


def text_entries(config: Pi0Config) -> Iterator[Entry]:
    text = config.text
    heads, width = text.heads * text.head_dim, text.width
    for index in range(text.layers):
        key, target = f"{TEXT}.layers.{index}", f"fusion_backbone.layers.{index}"
        yield from norm(f"{key}.input_layernorm", f"{target}.attention_norm", width, plus=1.0)
        for name in ("k", "v"):
            yield from linear(f"{key}.self_attn.{name}_proj", f"{target}.{name}", text.kv_width,
                              width, bias=False)
        if index == text.layers - 1:
            break  # its keys and values are all that is read
        yield from linear(f"{key}.self_attn.q_proj", f"{target}.q", heads, width, bias=False)
        yield from linear(f"{key}.self_attn.o_proj", f"{target}.o", width, heads, bias=False)
        yield from norm(f"{key}.post_attention_layernorm", f"{target}.mlp_norm", width, plus=1.0)
        yield from gated_mlp(f"{key}.mlp", f"{target}.mlp", width, text.mlp)


def expert_entries(config: Pi0Config) -> Iterator[Entry]:
    text, width, ours = config.text, config.expert_width, "action_head"
    heads = text.heads * text.head_dim
    yield from linear("model.action_in_proj", f"{ours}.action_in", width, config.max_action,
                      bias=True)
    yield from linear("model.action_out_proj", f"{ours}.action_out", config.max_action, width,
                      bias=True)
    if config.adaptive:
        yield from linear("model.time_mlp_in", f"{ours}.time_in", width, width, bias=True)
        yield from linear("model.time_mlp_out", f"{ours}.time_out", width, width, bias=True)
    else:
        yield from linear("model.state_proj", f"{ours}.state_proj", width, config.max_state,
                          bias=True)
        yield Entry("model.action_time_mlp_in.weight", (width, 2 * width),
                    (f"{ours}.mix_action.weight", f"{ours}.mix_time.weight"), (width, width))
        yield Entry("model.action_time_mlp_in.bias", (width,), (f"{ours}.mix_time.bias",))
        yield from linear("model.action_time_mlp_out", f"{ours}.mix_out", width, width, bias=True)
    for index in range(text.layers):
        key, target = f"{EXPERT}.layers.{index}", f"{ours}.layers.{index}"
        yield from expert_norm(config, f"{key}.input_layernorm", f"{target}.attention_norm")
        yield from expert_norm(config, f"{key}.post_attention_layernorm", f"{target}.mlp_norm")
        yield from linear(f"{key}.self_attn.q_proj", f"{target}.q", heads, width, bias=False)
        yield from linear(f"{key}.self_attn.o_proj", f"{target}.o", width, heads, bias=False)
        for name in ("k", "v"):
            yield from linear(f"{key}.self_attn.{name}_proj", f"{target}.{name}", text.kv_width,
                              width, bias=False)
        yield from gated_mlp(f"{key}.mlp", f"{target}.mlp", width, config.expert_mlp)
    yield from expert_norm(config, f"{EXPERT}.norm", f"{ours}.norm", last=True)


def expert_norm(
    config: Pi0Config, key: str, target: str, *, last: bool = False
) -> Iterator[Entry]:
    """:param last: nothing is multiplied by the last norm's gate."""
    width = config.expert_width
    if not config.adaptive:
        yield from norm(key, target, width, plus=1.0)
        return
    for part, shape in (("weight", (3 * width, width)), ("bias", (3 * width,))):
        gate = "" if last else f"{target}.gate.{part}"
        yield Entry(f"{key}.dense.{part}", shape,
                    (f"{target}.scale.{part}", f"{target}.shift.{part}", gate), rows=3)


def unused(config: Pi0Config, name: str) -> bool:
    """Whether a tensor belongs to the network but nothing at inference reads it."""
    if name in (TOKENS, TOKENS_TIED, f"{TEXT}.norm.weight", f"{PAIR}.gemma_expert.lm_head.weight",
                f"{EXPERT}.embed_tokens.weight"):
        return True
    if name.endswith((".rotary_emb.inv_freq", ".embeddings.position_ids")):
        return True  # buffers that older releases saved
    last = f"{TEXT}.layers.{config.text.layers - 1}."
    rest = name.removeprefix(last)
    return rest != name and rest.startswith(("self_attn.q_proj.", "self_attn.o_proj.", "mlp.",
                                             "post_attention_layernorm."))
