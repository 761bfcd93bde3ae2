# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes: one file a node, thin; every decision is taken in the core."""
