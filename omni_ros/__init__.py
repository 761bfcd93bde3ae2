# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cameras, joint states and a sentence in; safe joint commands and speech out.

This package is the core: it imports neither ROS nor PyTorch, so that it can be used and tested on
any machine with numpy and PyYAML. The ROS nodes are thin shells over it.
"""

__version__ = "0.1.0"
