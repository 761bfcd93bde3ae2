# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""π0 and π0.5 (PaliGemma with a Gemma expert) in PyTorch, and their checkpoints."""
