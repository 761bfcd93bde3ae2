# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Remember which set-up steps are done, by a hash of what each depends on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Iterable


def digest(files: Iterable[Path], extra: Iterable[str] = ()) -> str:
    """Hex sha256 over the names and contents of files, and over further strings."""
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for text in extra:
        total.update(text.encode() + b"\0")
    return total.hexdigest()


class Stamps:
    """A folder with one small file a step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, step: str) -> str:
        path = self.folder / step
        return path.read_text() if path.exists() else ""

    def fresh(self, step: str, stamp: str) -> bool:
        return self.read(step) == stamp

    def write(self, step: str, stamp: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / step).write_text(stamp)
