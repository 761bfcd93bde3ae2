# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import gc
import mmap
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from omni_ros.programs import Program, ProgramError, zeros


@pytest.mark.parametrize("name", ["mlp", "pair", "head", "portable", "slow"])
def test_outputs_equal_what_eager_pytorch_gave(load, name):
    loaded = load(name)
    loaded.program.run()
    for key, expected in loaded.expected.items():
        np.testing.assert_allclose(loaded.program.output(key), expected, rtol=0, atol=2e-6)


def test_specs_give_name_shape_and_dtype(load):
    program = load("head").program
    assert [str(spec) for spec in program.inputs] == [
        "x: float32 [4, 8]", "keys: float32 [4, 8]", "values: float32 [4, 8]",
    ]  # fmt: skip
    assert (program.outputs[0].shape, program.outputs[0].nbytes) == ((4, 8), 128)


def test_integers_are_taken_as_integers(load):
    loaded = load("portable")
    assert loaded.program.inputs[0].dtype == "int64"
    assert loaded.program.backends == ()
    assert loaded.program.arenas == (256,)


def test_a_fully_delegated_program_plans_no_arena(load):
    program = load("mlp").program
    assert program.backends == ("XnnpackBackend",)
    assert sum(program.arenas) == 0


def test_a_program_sees_what_is_written_to_a_bound_array_later(load):
    loaded = load("mlp")
    loaded.program.run()
    before = loaded.program.output("y").copy()
    loaded.inputs["x"] *= 2.0
    loaded.program.run()
    assert not np.array_equal(loaded.program.output("y"), before)


def test_outputs_stay_the_same_arrays_and_are_overwritten(load):
    loaded = load("pair")
    first = loaded.program.output("keys")
    address = first.ctypes.data
    for _ in range(20):
        loaded.program.run()
        assert loaded.program.output("keys") is first
    assert first.ctypes.data == address
    loaded.inputs["x"][...] = 0.0
    loaded.program.run()
    assert not np.allclose(first, loaded.expected["keys"])


def test_an_output_is_handed_on_as_an_input_without_a_copy(load):
    pair, head = load("pair"), load("head")
    for key in ("keys", "values"):
        head.program.bind(key, pair.program.output(key))
    pair.program.run()
    head.program.run()
    once = head.program.output("y").copy()
    pair.inputs["x"] += 1.0
    pair.program.run()
    head.program.run()
    assert not np.allclose(once, head.program.output("y"))
    assert head.program.input("keys") is pair.program.output("keys")


def test_a_handed_on_output_outlives_the_program_that_wrote_it(load):
    pair, head = load("pair"), load("head")
    pair.program.run()
    head.program.run()
    head.program.bind("keys", pair.program.output("keys"))
    expected = pair.program.output("keys").copy()
    pair.program.close()
    del pair
    gc.collect()
    head.program.run()
    np.testing.assert_array_equal(head.program.input("keys"), expected)


def test_bound_arrays_are_kept_alive(load):
    loaded = load("mlp")
    array = zeros((8, 32), "float32")
    array[...] = loaded.inputs["x"]
    count = sys.getrefcount(array)
    loaded.program.bind("x", array)
    assert sys.getrefcount(array) == count + 1


def test_an_output_can_be_written_into_an_array_of_the_callers(load):
    loaded = load("mlp")
    own = loaded.program.output("y")
    slot = zeros((8, 4), "float32")
    loaded.program.bind_output("y", slot)
    loaded.program.run()
    np.testing.assert_allclose(slot, loaded.expected["y"], rtol=0, atol=2e-6)
    assert loaded.program.output("y") is slot
    assert not own.any()


def test_run_returns_seconds(load):
    assert 0.0 < load("slow").program.run() < 60.0


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((8, 33), np.float32), ["x", "[8, 33]", "[8, 32]"]),
        (np.zeros((256,), np.float32), ["[256]", "[8, 32]"]),
        (np.zeros((8, 32), np.float64), ["float64", "float32"]),
        (np.zeros((8, 32), ">f4"), [">f4", "float32"]),
        (np.zeros((32, 8), np.float32).T, ["strides [4, 32]", "C-contiguous"]),
        (np.zeros((8, 64), np.float32)[:, ::2], ["strides [256, 8]", "C-contiguous"]),
        (np.zeros(1025, np.uint8)[1:].view(np.float32).reshape(8, 32), ["aligned"]),
        ([[0.0] * 32] * 8, ["list", "numpy array"]),
    ],
)
def test_an_array_that_does_not_fit_is_refused_with_both_sides(load, array, words):
    program = load("mlp").program
    with pytest.raises(ProgramError) as caught:
        program.bind("x", array)
    for word in [*words, "mlp.pte"]:
        assert word in str(caught.value)


@pytest.mark.parametrize("which", ["z", 1, -1, True])
def test_an_unknown_input_is_refused_with_those_there_are(load, which):
    with pytest.raises(ProgramError, match=r"no input .*x: float32 \[8, 32\]"):
        load("mlp").program.bind(which, zeros((8, 32), "float32"))


def test_a_read_only_output_is_refused(load):
    array = zeros((8, 4), "float32")
    array.flags.writeable = False
    with pytest.raises(ProgramError, match="read-only"):
        load("mlp").program.bind_output("y", array)


def test_an_output_may_not_share_memory_with_an_input_of_its_program(load):
    program = load("head").program
    with pytest.raises(ProgramError, match="memory that y of the same program"):
        program.bind("x", program.output("y"))
    with pytest.raises(ProgramError, match="memory that x of the same program"):
        program.bind_output("y", program.input("x"))


def test_an_array_at_the_very_end_of_readable_memory_is_refused(load):
    # Kernels may read some bytes past the end; here the page behind it cannot be read.
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 2 * page)
    view = np.frombuffer(area, np.float32)
    protect(view.ctypes.data + page, page, 0)
    with pytest.raises(ProgramError, match="16 bytes after the array.*programs.zeros"):
        load("mlp").program.bind("x", view[(page - 1024) // 4 : page // 4].reshape(8, 32))
    protect(view.ctypes.data + page, page, mmap.PROT_READ | mmap.PROT_WRITE)


def protect(address: int, length: int, rights: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert libc.mprotect(address, length, rights) == 0


def test_a_run_with_an_unbound_input_is_refused(data):
    program = Program(data / "head.pte")
    program.bind(0, zeros((4, 8), "float32"))
    with pytest.raises(ProgramError, match="input 1 of 3 is not bound"):
        program.run()


def test_other_python_threads_go_on_during_a_run(load):
    program = load("slow").program
    count, stop = [0], threading.Event()

    def work() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    thread.start()
    progress = 0
    try:
        # Now no thread is made to give up the interpreter's lock: whatever the other one counts,
        # it counts because the run itself released the lock.
        sys.setswitchinterval(1000.0)
        for _ in range(100):
            before = count[0]
            program.run()
            progress += count[0] - before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert progress > 100


def test_a_second_thread_in_the_same_program_is_refused(load):
    program = load("slow").program
    outcomes: list[str] = []
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        for _ in range(20):
            try:
                program.run()
                outcomes.append("ran")
            except ProgramError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [outcome for outcome in outcomes if outcome != "ran"]
    assert "ran" in outcomes
    assert all("another thread is using this program" in outcome for outcome in refused)


def test_two_programs_run_in_two_threads_with_their_own_results(load):
    pair, slow = load("pair"), load("slow")
    failures: list[str] = []

    def work(loaded, runs: int) -> None:
        for _ in range(runs):
            loaded.program.run()
            for key, expected in loaded.expected.items():
                if not np.allclose(loaded.program.output(key), expected, rtol=0, atol=2e-6):
                    failures.append(key)

    threads = [
        threading.Thread(target=work, args=(slow, 20)),
        threading.Thread(target=work, args=(pair, 500)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_two_thousand_runs_and_binds_leave_no_memory_behind(load):
    loaded = [load(name) for name in ("mlp", "pair", "portable")]
    arrays = [(key, array) for item in loaded for key, array in item.inputs.items()]
    programs = [item.program for item in loaded]

    def run_all(times: int) -> None:
        for _ in range(times):
            for program, (key, array) in zip(programs, arrays, strict=True):
                program.bind(key, array)
                program.run()

    run_all(200)
    gc.collect()
    before = resident_bytes()
    run_all(2000)
    gc.collect()
    assert resident_bytes() - before < 1 << 20


def test_loading_and_freeing_leaves_no_memory_behind(data):
    def cycle(times: int) -> None:
        for _ in range(times):
            program = Program(data / "mlp.pte")
            program.bind(0, zeros((8, 32), "float32"))
            program.run()
            program.close()

    cycle(50)
    gc.collect()
    before = resident_bytes()
    cycle(200)
    gc.collect()
    assert resident_bytes() - before < 2 << 20


def test_a_closed_program_says_so(load):
    program = load("mlp").program
    program.close()
    program.close()
    with pytest.raises(ProgramError, match="closed"):
        program.run()


def test_zeros_are_aligned_and_zero():
    for shape in ((3,), (8, 32), (1, 1, 7)):
        array = zeros(shape, "float32")
        assert array.ctypes.data % 64 == 0
        assert array.shape == shape
        assert not array.any()
