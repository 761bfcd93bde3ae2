# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench policy`: how long a chunk takes, next to the same network in PyTorch or LeRobot.

The two sides are processes of their own and take turns chunk by chunk, so that what else the
machine does meets both. Each round gives one ratio; its spread over the rounds is printed, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError, bench_results, lerobot_side
from omni_ros.cli.baseline import percentile
from omni_ros.cli.children import child_environment
from omni_ros.cli.launched import say
from omni_ros.cli.policy_report import render
from omni_ros.cli.report import terminal_width, write
from omni_ros.telemetry.provenance import provenance

EAGER = (
    "the same network and weights in eager PyTorch, float32, with its fused layer_norm, rms_norm, "
    "gelu and scaled_dot_product_attention"
)
LEROBOT = (
    "LeRobot {lerobot} itself, with transformers {transformers} and torch {torch}, its own "
    "processors included"
)
BASELINES = ("eager", "lerobot", "none")
PROGRAMS = ("vision_encoder", "fusion_backbone", "action_head")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench policy`."""
    add = parser.add_argument
    add("bundle", type=Path, metavar="BUNDLE")
    add("--chunks", type=int, default=20, metavar="N", help="chunks of each side (default 20)")
    add("--warm-up", type=int, default=2, metavar="N", help="chunks before them (default 2)")
    add("--threads", type=int, default=2, metavar="N", help="of each side (default 2)")
    add("--cameras", type=int, metavar="N",
        help="pictures a chunk; the bundle's other cameras are masked (default: all)")  # fmt: skip
    add("--checkpoint", type=Path, metavar="DIR",
        help="what the bundle was made of: adds the baseline and each stage's work")  # fmt: skip
    add("--baseline", choices=BASELINES, default="eager",
        help="what to compare with: the network in PyTorch, LeRobot where it is installed, or nothing "
        "(default eager)")  # fmt: skip
    add("--backbone", type=Path, metavar="DIR", help="the checkpoint's backbone, where needed")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench, print tables and write the JSON file."""
    from omni_ros.bundles import read_manifest

    manifest = read_manifest(arguments.bundle)
    cameras = len(manifest.cameras) if arguments.cameras is None else arguments.cameras
    _check(arguments, cameras, len(manifest.cameras), manifest.family)
    document = measure(arguments, manifest, cameras)
    write(render(document, terminal_width()))
    try:
        bench_results.keep(arguments.bundle, document)
        say("kept for omni inspect")
    except OSError as error:
        say(f"not kept for omni inspect: {error}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0


def _check(arguments: argparse.Namespace, cameras: int, most: int, family: str) -> None:
    for name, value, high in (("--chunks", arguments.chunks, 1_000_000),
                              ("--warm-up", arguments.warm_up, 1000),
                              ("--threads", arguments.threads, 1024),
                              ("--cameras", cameras, most)):
        if not 1 <= value <= high:
            raise UsageError(f"{name} {value}: expected 1 to {high}")
    if arguments.baseline == "lerobot":
        if family != "smolvla":
            raise UsageError(f"--baseline lerobot is for a SmolVLA, and this is a {family}: use eager")
        if arguments.checkpoint is None:
            raise UsageError("--baseline lerobot needs --checkpoint DIR, which LeRobot loads")
        lerobot_side.check()
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json {arguments.json}: its folder is not there; make it first")


def measure(arguments: argparse.Namespace, manifest: Any, cameras: int) -> dict[str, Any]:
    """Run both sides in turn; return the document."""
    facts = provenance()
    options = {"threads": arguments.threads, "cameras": cameras}
    limits = machine_limits(options)
    bundle_options = {**options, "side": "bundle", "bundle": absolute(arguments.bundle)}
    sides: dict[str, Side] = {}
    rounds: dict[str, list[dict[str, Any]]] = {}
    try:
        sides["bundle"] = Side(bundle_options)
        if arguments.checkpoint is not None and arguments.baseline != "none":
            sides[arguments.baseline] = Side(baseline_options(arguments, manifest, options))
        for name, side in sides.items():
            say(f"{name}: ready, {side.resident / 1e6:.0f} MB resident; warming up ...")
            for _ in range(arguments.warm_up):
                side.chunk()
        for index in range(arguments.chunks):
            # Who comes first alternates: one may leave the caches or the clock to the other.
            order = list(sides)[:: 1 if index % 2 == 0 else -1]
            for name in order:
                rounds.setdefault(name, []).append(sides[name].chunk())
    finally:
        for side in sides.values():
            side.close()
    results = {name: summary(chunks, sides[name]) for name, chunks in rounds.items()}
    limits = higher(limits, machine_limits(options))
    baseline = next((name for name in rounds if name != "bundle"), None)
    ratio = text = None
    if baseline is not None:
        text = EAGER if baseline == "eager" else LEROBOT.format(**sides[baseline].facts)
        ratios = [e["seconds"] / b["seconds"]
                  for e, b in zip(rounds[baseline], rounds["bundle"], strict=True)]
        ratio = {name: percentile(ratios, share)
                 for name, share in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9))}
    return {
        "bench": "policy",
        "bundle": manifest.name,
        "recipes": {name: entry.recipe for name, entry in manifest.programs.items()},
        "cameras": cameras,
        "cameras_of_bundle": len(manifest.cameras),
        "threads": arguments.threads,
        "chunks": arguments.chunks,
        "baseline": text,
        "sides": results,
        "ratio": ratio,
        "machine": limits,
        "stages": stages(results, manifest, cameras, limits, work_of(arguments, manifest)),
        "memory_planned": manifest.memory.total,
        "provenance": facts,
    }


def baseline_options(
    arguments: argparse.Namespace, manifest: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return what the other side is told."""
    made = {
        **options, "side": arguments.baseline, "checkpoint": absolute(arguments.checkpoint),
        "backbone": absolute(arguments.backbone), "family": manifest.family,
    }
    if arguments.baseline == "lerobot":
        from omni_ros.models.smolvla.load import load_checkpoint

        # LeRobot takes a relative name as one of a hub; we know where the backbone lies.
        checkpoint = load_checkpoint(arguments.checkpoint, backbone=arguments.backbone, stages=())
        sent = {key: source for source, key in manifest.rename_map.items()}
        made |= {
            "backbone_found": absolute(checkpoint.backbone), "state": checkpoint.config.state,
            "camera_keys": [
                sent.get(camera.key, camera.key)
                for camera in manifest.cameras[: options["cameras"]]
            ],
        }
    return made


class Side:
    """A worker process; see omni_ros.cli.policy_worker."""

    module = "omni_ros.cli.policy_worker"

    def __init__(self, options: dict[str, Any]) -> None:
        self.name = options["side"]
        threads = str(options["threads"])
        environment = {
            **child_environment(), "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            # Waiting threads that spin would take the other side's time.
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.module, json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd="/",
        )  # fmt: skip
        try:
            ready = self._read()
        except BaseException:
            self.close()
            raise
        self.facts, self.resident = ready["ready"], ready["resident"]

    def chunk(self) -> dict[str, Any]:
        """Have one chunk computed; return its seconds."""
        self._process.stdin.write("chunk\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"the {self.name} side ended with status {self._process.wait()}, see above"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise UsageError(f"{self.name} side: {answer['error']}")
        return answer


def machine_limits(options: dict[str, Any]) -> dict[str, Any]:
    """Measure what the machine can do at most; see `policy_worker.machine_side`."""
    with Side({**options, "side": "machine"}) as machine:
        return machine.facts


def higher(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the higher of each limit: other processes only ever lower them."""
    gflops = {name: max(value, second["gflops"][name]) for name, value in first["gflops"].items()}
    name = max(gflops, key=gflops.__getitem__)
    return {
        "gflops": gflops, "peak_gflops": gflops[name], "peak_of": name,
        "bandwidth": max(first["bandwidth"], second["bandwidth"]),
    }


def absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def summary(chunks: list[dict[str, Any]], side: Side) -> dict[str, Any]:
    """Return percentiles of a side's chunks and the medians of its stages, in seconds."""
    seconds = [chunk["seconds"] for chunk in chunks]
    names = chunks[0]["stages"]
    return {
        "p50": percentile(seconds, 0.5), "p99": percentile(seconds, 0.99), "max": max(seconds),
        "seconds": seconds,
        "stages": {name: percentile([chunk["stages"][name] for chunk in chunks], 0.5)
                   for name in names},
        "resident": max(chunk["resident"] for chunk in chunks),
        "facts": side.facts,
    }


def work_of(arguments: argparse.Namespace, manifest: Any) -> dict[str, float]:
    """Return the operations of one run of each program; nothing without a checkpoint."""
    if arguments.checkpoint is None:
        return {}
    from omni_ros.cli.policy_work import pi0_work, smolvla_work
    from omni_ros.models.export.families import family_class

    checkpoint = family_class(manifest.family).load_checkpoint(
        arguments.checkpoint, backbone=arguments.backbone, stages=())
    work = smolvla_work if manifest.family == "smolvla" else pi0_work
    return work(checkpoint.config, manifest.prefix.slots)


def stages(
    results: dict[str, Any], manifest: Any, cameras: int, limits: dict[str, Any],
    work: dict[str, float],
) -> list[dict[str, Any]]:
    """Return a row a program: its time a chunk, and its share of what the machine can do."""
    runs = {"vision_encoder": cameras, "fusion_backbone": 1, "action_head": manifest.flow.steps}
    rows = []
    for name in PROGRAMS:
        seconds = results["bundle"]["stages"][name]
        row: dict[str, Any] = {"program": name, "runs": runs[name], "seconds": seconds}
        weights = manifest.programs[name].constants_bytes * runs[name]
        row["bytes_per_second"] = weights / seconds
        row["share_of_bandwidth"] = weights / seconds / limits["bandwidth"]
        if name in work:
            row["gflops"] = 1e-9 * work[name] * runs[name] / seconds
            row["share_of_peak"] = row["gflops"] / limits["peak_gflops"]
        # LeRobot's stages are known only as far as its parts are called as expected.
        beside = [side["stages"][name] for key, side in results.items()
                  if key != "bundle" and name in side["stages"]]
        if beside:
            row["baseline_seconds"] = beside[0]
            row["ratio"] = beside[0] / seconds
        rows.append(row)
    return rows
