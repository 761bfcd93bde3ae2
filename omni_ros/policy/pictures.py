# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From an image message to a picture that a policy may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from omni_ros import images

#: Places looked at along each side: enough to tell a picture from a lid, and always as quick.
_SAMPLES = 64
#: ITU-R BT.601, as for mono8.
_GREY = np.array([0.299, 0.587, 0.114], np.float32)


def read_picture(message: Any) -> np.ndarray:
    """Return an image message as RGB, uint8 [height, width, 3].

    It may be a view of the message: use it before the message goes.
    :param message: like sensor_msgs/Image, or CompressedImage (which has `format`).
    :raises omni_ros.images.ImageError: it cannot be read; with what came and what was expected.
    """
    if hasattr(message, "encoding"):
        return images.to_rgb(message)
    return images.decode(message)


def look_at(messages: Mapping[str, Any], *, blind_std: float,
            check: Callable[..., None] | None = None) -> dict[str, np.ndarray]:
    """Return the pictures of an observation, uint8 [height, width, 3] RGB by camera.

    :param messages: by camera. :param blind_std: see :func:`is_covered`.
    :param check: called with a picture and `camera=`; raises ValueError if it cannot be used.
    :raises omni_ros.images.ImageError: any of them shows nothing, or cannot be read or used,
        whatever it holds; with the camera's name.
    """
    pictures = {}
    for camera, message in messages.items():
        try:
            pictures[camera] = read_picture(message)
            if check is not None:
                check(pictures[camera], camera="")
        except (ValueError, MemoryError) as error:
            raise images.ImageError(
                f"a picture cannot be read: camera {camera}: {str(error) or 'no memory for it'}"
            ) from error
    covered = [camera for camera, rgb in pictures.items() if is_covered(rgb, blind_std)]
    if covered:
        raise images.ImageError(
            f"camera {', '.join(covered)} shows nothing (grey values spread by less than "
            f"{blind_std:g}): is it covered, or dark?"
        )
    return pictures


def grey_spread(rgb: np.ndarray) -> float:
    """Return the standard deviation of the grey values, 0 to 127.5, of places spread over it.

    :param rgb: uint8 [height, width, 3].
    """
    height, width = rgb.shape[:2]
    part = rgb[::-(-height // _SAMPLES), ::-(-width // _SAMPLES)]
    return float((part.astype(np.float32) @ _GREY).std())


def is_covered(rgb: np.ndarray, blind_std: float) -> bool:
    """True if a picture shows nothing: a lid, a hand on the lens, a camera that sends black.

    :param blind_std: the least spread of grey of a picture that shows something; 0: any does.
    """
    return blind_std > 0.0 and grey_spread(rgb) < blind_std
