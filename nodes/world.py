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
import time
import traceback

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
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
from omni_ros.nodes._world_parameters import PARAMETERS, check
from omni_ros.player.trajectory import TrajectoryPoint
from omni_ros.srv import GetContacts, ResetWorld
from omni_ros.world.arm import (
    CONTROL_PERIOD_S,
    FORWARD_POSITION,
    FORWARD_VELOCITY,
    JOINT_TRAJECTORY,
    ControlledArm,
)
from omni_ros.world.pacing import Divider, Pacer
from omni_ros.world.simulation import Simulation

#: How long the physics may take to end before that is reported, seconds.
JOIN_TIMEOUT_S = 2.0

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
        self._physics: threading.Thread | None = None
        self._cameras: CameraThread | None = None
        self._entities: list = []
        self._stop = threading.Event()
        self.stop_requested = threading.Event()  # replaced by that of `run`
        self.exit_status = 0
        self._sim_ns = 0

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
        self._stop.clear()
        self._physics = threading.Thread(
            target=lambda: self._guarded(self._run_physics), name="world_physics"
        )
        self._physics.start()
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
        self._report = _Window()
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
        self._stop.set()
        if self._physics is not None:
            self._physics.join(JOIN_TIMEOUT_S)
            if self._physics.is_alive():
                self.get_logger().error(f"physics did not stop within {JOIN_TIMEOUT_S} s")
            self._physics = None

    def _guarded(self, work) -> None:
        """Run a thread's work; if it fails, end the node: a world that stands still is worse."""
        try:
            work()
        except Exception:  # noqa: BLE001 - shown, and the process ends with status 1
            self.get_logger().fatal(f"the world stops:\n{traceback.format_exc()}")
            self.exit_status = 1
            self.stop_requested.set()

    # -- physics ----------------------------------------------------------------------------

    def _ros_now(self) -> int:
        return self.get_clock().now().nanoseconds

    def _run_physics(self) -> None:
        """Step until stopped, each step stamped with the instant it stands for."""
        period_ns = round(CONTROL_PERIOD_S * 1e9)
        pacer = Pacer(CONTROL_PERIOD_S, self._value("real_time_factor"))
        joints = Divider(self._value("joint_state_rate"))
        images = Divider(self._value("image_rate") if self._camera_pubs else 0.0)
        clock = Divider(self._value("clock_rate"))
        self._report.start(pacer)
        last_ns = 0
        pacer.start(time.monotonic_ns())
        while not self._stop.is_set():
            now = time.monotonic_ns()
            deadline = pacer.deadline_ns
            if not pacer.due(now):
                time.sleep((deadline - now) * 1e-9)
                continue
            if self._simulated_time:
                self._sim_ns += period_ns
                stamp_ns = self._sim_ns
            else:
                # The deadline in ROS time, so that stamps are evenly spaced however late we are.
                # They keep rising when the clock is set back a little; a leap is passed on.
                stamp_ns = self._ros_now() - (time.monotonic_ns() - deadline)
                if 0 <= last_ns - stamp_ns < 1_000_000_000:
                    stamp_ns = last_ns + 1
                last_ns = stamp_ns
            run_ns = pacer.steps * period_ns  # evenly spaced, unlike stamps, so rates come out even
            with self._lock:
                self._arm.step(stamp_ns)
                joint_state = self._arm.joint_state() if joints.due(run_ns) else None
                pose = self._arm.simulation.pose() if images.due(run_ns) else None
            if self._clock_pub is not None and clock.due(run_ns):
                self._clock_pub.publish(ClockMsg(clock=time_message(stamp_ns)))
            if pose is not None:
                self._cameras.offer(stamp_ns, pose)
            if joint_state is not None:
                self._publish_joints(stamp_ns, joint_state)

    def _publish_joints(self, stamp_ns: int, joint_state) -> None:
        msg = JointState(name=list(self._arm.simulation.joint_names))
        msg.header.stamp = time_message(stamp_ns)
        msg.position, msg.velocity, msg.effort = (
            array.array("d", values.tobytes()) for values in joint_state
        )
        self._joint_pub.publish(msg)

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

    # -- diagnostics ------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        arm, cameras, asked = self._arm, self._cameras, self._value("real_time_factor")
        rejected = sum(arm.rejected.values())
        factor = self._report.real_time_factor()
        frames, dropped, render_s = cameras.published, cameras.dropped, cameras.render_s
        fresh = self._report.changes(rejected=rejected, dropped=dropped)
        problems = []
        if factor is not None and factor < 0.97 * asked:
            problems.append(f"runs at {factor:.2f} of real time, asked for {asked:.2f}")
        if fresh["dropped"]:
            problems.append(f"{fresh['dropped']} image(s) dropped: drawing is too slow")
        if fresh["rejected"]:
            problems.append(f"{fresh['rejected']} command(s) refused: {arm.last_rejection}")
        status = DiagnosticStatus(
            name=f"{self.get_fully_qualified_name()}: simulation",
            hardware_id="omni_ros table-top (simulated)",
            level=DiagnosticStatus.WARN if problems else DiagnosticStatus.OK,
            message="; ".join(problems) or ("running" if arm.active else "inactive"),
        )
        values = {
            "controller": arm.controller,
            "real-time factor": "" if factor is None else f"{factor:.3f}",
            "time given up (s)": f"{self._report.slipped_s():.3f}",
            "commands accepted": sum(arm.accepted.values()),
            "commands refused": rejected,
            "last refusal": arm.last_rejection,
            "command timeouts": arm.trajectory.timeouts,
            "images published": frames,
            "images dropped": dropped,
            "drawing time (ms)": f"{render_s * 1e3:.2f}",
        }
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        msg = DiagnosticArray(status=[status])
        now_ns = self._sim_ns if self._simulated_time else self._ros_now()
        msg.header.stamp = time_message(now_ns)
        self._diagnostics_pub.publish(msg)


class _Window:
    """What happened since it was last asked: real-time factor and counters."""

    def __init__(self) -> None:
        self._pacer: Pacer | None = None
        self._seen: dict[str, int] = {}
        self._steps = 0
        self._since_ns = 0

    def start(self, pacer: Pacer) -> None:
        self._steps, self._since_ns, self._pacer = 0, time.monotonic_ns(), pacer

    def real_time_factor(self) -> float | None:
        """Return simulated seconds a second since the last call, None before the first step."""
        if self._pacer is None:
            return None
        now, steps = time.monotonic_ns(), self._pacer.steps
        simulated_ns = (steps - self._steps) * CONTROL_PERIOD_S * 1e9
        factor = simulated_ns / max(now - self._since_ns, 1)
        self._steps, self._since_ns = steps, now
        return factor

    def slipped_s(self) -> float:
        return 0.0 if self._pacer is None else self._pacer.slipped_ns * 1e-9

    def changes(self, **counters: int) -> dict[str, int]:
        """Return by how much each counter rose since the last call."""
        rises = {name: value - self._seen.get(name, 0) for name, value in counters.items()}
        self._seen.update(counters)
        return rises


def _point(position) -> Point:
    return Point(x=float(position[0]), y=float(position[1]), z=float(position[2]))


def main(argv=None) -> int:
    """Run the node until a signal."""
    return run(WorldNode, argv)


if __name__ == "__main__":
    sys.exit(main())
