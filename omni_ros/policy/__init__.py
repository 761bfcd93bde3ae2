# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From an observation to a chunk of actions."""
