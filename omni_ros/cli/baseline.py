# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What this machine itself gives a bare Python process that sleeps to absolute deadlines.

Run as a process of its own beside the thing measured: `python -m omni_ros.cli.baseline 50 60`
prints its lateness as JSON. No thread, no ROS, no numpy: whatever is late here is the machine's.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0..1) of the values do not exceed.

    :return: NaN if there are no values.
    """
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def measure(rate_hz: float, seconds: float) -> dict[str, float]:
    """Sleep to absolute deadlines and record how late each waking is.

    :return: `ticks`, `missed` (deadlines skipped whole) and `p50`, `p99`, `max` in seconds.
    """
    gc.collect()
    gc.disable()
    period = round(1e9 / rate_hz)
    lateness = [0] * max(round(seconds * rate_hz), 1)
    ticks = missed = 0
    deadline = time.monotonic_ns() + period
    for _ in range(len(lateness)):
        wait = deadline - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        late = time.monotonic_ns() - deadline
        lateness[ticks] = max(late, 0)
        ticks += 1
        skipped = max(late // period, 0)
        missed += skipped
        deadline += (1 + skipped) * period
        if ticks + missed >= len(lateness):
            break
    taken = lateness[:ticks]
    return {
        "ticks": ticks,
        "missed": missed,
        "p50": percentile(taken, 0.50) / 1e9,
        "p99": percentile(taken, 0.99) / 1e9,
        "max": max(taken) / 1e9,
    }


if __name__ == "__main__":
    json.dump(measure(float(sys.argv[1]), float(sys.argv[2])), sys.stdout)
