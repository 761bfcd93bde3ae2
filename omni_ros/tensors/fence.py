# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A memory fence without native code.

A slot is guarded by one word: the writer marks it, then writes; the reader reads, then looks at the
mark. On x86-64 loads stay in order among themselves and so do stores. AArch64 keeps neither: the
mark could arrive after the bytes, or be read before them, and an overwritten slot pass for a whole
one. So both sides put a fence in between.

Releasing a lock lets nothing before it move behind it, acquiring one nothing behind it before it,
and a release followed by an acquire keeps its order: POSIX says so of the semaphores that CPython's
locks are made of ("synchronize memory"), and on AArch64 they are instructions of the kind that
is ordered among itself (STLXR and LDAXR, or LDADDL and CASA), as are those of the locks of CPython
3.13. So nothing passes from one side of the pair to the other.
"""

from __future__ import annotations

from _thread import allocate_lock


def fence() -> None:
    """Let no access to memory before the call be seen after one behind it."""
    lock = allocate_lock()  # its own: threads do not wait for each other
    lock.acquire()
    lock.release()
    lock.acquire()
