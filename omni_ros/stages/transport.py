# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the next stage can reach this machine's memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reader:
    """The next stage, as its status tells.

    :param scope: boot and PID namespace of its process. :param wants_inline: it has found that the
        rings cannot be reached, although the scope says so.
    """

    scope: str
    wants_inline: bool = False


def hand_over_inline(scope: str, reader: Reader | None) -> bool:
    """Return whether tensors have to go in the message.

    A reader that says nothing of itself gets them there: that is always right, only slower.

    :param scope: of this process; "" if the system does not tell.
    """
    if reader is None or not scope:
        return True
    return reader.scope != scope or reader.wants_inline
