# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni replay`, `omni bench replay`, and recordings as tests."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from omni_ros.cli import main
from omni_ros.replay.testing import NotReplayed, assert_replays
from omni_ros.replay.verdict import Kind

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def other_bundle(changed_bundle) -> Path:
    return changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, high=0.9)))


def omni(*words: object) -> int:
    return main.main(["replay", *map(str, words)])


def test_the_status_is_0_if_it_is_the_same(recording, bundle, capsys):
    assert omni(recording, "--bundle", bundle) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"SAME: tiny on {recording}")
    assert "every bit had to be the same: the same machine, versions and bundle" in out


def test_the_status_is_1_if_it_is_different_and_the_stage_is_named(recording, other_bundle, capsys):
    assert omni(recording, "--bundle", other_bundle) == 1
    out = capsys.readouterr().out
    assert out.startswith("DIFFERENT: ") and "first at pixels (3)" in out
    assert "changed since:" in out and "image.high was 1.0, is 0.9" in out


def test_the_status_is_3_if_something_was_not_recorded(session, write_bag, bundle, capsys):
    messages = session(2)
    gone = next(one for one in messages if one.topic == "/wrist/image_raw")
    assert omni(write_bag([one for one in messages if one is not gone]), "--bundle", bundle) == 3
    out = capsys.readouterr().out
    assert out.startswith("INCOMPLETE: ") and "not in the bag:" in out
    assert "the picture of camera2 stamped 1700000000.004000 s" in out


@pytest.mark.parametrize(("words", "error"), [
    (["nothing", "--bundle", "BUNDLE"], "there is no bag nothing"),
    (["BAG", "--bundle", "nowhere"], "there is no bundle named 'nowhere'"),
    (["BAG", "--bundle", "BUNDLE", "--tolerance", "-1"], "expected 0 or more"),
    (["BAG", "--bundle", "BUNDLE", "--threads", "0"], "expected 1 to 1024"),
    (["BAG", "--bundle", "BUNDLE", "--against", "x", "--openpi", "ws://x"], "expected one of them"),
    (["BAG", "--bundle", "BUNDLE", "--mapping", "x"], "--mapping is for --openpi"),
    (["BAG", "--bundle", "BUNDLE", "--json", "/no/such/x.json"], "there is no folder /no/such"),
    (["BAG", "--bundle", "BUNDLE", "--json", "/dev"], "that is a folder"),
    (["BAG", "--bundle", "BUNDLE", "--json", "/dev/full"], "No space left on device"),
    (["BAG", "--bundle", "BUNDLE", "--source", "cloud"],
     "no chunk of source 'cloud'; expected one whose chunks it holds: local"),
])
def test_what_cannot_be_is_refused_in_one_line_with_status_2(
        recording, bundle, capsys, words, error):
    known = {"BAG": str(recording), "BUNDLE": str(bundle)}
    assert omni(*(known.get(word, word) for word in words)) == 2
    err = capsys.readouterr().err
    assert error in err and err.count("\n") == 1


def test_the_json_has_everything(recording, other_bundle, tmp_path):
    file = tmp_path / "verdict.json"
    omni(recording, "--bundle", other_bundle, "--json", file)
    facts = json.loads(file.read_text(encoding="utf-8"))
    assert facts["verdict"] == "different" and facts["counts"]["different"] == 3
    assert facts["bundle"]["sha256"] != facts["bundle"]["recorded_sha256"]
    chunk = facts["chunks"][0]
    assert chunk["stage"] == "pixels" and set(chunk["difference"]) >= {"shoulder_pan", "gripper"}
    assert facts["changes"][0] == {"what": "image.high", "before": "1.0", "now": "0.9",
                                   "stage": "pixels"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pictures, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.pictures.append(dict(attributes)["alt"])

    def handle_data(self, data):
        self.text += data + "\n"


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="no matplotlib to draw with")
def test_the_page_shows_actions_over_each_other_differences_and_times(
        recording, other_bundle, tmp_path):
    file = tmp_path / "report.html"
    omni(recording, "--bundle", other_bundle, "--report", file)
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    assert page.pictures == ["recorded and computed actions by joint",
                             "largest difference of each chunk by joint", "time of each chunk"]
    assert "The policy decided something else" in page.text and "image.high" in page.text


def test_assert_replays_passes_what_is_the_same(recording, bundle):
    assert assert_replays(recording, bundle).overall is Kind.SAME


def test_assert_replays_fails_with_the_verdict_and_writes_the_page(recording, other_bundle, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(AssertionError, match="first at pixels") as failed:
        assert_replays(recording, other_bundle, report=tmp_path / "report.html")
    assert isinstance(failed.value, NotReplayed)
    assert failed.value.result.overall is Kind.DIFFERENT
    assert (tmp_path / "report.html").is_file()


def test_assert_replays_lets_what_is_incomplete_pass_only_if_told_to(session, write_bag, bundle):
    messages = session(2)
    gone = next(one for one in messages if one.topic == "/wrist/image_raw")
    bag = write_bag([one for one in messages if one is not gone])
    with pytest.raises(AssertionError, match="INCOMPLETE"):
        assert_replays(bag, bundle)
    assert assert_replays(bag, bundle, incomplete=True).overall is Kind.INCOMPLETE


@pytest.fixture
def suite(pytester, session, store, recording):
    """A folder of somebody's tests with a bag in it."""
    import shutil

    shutil.copytree(recording, pytester.path / "bags" / "pick")
    pytester.makepyfile(test_own="""
        def test_own(assert_replays):
            assert_replays("bags/pick")
    """)
    return pytester


@pytest.mark.slow
def test_the_plug_in_makes_a_test_of_each_bag(suite, bundle, other_bundle):
    words = ["-p", "omni_ros.replay.pytest_plugin", "--replay-bags", "bags", "-p", "no:xdist"]
    good = suite.runpytest(*words, "--replay-bundle", bundle, "-v")
    good.assert_outcomes(passed=2)
    good.stdout.fnmatch_lines(["*pick PASSED*"])
    bad = suite.runpytest(*words, "--replay-bundle", other_bundle)
    bad.assert_outcomes(failed=2)
    bad.stdout.fnmatch_lines(["*DIFFERENT: tiny on *pick*", "*image.high was 1.0, is 0.9*"])


@pytest.mark.slow
@pytest.mark.parametrize(("words", "error"), [
    (["--replay-bags", "nowhere", "--replay-bundle", "x"], "there is no such folder"),
    (["--replay-bags", "bags"], "without --replay-bundle"),
    (["--replay-bags", ".pytest_nothing", "--replay-bundle", "x"], "no bag in it"),
])
def test_the_plug_in_says_what_is_wrong_with_its_options(suite, words, error):
    (suite.path / ".pytest_nothing").mkdir()
    result = suite.runpytest("-p", "omni_ros.replay.pytest_plugin", "-p", "no:xdist", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert error in result.stderr.str()


def test_the_bench_says_what_reading_and_comparing_add(recording, bundle, tmp_path, capsys):
    file = tmp_path / "bench.json"
    words = ["bench", "replay", str(recording), "--bundle", str(bundle), "--rounds", "2", "--json",
             str(file)]
    assert main.main(words) == 0
    facts = json.loads(file.read_text(encoding="utf-8"))
    assert facts["chunks"] == 3 and facts["verdict"] == "same" and len(facts["share"]) == 2
    assert "of the policy's own time" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(find_spec("websockets") is None or find_spec("msgpack") is None,
                    reason="no websockets or msgpack to ask a server with")
def test_a_server_is_asked_for_the_recorded_observations(recording, bundle, other_bundle, capsys):
    from omni_ros.openpi.served import ServedBundle
    from omni_ros.openpi.server import PolicyServer
    from omni_ros.openpi.server_settings import ServerSettings
    from omni_ros.policy.smolvla import SmolVLAPolicy

    for served, status, word in ((bundle, 0, "same"), (other_bundle, 1, "different")):
        with SmolVLAPolicy(served) as policy:
            server = PolicyServer(ServedBundle(policy), ServerSettings(port=0))
            server.start()
            try:
                assert omni(recording, "--bundle", bundle, "--openpi", server.url) == status
            finally:
                server.stop()
        out = " ".join(capsys.readouterr().out.split())
        assert f"{server.url} on 3 of the observations: {word}" in out
