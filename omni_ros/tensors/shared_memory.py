# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Named shared memory that is gone when its owner is, however that ended.

POSIX shared memory is a file of /dev/shm. Nothing removes it when a process is killed; so an owner
holds a lock (flock) on its file, which the kernel drops with the process, and whoever makes a new
one removes those that nobody holds. That works across containers that share /dev/shm and not the
process ids, and cannot mistake a reused id. The id and start time in a name are for people.

Other users cannot open the file. A process of the same user is trusted: by cutting the file short
it could end a reader (SIGBUS).
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import secrets
import stat
from pathlib import Path

from omni_ros.tensors.errors import HandleError, RingError

FOLDER = Path("/dev/shm")
PREFIX = "omni_ros"
_WHAT = r"[a-z0-9_]{1,40}"
_NAME = re.compile(rf"{PREFIX}\.[0-9]{{1,10}}\.[0-9]{{1,20}}\.[0-9a-f]{{16}}\.{_WHAT}", re.ASCII)
_TRIES = 8
_MB = 1e6


class SharedMemory:
    """A mapped file of /dev/shm.

    :ivar name: of the file. :ivar map: the mapping. It lives as long as an array over it does,
        also after :meth:`close`.
    """

    def __init__(self, name: str, fd: int, size: int, *, owned: bool, folder: Path) -> None:
        self.name, self.size, self.owned = name, size, owned
        self._fd, self._path, self._process = fd, folder / name, os.getpid()
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if owned else 0)
        # Pages are there from now on, so that the first hop costs what the others do.
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        try:
            self.map = mmap.mmap(fd, size, flags=flags, prot=protection)
        except (OSError, ValueError) as error:
            raise RingError(
                f"{self._path}: {size / _MB:.1f} MB cannot be mapped ({error}); raise the limit on "
                "this process's memory (ulimit -v), or set transport:=inline"
            ) from error

    @property
    def gone(self) -> bool:
        """True if the name is: the owner closed it, or it was swept after the owner's death."""
        return self._fd < 0 or os.fstat(self._fd).st_nlink == 0

    def close(self) -> None:
        """Remove the name if it is ours, and let the mapping go."""
        if self._fd < 0:
            return
        # A fork has the same object and must not take it from its parent.
        if self.owned and self._process == os.getpid():
            self._path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd, self.map = -1, None


def create(what: str, size: int, *, folder: Path = FOLDER) -> SharedMemory:
    """Make shared memory of `size` bytes, zeros, with mode 0600; remove what dead owners left.

    :param what: part of the name, 1 to 40 of a-z, 0-9 and _.
    :raises RingError: there is none, or too little; with need and have.
    """
    if not re.fullmatch(_WHAT, what, re.ASCII):
        raise HandleError(f"{what!r} cannot name shared memory; expected 1 to 40 of a-z, 0-9 and _")
    if not folder.is_dir():
        raise RingError(
            f"there is no {folder}, so no shared memory; mount one (docker run --shm-size=256m), "
            "or set transport:=inline"
        )
    sweep(folder)
    for _ in range(_TRIES):
        name = f"{PREFIX}.{os.getpid()}.{_start_time()}.{secrets.token_hex(8)}.{what}"
        try:
            fd = os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
                         | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise RingError(
                f"{folder}/{name} cannot be made ({error.strerror}); let this user write to "
                f"{folder}, or set transport:=inline"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink == 0:  # swept before it was locked
                os.close(fd)
                continue
            _reserve(fd, size, folder)
            return SharedMemory(name, fd, size, owned=True, folder=folder)
        except BaseException:
            (folder / name).unlink(missing_ok=True)
            os.close(fd)
            raise
    raise RingError(f"{folder}: something removes new shared memory at once; {_TRIES} tries failed")


def attach(name: str, *, folder: Path = FOLDER) -> SharedMemory:
    """Map another process's shared memory, to read.

    :raises HandleError: no name of ours. :raises RingError: not there, or not this user's.
    """
    check_name(name)
    path = folder / name
    try:
        # Not to wait for a writer, should it be a pipe.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RingError(
            f"{path} cannot be opened ({error.strerror}): its owner has ended, or is another user "
            "or machine; set transport:=inline there if that stays so"
        ) from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise RingError(
                f"{path} belongs to user {status.st_uid}, this process is user {os.geteuid()}; run "
                "all stages as one user, or set transport:=inline"
            )
        if status.st_size == 0:
            raise RingError(f"{path} is empty; its owner has ended while it made it")
        return SharedMemory(name, fd, status.st_size, owned=False, folder=folder)
    except BaseException:
        os.close(fd)
        raise


def check_name(name: str) -> None:
    """:raises HandleError: `name` is none that :func:`create` gives."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise HandleError(
            f"{str(name)[:80]!r} is no name of shared memory; expected "
            f"{PREFIX}.<pid>.<start>.<16 hex digits>.<what>"
        )


def sweep(folder: Path = FOLDER) -> list[str]:
    """Remove shared memory of this user whose owner has ended; return the names."""
    swept = []
    try:
        names = [entry for entry in os.listdir(folder) if _NAME.fullmatch(entry)]
    except OSError:
        return swept
    for name in names:
        try:
            fd = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # removed meanwhile, or another user's
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(folder / name)
            swept.append(name)
        except OSError:
            continue  # its owner lives, or another sweep was faster
        finally:
            os.close(fd)
    return swept


def _reserve(fd: int, size: int, folder: Path) -> None:
    """Take the pages now: without them a write would end the process (SIGBUS) later."""
    from omni_ros.telemetry import machine

    status = os.fstatvfs(fd)
    left = {f"{folder} has": status.f_bavail * status.f_frsize,
            "this process can have": machine.memory()["available"]}
    for whose, have in left.items():
        if have is not None and size > have:
            raise _too_small(size, whose, have)
    try:
        os.fchmod(fd, 0o600)
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM, errno.EFBIG):
            raise RingError(f"{folder}: {size / _MB:.1f} MB cannot be had ({error.strerror})"
                            ) from error
        whose = next(iter(left))
        raise _too_small(size, whose, left[whose]) from error


def _too_small(need: int, whose: str, have: int) -> RingError:
    return RingError(
        f"a ring needs {need / _MB:.1f} MB of shared memory, {whose} {have / _MB:.1f} MB; give a "
        "container more (docker run --shm-size=256m), lower ring_slots, or set transport:=inline"
    )


def _start_time() -> int:
    """Start of this process in clock ticks since boot; 0 where the system does not tell."""
    try:
        text = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
