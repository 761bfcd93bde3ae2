# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""bundle.yaml, format 1: all that a robot needs to know about an export before it loads it.

The first line is `format: 1`; the last is `manifest_sha256:` with the SHA-256 of every byte before
that line, so a manifest that was edited or damaged is noticed before its content is believed.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from omni_ros.bundles import checks, schema, strict_yaml
from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.kinds import kind_of
from omni_ros.bundles.layout import Manifest

FORMAT = 1
MANIFEST = "bundle.yaml"
#: Longer than any manifest of this format; a damaged or hostile one shall not cost minutes.
MAX_BYTES = 1 << 18


def to_text(manifest: Manifest) -> str:
    """Return the text of bundle.yaml, signed with its own hash.

    :raises BundleError: the manifest's parts do not fit each other.
    """
    checks.check(manifest, MANIFEST)
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
    # Without a family the fields' own check says so.
    kind = kind_of(data["family"]).manifest if "family" in data else Manifest
    manifest = schema.from_data(kind, data)
    checks.check(manifest, MANIFEST)
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


def manifest_hash(folder: str | Path) -> str:
    """Return the SHA-256 that a bundle's manifest is signed with: it names all of its content.

    :raises BundleError: see :func:`read_manifest`.
    """
    read_manifest(folder)
    return (Path(folder) / MANIFEST).read_text(encoding="utf-8").rsplit(" ", 1)[1].strip()


def write_manifest(folder: str | Path, manifest: Manifest) -> Path:
    """Write bundle.yaml into a folder and return its path."""
    path = Path(folder) / MANIFEST
    path.write_bytes(to_text(manifest).encode())
    return path
