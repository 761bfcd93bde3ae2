# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch definitions of the networks, their checkpoint loaders and their export recipes.

Needed to export, never to run: a robot needs the bundle that `omni export` writes. Nothing is
imported here, so that the numpy parts can be used without PyTorch.
"""
