# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The C interface of native/omni_programs.h in ctypes.

ctypes releases the interpreter's lock for the length of each call, so timers and subscriptions of
the process go on while a program runs.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path

from omni_ros.programs.errors import NativeLibraryError, ProgramError
from omni_ros.programs.wheel import LIBRARY, Wheel, find_wheel

ABI = 3
MAX_RANK = 8
ERROR_BYTES = 2048


class NativeTensor(ctypes.Structure):
    """`omni_tensor` of the header."""

    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * MAX_RANK),
        ("bytes", ctypes.c_uint64),
    )


class NativePointers(ctypes.Structure):
    """`omni_pointers` of the header."""

    _fields_ = (
        ("count", ctypes.c_size_t),
        ("indices", ctypes.POINTER(ctypes.c_uint32)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


_HANDLE = ctypes.c_void_p
_ERROR = (ctypes.c_char_p, ctypes.c_size_t)
_BIND = (_HANDLE, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64, *_ERROR)
_TENSOR = ctypes.POINTER(NativeTensor)

#: name: (result, arguments)
_SIGNATURES = {
    "omni_abi": (ctypes.c_int, ()),
    "omni_executorch_version": (ctypes.c_char_p, ()),
    "omni_set_threads": (ctypes.c_int, (ctypes.c_uint32, *_ERROR)),
    "omni_threads": (ctypes.c_uint32, ()),
    "omni_load": (
        ctypes.c_int,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(_HANDLE), *_ERROR),
    ),
    "omni_unload": (None, (_HANDLE,)),
    "omni_input_count": (ctypes.c_size_t, (_HANDLE,)),
    "omni_output_count": (ctypes.c_size_t, (_HANDLE,)),
    "omni_input": (_TENSOR, (_HANDLE, ctypes.c_size_t)),
    "omni_output": (_TENSOR, (_HANDLE, ctypes.c_size_t)),
    "omni_arena_count": (ctypes.c_size_t, (_HANDLE,)),
    "omni_arena_bytes": (ctypes.c_uint64, (_HANDLE, ctypes.c_size_t)),
    "omni_backend_count": (ctypes.c_size_t, (_HANDLE,)),
    "omni_backend": (ctypes.c_char_p, (_HANDLE, ctypes.c_size_t)),
    "omni_bind_input": (ctypes.c_int, _BIND),
    "omni_bind_output": (ctypes.c_int, _BIND),
    "omni_point": (
        ctypes.c_int,
        (_HANDLE, ctypes.POINTER(NativePointers), ctypes.POINTER(NativePointers), *_ERROR),
    ),
    "omni_run": (ctypes.c_int, (_HANDLE, ctypes.POINTER(ctypes.c_int64), *_ERROR)),
}

_lock = threading.Lock()
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """Return the native library, found or built and loaded at the first call.

    :raises MissingDependency: no executorch wheel with C++ libraries is installed.
    :raises NativeLibraryError: the library cannot be built, does not load, or does not fit.
    """
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def call(function: Callable[..., int], *arguments: object, where: str) -> None:
    """Call a function that reports errors as text.

    :param where: what the message starts with, a file's path for example.
    :raises ProgramError: the function failed.
    """
    error = ctypes.create_string_buffer(ERROR_BYTES)
    if function(*arguments, error, ERROR_BYTES) != 0:
        raise ProgramError(f"{where}: {error.value.decode('utf-8', errors='replace')}")


def _load() -> ctypes.CDLL:
    wheel = find_wheel()
    path = _installed(wheel)
    try:
        # By path, so that the loader then knows them by name, whatever it would have found itself.
        for dependency in wheel.libraries:
            ctypes.CDLL(str(dependency), mode=os.RTLD_NOW)
        native = ctypes.CDLL(str(path), mode=os.RTLD_NOW)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(native, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise NativeLibraryError(
            f"{path} does not load with executorch {wheel.version} ({error}). "
            "Build it again: python -m omni_ros.programs.build, or colcon build"
        ) from error
    return native


def _installed(wheel: Wheel) -> Path:
    """Return the library of the ROS build if it fits the wheel, else the user's own."""
    beside = Path(__file__).resolve().parent / LIBRARY
    if beside.is_file() and _fits(beside, wheel):
        return beside
    # Imported here, so that `python -m omni_ros.programs.build` finds it not yet imported.
    from omni_ros.programs.build import build

    return build(wheel)


def _fits(path: Path, wheel: Wheel) -> bool:
    # Read, not loaded: a library for another version may not even load, and cannot be unloaded.
    return f"omni_programs {ABI} executorch {wheel.version};".encode() in path.read_bytes()
