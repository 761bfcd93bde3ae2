# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Phonemes from Debian's espeak-ng, as a process that is kept warm.

It is a program under the GPL that we run, not a library that we link. It writes its answers a line
at a time only to a terminal, so its output is one (a pty); a new process for each text would cost
35 ms, the warm one costs 1. Punctuation it drops, so that is split off before and put back behind.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from omni_ros.requirements import MissingDependency
from omni_ros.speech.voice import SpeechError

PROGRAM = "espeak-ng"
#: Seconds for one line; it takes some milliseconds.
TIMEOUT_S = 5.0
#: Seconds between looks at whether the answer is still wanted.
_LOOK_S = 0.02
#: espeak-ng cuts longer lines by itself, and somewhere.
MAX_LINE = 300
#: A line that no text has as its answer: phonemes given as such, which English does not know.
_MARK = "[[q]] [[q]] [[q]]"
_PUNCTUATION = re.compile(r"([,;:.!?])")
#: A Ctrl-C is not for it. In the same session, else the kernel (autogroup) takes it for another
#: program, and it waits for its turn as if it had no part in the speech: 40 ms on a busy machine.
_APART: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
)
#: What espeak-ng says about a change of language, for example (en).
_NOTE = re.compile(r"\([^)]*\)")


class Espeak:
    """A warm espeak-ng. For one thread at a time; a second one waits.

    :param voice: its voice, for example en-us.
    :param cpus: what it is confined to; None: leave it.
    :raises MissingDependency: espeak-ng is not installed; with what to type.
    :raises SpeechError: it does not start, or does not know the voice.
    """

    def __init__(self, voice: str = "en-us", cpus: Sequence[int] | None = None) -> None:
        path = shutil.which(PROGRAM)
        if path is None:
            raise MissingDependency(
                f"{PROGRAM} is not installed (Debian: {PROGRAM}); it is needed to turn text into "
                f"phonemes. Type: sudo apt install {PROGRAM}", name=PROGRAM,
            )
        self.voice, self._path, self._cpus = voice, path, None if cpus is None else set(cpus)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1
        self._mark = ""
        with self._lock:
            self._begin()

    def phonemes(self, text: str, wanted: Callable[[], bool] = lambda: True) -> str:
        """Return the phonemes of a text, with its punctuation.

        :param text: what `text.normalise` made.
        :param wanted: asked now and then; False ends the wait with "".
        :raises SpeechError: espeak-ng ended twice, or does not answer.
        """
        made: list[str] = []
        for part in _PUNCTUATION.split(text):
            if _PUNCTUATION.fullmatch(part):
                if made and made[-1] != part:
                    made.append(part)
                continue
            for line in _lines(part):
                said = self._ask(line, wanted)
                if not wanted():
                    return ""
                if said:
                    made.append((" " if made else "") + said)
        return "".join(made)

    def close(self) -> None:
        """End the process. May be called twice."""
        with self._lock:
            self._end()

    def __enter__(self) -> Espeak:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- the process -----------------------------------------------------------------------------

    def _ask(self, line: str, wanted: Callable[[], bool]) -> str:
        with self._lock:
            try:
                return self._exchange(line, wanted)
            except (OSError, ValueError, _Ended):
                # It was killed, or has crashed: once more, with a new one.
                self._end()
                self._begin()
            try:
                return self._exchange(line, wanted)
            except (OSError, ValueError, _Ended) as error:
                self._end()
                raise SpeechError(
                    f"{PROGRAM} ended while it worked on {line[:60]!r} ({error}); try "
                    f"{PROGRAM} -q --ipa -v {self.voice} by hand"
                ) from None

    def _exchange(self, line: str, wanted: Callable[[], bool]) -> str:
        if self._process is None:
            self._begin()
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(f"{line}\n{_MARK}\n".encode())
        self._process.stdin.flush()
        answer = self._read(self._mark, wanted)
        if answer is None:
            # What is still to come belongs to nobody.
            self._end()
            return ""
        return " ".join(_NOTE.sub("", answer).split())

    def _begin(self) -> None:
        terminal, theirs = pty.openpty()
        # No echo, no change of line ends, no line editing.
        mode = termios.tcgetattr(theirs)
        mode[1] &= ~termios.OPOST
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(theirs, termios.TCSANOW, mode)
        os.set_blocking(terminal, False)
        try:
            self._process = subprocess.Popen(
                [self._path, "-q", "--ipa", "-v", self.voice],
                stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C.UTF-8"}, **_APART,
            )
        except OSError as error:
            os.close(terminal)
            raise SpeechError(f"{self._path} does not start: {error.strerror}") from error
        finally:
            os.close(theirs)
        self._terminal = terminal
        if self._cpus is not None:
            os.sched_setaffinity(self._process.pid, self._cpus)
        assert self._process.stdin is not None
        try:
            # What this version makes of the mark.
            self._process.stdin.write(f"{_MARK}\n".encode())
            self._process.stdin.flush()
            self._mark = ""
            self._mark = (self._read("", lambda: True) or "").strip()
        except (OSError, _Ended):
            self._end()
            raise SpeechError(
                f"{PROGRAM} does not start with the voice {self.voice!r}; {PROGRAM} --voices lists "
                "those that it has"
            ) from None

    def _read(self, until: str, wanted: Callable[[], bool]) -> str | None:
        """Return what comes before the line `until` (the first line, if ""); None: not wanted."""
        assert self._process is not None
        found, deadline = b"", time.monotonic() + TIMEOUT_S
        end = f"{until}\n".encode()
        while True:
            ready, _, _ = select.select([self._terminal], [], [], _LOOK_S)
            if ready:
                try:
                    data = os.read(self._terminal, 1 << 16)
                except BlockingIOError:
                    continue
                except OSError:  # EIO: the other side has closed
                    data = b""
                if not data:
                    raise _Ended(f"status {self._process.wait(timeout=1)}")
                found += data
                if not until and b"\n" in found:
                    return found.decode("utf-8", "replace")
                if until and (found == end or found.endswith(b"\n" + end)):
                    return found[: -len(end)].decode("utf-8", "replace")
            if not wanted():
                return None
            if time.monotonic() > deadline:
                raise _Ended(f"no answer within {TIMEOUT_S:g} s")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            assert process.stdin is not None
            try:
                process.stdin.close()
            except OSError:
                pass
            process.wait()
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1


class _Ended(RuntimeError):
    pass


def _lines(text: str) -> list[str]:
    """Return a text in lines that espeak-ng takes whole."""
    words, lines = text.split(), []
    line = ""
    for word in words:
        while len(word) > MAX_LINE:
            lines += [line] if line else []
            line, word = word[:MAX_LINE], word[MAX_LINE:]
        if line and len(line) + 1 + len(word) > MAX_LINE:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines
