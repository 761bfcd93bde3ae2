# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy's second stage: image tokens, prompt and state to keys and values.

Each stage (the others are in `vision_stage` and `head_stage`) can live in a process of its own: it
loads one program of a bundle and binds all its inputs. What goes from one to the next (image tokens,
keys and values) is written where the next one reads it, which may be the slots of a ring in shared
memory, another one each time (`bind_...`): binding arrays that were bound before takes microseconds.

Families differ in where the state comes in (`prefix.state` of the manifest): SmolVLA's backbone has
it as a token, π0's action head has it before the actions, π0.5's prompt says it in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..bundles import Bundle
from ..bundles.errors import short
from ..programs.binding import BindingCache
from .bundle_parts import (
    bind_zeros, check_family, check_names, conventions_of, normaliser, prefix_layout, rope_table,
)
from .embeddings import TokenTable
from .prefix import prefix_positions, slot_kinds
from .tokens import PromptTokenizer, Tokens, newline_prompt, state_prompt
from .turns import Turn, in_turn


class FusionBackbone:
    """Image tokens, prompt and (not of a π0) state to keys and values."""

    def __init__(self, bundle: Bundle, images: Sequence[np.ndarray] | None = None) -> None:
        """
        :param images: for :meth:`bind_images`; without them, arrays of its own.
        :raises BundleError: the program does not load, or is of another family.
        :raises ValueError: an array does not fit.
        """
        check_family(bundle)
        manifest = bundle.manifest
        self.turn = Turn(f"{bundle.root}: the backbone")
        self.layout = prefix_layout(bundle)
        self._empty = manifest.empty_cameras
        self._newline = manifest.tokenizer.newline
        self._state_in = manifest.prefix.state
        self._state_width = manifest.tokenizer.state_width or None
        self._tokenizer = PromptTokenizer(
            bundle.path(manifest.tokenizer.file), max_length=manifest.tokenizer.max_length,
            pad_token=manifest.tokenizer.pad_token, padding=manifest.tokenizer.padding,
            padding_side=manifest.tokenizer.padding_side,
        )
        table = manifest.embeddings
        self._table = TokenTable(
            bundle.path(table.file), dtype=table.dtype, rows=table.rows, width=table.width,
            count=manifest.tokenizer.max_length,
        )
        self._normaliser = normaliser(bundle, "state")
        self._conventions = conventions_of(manifest)
        self._rope = rope_table(manifest, self.layout.length)
        self.program = bundle.load("fusion_backbone")
        self._slots = [f"image_{slot}" for slot in range(self.layout.slots)]
        self._own_images = tuple(bind_zeros(self.program, name) for name in self._slots)
        #: Image tokens of each slot, what the program reads.
        self.images = self._own_images
        self._language, self.valid, self._cos, self._sin = (
            bind_zeros(self.program, name) for name in ("language", "valid", "cos", "sin")
        )
        #: f32 [1, padded state]: the state as it was set last, whether the program has it or not.
        self.state = bind_zeros(self.program, "state") if self._state_in == "prefix" else (
            np.zeros((1, manifest.dimensions.max_state), np.float32))
        #: By name, what the action head reads: the program's own outputs.
        self.keys_values = {
            spec.name: self.program.output(spec.name) for spec in self.program.outputs
        }
        self._own_outputs = self.keys_values
        self._inputs = BindingCache(self.program, inputs=self._slots)
        self._outputs = BindingCache(self.program, outputs=list(self.keys_values))
        if images is not None:
            self.bind_images(images)
        self._prompt: str | None = None
        self._state_known = False
        self._layout_of: tuple[int, bytes] | None = None
        #: The prompt in use.
        self.tokens: Tokens | None = None

    @in_turn
    def set_prompt(self, instruction: str) -> Tokens:
        """Look a prompt's tokens up, unless it is the one in use already.

        A π0.5's prompt says the state as well: call :meth:`set_state` before.

        :raises TypeError: not text. :raises ValueError: a token that the table does not have.
        """
        if not isinstance(instruction, str):
            raise TypeError(f"the instruction is {short(instruction)}; expected text")
        prompt = newline_prompt(instruction) if self._newline else instruction
        if self._state_in == "prompt":
            if not self._state_known:
                raise ValueError("the prompt says the state; expected set_state before set_prompt")
            width = self._normaliser.width
            prompt = state_prompt(instruction, self.state[0, :width],
                                  padded_width=self._state_width)
        if self.tokens is None or prompt != self._prompt:
            self.set_tokens(self._tokenizer(prompt))
            self._prompt = prompt
        return self.tokens

    @in_turn
    def set_tokens(self, tokens: Tokens) -> None:
        """Take a prompt that is in tokens already.

        :raises ValueError: a token that the table does not have.
        """
        self._prompt = None
        self._table.look_up(tokens.ids, self._language)
        self.tokens = tokens

    @in_turn
    def set_state(self, state: np.ndarray) -> None:
        """Normalise and pad a state, f32 [state], to :attr:`state`, [1, padded state]."""
        self._normaliser.forward(self._conventions.state(state), out=self.state[0])
        self._state_known = True

    @in_turn
    def set_cameras(self, present: int) -> None:
        """Say how many slots, from the first, hold a picture. Needs a prompt.

        :raises ValueError: more than there are slots.
        """
        if self.tokens is None:
            raise ValueError("there is no prompt yet; expected set_prompt before set_cameras")
        key = present, self.tokens.mask.tobytes()
        if key == self._layout_of:
            return
        kinds = slot_kinds(present, empty=self._empty, slots=self.layout.slots)
        np.copyto(self.valid, self.layout.valid(kinds, self.tokens.mask))
        self._rope.pick(prefix_positions(self.valid), self._cos, self._sin)
        for image in self._own_images[present:]:
            image.fill(0.0)  # masked, yet always the same
        if any(image is not own for image, own in
               zip(self.images[present:], self._own_images[present:], strict=True)):
            self.bind_images(self.images[:present])
        self._layout_of = key

    @in_turn
    def bind_images(self, images: Sequence[np.ndarray]) -> None:
        """Read image tokens from other arrays from now on, without a copy.

        :param images: f32 [image tokens, width] of each camera that is present, in the order of the
            slots; the slots behind them have arrays of its own.
        :raises ValueError: more than there are slots. :raises ProgramError: one does not fit.
        """
        if len(images) > len(self._slots):
            raise ValueError(
                f"{len(images)} arrays of image tokens; expected at most {len(self._slots)}"
            )
        images = (*images, *self._own_images[len(images):])
        self._inputs.bind(dict(zip(self._slots, images, strict=True)))
        self.images = images

    @in_turn
    def bind_outputs(self, keys_values: Mapping[str, np.ndarray]) -> None:
        """Write keys and values to other arrays from now on, without a copy.

        :param keys_values: of all names in :attr:`keys_values`; others are passed over.
        :raises ValueError: one is missing. :raises ProgramError: one does not fit.
        """
        check_names(keys_values, self._own_outputs, "the backbone writes")
        self._outputs.bind(keys_values)
        self.keys_values = {name: keys_values[name] for name in self._own_outputs}

    @in_turn
    def release(self) -> None:
        """Read and write memory of its own again, and forget all other."""
        self._inputs.forget()
        self._outputs.forget()
        self.bind_images(())
        self.bind_outputs(self._own_outputs)

    @in_turn
    def run(self) -> float:
        """Compute keys and values; return seconds."""
        return self.program.run()
