# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy's first stage: pictures to image tokens."""

from __future__ import annotations

import numpy as np

from ..bundles import Bundle, BundleError
from ..programs.binding import BindingCache
from .bundle_parts import bind_zeros, check_family
from .images import ImageRule, ImageTransform, check_image
from .turns import Turn, in_turn


class VisionEncoder:
    """Pictures of any size to image tokens, one camera at a time."""

    def __init__(self, bundle: Bundle) -> None:
        """:raises BundleError: the program does not load, or is of another family."""
        check_family(bundle)
        self.turn = Turn(f"{bundle.root}: the vision encoder")
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
        self._output = self.program.outputs[0].name
        self._own = self.program.output(0)
        self._bindings = BindingCache(self.program, outputs=[self._output])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one picture's tokens, [image tokens, width]."""
        return self.program.outputs[0].shape

    def check(self, image: np.ndarray, *, camera: str = "") -> None:
        """Look whether :meth:`prepare` would take a picture.

        :raises ValueError: it would not; with the camera's name.
        """
        try:
            check_image(image, **self._size)
        except ValueError as error:
            raise ValueError(f"camera {camera}: {error}" if camera else str(error)) from None

    @in_turn
    def prepare(self, image: np.ndarray, *, camera: str = "") -> None:
        """Write a picture, uint8 [height, width, 3] RGB, to :attr:`pixels`.

        :param camera: which one; pictures of one camera are expected to keep their size.
        :raises ValueError: wrong shape or dtype.
        """
        transform = self._transforms.get(camera)
        if transform is None:
            transform = self._transforms[camera] = ImageTransform(rule=self._rule, **self._size)
        transform(image, out=self.pixels)

    @in_turn
    def run(self, out: np.ndarray | None = None) -> float:
        """Encode :attr:`pixels`; return seconds.

        :param out: f32 of :attr:`shape`, where to write from now on; from `programs.zeros` or in
            the slot of a ring.
        """
        if out is not None:
            self._bindings.bind({self._output: out})
        return self.program.run()

    @in_turn
    def release(self) -> None:
        """Write to memory of its own again, and forget all other."""
        self._bindings.forget()
        self._bindings.bind({self._output: self._own})

    @in_turn
    def encode(self, image: np.ndarray, *, camera: str = "") -> np.ndarray:
        """Return the tokens of a picture; the program's own array, which the next call overwrites.

        :raises ValueError: wrong shape or dtype.
        """
        self.prepare(image, camera=camera)
        self.run()
        return self.program.output(0)
