# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle against the tensors that the training code itself computed (`omni parity`)."""
