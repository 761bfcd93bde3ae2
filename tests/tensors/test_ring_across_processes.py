# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A writer in another process that never waits: what passes the check was never torn."""

from __future__ import annotations

import time

import numpy as np
import pytest

from omni_ros.tensors import RingError, SlotOverwritten, TensorRing

WRITER = """
import sys
from pathlib import Path
from omni_ros.tensors import TensorRing

ring = TensorRing.create("hot", slots=2, slot_bytes=int(sys.argv[2]), folder=Path(sys.argv[1]))
print(ring.name, flush=True)
while True:
    slot = ring.begin()
    number = ring._written % 251
    for start in range(0, ring.slot_bytes, 4096):
        slot.payload[start:start + 4096] = number
    ring.commit(slot)
"""

ONE_WRITE = """
import sys
from pathlib import Path
from omni_ros.tensors import TensorRing

ring = TensorRing.create("cold", slots=2, slot_bytes=4096, folder=Path(sys.argv[1]))
for value in (1, 2):
    slot = ring.begin()
    slot.payload[:] = value
    ring.commit(slot)
print(ring.name, flush=True)
for line in sys.stdin:
    slot = ring.begin()
    slot.payload[:] = 9
    print(slot.index, flush=True)
"""


def newest(ring):
    """Return (slot, sequence) of the newest write that is there, None while there is none."""
    words = [ring._words[8 * slot] for slot in range(ring.slots)]
    whole = [(word // 2, slot) for slot, word in enumerate(words) if word and word % 2 == 0]
    return (max(whole)[1], max(whole)[0]) if whole else None


@pytest.mark.parametrize("slot_bytes", [4096, 1 << 18])
def test_a_slot_that_passes_the_check_was_never_torn(start_python, tmp_path, slot_bytes):
    writer = start_python(WRITER, tmp_path, slot_bytes)
    ring = TensorRing.attach(writer.stdout.readline().strip(), folder=tmp_path)
    whole = overwritten = torn = 0
    end = time.monotonic() + 20
    # As long as it takes to see both happen often; the end is for a machine that has stopped.
    while time.monotonic() < end and not (whole >= 50 and overwritten >= 50):
        place = newest(ring)
        if place is None:
            continue
        try:
            copy = ring.view(*place).copy()
            if overwritten < 50:
                time.sleep(0.0002)  # let the writer come round
                copy = ring.view(*place).copy()
            torn += len(np.unique(copy)) != 1 or copy[0] != place[1] % 251
            ring.check(*place)
        except SlotOverwritten:
            overwritten += 1
            torn = 0  # noticed
            continue
        assert not torn
        whole += 1
    assert whole >= 50 and overwritten >= 50


def test_a_write_forced_in_the_middle_of_reading_is_noticed(start_python, tmp_path):
    writer = start_python(ONE_WRITE, tmp_path)
    ring = TensorRing.attach(writer.stdout.readline().strip(), folder=tmp_path)
    place = (1, 1)
    view = ring.view(*place)
    first = view[:2048].copy()
    writer.stdin.write("now\n")
    writer.stdin.flush()
    assert int(writer.stdout.readline()) == place[0]
    assert first[0] == 1 and view[2048] == 9  # torn, if it were used
    with pytest.raises(SlotOverwritten):
        ring.check(*place)


def test_what_a_killed_owner_wrote_stays_readable_to_who_has_it(start_python, tmp_path):
    writer = start_python(ONE_WRITE, tmp_path)
    ring = TensorRing.attach(writer.stdout.readline().strip(), folder=tmp_path)
    writer.kill()
    writer.wait()
    TensorRing.create("next", slots=2, slot_bytes=8, folder=tmp_path).close()
    assert ring.gone
    assert (ring.view(1, 1) == 1).all()
    ring.check(1, 1)
    with pytest.raises(RingError, match="cannot be opened"):
        TensorRing.attach(ring.name, folder=tmp_path)
