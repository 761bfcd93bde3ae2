# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a run looks like to people: rates with their uncertainty, plots, pictures, one page.

Pure functions over plain arrays. matplotlib is imported where something is drawn, and nothing here
needs ROS.
"""
