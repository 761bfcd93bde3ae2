# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table-top policy: its batched network, its files, its training and what was trained."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
pytest.importorskip("mujoco")

from omni_ros.models.smolvla.load import build, load_checkpoint  # noqa: E402
from omni_ros.models.smolvla.policy import SmolVLA, sample_actions  # noqa: E402
from omni_ros.models.tabletop import closed_loop, data  # noqa: E402
from omni_ros.models.tabletop.batched import Batched  # noqa: E402
from omni_ros.models.tabletop.batches import (  # noqa: E402
    BatchMaker,
    Statistics,
    seen,
    statistics,
)
from omni_ros.models.tabletop.checkpoint import write_checkpoint  # noqa: E402
from omni_ros.models.tabletop.eager import from_checkpoint  # noqa: E402
from omni_ros.models.tabletop.episode import Tabletop  # noqa: E402
from omni_ros.models.tabletop.objective import Heads, initialise, joint_loss  # noqa: E402
from omni_ros.models.tabletop.sizes import CONFIG  # noqa: E402
from omni_ros.models.tabletop.train import Options, Training, learning_rate  # noqa: E402
from omni_ros.models.tabletop.words import Sentences, train_tokenizer  # noqa: E402
from omni_ros.world import expert  # noqa: E402
from omni_ros.world.judge import Verdict  # noqa: E402
from omni_ros.world.scene import BLOCK_NAMES  # noqa: E402
from omni_ros.world.tasks import COLOURS, SKILLS, Task, phrases, task_of  # noqa: E402

COMMITTED = Path(__file__).parents[2] / "models" / "tabletop" / "checkpoint"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(folder / "tokenizer.json", CONFIG.text.vocabulary)
    return folder


@pytest.fixture(scope="module")
def sentences(tokenizer) -> Sentences:
    return Sentences(tokenizer / "tokenizer.json", CONFIG.language)


@pytest.fixture(scope="module")
def network() -> Batched:
    """A network of random weights."""
    torch.manual_seed(0)
    model = SmolVLA(CONFIG, 2).requires_grad_(False)
    tokens = torch.nn.Parameter(torch.zeros(CONFIG.text.vocabulary, CONFIG.text.width))
    initialise(model, Heads(CONFIG), tokens.data)
    torch.nn.init.normal_(model.action_head.action_out.weight, std=0.1)
    model.token_table = tokens.data
    return Batched(model, tokens)


@pytest.fixture(scope="module")
def frames(tmp_path_factory) -> data.Frames:
    made = data.create(tmp_path_factory.mktemp("frames"), 60)
    data.generate(made, 0, 60, seed=3)
    return made


# -- words --------------------------------------------------------------------------------------


def test_every_sentence_fits_the_prompt_with_room_to_spare(sentences):
    for skill in SKILLS:
        for held_out in (False, True):
            for text in phrases(Task(skill, "yellow"), held_out=held_out):
                assert len(sentences.ids(text)) <= CONFIG.language * 2 // 3


def test_words_that_training_never_showed_have_tokens_of_their_own(sentences):
    assert sentences.ids("touch the blue xylophone") != sentences.ids("touch the blue zebra")
    assert sentences.ids("toca el bloque azul, ¡por favor!")


def test_capital_letters_change_nothing(sentences):
    assert sentences.ids("Pick up the RED block") == sentences.ids("pick up the red block")


def test_colours_are_single_words_to_the_tokenizer(sentences):
    lengths = {len(sentences.ids(f"touch the {colour} block")) for colour in COLOURS}
    assert len(lengths) == 1


# -- the batched network --------------------------------------------------------------------------


def test_batches_give_what_the_exported_definition_gives_one_by_one(network, sentences):
    texts = ["touch the red block", "now bring the blue block onto the pad please"]
    pixels = torch.rand(2, 2, 3, 96, 96) * 2 - 1
    state, noise = torch.randn(2, 6), torch.randn(2, CONFIG.chunk, 6)
    ids, mask = sentences.batch([sentences.ids(text) for text in texts])
    images = network.images(pixels.flatten(0, 1)).view(2, -1, CONFIG.text.width)
    prefix = network.prefix(images, torch.ones(2, 2, dtype=torch.bool), torch.from_numpy(ids),
                            torch.from_numpy(mask), state)
    together = network.sample(prefix, noise)
    for i in range(2):
        padded = np.zeros(CONFIG.language, np.int64)
        padded[: mask[i].sum()] = ids[i][mask[i]]
        alone = sample_actions(
            network.model, list(pixels[i]), ["present"] * 2, padded,
            np.arange(CONFIG.language) < mask[i].sum(), state[i], noise[i],
        )
        torch.testing.assert_close(together[i], alone, atol=1e-5, rtol=1e-5)


def test_a_camera_that_is_not_there_does_not_change_the_actions(network, sentences):
    ids, mask = map(torch.from_numpy, sentences.batch([sentences.ids("touch the red block")]))
    state, noise = torch.zeros(1, 6), torch.randn(1, CONFIG.chunk, 6)
    found = []
    for seed in (0, 1):
        images = torch.randn(1, 32, CONFIG.text.width,
                             generator=torch.Generator().manual_seed(5)) * 0.1
        images[:, 16:] = torch.randn(1, 16, CONFIG.text.width,
                                     generator=torch.Generator().manual_seed(seed))
        prefix = network.prefix(images, torch.tensor([[True, False]]), ids, mask, state)
        found.append(network.sample(prefix, noise))
    torch.testing.assert_close(found[0], found[1])


# -- frames and batches ---------------------------------------------------------------------------


def test_frames_of_a_seed_are_the_same_each_time(frames, tmp_path):
    again = data.create(tmp_path, 60)
    data.generate(again, 0, 60, seed=3)
    for name in data.FIELDS:
        np.testing.assert_array_equal(frames.arrays[name], again.arrays[name])


def test_a_batch_holds_what_the_expert_would_do_for_each_instruction(frames, sentences):
    found = statistics(frames, np.random.default_rng(0), 200)
    batch = BatchMaker([(frames, 60)], found, sentences, frames=5, instructions=4, seed=1)()
    assert batch.actions.shape == (20, expert.ROWS, 6)
    assert sorted(batch.target[:4].tolist()) == [0, 1, 2, 3]
    assert torch.isfinite(batch.actions).all() and batch.actions.abs().max() < 8


def test_a_place_in_the_picture_is_named_by_its_cell():
    cell, offset = seen(np.array([[0.0, 0.0], [95.0, 0.0], [47.5, 95.0], [-1.0, 4.0]]))
    assert cell.tolist() == [0, 3, 14, -1]
    np.testing.assert_allclose(offset[2], [-0.5, 0.479], atol=1e-3)


def test_the_loss_reaches_every_parameter_that_inference_reads(frames, sentences):
    torch.manual_seed(0)
    model, heads = SmolVLA(CONFIG, 2), Heads(CONFIG)
    tokens = torch.nn.Parameter(torch.zeros(CONFIG.text.vocabulary, CONFIG.text.width))
    initialise(model, heads, tokens.data)
    found = statistics(frames, np.random.default_rng(0), 200)
    batch = BatchMaker([(frames, 60)], found, sentences, frames=4, instructions=2, seed=1)()
    loss, _ = joint_loss(Batched(model, tokens), heads, batch, 2)
    loss.backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


# -- files ----------------------------------------------------------------------------------------


def test_a_written_checkpoint_is_read_back_to_the_bit(network, tokenizer, tmp_path):
    spread = np.full(6, 0.5, np.float32)
    write_checkpoint(tmp_path, network.model, network.tokens,
                     Statistics(spread * 0, spread, spread * 0 + 0.1, spread), tokenizer)
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint.config == CONFIG
    assert checkpoint.cameras == ("observation.images.front", "observation.images.wrist")
    model = build(checkpoint)
    for name, value in network.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, atol=0, rtol=0)
    torch.testing.assert_close(checkpoint.token_table, network.tokens.data, atol=0, rtol=0)


# -- training -------------------------------------------------------------------------------------


def test_the_rate_of_learning_warms_up_and_ends_at_two_percent():
    assert learning_rate(0.0, 0, 1.0) == pytest.approx(1 / 200)
    assert learning_rate(0.2, 5000, 1.0) == 1.0
    assert learning_rate(1.0, 5000, 1.0) == pytest.approx(0.02)
    assert math.isclose(learning_rate(0.65, 5000, 1.0), 0.51)


@pytest.mark.slow
def test_a_short_run_learns_writes_a_checkpoint_and_goes_on(tmp_path):
    from omni_ros.models.tabletop.record import write_record

    options = Options(out=tmp_path, steps=40, see_share=0.5, frames=300, own=500, processes=1,
                      batch=3, late_batch=4, episodes=1, evaluate_minutes=60)
    training, lines, losses = Training(options, lambda line: lines.append(line)), [], []
    training.prepare(lambda count: None)
    training.run(lambda progress, means: losses.append(dict(means)))
    write_record(tmp_path, training)
    assert losses[-1]["see"] < 0.8 * losses[0]["see"]
    assert from_checkpoint(tmp_path / "checkpoint") is not None
    record = json.loads((tmp_path / "training_record.json").read_text())
    assert record["steps"] == 40 and record["seed"] == 1

    again = Training(options, lambda line: lines.append(line))
    again.prepare(lambda count: None)
    assert again.progress.step == training.progress.step
    assert any("going on" in line for line in lines)


# -- what was trained -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def committed() -> Path:
    if not (COMMITTED / "model.safetensors").is_file():
        pytest.skip("no trained checkpoint in this tree")
    return COMMITTED


def test_the_committed_checkpoint_loads_strictly_and_is_small(committed):
    checkpoint = load_checkpoint(committed)
    assert checkpoint.config == CONFIG
    assert sum(f.stat().st_size for f in committed.rglob("*") if f.is_file()) < 20e6


def test_the_committed_policy_touches_the_block_it_is_told_to(committed):
    policy = from_checkpoint(committed)
    tasks = [Task("touch", colour) for colour in COLOURS]
    outcomes = closed_loop.run(
        policy, [Tabletop() for _ in tasks], tasks, [77_000 + i for i in range(4)],
        [phrases(task, held_out=True)[0] for task in tasks], horizon=8, delay=1,
    )
    assert [outcome.verdict for outcome in outcomes].count(Verdict.SUCCESS) >= 3
    assert Verdict.WRONG not in [outcome.verdict for outcome in outcomes]


class _Rows:
    """A world that only remembers the rows it was given."""

    def __init__(self) -> None:
        self.command, self.played = -1.0, []

    def row(self, target) -> None:
        self.played.append(float(target))


def test_a_late_chunk_is_entered_at_the_row_of_its_time():
    world = _Rows()
    episode = closed_loop._Episode(world, judge=None)
    for step in range(8):
        if step % 4 == 0:  # rows of a chunk are named by observation and place
            episode.coming, episode.since = np.arange(16.0) + 100 * step, 0
        closed_loop.play(episode, delay=2)
    assert world.played == [-1, -1, 2, 3, 4, 5, 402, 403]


def test_the_expert_looked_up_by_its_sentence_solves_the_closed_loop():
    worlds = [Tabletop() for _ in range(2)]

    def policy(images, joints, texts):
        rows = []
        for world, text in zip(worlds, texts, strict=True):
            task, (blocks, yaws, pad) = task_of(text), world.truth()
            rows.append(expert.plan(world.joints()[None], blocks[None], yaws[None], pad[None],
                                    [task.skill_index], [task.block_index]).rows[0])
        return np.stack(rows)

    tasks = [Task("pick_up", "red"), Task("pick_up", "blue")]
    outcomes = closed_loop.run(policy, worlds, tasks, [1, 2], [phrases(t)[0] for t in tasks],
                               horizon=8, delay=1)
    assert [o.verdict for o in outcomes] == [Verdict.SUCCESS] * 2
    assert len(BLOCK_NAMES) == 4
