# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""LeRobot as the baseline: a stand-in with its public interface shows what it is asked for."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from omni_ros.cli import UsageError, lerobot_side, main

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
STAND_IN = {
    "configs/policies.py": """
        class PreTrainedConfig:
            device = "cuda"
            @classmethod
            def from_pretrained(cls, path):
                return cls()
        """,
    "policies/factory.py": """
        import torch
        def make_pre_post_processors(config, *, pretrained_path, preprocessor_overrides,
                                     postprocessor_overrides):
            assert preprocessor_overrides["device_processor"] == {"device": "cpu"}
            assert preprocessor_overrides["tokenizer_processor"]["tokenizer_name"].endswith("/vlm")
            def pre(batch):
                assert batch["task"] and batch["observation.state"].shape == (1, 6)
                return batch
            return pre, lambda actions: actions
        """,
    "policies/smolvla/modeling_smolvla.py": """
        import torch
        class Encoder:
            def embed_image(self, image): return image.mean()
        class Model:
            vlm_with_expert = Encoder()
            def PART(self, x_t): return x_t
        class SmolVLAPolicy:
            @classmethod
            def from_pretrained(cls, path, *, config):
                assert config.device == "cpu" and config.vlm_model_name.startswith("/")
                policy = cls()
                policy.config, policy.model = config, Model()
                return policy
            def eval(self): return self
            def predict_action_chunk(self, batch):
                images = {k: v for k, v in batch.items() if "images" in k}
                assert list(images) == ["observation.images.top"], list(images)
                for image in images.values():
                    assert image.shape == (1, 3, 480, 640) and 0 <= image.min() < image.max() <= 1
                    self.model.vlm_with_expert.embed_image(image)
                return self.model.PART(x_t=torch.zeros(1, 50, 6))
        """,
}


@pytest.fixture
def lerobot(tmp_path, monkeypatch):
    """Return a function that puts a stand-in of some version where Python finds it."""

    def install(version: str = "0.6.1", part: str = "denoise_step") -> None:
        (tmp_path / "lib" / "lerobot").mkdir(parents=True)
        (tmp_path / "lib" / "lerobot" / "__init__.py").touch()
        for name, code in STAND_IN.items():
            path = tmp_path / "lib" / "lerobot" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(code).replace("PART", part))
        facts = tmp_path / "lib" / f"lerobot-{version}.dist-info" / "METADATA"
        facts.parent.mkdir()
        facts.write_text(f"Metadata-Version: 2.1\nName: lerobot\nVersion: {version}\n")
        # Found by this process and, by PYTHONPATH, by the worker.
        monkeypatch.syspath_prepend(str(tmp_path / "lib"))
        paths = [str(tmp_path / "lib"), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    yield install
    for name in [name for name in sys.modules if name.partition(".")[0] == "lerobot"]:
        del sys.modules[name]


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setattr(lerobot_side, "find_spec", lambda name: None)


def bench(bundle: Path, *words: str) -> int:
    return main.main([
        "bench", "policy", str(bundle), "--chunks", "1", "--warm-up", "1", "--threads", "1",
        "--cameras", "1", "--baseline", "lerobot", *words,
    ])  # fmt: skip


@pytest.mark.parametrize(("part", "known"), [("denoise_step", True), ("renamed", False)])
def test_lerobots_chunk_stands_beside_the_bundles_with_its_stages_if_they_are_known(
    exported, results, lerobot, tmp_path, capsys, part, known
):
    pytest.importorskip("torch")
    lerobot(part=part)
    status = bench(exported("smolvla_given", "fp32"), "--json", str(tmp_path / "b.json"),
                   "--checkpoint", str(ORACLES / "smolvla_given" / "checkpoint"))
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert "lerobot / bundle, round by round" in captured.out
    assert "LeRobot 0.6.1 itself" in " ".join(captured.out.split())
    document = json.loads((tmp_path / "b.json").read_text())
    assert set(document["sides"]) == {"bundle", "lerobot"}
    assert all(("ratio" in row) == known for row in document["stages"])


def test_without_lerobot_the_error_says_what_to_install_or_to_use_instead(absent):
    with pytest.raises(UsageError, match="not installed in this Python.* 0.4 to 0.6 .*eager"):
        lerobot_side.check()


@pytest.mark.parametrize("version", ["0.3.3", "0.7.0", "1.0"])
def test_a_release_that_is_not_known_to_work_is_refused_with_both_versions(lerobot, version):
    lerobot(version)
    with pytest.raises(UsageError, match=f"LeRobot {version} is installed; expected 0.4 to 0.6"):
        lerobot_side.check()


def test_without_a_checkpoint_there_is_nothing_for_lerobot_to_load(exported, capsys):
    assert bench(exported("smolvla_given", "fp32")) == 2
    assert "--baseline lerobot needs --checkpoint" in capsys.readouterr().err
