# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The `omni` command: one module a subcommand, imported only when that subcommand is called."""


class UsageError(ValueError):
    """What the user asked for cannot be done as asked; the message says what to change."""
