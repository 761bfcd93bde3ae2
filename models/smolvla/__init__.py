# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA: see `policy` for the network, `load` for checkpoints, `prefix` for what the host does."""
