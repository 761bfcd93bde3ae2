# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own code generation for Qwen3-TTS, as something to measure against.

It needs an mmproj file, which llama.cpp's converter makes of a checkpoint that has a speaker
encoder: `convert_hf_to_gguf.py --mmproj --outtype q8_0 CHECKPOINT`.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.speech.qwen3.errors import TalkerError
from omni_ros.speech.qwen3.talker_llama import LlamaTalker


class CodeGenerator:
    """The fifteen other codes of a frame in one call, and what the talker takes next."""

    def __init__(self, path: Path, talker: LlamaTalker, threads: int) -> None:
        from llama_cpp import mtmd_cpp

        self._api, self._talker = mtmd_cpp, talker
        # It writes pages about the file; what matters becomes an error here.
        self._quiet = talker._api.llama_log_callback(lambda level, text, data: None)
        mtmd_cpp.mtmd_log_set(self._quiet, ctypes.c_void_p(0))
        mtmd_cpp.mtmd_helper_log_set(self._quiet, ctypes.c_void_p(0))
        options = mtmd_cpp.mtmd_context_params_default()
        options.use_gpu, options.print_timings, options.n_threads = False, False, threads
        options.warmup = False
        self._context = mtmd_cpp.mtmd_init_from_file(str(path).encode(), talker._model, options)
        if not self._context:
            raise TalkerError(f"{path}: llama.cpp does not load it as the mmproj of {talker.path}")
        self.seed = 0

    def frame(self, hidden: np.ndarray, code: int) -> np.ndarray:
        """Return the sum of the frame's embeddings, float32 [width]; overwritten by the next."""
        api = self._api
        given = api.mtmd_gen_inp_default(self._context)
        given.type = 0  # GEN_CODE
        given.code0 = code
        given.embd = hidden.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        given.top_k, given.top_p, given.temp, given.seed = 50, 1.0, 0.9, self.seed
        self.seed += 1
        made: Any = api.mtmd_gen_out()
        failed = api.mtmd_gen_audio_process(self._context, ctypes.byref(given), ctypes.byref(made))
        if failed:
            raise TalkerError(f"llama.cpp's code generation gave {failed}")
        return np.ctypeslib.as_array(made.embd, (hidden.size,)).copy()
