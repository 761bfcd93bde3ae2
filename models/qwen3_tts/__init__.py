# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-TTS (12 Hz): talker, code predictor and vocoder, to be exported."""
