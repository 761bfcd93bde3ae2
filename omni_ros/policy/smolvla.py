# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy of a SmolVLA's bundle; those of other families are run by the same class."""

from __future__ import annotations

from .flow_policy import FlowPolicy, Inference, Timings

__all__ = ["Inference", "SmolVLAPolicy", "Timings"]

SmolVLAPolicy = FlowPolicy
