# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The `ros2 launch` command for machines whose ROS 2 comes from wheels, which lack it."""

from setuptools import setup

setup(
    name="omni_ros2launch",
    version="0.1.0",
    description="The `ros2 launch` command over launch and launch_ros",
    license="Apache-2.0",
    packages=["omni_ros2launch"],
    entry_points={"ros2cli.command": ["launch = omni_ros2launch:LaunchCommand"]},
)
