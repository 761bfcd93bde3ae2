# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Black pictures in the place of the world's, with their stamps: what does a policy do unseeing?"""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image

from omni_ros.images import fill

#: Where they go; the robot file has to name these topics.
TOPIC = "blank/{}/image_raw"


class BlankCameras:
    """Publishes a black picture for each picture that the world's cameras could have taken."""

    def __init__(self, node: Any, cameras: tuple[str, ...] = ("front", "wrist")) -> None:
        for name in cameras:
            publisher = node.create_publisher(Image, TOPIC.format(name), 5)
            # The camera's info has the stamp and the size; its pictures need not even be drawn.
            node.create_subscription(
                CameraInfo, f"{name}/camera_info", _blackener(publisher), qos_profile_sensor_data)


def _blackener(publisher: Any) -> Any:
    image = Image()

    def blacken(info: CameraInfo) -> None:
        if (image.width, image.height) != (info.width, info.height):
            fill(image, np.zeros((info.height, info.width, 3), np.uint8))
        image.header = info.header
        publisher.publish(image)

    return blacken
