# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""First load, golden vectors and first words, in a child process that may die of them.

ExecuTorch checks a file's structure, not all that is in it: a file made by someone who also signed
the manifest can still crash it. A tokenizer's file can do that to the library that reads it. The
child has no more memory than the manifest asks for and a slack, writes no core file, and dies with
its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omni_ros.bundles.bundle import Bundle, load_program
from omni_ros.bundles.child import confine, run_child, telling
from omni_ros.bundles.contents import check_table
from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.golden import check_golden, tolerance
from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.memory import memory_of
from omni_ros.bundles.tokenizer_trial import try_tokenizer
from omni_ros.programs import get_threads, native, set_threads

#: For the interpreter, numpy, the golden vectors and one copy of a program while it is packed.
SLACK_BYTES = 1 << 30
#: The program that takes the prompt: tokenizer and token table are tried with it.
READER = "fusion_backbone"


def try_programs(
    bundle: Bundle, programs: Sequence[str] | None = None, *, timeout_s: float = 300.0
) -> dict[str, float]:
    """Load programs of a bundle and run their golden vectors, in a throw-away process.

    :param programs: their names; None for all.
    :param timeout_s: after that the child is killed and the bundle refused.
    :return: for each program the largest difference from its golden vector.
    :raises BundleError: a program does not load, is not what the manifest says, answers
        differently, takes too long, or killed the child; the file is named.
    :raises ImportError: what is needed to run programs is not installed.
    """
    # Found or built here, so that the child's time goes to the programs alone.
    native.library()
    names = tuple(bundle.manifest.programs if programs is None else programs)
    limit = memory_of(bundle.manifest, names).total + SLACK_BYTES
    outcome = run_child(__name__, (bundle.root, limit, get_threads(), *names), timeout_s)
    results: dict[str, float] = {}
    current = bundle.root
    for event in outcome.events:
        if "error" in event:
            raise BundleError(event["error"])
        if "begin" in event:
            current = bundle.root / event["begin"]
        if "done" in event:
            results[event["done"]] = event["difference"]
    if outcome.status == 0 and set(results) == set(names):
        return results
    raise BundleError(
        f"{current}: its first load and run {outcome.why()}; the file is damaged or not made for "
        "this machine"
    )


def main(folder: str, limit: str, threads: str, *names: str, parent: int) -> None:
    """Be the child."""
    confine(parent, int(limit))
    root = current = Path(folder)
    with telling() as tell:
        try:
            set_threads(int(threads))
            manifest = read_manifest(root)
            if READER in names:
                current = root / manifest.embeddings.file
                tell(begin=manifest.embeddings.file)
                check_table(current, manifest)
                current = root / manifest.tokenizer.file
                tell(begin=manifest.tokenizer.file)
                try_tokenizer(current, max_length=manifest.tokenizer.max_length,
                              rows=manifest.embeddings.rows)
            for name in names:
                entry = manifest.programs[name]
                current = root / entry.file
                tell(begin=entry.file)
                program = load_program(current, entry)
                current = root / manifest.golden[name]
                worst = check_golden(program, entry, current, tolerance(manifest))
                program.close()
                tell(done=name, difference=worst)
        except MemoryError:
            megabytes = int(limit) / 1e6
            tell(error=f"{current}: needs more memory than the {megabytes:.0f} MB it may have")
        except (ValueError, ImportError) as error:
            tell(error=" ".join(str(error).split()))
