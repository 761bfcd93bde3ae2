# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Figures and where they come from: lateness, provenance, what the operating system permits."""
