# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: help, exit statuses, errors in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from omni_ros import __version__
from omni_ros.cli import UsageError, main
from omni_ros.cli.children import child_environment
from omni_ros.requirements import MissingDependency


def run_omni(*words: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "omni_ros.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**child_environment(), **environment},
        cwd="/",
    )


@pytest.fixture
def command(monkeypatch):
    """Install a subcommand "probe" whose run is the given function."""

    def install(run):
        module = type("module", (), {"add_arguments": staticmethod(lambda parser: None)})
        module.run = staticmethod(run)
        table = {"probe": main.Command("try something", "omni_ros.cli.probe")}
        monkeypatch.setattr(main, "COMMANDS", table)
        monkeypatch.setattr(main.importlib, "import_module", lambda name: module)

    monkeypatch.delenv("OMNI_DEBUG", raising=False)
    return install


def raising(error):
    def run(arguments):
        raise error

    return run


def test_help_lists_the_commands_and_says_which_are_still_to_come(capsys):
    assert main.main(["--help"]) == main.OK
    ready, _, later = capsys.readouterr().out.partition("not in this version")
    assert all(f"  {name} " in ready for name in main.COMMANDS)
    assert all(f"  {name} " in later for name in main.LATER)


def test_without_a_command_the_help_goes_to_standard_error_and_the_status_is_2(capsys):
    assert main.main([]) == main.USAGE
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("usage: omni")


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_that_of_the_package(capsys, option):
    assert main.main([option]) == main.OK
    assert capsys.readouterr().out == f"omni {__version__}\n"


@pytest.mark.parametrize("name", sorted(main.LATER))
def test_a_command_still_to_come_says_so_in_one_line_and_exits_2(capsys, name):
    assert main.main([name, "some", "--option"]) == main.USAGE
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert f"omni {name}" in err and f"not in this version ({__version__})" in err


def test_an_unknown_command_lists_the_known_ones(capsys):
    assert main.main(["docter"]) == main.USAGE
    err = capsys.readouterr().err
    assert "'docter'" in err and "doctor" in err and err.count("\n") == 1


def test_an_unknown_option_exits_2():
    assert main.main(["doctor", "--no-such-option"]) == main.USAGE


def test_every_command_explains_itself(capsys):
    for name in main.COMMANDS:
        assert main.main([name, "--help"]) == main.OK
        assert f"usage: omni {name}" in capsys.readouterr().out


def test_the_status_of_a_command_is_passed_on(command):
    command(lambda arguments: main.FAILED)
    assert main.main(["probe"]) == main.FAILED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MissingDependency("mujoco is not installed"), main.USAGE),
        (UsageError("--rate 0: expected 1 to 1000"), main.USAGE),
        (RuntimeError("broken\nin two lines"), main.FAILED),
        (OSError(28, "No space left on device"), main.FAILED),
        (KeyError("left"), main.FAILED),
    ],
)
def test_an_error_is_one_line_and_has_its_own_status(command, capsys, error, status):
    command(raising(error))
    assert main.main(["probe"]) == status
    err = capsys.readouterr().err
    assert err.startswith("omni probe: error: ") and err.count("\n") == 1
    assert "Traceback" not in err


def test_omni_debug_shows_where_an_error_came_from(command, monkeypatch):
    monkeypatch.setenv("OMNI_DEBUG", "1")
    command(raising(RuntimeError("broken")))
    with pytest.raises(RuntimeError, match="broken"):
        main.main(["probe"])


def test_an_interrupt_ends_without_a_traceback(command, capsys):
    command(raising(KeyboardInterrupt()))
    assert main.main(["probe"]) == main.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_being_told_to_end_unwinds_the_command_and_exits_143(command, capsys):
    unwound = []

    def run(arguments):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)  # a second one does not cut the ending short
            unwound.append(True)

    before = signal.getsignal(signal.SIGTERM)
    command(run)
    assert main.main(["probe"]) == main.TERMINATED == 143
    assert unwound == [True] and capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGTERM) is before


def test_help_imports_neither_numpy_nor_any_command():
    code = (
        "import sys; from omni_ros.cli.main import main; main(['--help']);"
        "bad = {'numpy', 'yaml', 'rclpy', 'omni_ros.cli.doctor', 'omni_ros.cli.bench'};"
        "sys.exit(', '.join(sorted(bad & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=child_environment(),
        cwd="/",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_causes_no_complaint(unbuffered):
    process = subprocess.Popen(
        [sys.executable, "-m", "omni_ros.cli.main", "doctor", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**child_environment(), "PYTHONUNBUFFERED": unbuffered},
        cwd="/",
    )
    os.close(process.stdout.fileno())
    process.stdout = None
    _, err = process.communicate(timeout=120)
    assert err == b""


def test_the_bench_of_the_player_without_ros_names_what_to_type():
    # Hide ROS: an isolated interpreter path in which rclpy cannot be found.
    code = (
        "import sys; sys.modules['rclpy'] = None;"
        "from omni_ros.cli.main import main; sys.exit(main(['bench', 'player']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=child_environment(),
        cwd="/",
        timeout=60,
    )
    assert done.returncode == main.USAGE
    assert "rclpy" in done.stderr and "Type: " in done.stderr and done.stderr.count("\n") == 1
