# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Normalisation equals the reference, and refuses statistics that mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omni_ros.policy.normalise import (
    Mode,
    Normaliser,
    StatisticsError,
    check_statistics,
    feature_statistics,
    parse_mode,
)

DATA = Path(__file__).parents[1] / "data"
BLOCKS = np.load(DATA / "oracles/blocks_given/blocks.npz")
BLOCK_STATISTICS = {key[5:]: BLOCKS[key] for key in BLOCKS.files
                    if key.startswith("norm/") and "_" not in key and key != "norm/x"}
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))
GOOD = {"mean": [0.0, 1.0], "std": [1.0, 2.0], "min": [-1.0, 0.0], "max": [1.0, 2.0]}


def state_file(folder, step):
    """The statistics that a processor step of a checkpoint names, and its mode for a feature."""
    load_file = pytest.importorskip("safetensors.numpy").load_file
    name = "preprocessor" if step == "normalizer_processor" else "postprocessor"
    processor = json.loads((folder / f"checkpoint/policy_{name}.json").read_text())
    found = next(s for s in processor["steps"] if s.get("registry_name") == step)
    return load_file(folder / "checkpoint" / found["state_file"]), found["config"]["norm_map"]


@pytest.mark.parametrize("mode", list(Mode))
def test_each_mode_gives_the_reference_s_values_even_for_degenerate_statistics(mode):
    normaliser = Normaliser(mode, BLOCK_STATISTICS, width=6)
    np.testing.assert_array_equal(normaliser.forward(BLOCKS["norm/x"]),
                                  BLOCKS[f"norm/state_{mode.value}"])
    np.testing.assert_array_equal(normaliser.inverse(BLOCKS["norm/x"]),
                                  BLOCKS[f"norm/unaction_{mode.value}"])


@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_a_reference_set_s_state_is_normalised_and_padded_alike(folder):
    table, modes = state_file(folder, "normalizer_processor")
    state = np.load(folder / "tensors/inputs.npz")["state"]
    reference = np.load(folder / "tensors/preprocessed.npz")
    normaliser = Normaliser(modes["STATE"], feature_statistics(table, "observation.state"),
                            width=len(state))
    padded = normaliser.forward(state, out=np.full(reference["state_padded"].shape[1], 9.0,
                                                   np.float32))
    np.testing.assert_allclose(padded, reference["state_padded"][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_a_reference_set_s_actions_come_back_in_robot_units(folder):
    table, modes = state_file(folder, "unnormalizer_processor")
    outputs = np.load(folder / "tensors/outputs.npz")
    expected = outputs["actions"][0]
    normaliser = Normaliser(modes["ACTION"], feature_statistics(table, "action"),
                            width=expected.shape[1])
    np.testing.assert_allclose(normaliser.inverse(outputs["actions_padded"][0]), expected,
                               rtol=1e-6, atol=1e-6)


def test_pi0_and_pi05_states_and_actions_equal_the_reference():
    pi0, pi05 = np.load(DATA / "policy/pi0.npz"), np.load(DATA / "policy/pi05.npz")
    state = Normaliser("MEAN_STD", {"mean": pi0["state_mean"], "std": pi0["state_std"]}, width=14)
    np.testing.assert_allclose(state.forward(pi0["state"], out=np.empty(32, np.float32)),
                               pi0["state_padded"], rtol=0, atol=1e-6)
    state = Normaliser("QUANTILES", {"q01": pi05["state_q01"], "q99": pi05["state_q99"]}, width=8)
    np.testing.assert_allclose(state.forward(pi05["state"]), pi05["state_normalised"],
                               rtol=0, atol=1e-6)
    action = Normaliser("QUANTILES", {"q01": pi05["action_q01"], "q99": pi05["action_q99"]},
                        width=7)
    np.testing.assert_allclose(action.inverse(pi05["actions_padded"]), pi05["actions"],
                               rtol=1e-6, atol=1e-6)


values = hnp.arrays(np.float64, (3, 4), elements=st.floats(-100, 100))
spreads = hnp.arrays(np.float64, 4, elements=st.floats(0.01, 100))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(values, hnp.arrays(np.float64, 4, elements=st.floats(-100, 100)), spreads,
       st.sampled_from(list(Mode)))
def test_there_and_back_is_the_identity(x, low, spread, mode):
    statistics = {"mean": low, "std": spread}
    for first, second in (("min", "max"), ("q01", "q99"), ("q10", "q90")):
        statistics |= {first: low, second: low + spread}
    normaliser = Normaliser(mode, statistics, width=4)
    back = normaliser.inverse(normaliser.forward(x))
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-4)


def test_the_ends_of_a_range_become_minus_1_and_1():
    normaliser = Normaliser("MIN_MAX", GOOD, width=2)
    np.testing.assert_allclose(normaliser.forward([[-1.0, 0.0], [1.0, 2.0]]), [[-1, -1], [1, 1]])


def test_nothing_is_clipped():
    assert Normaliser("MIN_MAX", GOOD, width=2).forward([3.0, 1.0])[0] == 3.0


def test_padding_is_zero_whatever_the_buffer_held():
    out = np.full((2, 5), 7.0, np.float32)
    Normaliser("IDENTITY", {}, width=2).forward([[1.0, 2.0], [3.0, 4.0]], out=out)
    np.testing.assert_array_equal(out, [[1, 2, 0, 0, 0], [3, 4, 0, 0, 0]])


@pytest.mark.parametrize("call", ["forward", "inverse"])
def test_a_wrong_width_is_refused_with_both_numbers(call):
    normaliser = Normaliser("MEAN_STD", GOOD, width=2)
    with pytest.raises(ValueError, match=r"\[1\].*2"):
        getattr(normaliser, call)(np.zeros(1))


def test_statistics_of_another_width_are_refused_with_both_numbers():
    with pytest.raises(StatisticsError, match=r"mean is \[2\]; expected \[3\]"):
        Normaliser("MEAN_STD", GOOD, width=3)


def test_an_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'STANDARD'.*MEAN_STD.*QUANTILE10"):
        parse_mode("STANDARD")


def check(statistics, mode="MEAN_STD", **more):
    check_statistics(mode, statistics, feature="observation.state", width=2, **more)


@pytest.mark.parametrize("mode", ["IDENTITY", "MEAN_STD", "MIN_MAX"])
def test_sound_statistics_pass(mode):
    check(GOOD, mode)


def test_missing_statistics_are_refused_with_what_to_pass():
    with pytest.raises(StatisticsError, match="missing: std.*--stats FILE"):
        check({"mean": [0, 0]}, remedy="give --stats FILE")


def test_statistics_under_names_of_no_feature_are_called_inert():
    keys = ["so100.buffer.action.mean", "so100.buffer.action.std"]
    with pytest.raises(StatisticsError, match="inert for this feature: so100.buffer.action.mean"):
        check({}, available=keys)


def test_only_the_exact_feature_name_counts():
    table = {"observation.state.mean": 1, "so100.observation.state.mean": 2, "action.mean": 3,
             "action.left.mean": 4}
    assert feature_statistics(table, "observation.state") == {"mean": 1}
    assert feature_statistics(table, "action") == {"mean": 3}


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_infinite_statistics_are_refused_by_joint_name(bad):
    with pytest.raises(StatisticsError, match="mean is not finite for elbow"):
        check({"mean": [0.0, bad], "std": [1.0, 1.0]}, names=["shoulder", "elbow"])


def test_a_joint_without_variance_is_refused_by_name_with_what_to_write():
    with pytest.raises(StatisticsError, match="std is 0 for elbow.*std 1"):
        check({"mean": [0.0, 0.0], "std": [1.0, 0.0]}, names=["shoulder", "elbow"])


def test_an_empty_range_is_refused_by_entry():
    with pytest.raises(StatisticsError, match="max - min is 0 for entry 0"):
        check({"min": [1.0, 0.0], "max": [1.0, 2.0]}, "MIN_MAX")


def test_a_range_the_wrong_way_round_is_refused():
    with pytest.raises(StatisticsError, match="max - min is below 0 for entry 1"):
        check({"min": [0.0, 2.0], "max": [1.0, 0.0]}, "MIN_MAX")


def test_every_degenerate_mode_of_the_reference_is_refused():
    for mode in (Mode.MEAN_STD, Mode.MIN_MAX, Mode.QUANTILES, Mode.QUANTILE10):
        with pytest.raises(StatisticsError, match="is 0 for"):
            check_statistics(mode, BLOCK_STATISTICS, feature="action", width=6)
