# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys

import pytest

from omni_ros.programs import Program, ProgramError, set_threads, zeros


def refusal(path, method="forward") -> str:
    with pytest.raises(ProgramError) as caught:
        Program(path, method)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def test_a_missing_file_is_named(tmp_path):
    assert "No such file" in refusal(tmp_path / "nothing.pte")


def test_a_folder_is_no_program(tmp_path):
    assert "no regular file" in refusal(tmp_path)


def test_a_fifo_does_not_make_it_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe.pte")
    assert "no regular file" in refusal(tmp_path / "pipe.pte")


@pytest.mark.parametrize("content", [b"", b"ET12", b"\x1c\0\0\0"])
def test_a_file_too_short_for_a_program_is_refused(tmp_path, content):
    path = tmp_path / "short.pte"
    path.write_bytes(content)
    assert f"{len(content)} bytes, too few" in refusal(path)


def test_bytes_that_are_no_text_where_the_magic_belongs_are_refused(tmp_path):
    # These take the process down through ExecuTorch's own Python binding.
    path = tmp_path / "garbage.pte"
    path.write_bytes(b"\xff\xfe\xfd\xfc\x80\x81\x82\x83" * 64)
    assert "80 81 82 83" in refusal(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_program_is_refused(tmp_path, data, part):
    content = (data / "mlp.pte").read_bytes()
    path = tmp_path / "cut.pte"
    path.write_bytes(content[: int(len(content) * part)])
    refusal(path)


def test_an_unknown_method_is_refused_with_those_there_are(data):
    assert "no method 'backward'; it has: forward" in refusal(data / "mlp.pte", "backward")


def test_inputs_inside_the_memory_plan_are_refused_with_what_to_export(data):
    assert "alloc_graph_input=False" in refusal(data / "planned.pte")


def test_one_tensor_under_two_outputs_is_refused(data):
    assert "shares its tensor" in refusal(data / "twice.pte")


def test_a_name_too_many_is_refused_with_both_counts(data):
    with pytest.raises(ProgramError, match="has 1 inputs, 2 names were given"):
        Program(data / "mlp.pte", inputs=["a", "b"])


def test_a_file_that_is_cut_while_it_is_loaded_goes_on_working(tmp_path, data):
    path = tmp_path / "mlp.pte"
    path.write_bytes((data / "mlp.pte").read_bytes())
    program = Program(path)
    program.bind(0, zeros((8, 32), "float32"))
    with open(path, "r+b") as file:
        file.truncate(0)
    program.run()


def python(*lines: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_threads_are_set_once_before_the_first_load(data):
    result = python(
        "from omni_ros.programs import Program, get_threads, set_threads, zeros",
        "set_threads(1); set_threads(2); print(get_threads())",
        f"program = Program({str(data / 'slow.pte')!r})",
        "program.bind(0, zeros((4096, 64), 'float32')); program.run(); set_threads(2)",
        "try: set_threads(3)",
        "except ValueError as error: print(error)",
        "program.run(); print(get_threads())",
    )
    assert result.stdout.splitlines() == [
        "2",
        "set_threads: 3 threads asked for, but the pool has 2 and a program that holds it; "
        "set the threads before the first load",
        "2",
    ]


def test_threads_can_still_be_set_after_a_load_that_failed(tmp_path):
    result = python(
        "from omni_ros.programs import Program, get_threads, set_threads",
        "set_threads(1)",
        f"try: Program({str(tmp_path / 'nothing.pte')!r})",
        "except ValueError: set_threads(2); print(get_threads())",
    )
    assert result.stdout == "2\n", result.stderr


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 10_000])
def test_a_number_of_threads_that_makes_no_sense_is_refused(threads):
    with pytest.raises(ProgramError, match="expected an integer from 1 to 1024"):
        set_threads(threads)


def test_running_needs_neither_torch_nor_executorchs_python(data):
    result = python(
        "import sys",
        "class Refuse:",
        "    def find_spec(self, name, *rest):",
        "        if name.split('.')[0] in ('torch', 'executorch'): raise ImportError(name)",
        "sys.meta_path.insert(0, Refuse())",
        "from omni_ros.programs import Program, zeros",
        f"program = Program({str(data / 'mlp.pte')!r})",
        "program.bind(0, zeros((8, 32), 'float32')); program.run(); print('ran')",
    )
    assert result.stdout == "ran\n", result.stderr


def test_nothing_is_printed(data):
    result = python(
        "from omni_ros.programs import Program, get_threads, zeros",
        f"get_threads(); program = Program({str(data / 'mlp.pte')!r})",
        "program.bind(0, zeros((8, 32), 'float32')); program.run()",
    )
    assert (result.stdout, result.stderr) == ("", "")


def test_a_program_loaded_before_a_fork_is_refused_after_it(data):
    result = python(
        "import os",
        "from omni_ros.programs import Program, zeros",
        f"program = Program({str(data / 'mlp.pte')!r})",
        "program.bind(0, zeros((8, 32), 'float32'))",
        "if os.fork() == 0:",
        "    try: program.run()",
        "    except ValueError as error: print(error, flush=True)",
        "    os._exit(0)",
        "os.wait()",
    )
    assert "loaded before a fork" in result.stdout
