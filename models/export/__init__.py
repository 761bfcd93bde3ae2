# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a network in PyTorch to programs that run without it."""
