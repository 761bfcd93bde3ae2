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

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool

from omni_ros.bundles.named import bundle_folder
from omni_ros.msg import ActionChunk, ReplayVerdict, StageRecord
from omni_ros.nodes._replay_graph import RELIABLE_QOS, ReplayGraph
from omni_ros.nodes._runtime import refusing, run
from omni_ros.nodes._stage_record import RECORDS_QOS
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS, describe, describe_int, time_message, to_ns
from omni_ros.replay.bag import Bag
from omni_ros.replay.contents import read_contents
from omni_ros.replay.live import STAGES, expect, judge, unanswered
from omni_ros.replay.picture_store import PictureStore
from omni_ros.replay.plans import VISION, Plan, make_plans
from omni_ros.replay.playing import Joint, Playback, Say, Show, Timetable
from omni_ros.replay.replaying import robot_of
from omni_ros.replay.verdict import ChunkVerdict, Kind, Tally
from omni_ros.stages.fit import fit_robot
from omni_ros.bundles.manifest import read_manifest

#: From one /clock to the next, seconds of the machine: each wakes every node of the graph.
CLOCK_STEP_S = 0.01
#: Faster than this, heartbeats and joint states come too seldom for the clock's time.
HIGHEST_RATE = 5.0
#: How long the records of an observation may come after its chunk, seconds.
RECORDS_S = 1.0
#: Discovery: so long it is looked who else is there, seconds.
LOOK_S = 1.5
#: Verdicts that an endless loop keeps.
KEPT = 1000


class Replay(Node):
    """Publishes a recording; `replay_verdict` for each chunk, `replay_report` (JSON) at the end."""

    def __init__(self) -> None:
        super().__init__("replay")
        declare = self.declare_parameter
        declare("bag", "", describe("the bag: its folder or file"))
        declare("bundle", "tabletop", describe("bundle that the graph runs: a path or a name"))
        declare("robot", "", describe("robot YAML of the graph; empty: as recorded"))
        declare("rate", 1.0, describe("of the clock; may be set at any time", low=0.01, high=HIGHEST_RATE))
        declare("rounds", 1, describe_int("how often; 0: for ever", low=0, high=10**9))
        declare("wait", True, describe(
            "let the clock stand while a chunk is computed and the next observation would be due; "
            "false: in real time, and what was missed is incomplete"))
        declare("tolerance", -1.0, describe("instead of the bundle's; negative: the bundle's"))
        declare("allow_motion", False, describe(
            "play although something would follow the player's commands"))
        declare("start_timeout_s", 60.0, describe("for the graph to come up", low=0.0, high=1e6))
        declare("report", "", describe("file for the report (JSON); empty: none"))
        if not self._get("bag"):
            raise ValueError("which recording? Give its folder: -p bag:=FOLDER")
        self._bag = Bag(self._get("bag"))
        contents = read_contents(self._bag)
        robot, _ = robot_of(contents, self._get("robot"))
        folder = bundle_folder(self._get("bundle"))
        fit = fit_robot(read_manifest(folder), robot, robot.policy.cameras if robot.policy else None)
        tolerance = self._get("tolerance")
        self._expected = expect(contents, folder, robot, tolerance if tolerance >= 0.0 else None)
        plans = make_plans(contents, robot, fit)
        self._lost = [plan for plan in plans if plan.missing or not plan.wanted]
        table = Timetable(contents, plans)
        self._source = table.plans[0].chunk.source
        horizon_ns = robot.policy.execution_horizon * robot.policy.dt_ns if robot.policy else None
        self._pictures = PictureStore(self._bag, table.plans)
        self._play = Playback(table, rate=self._get("rate"), rounds=self._get("rounds"),
                              wait=self._get("wait"), horizon_ns=horizon_ns)
        self.graph = ReplayGraph(self, robot, contents, table.plans, self._pictures)
        self._by_stamp = {plan.chunk.stamp_ns: plan for plan in table.plans}
        self._chunks: dict[int, tuple[float, ActionChunk]] = {}
        self._records: dict[int, dict[str, StageRecord]] = {}
        self._open: set[int] = set()  # shown in this round and not judged
        self.tally, self._round, self._given_up = Tally(), 0, 0
        self.rounds: list[dict[str, int]] = []
        self._problems = contents.problems
        self._verdicts = self.create_publisher(ReplayVerdict, "replay_verdict", RELIABLE_QOS)
        self._reports = self.create_publisher(String, "replay_report", LATCHED_QOS)
        self.create_subscription(ActionChunk, "action_chunk", self._on_chunk, CHUNK_QOS)
        self.create_subscription(StageRecord, "policy_record", self._on_record, RECORDS_QOS)
        self.create_service(SetBool, "~/pause", self._serve_pause)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._began_s, self._connected = time.monotonic(), False
        self._timer = self.create_timer(0.1, self._prepare, clock=self._steady)
        wait = "" if self._expected.tolerance is None else (
            f"; bits may differ ({', '.join(self._expected.why_not) or 'tolerance was given'})")
        self.get_logger().info(
            f"{len(table.plans)} of {len(plans)} observations can be shown, "
            f"{(table.end_ns - table.start_ns) * 1e-9:.1f} s{wait}")

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
        self.exit_status = 1
        self.destroy_timer(self._timer)
        self.stop_requested.set()

    def _start_timer(self) -> None:
        self.destroy_timer(self._timer)
        self._timer = self.create_timer(CLOCK_STEP_S, self._step, clock=self._steady)

    # -- playing -------------------------------------------------------------------------------

    def _step(self) -> None:
        play = self._play
        if play.round != self._round:
            self._begin_round()
        due = play.step(time.monotonic_ns())
        if play.round != self._round:
            self._begin_round()
        self.graph.tell_time(play.now_ns)
        for what in due:
            if isinstance(what, Say):
                self.graph.say(what.text)
            elif isinstance(what, Joint):
                self.graph.move(what)
            elif isinstance(what, Show):
                self._show(what.plan)
        self._judge_what_came()
        for plan in play.given_up[self._given_up:]:
            self._given_up += 1
            self._judge_unanswered(plan, "the graph gave no chunk for it in time")
        if play.finished and not self._open:
            self._finish()

    def _begin_round(self) -> None:
        if self._round:
            self._end_round()
        self._round = self._play.round
        self._given_up = 0
        self._open.clear()
        self._chunks.clear()
        self._records.clear()
        self._pictures.begin()
        for plan in self._lost:
            self._conclude(unanswered(plan, f"not in the bag: {'; '.join(plan.missing) or 'pictures'}"))

    def _end_round(self) -> None:
        for stamp_ns in list(self._open):
            self._judge_unanswered(self._by_stamp[stamp_ns], "the round ended before its chunk came")
        mine = Tally([one for number, one in self._numbered if number == self._round])
        self.rounds.append(mine.counts)
        self.get_logger().info(f"round {self._round}: {mine.text()}")
        if not self._get("rounds"):
            self._numbered = [(n, v) for n, v in self._numbered if v.kind is not Kind.SAME][-KEPT:]
            self.tally.verdicts[:] = [verdict for _, verdict in self._numbered]

    @property
    def _numbered(self) -> list[tuple[int, ChunkVerdict]]:
        return self.__dict__.setdefault("_numbered_verdicts", [])

    @_numbered.setter
    def _numbered(self, value: list[tuple[int, ChunkVerdict]]) -> None:
        self.__dict__["_numbered_verdicts"] = value

    def _show(self, plan: Plan) -> None:
        stamp_ns = plan.chunk.stamp_ns
        self._chunks.pop(stamp_ns, None)
        self._records.pop(stamp_ns, None)
        self._open.add(stamp_ns)
        missing = self.graph.show(plan)
        if missing:
            self._play.answered(stamp_ns)
            self._judge_unanswered(plan, f"the picture of {', '.join(missing)} cannot be read from the bag")

    def _on_chunk(self, message: ActionChunk) -> None:
        stamp_ns = to_ns(message.header.stamp)
        if message.source != self._source:
            return
        if stamp_ns in self._open:
            self._chunks[stamp_ns] = time.monotonic(), message
            self._play.answered(stamp_ns)
        elif stamp_ns not in self._by_stamp:
            self.get_logger().warning(
                f"a chunk of an observation that was not shown, stamped {stamp_ns * 1e-9:.6f} s",
                throttle_duration_sec=5.0)

    def _on_record(self, message: StageRecord) -> None:
        stamp_ns = to_ns(message.header.stamp)
        if stamp_ns in self._open and message.stage in STAGES:
            self._records.setdefault(stamp_ns, {})[message.stage] = message
            if message.stage == VISION:
                self._play.taken(stamp_ns)

    # -- judging -------------------------------------------------------------------------------

    def _judge_what_came(self) -> None:
        now_s = time.monotonic()
        for stamp_ns, (came_s, chunk) in list(self._chunks.items()):
            records = self._records.get(stamp_ns, {})
            if len(records) < len(STAGES) and now_s - came_s < RECORDS_S:
                continue
            del self._chunks[stamp_ns]
            self._open.discard(stamp_ns)
            self._records.pop(stamp_ns, None)
            self._conclude(judge(self._by_stamp[stamp_ns], chunk, records, self._expected))

    def _judge_unanswered(self, plan: Plan, why: str) -> None:
        if plan.chunk.stamp_ns in self._open:
            self._open.discard(plan.chunk.stamp_ns)
            self._conclude(unanswered(plan, why))

    def _conclude(self, verdict: ChunkVerdict) -> None:
        self.tally.add(verdict)
        self._numbered.append((self._round, verdict))
        message = ReplayVerdict(
            round=self._round, chunk_id=verdict.chunk_id, kind=verdict.kind.value, stage=verdict.stage,
            text=verdict.text, worst=float(verdict.worst))
        message.header.stamp = time_message(verdict.stamp_ns)
        plan = self._by_stamp.get(verdict.stamp_ns)
        if plan is not None and len(verdict.by_joint) == len(plan.chunk.joint_names):
            message.joint_names = list(plan.chunk.joint_names)
            message.by_joint = list(map(float, verdict.by_joint))
        self._verdicts.publish(message)
        if verdict.kind not in (Kind.SAME, Kind.WITHIN):
            self.get_logger().warning(f"chunk {verdict.chunk_id} {verdict.kind.value}: {verdict.text}",
                                      throttle_duration_sec=2.0)

    # -- the end -------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._end_round()
        self.exit_status = 0 if self.overall in (Kind.SAME, Kind.WITHIN) else 1
        self.destroy_timer(self._timer)
        self.stop_requested.set()

    @property
    def overall(self) -> Kind:
        """The verdict on all rounds."""
        kind = self.tally.overall
        if kind in (Kind.SAME, Kind.WITHIN) and any(one.lost for one in self._problems):
            return Kind.INCOMPLETE
        return kind

    def report(self) -> dict:
        """What came of it, as the report has it."""
        worst = [verdict for verdict in self.tally.verdicts if verdict.kind is not Kind.SAME]
        return {
            "bag": str(self._bag.path), "overall": self.overall.value, "rounds": self.rounds,
            "rate": self._play.rate, "text": self.tally.text(), "clock_stood_s": self._play.stood_s,
            "bits": self._expected.tolerance is None, "why_not": self._expected.why_not,
            "player_stops": self.graph.stops, "problems": [one.text for one in self._problems],
            "chunks": [{"chunk_id": one.chunk_id, "stamp_ns": one.stamp_ns, "kind": one.kind.value,
                        "stage": one.stage, "text": one.text, "worst": float(one.worst)}
                       for one in worst[:KEPT]],
        }

    def _serve_pause(self, request, response):
        self._play.paused = request.data
        response.success, response.message = True, "paused" if request.data else "playing"
        return response

    def _on_parameters(self, parameters):
        from rcl_interfaces.msg import SetParametersResult

        for parameter in parameters:
            if parameter.name == "rate":
                self._play.rate = parameter.value
        return SetParametersResult(successful=True)

    def destroy_node(self) -> None:
        if self._round:
            report = self.report()
            text = json.dumps(report, allow_nan=True)
            self._reports.publish(String(data=text))
            self.get_logger().info(
                f"{report['text']}; the clock stood {self._play.stood_s:.1f} s for the policy")
            if self._get("report"):
                Path(self._get("report")).write_text(json.dumps(report, indent=1), encoding="utf-8")
            time.sleep(0.2)  # for those who listen to the report
        self._bag.close()
        super().destroy_node()


def main(argv: list | None = None) -> int:
    return run(refusing(Replay), argv)
