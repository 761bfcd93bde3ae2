# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a speaker and its process say to each other, packet by packet.

Packets (SOCK_SEQPACKET) arrive whole or not at all, so neither side ever waits in the middle of one. To
the process go orders: a fixed header, and samples where there are any. Back come reports, in JSON; they
are small and few.
"""

from __future__ import annotations

import json
import socket
import struct
from enum import IntEnum
from typing import Any

import numpy as np

#: Order, utterance, sample rate or 0, samples that follow.
HEADER = struct.Struct("<IIdI")
#: Samples in one order; more than that is cut up. A packet has to fit into a socket's buffer.
MOST_SAMPLES = 1 << 14
MOST_BYTES = HEADER.size + 4 * MOST_SAMPLES


class Order(IntEnum):
    """What the process is told to do."""

    BEGIN = 1    # an utterance of this sample rate
    SAMPLES = 2  # more of it
    END = 3      # these, and no more
    PAUSE = 4    # nothing is to come for now, on purpose: a ring that runs dry is no underrun
    CLEAR = 5    # drop all that was given so far; silence at once


class Broken(ValueError):
    """What came is no order."""


def connection() -> tuple[socket.socket, socket.socket]:
    """Return the two ends: the speaker's, which never blocks, and the process's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def pack(order: Order, utterance: int, rate: float = 0.0,
         samples: np.ndarray | None = None) -> bytes:
    """Return the packet of one order.

    :param samples: float32, at most MOST_SAMPLES.
    """
    if samples is None:
        return HEADER.pack(order, utterance, rate, 0)
    if len(samples) > MOST_SAMPLES:
        raise ValueError(f"{len(samples)} samples in one order; expected at most {MOST_SAMPLES}")
    data = np.ascontiguousarray(samples, np.float32)
    return HEADER.pack(order, utterance, rate, len(data)) + data.tobytes()


def unpack(packet: bytes) -> tuple[Order, int, float, np.ndarray]:
    """Return (order, utterance, rate, samples).

    :raises Broken: it is no order.
    """
    if len(packet) < HEADER.size:
        raise Broken(f"{len(packet)} bytes; an order has at least {HEADER.size}")
    order, utterance, rate, count = HEADER.unpack_from(packet)
    if order not in tuple(Order) or len(packet) != HEADER.size + 4 * count:
        raise Broken(f"order {order} with {count} samples in {len(packet)} bytes")
    return Order(order), utterance, rate, np.frombuffer(packet, np.float32, offset=HEADER.size)


def report_bytes(**fields: Any) -> bytes:
    """Return the packet of one report."""
    return json.dumps(fields).encode()


def read_report(packet: bytes) -> dict[str, Any]:
    """Return the fields of a report."""
    return json.loads(packet)
