# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever arrives, and whenever: no command leaves the limits, none is non-finite, holds hold.

The rig checks every command and its whole stop against all limits as it is sent (see conftest).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.player import State

RESTING = (State.HOLDING, State.STALE, State.TRIPPED)
wild_values = st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 1e6, -5.0, 0.0])

good_chunk = st.fixed_dictionaries(
    {
        "kind": st.just("good"),
        "rows": st.integers(1, 40),
        "age_s": st.floats(-0.04, 1.5),
        "dt_s": st.sampled_from([0.004, 0.02, 1 / 30, 0.2]),
        "life_s": st.floats(0.05, 3.0),
        "size": st.sampled_from([0.0, 0.01, 0.3, 3.0]),
        "walk": st.booleans(),
        "seed": st.integers(0, 2**31),
        "offset": st.booleans(),
    }
)
bad_chunk = st.fixed_dictionaries(
    {
        "kind": st.just("bad"),
        "change": st.sampled_from(
            [
                {"joint_names": ["gripper"] * 6},
                {"joint_names": ["a", "b"]},
                {"rows": 7},
                {"rows": 0},
                {"dt_ns": 0},
                {"life_ns": -5},
                {"stamp_ns": 0},
                {"stamp_ns": 2**63 - 1},
                {"stamp_ns": -(2**63)},
                {"chunk_id": 0},
                {"control_mode": 7},
                {"joint_units": ["deg"] * 6},
                {"source": "other"},
            ]
        ),
    }
)
wild_chunk = st.fixed_dictionaries(
    {"kind": st.just("wild"), "values": st.lists(wild_values, min_size=6, max_size=18)}
)
event = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(
            ["stop", "release", "reset", "exit", "mute", "blind", "push", "jump", "back", "restart"]
        )
    }
)
script = st.lists(
    st.tuples(
        st.one_of(good_chunk, good_chunk, good_chunk, wild_chunk, bad_chunk, event),
        st.sampled_from([0, 1, 3, 10, 30]),  # ticks until the next
        st.integers(0, 3),  # of which so many are missed at the end
    ),
    min_size=4,
    max_size=12,
)


def send_good(rig, step):
    rng = np.random.default_rng(step["seed"])
    rows = rng.normal(0.0, step["size"], (step["rows"], 6))
    if step["walk"]:
        rows = np.cumsum(rows, axis=0)
    options = {name: step[name] for name in ("age_s", "dt_s", "life_s")}
    if rig.robot.player.velocity_mode:
        rig.send(rows, **options)
    elif step["offset"]:
        rig.send(rows, control_mode=3, anchor=rig.measured, **options)
    else:
        rig.send(rig.measured + rows, **options)


def act(rig, step):
    player, kind = rig.player, step["kind"]
    if kind == "good":
        send_good(rig, step)
    elif kind == "wild":
        rows = len(step["values"]) // 6
        rig.send(np.array(step["values"][: rows * 6]).reshape(rows, 6))
    elif kind == "bad":
        rig.send(np.tile(rig.robot.home, (5, 1)), **step["change"])
        rig.next_id = max(rig.next_id, 2)
    elif kind in ("stop", "release"):
        player.protective_stop(kind == "stop", rig.now_ns)
    elif kind == "reset":
        player.protective_stop(False, rig.now_ns)
        player.reset(rig.now_ns)
    elif kind == "exit":
        player.on_source_exit(rig.source, rig.now_ns)
    elif kind == "mute":
        rig.beating = not rig.beating
    elif kind == "blind":
        rig.sensing = not rig.sensing
    elif kind == "push":
        rig.measured = rig.measured + 0.2
    elif kind == "jump":
        rig.tick(after_ns=7 * 10**9)
    elif kind == "back":
        rig.tick(after_ns=-5 * 10**9)
    elif kind == "restart":
        player.deactivate(rig.now_ns)
        rig.run(0.6)
        player.activate(rig.now_ns)


@pytest.mark.parametrize(
    ("output", "switching"),
    [
        ("joint_trajectory", "blend"),
        ("joint_trajectory", "ensemble"),
        ("forward_position", "latest"),
        ("forward_velocity", "blend"),
    ],
)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(script=script)
def test_whatever_arrives_commands_stay_within_the_limits(make_rig, output, switching, script):
    rig = make_rig(output=output, switching=switching, require_heartbeat=False).start()
    for step, ticks, missed in script:
        act(rig, step)
        for _ in range(ticks):
            resting = rig.player.at_rest and rig.status().state in RESTING
            command = rig.tick()
            if resting and command is not None and not command.rebased:
                assert not command.velocity.any()
                if output != "forward_velocity" and len(rig.commands) > 1:
                    np.testing.assert_array_equal(command.position, rig.commands[-2].position)
        if missed:
            rig.tick(after_ns=(1 + missed) * rig.period_ns)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(script=script)
def test_however_it_came_to_it_a_stop_ends_in_a_hold_that_does_not_move(make_rig, script):
    rig = make_rig().start()
    for step, ticks, _ in script:
        act(rig, step)
        for _ in range(ticks):
            rig.tick()
    rig.sensing = True
    rig.tick()
    rig.player.protective_stop(True, rig.now_ns)
    commands = rig.run(0.8)[-20:]
    for command in commands:
        np.testing.assert_array_equal(command.position, commands[0].position)
        assert not command.velocity.any()
