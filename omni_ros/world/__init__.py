# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated table-top: a six-joint arm, four coloured blocks and two cameras.

``scene`` describes it, ``kinematics`` is the arm's closed-form geometry, ``simulation`` runs it,
``cameras`` draws it, ``appearance`` varies its looks, and ``controllers`` takes commands the way
ros2_control's controllers do. ``tasks`` names what can be asked for, ``expert`` does it knowing
where everything is, and ``judge`` says whether it was done. Only ``simulation``, ``cameras`` and
``appearance`` need MuJoCo; the others are numpy alone.
"""
