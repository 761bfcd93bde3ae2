# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bags of a policy at work, written without ROS: what a tiny bundle decides from pictures of noise."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

TOKENIZER = Path(__file__).resolve().parents[1] / "data" / "oracles" / "smolvla_given" / "vlm"
#: The bundle's camera -> the robot's.
CAMERAS = {"camera1": "front", "camera2": "wrist"}
SENTENCE = "touch the red block"
#: Nanoseconds: the first picture, from one picture to the next, from one chunk to the next.
BEGIN, FRAME, BEAT = 1_700_000_000_000_000_000, 33_000_000, 528_000_000
PIPELINE = 7


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for the table-top arm; what it decides means nothing."""
    for module in ("torch", "executorch.exir", "safetensors", "tokenizers", "rosbags"):
        pytest.importorskip(module)
    import torch

    from omni_ros.models.export.bundle import export_checkpoint
    from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint
    from omni_ros.robot import load_robot
    from omni_ros.robot.files import robot_file

    folder, robot = tmp_path_factory.mktemp("policy"), load_robot(robot_file("tabletop"))
    config = dataclasses.replace(TINY, action=6, state=6, chunk=16, n_action_steps=16, steps=4)
    checkpoint = write_checkpoint(folder, config, tokenizer=TOKENIZER, cameras=2)
    statistics = {"observation.state": {"mean": [0.1] * 6, "std": [1.5] * 6},
                  "action": {"mean": robot.home.tolist(), "std": [0.2] * 6}}
    joints = ",".join(f"{name}:rad" for name in robot.joint_names)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        export_checkpoint(checkpoint, folder / "tiny.bundle", joints=joints,
                          statistics=statistics, isolate=False)
    finally:
        torch.set_num_threads(threads)
    return folder / "tiny.bundle"


@pytest.fixture(scope="module", autouse=True)  # whoever's tests come next want their trials back
def no_trial() -> Iterator[None]:
    """Bundles made here harm nobody: their programs are not first tried in a process of its own."""
    from omni_ros.bundles import opening

    before, opening.try_programs = opening.try_programs, lambda *_, **__: None
    yield
    opening.try_programs = before


@pytest.fixture(scope="session")
def changed_bundle(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a copy of the bundle whose manifest, and files, were edited and signed anew."""

    def changed(edit: Callable[[Any], Any], files: dict[str, bytes] | None = None) -> Path:
        from omni_ros.bundles.manifest import read_manifest, write_manifest
        from omni_ros.bundles.verify import file_entry

        folder = tmp_path_factory.mktemp("changed") / "tiny.bundle"
        shutil.copytree(bundle, folder)
        manifest = edit(read_manifest(folder))
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
            entry = {name: file_entry(folder / name)}
            manifest = dataclasses.replace(manifest, files={**manifest.files, **entry})
        write_manifest(folder, manifest)
        return folder

    return changed


@pytest.fixture(scope="session")
def robot_file(robot_text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("robot") / "tabletop.yaml"
    path.write_text(robot_text, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def robot_text() -> str:
    import yaml

    from omni_ros.robot.files import robot_file

    content = yaml.safe_load(robot_file("tabletop").read_text(encoding="utf-8"))
    content["policy"]["cameras"] = dict(CAMERAS)
    return yaml.safe_dump(content, sort_keys=False)


@pytest.fixture(scope="session")
def runner(bundle: Path, robot_text: str) -> Iterator[Any]:
    """The bundle on its robot, in this process: what is recorded comes from it."""
    from omni_ros.replay.running import Runner
    from omni_ros.robot.load import robot_from_text

    runner = Runner(bundle, robot_from_text(robot_text, "tabletop"))
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def store() -> Any:
    """Message types as the writers of bags need them."""
    pytest.importorskip("rosbags")
    from omni_ros.replay.types import _known

    return _known("jazzy")


@dataclasses.dataclass
class Message:
    """One message of a bag. `at`: when it was recorded."""

    topic: str
    kind: str
    at: int
    value: Any


def blank(store: Any, kind: str, **fields: Any) -> Any:
    """Return a message whose fields are empty but for those given; dicts become messages."""
    import numpy as np
    from rosbags.interfaces import Nodetype

    values = {}
    for name, (node, detail) in store.fielddefs[kind][1]:
        given = fields.pop(name, None)
        if node == Nodetype.NAME:
            values[name] = given if given is not None and not isinstance(given, dict) else blank(
                store, detail, **(given or {}))
        elif node == Nodetype.BASE:
            values[name] = given if given is not None else "" if detail[0] == "string" else (
                False if detail[0] == "bool" else 0)
        else:
            inner, length = detail
            if inner[0] == Nodetype.NAME:
                values[name] = [one if not isinstance(one, dict) else blank(store, inner[1], **one)
                                for one in given or []]
            elif inner[1][0] == "string":
                values[name] = list(given or [])
            else:
                kinds = {"bool": "bool", "octet": "uint8", "byte": "uint8", "char": "uint8"}
                dtype = kinds.get(inner[1][0], inner[1][0])
                values[name] = np.zeros(length or 0, dtype) if given is None else np.asarray(
                    given, dtype)
    assert not fields, f"{kind} has no {', '.join(fields)}"
    return store.types[kind](**values)


def stamp(at: int) -> dict[str, int]:
    return {"sec": at // 1_000_000_000, "nanosec": at % 1_000_000_000}


def picture(camera: str, at: int) -> np.ndarray:
    """What a camera sees at an instant: noise, so that no two pictures are alike."""
    rng = np.random.default_rng([at, list(CAMERAS).index(camera)])
    return rng.integers(0, 256, (48, 64, 3), np.uint8)


def pose(at: int) -> np.ndarray:
    rng = np.random.default_rng(at)
    return np.array([0.1, -0.6, 0.7, 0.3, 0.0, 0.4]) + 0.05 * rng.standard_normal(6)


@pytest.fixture(scope="session")
def session(runner: Any, store: Any, robot_text: str, bundle: Path) -> Callable[..., list[Message]]:
    """Make the messages of a policy that worked for a while."""

    def made(chunks: int = 6, *, records: bool = True, all_pictures: bool = False,
             guided: bool = False, source: str = "local", versions: dict[str, str] | None = None
             ) -> list[Message]:
        return list(_session(runner, store, robot_text, bundle, SimpleNamespace(**locals())))

    return made


def _session(runner: Any, store: Any, robot_text: str, bundle: Path, wanted: Any
             ) -> Iterator[Message]:
    from omni_ros.images import fill
    from omni_ros.replay.configuration import configuration_hash, configuration_yaml, versions
    from omni_ros.replay.contents import Chunk
    from omni_ros.replay.fingerprints import fill_fingerprint
    from omni_ros.replay.plans import Plan

    names = list(runner.robot.joint_names)
    topics = {f"camera/{name}": f"/{topic}" for name, topic in runner.robot.cameras.items()}
    topics |= {"action_chunk": "/action_chunk", "joint_states": "/joint_states",
               "instruction": "/instruction", "policy_record": "/policy_record"}

    def message(topic: str, kind: str, at: int, **fields: Any) -> Message:
        return Message(topic, kind, at, blank(store, kind, **fields))

    configuration = configuration_yaml(robot_text, {"vision_encoder": {"source": "local"}})
    if wanted.records:
        known = {**versions(), **(wanted.versions or {})}
        yield message(
            "/recording_info", "omni_ros/msg/RecordingInfo", BEGIN - 5_000_000,
            header={"stamp": stamp(BEGIN)}, format=1, bundle=runner.sha256, bundle_name="tiny",
            manifest=(bundle / "bundle.yaml").read_text(encoding="utf-8"),
            configuration=configuration_hash(configuration), configuration_yaml=configuration,
            roles=list(topics), topics=list(topics.values()), bundle_cameras=list(CAMERAS),
            robot_cameras=list(CAMERAS.values()), version_names=list(known),
            version_values=list(known.values()), all_pictures=wanted.all_pictures)
    yield message("/instruction", "std_msgs/msg/String", BEGIN - 4_000_000, data=SENTENCE)
    end = BEGIN + (wanted.chunks - 1) * BEAT
    for at in range(BEGIN - 10 * FRAME, end + 2 * FRAME, FRAME // 3):
        yield message("/joint_states", "sensor_msgs/msg/JointState", at + 500_000,
                      header={"stamp": stamp(at)}, name=names, position=pose(at))
    beats = [BEGIN + number * BEAT for number in range(wanted.chunks)]
    # The wrist's camera takes its pictures a little later than the front's.
    late = {"camera1": 0, "camera2": 4_000_000}
    frames = range(BEGIN, end + FRAME, FRAME) if wanted.all_pictures else beats
    for at in frames:
        for camera, robot_camera in CAMERAS.items():
            image = blank(store, "sensor_msgs/msg/Image",
                          header={"stamp": stamp(at + late[camera])})
            fill(image, picture(camera, at))
            image.data = np.frombuffer(image.data, np.uint8)
            yield Message(topics[f"camera/{robot_camera}"], "sensor_msgs/msg/Image",
                          at + 8_000_000, image)
    leftover = None
    for number, at in enumerate(beats, 1):
        chunk = Chunk(number, wanted.source, at, 10 * number, 3, 66_666_667, (), (), np.zeros(
            (0, 0)), {}, at, None)
        plan = Plan(chunk, SENTENCE, positions=dict(zip(names, pose(at))), leftover=leftover,
                    delay=2 if wanted.guided else 0)
        done = runner.run(plan, {camera: picture(camera, at) for camera in CAMERAS}, look=True)
        took = 20_000_000
        yield message(
            "/action_chunk", "omni_ros/msg/ActionChunk", at + took, header={"stamp": stamp(at)},
            control_mode=1, joint_names=list(done.names), joint_units=["rad"] * 6,
            dt={"nanosec": 66_666_667}, rows=len(done.actions), chunk_id=number,
            values=done.actions.astype(np.float64).ravel(), observation_seq=10 * number,
            source=wanted.source, noise_seed=3, life={"sec": 1},
            timings=[{"stage": "arrival", "duration": {"nanosec": 8_000_000}},
                     {"stage": "intake", "duration": {"nanosec": 1_000_000}},
                     {"stage": "vision_encoder", "duration": {"nanosec": 4_000_000}},
                     {"stage": "action_head", "duration": {"nanosec": 9_000_000}}])
        if not wanted.records:
            continue
        common = {"header": {"stamp": stamp(at)}, "observation_seq": 10 * number,
                  "pipeline": PIPELINE, "bundle": runner.sha256, "instruction": SENTENCE}

        def prints(*starts: str) -> list[Any]:
            return [fill_fingerprint(blank(store, "omni_ros/msg/Fingerprint"), one)
                    for name, one in done.prints.items() if name.startswith(starts)]

        yield message(
            "/policy_record", "omni_ros/msg/StageRecord", at + 11_000_000, stage="vision_encoder",
            cameras=list(CAMERAS), picture_stamps=[stamp(at + late[one]) for one in CAMERAS],
            joint_names=names, positions=pose(at), state=done.state,
            fingerprints=prints("picture/", "pixels/", "image_tokens/"), **common)
        mask = done.prompt >= 0
        yield message(
            "/policy_record", "omni_ros/msg/StageRecord", at + 12_000_000, stage="fusion_backbone",
            prompt=np.where(mask, done.prompt, 0), prompt_mask=mask.astype(np.uint8),
            fingerprints=prints("state", "prefix", "valid"), **common)
        yield message(
            "/policy_record", "omni_ros/msg/StageRecord", at + took + 1, stage="action_head",
            source=wanted.source, chunk_id=number, chunk_stamp=stamp(at), noise_seed=3,
            steps=done.steps,
            guided=wanted.guided, delay_rows=plan.delay,
            leftover=np.zeros(0) if leftover is None else leftover.ravel(),
            normalised=done.normalised.ravel(), fingerprints=prints("x/"), **common)
        if wanted.guided:
            leftover = done.normalised[8:]


def write(store: Any, messages: list[Message], path: Path, *, storage: str = "mcap",
          compression: str = "", in_order: bool = True) -> Path:
    """Write messages as a bag, in the order of their times unless told otherwise."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    bag = Writer(path, version=9, storage_plugin=plugin)
    if compression:
        bag.set_compression(getattr(CompressionMode, compression.upper()), CompressionFormat.ZSTD)
    with bag as writer:
        connections: dict[str, Any] = {}
        for one in sorted(messages, key=lambda one: one.at) if in_order else messages:
            if one.topic not in connections:
                connections[one.topic] = writer.add_connection(one.topic, one.kind, typestore=store)
            data = store.serialize_cdr(one.value, one.kind)
            writer.write(connections[one.topic], one.at, bytes(data))
    return path


@pytest.fixture
def write_bag(store: Any, tmp_path: Path) -> Callable[..., Path]:
    """Write messages as a bag in a folder of the test's own."""

    def written(messages: list[Message], name: str = "bag", **options: Any) -> Path:
        return write(store, messages, tmp_path / name, **options)

    return written


@pytest.fixture(scope="session")
def recording(session: Any, store: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag of three chunks with the records of all stages; not to be changed."""
    return write(store, session(3), tmp_path_factory.mktemp("bags") / "three")


@pytest.fixture(scope="session")
def bare_recording(session: Any, store: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same three chunks with all pictures and without any record, as another recorder has them."""
    messages = session(3, records=False, all_pictures=True)
    return write(store, messages, tmp_path_factory.mktemp("bags") / "bare")
