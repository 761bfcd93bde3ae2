# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays that a program took once, to be given to it again without a check.

A ring has a few slots, and a program reads or writes them in turn. Checking an array costs more
than ten times what pointing at it does, and is needed once.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from omni_ros.programs.native import NativePointers

if TYPE_CHECKING:
    from omni_ros.programs.program import Program

_Bound = tuple[tuple[int, np.ndarray], ...]


class Binding:
    """Made by `Program.bind_all`, taken by `Program.use`. Keeps its arrays alive."""

    def __init__(self, program: Program, inputs: Sequence[tuple[int, np.ndarray]],
                 outputs: Sequence[tuple[int, np.ndarray]]) -> None:
        self.program = weakref.ref(program)
        self.inputs: _Bound = tuple(inputs)
        self.outputs: _Bound = tuple(outputs)
        self.to_inputs = _pointers(self.inputs)
        self.to_outputs = _pointers(self.outputs)


class BindingCache:
    """The bindings of the last sets of arrays that a program was given."""

    def __init__(self, program: Program, *, inputs: Sequence[str] = (), outputs: Sequence[str] = (),
                 capacity: int = 16) -> None:
        """:param inputs, outputs: those that are bound together, by name.

        :param capacity: sets kept, as many as there are slots in use at once.
        """
        self._program, self._capacity = program, capacity
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        # By identity: a binding keeps its arrays, so an id stays theirs.
        self._known: dict[tuple[int, ...], Binding] = {}
        self._bound: tuple[int, ...] = ()

    def bind(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Bind the arrays of all names; others are passed over.

        :raises KeyError: one is missing. :raises ProgramError: as for `Program.bind`.
        """
        inputs = [arrays[name] for name in self._inputs]
        outputs = [arrays[name] for name in self._outputs]
        key = tuple(map(id, inputs + outputs))
        if key == self._bound:
            return
        binding = self._known.pop(key, None)
        self._bound = ()
        if binding is None:
            while len(self._known) >= self._capacity:
                del self._known[next(iter(self._known))]
            binding = self._program.bind_all(
                dict(zip(self._inputs, inputs)), dict(zip(self._outputs, outputs))
            )
        else:
            self._program.use(binding)
        self._known[key] = binding  # at the end: used last
        self._bound = key

    def forget(self) -> None:
        """Let go of all arrays but those that are bound now."""
        self._known.clear()
        self._bound = ()


def _pointers(bound: _Bound) -> NativePointers:
    count = len(bound)
    indices = (ctypes.c_uint32 * count)(*(index for index, _ in bound))
    data = (ctypes.c_void_p * count)(*(array.ctypes.data for _, array in bound))
    return NativePointers(count, indices, data)
