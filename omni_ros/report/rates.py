# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of a count, with what so few tries can tell."""

from __future__ import annotations

import math

#: Standard normal quantile of a two-sided 95 % interval.
Z95 = 1.959963984540054


def wilson(successes: int, tries: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval of a share.

    Unlike the textbook interval it stays within 0..1 and says something at 0 of n and n of n.

    :param z: normal quantile; the default gives 95 %.
    :return: lower and upper bound of the share; (0, 1) of no tries.
    """
    if not 0 <= successes <= tries:
        raise ValueError(f"{successes} of {tries}: expected 0 to {tries} successes")
    if tries == 0:
        return 0.0, 1.0
    share, spread = successes / tries, z * z / tries
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / tries + spread / (4 * tries))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_text(successes: int, tries: int) -> str:
    """Return as in "49/50 98 % (90 to 100)": the count, the share, its 95 % interval in percent."""
    if tries == 0:
        return "0/0"
    low, high = wilson(successes, tries)
    share = 100 * successes / tries
    return f"{successes}/{tries} {share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
