# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Why no observation could be put together, in a code and in words with numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omni_ros.policy import intake
from omni_ros.policy.joint_history import JointHistory
from omni_ros.robot import PolicyConfig

if TYPE_CHECKING:
    from omni_ros.policy.intake import Picture, _Clock

_FEW = 4


def reason(
    pictures: Mapping[str, Sequence[Picture]], joints: JointHistory, config: PolicyConfig,
    clock: _Clock, last_stamp_ns: int,
) -> tuple[str, str]:
    """Return the first thing that is wrong: what never came, wrong clocks, old things, the slop."""
    silent = [camera for camera, kept in pictures.items() if not kept]
    if silent:
        return intake.NO_PICTURE, f"no picture has come from camera {', '.join(silent)}"
    missing = joints.missing()
    if missing:
        return intake.NO_JOINTS, f"no joint state has come with joint {_few(missing)}"
    newest = {camera: kept[-1] for camera, kept in pictures.items()}
    parts = [(f"camera {camera}", picture.stamp_ns, picture.received_ns, config.image_timeout_s,
              "policy.image_timeout_s", intake.PICTURE_STALE) for camera, picture in newest.items()]
    stamp_ns, received_ns, names = joints.newest(clock.offset_ns)
    parts.append((f"joint state of {_few(names)}", stamp_ns, received_ns, config.joints_timeout_s,
                  "policy.joints_timeout_s", intake.JOINTS_STALE))
    for name, stamp_ns, received_ns, limit_s, setting, stale in parts:
        age_s = clock.age_ns(stamp_ns) * 1e-9
        receipt_age_s = clock.receipt_age_ns(received_ns) * 1e-9
        if receipt_age_s > limit_s:
            return stale, (
                f"{name}: nothing has come for {receipt_age_s:.2f} s; allowed are {limit_s:g} s "
                f"({setting})"
            )
        if stamp_ns == 0:
            return intake.CLOCK, f"{name} carries no stamp (0); its driver has to set header.stamp"
        if age_s < -intake.FUTURE_NS * 1e-9:
            return intake.CLOCK, (
                f"clock of {name} is off by {receipt_age_s - age_s:.2f} s: stamped {-age_s:.2f} s "
                "in the future; synchronise the clocks (chrony, PTP)"
            )
        if age_s > limit_s:
            return intake.CLOCK, (
                f"clock of {name} is off by {age_s - receipt_age_s:.2f} s, or it is slow to send: "
                f"came {receipt_age_s:.2f} s ago with a stamp {age_s:.2f} s old; allowed are "
                f"{limit_s:g} s ({setting}). Synchronise the clocks (chrony, PTP)"
            )
    if min(picture.stamp_ns for picture in newest.values()) <= last_stamp_ns:
        late = min(newest, key=lambda camera: newest[camera].stamp_ns)
        return intake.NOTHING_NEW, f"no new picture from camera {late} yet"
    return _apart(newest, stamp_ns_of_joints=parts[-1][1], names=names, config=config)


def _apart(newest: Mapping[str, Picture], *, stamp_ns_of_joints: int, names: Sequence[str],
           config: PolicyConfig) -> tuple[str, str]:
    first = max(newest, key=lambda camera: newest[camera].stamp_ns)
    late = min(newest, key=lambda camera: newest[camera].stamp_ns)
    behind_ms = (newest[first].stamp_ns - newest[late].stamp_ns) * 1e-6
    allowed = f"allowed are {config.slop_s * 1e3:.0f} ms (policy.slop_s)"
    if behind_ms > config.slop_s * 1e3:
        return intake.NOT_SYNCHRONISED, (
            f"no synced frame: camera {late} is {behind_ms:.0f} ms behind {first}; {allowed}"
        )
    apart_ms = (newest[late].stamp_ns - stamp_ns_of_joints) * 1e-6
    side = "behind" if apart_ms > 0 else "ahead of"
    return intake.JOINTS_APART, (
        f"no synced frame: the last joint state of {_few(names)} is {abs(apart_ms):.0f} ms {side} "
        f"the pictures; {allowed}"
    )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
