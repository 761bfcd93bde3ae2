# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated table-top as a lifecycle node.

Stands in for a robot's drivers: publishes camera images and joint states, and takes commands the
way ros2_control's controllers would. Three threads: the executor's (services, commands), the
physics' with absolute deadlines, and the cameras', which draws the newest pose and never makes
the physics wait. `_lock` guards the arm and is held for one control period at the most.
"""

from __future__ import annotations

import array
import sys
import threading
import traceback

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rosgraph_msgs.msg import Clock as ClockMsg
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from omni_ros.nodes._runtime import logged, run
from omni_ros.nodes._support import time_message, to_ns
from omni_ros.nodes._world_cameras import CameraThread
from omni_ros.nodes._world_diagnostics import Report
from omni_ros.nodes._world_parameters import PARAMETERS, check
from omni_ros.nodes._world_physics import JOIN_TIMEOUT_S, Outputs, PhysicsThread
from omni_ros.player.trajectory import TrajectoryPoint
from omni_ros.srv import GetContacts, ResetWorld
from omni_ros.world.arm import (
    FORWARD_POSITION,
    FORWARD_VELOCITY,
    JOINT_TRAJECTORY,
    ControlledArm,
)
from omni_ros.world.simulation import Simulation

# Drivers publish reliably, so that both kinds of subscribers can listen.
SENSOR_QOS = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=5,
)
COMMAND_QOS = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=10,
)
CLOCK_QOS = QoSProfile(
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)


class WorldNode(LifecycleNode):
    """Lifecycle shell over ``omni_ros.world``; inactive, time stands still and nothing is sent."""

    def __init__(self, **kwargs) -> None:
        super().__init__("world", **kwargs)
        for name, (default, descriptor) in PARAMETERS.items():
            self.declare_parameter(name, default, descriptor)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._lock = threading.Lock()
        self._arm: ControlledArm | None = None
        self._physics: PhysicsThread | None = None
        self._cameras: CameraThread | None = None
        self._entities: list = []
        self.stop_requested = threading.Event()  # replaced by that of `run`
        self.exit_status = 0
        self._stopped_ns = 0

    @property
    def _sim_ns(self) -> int:
        """Simulated time, ns; it goes on where it was stopped."""
        return self._stopped_ns if self._physics is None else self._physics.sim_ns

    def _value(self, name: str):
        return self.get_parameter(name).value

    def _on_parameters(self, parameters) -> SetParametersResult:
        """Apply what may change while running."""
        for parameter in parameters:
            if self._arm is None:
                continue
            if parameter.name == "cmd_timeout":
                self._arm.trajectory.cmd_timeout_ns = int(parameter.value * 1e9)
            elif parameter.name == "interpolate_from_desired_state":
                self._arm.trajectory.interpolate_from_desired_state = bool(parameter.value)
        return SetParametersResult(successful=True)

    # -- lifecycle --------------------------------------------------------------------------

    @logged
    def on_configure(self, state) -> TransitionCallbackReturn:
        """Build the scene, draw each camera once, and create topics and services."""
        try:
            self._set_up()
        except Exception:
            self._teardown()  # so that configure can be tried again
            raise
        return super().on_configure(state)

    @logged
    def on_activate(self, state) -> TransitionCallbackReturn:
        """Let time run."""
        result = super().on_activate(state)
        with self._lock:
            self._arm.activate(self._sim_ns if self._simulated_time else self._ros_now())
        outputs = Outputs(
            joints=self._publish_joints,
            clock=self._publish_clock if self._simulated_time else None,
            images=self._cameras.offer if self._camera_pubs else None,
        )
        self._physics = PhysicsThread(
            self._arm, self._lock, outputs, self._value, self._ros_now, self._guarded
        )
        self._report.start(self._physics.pacer)
        self._physics.start(self._sim_ns)
        return result

    @logged
    def on_deactivate(self, state) -> TransitionCallbackReturn:
        """Stop time, then the publishers."""
        self._stop_physics()
        with self._lock:
            self._arm.deactivate()
        return super().on_deactivate(state)

    @logged
    def on_cleanup(self, state) -> TransitionCallbackReturn:
        """Free everything that configure made."""
        self._teardown()
        return super().on_cleanup(state)

    @logged
    def on_shutdown(self, state) -> TransitionCallbackReturn:
        """Stop time and free everything."""
        self._teardown()
        return super().on_shutdown(state)

    @logged
    def on_error(self, state) -> TransitionCallbackReturn:
        """Free everything, to be configured anew."""
        self._teardown()
        return super().on_error(state)

    def _set_up(self) -> None:
        check(self._value)
        self._simulated_time = self._value("publish_clock")
        simulation = Simulation(
            width=self._value("image_width"),
            height=self._value("image_height"),
            seed=self._value("seed"),
            antialias=self._value("antialias"),
            appearance=self._value("appearance"),
        )
        self._arm = ControlledArm(
            simulation,
            self._value("controller"),
            interpolate_from_desired_state=self._value("interpolate_from_desired_state"),
            cmd_timeout_s=self._value("cmd_timeout"),
        )
        self._create_publishers()
        self._create_inputs()
        self._cameras = CameraThread(simulation, self._camera_pubs, self._guarded)
        self._cameras.start()

    def _create_publishers(self) -> None:
        qos = QoSOverridingOptions.with_default_policies

        def publisher(kind, topic, profile):
            made = self.create_lifecycle_publisher(
                kind, topic, profile, qos_overriding_options=qos()
            )
            self._entities.append((self.destroy_lifecycle_publisher, made))
            return made

        self._joint_pub = publisher(JointState, "joint_states", SENSOR_QOS)
        self._camera_pubs = {
            name: (
                publisher(Image, f"{name}/image_raw", SENSOR_QOS),
                publisher(CameraInfo, f"{name}/camera_info", SENSOR_QOS),
            )
            for name in self._value("cameras")
        }
        self._clock_pub = None
        if self._simulated_time:
            self._clock_pub = publisher(ClockMsg, "/clock", CLOCK_QOS)
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._entities.append((self.destroy_publisher, self._diagnostics_pub))

    def _create_inputs(self) -> None:
        def subscription(kind, topic, callback):
            made = self.create_subscription(
                kind,
                topic,
                callback,
                COMMAND_QOS,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
            self._entities.append((self.destroy_subscription, made))

        subscription(
            JointTrajectory, "joint_trajectory_controller/joint_trajectory", self._on_trajectory
        )
        subscription(
            Float64MultiArray,
            "forward_position_controller/commands",
            lambda msg: self._on_forward(FORWARD_POSITION, msg),
        )
        subscription(
            Float64MultiArray,
            "forward_velocity_controller/commands",
            lambda msg: self._on_forward(FORWARD_VELOCITY, msg),
        )
        for kind, name, callback in (
            (ResetWorld, "~/reset", self._on_reset),
            (GetContacts, "~/get_contacts", self._on_get_contacts),
        ):
            service = self.create_service(kind, name, callback)
            self._entities.append((self.destroy_service, service))
        # Wall time: diagnostics come also while simulated time stands still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._report = Report(self.get_fully_qualified_name())
        timer = self.create_timer(1.0, self._publish_diagnostics, clock=steady)
        self._entities.append((self.destroy_timer, timer))

    def _teardown(self) -> None:
        self._stop_physics()
        if self._cameras is not None:
            self._cameras.close()
            self._cameras = None
        while self._entities:
            destroy, entity = self._entities.pop()
            destroy(entity)
        if self._arm is not None:
            self._arm.simulation.close()
            self._arm = None

    def _stop_physics(self) -> None:
        if self._physics is None:
            return
        if not self._physics.stop():
            self.get_logger().error(f"physics did not stop within {JOIN_TIMEOUT_S} s")
        self._stopped_ns, self._physics = self._physics.sim_ns, None

    def _guarded(self, work) -> None:
        """Run a thread's work; if it fails, end the node: a world that stands still is worse."""
        try:
            work()
        except Exception:  # noqa: BLE001 - shown, and the process ends with status 1
            self.get_logger().fatal(f"the world stops:\n{traceback.format_exc()}")
            self.exit_status = 1
            self.stop_requested.set()

    # -- outputs ----------------------------------------------------------------------------

    def _ros_now(self) -> int:
        return self.get_clock().now().nanoseconds

    def _publish_clock(self, stamp_ns: int) -> None:
        self._clock_pub.publish(ClockMsg(clock=time_message(stamp_ns)))

    def _publish_joints(self, stamp_ns: int, joint_state) -> None:
        msg = JointState(name=list(self._arm.simulation.joint_names))
        msg.header.stamp = time_message(stamp_ns)
        msg.position, msg.velocity, msg.effort = (
            array.array("d", values.tobytes()) for values in joint_state
        )
        self._joint_pub.publish(msg)

    def _publish_diagnostics(self) -> None:
        status = self._report.status(self._arm, self._cameras, self._value("real_time_factor"))
        msg = DiagnosticArray(status=[status])
        msg.header.stamp = time_message(self._sim_ns if self._simulated_time else self._ros_now())
        self._diagnostics_pub.publish(msg)

    # -- commands and services --------------------------------------------------------------

    def _on_trajectory(self, msg: JointTrajectory) -> None:
        points = [
            TrajectoryPoint(
                point.positions,
                point.velocities,
                point.accelerations,
                to_ns(point.time_from_start),
            )
            for point in msg.points
        ]
        stamp_ns = to_ns(msg.header.stamp)
        with self._lock:
            refusal = self._arm.on_trajectory(msg.joint_names, points, stamp_ns)
        self._warn(JOINT_TRAJECTORY, refusal)

    def _on_forward(self, controller: str, msg: Float64MultiArray) -> None:
        with self._lock:
            refusal = self._arm.on_forward(controller, msg.data)
        self._warn(controller, refusal)

    def _warn(self, controller: str, refusal: str | None) -> None:
        if refusal is not None:
            self.get_logger().warning(
                f"{controller} command refused ({self._arm.rejected[controller]} so far): "
                f"{refusal}",
                throttle_duration_sec=1.0,
            )

    def _on_reset(self, request, response):
        with self._lock:
            self._arm.reset(request.seed)
            positions = self._arm.simulation.object_positions()
        response.success = True
        response.message = f"episode of seed {request.seed}"
        response.object_names = list(positions)
        response.object_positions = [_point(position) for position in positions.values()]
        return response

    def _on_get_contacts(self, request, response):
        with self._lock:
            simulation = self._arm.simulation
            response.stamp = time_message(self._arm.now_ns)
            response.touched = simulation.touched()
            response.tip = _point(simulation.tip())
            positions = simulation.object_positions()
        response.object_names = list(positions)
        response.object_positions = [_point(position) for position in positions.values()]
        return response


def _point(position) -> Point:
    return Point(x=float(position[0]), y=float(position[1]), z=float(position[2]))


def main(argv=None) -> int:
    """Run the node until a signal."""
    return run(WorldNode, argv)


if __name__ == "__main__":
    sys.exit(main())
