# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Plays a recorded bag into the running graph, and compares what the graph decides with what it did.

It is the robot's senses and its clock: pictures, joint states, sentences and /clock come from the bag,
at any rate, in a loop, with pauses. Chunks, commands and statuses come from the graph.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool

from omni_ros.bundles import manifest_hash
from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.named import bundle_folder
from omni_ros.msg import ActionChunk, ReplayVerdict, StageRecord
from omni_ros.nodes._replay_graph import RELIABLE_QOS, ReplayGraph
from omni_ros.nodes._replay_verdicts import Verdicts
from omni_ros.nodes._runtime import refusing, run
from omni_ros.nodes._stage_record import RECORDS_QOS
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS, describe, describe_int, time_message, to_ns
from omni_ros.replay.bag import Bag
from omni_ros.replay.configuration import versions
from omni_ros.replay.contents import read_contents
from omni_ros.replay.live import expect
from omni_ros.replay.picture_store import PictureStore
from omni_ros.replay.plans import VISION, Plan, make_plans
from omni_ros.replay.playing import Joint, Playback, Say, Show, Timetable
from omni_ros.replay.replaying import Replay, robot_of
from omni_ros.replay.summary import document, summary
from omni_ros.replay.verdict import ChunkVerdict, Kind, worst_of
from omni_ros.stages.fit import fit_robot

#: From one /clock to the next, seconds of the machine: each wakes every node of the graph.
CLOCK_STEP_S = 0.01
#: Faster than this, heartbeats and joint states come too seldom for the clock's time.
HIGHEST_RATE = 5.0
#: Discovery: so long it is looked who else is there, seconds.
LOOK_S = 1.5
#: For where it did not begin, or not end.
CANNOT, CUT_SHORT = 2, "the rest of the bag: the replay was ended before it was played"
#: As of `omni replay`.
EXIT_STATUS = {Kind.DIFFERENT: 1, Kind.INCOMPLETE: 3}


class Replayer(Node):
    """Publishes a recording; `replay_verdict` for each chunk, `replay_report` (JSON) at the end."""

    def __init__(self) -> None:
        super().__init__("replay")
        declare = self.declare_parameter
        declare("bag", "", describe("the bag: its folder or file"))
        declare("bundle", "tabletop", describe("bundle that the graph runs: a path or a name"))
        declare("robot", "", describe("robot YAML of the graph; empty: as recorded"))
        declare("rate", 1.0, describe("of the clock; may be set at any time", low=0.01,
                                      high=HIGHEST_RATE))
        declare("rounds", 1, describe_int("how often; 0: for ever", low=0, high=10**9))
        declare("wait", True, describe(
            "let the clock stand while a chunk takes longer than it did then; false: in real time, and "
            "what is missed is incomplete"))
        declare("tolerance", -1.0, describe("instead of the bundle's; negative: the bundle's"))
        declare("allow_motion", False, describe(
            "play although something would follow the player's commands"))
        declare("start_timeout_s", 60.0, describe("for the graph to come up", low=0.0, high=1e6))
        declare("report", "", describe("file for the report: .json, or .html with plots; empty: none"))
        if not self._get("bag"):
            raise ValueError("which recording? Give its folder: -p bag:=FOLDER")
        report = Path(self._get("report")).absolute()
        if self._get("report") and (report.is_dir() or not report.parent.is_dir()):
            raise ValueError(f"report is {report}; expected the name of a file in a folder that is there")
        self._refused = False
        self._bag = Bag(self._get("bag"))
        self._load()
        self._published = self.create_publisher(ReplayVerdict, "replay_verdict", RELIABLE_QOS)
        self._reports = self.create_publisher(String, "replay_report", LATCHED_QOS)
        self.create_subscription(ActionChunk, "action_chunk", self._on_chunk, CHUNK_QOS)
        self.create_subscription(StageRecord, "policy_record", self._on_record, RECORDS_QOS)
        self.create_service(SetBool, "~/pause", self._serve_pause)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._began_s, self._connected = time.monotonic(), False
        self._timer = self.create_timer(0.1, self._prepare, clock=self._steady)

    def _load(self) -> None:
        """Read the bag but for its pictures; work out what to show, and what to expect."""
        contents = read_contents(self._bag)
        robot, _ = robot_of(contents, self._get("robot"))
        folder = bundle_folder(self._get("bundle"))
        manifest = read_manifest(folder)
        fit = fit_robot(manifest, robot, robot.policy.cameras if robot.policy else None)
        given = self._get("tolerance")
        expected = expect(contents, folder, robot, given if given >= 0.0 else None)
        plans = make_plans(contents, robot, fit)
        drawn = sum(plan.drawn_noise is not None for plan in plans)
        if drawn:
            raise ValueError(
                f"{drawn} of the {len(plans)} chunks in {self._bag.path} were drawn as OpenPI's clients asked "
                "(serve:=true), which nobody asks of a graph here: `omni replay` computes each of them "
                "again")
        fresh = sum(plan.fresh_state is not None for plan in plans)
        if fresh:
            raise ValueError(
                f"{fresh} of the {len(plans)} chunks in {self._bag.path} were decided from joints that came "
                "after their observation (policy.head_rate_hz); a graph cannot be made to read those "
                "at the same moment again: `omni replay` computes each of them again, or record "
                "without head_rate_hz")
        table = Timetable(contents, plans)
        self._source = table.plans[0].chunk.source
        self._pictures = PictureStore(self._bag, table.plans)
        self._play = Playback(
            table, rate=self._get("rate"), rounds=self._get("rounds"), wait=self._get("wait"),
            horizon_ns=robot.policy.execution_horizon * robot.policy.dt_ns if robot.policy else None)
        self.graph = ReplayGraph(self, robot, contents, table.plans, self._pictures)
        self._verdicts = Verdicts(table.plans, [p for p in plans if p not in table.plans], expected,
                                  self._say_verdict)
        self.result = Replay(
            bag=str(self._bag.path), bundle=manifest.name, sha256=manifest_hash(folder),
            recorded_sha256="" if contents.info is None else str(contents.info.bundle),
            bits=expected.tolerance is None, why_not=expected.why_not,
            tolerance=expected.tolerance or 0.0, derived=any(plan.derived for plan in plans),
            joint_names=fit.action_names, joint_units=fit.action_units, tally=self._verdicts.tally,
            missing=list(dict.fromkeys(what for plan in plans for what in plan.missing)),
            problems=contents.problems, versions=versions())
        self._round = self._given_up = 0
        self.get_logger().info(
            f"{len(table.plans)} of {len(plans)} observations can be shown, "
            f"{(table.end_ns - table.start_ns) * 1e-9:.1f} s")

    def _get(self, name: str):
        return self.get_parameter(name).value

    # -- beginning -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Wait until the graph is there; see that it is no robot at work."""
        passed_s = time.monotonic() - self._began_s
        if passed_s < LOOK_S:
            return
        if not self._connected:
            others = self.graph.others()
            if others:
                self._refuse(f"{'; '.join(others)}: end that first (a bag can only be played to a graph "
                             "without drivers: world:=false use_sim_time:=true)")
                return
            self.graph.connect()
            self._connected = True
        lacks = self.graph.lacks()
        if lacks and passed_s > self._get("start_timeout_s"):
            self._refuse(f"the graph is not ready after {passed_s:.0f} s: {'; '.join(lacks)}")
        if lacks:
            return
        moved = self.graph.may_move()
        if moved and not self._get("allow_motion"):
            self._refuse(f"{moved}: start the graph with dry_run:=true, or, if that is meant, this node "
                         "with allow_motion:=true")
            return
        self.graph.began = True
        self.get_logger().info(f"playing at rate {self._play.rate:g}")
        self._start_timer()

    def _refuse(self, why: str) -> None:
        self.get_logger().error(why)
        self._refused = True
        self.destroy_timer(self._timer)
        self.stop_requested.set()

    def _start_timer(self) -> None:
        self.destroy_timer(self._timer)
        self._timer = self.create_timer(CLOCK_STEP_S, self._step, clock=self._steady)

    # -- playing -------------------------------------------------------------------------------

    def _step(self) -> None:
        play = self._play
        due = play.step(time.monotonic_ns())
        if play.round != self._round:
            self._begin_round()
        for what in due:
            if isinstance(what, Say):
                self.graph.say(what.text)
            elif isinstance(what, Joint):
                self.graph.move(what)
            elif isinstance(what, Show):
                self._show(what.plan)
        # Afterwards: what is told of a time is there before that time, and nothing seems to be late.
        self.graph.tell_time(play.now_ns)
        self._verdicts.look()
        for plan in play.given_up[self._given_up:]:
            self._given_up += 1
            self._verdicts.give_up(plan, "the graph gave no chunk for it in time")
        if play.finished and not self._verdicts.waiting:
            self._end_round()
            self.destroy_timer(self._timer)
            self.stop_requested.set()

    @property
    def _cut_short(self) -> bool:
        """Whether it was ended before the bag was; one that is played for ever always is."""
        return self._get("rounds") > 0 and not self._play.finished

    @property
    def exit_status(self) -> int:
        """Of the process, whenever it ends: a signal in between makes no verdict of half a bag."""
        if self._refused:
            return CANNOT
        overall = worst_of([self.result.overall, *([Kind.INCOMPLETE] if self._cut_short else [])])
        return EXIT_STATUS.get(overall, 0)

    def _begin_round(self) -> None:
        self._end_round()
        self._round, self._given_up = self._play.round, 0
        self._pictures.begin()
        self._verdicts.begin(self._round)

    def _end_round(self) -> None:
        text = self._verdicts.end()
        if text:
            self.get_logger().info(text)

    def _show(self, plan: Plan) -> None:
        self._verdicts.shown(plan)
        missing = self.graph.show(plan)
        if missing:
            self._play.answered(plan.chunk.stamp_ns)
            self._verdicts.give_up(
                plan, f"the picture of {', '.join(missing)} cannot be read from the bag")

    def _on_chunk(self, message: ActionChunk) -> None:
        if message.source != self._source:
            return
        if self._verdicts.chunk(message):
            self._play.answered(to_ns(message.header.stamp))
        elif not self._verdicts.knows(message):
            self.get_logger().warning(
                "a chunk of an observation that was not shown, stamped "
                f"{to_ns(message.header.stamp) * 1e-9:.6f} s", throttle_duration_sec=5.0)

    def _on_record(self, message: StageRecord) -> None:
        if self._verdicts.record(message) and message.stage == VISION:
            self._play.taken(to_ns(message.header.stamp))

    # -- what is said of it --------------------------------------------------------------------

    def _say_verdict(self, number: int, verdict: ChunkVerdict) -> None:
        message = ReplayVerdict(
            round=number, chunk_id=verdict.chunk_id, kind=verdict.kind.value, stage=verdict.stage,
            text=verdict.text, worst=float(verdict.worst))
        message.header.stamp = time_message(verdict.stamp_ns)
        if len(verdict.by_joint) == len(self.result.joint_names):
            message.joint_names = list(self.result.joint_names)
            message.by_joint = list(map(float, verdict.by_joint))
        self._published.publish(message)
        if verdict.kind not in (Kind.SAME, Kind.WITHIN):
            self.get_logger().warning(f"chunk {verdict.chunk_id} {verdict.kind.value}: {verdict.text}",
                                      throttle_duration_sec=2.0)

    def report(self) -> dict:
        """What came of it: as `omni replay --json`, and what there is to say of a graph."""
        return {**document(self.result), "live": {
            "rate": self._play.rate, "rounds": self._verdicts.rounds,
            "clock_stood_s": self._play.stood_s, "player_stops": self.graph.stops}}

    def _serve_pause(self, request, response):
        self._play.paused = request.data
        response.success, response.message = True, "paused" if request.data else "playing"
        return response

    def _on_parameters(self, parameters):
        for parameter in parameters:
            if parameter.name == "rate":
                self._play.rate = parameter.value
        return SetParametersResult(successful=True)

    def destroy_node(self) -> None:
        if self._round:
            self._end_round()
            if self._cut_short:
                self.result.missing.append(CUT_SHORT)
            self._say_report()
        self._bag.close()
        super().destroy_node()

    def _say_report(self) -> None:
        report = self.report()
        self._reports.publish(String(data=json.dumps(report, allow_nan=False)))
        stops = ", ".join(f"{name} {count}" for name, count in self.graph.stops.items()) or "never"
        self.get_logger().info(
            f"{summary(self.result, 100)}\n  the clock stood {self._play.stood_s:.1f} s for the policy; "
            f"the player stopped: {stops}")
        file = self._get("report")
        if file.endswith(".html"):
            from omni_ros.replay.page import write_page

            write_page(Path(file), self.result)
        elif file:
            Path(file).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        time.sleep(0.2)  # for those who listen to the report


def main(argv: list | None = None) -> int:
    return run(refusing(Replayer, CANNOT), argv)
