# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures from a bag to the chunks that were decided from them, each read once, few kept at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from omni_ros.images import ImageError
from omni_ros.policy.pictures import read_picture
from omni_ros.replay.contents import Contents, stamp_of
from omni_ros.replay.fingerprints import digest
from omni_ros.replay.plans import Plan, Wanted, picture_words

Images = dict[str, np.ndarray]


class _Slot:
    """A picture that some plans wait for."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.plans = wanted, []
        self.image: np.ndarray | None = None
        self.fault = ""
        self.candidates: dict[int, np.ndarray] = {}  # by digest
        self.count = 1  # of pictures that could be it


def feed(contents: Contents, plans: Sequence[Plan]) -> Iterator[tuple[Plan, Images]]:
    """Yield each plan with its pictures, RGB uint8 [height, width, 3] by the bundle's cameras.

    A plan that lacks something comes with no picture, and `missing` says what; all others come as soon
    as their last picture was read, so not in the order given.
    """
    slots: dict[tuple[str, int], list[_Slot]] = {}
    left: dict[int, set[int]] = {}  # of each plan: the slots that it waits for
    of: dict[int, list[_Slot]] = {}
    for plan in plans:
        if plan.missing or not plan.wanted:
            if not plan.missing:
                plan.missing.append("any picture")
            yield plan, {}
            continue
        of[id(plan)] = [_slot(contents, slots, wanted) for wanted in plan.wanted]
        left[id(plan)] = {id(slot) for slot in of[id(plan)]}
        for slot in of[id(plan)]:
            slot.plans.append(plan)
    for slot in _read(contents, slots):
        for plan in slot.plans:
            waits = left[id(plan)]
            waits.discard(id(slot))
            if not waits:
                yield plan, {one.wanted.camera: one.image for one in of.pop(id(plan))}
        slot.plans = []
    for plan in plans:  # what is left lacks a picture after all
        for slot in of.get(id(plan), ()):
            if slot.image is None:
                plan.missing.append(slot.fault or picture_words(slot.wanted.camera,
                                                                slot.wanted.stamp_ns))
        if id(plan) in of:
            yield plan, {}


def _slot(contents: Contents, slots: dict[tuple[str, int], list[_Slot]], wanted: Wanted) -> _Slot:
    """Return the slot of a picture; two chunks that want the same one share it."""
    same = slots.setdefault((wanted.topic, wanted.stamp_ns), [])
    slot = next((one for one in same if one.wanted == wanted), None)
    if slot is None:
        slot = _Slot(wanted)
        same.append(slot)
        if wanted.digest is None:
            slot.count = sum(one.stamp_ns == wanted.stamp_ns
                             for one in contents.pictures.get(wanted.topic, ()))
    return slot


def _read(contents: Contents, slots: dict[tuple[str, int], list[_Slot]]) -> Iterator[_Slot]:
    """Yield each slot once its picture is there."""
    decoded: list[_Slot] = []
    for entry in contents.bag.stream({topic for topic, _ in slots}):
        waiting = slots.get((entry.topic, stamp_of(entry.data)))
        if not waiting:
            continue
        try:
            message = contents.bag.decode(entry)
            image = np.ascontiguousarray(read_picture(message))
        except (ImageError, ValueError, AttributeError) as error:
            for slot in waiting:
                slot.fault = f"{_words(slot)}, which cannot be read: {error}"
            continue
        found = digest(image)
        for slot in list(waiting):
            if slot.wanted.digest is None:
                slot.candidates[found] = image
                left = slot.count = slot.count - 1
                if left > 0:
                    continue  # the others of this stamp first: without a digest nothing tells them apart
                if len(slot.candidates) > 1:
                    slot.fault = (f"which one of {len(slot.candidates)} different pictures of "
                                  f"{slot.wanted.camera} stamped {slot.wanted.stamp_ns * 1e-9:.6f} s "
                                  "was meant")
                    continue
            elif slot.wanted.digest != found:
                slot.fault = f"{_words(slot)}: there is another one of that stamp"
                if not hasattr(message, "encoding"):
                    slot.candidates[found] = image  # compressed: another decoder may be at work
                    decoded.append(slot)
                continue
            slot.image, slot.fault, slot.candidates = image, "", {}
            waiting.remove(slot)
            yield slot
    for slot in decoded:
        if slot.image is None and len(slot.candidates) == 1:
            slot.image, slot.fault = next(iter(slot.candidates.values())), ""
            yield slot


def _words(slot: _Slot) -> str:
    return picture_words(slot.wanted.camera, slot.wanted.stamp_ns)
