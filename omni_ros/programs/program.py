# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A loaded program: bind its arrays once, then run."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from omni_ros.programs import native
from omni_ros.programs.binding import Binding
from omni_ros.programs.errors import ProgramError
from omni_ros.programs.tensors import TensorSpec, check_array, spec_of, zeros


class Program:
    """One method of a `.pte` file, loaded and ready.

    Arrays are read and written where they lie: what stands in a bound input when `run` is called is
    what the program sees, and every run overwrites the same output arrays. Handing a result on is
    ``head.bind("keys", prefix.output("keys"))``, once.

    A Program is for one thread at a time: a second `run` during a first one is refused. Different
    programs may run in different threads; those of the XNNPACK delegate then take turns, because
    they share its workspace. A run allocates nothing that stays. Values are not looked at: whether
    they are finite is for the caller to check.

    :param path: the file. Whether its bytes are the right ones is checked by omni_ros.bundles;
        here only that it is a program at all, and that its structure is sound.
    :param method: which of its methods.
    :param inputs: names for the inputs in order, default input_0, input_1, ...
    :param outputs: names for the outputs in order, default output_0, output_1, ...
    :param share_weights: keep one copy of equal weights for all programs of the process that were
        loaded so. For several methods of one network; their runs then wait for each other. The
        copy stays until the process ends, and is there at once for whoever loads it again.
    :raises ProgramError: the file cannot be opened, is no such program, or cannot be loaded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        method: str = "forward",
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        share_weights: bool = False,
    ) -> None:
        self.path = Path(path)
        self.method = method
        self._native = native.library()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._handle: ctypes.c_void_p | None = _load(
            self._native, self.path, method, share_weights
        )
        self._close = weakref.finalize(self, self._native.omni_unload, self._handle)
        # At exit the process goes as a whole; another thread may still be in a run.
        self._close.atexit = False
        self._where = str(self.path) if method == "forward" else f"{self.path} ({method})"

        self.inputs = self._describe("input", inputs)
        self.outputs = self._describe("output", outputs)
        arenas = range(self._native.omni_arena_count(self._handle))
        #: planned bytes, reserved at load
        self.arenas = tuple(self._native.omni_arena_bytes(self._handle, i) for i in arenas)
        names = range(self._native.omni_backend_count(self._handle))
        #: the delegates that it uses
        self.backends = tuple(
            self._native.omni_backend(self._handle, i).decode("utf-8", "replace") for i in names
        )
        self._bound: list[np.ndarray | None] = [None] * len(self.inputs)
        self._results: list[np.ndarray] = []
        for index, spec in enumerate(self.outputs):
            self._results.append(zeros(spec.shape, spec.dtype))
            self._point("omni_bind_output", index, self._results[index])
        # Kept, so that a run makes nothing.
        self._error = ctypes.create_string_buffer(native.ERROR_BYTES)
        self._nanoseconds = ctypes.c_int64()
        self._elapsed = ctypes.byref(self._nanoseconds)

    def bind(self, which: int | str, array: np.ndarray) -> None:
        """Let an input be read from `array` at every run until the next bind.

        No copy is made and the array is kept alive. Kernels may read up to 16 bytes past its end:
        take the array from :func:`zeros`, or from another program's output.

        :raises ProgramError: unknown input; dtype, shape or layout differ; the array shares memory
            with an output of this same program; or nothing can be read behind its end.
        """
        index = self._index(self.inputs, which, "input")
        check_array(array, self.inputs[index], self._where)
        self._check_apart(array, self.inputs[index].name, self.outputs, self._results)
        with self._use():
            self._point("omni_bind_input", index, array)
            self._bound[index] = array

    def bind_output(self, which: int | str, array: np.ndarray) -> None:
        """Let an output be written to `array` instead of the program's own one, from now on.

        :raises ProgramError: as for :meth:`bind`, or the array is read-only.
        """
        index = self._index(self.outputs, which, "output")
        spec = self.outputs[index]
        check_array(array, spec, self._where)
        if not array.flags.writeable:
            raise ProgramError(f"{self._where}: {spec.name} was given a read-only array")
        self._check_apart(array, spec.name, self.inputs, self._bound)
        others = [None if i == index else a for i, a in enumerate(self._results)]
        self._check_apart(array, spec.name, self.outputs, others)
        with self._use():
            self._point("omni_bind_output", index, array)
            self._results[index] = array

    def bind_all(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Binding:
        """Bind several arrays, and return what :meth:`use` binds again at a small part of the cost.

        :raises ProgramError: as for :meth:`bind` and :meth:`bind_output`; what came before it in
            order is bound.
        """
        for name, array in inputs.items():
            self.bind(name, array)
        for name, array in outputs.items():
            self.bind_output(name, array)
        return Binding(
            self,
            [(self._index(self.inputs, name, "input"), inputs[name]) for name in inputs],
            [(self._index(self.outputs, name, "output"), outputs[name]) for name in outputs],
        )

    def use(self, binding: Binding) -> None:
        """Bind the arrays of a binding that :meth:`bind_all` of this program made.

        They were checked then and are not checked again: inputs that were bound since must not
        share memory with its outputs.

        :raises ProgramError: of another program, or another thread is in this one.
        """
        if binding.program() is not self:
            raise ProgramError(f"{self._where}: was given a binding of another program")
        with self._use():
            if self._native.omni_point(
                self._handle, binding.to_inputs, binding.to_outputs, self._error, native.ERROR_BYTES
            ):
                text = self._error.value.decode("utf-8", errors="replace")
                raise ProgramError(f"{self._where}: {text}")
            for index, array in binding.inputs:
                self._bound[index] = array
            for index, array in binding.outputs:
                self._results[index] = array

    def input(self, which: int | str) -> np.ndarray | None:
        """Return the array bound to an input, None if none is."""
        return self._bound[self._index(self.inputs, which, "input")]

    def output(self, which: int | str) -> np.ndarray:
        """Return the array that every run writes this output to; the same one each time."""
        return self._results[self._index(self.outputs, which, "output")]

    def run(self) -> float:
        """Run once on the calling thread and the pool. Other Python threads go on meanwhile.

        :return: seconds that the program took.
        :raises ProgramError: an input is not bound, another thread is in this program, or the run
            failed. After a failed run the outputs are undefined and the program must be loaded
            again.
        """
        with self._use():
            failed = self._native.omni_run(
                self._handle, self._elapsed, self._error, native.ERROR_BYTES
            )
            if failed:
                text = self._error.value.decode("utf-8", errors="replace")
                raise ProgramError(f"{self._where}: {text}")
            return self._nanoseconds.value * 1e-9

    def close(self) -> None:
        """Free the program. Its arrays stay valid for those who hold them."""
        if self._handle is not None:
            with self._use():
                self._handle = None
                self._close()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Program({str(self.path)!r}, {self.method!r})"

    def _use(self) -> _Use:
        return _Use(self)

    def _describe(self, kind: str, names: Sequence[str] | None) -> tuple[TensorSpec, ...]:
        count = getattr(self._native, f"omni_{kind}_count")(self._handle)
        if names is None:
            names = [f"{kind}_{index}" for index in range(count)]
        if len(names) != count:
            raise ProgramError(
                f"{self._where}: has {count} {kind}s, {len(names)} names were given: "
                f"{', '.join(names)}"
            )
        get = getattr(self._native, f"omni_{kind}")
        return tuple(
            spec_of(get(self._handle, index).contents, name, self._where)
            for index, name in enumerate(names)
        )

    def _index(self, specs: tuple[TensorSpec, ...], which: int | str, kind: str) -> int:
        for index, spec in enumerate(specs):
            if which == spec.name or (which == index and not isinstance(which, bool)):
                return index
        known = "; ".join(str(spec) for spec in specs)
        raise ProgramError(f"{self._where}: no {kind} {which!r}; it has {known or 'none'}")

    def _check_apart(
        self,
        array: np.ndarray,
        name: str,
        specs: tuple[TensorSpec, ...],
        others: Sequence[np.ndarray | None],
    ) -> None:
        for spec, other in zip(specs, others, strict=True):
            # Both are contiguous, so their bounds tell.
            if other is not None and np.may_share_memory(array, other):
                raise ProgramError(
                    f"{self._where}: {name} was given memory that {spec.name} of the same program "
                    "writes or reads; give it an array of its own"
                )

    def _point(self, function: str, index: int, array: np.ndarray) -> None:
        native.call(
            getattr(self._native, function),
            self._handle,
            index,
            array.ctypes.data,
            array.nbytes,
            where=self._where,
        )


class _Use:
    """Hold a program for one call; refuse to wait, so that a mistake cannot stall a thread."""

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program = program

    def __enter__(self) -> None:
        program = self.program
        if not program._lock.acquire(blocking=False):
            raise ProgramError(f"{program._where}: another thread is using this program")
        if program._handle is None or program._process != os.getpid():
            program._lock.release()
            state = "closed" if program._handle is None else "loaded before a fork"
            raise ProgramError(f"{program._where}: this program was {state}; load it again")

    def __exit__(self, *exception: object) -> None:
        self.program._lock.release()


def _load(
    library: ctypes.CDLL, path: Path, method: str, share_weights: bool
) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    for text in (os.fspath(path), method):
        if "\0" in text:
            raise ProgramError(f"{text!r}: contains a NUL character")
    native.call(
        library.omni_load,
        os.fsencode(path),
        method.encode("utf-8", errors="surrogateescape"),
        int(share_weights),
        ctypes.byref(handle),
        where=str(path),
    )
    return handle
