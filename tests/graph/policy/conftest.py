# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The stages of a policy as processes, with a tiny bundle of random weights.

What they are shown is a function of its stamp, so that every chunk can be computed again, by the same
bundle in the test's own process, and compared bit for bit.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from sensor_msgs.msg import Image, JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from omni_ros.images import fill  # noqa: E402
from omni_ros.msg import ActionChunk, PolicyStatus  # noqa: E402
from omni_ros.nodes._stage_node import STATUSES_QOS  # noqa: E402
from omni_ros.nodes._support import (  # noqa: E402
    CHUNK_QOS,
    LATCHED_QOS,
    load_robot_parameter,
    time_message,
    to_ns,
)
from omni_ros.policy.observation import Observation  # noqa: E402

STAGES = ("vision_encoder", "fusion_backbone", "action_head")
TOKENIZER = Path(__file__).parents[2] / "data" / "oracles" / "smolvla_given" / "vlm"
ROBOT = load_robot_parameter("tabletop")
#: Robot camera -> camera of the bundle.
CAMERAS = {"front": "camera1", "wrist": "camera2"}
SENTENCE = "touch the red block"


@pytest.fixture(scope="session")
def bundle(tmp_path_factory) -> Path:
    """A bundle for the table-top arm; what it decides means nothing, and stays near home."""
    for module in ("torch", "executorch.exir", "safetensors", "tokenizers"):
        pytest.importorskip(module)
    from omni_ros.models.export.bundle import export_checkpoint
    from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint

    folder = tmp_path_factory.mktemp("policy")
    config = dataclasses.replace(TINY, action=6, state=6, chunk=16, n_action_steps=16)
    checkpoint = write_checkpoint(folder, config, tokenizer=TOKENIZER, cameras=2)
    statistics = {"observation.state": {"mean": [0.0] * 6, "std": [1.0] * 6},
                  "action": {"mean": ROBOT.home.tolist(), "std": [0.2] * 6}}
    joints = ",".join(f"{name}:rad" for name in ROBOT.joint_names)
    export_checkpoint(checkpoint, folder / "tiny.bundle", joints=joints, statistics=statistics,
                      isolate=False)
    return folder / "tiny.bundle"


@pytest.fixture(scope="session")
def reference(bundle):
    """The policy of the bundle, in this process."""
    from omni_ros.policy.smolvla import SmolVLAPolicy

    with SmolVLAPolicy(bundle) as policy:
        yield policy


@pytest.fixture(scope="module")
def policy_robot(tools, tmp_path_factory) -> Callable[..., str]:
    """Write a robot YAML with settings of `policy` changed."""
    write = tools.robot_writer(tmp_path_factory.mktemp("robots"))

    def robot(player: dict | None = None, **policy: Any) -> str:
        def edit(content: dict) -> None:
            content["policy"].update(cameras={b: r for r, b in CAMERAS.items()}, **policy)
        return write(edit=edit, **(player or {}))

    return robot


def picture(camera: str, stamp_ns: int, size: tuple[int, int] = (48, 64)) -> np.ndarray:
    """What a camera sees at an instant: noise, so that no two pictures are alike."""
    rng = np.random.default_rng([stamp_ns, list(CAMERAS).index(camera)])
    return rng.integers(0, 256, (*size, 3), np.uint8)


def pose(stamp_ns: int) -> np.ndarray:
    """Where the joints are at an instant."""
    return ROBOT.home + 0.05 * np.random.default_rng(stamp_ns).standard_normal(6)


class Senses:
    """Cameras and joint states, from the test."""

    def __init__(self, graph, *, qos: Any = 10) -> None:
        self._images = {name: graph.publisher(Image, ROBOT.cameras[name], qos) for name in CAMERAS}
        self._joints = graph.publisher(JointState, "joint_states", 50)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        #: Seconds that a camera's stamps lie back.
        self.late = dict.fromkeys(CAMERAS, 0.0)
        #: Cameras that send nothing, and that show nothing.
        self.gone, self.covered = set(), set()
        self.moving = True
        self.size = (48, 64)

    def joints(self, stamp_ns: int, positions: np.ndarray | None = None) -> None:
        message = JointState(name=list(ROBOT.joint_names))
        message.position = (pose(stamp_ns) if positions is None else positions).tolist()
        message.header.stamp = time_message(stamp_ns)
        self._joints.publish(message)

    def image(self, camera: str, stamp_ns: int, pixels: np.ndarray) -> None:
        message = Image()
        fill(message, pixels)
        message.header.stamp = time_message(stamp_ns)
        self._images[camera].publish(message)

    def show(self, stamp_ns: int | None = None) -> int:
        """Publish one moment and return its stamp."""
        stamp_ns = time.time_ns() if stamp_ns is None else stamp_ns
        seen_ns = stamp_ns if self.moving else 1
        self.joints(stamp_ns, None if self.moving else pose(seen_ns))
        for camera in CAMERAS:
            if camera not in self.gone:
                pixels = picture(camera, seen_ns, self.size)
                self.image(camera, stamp_ns - round(self.late[camera] * 1e9),
                           pixels * 0 if camera in self.covered else pixels)
        return stamp_ns

    def start(self, rate_hz: float = 20.0) -> None:
        """Go on publishing until `stop`."""
        self._stop.clear()

        def loop() -> None:
            while not self._stop.wait(1.0 / rate_hz):
                self.show()

        self._thread = threading.Thread(target=loop, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def usual(self) -> None:
        """Nothing late, gone or covered."""
        self.late = dict.fromkeys(CAMERAS, 0.0)
        self.gone, self.covered, self.moving, self.size = set(), set(), True, (48, 64)


class Policy:
    """The three stages, and what comes out of them."""

    def __init__(self, graph, tools, composition: str, **parameters: Any) -> None:
        self.graph, self.eventually = graph, tools.eventually
        self.composition, self.parameters = composition, parameters
        self.chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
        self.statuses = graph.record(PolicyStatus, "policy_status", STATUSES_QOS)
        self.processes: dict[str, Any] = {}
        for name in ("policy_stages",) if composition == "single" else STAGES:
            self.start(name)
        self.bring_up()
        self._sentences = graph.publisher(String, "instruction", LATCHED_QOS)

    def start(self, name: str) -> None:
        self.processes[name] = self.graph.start(name, threads=1, cpus=ALL_CPUS, **self.parameters)

    def bring_up(self, stages: tuple[str, ...] = STAGES) -> None:
        for step in ("configure", "activate"):
            for stage in stages:
                assert self.graph.change_state(stage, step), (
                    f"{stage} could not {step}\n{self.graph.logs()}")

    def say(self, sentence: str) -> None:
        self._sentences.publish(String(data=sentence))

    def status(self, stage: str) -> PolicyStatus | None:
        """The newest status of a stage."""
        return next((m for m in reversed(self.statuses.messages) if m.stage == stage), None)

    def until(self, stage: str, condition: Callable[[PolicyStatus], Any], what: str) -> PolicyStatus:
        """Wait until a new status of a stage fits."""
        moment = time.monotonic()

        def found() -> PolicyStatus | None:
            return next((m for _, m in self.statuses.since(moment)
                         if m.stage == stage and condition(m)), None)

        return self.eventually(found, f"{stage}: {what}\n{self.graph.logs()}")

    def drops(self, stage: str, reason: str) -> int:
        """How many observations a stage says it has dropped for a reason."""
        status = self.status(stage)
        return dict(zip(status.dropped_reasons, status.dropped)).get(reason, 0)

    def next_chunks(self, count: int = 1) -> list[ActionChunk]:
        """Wait for chunks that come from now on."""
        known = len(self.chunks)
        self.eventually(lambda: len(self.chunks) >= known + count,
                        f"{count} chunks\n{self.graph.logs()}")
        return self.chunks.messages[known:known + count]

    def answer(self, senses: Senses, stamp_ns: int) -> np.ndarray:
        """Show one moment until its chunk comes; return the rows."""
        known = len(self.chunks)
        senses.show(stamp_ns)

        def chunk() -> ActionChunk | None:
            return next((m for m in self.chunks.messages[known:]
                         if to_ns(m.header.stamp) == stamp_ns), None)

        return rows(self.eventually(chunk, f"the chunk of {stamp_ns}\n{self.graph.logs()}"))

    def said(self, name: str) -> str:
        """What a node's process has logged."""
        return self.processes[name if self.composition == "separate" else "policy_stages"].output


#: The placement is not what is tested here, and a busy cpu of its choice would only take time.
ALL_CPUS = ",".join(map(str, sorted(os.sched_getaffinity(0))))


def rows(chunk: ActionChunk) -> np.ndarray:
    return np.array(chunk.values).reshape(chunk.rows, -1)


@pytest.fixture(scope="session")
def expected(reference) -> Callable[..., np.ndarray]:
    """Rows that belong to what was shown at a stamp."""

    def compute(stamp_ns: int, sentence: str = SENTENCE, size=(48, 64)) -> np.ndarray:
        images = {b: picture(r, stamp_ns, size) for r, b in CAMERAS.items()}
        observation = Observation(images, pose(stamp_ns), stamp_ns)
        return reference.infer(observation, sentence, seed=0).actions.astype(np.float64)

    return compute


@pytest.fixture(scope="session")
def policy_tools():
    """Free functions and classes for tests, without an import path of their own."""
    from types import SimpleNamespace

    return SimpleNamespace(Policy=Policy, Senses=Senses, picture=picture, pose=pose, rows=rows,
                           stages=STAGES, sentence=SENTENCE, cameras=CAMERAS,
                           all_cpus=ALL_CPUS)
