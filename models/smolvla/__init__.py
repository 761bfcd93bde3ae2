# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA: `policy` is the network, `load` reads checkpoints, `prefix` is the host's part."""
