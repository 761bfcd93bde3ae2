# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA's three programs, each with the host's part around it.

Each stage can live in a process of its own: it loads one program of a bundle and binds all its
inputs. What goes from one to the next (image tokens, keys and values) is written where the
next one reads it, which may be the slots of a ring in shared memory, another one each time
(`bind_...`): binding arrays that were bound before takes microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..bundles import Bundle, BundleError
from ..bundles.errors import short
from ..programs import zeros
from ..programs.binding import BindingCache
from .bundle_parts import bind_zeros, check_family, normaliser, prefix_layout
from .embeddings import TokenTable
from .flow import FlowSampler, Guide, time_embedding
from .prefix import action_positions, prefix_positions, slot_kinds
from .rope import RopeTable
from .tokens import PromptTokenizer, Tokens, newline_prompt
from .turns import Turn, in_turn
from .vision_stage import VisionEncoder

__all__ = ["ActionHead", "FusionBackbone", "VisionEncoder"]


class FusionBackbone:
    """Image tokens, prompt and state to keys and values."""

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
        self._rope = RopeTable(
            self.layout.length, manifest.dimensions.head_dim, base=manifest.prefix.rope_base
        )
        self.program = bundle.load("fusion_backbone")
        self._slots = [f"image_{slot}" for slot in range(self.layout.slots)]
        self._own_images = tuple(bind_zeros(self.program, name) for name in self._slots)
        #: Image tokens of each slot, what the program reads.
        self.images = self._own_images
        self._language, self.state, self.valid, self._cos, self._sin = (
            bind_zeros(self.program, name) for name in ("language", "state", "valid", "cos", "sin")
        )
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
        self._layout_of: tuple[int, bytes] | None = None
        #: The prompt in use.
        self.tokens: Tokens | None = None

    @in_turn
    def set_prompt(self, instruction: str) -> Tokens:
        """Look a prompt's tokens up, unless it is the one in use already.

        :raises TypeError: not text. :raises ValueError: a token that the table does not have.
        """
        if not isinstance(instruction, str):
            raise TypeError(f"the instruction is {short(instruction)}; expected text")
        prompt = newline_prompt(instruction) if self._newline else instruction
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
        self._normaliser.forward(state, out=self.state[0])

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
        _check_names(keys_values, self._own_outputs, "the backbone writes")
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


class ActionHead:
    """Keys and values, and noise, to actions: one run of the program a step."""

    def __init__(self, bundle: Bundle, keys_values: Mapping[str, np.ndarray] | None = None) -> None:
        """
        :param keys_values: for :meth:`bind_prefix`; without them, arrays of its own.
        :raises BundleError: the program does not load, or is of another family.
        :raises ValueError: an array is missing or does not fit.
        """
        check_family(bundle)
        manifest = bundle.manifest
        self.turn = Turn(f"{bundle.root}: the action head")
        sizes, flow = manifest.dimensions, manifest.flow
        if (flow.t_start, flow.dt) != (1.0, -1.0 / flow.steps):
            raise BundleError(
                f"{bundle.root}: flow goes from {flow.t_start} by {flow.dt} in {flow.steps} steps; "
                f"expected from 1.0 by {-1.0 / flow.steps}"
            )
        self._chunk = sizes.chunk
        self._sampler = FlowSampler(
            steps=flow.steps, chunk=sizes.chunk, width=sizes.max_action
        )
        self._times = time_embedding(
            self._sampler.times, width=sizes.expert_width, min_period=flow.min_period,
            max_period=flow.max_period,
        )
        layout = prefix_layout(bundle)
        self._rope = RopeTable(
            layout.length + sizes.chunk, sizes.head_dim, base=manifest.prefix.rope_base
        )
        self._normaliser = normaliser(bundle, "action")
        self.program = bundle.load("action_head")
        self._noisy, self._time, self._valid, self._cos, self._sin = (
            bind_zeros(self.program, name) for name in ("noisy", "time", "valid", "cos", "sin")
        )
        bound = {"noisy", "time", "valid", "cos", "sin"}
        self._wanted = tuple(s.name for s in self.program.inputs if s.name not in bound)
        self._bindings = BindingCache(self.program, inputs=self._wanted)
        self._own: dict[str, np.ndarray] | None = None
        if keys_values is None:
            self.release()
        else:
            self.bind_prefix(keys_values)
        self._velocity = self.program.output("velocity")
        #: Seconds of each step of the last call.
        self.seconds = np.zeros(flow.steps)

    @property
    def steps(self) -> int:
        """Runs of the program a chunk."""
        return self._sampler.steps

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of noise and padded actions, [chunk, padded action]."""
        return self._noisy.shape

    @in_turn
    def bind_prefix(self, keys_values: Mapping[str, np.ndarray]) -> None:
        """Read keys and values from other arrays from now on, without a copy.

        :param keys_values: what :attr:`FusionBackbone.keys_values` has; others are passed over.
        :raises ValueError: one is missing. :raises ProgramError: one does not fit.
        """
        _check_names(keys_values, self._wanted, "the action head reads")
        self._bindings.bind(keys_values)

    @in_turn
    def release(self) -> None:
        """Read memory of its own, and forget all other."""
        if self._own is None:
            self._own = {s.name: zeros(s.shape, s.dtype) for s in self.program.inputs
                         if s.name in self._wanted}
        self._bindings.forget()
        self._bindings.bind(self._own)

    @in_turn
    def set_valid(self, valid: np.ndarray) -> None:
        """Say which tokens of the prefix count: f32 [prefix], :attr:`FusionBackbone.valid`."""
        if not np.array_equal(valid, self._valid):
            np.copyto(self._valid, valid)
            self._rope.pick(action_positions(valid, self._chunk), self._cos, self._sin)

    @in_turn
    def denoise(self, noise: np.ndarray, *, guide: Guide | None = None,
                stop: Callable[[], bool] | None = None) -> np.ndarray:
        """Return normalised actions f32 [chunk, padded action]; the next call overwrites them.

        :param noise: f32 [chunk, padded action]. :param guide, stop: see `flow.FlowSampler`.
        :raises ValueError: wrong shape. :raises flow.Stopped: `stop` said so.
        """
        return self._sampler(noise, self._step, guide=guide, stop=stop)

    def decode(self, actions: np.ndarray) -> np.ndarray:
        """Return actions in the policy's units, a new f32 [chunk, action], of padded ones.

        :raises FloatingPointError: some are not finite; nothing to move a robot by.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            decoded = self._normaliser.inverse(actions)
        if not np.isfinite(decoded).all():
            raise FloatingPointError(
                f"{self.program.path.parent}: the policy answered with actions that are not "
                "finite; the observation may be far from anything it was trained on, or the export "
                "at fault (omni inspect --verify)"
            )
        return decoded

    def _step(self, x: np.ndarray, step: int, t: float) -> np.ndarray:
        np.copyto(self._noisy, x)
        np.copyto(self._time, self._times[step:step + 1])
        self.seconds[step] = self.program.run()
        return self._velocity


def _check_names(given: Mapping[str, np.ndarray], wanted: Iterable[str], who: str) -> None:
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ValueError(
            f"keys and values given: {', '.join(given) or 'none'}; {who} {', '.join(wanted)}: "
            f"{', '.join(missing)} missing"
        )
