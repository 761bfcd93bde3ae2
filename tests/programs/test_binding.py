# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays that were bound once can be bound again in one call, and do what binding them does."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from omni_ros.programs import ProgramError
from omni_ros.programs.binding import BindingCache


def filled(like: np.ndarray, value: float) -> np.ndarray:
    # As large as what a slot of a ring leaves behind a tensor, so that kernels may read past it.
    raw = np.zeros(like.nbytes + 256, np.uint8)
    array = raw[-raw.ctypes.data % 64:][:like.nbytes].view(like.dtype).reshape(like.shape)
    array.fill(value)
    return array


@pytest.fixture
def head(load):
    """A program with the inputs x, keys and values and the output y, and its inputs by name."""
    loaded = load("head")
    return loaded.program, loaded.inputs


def test_what_was_bound_together_is_bound_again(head):
    program, inputs = head
    results = []
    for value in (0.5, -2.0):
        keys, out = filled(inputs["keys"], value), filled(program.output("y"), 0.0)
        binding = program.bind_all({"keys": keys}, {"y": out})
        program.run()
        results.append((binding, keys, out, out.copy()))
    for binding, keys, out, expected in results:
        out.fill(0.0)
        program.use(binding)
        program.run()
        assert program.input("keys") is keys and program.output("y") is out
        assert np.array_equal(out, expected)
    assert not np.array_equal(results[0][3], results[1][3])


def test_what_is_not_part_of_a_binding_stays_as_it_is(head):
    program, inputs = head
    binding = program.bind_all({"keys": filled(inputs["keys"], 1.0)}, {})
    out = program.output("y")
    program.use(binding)
    assert program.input("values") is inputs["values"] and program.output("y") is out


def test_a_binding_keeps_its_arrays_alive(head):
    program, inputs = head
    binding = program.bind_all({"keys": filled(inputs["keys"], 3.0)}, {})
    program.bind("keys", inputs["keys"])
    gc.collect()
    program.use(binding)
    program.run()
    assert (program.input("keys") == 3.0).all()


def test_a_binding_of_another_program_is_refused(load):
    one, other = load("head"), load("head")
    binding = one.program.bind_all({"keys": one.inputs["keys"]}, {})
    with pytest.raises(ProgramError, match="another program"):
        other.program.use(binding)


def test_a_binding_of_a_closed_program_is_refused(head):
    program, inputs = head
    binding = program.bind_all({"keys": inputs["keys"]}, {})
    program.close()
    with pytest.raises(ProgramError, match="closed"):
        program.use(binding)


@pytest.mark.parametrize("wrong", ["shape", "dtype", "unknown"])
def test_an_array_that_does_not_fit_is_refused_when_it_is_bound_first(head, wrong):
    program, inputs = head
    keys = inputs["keys"]
    given = {"shape": {"keys": keys[:2]}, "dtype": {"keys": keys.astype(np.float64)},
             "unknown": {"kays": keys}}[wrong]
    with pytest.raises(ProgramError, match="keys|kays"):
        program.bind_all(given, {})


class Counted:
    """A program that counts how arrays come to be bound."""

    def __init__(self, program):
        self.program, self.full, self.quick = program, 0, 0

    def bind_all(self, inputs, outputs):
        self.full += 1
        return self.program.bind_all(inputs, outputs)

    def use(self, binding):
        self.quick += 1
        self.program.use(binding)


def test_a_cache_checks_each_set_once_and_binds_none_that_is_bound(head):
    counted = Counted(head[0])
    cache = BindingCache(counted, inputs=["keys"], outputs=["y"])
    sets = [{"keys": filled(head[1]["keys"], v), "y": filled(head[0].output("y"), 0), "z": None}
            for v in range(3)]
    for one in (*sets, *sets, sets[2]):
        cache.bind(one)
        assert head[0].input("keys") is one["keys"] and head[0].output("y") is one["y"]
    assert (counted.full, counted.quick) == (3, 3)


def test_a_cache_keeps_the_sets_used_last(head):
    counted = Counted(head[0])
    cache = BindingCache(counted, inputs=["keys"], capacity=2)
    sets = [{"keys": filled(head[1]["keys"], v)} for v in range(3)]
    for index in (0, 1, 0, 2, 0, 1):
        cache.bind(sets[index])
    assert (counted.full, counted.quick) == (4, 2)


def test_a_cache_that_forgot_lets_arrays_go(head):
    cache = BindingCache(head[0], inputs=["keys"])
    gone = []

    class Noted(np.ndarray):
        def __del__(self):
            gone.append(True)

    cache.bind({"keys": filled(head[1]["keys"], 1.0).view(Noted)})
    cache.bind({"keys": head[1]["keys"]})
    gc.collect()
    assert not gone
    cache.forget()
    gc.collect()
    assert gone


def test_after_a_set_that_does_not_fit_the_next_one_is_bound(head):
    cache = BindingCache(head[0], inputs=["keys"])
    good = {"keys": filled(head[1]["keys"], 1.0)}
    cache.bind(good)
    with pytest.raises(ProgramError):
        cache.bind({"keys": np.zeros(3, np.float32)})
    head[0].bind("keys", head[1]["keys"])
    cache.bind(good)
    assert head[0].input("keys") is good["keys"]
