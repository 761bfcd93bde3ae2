# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The thread a stage computes on, from configure to cleanup.

One for all of it: a program's pool of threads inherits cpus and priority from the thread that loads
the program, and a Program is for one thread at a time. Programs run without the interpreter, so the
executor's thread serves the node meanwhile.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, Callable


class StageThread:
    """Does what it is told to, in order; or repeats one piece of work until told to stop."""

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self._orders: queue.SimpleQueue = queue.SimpleQueue()
        self._loop: Future | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, action: Callable[[], Any]) -> Any:
        """Have something done there and return what it returned, or raise what it raised."""
        return self._order(action).result()

    def begin(self, work: Callable[[], None], failed: Callable[[], None]) -> None:
        """Repeat `work` until :meth:`end`; if it raises, call `failed` in the handler, and stop."""
        self.stopping.clear()

        def loop() -> None:
            try:
                while not self.stopping.is_set():
                    work()
            except Exception:  # noqa: BLE001 - the node says what it was
                failed()

        self._loop = self._order(loop)

    def end(self, wake: Callable[[], None], timeout_s: float) -> bool:
        """Stop the repetition; return whether the last piece of work ended in time."""
        if self._loop is None:
            return True
        self.stopping.set()
        wake()
        try:
            self._loop.result(timeout=timeout_s)
        except NotInTime:
            return False
        self._loop = None
        return True

    def close(self, timeout_s: float = 5.0) -> None:
        """End the thread."""
        self._orders.put(None)
        self._thread.join(timeout_s)

    def _order(self, action: Callable[[], Any]) -> Future:
        answer: Future = Future()
        self._orders.put((action, answer))
        return answer

    def _run(self) -> None:
        while True:
            order = self._orders.get()
            if order is None:
                return
            action, answer = order
            try:
                answer.set_result(action())
            except BaseException as error:  # noqa: BLE001 - raised where it was asked for
                answer.set_exception(error)
            del order, action, answer  # they may hold a bundle's memory
