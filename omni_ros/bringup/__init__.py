# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bringing lifecycle nodes up in order, and again after one was respawned."""
