# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Entry point of the `omni` command.

Exit statuses: 0 all is well, 1 a check failed, 2 wrong usage or something to install,
130 interrupted, 143 told to end (SIGTERM).
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from omni_ros import __version__
from omni_ros.cli import UsageError
from omni_ros.requirements import MissingDependency

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130
TERMINATED = 143


@dataclass(frozen=True)
class Command:
    """A subcommand.

    :param summary: its line in `omni --help`.
    :param module: has `add_arguments(parser)` and `run(arguments) -> int`; imported when called.
    """

    summary: str
    module: str


COMMANDS: Mapping[str, Command] = {
    "demo": Command("run the arm in the table-top world, then say how it went", "omni_ros.cli.demo"),
    "doctor": Command("say what this machine offers and what is amiss", "omni_ros.cli.doctor"),
    "export": Command("turn a checkpoint into a bundle for a robot", "omni_ros.cli.export"),
    "inspect": Command("show what is in a bundle, and verify it", "omni_ros.cli.inspect"),
    "parity": Command("compare a bundle with recorded tensors of its checkpoint",
                      "omni_ros.cli.parity"),  # fmt: skip
    "record": Command("record the running graph, or mend a recording", "omni_ros.cli.record"),
    "replay": Command("would the robot decide the same again? A bag in, a verdict out",
                      "omni_ros.cli.replay"),  # fmt: skip
    "serve": Command("serve a bundle to OpenPI clients", "omni_ros.cli.serve"),
    "say": Command("speak a text, or list the sound devices", "omni_ros.cli.say"),
    "train-tabletop": Command("train the table-top policy from nothing",
                              "omni_ros.cli.train_tabletop"),  # fmt: skip
    "bench": Command("measure a part on this machine", "omni_ros.cli.bench"),
}

#: Announced so that their names are not taken for something else; there is no code behind them yet.
LATER: Mapping[str, str] = {}


def help_text() -> str:
    """Return what `omni --help` prints."""
    width = max(map(len, [*COMMANDS, *LATER]))
    lines = ["usage: omni [--version] [--help] COMMAND ...", ""]
    lines += ["Policies, safe playback and speech for ROS 2 robots.", "", "commands:"]
    lines += [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    if LATER:
        lines += ["", f"not in this version ({__version__}), to come with later ones:"]
    lines += [f"  {name:{width}}  {summary}" for name, summary in LATER.items()]
    lines += ["", "omni COMMAND --help explains a command. OMNI_DEBUG=1 shows tracebacks."]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    :param arguments: without the program's name; `sys.argv[1:]` if None.
    :return: the exit status.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _ending_in_good_order():
            status = _dispatch(words)
            # Here, where a reader that has gone can be dealt with, and not as Python exits.
            sys.stdout.flush()
            return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except SystemExit as end:  # argparse ends this way
        return end.code if isinstance(end.code, int) else OK if end.code is None else USAGE
    # ValueError is what the core raises when it refuses an input; its message is meant for the user.
    except (MissingDependency, UsageError, ValueError) as error:
        return _fail(words, error, USAGE)
    except Exception as error:
        return _fail(words, error, FAILED)


@contextmanager
def _ending_in_good_order() -> Iterator[None]:
    """Let SIGTERM unwind the command, as Ctrl-C does, so that it ends what it has started.

    Python's default ends the process on the spot, and a graph would run on without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the ending short
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        stream = sys.stdout if words else sys.stderr
        stream.write(help_text())
        return OK if words else USAGE
    name, rest = words[0], words[1:]
    if name in ("-V", "--version"):
        print(f"omni {__version__}")
        return OK
    if name in LATER:
        raise UsageError(
            f"not in this version ({__version__}); it is to come with a later one. "
            f"There are: {', '.join(COMMANDS)}"
        )
    if name not in COMMANDS:
        known = ", ".join(COMMANDS)
        raise UsageError(f"there is no command {name!r}; expected one of: {known}")
    module = importlib.import_module(COMMANDS[name].module)
    parser = argparse.ArgumentParser(prog=f"omni {name}", description=COMMANDS[name].summary)
    module.add_arguments(parser)
    return module.run(parser.parse_args(rest))


def _fail(words: list[str], error: BaseException, status: int) -> int:
    if os.environ.get("OMNI_DEBUG", "0") not in ("", "0"):
        raise error
    known = words and (words[0] in COMMANDS or words[0] in LATER)
    program = f"omni {words[0]}" if known else "omni"
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, (MissingDependency, UsageError, ValueError)):
        text = f"{type(error).__name__}: {text} (OMNI_DEBUG=1 shows where)"
    print(f"{program}: error: {text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
