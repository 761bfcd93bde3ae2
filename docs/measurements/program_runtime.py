# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compare two ways to run one program: ExecuTorch's Python binding and omni_ros.programs.

    python docs/measurements/program_runtime.py make FOLDER         # exports the network, once
    python docs/measurements/program_runtime.py compare FOLDER [ROUNDS] [THREADS]

Each way runs in processes of its own, by turns. Needs torch and executorch.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

WIDTH, HIDDEN, LAYERS, ROWS = 1024, 4096, 4, 50
RUNS, TINY_RUNS = 200, 5000
TINY = Path(__file__).resolve().parents[2] / "tests/data/programs/mlp.pte"


def make(folder: Path) -> None:
    """Export LAYERS feed-forward blocks of an action head's size: 134 MB in float32."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.passes import MemoryPlanningPass
    from torch import nn

    blocks = []
    for _ in range(LAYERS):
        blocks += [nn.Linear(WIDTH, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, WIDTH)]
    module = nn.Sequential(*blocks).requires_grad_(False).eval()
    exported = torch.export.export(module, (torch.randn(ROWS, WIDTH),), strict=True)
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    plan = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan))
    (folder / "feed_forward.pte").write_bytes(program.buffer)


def resident() -> dict[str, float]:
    """Return the process's memory in MB: all, and what only it has."""
    fields = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    names = {"rss": "VmRSS", "private": "RssAnon", "peak": "VmHWM"}
    return {key: int(fields[name].split()[0]) / 1024 for key, name in names.items()}


def shim(path: Path, threads: int):
    from omni_ros.programs import Program, set_threads, zeros

    set_threads(threads)
    imported = resident()
    program = Program(path)
    spec = program.inputs[0]
    program.bind(0, zeros(spec.shape, spec.dtype))
    return imported, program.run


def binding(path: Path, threads: int):
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    if portable_lib._threadpool_get_thread_count() != threads:
        portable_lib._unsafe_reset_threadpool(threads)
    imported = resident()
    # Its fastest way: inputs bound once, no clone of the outputs.
    method = Runtime.get().load_program(path).load_method("forward")
    meta = method.metadata.input_tensor_meta(0)
    keep = torch.zeros(*meta.sizes())
    method._method.set_inputs([keep])
    execute = method._method.execute
    return imported, lambda: (execute(), keep)


def spread(values: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    array = np.asarray(values) * 1e3
    p50, p99 = np.percentile(array, [50, 99])
    return {"p50": float(p50), "p99": float(p99), "max": float(array.max())}


def ticking(run) -> tuple[list[float], list[float]]:
    """Run while another thread sleeps 0.5 ms at a time; return run times and that thread's gaps."""
    gaps, stop = [], threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not stop.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    times = timed(run, RUNS)
    stop.set()
    thread.join()
    return times, gaps


def timed(run, count: int) -> list[float]:
    """Return the seconds of each of `count` runs."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def measure(way: str, folder: Path, threads: int) -> None:
    """Measure one way in this process and print JSON."""
    start = time.perf_counter()
    before = resident()
    imported, run = globals()[way](folder / "feed_forward.pte", threads)
    ready = time.perf_counter() - start
    loaded = resident()
    timed(run, 20)
    gc.disable()
    alone = timed(run, RUNS)
    _, gaps = ticking(run)
    warm = resident()
    _, tiny = globals()[way](TINY, threads)
    timed(tiny, 100)
    print(
        json.dumps(
            {
                "import and load s": ready,
                "memory MB": {
                    "before": before,
                    "imported": imported,
                    "loaded": loaded,
                    "warm": warm,
                },
                "run ms": spread(alone),
                "other thread's gap ms": spread(gaps),
                "tiny run us": {k: v * 1e3 for k, v in spread(timed(tiny, TINY_RUNS)).items()},
            }
        )
    )


def compare(folder: Path, rounds: int, threads: int) -> None:
    """Print the median over rounds of each figure of each way."""
    results: dict[str, list[dict]] = {"binding": [], "shim": []}
    for _ in range(rounds):
        for way in results:
            command = [sys.executable, "-P", __file__, "measure", way, str(folder), str(threads)]
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            results[way].append(json.loads(out.splitlines()[-1]))
    for way, measured in results.items():
        print(way)
        print_medians(measured, "  ")


def print_medians(values: list, indent: str) -> None:
    """Print the median of each leaf of equal trees."""
    for key in values[0]:
        leaves = [value[key] for value in values]
        if isinstance(leaves[0], dict):
            print(f"{indent}{key}")
            print_medians(leaves, indent + "  ")
        else:
            low, high = min(leaves), max(leaves)
            print(f"{indent}{key}: {float(np.median(leaves)):.3f}   ({low:.3f} to {high:.3f})")


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "make":
        make(Path(rest[0]))
    elif command == "measure":
        measure(rest[0], Path(rest[1]), int(rest[2]))
    else:
        rounds = int(rest[1]) if len(rest) > 1 else 5
        compare(Path(rest[0]), rounds, int(rest[2]) if len(rest) > 2 else 1)


if __name__ == "__main__":
    main()
