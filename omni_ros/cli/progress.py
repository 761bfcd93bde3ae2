# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far a long command has come, on standard error."""

from __future__ import annotations

import sys
import time

#: Characters of a full bar.
BAR = 24


class Bar:
    """A progress bar on a terminal; elsewhere a line every half minute."""

    def __init__(self) -> None:
        self._started = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, share: float, text: str) -> None:
        """Show how far it is, 0 to 1."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._terminal else 30.0):
            return
        self._shown = now
        filled = int(BAR * min(max(share, 0.0), 1.0))
        bar = "#" * filled + "." * (BAR - filled)
        line = f"[{bar}] {100 * share:3.0f} %  {self._clock()}  {text}"
        print(f"\r\x1b[K{line[:118]}" if self._terminal else line, file=sys.stderr,
              end="" if self._terminal else "\n", flush=True)  # fmt: skip

    def line(self, text: str) -> None:
        """Print a line that stays."""
        self.end()
        print(f"[{self._clock()}] {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the bar's line."""
        if self._terminal:
            print("\r\x1b[K", file=sys.stderr, end="", flush=True)

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._started)
        return f"{seconds // 60}:{seconds % 60:02d}"
