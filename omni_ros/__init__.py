# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cameras, joint states and a sentence in; safe joint commands and speech out.

This package is the core: it imports neither ROS nor PyTorch, so that it can be used and tested on
any machine with numpy and PyYAML. The ROS nodes are thin shells over it.
"""

from pkgutil import extend_path

# In a clone, this folder hides the built package wherever the clone is the working directory; the
# messages and nodes live in the built one.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
