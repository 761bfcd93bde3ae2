# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tiny checkpoint with the reference's results, read with numpy alone."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.speech.qwen3.prompt import PromptIds, Prompts

ORACLE = Path(__file__).resolve().parents[2] / "data" / "oracles" / "qwen3_tts_given"


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a float16 safetensors file, as float32."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F16"
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            values = np.frombuffer(data[start:end], np.float16).reshape(entry["shape"])
            found[name] = values.astype(np.float32)
    return found


@dataclass
class ArrayTable:
    table: np.ndarray

    def rows(self, ids) -> np.ndarray:
        return self.table[list(ids)]


@pytest.fixture(scope="session")
def oracle() -> SimpleNamespace:
    """`cases`: what the reference made, by number; `config` and `tensors` of the checkpoint."""
    if not ORACLE.is_dir():
        pytest.skip(f"{ORACLE} is not there")
    return SimpleNamespace(
        checkpoint=ORACLE / "checkpoint",
        cases=[dict(np.load(path)) for path in sorted(ORACLE.glob("case*.npz"))],
        config=json.loads((ORACLE / "checkpoint" / "config.json").read_text()),
        tensors=read_tensors(ORACLE / "checkpoint" / "model.safetensors"),
    )


@pytest.fixture(scope="session")
def prompts(oracle) -> Prompts:
    config, talker, tensors = oracle.config, oracle.config["talker_config"], oracle.tensors
    ids = PromptIds(
        role=(config["im_start_token_id"], config["assistant_token_id"], 10),
        tts_pad=config["tts_pad_token_id"],
        tts_bos=config["tts_bos_token_id"],
        tts_eos=config["tts_eos_token_id"],
        think=talker["codec_think_id"],
        nothink=talker["codec_nothink_id"],
        think_bos=talker["codec_think_bos_id"],
        think_eos=talker["codec_think_eos_id"],
        codec_pad=talker["codec_pad_id"],
        codec_bos=talker["codec_bos_id"],
        languages=talker["codec_language_id"] | {"beijing_dialect": 2074},
        speakers=talker["spk_id"] | {"dylan": 2878},
        dialects={"dylan": "beijing_dialect"},
    )
    projected = tensors["talker.model.text_embedding.weight"]
    for number in ("1", "2"):
        weight = tensors[f"talker.text_projection.linear_fc{number}.weight"]
        projected = projected @ weight.T + tensors[f"talker.text_projection.linear_fc{number}.bias"]
        if number == "1":
            projected = projected / (1 + np.exp(-projected))
    codec = tensors["talker.model.codec_embedding.weight"]
    return Prompts(ids, ArrayTable(projected), ArrayTable(codec))


class EagerProgram:
    """What omni_ros.programs.Program is to its user, with a PyTorch module in its place.

    The exported programs are compared with these modules where they are exported; here it is the
    loops around them that are under test, for which this is quicker to make.
    """

    path = "eager"

    def __init__(self, module, inputs: list[str], outputs: list[str], given: list) -> None:
        import torch

        made = module(*given)
        made = made if isinstance(made, tuple) else (made,)
        self._module, self._torch = module, torch
        self.inputs = tuple(SimpleNamespace(name=name, shape=tuple(tensor.shape), dtype="float32")
                            for name, tensor in zip(inputs, given, strict=True))  # fmt: skip
        self._bound: dict[str, np.ndarray] = {}
        self._results = {name: np.zeros(tuple(tensor.shape), np.float32)
                         for name, tensor in zip(outputs, made, strict=True)}  # fmt: skip
        self.runs = 0

    def bind(self, name: str, array: np.ndarray) -> None:
        assert array.shape == next(spec.shape for spec in self.inputs if spec.name == name)
        assert not any(np.shares_memory(array, other) for other in self._results.values())
        self._bound[name] = array

    def bind_output(self, name: str, array: np.ndarray) -> None:
        assert array.shape == self._results[name].shape
        assert not any(np.shares_memory(array, other) for other in self._bound.values())
        self._results[name] = array

    def bind_all(self, inputs: dict, outputs: dict) -> tuple[dict, dict]:
        for name, array in inputs.items():
            self.bind(name, array)
        for name, array in outputs.items():
            self.bind_output(name, array)
        return inputs, outputs

    def use(self, binding: tuple[dict, dict]) -> None:
        self._bound.update(binding[0])
        self._results.update(binding[1])

    def output(self, name: str) -> np.ndarray:
        return self._results[name]

    def run(self) -> float:
        self.runs += 1
        with self._torch.no_grad():
            made = self._module(*(self._torch.from_numpy(self._bound[spec.name])
                                  for spec in self.inputs))  # fmt: skip
        made = made if isinstance(made, tuple) else (made,)
        for array, tensor in zip(self._results.values(), [one.clone() for one in made], strict=True):
            array[...] = tensor.numpy()
        return 0.0

    def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def networks(oracle) -> SimpleNamespace:
    """The tiny checkpoint's networks in PyTorch, its sizes and tables."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from omni_ros.models.qwen3_tts import load

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    checkpoint = load.load_checkpoint(oracle.checkpoint)
    yield SimpleNamespace(
        config=checkpoint.config,
        talker=load.build_talker(checkpoint).eval(),
        predictor=load.build_predictor(checkpoint).eval(),
        vocoder=load.build_vocoder(checkpoint).eval(),
        embeddings=load.predictor_table(checkpoint).float().numpy(),
        codebooks=load.codebooks(checkpoint).numpy(),
    )
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def load(networks):
    """Gives programs by name, a new one each time, as a bundle does."""
    import torch

    from omni_ros.models.qwen3_tts import talker as modules

    zeros, config = torch.zeros, networks.config

    def caches(sizes, length: int) -> list:
        shape = (sizes.kv_heads, length, sizes.head_dim)
        return [zeros(shape) for _ in range(2 * sizes.layers)]

    def cache_names(layers: int) -> list[str]:
        return [f"{kind}_{layer}" for layer in range(layers) for kind in ("keys", "values")]

    def rows(count: int, sizes, width: int, *others) -> list:
        half = sizes.head_dim // 2
        return [zeros(count, width), zeros(count, half), zeros(count, half), *others]

    def program(name: str) -> EagerProgram:
        kind, _, number = name.rpartition("_")
        given = ["x", "cos", "sin"]
        if kind.startswith("talker"):
            sizes, size = config.talker.stack, int(number)
            step = kind == "talker_step"
            module = (modules.TalkerStep(networks.talker) if step
                      else modules.TalkerPrefill(networks.talker, 16))
            return EagerProgram(
                module, [*given, "mask", *cache_names(sizes.layers)],
                ["hidden", "logits", "keys_new", "values_new"],
                rows(1 if step else 16, sizes, sizes.width, zeros(1, size), *caches(sizes, size)))
        sizes, width = config.predictor.stack, config.talker.stack.width
        groups = config.predictor.groups
        if kind == "predictor_head":
            return EagerProgram(modules.PredictorHead(networks.predictor.heads[int(number)]),
                                ["hidden"], ["logits"], [zeros(1, sizes.width)])
        if name == "predictor_first":
            return EagerProgram(modules.PredictorFirst(networks.predictor), given,
                                ["hidden", "keys_new", "values_new"], rows(2, sizes, width))
        if name == "predictor_step":
            return EagerProgram(
                modules.PredictorStep(networks.predictor),
                [*given, "mask", *cache_names(sizes.layers)], ["hidden", "keys_new", "values_new"],
                rows(1, sizes, width, zeros(1, groups), *caches(sizes, groups)))
        sizes, frames = config.vocoder.stack, int(number)
        states = networks.vocoder.zero_states()
        tails = len(states) - 2 * sizes.layers
        names = [*cache_names(sizes.layers), *(f"tail_{index}" for index in range(tails))]
        return EagerProgram(
            networks.vocoder, ["features", "cos", "sin", "mask", *names],
            ["pcm", *(f"new_{name}" for name in names)],
            rows(frames, sizes, 2 * config.vocoder.codebook_dim,
                 zeros(frames, config.vocoder.window - 1 + frames), *states))  # fmt: skip

    return program


@pytest.fixture
def make_talker(networks, load):
    """Make a talker with caches of these sizes."""
    from omni_ros.speech.qwen3.talker import ProgramTalker

    sizes = networks.config.talker.stack

    def make(*contexts: int, **options) -> ProgramTalker:
        return ProgramTalker(load, contexts or (64,), layers=sizes.layers, head_dim=sizes.head_dim,
                             rope_base=sizes.rope_base, **options)

    return make


@pytest.fixture
def predictor(networks, load):
    from omni_ros.speech.qwen3.predictor import CodePredictor

    sizes = networks.config.predictor.stack
    return CodePredictor(load, networks.embeddings, groups=networks.config.predictor.groups,
                         layers=sizes.layers, head_dim=sizes.head_dim, rope_base=sizes.rope_base)


@pytest.fixture
def vocoder(networks, load):
    from omni_ros.speech.qwen3.vocoder import Codebooks, StatefulVocoder

    config = networks.config.vocoder
    return StatefulVocoder(load, (1, 4), Codebooks(networks.codebooks),
                           head_dim=config.stack.head_dim, window=config.window,
                           rope_base=config.stack.rope_base, frame_samples=config.frame_samples)


@pytest.fixture
def make_parts(networks, oracle, prompts, predictor, vocoder, make_talker):
    """Make what a voice is of, as omni_ros.speech.qwen3.parts.open_parts makes it of a bundle."""
    from omni_ros.speech.qwen3.frames import CodeRules
    from omni_ros.speech.qwen3.options import QwenOptions
    from omni_ros.speech.qwen3.parts import Parts
    from omni_ros.speech.qwen3.sampling import Draw
    from omni_ros.speech.qwen3.vocoder import WindowVocoder

    config = networks.config

    def make(options: QwenOptions = QwenOptions(), contexts: tuple[int, ...] = (64, 128)) -> Parts:
        windows = options.vocoder == "windows"
        codec = ArrayTable(oracle.tensors["talker.model.codec_embedding.weight"])
        return Parts(
            name="tiny", sample_rate=24000, groups=16,
            languages=("auto", "english", "german"), speakers=("", "robo"),
            talker=make_talker(*contexts), predictor=predictor, prompts=prompts, codec=codec,
            rules=CodeRules(2048, config.codec_ids["eos"], 3072, Draw(repetition_penalty=1.05),
                            Draw(), max_frames=options.max_frames or 4096),
            vocoder=WindowVocoder(vocoder, options.left_context_frames) if windows else vocoder,
            vocoder_sizes=(4, 1),
            encode=lambda text: [(byte % 256, index + 1) for index, byte in
                                 enumerate(text.encode("latin-1", "replace"))],
        )

    return make


@pytest.fixture(scope="session")
def bundle() -> Path:
    """The tiny checkpoint as `make setup-qwen` exports it."""
    from omni_ros.bundles.errors import BundleError
    from omni_ros.bundles.named import bundle_folder

    try:
        return bundle_folder("qwen_tiny")
    except BundleError as error:
        pytest.skip(f"{error}; make setup-qwen exports it")
