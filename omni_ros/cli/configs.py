# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find the configuration files that belong to this copy of omni_ros, however it was installed."""

from __future__ import annotations

from pathlib import Path

import omni_ros


def config_folder(package: Path | None = None) -> Path | None:
    """Return the folder that holds `robots/`, None if this copy came without.

    :param package: the folder of the omni_ros package; the imported one if None.
    """
    package = Path(omni_ros.__file__).resolve().parent if package is None else package
    candidates = [package / "config", package.parent / "config"]  # pip install, source tree
    # A colcon build: PREFIX/lib/python3.x/site-packages/omni_ros beside PREFIX/share/omni_ros.
    candidates += [parent / "share" / "omni_ros" / "config" for parent in package.parents]
    return next((folder for folder in candidates if (folder / "robots").is_dir()), None)
