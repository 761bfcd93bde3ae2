# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The one thread pool that all programs of a process share."""

from __future__ import annotations

from omni_ros.programs import native


def set_threads(threads: int) -> None:
    """Set how many threads a run uses, the calling one included.

    Once per process, before the first program is loaded: a loaded program keeps a pointer to the
    pool, and a new pool would leave it hanging in its next run.

    :param threads: 1 or more; as many as cores that nothing else needs.
    :raises ProgramError: another number is in force and a program is loaded; the message has both.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise native.ProgramError(f"set_threads({threads!r}): expected an integer from 1 to 1024")
    native.call(native.library().omni_set_threads, threads, where="set_threads")


def get_threads() -> int:
    """Return the number of threads of the pool."""
    return int(native.library().omni_threads())
