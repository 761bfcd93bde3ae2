# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run ExecuTorch programs (`.pte`) on a robot: loaded once, bound once, run without copies.

    from omni_ros.programs import Program, set_threads, zeros

    set_threads(2)                                   # once, before the first load
    prefix = Program("fusion_backbone.pte")
    head = Program("action_head.pte")
    pixels = zeros((3, 64, 64), "float32")
    prefix.bind(0, pixels)
    head.bind(1, prefix.output(0))                   # hand-off: no copy, ever
    pixels[...] = picture
    prefix.run()                                     # the calling thread works, others go on
    head.run()

Needs numpy and the libraries inside the executorch wheel (`pip install --no-deps executorch`), not
PyTorch. See docs/measurements/program_runtime.md for why it is not ExecuTorch's own Python binding.
"""

from __future__ import annotations

from omni_ros.programs.errors import NativeLibraryError, ProgramError
from omni_ros.programs.program import Program
from omni_ros.programs.tensors import TensorSpec, zeros
from omni_ros.programs.threads import get_threads, set_threads

__all__ = [
    "NativeLibraryError",
    "Program",
    "ProgramError",
    "TensorSpec",
    "get_threads",
    "set_threads",
    "zeros",
]
