# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A Qwen3-TTS checkpoint to a bundle: programs of several methods, tables, tokenizer, GGUF files.

Each file with programs is lowered in a process of its own, so that memory goes up to the largest
part's and no further.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from omni_ros.bundles import (
    BundleError, file_entry, layout, this_machine, verify_files, write_golden, write_manifest,
)
from omni_ros.bundles import qwen3_tts as bundle_layout
from omni_ros.bundles.bundle import OWN_WEIGHTS
from omni_ros.bundles.child import confine, run_child, telling

from ..common.errors import CheckpointError
from ..qwen3_tts import load
from ..qwen3_tts.tokenizer import check_marks, tokenizer_text
from .bundle import FP32_TOLERANCE, INT8_SAME_MACHINE, digest, tools
from .folder import check_target, whole_folder
from .lower import LoweringError, TensorSpec, require_one_delegate
from .lowering import read, save
from .memory import Peak
from .method_answers import answer_methods
from .methods import LoweredMethod, lower_methods
from .qwen3_tts_parts import (
    PARTS, Shape, build, check_recipes, plain_options, program_names, quantised,
)
from .qwen3_tts_sections import TABLES, TOKENIZER, speech_section, write_tables
from .stage import furthest, tensors

#: How far a program may be from the network in PyTorch, relative to max(1, largest value).
LIMITS = {"fp32": 1e-4, "int8": 0.25, "int4": 0.7, "conv8": 0.5}
GGUF_KINDS = ("f32", "f16", "q8_0", "q4_0", "q4_k")
TIMEOUT_S = 6 * 3600.0
_ERRORS = {"CheckpointError": CheckpointError, "LoweringError": LoweringError,
           "ValueError": ValueError, "MemoryError": MemoryError}


def export_voice(
    checkpoint: Path | str, out: Path | str, *, recipe: str = "fp32",
    recipes: Mapping[str, str] | None = None, shape: Shape = Shape(), gguf: Sequence[str] = (),
    name: str | None = None, threads: int = 1, allow_portable: bool = False, force: bool = False,
    isolate: bool = True, progress: Callable[[str], None] | None = None,
) -> bundle_layout.QwenManifest:
    """Write a bundle and return its manifest.

    :param recipe: of talker, predictor and heads; the vocoder stays fp32 unless `recipes` says
        otherwise. :param recipes: other ones for single parts, see `qwen3_tts_parts.RECIPES`.
    :param gguf: the talker for llama.cpp as well: any of GGUF_KINDS.
    :param isolate: lower each part in a process of its own.
    :raises ValueError: an option, or the checkpoint, can not be taken as it is.
    :raises LoweringError: the network does not become what it should.
    """
    say = progress or (lambda line: None)
    source, out = Path(checkpoint), Path(out)
    chosen = {part: recipe for part in PARTS} | {"vocoder": "fp32"}
    if recipe == "int4":
        chosen["heads"] = "int8"
    chosen |= dict(recipes or {})
    check_recipes(chosen)
    for kind in gguf:
        if kind not in GGUF_KINDS:
            raise ValueError(f"gguf is {kind!r}: expected any of {', '.join(GGUF_KINDS)}")
    check_shape(shape)
    check_target(out, force=force)
    started, peak = time.monotonic(), Peak()
    opened = load.load_checkpoint(source)
    config = opened.config
    tokenizer = tokenizer_text(source)
    check_marks(tokenizer, dict(config.text_ids), config.talker.text_rows, source)
    say(f"{config.kind} checkpoint read in {time.monotonic() - started:.1f} s")
    with whole_folder(out, force=force) as folder:
        (folder / "golden").mkdir()
        work = folder / "work"
        work.mkdir()
        programs: dict[str, layout.ProgramEntry] = {}
        for part in PARTS:
            programs |= export_part(source, part, chosen[part], shape, folder, work, threads,
                                    allow_portable, isolate, config.predictor.groups, say, peak)
        shutil.rmtree(work)
        write_tables(opened, folder)
        (folder / TOKENIZER).write_text(tokenizer, encoding="utf-8")
        files = {}
        for kind in gguf:
            from .gguf_talker import write_talker

            files[kind] = f"talker.{kind}.gguf"
            write_talker(opened, folder / files[kind], kind)
            say(f"{files[kind]}: {(folder / files[kind]).stat().st_size / 1e6:.1f} MB")
        manifest = bundle_layout.QwenManifest(
            family="qwen3_tts", name=name or out.name.removesuffix(".bundle"),
            sound=bundle_layout.Sound(config.vocoder.sample_rate, config.vocoder.frame_samples),
            tokenizer=bundle_layout.TextTokenizer(TOKENIZER),
            tables=bundle_layout.Tables(**TABLES, text_rows=config.talker.text_rows),
            speech=speech_section(opened, shape, files), programs=programs,
            memory=layout.Memory.of(programs),
            files={
                path.relative_to(folder).as_posix(): file_entry(path)
                for path in sorted(folder.rglob("*")) if path.is_file()
            },
            golden={program: f"golden/{program}.npz" for program in programs},
            tolerance=tolerance(programs),
            provenance=layout.Provenance(
                checkpoint_sha256=digest(opened.files), backbone_sha256=None,
                options={**plain_options(chosen, shape, gguf), "threads": threads,
                         "allow_portable": allow_portable},
                tools=tools(), machine=this_machine(),
                created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                minutes=round((time.monotonic() - started) / 60, 3), peak_memory_bytes=peak.bytes,
            ),
        )
        write_manifest(folder, manifest)
        verify_files(folder)
    total = sum(entry.bytes for entry in manifest.files.values())
    say(f"{out}: {total / 1e6:.1f} MB in {time.monotonic() - started:.1f} s")
    return manifest


def export_part(
    source: Path, part: str, recipe: str, shape: Shape, folder: Path, work: Path, threads: int,
    allow_portable: bool, isolate: bool, groups: int, say: Callable[[str], None], peak: Peak,
) -> dict[str, layout.ProgramEntry]:
    """Write PART.pte and golden vectors of its methods; return their entries of the manifest."""
    path = folder / f"{part}.pte"
    say(f"{part}: lowering ({recipe}) ...")
    started = time.monotonic()
    made = lower_part(source, part, recipe, shape, path, work, threads, isolate=isolate)
    peak.of_children()
    for name, (lowered, _, _) in made.items():
        if not allow_portable:
            require_one_delegate(name, recipe, lowered.delegates, lowered.leftover)
    say(f"{part}: {path.stat().st_size / 1e6:.1f} MB, {len(made)} methods, lowered in "
        f"{time.monotonic() - started:.1f} s")
    names = program_names(part, shape, groups)
    try:
        answers = answer_methods(path, names, work, {n: made[n][2] for n in names},
                                 threads=threads, share=recipe not in OWN_WEIGHTS)
    except BundleError as error:
        raise LoweringError(f"{part} ({recipe}) does not run: {error}") from error
    peak.of_children()
    entries, worst = {}, 0.0
    for name in names:
        lowered, inputs, outputs = made[name]
        answered, taken = answers[name]
        difference = furthest(answered, read(work / f"{name}.wanted.npz", outputs))
        worst = max(worst, difference)
        if not difference <= LIMITS[recipe]:
            raise LoweringError(
                f"{name} ({recipe}) answers with a difference of {difference:.3g} from the network "
                f"in PyTorch, relative to its largest value: expected {LIMITS[recipe]:g} or less; "
                "this combination of versions lowers it wrongly, or the weights do not stand the "
                "recipe"
            )
        write_golden(folder / "golden" / f"{name}.npz", read(work / f"{name}.given.npz", inputs),
                     answered)
        entries[name] = layout.ProgramEntry(
            file=path.name, method=name, recipe=recipe, inputs=tensors(inputs, lowered.inputs),
            outputs=tensors(outputs, lowered.outputs), arenas=lowered.arenas,
            constants_bytes=taken.constants_bytes, workspace_bytes=taken.workspace_bytes,
            delegates=lowered.delegates, leftover=tuple(sorted(set(lowered.leftover))),
            difference=difference,
        )
    say(f"{part}: run and compared, differences up to {worst:.1e}")
    return entries


Made = dict[str, tuple[LoweredMethod, tuple[str, ...], tuple[str, ...]]]


def lower_part(
    source: Path, part: str, recipe: str, shape: Shape, path: Path, work: Path, threads: int, *,
    isolate: bool,
) -> Made:
    """Lower a part, in a process of its own if `isolate`."""
    if not isolate:
        return do(source, part, recipe, shape, path, work)
    arguments = json.dumps([str(source), part, recipe, dataclasses.asdict(shape), str(path),
                            str(work), threads])
    outcome = run_child(__name__, (arguments,), TIMEOUT_S)
    for event in outcome.events:
        if event.get("errno"):
            raise OSError(event["errno"], event["error"], str(path))
        if "error" in event:
            raise _ERRORS.get(event["kind"], RuntimeError)(event["error"])
        if outcome.status == 0:
            return {name: from_plain(method) for name, method in event["methods"].items()}
    memory = "; if it was killed for memory, free some, or export on a larger machine"
    raise LoweringError(
        f"{part}: the process that lowered it {outcome.why()}"
        f"{memory if outcome.status == -9 else ''}"
    )


def main(arguments: str, *, parent: int) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        source, part, recipe, shape, path, work, threads = json.loads(arguments)
        torch.set_num_threads(threads)
        sizes = Shape(**{k: tuple(v) if isinstance(v, list) else v for k, v in shape.items()})
        try:
            made = do(Path(source), part, recipe, sizes, Path(path), Path(work))
        except (ValueError, LoweringError, MemoryError) as error:
            kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS]
            tell(error=str(error) or "not enough memory", kind=kinds[0])
            return
        except OSError as error:  # a full disk
            tell(error=error.strerror or str(error), errno=error.errno)
            return
        tell(methods={
            name: [dataclasses.asdict(lowered), inputs, outputs]
            for name, (lowered, inputs, outputs) in made.items()
        })


def from_plain(plain: list[Any]) -> tuple[LoweredMethod, tuple[str, ...], tuple[str, ...]]:
    """Return what a child told about a method."""
    lowered, inputs, outputs = plain
    specs = {
        key: tuple(TensorSpec(s["dtype"], tuple(s["shape"])) for s in lowered[key])
        for key in ("inputs", "outputs")
    }
    lists = {key: tuple(lowered[key]) for key in ("leftover", "arenas")}
    return LoweredMethod(**{**lowered, **specs, **lists}), tuple(inputs), tuple(outputs)


def do(source: Path, part: str, recipe: str, shape: Shape, path: Path, work: Path) -> Made:
    """Read a part, ask the network itself for golden vectors, and lower it."""
    checkpoint = load.load_checkpoint(source)
    methods = build(part, checkpoint, shape)
    quantiser = None
    if recipe == "conv8":
        from .conv8 import Quantiser

        quantiser = Quantiser(methods, checkpoint)
        methods = quantiser.methods
    for name, method in methods.items():
        with torch.no_grad():
            wanted = method.module(*method.golden)
        save(work / f"{name}.given.npz", tuple(method.golden))
        save(work / f"{name}.wanted.npz", wanted if isinstance(wanted, tuple) else (wanted,))
    methods = quantiser.quantised() if quantiser else quantised(methods, recipe)
    lowered = lower_methods({n: (m.module, m.examples) for n, m in methods.items()}, path)
    return {name: (lowered[name], tuple(methods[name].inputs), tuple(methods[name].outputs))
            for name in methods}


def check_shape(shape: Shape) -> None:
    """Refuse sizes that no bundle can have."""
    for what, sizes in (("contexts", shape.contexts), ("chunks", shape.chunks)):
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
            raise ValueError(f"{what} are {list(sizes)}: expected whole numbers that rise")
    if shape.chunks[0] != 1:
        raise ValueError(
            f"chunks are {list(shape.chunks)}: expected 1 first, for frames that are left over"
        )
    if not 1 <= shape.prefill <= shape.contexts[0]:
        raise ValueError(f"prefill is {shape.prefill}: expected 1 to {shape.contexts[0]}")


def tolerance(programs: Mapping[str, layout.ProgramEntry]) -> layout.Tolerance:
    """Return how far programs may be from their golden vectors; see `bundle.tolerance`."""
    worst = max((p.difference for p in programs.values() if p.recipe != "fp32"), default=0.0)
    if worst == 0.0:
        return FP32_TOLERANCE
    return layout.Tolerance(INT8_SAME_MACHINE, min(0.5, max(2 * worst, 1e-3)))
