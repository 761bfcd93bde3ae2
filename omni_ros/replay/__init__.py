# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a robot, and whether it would do the same again."""
