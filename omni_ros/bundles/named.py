# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find a bundle by its name, so that a launch file can say `tabletop` on any machine.

Searched in this order: the folders of $OMNI_ROS_BUNDLES (separated as in PATH), `share/omni_ros/bundles` of
the active Python environment (where set-up puts the default policy), `omni_ros/bundles` of the user's
data folder ($XDG_DATA_HOME, else ~/.local/share).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .errors import BundleError

#: Folders to search before all others, as in PATH.
ENVIRONMENT = "OMNI_ROS_BUNDLES"
MANIFEST = "bundle.yaml"


def bundle_folders() -> list[Path]:
    """Return the folders that named bundles lie in, most preferred first; they need not exist."""
    given = [Path(part) for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return [*given, Path(sys.prefix) / "share" / "omni_ros" / "bundles", data / "omni_ros" / "bundles"]


def bundle_folder(bundle: str) -> Path:
    """Return the folder of a bundle; what is in it is not looked at.

    :param bundle: a path (it has a `/` in it, or is a folder with a manifest), or a name.
    :raises BundleError: there is none; the message lists those there are and where was searched.
    """
    if not bundle.strip():
        raise BundleError("no bundle was given; expected a path to one, or a name")
    path = Path(bundle).expanduser()
    if "/" in bundle or (path / MANIFEST).is_file():
        if not path.is_dir():
            raise BundleError(f"there is no bundle {path}: no such folder; give the folder that "
                              "`omni export --out` made")
        return path
    folders = bundle_folders()
    for folder in folders:
        if (folder / bundle / MANIFEST).is_file():
            return folder / bundle
    known = sorted({entry.parent.name for folder in folders for entry in folder.glob(f"*/{MANIFEST}")})
    hint = ("; `make setup` makes it" if bundle.startswith(("tabletop", "voice_joe")) else
            f"; give a path, or put it below one of these folders ({ENVIRONMENT} adds more)")
    raise BundleError(
        f"there is no bundle named {bundle!r}; known: {', '.join(known) or 'none'}; searched "
        f"{', '.join(map(str, folders))}{hint}"
    )
