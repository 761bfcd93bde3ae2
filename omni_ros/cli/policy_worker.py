# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One side of `omni bench policy`, in a process of its own.

    python -m omni_ros.cli.policy_worker '{"side": "bundle", "bundle": ..., "threads": 2, ...}'

It prints a line of JSON when it is ready, then one for each line it reads: the seconds of one chunk
and of its stages. So the two sides can take turns, and neither's threads or memory are the other's.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

TASK = "pick up the red cube and place it in the bin"
#: Pictures as a camera sends them: (height, width).
PICTURE = (480, 640)


def resident() -> int:
    """Return this process's resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def pictures(names: list[str]) -> dict[str, np.ndarray]:
    """Return a picture a camera, always the same ones."""
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 256, (*PICTURE, 3), np.uint8) for name in names}


def bundle_side(options: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """Open the bundle; return facts and what runs one chunk."""
    from omni_ros.bundles import open_bundle
    from omni_ros.policy.observation import Observation
    from omni_ros.policy.flow_policy import FlowPolicy
    from omni_ros.programs import set_threads

    set_threads(options["threads"])
    # The files are verified; the trial in a child would only take time here.
    policy = FlowPolicy(open_bundle(options["bundle"], trial=False))
    present = list(policy.cameras[: options["cameras"]])
    images = {**dict.fromkeys(policy.cameras), **pictures(present)}
    state = np.zeros(policy.manifest.dimensions.state, np.float32)
    count = iter(range(1 << 62))

    def run() -> dict[str, Any]:
        started = time.perf_counter()
        chunk = policy.infer(Observation(images, state, next(count)), TASK, seed=0)
        seconds = time.perf_counter() - started
        timings = chunk.timings
        return {
            "seconds": seconds, "resident": resident(),
            "stages": {
                "preprocess": timings.preprocess,
                "vision_encoder": sum(timings.vision_encoder),
                "fusion_backbone": timings.fusion_backbone,
                "action_head": timings.action_head, "postprocess": timings.postprocess,
            },
        }

    sizes = policy.manifest.dimensions
    return {"cameras": len(policy.cameras), "steps": sizes.steps, "prefix": sizes.prefix}, run


def eager_side(options: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """Build the network in PyTorch; return facts and what runs one chunk."""
    import torch

    from omni_ros.models.common.sampling import sample_actions
    from omni_ros.models.export.families import family_class
    from omni_ros.policy.images import PI0, SMOLVLA, ImageTransform
    from omni_ros.policy.prefix import PRESENT

    torch.set_num_threads(options["threads"])
    idiomatic()
    family = family_class(options["family"])
    checkpoint = family.load_checkpoint(options["checkpoint"], backbone=options["backbone"])
    config, cameras = checkpoint.config, options["cameras"]
    # No slot more than there are pictures: the baseline computes nothing that is masked.
    model = family.build(checkpoint, cameras)
    images = list(pictures([str(index) for index in range(cameras)]).values())
    transform = ImageTransform(out_height=config.image_height, out_width=config.image_width,
                               rule=SMOLVLA if options["family"] == "smolvla" else PI0)
    tokens = np.arange(config.language) % config.text.vocabulary
    mask = np.arange(config.language) < 12
    noise = torch.randn(config.chunk, config.max_action, generator=torch.Generator().manual_seed(0))
    seconds: dict[str, float] = {}
    for name in ("vision_encoder", "action_head"):
        clock(getattr(model, name), name, seconds)

    def run() -> dict[str, Any]:
        seconds.clear()
        started = time.perf_counter()
        pixels = [torch.from_numpy(transform(image).copy()) for image in images]
        preprocess = time.perf_counter() - started
        sample_actions(
            model, pixels, [PRESENT] * cameras, tokens, mask, torch.zeros(config.max_state), noise
        )
        total = time.perf_counter() - started
        stages = {"preprocess": preprocess, **seconds}
        stages["fusion_backbone"] = total - sum(stages.values())
        return {"seconds": total, "resident": resident(), "stages": stages}

    return {"torch": torch.__version__}, run


def idiomatic() -> None:
    """Let our network use PyTorch's own fused operators, as a PyTorch user would write it.

    It is written for XNNPACK, with products in the place of norms and a spelled-out softmax; in
    PyTorch itself these would be a handicap.
    """
    import torch
    import torch.nn.functional as F

    from omni_ros.models.common import layers, transformer, vision

    def attend(queries: Any, keys_transposed: Any, values: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(
            queries[None], keys_transposed.transpose(1, 2)[None], values[None],
            attn_mask=None if mask is None else mask[None],
            enable_gqa=queries.shape[0] != values.shape[0],
        )[0]

    for module in (transformer, vision):
        module.attend = attend
    vision.gelu_tanh = lambda x: F.gelu(x, approximate="tanh")
    layers.LayerNorm.forward = lambda self, x: F.layer_norm(
        x, (x.shape[-1],), self.weight, self.bias, self.eps
    )
    layers.RMSNorm.forward = lambda self, x: F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
    layers.GatedMLP.forward = lambda self, x: self.down(self.up(x) * (
        F.gelu(self.gate(x), approximate="tanh") if self.gelu else F.silu(self.gate(x))))
    torch.set_grad_enabled(False)


def clock(
    module: Any, name: str, seconds: dict[str, float], *, method: str = "forward"
) -> None:
    """Add up the seconds that calls of a module's method take."""
    forward = getattr(module, method)

    def timed(*inputs: Any, **named: Any) -> Any:
        started = time.perf_counter()
        outputs = forward(*inputs, **named)
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started
        return outputs

    setattr(module, method, timed)


def machine_side(options: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """Measure what this machine can do at most with so many threads; there is nothing to run."""
    threads = options["threads"]
    side, repeats = 2048, 12
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((side, side)).astype(np.float32) for _ in range(2))
    products = {"numpy": lambda: left @ right}
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(threads)
        a, b = torch.from_numpy(left), torch.from_numpy(right)
        products["torch.mm"] = lambda: torch.mm(a, b)
        products["torch linear"] = lambda: torch.nn.functional.linear(a, b)
        with contextlib.suppress(AttributeError, RuntimeError):
            # On some processors far faster than what torch.mm uses.
            onednn = torch.ops.mkldnn._linear_pointwise
            onednn(a, b, None, "none", [], "")
            products["oneDNN"] = lambda: onednn(a, b, None, "none", [], "")
    gflops = {name: 2e-9 * side**3 / best(product, repeats) for name, product in products.items()}
    source = np.ones(1 << 26, np.float32)
    target = np.empty_like(source)
    target[:] = 0
    seconds = best(lambda: copy(source, target, threads), repeats)
    name = max(gflops, key=gflops.__getitem__)
    return {
        "gflops": gflops, "peak_gflops": gflops[name], "peak_of": name,
        "bandwidth": 2.0 * source.nbytes / seconds,
    }, dict


def copy(source: np.ndarray, target: np.ndarray, threads: int) -> None:
    """Copy with several threads: numpy lets others run meanwhile."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        parts = zip(np.array_split(target, threads), np.array_split(source, threads), strict=True)
        list(pool.map(lambda pair: np.copyto(*pair), parts))


def best(work: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time of some runs, in seconds."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


@contextlib.contextmanager
def silent_output() -> Iterator[Any]:
    """Keep standard output for the lines of JSON: whatever else prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    yield lines


def main() -> None:
    """Be the child."""
    options = json.loads(sys.argv[1])
    from omni_ros.cli.lerobot_side import lerobot_side

    sides = {"bundle": bundle_side, "eager": eager_side, "lerobot": lerobot_side,
             "machine": machine_side}
    with silent_output() as lines:
        try:
            facts, run = sides[options["side"]](options)
            print(json.dumps({"ready": facts, "resident": resident()}), file=lines, flush=True)
            for _ in sys.stdin:
                print(json.dumps(run()), file=lines, flush=True)
        except (ValueError, ImportError) as error:
            print(json.dumps({"error": " ".join(str(error).split())}), file=lines, flush=True)


if __name__ == "__main__":
    main()
