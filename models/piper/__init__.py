# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Piper's voices: VITS, a text encoder with durations, a flow and a HiFi-GAN, one speaker.

Rebuilt from the weights in a voice's ONNX file, as parts of fixed sizes that XNNPACK takes whole.
Kim, Kong and Son, "Conditional Variational Autoencoder with Adversarial Learning for End-to-End
Text-to-Speech", 2021.
"""
