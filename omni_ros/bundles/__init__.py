# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bundles: what an export is. Read, verify and open them.

    from omni_ros.bundles import open_bundle

    bundle = open_bundle("pick_place.bundle")     # refuses what is damaged, or does not fit
    head = bundle.load("action_head")             # an omni_ros.programs.Program
    head.bind("x_t", noise)
"""

from __future__ import annotations

from omni_ros.bundles.bundle import Bundle, load_program
from omni_ros.bundles.errors import BundleError, MemoryShortage
from omni_ros.bundles.footprint import Footprint, measure
from omni_ros.bundles.golden import check_golden, read_golden, this_machine, write_golden
from omni_ros.bundles.layout import Manifest, Memory
from omni_ros.bundles.manifest import manifest_hash, read_manifest, write_manifest
from omni_ros.bundles.memory import check_memory, memory_left
from omni_ros.bundles.opening import open_bundle
from omni_ros.bundles.trial import try_programs
from omni_ros.bundles.verify import file_entry, verify_files

__all__ = [
    "Bundle",
    "BundleError",
    "Footprint",
    "Manifest",
    "Memory",
    "MemoryShortage",
    "check_golden",
    "check_memory",
    "file_entry",
    "load_program",
    "manifest_hash",
    "measure",
    "memory_left",
    "open_bundle",
    "read_golden",
    "read_manifest",
    "this_machine",
    "try_programs",
    "verify_files",
    "write_golden",
    "write_manifest",
]
