# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The text of an utterance, in pieces as they come; the voice pulls them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Callable

#: Seconds after which a voice that waits for text is given "", so that it can look around.
LOOK_S = 0.02


class TextFeed:
    """One thread puts pieces in, another iterates."""

    def __init__(self, patience_s: float) -> None:
        """:param patience_s: how long the next piece is waited for, in silence; then there is none."""
        self._patience_s = patience_s
        self._pieces: deque[str] = deque()
        self._changed = threading.Condition()
        self._since = time.monotonic()
        self.closed = False
        #: The next piece did not come in time.
        self.timed_out = False
        #: Characters put in.
        self.length = 0
        #: Whether the voice waits for text now, and how often it had to.
        self.starved, self.waits = False, 0
        #: Whether there is something to be heard still; the patience begins when there is not.
        self.audible: Callable[[], bool] = lambda: False
        #: Called when it begins to wait, by the iterating thread.
        self.on_wait: Callable[[], None] = lambda: None

    def put(self, text: str, *, last: bool) -> None:
        """Add a piece."""
        with self._changed:
            if text:
                self._pieces.append(text)
            self.length += len(text)
            self._since = time.monotonic()
            self.closed = self.closed or last
            self._changed.notify_all()

    def close(self) -> None:
        """No more comes."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    @property
    def whole(self) -> str | None:
        """All of the text if nothing of it was pulled yet and no more comes, else None."""
        with self._changed:
            return "".join(self._pieces) if self.closed else None

    def __iter__(self) -> Iterator[str]:
        with self._changed:
            # While it waited for its turn, somebody else was heard.
            self._since = time.monotonic()
        while True:
            with self._changed:
                piece = self._next()
            if piece is None:
                return
            if piece == "" and not self.starved:
                self.starved = True
                self.waits += 1
                self.on_wait()
            elif piece:
                self.starved = False
            yield piece

    def _next(self) -> str | None:
        if not self._pieces and not self.closed:
            self._changed.wait(LOOK_S)
        if self._pieces:
            return self._pieces.popleft()
        if self.closed:
            return None
        if self.audible():
            self._since = time.monotonic()
        elif time.monotonic() - self._since > self._patience_s:
            self.timed_out = self.closed = True
            return None
        return ""
