# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Export the table-top policy that comes with the package, in both recipes, into `.venv`.

By `omni export`, as any checkpoint would be. A minute's work, so it is done again only when the
checkpoint or what makes bundles of it has changed.
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


def ensure(root: Path, venv: Path, stamps: Stamps, run: Callable, say: Callable) -> bool:
    """Export what is missing or out of date; return whether anything was done.

    :param run: runs a command or raises. :param say: tells the user.
    """
    checkpoint = root / CHECKPOINT
    makers = [root / "models" / "common", root / "models" / "smolvla", root / "models" / "export",
              root / "omni_ros" / "bundles", root / "native"]
    files = [path for folder in (*makers, checkpoint) for path in folder.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts]
    worked = False
    for name, recipe in BUNDLES.items():
        out = venv / "share" / "omni_ros" / "bundles" / name
        stamp = digest([*files, Path(__file__)], extra=[recipe, stamps.read("policy")])
        step = f"bundle_{name}"
        if stamps.fresh(step, stamp) and (out / "bundle.yaml").exists():
            continue
        say(f"exporting the table-top policy ({recipe})")
        out.parent.mkdir(parents=True, exist_ok=True)
        run([venv / "bin" / "omni", "export", checkpoint, "--out", out, "--force", "--name", name,
             "--recipe", recipe, "--joints", ",".join(f"{joint}:rad" for joint in JOINTS)])
        stamps.write(step, stamp)
        worked = True
    return worked
