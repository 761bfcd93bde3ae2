# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of networks that are exported, by the `type` in a checkpoint's config.json."""

from __future__ import annotations

from .smolvla import SmolVLAExport

FAMILIES = {"smolvla": SmolVLAExport}
