# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Codec frames as vLLM-Omni sends them: one row of codes, codebook by codebook.

Index q * frames + f is code q of frame f. Codes made elsewhere can be voiced here, and the other
way round.
"""

from __future__ import annotations

import numpy as np

from .errors import CodesError


def to_wire(codes: np.ndarray) -> np.ndarray:
    """Return frames [frames, groups] as int64 [groups * frames], codebook-major."""
    codes = np.asarray(codes)
    if codes.ndim != 2:
        raise CodesError(f"codes have shape {list(codes.shape)}; expected [frames, groups]")
    return np.ascontiguousarray(codes.T, np.int64).reshape(-1)


def from_wire(flat: np.ndarray, groups: int) -> np.ndarray:
    """Return a row as it came as int64 [frames, groups].

    :raises CodesError: its length is no multiple of `groups`, or it is no row of integers.
    """
    flat = np.asarray(flat)
    if flat.ndim != 1 or flat.dtype.kind not in "iu":
        raise CodesError(
            f"codes are {flat.dtype} {list(flat.shape)}; expected a row of integers, "
            f"codebook-major, [{groups} * frames]"
        )
    if flat.size % groups:
        raise CodesError(
            f"{flat.size} codes: no multiple of the {groups} codebooks; a frame is incomplete"
        )
    return np.ascontiguousarray(flat.reshape(groups, -1).T, np.int64)


def valid_frames(codes: np.ndarray, codebook: int) -> np.ndarray:
    """Return the frames that a vocoder can say: without negative codes, codes from `codebook` on,
    and frames that are all zeros (which is how vLLM-Omni writes a frame that is none).

    :param codes: integers [frames, groups].
    """
    good = (codes >= 0).all(1) & (codes < codebook).all(1) & (codes != 0).any(1)
    return codes[good]
