# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""More than two hundred damaged bundles: each gives one clear error, and the process lives."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from omni_ros.bundles import BundleError, open_bundle

pytestmark = pytest.mark.usefixtures("executorch")

PROGRAMS = ("vision_encoder.pte", "fusion_backbone.pte", "action_head.pte")
GOLDEN = tuple(f"golden/{Path(name).stem}.npz" for name in PROGRAMS)
FILES = (*PROGRAMS, *GOLDEN, "tokenizer.json", "statistics.json", "bundle.yaml")

Damage = Callable[[Path], None]
#: (what is done, the file that the error must name, the deed, whether the manifest is signed anew)
Case = tuple[str, str, Damage, bool]


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda root: (root / name).write_bytes(change((root / name).read_bytes())) and None


def flip(seed: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        draw = random.Random(seed)
        changed = bytearray(content)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)

    return change


def garbage(seed: str, magic: bool = False) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        noise = random.Random(seed).randbytes(max(len(content), 64))
        return noise[:4] + b"ET12" + noise[8:] if magic else noise

    return change


def swap(first: str, second: str) -> Damage:
    def deed(root: Path) -> None:
        shutil.move(root / first, root / "aside")
        shutil.move(root / second, root / first)
        shutil.move(root / "aside", root / second)

    return deed


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_outside(path: Path) -> None:
    outside = path.parents[2] / f"outside-{path.name}"
    shutil.move(path, outside)
    path.symlink_to(outside)


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"more")


def edit_npz(path: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    with np.load(path) as stored:
        arrays = dict(stored)
    change(arrays)
    np.savez_compressed(path, **arrays)


def to_nan(arrays: dict[str, np.ndarray]) -> None:
    arrays["inputs.x"].flat[3] = np.nan


def to_pickle(arrays: dict[str, np.ndarray]) -> None:
    arrays["inputs.x"] = np.array([{"a": 1}], dtype=object)


def renamed(arrays: dict[str, np.ndarray]) -> None:
    arrays["inputs.w"] = arrays.pop("inputs.x")


def edit_text(root: Path, old: str, new: str) -> None:
    path = root / "bundle.yaml"
    text = path.read_text()
    assert old in text
    body = text[: text.rindex("manifest_sha256:")].replace(old, new, 1)
    content = body.encode("utf-8", errors="surrogateescape")
    path.write_bytes(content + f"manifest_sha256: {hashlib.sha256(content).hexdigest()}\n".encode())


def damaged_files() -> Iterator[Case]:
    for name in FILES:
        for part in (0.0, 0.01, 0.5, 0.97):
            cut = rewrite(name, lambda content, part=part: content[: int(part * len(content))])
            yield f"cut to {part:.0%}", name, cut, False
        yield "one byte cut", name, rewrite(name, lambda content: content[:-1]), False
        yield "one byte more", name, rewrite(name, lambda content: content + b"\n"), False
        yield "garbage", name, rewrite(name, garbage(name)), False
        yield "zeros", name, rewrite(name, lambda content: bytes(len(content))), False
        for seed in range(7):
            yield f"bit flip {seed}", name, rewrite(name, flip(f"{name}{seed}")), False


def swapped_and_missing_files() -> Iterator[Case]:
    for first, second in zip(FILES, FILES[1:]):
        # Files are looked at in the manifest's order, which is the alphabet's; the manifest first.
        noticed = "bundle.yaml" if second == "bundle.yaml" else min(first, second)
        yield f"{first} swapped with {second}", noticed, swap(first, second), False
    for name in FILES:
        yield "missing", name, lambda root, name=name: (root / name).unlink(), False
        yield "a folder", name, lambda root, name=name: to_folder(root / name), False
        yield "a fifo", name, lambda root, name=name: to_fifo(root / name), False
        yield "a link outside", name, lambda root, name=name: to_outside(root / name), False


def unasked_files() -> Iterator[Case]:
    for name in (".DS_Store", "vision_encoder.pte~", "golden/more.npz", "a/b/c", "bundle.yml"):
        yield "unasked for", name, lambda root, name=name: put(root / name), False
    yield "a link to a folder", "etc", lambda root: os.symlink("/etc", root / "etc"), False
    yield "a link to itself", "loop", lambda root: os.symlink("loop", root / "loop"), False
    yield "a dangling link", "gone", lambda root: os.symlink("nowhere", root / "gone"), False


def signed_damage() -> Iterator[Case]:
    """What hashes cannot notice: the files are wrong, and the manifest agrees with them."""
    for name in PROGRAMS:
        yield "garbage", name, rewrite(name, garbage(name)), True
        yield "garbage behind the magic", name, rewrite(name, garbage(name, magic=True)), True
        yield "cut", name, rewrite(name, lambda content: content[: len(content) // 2]), True
        tail = rewrite(name, lambda content: content[:200] + bytes(len(content) - 200))
        yield "zeros behind the header", name, tail, True
    yield "empty", PROGRAMS[0], rewrite(PROGRAMS[0], lambda content: b""), True
    for what, change in {"not finite": to_nan, "pickles": to_pickle, "renamed": renamed}.items():
        name = GOLDEN[len(what) % len(GOLDEN)]
        edit = lambda root, name=name, change=change: edit_npz(root / name, change)  # noqa: E731
        yield what, name, edit, True
    yield "garbage", GOLDEN[0], rewrite(GOLDEN[0], garbage("golden")), True
    yield "cut", GOLDEN[1], rewrite(GOLDEN[1], lambda content: content[:-40]), True
    yield "empty", GOLDEN[2], rewrite(GOLDEN[2], lambda content: b""), True


def hostile_manifests() -> Iterator[Case]:
    edits = {
        "foreign version": ("format: 1", "format: 2"),
        "version of ten thousand digits": ("format: 1", "format: " + "1" * 10_000),
        "huge number": ("chunk: 4", "chunk: " + "9" * 300),
        "number of ten thousand digits": ("chunk: 4", "chunk: " + "9" * 10_000),
        "huge shape": ("shape: [8, 32]", "shape: [2147483648, 2147483648, 2147483648]"),
        "huge file": ("bytes: ", "bytes: 9999999999999999999"),
        "absolute path": ("tokenizer.json: {", "/etc/passwd: {"),
        "path outside": ("tokenizer.json: {", "../tokenizer.json: {"),
        "path with a NUL": ("tokenizer.json: {", '"tokenizer\\0.json": {'),
        "python tag": ("name: small", "name: !!python/object/apply:os.abort []"),
        "alias": ("name: small", "name: &n small\nother: *n"),
        "deep nesting": ("name: small", "name: " + "[" * 100_000),
        "key twice": ("name: small", "name: small\nname: small"),
        "key missing": ("name: small\n", ""),
        "key unknown": ("name: small", "name: small\ncolour: red"),
        "program unknown to files": ("file: action_head.pte", "file: action_neck.pte"),
        "not text": ("name: small", "name: \udcff\udcfe"),
    }
    for what, (old, new) in edits.items():
        yield what, "bundle.yaml", lambda root, old=old, new=new: edit_text(root, old, new), False
    yield "a megabyte", "bundle.yaml", rewrite("bundle.yaml", lambda text: text * 400), False


CASES = [
    *damaged_files(),
    *swapped_and_missing_files(),
    *unasked_files(),
    *signed_damage(),
    *hostile_manifests(),
]


def test_there_are_two_hundred_cases():
    assert len(CASES) >= 200
    assert len({(what, name, signed) for what, name, _, signed in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("name", "damage", "signed"),
    [case[1:] for case in CASES],
    ids=[f"{name}: {what}{', signed' if signed else ''}" for what, name, _, signed in CASES],
)
def test_a_damaged_bundle_gives_one_error_that_names_the_file(bundle, sign, name, damage, signed):
    damage(bundle)
    if signed:
        sign(bundle)
    with pytest.raises(BundleError) as caught:
        open_bundle(bundle)
    text = str(caught.value)
    assert text.startswith(str(bundle / name) + ": ")
    assert len(text.splitlines()) == 1
    assert len(text) - len(str(bundle)) < 600


@pytest.mark.parametrize("seed", range(8))
def test_a_signed_bit_flip_in_a_program_is_refused_or_harmless(bundle, sign, seed):
    name = PROGRAMS[seed % len(PROGRAMS)]
    rewrite(name, flip(f"signed{seed}"))(bundle)
    sign(bundle)
    try:
        open_bundle(bundle)
    except BundleError as error:
        assert str(error).startswith(str(bundle / name) + ": ")
