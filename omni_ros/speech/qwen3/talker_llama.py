# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The talker in llama.cpp, through llama-cpp-python's low-level calls.

Embeddings go in and hidden states come out. What that takes is not in its documentation:

- a batch of embeddings has no tokens, and positions of four sections one behind the other (M-RoPE:
  three equal ones, then zeros). `llama_batch_init` reserves a quarter of that, so the batch is ours;
- a context with `embeddings` marks every position as output, whatever the batch says;
- the logits of the text vocabulary, which come first, are all minus infinity.

Its keys and values lie in float16 unless the weights are of more: those are float32 here, as in the
reference.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.requirements import require

from .errors import ContextFull, TalkerError

_SECTIONS = 4
#: Positions that one call takes at most; longer prompts take several.
_BATCH = 64

_quiet: Any = None


class LlamaTalker:
    """One GGUF file, one sequence. See talker.Talker."""

    name = "llama.cpp"

    def __init__(self, path: Path | str, *, width: int, codes: int, limit: int, threads: int,
                 exact_cache: bool = False) -> None:
        """
        :param width, codes: what the bundle says; the file must agree.
        :param limit: positions to reserve. :param threads: of llama.cpp's own pool.
        :param exact_cache: keys and values in float32.
        :raises TalkerError: the file does not load or is another model.
        """
        # Its threads would otherwise spin for a while after each step, and take the cores from the
        # programs that come next: a frame took 110 ms in all instead of 78.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        self._api = api = require("llama_cpp", "to run a talker of the GGUF format").llama_cpp
        _silence(api)
        self.path, self.limit, self._codes = Path(path), limit, codes
        self._model = self._context = None
        if not self.path.is_file():
            raise TalkerError(f"{self.path} is not there; expected the talker's GGUF file")
        api.llama_backend_init()
        options = api.llama_model_default_params()
        options.n_gpu_layers = 0
        self._model = api.llama_model_load_from_file(str(self.path).encode(), options)
        if not self._model:
            raise TalkerError(
                f"{self.path}: llama.cpp does not load it; is it whole, and of an architecture "
                "that this version knows?"
            )
        found = api.llama_model_n_embd(self._model)
        if found != width:
            self.close()
            raise TalkerError(f"{self.path}: is {found} wide, the bundle's talker {width}")
        vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self._model))
        self._first_code = vocabulary - codes
        if self._first_code < 0:
            self.close()
            raise TalkerError(f"{self.path}: has {vocabulary} logits, expected {codes} or more")
        self._context = self._open(threads, exact_cache)
        if not self._context:
            self.close()
            raise TalkerError(f"{self.path}: no memory for a context of {limit} positions")
        self._memory = api.llama_get_memory(self._context)
        self._batch = _Batch(api, min(_BATCH, limit), width)
        self._hidden = np.zeros(width, np.float32)
        self._logits = np.zeros(codes, np.float32)
        self.position = 0

    def _open(self, threads: int, exact_cache: bool) -> Any:
        api = self._api
        options = api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = self.limit, _BATCH, _BATCH
        options.n_seq_max = 1
        options.n_threads = options.n_threads_batch = threads
        options.embeddings = True
        options.no_perf = True
        options.pooling_type = api.LLAMA_POOLING_TYPE_NONE
        if exact_cache:
            options.type_k = options.type_v = api.GGML_TYPE_F32
            options.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        return api.llama_init_from_model(self._model, options)

    def start(self) -> None:
        """Forget everything: the next position is the first."""
        # The data too: what was there must not show, not even as a masked number.
        self._api.llama_memory_clear(self._memory, True)
        self.position = 0

    def feed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As Talker.feed."""
        if not len(rows):
            raise ValueError("no positions; expected at least one")
        if self.position + len(rows) > self.limit:
            raise ContextFull(
                f"{len(rows)} positions more after {self.position}: the talker has {self.limit}"
            )
        for start in range(0, len(rows), self._batch.capacity):
            self._decode(rows[start : start + self._batch.capacity])
        api, context = self._api, self._context
        hidden = api.llama_get_embeddings_ith(context, -1)
        logits = api.llama_get_logits_ith(context, -1)
        if not hidden or not logits:
            raise TalkerError(f"{self.path}: llama.cpp gave no hidden state or no logits")
        ctypes.memmove(self._hidden.ctypes.data, hidden, self._hidden.nbytes)
        offset = self._first_code * self._logits.itemsize
        address = ctypes.cast(logits, ctypes.c_void_p).value + offset
        ctypes.memmove(self._logits.ctypes.data, address, self._logits.nbytes)
        return self._hidden, self._logits

    def _decode(self, rows: np.ndarray) -> None:
        failed = self._api.llama_decode(self._context, self._batch.fill(rows, self.position))
        if failed:
            raise TalkerError(
                f"{self.path}: llama_decode gave {failed} for {len(rows)} positions after "
                f"{self.position}"
            )
        self.position += len(rows)

    def close(self) -> None:
        """Free the model. May be called twice."""
        if self._context:
            self._api.llama_free(self._context)
        if self._model:
            self._api.llama_model_free(self._model)
        self._context = self._model = None


class _Batch:
    """A batch of embeddings, reserved once. Its arrays must live as long as it is used."""

    def __init__(self, api: Any, capacity: int, width: int) -> None:
        self.capacity = capacity
        self._rows = np.zeros((capacity, width), np.float32)
        self._positions = np.zeros(_SECTIONS * capacity, np.int32)
        self._counts = np.ones(capacity, np.int32)
        self._outputs = np.ones(capacity, np.int8)
        self._sequence = (api.llama_seq_id * 1)(0)
        pointer = ctypes.POINTER(api.llama_seq_id)
        self._sequences = (pointer * capacity)(
            *(ctypes.cast(self._sequence, pointer) for _ in range(capacity)))  # fmt: skip
        self._batch = api.llama_batch()
        self._batch.token = None
        self._batch.embd = self._rows.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._batch.pos = self._positions.ctypes.data_as(ctypes.POINTER(api.llama_pos))
        self._batch.n_seq_id = self._counts.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self._batch.seq_id = self._sequences
        self._batch.logits = self._outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))

    def fill(self, rows: np.ndarray, start: int) -> Any:
        count = len(rows)
        self._rows[:count] = rows
        sections = self._positions[: _SECTIONS * count].reshape(_SECTIONS, count)
        sections[:3] = np.arange(start, start + count)
        sections[3] = 0
        self._batch.n_tokens = count
        return self._batch


def _silence(api: Any) -> None:
    """llama.cpp writes pages to stderr while loading; what matters of it becomes an error here."""
    global _quiet
    if _quiet is None:
        _quiet = api.llama_log_callback(lambda level, text, data: None)
        api.llama_log_set(_quiet, ctypes.c_void_p(0))
