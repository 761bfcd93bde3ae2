# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The world's cameras, drawn and published on a thread of their own."""

from __future__ import annotations

import array
import threading
import time

import numpy as np
from sensor_msgs.msg import CameraInfo, Image

from omni_ros.nodes._support import time_message
from omni_ros.world.cameras import CameraRig, intrinsics
from omni_ros.world.scene import CAMERAS
from omni_ros.world.simulation import Simulation

#: How long the thread may take to end, seconds.
JOIN_TIMEOUT_S = 2.0


class CameraThread:
    """Draws and publishes the newest offered pose; one it never got to is dropped and counted."""

    def __init__(self, simulation: Simulation, publishers: dict, guarded) -> None:
        """:param publishers: of image and camera info, by camera.
        :param guarded: runs the thread's work, and deals with what it raises.
        """
        self.published = 0
        self.dropped = 0
        self.render_s = 0.0
        self._publishers = publishers
        self._rig = CameraRig(simulation.model, *simulation.size)
        self._start_pose = simulation.pose()
        self._offered: tuple[int, np.ndarray] | None = None
        self._condition = threading.Condition()
        self._closing = False
        self._ready = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=lambda: guarded(self._run), name="world_cameras"
        )
        self._messages = {
            name: _camera_messages(name, *simulation.size) for name in self._publishers
        }

    def start(self) -> None:
        """Start, and wait until every camera has drawn once; raise what kept it from that."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise ValueError(
                f"cameras cannot draw: {self._error}; install libosmesa6, or set MUJOCO_GL=egl "
                "where there is a GPU"
            ) from self._error

    def offer(self, stamp_ns: int, pose: np.ndarray) -> None:
        """Hand over the pose of an instant to be drawn."""
        with self._condition:
            if self._offered is not None:
                self.dropped += len(self._publishers)
            self._offered = (stamp_ns, pose)
            self._condition.notify()

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(JOIN_TIMEOUT_S)

    def _run(self) -> None:
        try:
            for name, (image, _, pixels) in self._messages.items():
                self._rig.draw_pose(self._start_pose, name, pixels)
        except Exception as error:  # noqa: BLE001 - reported by start()
            self._error = error
            return
        finally:
            self._ready.set()
        while True:
            with self._condition:
                while self._offered is None and not self._closing:
                    self._condition.wait()
                if self._closing:
                    break
                stamp_ns, pose = self._offered
                self._offered = None
            self._draw(time_message(stamp_ns), pose)
        self._rig.close()

    def _draw(self, stamp, pose: np.ndarray) -> None:
        for name, (image_pub, info_pub) in self._publishers.items():
            image, info, pixels = self._messages[name]
            image.header.stamp = stamp
            info.header.stamp = stamp
            if info_pub.get_subscription_count():
                info_pub.publish(info)
            if image_pub.get_subscription_count():  # drawing for nobody costs as much
                begun = time.perf_counter()
                self._rig.draw_pose(pose, name, pixels)
                self.render_s += 0.1 * (time.perf_counter() - begun - self.render_s)
                image_pub.publish(image)
                self.published += 1


def _camera_messages(name: str, width: int, height: int):
    """Return an Image, its CameraInfo, and the pixels of the former as an array to draw into."""
    view = intrinsics(name, width, height)
    image = Image(width=width, height=height, encoding="rgb8", step=3 * width)
    image.data = array.array("B", bytes(3 * width * height))
    info = CameraInfo(width=width, height=height, distortion_model="plumb_bob")
    info.d = [0.0] * 5
    info.k = view.matrix()
    info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    info.p = view.projection()
    image.header.frame_id = info.header.frame_id = CAMERAS[name].frame_id
    # The message's own buffer: setting the field may have copied ours.
    pixels = np.frombuffer(image.data, dtype=np.uint8).reshape(height, width, 3)
    return image, info, pixels
