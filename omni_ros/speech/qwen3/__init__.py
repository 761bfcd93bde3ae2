# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-TTS at run time: numpy and programs, no PyTorch.

    prompt      text, speaker and language to the talker's embeddings, whole or beside the frames
    talker_*    one frame's hidden state and layer-0 logits, by ExecuTorch or by llama.cpp
    predictor   the other fifteen codes of the frame
    sampling    what the reference does to logits before it draws
    vocoder     codes to samples, exact for any chunking; windows: vLLM-Omni's way of doing it
    compat      vLLM-Omni's chunk schedule
    wire        the layout in which codes travel
    voice       all of it as a voice of the speech pipeline
"""

from __future__ import annotations

from omni_ros.speech.qwen3.voice import QwenVoice

__all__ = ["QwenVoice"]
