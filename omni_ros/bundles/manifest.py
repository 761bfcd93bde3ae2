# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""bundle.yaml, format 1: all that a robot needs to know about an export before it loads it.

The first line is `format: 1`; the last is `manifest_sha256:` with the SHA-256 of every byte before
that line, so a manifest that was edited or damaged is noticed before its content is believed.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Union

import numpy as np

from omni_ros.bundles import schema, strict_yaml
from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.paths import check_paths
from omni_ros.bundles.schema import number, one_of, size
from omni_ros.programs.tensors import DTYPES

FORMAT = 1
MANIFEST = "bundle.yaml"
#: Longer than any manifest of this format; a damaged or hostile one shall not cost minutes.
MAX_BYTES = 1 << 18

_MODES = ("IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10")
_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")


@dataclass(frozen=True)
class Dimensions:
    """Sizes of the network. `state` and `action` are the robot's, `max_...` the programs'."""

    chunk: int = size(1)
    action: int = size(1)
    state: int = size(0)
    max_action: int = size(1)
    max_state: int = size(0)
    steps: int = size(1)
    prefix: int = size(1)
    image_tokens: int = size(0)
    language_tokens: int = size(0)
    layers: int = size(1)
    kv_heads: int = size(1)
    head_dim: int = size(1)
    expert_width: int = size(1)


@dataclass(frozen=True)
class Camera:
    """A camera that the policy saw in training: our name, the checkpoint's key, its pixels."""

    name: str
    key: str
    height: int = size(1)
    width: int = size(1)


@dataclass(frozen=True)
class JointName:
    """One joint in the policy's order, in the unit that the policy speaks."""

    name: str
    unit: str


@dataclass(frozen=True)
class Image:
    """What the vision encoder takes: pixels, and how a picture becomes them."""

    height: int = size(1)
    width: int = size(1)
    resize: str = one_of("pad", "stretch", "none")
    pad_value: float = number(-1e6, 1e6)
    low: float = number(-1e6, 1e6)
    high: float = number(-1e6, 1e6)


@dataclass(frozen=True)
class Tokenizer:
    """How an instruction becomes token ids. `newline`: one is put at its end."""

    file: str
    max_length: int = size(1)
    padding: str = one_of("longest", "max_length")
    newline: bool = one_of(True, False)


@dataclass(frozen=True)
class Normalisation:
    """Where the statistics lie and how they are used."""

    file: str
    state: str = one_of(*_MODES)
    action: str = one_of(*_MODES)
    eps: float = number(0.0, 1.0)


@dataclass(frozen=True)
class Flow:
    """The host's Euler loop: `steps` steps of `dt` from `t_start`."""

    steps: int = size(1)
    t_start: float = number(-10.0, 10.0)
    dt: float = number(-10.0, 10.0)


@dataclass(frozen=True)
class Tensor:
    """One input or output of a program, in order."""

    name: str
    dtype: str = one_of(*DTYPES.values())
    shape: tuple[int, ...] = size(1, 1 << 31)

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ProgramEntry:
    """One `.pte` file.

    `arenas`: planned bytes of each arena; `constants_bytes`: what its weights take once loaded;
    `workspace_bytes`: what the first runs add, measured at export; `delegates`: how many of each;
    `leftover`: operators that no delegate took.
    """

    file: str
    method: str
    recipe: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    arenas: tuple[int, ...] = size()
    constants_bytes: int = size()
    workspace_bytes: int = size()
    delegates: dict[str, int]
    leftover: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """Bytes that the programs take together; `total` is the sum of the others."""

    constants: int = size()
    arenas: int = size()
    workspaces: int = size()
    inputs_outputs: int = size()
    total: int = size()

    @classmethod
    def of(cls, programs: dict[str, ProgramEntry]) -> Memory:
        """Add up programs. Equal tensors of two programs are one: handed on without a copy."""
        constants = sum(program.constants_bytes for program in programs.values())
        arenas = sum(sum(program.arenas) for program in programs.values())
        workspaces = sum(program.workspace_bytes for program in programs.values())
        tensors = {t for program in programs.values() for t in (*program.inputs, *program.outputs)}
        inputs_outputs = sum(tensor.nbytes for tensor in tensors)
        total = constants + arenas + workspaces + inputs_outputs
        return cls(constants, arenas, workspaces, inputs_outputs, total)


@dataclass(frozen=True)
class FileEntry:
    """What a file of the bundle must be."""

    sha256: str
    bytes: int = size()


@dataclass(frozen=True)
class Tolerance:
    """How far a program may be from its golden vectors, relative to max(1, largest value)."""

    same_machine: float = number(0.0, 1.0)
    across_machines: float = number(0.0, 1.0)


@dataclass(frozen=True)
class Tools:
    """Versions of what made the bundle."""

    torch: str
    executorch: str
    python: str
    omni_ros: str


@dataclass(frozen=True)
class Provenance:
    """Where the bundle comes from."""

    checkpoint_sha256: str
    backbone_sha256: Union[str, None]
    options: dict[str, Union[str, int, float, bool, None]]
    tools: Tools
    machine: str
    created: str
    minutes: float = number(0.0, 1e6)
    peak_memory_bytes: int = size()


@dataclass(frozen=True)
class Manifest:
    """bundle.yaml. `joints` is "raw" where the checkpoint's joints have neither names nor units."""

    family: str
    name: str
    dimensions: Dimensions
    cameras: tuple[Camera, ...]
    empty_cameras: int = size(0, 16)
    joints: Union[tuple[JointName, ...], str]
    image: Image
    tokenizer: Tokenizer
    normalisation: Normalisation
    flow: Flow
    programs: dict[str, ProgramEntry]
    memory: Memory
    files: dict[str, FileEntry]
    golden: dict[str, str]
    tolerance: Tolerance
    provenance: Provenance



def check(manifest: Manifest) -> None:
    """Check what the parts of a manifest must be to each other.

    :raises BundleError: they do not fit; the message has both sides.
    """
    _check_names(manifest)
    for path, entry in manifest.files.items():
        if not _HASH.fullmatch(entry.sha256):
            raise BundleError(f"files[{short(path)}].sha256 is {short(entry.sha256)}, "
                              "expected 64 hexadecimal digits")  # fmt: skip
    check_paths(manifest.files, MANIFEST)
    named = {
        "tokenizer.file": manifest.tokenizer.file,
        "normalisation.file": manifest.normalisation.file,
        **{f"programs.{name}.file": entry.file for name, entry in manifest.programs.items()},
        **{f"golden.{name}": file for name, file in manifest.golden.items()},
    }
    for place, file in named.items():
        if file not in manifest.files:
            raise BundleError(f"{place} is {short(file)}, which is not among files")
    if set(manifest.golden) != set(manifest.programs):
        raise BundleError(
            f"golden has {', '.join(manifest.golden) or 'nothing'}, expected one entry for each "
            f"program: {', '.join(manifest.programs)}"
        )
    summed = Memory.of(manifest.programs)
    if manifest.memory != summed:
        raise BundleError(f"memory is {manifest.memory}, but the programs add up to {summed}")


def _check_names(manifest: Manifest) -> None:
    if not manifest.programs:
        raise BundleError("programs is empty")
    for name, entry in manifest.programs.items():
        for kind, tensors in (("inputs", entry.inputs), ("outputs", entry.outputs)):
            names = [tensor.name for tensor in tensors]
            _check_unique(names, f"programs.{name}.{kind}")
    for name in manifest.programs:
        if not _NAME.fullmatch(name):
            raise BundleError(f"programs has the name {short(name)}, expected letters and digits")
    _check_unique([camera.name for camera in manifest.cameras], "cameras")
    if isinstance(manifest.joints, str):
        if manifest.joints != "raw":
            raise BundleError(f"joints is {short(manifest.joints)}, expected a list or raw")
        return
    _check_unique([joint.name for joint in manifest.joints], "joints")
    if len(manifest.joints) != manifest.dimensions.action:
        raise BundleError(
            f"joints has {len(manifest.joints)} names, dimensions.action is "
            f"{manifest.dimensions.action}"
        )


def _check_unique(names: list[str], where: str) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise BundleError(f"{where} has the name {short(name)}, expected letters and digits")
    if len(set(names)) != len(names):
        raise BundleError(f"{where} has a name twice: {', '.join(names)}")


def to_text(manifest: Manifest) -> str:
    """Return the text of bundle.yaml, signed with its own hash.

    :raises BundleError: the manifest's parts do not fit each other.
    """
    check(manifest)
    body = strict_yaml.dump({"format": FORMAT, **schema.to_data(manifest)})
    return f"{body}manifest_sha256: {hashlib.sha256(body.encode()).hexdigest()}\n"


def from_text(text: bytes) -> Manifest:
    """Read the bytes of a bundle.yaml.

    :raises BundleError: too long, another format, edited or damaged, or wrong; without file name.
    """
    if len(text) > MAX_BYTES:
        raise BundleError(f"has more than {MAX_BYTES} bytes, which no manifest has")
    first = re.match(rb"format: ([^\n]*)\n", text)
    if first is None:
        raise BundleError(f"starts with {short(text[:30])}, expected the line 'format: {FORMAT}'")
    if first.group(1) != b"%d" % FORMAT:
        raise BundleError(
            f"has format {short(first.group(1).decode('ascii', 'replace'))}, this version of "
            f"omni_ros reads {FORMAT}; export the bundle again or change the version"
        )
    body = _unsigned(text)
    try:
        data = strict_yaml.load(body.decode("utf-8"))
    except ValueError as error:
        raise BundleError(f"cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise BundleError(f"is {short(data)}, expected a mapping")
    data.pop("format", None)
    manifest = schema.from_data(Manifest, data)
    check(manifest)
    return manifest


def _unsigned(text: bytes) -> bytes:
    signed = re.fullmatch(rb"(.*\n)manifest_sha256: ([0-9a-f]{64})\n", text, re.DOTALL)
    if signed is None:
        raise BundleError("does not end with a line 'manifest_sha256: ...': it is cut or damaged")
    found = hashlib.sha256(signed.group(1)).hexdigest()
    if found.encode() != signed.group(2):
        raise BundleError(
            f"has SHA-256 {found[:16]}..., its last line says {signed.group(2).decode()[:16]}...: "
            "it was edited or damaged after the export; export again"
        )
    return signed.group(1)


def read_manifest(folder: str | Path) -> Manifest:
    """Read and check the manifest of a bundle; its files are not looked at.

    :raises BundleError: there is none, or it is wrong; the message starts with its path.
    """
    path = Path(folder) / MANIFEST
    try:
        if path.exists() and not path.is_file():
            raise BundleError("is no regular file")
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1)
        return from_text(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BundleError(f"{path}: {reason}") from error


def write_manifest(folder: str | Path, manifest: Manifest) -> Path:
    """Write bundle.yaml into a folder and return its path."""
    path = Path(folder) / MANIFEST
    path.write_bytes(to_text(manifest).encode())
    return path
