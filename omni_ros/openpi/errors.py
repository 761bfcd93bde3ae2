# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of OpenPI, and how a value of the other side is shown in them."""

from __future__ import annotations

from typing import Any

import numpy as np


class OpenPIError(ValueError):
    """Base of what goes wrong with the other side; the text says what came, what was expected."""


class WireError(OpenPIError):
    """Bytes that are no message, or a value that cannot be sent."""


class ReplyError(OpenPIError):
    """A reply that nothing can be played from.

    :ivar code: which counter it belongs to: "malformed", "shape", "non_finite" or "names".
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class RequestError(OpenPIError):
    """An observation that the policy cannot be shown."""


class SettingsError(OpenPIError):
    """Settings of the link that cannot be used."""


def brief(value: Any, limit: int = 80) -> str:
    """Show a value of the other side in a line of printable characters, however large it is."""
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} {list(value.shape)}"
    if isinstance(value, (dict, list, tuple)):
        kind = "map" if isinstance(value, dict) else "list"
        return f"a {kind} of {len(value)}"
    if isinstance(value, (str, bytes)):
        value = value[:limit]
    elif isinstance(value, int) and value.bit_length() > 256:
        return "a huge integer"
    text = repr(value).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= limit else f"{text[:limit - 3]}..."
