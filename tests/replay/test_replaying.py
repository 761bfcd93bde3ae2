# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recording done again."""

from __future__ import annotations

from omni_ros.replay.replaying import replay
from omni_ros.replay.verdict import Kind


def test_the_same_bundle_on_the_same_machine_gives_the_same_bits(session, write_bag, bundle):
    result = replay(write_bag(session(6)), bundle)
    assert [one.kind for one in result.tally.verdicts] == [Kind.SAME] * 6
    assert result.overall is Kind.SAME and result.bits and not result.missing
