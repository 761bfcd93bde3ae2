# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The newest messages that belong together make an observation; else it is said why not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.intake import CODES, Assembled, ObservationIntake, Waiting
from omni_ros.robot import PolicyConfig

MS = 10**6
START = 1_700_000_000 * 10**9
#: The monotonic clock began at another time.
OFFSET = START - 5_000 * 10**9
JOINTS = ("shoulder", "elbow", "gripper")


class Robot:
    """Feeds an intake. Times in ms since the start; a message comes when stamped, or later."""

    def __init__(self, cameras=("front", "wrist"), keep=4, **settings):
        self.config = PolicyConfig(action_rate_hz=15.0, **settings)
        self.intake = ObservationIntake(cameras, JOINTS, self.config, keep=keep)

    def picture(self, camera, stamp, *, came=None, message=None):
        message = f"{camera}@{stamp}" if message is None else message
        self.intake.add_image(camera, message, START + stamp * MS, mono(came, stamp))

    def joints(self, stamp, *, came=None, names=JOINTS, positions=None):
        positions = [stamp * 0.001] * len(names) if positions is None else positions
        self.intake.add_joints(names, positions, START + stamp * MS, mono(came, stamp))

    def pick(self, now):
        return self.intake.pick(START + round(now * MS), mono(None, now))


def mono(came, stamp):
    return START - OFFSET + round((stamp if came is None else came) * MS)


def test_pictures_and_joints_of_one_moment_make_an_observation():
    robot = Robot()
    robot.picture("front", 100)
    robot.picture("wrist", 90)
    robot.joints(95)
    got = robot.pick(120)
    assert got.images == {"front": "front@100", "wrist": "wrist@90"}
    assert got.stamp_ns == START + 90 * MS
    assert got.picture_stamps == {"front": START + 100 * MS, "wrist": START + 90 * MS}
    assert got.positions.tolist() == [0.095] * 3 and got.positions.dtype == np.float64


def test_ages_are_taken_by_stamp_and_by_receipt():
    robot = Robot()
    robot.picture("front", 100, came=130)
    robot.picture("wrist", 100, came=110)
    robot.joints(95, came=96)
    got = robot.pick(150)
    assert got.ages_s == pytest.approx({"front": 0.05, "wrist": 0.05, "joints": 0.055})
    assert got.receipt_ages_s == pytest.approx({"front": 0.02, "wrist": 0.04, "joints": 0.054})
    assert got.received_ns == mono(130, 0)


def test_an_observation_is_given_once():
    robot = Robot()
    robot.picture("front", 100)
    robot.picture("wrist", 100)
    robot.joints(100)
    assert isinstance(robot.pick(110), Assembled)
    assert robot.pick(111).code == "nothing_new"


def test_the_newest_observation_is_given_and_older_ones_never():
    robot = Robot()
    for stamp in (0, 33, 66):
        robot.picture("front", stamp)
        robot.picture("wrist", stamp)
        robot.joints(stamp)
    assert robot.pick(70).stamp_ns == START + 66 * MS
    assert robot.pick(71).code == "nothing_new"


def test_the_same_picture_and_pose_again_and_again_keep_making_observations():
    robot = Robot()
    for index in range(150):
        now = index * 33
        robot.picture("front", now, message="the same")
        robot.picture("wrist", now, message="the same")
        robot.joints(now, positions=[0.5, 0.5, 0.5])
        assert isinstance(robot.pick(now + 1), Assembled)


@pytest.mark.parametrize(("late", "runs"), [(20, True), (200, False)])
def test_a_camera_that_is_later_than_the_slop_is_loud_within_a_second_else_it_runs(late, runs):
    robot = Robot(slop_s=0.05)
    got = []
    for now in range(0, 1400, 33):
        robot.picture("front", now)
        robot.picture("wrist", now - late, came=now)
        robot.joints(now)
        got.append(robot.pick(now + 2))
    if runs:
        assert all(isinstance(one, Assembled) for one in got)
        return
    assert all(isinstance(one, Waiting) for one in got)
    last = got[-1]
    assert last.code == "not_synchronised" and last.loud and 1.0 <= last.for_s < 1.5
    assert last.text == (
        "no synced frame: camera wrist is 200 ms behind front; allowed are 50 ms (policy.slop_s)"
    )


def test_joints_come_by_name_whatever_the_order_and_whoever_sends_them():
    robot = Robot(cameras=("front",))
    robot.picture("front", 100)
    robot.joints(98, names=["gripper"], positions=[3.0])
    robot.joints(101, names=["wheel", "elbow", "shoulder"], positions=[9.0, 2.0, 1.0])
    assert robot.pick(110).positions.tolist() == [1.0, 2.0, 3.0]


def test_each_joint_is_taken_from_the_sample_nearest_to_the_pictures():
    robot = Robot(cameras=("front",))
    for stamp in range(60, 140, 10):
        robot.joints(stamp, names=["shoulder", "elbow"], positions=[stamp, -stamp])
    for stamp in (75, 95, 115):
        robot.joints(stamp, names=["gripper"], positions=[stamp])
    robot.picture("front", 102)
    assert robot.pick(140).positions.tolist() == [100, -100, 95]


def test_of_two_that_measure_one_joint_the_nearer_sample_counts():
    for first, second in (("gripper",), JOINTS), (JOINTS, ("gripper",)):
        robot = Robot(cameras=("front",))
        robot.picture("front", 100)
        robot.joints(103, names=JOINTS, positions=[1.0, 2.0, 3.0])
        for names in (first, second):
            robot.joints(105 if names == JOINTS else 110, names=names, positions=[9.0] * len(names))
        assert robot.pick(120).positions.tolist() == [1.0, 2.0, 3.0]


def test_a_joint_state_without_a_stamp_counts_from_when_it_came():
    robot = Robot(cameras=("front",))
    robot.picture("front", 100)
    robot.intake.add_joints(JOINTS, [1.0, 2.0, 3.0], 0, mono(None, 95))
    got = robot.pick(110)
    assert got.positions.tolist() == [1, 2, 3] and got.ages_s["joints"] == pytest.approx(0.015)


def test_a_sample_that_is_not_finite_is_passed_over():
    robot = Robot(cameras=("front",))
    robot.picture("front", 100)
    robot.joints(90, positions=[1.0, 2.0, 3.0])
    robot.joints(100, positions=[math.nan, 5.0, math.inf])
    assert robot.pick(110).positions.tolist() == [1.0, 5.0, 3.0]


def test_a_joint_state_with_velocities_only_counts_for_nothing():
    robot = Robot(cameras=("front",))
    robot.picture("front", 100)
    robot.joints(90, positions=[1.0, 2.0, 3.0])
    robot.joints(100, positions=[])
    assert robot.pick(110).positions.tolist() == [1.0, 2.0, 3.0]


def test_what_never_came_is_named():
    robot = Robot()
    robot.picture("front", 0)
    assert (robot.pick(1).code, robot.pick(1).text) == (
        "no_picture", "no picture has come from camera wrist")
    robot.picture("wrist", 0)
    robot.joints(0, names=["shoulder", "gripper"])
    got = robot.pick(2)
    assert (got.code, got.text) == ("no_joints", "no joint state has come with joint elbow")


def fed(robot, until, *, pictures=True, joints=True):
    for now in range(0, until, 30):
        for camera in robot.intake._cameras if pictures else ():
            robot.picture(camera, now)
        if joints:
            robot.joints(now)


def test_a_camera_that_stopped_sending_is_named_with_how_long_ago():
    robot = Robot()
    fed(robot, 300)
    for now in range(300, 1000, 30):
        robot.picture("front", now)
        robot.joints(now)
    got = robot.pick(1000)
    assert got.code == "picture_stale"
    assert got.text == ("camera wrist: nothing has come for 0.73 s; allowed are 0.5 s "
                        "(policy.image_timeout_s)")


def test_joint_states_that_stopped_are_named_with_how_long_ago():
    robot = Robot(cameras=("front",))
    fed(robot, 300)
    for now in range(300, 1000, 30):
        robot.picture("front", now)
    got = robot.pick(1000)
    assert got.code == "joints_stale" and "0.73 s; allowed are 0.5 s" in got.text


def test_joint_states_away_from_the_pictures_are_refused_with_both_numbers():
    robot = Robot(cameras=("front",))
    robot.picture("front", 300)
    robot.joints(200)
    got = robot.pick(310)
    assert got.code == "joints_apart"
    assert "100 ms behind the pictures; allowed are 50 ms (policy.slop_s)" in got.text


def test_an_older_picture_is_taken_if_only_its_joints_have_come():
    robot = Robot(cameras=("front",))
    robot.picture("front", 200)
    robot.picture("front", 300)
    robot.joints(200)
    assert robot.pick(310).stamp_ns == START + 200 * MS


@pytest.mark.parametrize(("shift", "words"), [
    (2000, "off by 2.00 s: stamped 1.99 s in the future"),
    (-3000, "off by 3.00 s, or it is slow to send: came 0.01 s ago with a stamp 3.01 s old"),
])
def test_a_camera_whose_clock_is_wrong_is_told_from_one_that_is_silent(shift, words):
    robot = Robot()
    robot.picture("front", 100)
    robot.picture("wrist", 100 + shift, came=100)
    robot.joints(100)
    got = robot.pick(110)
    assert got.code == "clock" and "clock of camera wrist" in got.text
    assert words in got.text


def test_a_driver_that_sets_no_stamp_is_told_so():
    robot = Robot(cameras=("front",))
    robot.intake.add_image("front", "m", 0, mono(None, 100))
    robot.joints(100)
    got = robot.pick(110)
    assert got.code == "clock" and "no stamp (0)" in got.text


def test_joints_stamped_in_the_future_are_not_used():
    robot = Robot(cameras=("front",), slop_s=1.0)
    robot.picture("front", 100)
    robot.joints(400, came=100)
    got = robot.pick(110)
    assert got.code == "clock" and "joint state of shoulder" in got.text and "future" in got.text


def test_clocks_may_differ_by_a_little():
    robot = Robot(cameras=("front",))
    robot.picture("front", 140, came=100)
    robot.joints(100)
    assert isinstance(robot.pick(110), Assembled)


def test_a_picture_is_too_old_by_when_it_came_though_its_stamp_is_not():
    robot = Robot(cameras=("front",), image_timeout_s=0.1)
    robot.picture("front", 40, came=0)
    robot.joints(60)
    got = robot.pick(120)
    assert got.code == "picture_stale" and "0.12 s; allowed are 0.1 s" in got.text


def test_a_clock_that_lags_but_within_the_timeout_is_noticed():
    robot = Robot(cameras=("front",))
    robot.picture("front", 100, came=400)
    robot.joints(100, came=101)
    notices = robot.pick(410).notices
    assert len(notices) == 1 and notices[0].startswith("front was stamped 0.30 s before it came")


def test_waiting_counts_from_the_first_time_in_vain():
    robot = Robot()
    fed(robot, 300)
    assert isinstance(robot.pick(280), Assembled)
    assert robot.pick(5000).for_s == 0.0  # nobody asked meanwhile
    got = robot.pick(6500)
    assert got.for_s == pytest.approx(1.5) and got.loud


def test_a_clock_that_goes_back_empties_all():
    robot = Robot(cameras=("front",))
    fed(robot, 300)
    assert isinstance(robot.pick(300), Assembled)
    assert robot.pick(-5000).code == "no_picture"
    robot.picture("front", -4990)
    robot.joints(-4990)
    assert robot.pick(-4980).stamp_ns == START - 4990 * MS


def test_after_a_reset_nothing_old_is_given():
    robot = Robot(cameras=("front",))
    fed(robot, 300)
    robot.intake.reset()
    assert robot.pick(300).code == "no_picture"


def test_only_a_few_messages_are_kept():
    robot = Robot(cameras=("front",), keep=4)
    fed(robot, 60_000)
    assert len(robot.intake._pictures["front"]) == 4
    kept = sum(len(samples) for _, samples in robot.intake._joints._groups.values())
    assert kept <= 0.6 * 1000 / 30 + 2


def test_ever_new_sets_of_names_do_not_fill_the_memory():
    robot = Robot(cameras=("front",))
    for index in range(200):
        robot.joints(index, names=["shoulder", f"other_{index}"], positions=[1.0, 2.0])
    assert len(robot.intake._joints._groups) <= 16


def test_an_unknown_camera_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        Robot().picture("top", 0)


times = st.integers(0, 400)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), times, st.integers(0, 300)), max_size=24),
    st.lists(st.tuples(st.sampled_from([JOINTS, JOINTS[:2], JOINTS[2:]]), times), max_size=10),
    st.integers(0, 120), st.lists(st.integers(0, 700), min_size=1, max_size=4),
)
def test_the_newest_possible_set_is_found_whatever_the_order(pictures, joints, slop, picks):
    robot = Robot(cameras=("a", "b", "c"), keep=8, slop_s=slop / 1000, image_timeout_s=0.3,
                  joints_timeout_s=60.0)
    for index, (camera, stamp, delay) in enumerate(pictures):
        robot.picture(camera, stamp, came=stamp + delay, message=index)
    samples = {name: [] for name in JOINTS}
    for names, stamp in joints:
        robot.joints(stamp, names=names)
        for name in names:
            samples[name].append(stamp)
    kept = {camera: [(stamp, index, delay) for index, (c, stamp, delay) in enumerate(pictures)
                     if c == camera][-8:] for camera in "abc"}
    last = -1
    for now in sorted(picks):
        fresh = [[(stamp, index) for stamp, index, delay in kept[camera]
                  if -50 <= now - stamp <= 300 and now - stamp - delay <= 300] for camera in "abc"]
        best = -1
        for members in product(*fresh):
            low, high = min(members)[0], max(members)[0]
            near = [min((abs(s - low) for s in samples[name] if s - now <= 50), default=math.inf)
                    for name in JOINTS]
            if high - low <= slop and low > last and max(near) <= slop:
                best = max(best, low)
        got = robot.pick(now)
        if best < 0:
            assert got.code in CODES and got.text
            continue
        assert got.stamp_ns == START + best * MS
        stamps = [stamp - START for stamp in got.picture_stamps.values()]
        assert max(stamps) - min(stamps) <= slop * MS and min(stamps) == best * MS
        for camera, index in got.images.items():
            assert pictures[index][0] == camera
            assert got.picture_stamps[camera] == START + pictures[index][1] * MS
        last = best


def test_an_observation_that_another_has_picked_is_found_by_its_stamp_however_old():
    robot = Robot(keep=40)
    for stamp in range(0, 1000, 50):
        robot.picture("front", stamp)
        robot.picture("wrist", stamp + 10)
        robot.joints(stamp)
    got = robot.intake.at(START + 600 * MS, START + 2000 * MS, mono(None, 2000))
    assert got.images == {"front": "front@600", "wrist": "wrist@610"}
    assert got.positions.tolist() == [0.6] * 3


def test_a_stamp_that_is_of_no_picture_finds_nothing():
    robot = Robot(keep=40)
    for stamp in (100, 150):
        for camera in ("front", "wrist"):
            robot.picture(camera, stamp)
        robot.joints(stamp)
    assert robot.intake.at(START + 120 * MS, START + 200 * MS, mono(None, 200)) is None
