# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated table-top: a six-joint arm, four coloured blocks and two cameras.

``scene`` describes it, ``kinematics`` is the arm's closed-form geometry, ``simulation`` runs it,
``cameras`` draws it, and ``controllers`` takes commands the way ros2_control's controllers do.
Only ``simulation`` and ``cameras`` need MuJoCo; the others are numpy alone.
"""
