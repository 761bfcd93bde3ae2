# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the policies share: norms, attention, rotary positions, flow matching, statistics."""
