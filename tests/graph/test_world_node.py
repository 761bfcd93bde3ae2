# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The world as a node: topics, services, controllers, time and its orderly end, over real DDS."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.srv")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import CameraInfo, Image, JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from omni_ros.images import to_rgb  # noqa: E402
from omni_ros.srv import GetContacts, ResetWorld  # noqa: E402
from omni_ros.world.scene import BLOCK_NAMES, JOINT_NAMES, PAD_NAME  # noqa: E402

TRAJECTORY = "joint_trajectory_controller/joint_trajectory"
POSITION = "forward_position_controller/commands"
VELOCITY = "forward_velocity_controller/commands"


def seconds(stamp) -> float:
    return stamp.sec + stamp.nanosec * 1e-9


class World:
    """A running world node and what a test wants to know of it."""

    def __init__(self, graph, tools, **parameters) -> None:
        self.graph = graph
        self.eventually = tools.eventually
        self.process = graph.start("world", **parameters)
        self.states = graph.record(JointState, "joint_states", qos_profile_sensor_data)
        self.diagnostics = graph.record(DiagnosticArray, "/diagnostics")
        graph.bring_up("world")
        self.eventually(lambda: self.states, "joint states")

    def position(self) -> np.ndarray:
        """Return the next measured position."""
        count = len(self.states)
        self.eventually(lambda: len(self.states) > count, "a new joint state")
        return np.array(self.states.last.position)

    def status(self) -> dict[str, str]:
        """Return the next diagnostics' values, with level and message."""
        count = len(self.diagnostics)
        self.eventually(lambda: len(self.diagnostics) > count, "new diagnostics")
        status = self.diagnostics.last.status[0]
        values = {entry.key: entry.value for entry in status.values}
        return {**values, "level": status.level, "message": status.message}

    def until(self, condition, what: str) -> np.ndarray:
        return self.eventually(
            lambda: condition(np.array(self.states.last.position)), f"the arm to {what}"
        )


@pytest.fixture
def world(graph, tools):
    return lambda **parameters: World(graph, tools, **parameters)


def trajectory(end, duration_s: float = 0.5, joints=JOINT_NAMES) -> JointTrajectory:
    point = JointTrajectoryPoint(positions=[float(v) for v in end])
    point.velocities = [0.0] * len(point.positions)
    point.time_from_start.sec, fraction = divmod(int(duration_s * 1e9), 10**9)
    point.time_from_start.nanosec = fraction
    return JointTrajectory(joint_names=list(joints), points=[point])


def test_images_look_like_those_of_a_camera_driver(graph, tools, world):
    world(image_width=96, image_height=64)
    images = {name: graph.record(Image, f"{name}/image_raw", qos_profile_sensor_data)
              for name in ("front", "wrist")}
    infos = {name: graph.record(CameraInfo, f"{name}/camera_info") for name in images}
    tools.eventually(lambda: all(images.values()) and all(infos.values()), "images and infos")
    for name in images:
        image, info = images[name].last, infos[name].last
        assert (image.width, image.height, image.encoding) == (96, 64, "rgb8")
        assert image.header.frame_id == info.header.frame_id == f"{name}_camera_optical_frame"
        assert to_rgb(image).std() > 10
        assert (info.width, info.height, info.k[8]) == (96, 64, 1.0)
    stamps = [{seconds(m.header.stamp) for m in infos[name].messages} for name in infos]
    assert stamps[0] & stamps[1], "both cameras show the same instants"


def test_joint_states_are_named_complete_and_stamped_with_the_present(world):
    state = world().states.last
    assert tuple(state.name) == JOINT_NAMES
    assert len(state.position) == len(state.velocity) == 6
    assert abs(time.time() - seconds(state.header.stamp)) < 5.0


def test_stamps_of_joint_states_rise_evenly(tools, world):
    world = world()
    tools.eventually(lambda: len(world.states) > 60, "60 joint states")
    steps = np.diff([seconds(m.header.stamp) for m in world.states.messages])
    assert steps.min() > 0
    assert np.median(steps) == pytest.approx(0.01, abs=0.0005)


def test_nothing_is_published_before_activation_and_after_deactivation(graph, tools):
    graph.start("world")
    states = graph.record(JointState, "joint_states", qos_profile_sensor_data)
    graph.bring_up("world", to="inactive")
    time.sleep(0.3)
    assert not states
    assert graph.change_state("world", "activate")
    tools.eventually(lambda: states, "joint states")
    assert graph.change_state("world", "deactivate")
    time.sleep(0.2)
    count = len(states)
    time.sleep(0.3)
    assert len(states) == count


def test_it_can_be_cleaned_up_and_configured_again(graph, tools, world):
    world = world()
    for step in ("deactivate", "cleanup", "configure", "activate"):
        assert graph.change_state("world", step), graph.logs()
    count = len(world.states)
    tools.eventually(lambda: len(world.states) > count + 5, "joint states again")


def test_a_trajectory_is_followed_to_its_end(graph, world):
    world = world()
    end = world.position() + [0.3, 0.1, 0, 0, 0.2, 0]
    graph.publisher(JointTrajectory, TRAJECTORY).publish(trajectory(end))
    world.until(lambda q: np.abs(q - end).max() < 2e-3, "reach the end of the trajectory")


def test_a_bad_trajectory_is_refused_in_words_and_counted(graph, world):
    world = world()
    start = world.position()
    publisher = graph.publisher(JointTrajectory, TRAJECTORY)
    publisher.publish(trajectory(start[:5] + 0.3, joints=JOINT_NAMES[:5]))
    world.eventually(lambda: world.status()["commands refused"] == "1", "a counted refusal")
    assert "gripper" in world.status()["last refusal"]
    assert "gripper" in world.process.output
    np.testing.assert_allclose(world.position(), start, atol=1e-4)


def test_a_refusal_makes_the_diagnostics_warn_once(graph, world):
    world = world()
    world.eventually(lambda: world.status()["level"] == DiagnosticStatus.OK, "good diagnostics")
    graph.publisher(Float64MultiArray, POSITION).publish(Float64MultiArray(data=[0.1] * 6))
    warned = world.eventually(
        lambda: (s := world.status())["level"] == DiagnosticStatus.WARN and s, "a warning"
    )
    assert "controller:=forward_position" in warned["message"]
    world.eventually(lambda: world.status()["level"] == DiagnosticStatus.OK, "an end of it")


def test_forward_position_commands_are_obeyed_by_that_controller(graph, world):
    world = world(controller="forward_position")
    end = world.position() + [0.2, 0, 0, 0, 0, 0.3]
    publisher = graph.publisher(Float64MultiArray, POSITION)
    publisher.publish(Float64MultiArray(data=end.tolist()))
    publisher.publish(Float64MultiArray(data=[0.0, 0.0]))
    publisher.publish(Float64MultiArray(data=[float("nan")] * 6))
    world.until(lambda q: np.abs(q - end).max() < 2e-3, "reach the commanded position")


def test_a_velocity_is_kept_when_its_sender_is_gone(graph, world):
    world = world(controller="forward_velocity")
    publisher = graph.publisher(Float64MultiArray, VELOCITY)
    publisher.publish(Float64MultiArray(data=[0.2, 0, 0, 0, 0, 0]))
    world.until(lambda q: world.states.last.velocity[0] > 0.19, "move")
    graph.node.destroy_publisher(publisher)
    start = world.position()[0]
    world.until(lambda q: q[0] > start + 0.3, "go on")


def test_one_seed_resets_to_one_episode(graph, world):
    world()

    def reset(seed: int):
        answer = graph.call(ResetWorld, "/world/reset", ResetWorld.Request(seed=seed))
        assert answer.success and tuple(answer.object_names) == (*BLOCK_NAMES, PAD_NAME)
        return [(p.x, p.y, p.z) for p in answer.object_positions]

    first, other, again = reset(11), reset(12), reset(11)
    assert first == again != other


def test_contacts_tell_where_tip_and_blocks_are(graph, world):
    world()
    blocks = graph.call(ResetWorld, "/world/reset", ResetWorld.Request(seed=3)).object_positions
    answer = graph.call(GetContacts, "/world/get_contacts")
    assert list(answer.touched) == []
    assert answer.tip.z > 0.04
    np.testing.assert_allclose(
        [(p.x, p.y) for p in answer.object_positions], [(p.x, p.y) for p in blocks], atol=1e-4
    )


def test_with_publish_clock_everything_is_stamped_with_simulated_time(graph, tools, world):
    world = world(publish_clock=True, use_sim_time=True, real_time_factor=3.0)
    clock = graph.record(Clock, "/clock", qos_profile_sensor_data)
    infos = graph.record(CameraInfo, "front/camera_info")
    tools.eventually(lambda: len(clock) > 20 and len(infos) > 5, "clock and images")
    times = [seconds(m.clock) for m in clock.messages]
    assert np.all(np.diff(times) > 0) and 0 < times[0] < 1e6
    for stamps in (world.states, infos):
        assert abs(seconds(stamps.last.header.stamp) - seconds(clock.last.clock)) < 1.0


def test_a_trajectory_takes_simulated_seconds_under_publish_clock(graph, world):
    world = world(publish_clock=True, real_time_factor=2.0)
    end = world.position() + [0.5, 0, 0, 0, 0, 0]
    before = seconds(world.states.last.header.stamp)
    graph.publisher(JointTrajectory, TRAJECTORY).publish(trajectory(end, 2.0))
    world.until(lambda q: q[0] > end[0] - 0.01, "reach the end")
    assert seconds(world.states.last.header.stamp) - before > 1.8


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"cameras": ["side"]}, "the scene has front, wrist, overview"),
        ({"controller": "effort"}, "forward_velocity"),
        ({"real_time_factor": 2.0}, "set publish_clock true"),
        ({"use_sim_time": True}, "set publish_clock true"),
    ],
    ids=["camera", "controller", "real_time_factor", "use_sim_time"],
)
def test_settings_that_cannot_work_are_refused_at_configure(graph, parameters, text):
    process = graph.start("world", **parameters)
    assert not graph.change_state("world", "configure")
    assert text in process.output and "Traceback" not in process.output


def test_it_obeys_namespaces(graph, tools):
    graph.start("world", remap={"__ns": "/left"})
    states = graph.record(JointState, "/left/joint_states", qos_profile_sensor_data)
    graph.bring_up("/left/world")
    tools.eventually(lambda: states, "joint states in the namespace")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_status_0_and_no_traceback_while_moving(graph, world, number):
    world = world()
    publisher = graph.publisher(JointTrajectory, TRAJECTORY)
    publisher.publish(trajectory(world.position() + [1.0, 0, 0, 0, 0, 0], 10.0))
    assert world.process.end(number) == 0
    assert "Traceback" not in world.process.output
