# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch PACKAGE FILE [name:=value ...]` or `ros2 launch PATH [name:=value ...]`."""

from __future__ import annotations

import os

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
from ros2cli.command import CommandExtension


def find_launch_file(package: str, name: str) -> str:
    """Path of a launch file in a package's share folder.

    :raises FileNotFoundError: no package or no file of that name.
    """
    try:
        share = get_package_share_directory(package)
    except PackageNotFoundError as error:
        raise FileNotFoundError(f"package '{package}' not found: is its setup.bash sourced?") from error
    found = [
        os.path.join(folder, name) for folder, _, files in os.walk(share, followlinks=True)
        if name in files
    ]
    if not found:
        raise FileNotFoundError(f"package '{package}' has no launch file '{name}' below {share}")
    return found[0]


class LaunchCommand(CommandExtension):
    """Run a launch file."""

    def add_arguments(self, parser, cli_name):
        parser.add_argument("-s", "--show-args", action="store_true", help="list the arguments")
        parser.add_argument("target", help="package name, or path of a launch file")
        parser.add_argument("rest", nargs="*", metavar="[launch_file] [name:=value]",
                            help="launch file in the package, then arguments")

    def main(self, *, parser, args):
        rest = list(args.rest)
        path = args.target
        if not os.path.isfile(path):
            if not rest or ":=" in rest[0]:
                parser.error(f"'{path}' is no file; for a package, name its launch file too")
            try:
                path = find_launch_file(path, rest.pop(0))
            except FileNotFoundError as error:
                parser.error(str(error))
        bad = [item for item in rest if ":=" not in item]
        if bad:
            parser.error(f"arguments are written name:=value, not {' '.join(bad)}")
        source = AnyLaunchDescriptionSource(path)
        if args.show_args:
            return self._show(source)
        pairs = [tuple(item.split(":=", 1)) for item in rest]
        service = LaunchService(argv=rest)
        service.include_launch_description(LaunchDescription([
            IncludeLaunchDescription(source, launch_arguments=pairs),
        ]))
        return service.run()

    @staticmethod
    def _show(source) -> int:
        from launch import LaunchContext

        description = source.get_launch_description(LaunchContext())
        for argument in description.get_launch_arguments():
            default = argument.default_value
            text = "".join(part.text for part in default) if default else "(required)"
            print(f"{argument.name}:  {argument.description}\n    default: {text}")
        return 0
