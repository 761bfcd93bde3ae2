# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The player's node where its last lines of defence are: what no orderly run gets to."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

rclpy = pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from rclpy.lifecycle import TransitionCallbackReturn  # noqa: E402

from omni_ros.nodes import _player_tick  # noqa: E402
from omni_ros.nodes._player_tick import STILL_WAITS  # noqa: E402
from omni_ros.nodes.action_player import ActionPlayer  # noqa: E402
from omni_ros.player.reasons import State  # noqa: E402

TABLETOP = Path(__file__).resolve().parents[2] / "config" / "robots" / "tabletop.yaml"


class Tick:
    """A tick's thread that ends if it is given so many seconds; None: never."""

    def __init__(self, needs_s: float | None) -> None:
        self.needs_s, self.waits = needs_s, []

    def join(self, timeout: float) -> None:
        self.waits.append(timeout)

    def is_alive(self) -> bool:
        return self.needs_s is None or sum(self.waits) < self.needs_s


class Recorder:
    """Takes the place of a publisher."""

    def __init__(self) -> None:
        self.sent = []

    def publish(self, message) -> None:
        self.sent.append(message)


@pytest.fixture
def make_player(tmp_path, monkeypatch):
    """Return a function that makes a node for the tabletop robot with some settings changed."""
    monkeypatch.setenv("OMNI_ROS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")
    made = []

    def make(*, joints: dict | None = None, use_sim_time: bool = False, **player) -> ActionPlayer:
        content = yaml.safe_load(TABLETOP.read_text())
        content["player"].update(player)
        for joint in content["joints"]:
            joint.update(joints or {})
        path = tmp_path / "robot.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        rclpy.init(args=["--ros-args", "-p", f"robot:={path}",
                         "-p", f"use_sim_time:={str(use_sim_time).lower()}"])
        node = ActionPlayer()
        node.stop_requested = threading.Event()
        made.append(node)
        return node

    yield make
    for node in made:
        node._thread = node._player = None
        node._free()
        node.destroy_node()
        rclpy.shutdown()


def configured(node: ActionPlayer) -> ActionPlayer:
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    node._commands = Recorder()
    node._watch = SimpleNamespace(close=lambda: None, ended=list)
    return node


def entities(node: ActionPlayer) -> tuple[int, ...]:
    return tuple(len(list(kind)) for kind in (node.publishers, node.subscriptions, node.services))


# -- deactivation --------------------------------------------------------------------------------


def test_a_brake_as_long_as_the_limits_can_ask_for_is_waited_for(make_player):
    node = configured(make_player(joints={"velocity": 0.8, "acceleration": 0.2, "jerk": 2.0}))
    node._thread = tick = Tick(needs_s=0.8 / 0.2)
    node._stop_ticks()
    assert node._thread is None and not tick.is_alive()
    assert not node.stop_requested.is_set()


def test_a_tick_that_hangs_ends_the_process_with_a_velocity_of_zero_as_its_last_word(make_player):
    node = configured(make_player(output="forward_velocity"))
    node._thread = Tick(needs_s=None)
    with pytest.raises(RuntimeError, match="the tick did not end within"):
        node._stop_ticks()
    assert list(node._commands.sent[-1].data) == [0.0] * len(node._robot.joints)
    assert node.exit_status == 1 and node.stop_requested.is_set()


def test_a_tick_that_hangs_is_not_waited_for_a_second_time(make_player):
    node = configured(make_player(output="forward_velocity"))
    node._thread = tick = Tick(needs_s=None)
    with pytest.raises(RuntimeError):
        node._stop_ticks()
    node._stop_ticks()  # as the process winds down
    assert tick.waits[-1] == 0.0 and len(node._commands.sent) == 1


def test_after_a_tick_that_hangs_the_player_is_not_activated_again(make_player):
    node = configured(make_player())
    node._thread = Tick(needs_s=None)
    assert node.on_activate(None) == TransitionCallbackReturn.FAILURE


# -- a simulated clock that stands ---------------------------------------------------------------


def play_into_a_standing_clock(node, monkeypatch) -> SimpleNamespace:
    """Tick three times, then let the clock stand for twice the looks that it takes."""
    looks = iter([0] * 3 + [None] * (2 * STILL_WAITS))
    player = SimpleNamespace(
        state=State.PLAYING, jumps=0, ticks=0, last_refusal=None, told_to_leave=False,
        activate=lambda now_ns: None,
    )

    class Pacer:
        def __init__(self, *arguments) -> None:
            pass

        def wait(self):
            look = next(looks, "over")
            if look == "over":
                node._stop.set()
                return None
            return look

        def slack_s(self) -> float:
            return 0.0

    player.on_clock_jump = lambda now_ns: setattr(player, "jumps", player.jumps + 1)
    player.deactivate = lambda now_ns: setattr(player, "told_to_leave", True)
    monkeypatch.setattr(_player_tick, "SimPacer", Pacer)
    monkeypatch.setattr(node, "_tick", lambda now_ns, standstill: None)
    monkeypatch.setattr(node, "_publish_status", lambda now_ns: None)
    node._player = player
    node._tick_until_stopped()
    return player


def test_a_standing_clock_stops_an_arm_that_a_velocity_would_drive_on(make_player, monkeypatch):
    node = configured(make_player(output="forward_velocity", use_sim_time=True))
    player = play_into_a_standing_clock(node, monkeypatch)
    assert node._commands.sent
    assert all(list(m.data) == [0.0] * len(node._robot.joints) for m in node._commands.sent)
    assert player.jumps > 0  # what was being played is not gone on with when the clock runs again


def test_a_clock_that_falters_for_a_moment_is_no_standing_one(make_player, monkeypatch):
    monkeypatch.setattr(_player_tick, "STILL_WAITS", 3 * STILL_WAITS)
    node = configured(make_player(output="forward_velocity", use_sim_time=True))
    looks = iter([None] * (STILL_WAITS - 1))
    sent_while_faltering = []

    class Pacer:
        def __init__(self, *arguments) -> None:
            pass

        def wait(self):
            if next(looks, "over") == "over":
                sent_while_faltering.extend(node._commands.sent)
                node._stop.set()
            return None

        def slack_s(self) -> float:
            return 0.0

    monkeypatch.setattr(_player_tick, "SimPacer", Pacer)
    node._tick_until_stopped()
    assert sent_while_faltering == []


@pytest.mark.parametrize("output", ["joint_trajectory", "forward_position"])
def test_outputs_that_end_or_hold_by_themselves_are_sent_nothing_while_the_clock_stands(
    make_player, monkeypatch, output
):
    node = configured(make_player(output=output, use_sim_time=True))
    player = play_into_a_standing_clock(node, monkeypatch)
    assert node._commands.sent == []
    assert player.jumps == 0 and player.told_to_leave


# -- configuring ---------------------------------------------------------------------------------


def test_a_configure_that_fails_half_way_leaves_nothing_behind_and_can_be_tried_again(
    make_player, monkeypatch
):
    node = make_player()
    before, real = entities(node), node.create_service

    def refuse(kind, name, serve):
        if name == "~/reset":
            raise ValueError("no more services")
        return real(kind, name, serve)

    monkeypatch.setattr(node, "create_service", refuse)
    assert node.trigger_configure() != TransitionCallbackReturn.SUCCESS
    assert entities(node) == before
    assert node._player is None
    monkeypatch.undo()
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS


def test_cleaning_up_leaves_nothing_behind(make_player):
    node = make_player()
    before = entities(node)
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert entities(node) > before
    assert node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
    assert entities(node) == before
