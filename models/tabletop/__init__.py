# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A SmolVLA of two million parameters for the simulated table-top, trained from nothing here."""
