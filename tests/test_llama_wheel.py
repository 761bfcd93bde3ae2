# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel that set-up builds once: kept for this processor, never half of it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="no source tree")


@pytest.fixture
def tool(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield importlib.import_module("llama_wheel")
    for name in ("llama_wheel", "stamps"):
        sys.modules.pop(name, None)


class Machine:
    """Stands for pip: notes its commands and leaves a wheel where it is told to."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.environments: list[dict] = []
        self.breaks = False

    def run(self, command: list, *, env: dict | None = None) -> None:
        self.commands.append([str(word) for word in command])
        if "--wheel-dir" in command:
            self.environments.append(env)
            folder = Path(command[command.index("--wheel-dir") + 1])
            (folder / "llama_cpp_python-0.3.36-py3-none-any.whl").write_text("made")
            if self.breaks:
                raise RuntimeError("no compiler")

    @property
    def builds(self) -> int:
        return len(self.environments)


def ensure(tool, machine: Machine, folder: Path) -> bool:
    stamps = importlib.import_module("stamps").Stamps(folder)
    return tool.ensure(Path("python"), ROOT / "requirements" / "qwen.txt",
                       ROOT / "requirements" / "constraints.txt", stamps, machine.run,
                       lambda text: None)  # fmt: skip


def test_it_is_built_once_for_every_venv_of_this_user(tool, tmp_path):
    machine = Machine()
    assert ensure(tool, machine, tmp_path / "one") and machine.builds == 1
    assert not ensure(tool, machine, tmp_path / "one")
    assert ensure(tool, machine, tmp_path / "other") and machine.builds == 1
    assert machine.commands[-1][-1].endswith(".whl")


def test_it_is_built_for_this_processors_instructions(tool, tmp_path):
    machine = Machine()
    ensure(tool, machine, tmp_path / "one")
    assert "-DGGML_NATIVE=ON" in machine.environments[0]["CMAKE_ARGS"]


def test_a_wheel_of_another_processor_is_not_taken(tool, tmp_path, monkeypatch):
    machine = Machine()
    ensure(tool, machine, tmp_path / "one")
    monkeypatch.setattr(tool, "processor", lambda: "x86_64-other")
    assert ensure(tool, machine, tmp_path / "one") and machine.builds == 2


def test_a_build_that_fails_leaves_no_wheel_behind(tool, tmp_path):
    machine = Machine()
    machine.breaks = True
    with pytest.raises(RuntimeError):
        ensure(tool, machine, tmp_path / "one")
    assert not list(tool.cache_folder().rglob("*"))


def test_every_test_has_it():
    lines = (ROOT / "Makefile").read_text().splitlines()
    assert any(line.startswith("test: setup-qwen") for line in lines)
