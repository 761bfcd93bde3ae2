# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Records what is needed to do it again: `omni replay` and the node `replay` read the bag.

A process of its own, of low priority: messages are taken as bytes, in batches, and a thread writes them.
What cannot be kept is counted by topic, told once a second on `recording_report`, and is in the bag.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from omni_ros.msg import ActionChunk, Heartbeat, PlayerStatus, PolicyStatus, RecordingInfo, StageRecord
from omni_ros.nodes._record_info import Parameters, recording_info
from omni_ros.nodes._record_inputs import PICTURES_DEPTH, Heard, RawInput, own_topic
from omni_ros.nodes._runtime import refusing, run
from omni_ros.nodes._support import LATCHED_QOS, describe, describe_int, load_robot_parameter, to_ns
from omni_ros.replay.recording import BagWriter, Limits
from omni_ros.replay.recording_pictures import Held, PictureBox, stamp_of
from omni_ros.replay.recording_thread import WritingThread

TAKE_S = 0.02
LOOK_S = 0.5
REPORT_S = 1.0
#: After the signal to end, for the last words of the other nodes, seconds.
LINGER_S = 0.5
#: Of the process: whatever moves the robot comes first.
NICE = 10
#: Missing pictures that a report names; it counts all.
NAMED = 200


class Recorder(Node):
    """Subscribes to everything; publishes `recording_info` and `recording_report`."""

    def __init__(self) -> None:
        super().__init__("recorder")
        declare = self.declare_parameter
        declare("bag", "", describe("folder of the bag; empty: omni_DATE-TIME in the current folder"))
        declare("robot", "tabletop", describe("robot YAML: a path, or a name in config/robots"))
        declare("bundle", "tabletop", describe("bundle of the policy; empty: none"))
        declare("source", "local", describe("source of the chunks that are recorded for a replay"))
        declare("compressed", False, describe("pictures come compressed, on TOPIC/compressed"))
        declare("all_pictures", False, describe(
            "record every picture, not only those that an observation used"))
        declare("max_mb", 8000, describe_int("all files together", low=1, high=10**8))
        declare("file_mb", 512, describe_int("the next file is begun at this size", low=1, high=10**6))
        declare("file_s", 0.0, describe("or at this length; 0: never for that", low=0.0, high=1e9))
        declare("keep", "first", describe(
            "first: stop at max_mb; last: give up the oldest file instead"))
        declare("min_free_mb", 200, describe_int("left to others on the disk", low=0, high=10**8))
        declare("seconds", 0.0, describe("end after this time; 0: when told to", low=0.0, high=1e9))
        self._robot_name, self._bundle = self._get("robot"), self._get("bundle")
        self.robot = load_robot_parameter(self._robot_name)
        self._all = self._get("all_pictures")
        self._simulated = self._get("use_sim_time")
        self._box = PictureBox()
        self._missing: list[tuple[str, int]] = []
        self._missing_count = 0
        self._refused = ""
        self._make_inputs()
        self._of_nodes = Parameters(self)
        self._info_topic = own_topic(self, "recording_info", RecordingInfo, _share, latched=True)
        self._report_topic = own_topic(self, "recording_report", String, _share, latched=False)
        self._infos = self.create_publisher(RecordingInfo, "recording_info", LATCHED_QOS)
        self._reports = self.create_publisher(String, "recording_report", 1)
        self._told = None
        info = self._make_info()  # refuses a bundle that is not there before a bag is made
        self._disk = WritingThread(self._make_bag)
        self._added: set[str] = set()
        self._say_info(info)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(TAKE_S, self._take, clock=steady)
        self.create_timer(LOOK_S, self._look, clock=steady)
        self.create_timer(REPORT_S, self._report, clock=steady)
        if self._get("seconds"):
            self.create_timer(self._get("seconds"), lambda: self.stop_requested.set(), clock=steady)
        self.get_logger().info(f"recording to {self._disk.bag.folder}")

    def _get(self, name: str):
        return self.get_parameter(name).value

    def _make_bag(self) -> BagWriter:
        megabyte = 1_000_000
        total = self._get("max_mb") * megabyte
        share = total if self._get("keep") == "first" else total // 2
        limits = Limits(
            file_bytes=min(self._get("file_mb") * megabyte, share), file_s=self._get("file_s"),
            total_bytes=total, keep=self._get("keep"),
            free_bytes=self._get("min_free_mb") * megabyte)
        given = self._get("bag") or f"omni_{datetime.now():%Y_%m_%d-%H_%M_%S}"
        folder, number = Path(given).expanduser(), 0
        while folder.exists():  # a recorder that was started again must not end the robot's day
            number += 1
            folder = Path(f"{Path(given).expanduser()}_{number}")
        return BagWriter(folder, limits)

    def _make_inputs(self) -> None:
        robot, kind = self.robot, JointTrajectory
        if robot.player.output != "joint_trajectory":
            kind = Float64MultiArray
        compressed = self._get("compressed")
        pictures = [(f"camera/{name}", topic + ("/compressed" if compressed else ""),
                     CompressedImage if compressed else Image, {"depth": PICTURES_DEPTH})
                    for name, topic in robot.cameras.items()]
        latched = {"latched": True}
        given = [
            *pictures,
            ("joint_states", robot.topics["joint_states"], JointState, {}),
            ("instruction", "instruction", String, {"latched": True, "twice": True}),
            ("action_chunk", "action_chunk", ActionChunk, {}),
            ("heartbeat", "heartbeat", Heartbeat, {}),
            ("policy_record", "policy_record", StageRecord, {}),
            ("policy_status", "policy_status", PolicyStatus, latched),
            ("player_status", "action_player/status", PlayerStatus, latched),
            ("command", robot.command_topic, kind, {}),
            ("protective_stop", "protective_stop", Bool, {"latched": True, "twice": True}),
        ] + ([("clock", "/clock", ClockMessage, {})] if self._simulated else [])
        self._inputs = {role: RawInput(self, role, topic, kind, **options)
                        for role, topic, kind, options in given}

    # -- messages ------------------------------------------------------------------------------

    def _take(self) -> None:
        now_s = time.monotonic()
        for role, source in self._inputs.items():
            for heard in source.take():
                log_ns = self._log_ns(heard)
                if role.startswith("camera/") and not self._all:
                    self._keep(source, heard, log_ns, now_s)
                    continue
                self._write(source, heard.data, log_ns, heard.sent_ns)
                if role == "policy_record" and not self._all:
                    self._want(heard.data, now_s)
        self._note_missing(now_s)

    def _log_ns(self, heard: Heard) -> int:
        if self._simulated or not heard.came_ns:
            return self.get_clock().now().nanoseconds
        return heard.came_ns

    def _write(self, source: RawInput, data: bytes, log_ns: int, sent_ns: int) -> None:
        if source.name not in self._added:
            self._added.add(source.name)
            self._disk.add(source.describe(_share))
        self._disk.write(source.name, data, log_ns, log_ns if self._simulated else sent_ns or log_ns)

    def _keep(self, source: RawInput, heard: Heard, log_ns: int, now_s: float) -> None:
        try:
            stamp_ns = stamp_of(heard.data)
        except ValueError:
            return
        held = self._box.add(source.name, stamp_ns, Held(heard.data, log_ns, heard.sent_ns, now_s))
        if held is not None:
            self._write(source, held.data, held.log_ns, held.sent_ns)

    def _want(self, data: bytes, now_s: float) -> None:
        """A record of what an observation used: its pictures are what is kept."""
        record = deserialize_message(data, StageRecord)
        for name, stamp in zip(record.cameras, record.picture_stamps):
            role = f"camera/{self.robot.policy.robot_camera(name)}"
            source = self._inputs.get(role)
            if source is None:
                continue
            held = self._box.want(source.name, to_ns(stamp), now_s)
            if held is not None:
                self._write(source, held.data, held.log_ns, held.sent_ns)

    def _note_missing(self, now_s: float, *, all_of_them: bool = False) -> None:
        for topic, stamp_ns in self._box.missing(now_s, all_of_them=all_of_them):
            self._missing_count += 1
            if len(self._missing) < NAMED:
                self._missing.append((topic, stamp_ns))
            self.get_logger().warning(
                f"a picture of {topic} was used by the policy and did not come here: a replay will "
                f"lack it ({self._missing_count} so far)", throttle_duration_sec=10.0)

    # -- what is said of it --------------------------------------------------------------------

    def _look(self) -> None:
        for source in self._inputs.values():
            source.look()
        if self._told is not None and self._of_nodes.known != self._told:
            self._say_info(self._make_info())

    def _make_info(self) -> RecordingInfo:
        self._told = dict(self._of_nodes.known)
        return recording_info(
            bundle=self._bundle, robot=self.robot, robot_name=self._robot_name,
            roles={role: source.name for role, source in self._inputs.items()},
            parameters=self._told, all_pictures=self._all, use_sim_time=self._simulated,
            source=self._get("source"))

    def _say_info(self, info: RecordingInfo) -> None:
        now = self.get_clock().now()
        info.header.stamp = now.to_msg()
        self._infos.publish(info)
        self._own(self._info_topic, info, now.nanoseconds)

    def _own(self, topic, message, now_ns: int) -> None:
        if topic.name not in self._added:
            self._added.add(topic.name)
            self._disk.add(topic)
        self._disk.write(topic.name, serialize_message(message), now_ns, now_ns)

    def report(self) -> dict:
        """What was received, written and lost, by topic."""
        lost = self._disk.lost
        for source in self._inputs.values():
            if source.gaps and (self._all or not source.role.startswith("camera/")):
                lost[source.name] = lost.get(source.name, 0) + source.gaps
        return {
            "bag": self._disk.bag.folder.name,
            "received": {s.name: s.received for s in self._inputs.values() if s.received},
            "written": self._disk.written, "lost": lost,
            "pictures_missing": [list(one) for one in self._missing],
            "pictures_missing_count": self._missing_count,
            "files_dropped": self._disk.bag.files_dropped, "stopped": self._disk.stopped,
        }

    def _report(self) -> None:
        report = self.report()
        message = String(data=json.dumps(report))
        self._reports.publish(message)
        self._own(self._report_topic, message, self.get_clock().now().nanoseconds)
        stopped = report["stopped"]
        if stopped and stopped != self._refused:
            self._refused = stopped
            self.get_logger().error(f"nothing is recorded any more: {stopped}. The robot goes on")
        if report["lost"]:
            lost = ", ".join(f"{count} of {topic}" for topic, count in report["lost"].items())
            self.get_logger().warning(f"not recorded: {lost}", throttle_duration_sec=10.0)

    def destroy_node(self) -> None:
        """Take the last words of the others, then finish the bag."""
        until = time.monotonic() + LINGER_S
        while time.monotonic() < until:
            self._take()
            time.sleep(TAKE_S)
        self._note_missing(time.monotonic(), all_of_them=True)
        self._report()
        if not self._disk.close():
            self.get_logger().error("the disk did not finish in time: `omni record --mend` closes the "
                                    "last file")
            self.exit_status = 1
        report = self.report()
        megabytes = self._disk.bag.bytes_written / 1e6
        self.get_logger().info(
            f"recorded {sum(report['written'].values())} messages, {megabytes:.1f} MB, to {self._disk.bag.folder}"
            f"; lost {sum(report['lost'].values())}, pictures missing {self._missing_count}"
            + ("" if self._disk.stopped in ("", "closed") else f"; {self._disk.stopped}"))
        super().destroy_node()


def _share(package: str) -> str:
    return get_package_share_directory(package)


def main(argv: list | None = None) -> int:
    os.nice(NICE)
    return run(refusing(Recorder), argv)
