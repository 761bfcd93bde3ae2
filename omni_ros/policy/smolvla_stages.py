# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA's three programs, each with the host's part around it.

Each stage can live in a process of its own: it loads one program of a bundle and binds all its
inputs once. What goes from one to the next (image tokens, keys and values) is written where the
next one reads it; `FusionBackbone.images` and `ActionHead.keys_values` may be shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..bundles import Bundle, BundleError
from .bundle_parts import bind_zeros, check_family, normaliser, prefix_layout
from .embeddings import TokenTable
from .flow import FlowSampler, Guide, time_embedding
from .images import ImageRule, ImageTransform
from .prefix import action_positions, prefix_positions, slot_kinds
from .rope import RopeTable
from .tokens import PromptTokenizer, Tokens, newline_prompt


class VisionEncoder:
    """Pictures of any size to image tokens, one camera at a time."""

    def __init__(self, bundle: Bundle) -> None:
        """:raises BundleError: the program does not load, or is of another family."""
        check_family(bundle)
        image = bundle.manifest.image
        if image.resize != "pad":
            raise BundleError(f"{bundle.root}: image.resize is {image.resize!r}; expected 'pad'")
        self._rule = ImageRule(
            placement=image.placement, low=image.low, high=image.high, pad_value=image.pad_value,
            clamp=image.clamp,
        )
        self._size = {"out_height": image.height, "out_width": image.width}
        # One a camera: each keeps the tables of the size that its camera sends.
        self._transforms: dict[str, ImageTransform] = {}
        self.program = bundle.load("vision_encoder")
        #: f32 [3, height, width], what the program reads.
        self.pixels = bind_zeros(self.program, "pixels")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one picture's tokens, [image tokens, width]."""
        return self.program.outputs[0].shape

    def prepare(self, image: np.ndarray, *, camera: str = "") -> None:
        """Write a picture, uint8 [height, width, 3] RGB, to :attr:`pixels`.

        :param camera: which one; pictures of one camera are expected to keep their size.
        :raises ValueError: wrong shape or dtype.
        """
        transform = self._transforms.get(camera)
        if transform is None:
            transform = self._transforms[camera] = ImageTransform(rule=self._rule, **self._size)
        transform(image, out=self.pixels)

    def run(self, out: np.ndarray | None = None) -> float:
        """Encode :attr:`pixels`; return seconds.

        :param out: f32 of :attr:`shape`, where to write from now on; from `programs.zeros`.
        """
        if out is not None and self.program.output(0) is not out:
            self.program.bind_output(0, out)
        return self.program.run()

    def encode(self, image: np.ndarray, *, camera: str = "") -> np.ndarray:
        """Return the tokens of a picture; the program's own array, which the next call overwrites.

        :raises ValueError: wrong shape or dtype.
        """
        self.prepare(image, camera=camera)
        self.run()
        return self.program.output(0)


class FusionBackbone:
    """Image tokens, prompt and state to keys and values."""

    def __init__(self, bundle: Bundle, images: Sequence[np.ndarray] | None = None) -> None:
        """
        :param images: the image tokens of each slot, f32 [image tokens, width], kept and read at
            every run; without them, arrays of its own.
        :raises BundleError: the program does not load, or is of another family.
        :raises ValueError: an array does not fit.
        """
        check_family(bundle)
        manifest = bundle.manifest
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
        slots = [f"image_{slot}" for slot in range(self.layout.slots)]
        if images is not None:
            if len(images) != len(slots):
                raise ValueError(f"{len(images)} arrays of image tokens; expected {len(slots)}")
            for name, array in zip(slots, images, strict=True):
                self.program.bind(name, array)
        #: Image tokens of each slot, what the program reads.
        self.images = tuple(images) if images is not None else tuple(
            bind_zeros(self.program, name) for name in slots
        )
        self._language, self.state, self.valid, self._cos, self._sin = (
            bind_zeros(self.program, name) for name in ("language", "state", "valid", "cos", "sin")
        )
        #: By name, what the action head reads: the program's own outputs.
        self.keys_values = {
            spec.name: self.program.output(spec.name) for spec in self.program.outputs
        }
        self._prompt: str | None = None
        self._layout_of: tuple[int, bytes] | None = None
        #: The prompt in use.
        self.tokens: Tokens | None = None

    def set_prompt(self, instruction: str) -> Tokens:
        """Look a prompt's tokens up, unless it is the one in use already.

        :raises TypeError: not text. :raises ValueError: a token that the table does not have.
        """
        prompt = newline_prompt(instruction) if self._newline else instruction
        if self.tokens is None or prompt != self._prompt:
            self.set_tokens(self._tokenizer(prompt))
            self._prompt = prompt
        return self.tokens

    def set_tokens(self, tokens: Tokens) -> None:
        """Take a prompt that is in tokens already.

        :raises ValueError: a token that the table does not have.
        """
        self._prompt = None
        self._table.look_up(tokens.ids, self._language)
        self.tokens = tokens

    def set_state(self, state: np.ndarray) -> None:
        """Normalise and pad a state, f32 [state], to :attr:`state`, [1, padded state]."""
        self._normaliser.forward(state, out=self.state[0])

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
        for image in self.images[present:]:
            image.fill(0.0)  # masked, yet always the same
        self._layout_of = key

    def run(self) -> float:
        """Compute keys and values; return seconds."""
        return self.program.run()


class ActionHead:
    """Keys and values, and noise, to actions: one run of the program a step."""

    def __init__(self, bundle: Bundle, keys_values: Mapping[str, np.ndarray]) -> None:
        """
        :param keys_values: what :attr:`FusionBackbone.keys_values` has, read where it lies.
        :raises BundleError: the program does not load, or is of another family.
        :raises ValueError: an array is missing or does not fit.
        """
        check_family(bundle)
        manifest = bundle.manifest
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
        wanted = [spec.name for spec in self.program.inputs if spec.name not in bound]
        missing = [name for name in wanted if name not in keys_values]
        if missing:
            raise ValueError(
                f"keys and values given: {', '.join(keys_values) or 'none'}; the action head reads "
                f"{', '.join(wanted)}: {', '.join(missing)} missing"
            )
        for name in wanted:
            self.program.bind(name, keys_values[name])
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

    def set_valid(self, valid: np.ndarray) -> None:
        """Say which tokens of the prefix count: f32 [prefix], :attr:`FusionBackbone.valid`."""
        if not np.array_equal(valid, self._valid):
            np.copyto(self._valid, valid)
            self._rope.pick(action_positions(valid, self._chunk), self._cos, self._sin)

    def denoise(self, noise: np.ndarray, *, guide: Guide | None = None) -> np.ndarray:
        """Return normalised actions f32 [chunk, padded action]; the next call overwrites them.

        :param noise: f32 [chunk, padded action]. :param guide: see `flow.FlowSampler`.
        :raises ValueError: wrong shape.
        """
        return self._sampler(noise, self._step, guide=guide)

    def decode(self, actions: np.ndarray) -> np.ndarray:
        """Return actions in the policy's units, a new f32 [chunk, action], of padded ones."""
        return self._normaliser.inverse(actions)

    def _step(self, x: np.ndarray, step: int, t: float) -> np.ndarray:
        np.copyto(self._noisy, x)
        np.copyto(self._time, self._times[step:step + 1])
        self.seconds[step] = self.program.run()
        return self._velocity
