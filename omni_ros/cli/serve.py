# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni serve`: a bundle behind an OpenPI websocket, without ROS."""

from __future__ import annotations

import argparse
import sys

from omni_ros.cli import UsageError
from omni_ros.cli.report import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni serve`."""
    add = parser.add_argument
    add("bundle", metavar="BUNDLE", help="a bundle: its folder, or its name")
    add(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1, this machine)"
    )
    add(
        "--port",
        type=int,
        default=8000,
        help="port to listen on; 0 takes a free one (default 8000)",
    )
    add("--dialect", choices=("auto", "vllm", "openpi"), default="auto",
        help="auto: vLLM-Omni's at its path, openpi's at any other (default)")  # fmt: skip
    add("--token-file", metavar="FILE", help="clients must send the token that FILE holds")
    add("--cert", metavar="FILE", help="certificate (PEM), for wss; with --key")
    add("--key", metavar="FILE", help="its key (PEM)")
    add("--insecure", action="store_true",
        help="listen beyond this machine without a token")  # fmt: skip
    add("--threads", type=int, default=1, metavar="N", help="threads to compute with (default 1)")
    add("--busy", choices=("wait", "refuse"), default="wait",
        help="what a request meets while another is computed (default wait)")  # fmt: skip
    add(
        "--max-waiting", type=int, default=4, metavar="N", help="requests that may wait (default 4)"
    )
    add("--wait-timeout", type=float, default=30.0, metavar="S", help="how long (default 30 s)")
    add("--max-clients", type=int, default=4, metavar="N", help="clients at a time (default 4)")
    add("--idle-timeout", type=float, default=60.0, metavar="S",
        help="let go of a client that asks nothing for so long; 0 never (default 60 s)")  # fmt: skip
    add("--max-request-mb", type=float, default=16.0, metavar="MB",
        help="largest observation (default 16 MB)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from omni_ros.bundles.named import bundle_folder
    from omni_ros.openpi.dialect import VLLM_PATH
    from omni_ros.openpi.served import ServedBundle
    from omni_ros.openpi.server import PolicyServer
    from omni_ros.openpi.server_settings import ServerSettings
    from omni_ros.policy.smolvla import SmolVLAPolicy

    if not 1 <= arguments.threads <= 1024:
        raise UsageError(f"--threads {arguments.threads}: expected 1 to 1024")
    if not 0.001 <= arguments.max_request_mb <= 1024:
        raise UsageError(f"--max-request-mb {arguments.max_request_mb:g}: expected 0.001 to 1024")
    settings = ServerSettings(
        host=arguments.host, port=arguments.port, dialect=arguments.dialect,
        token_file=arguments.token_file, cert_file=arguments.cert, key_file=arguments.key,
        insecure=arguments.insecure, busy=arguments.busy, max_waiting=arguments.max_waiting,
        wait_timeout_s=arguments.wait_timeout, max_clients=arguments.max_clients,
        idle_timeout_s=arguments.idle_timeout,
        max_request_bytes=int(arguments.max_request_mb * (1 << 20)),
    )
    with SmolVLAPolicy(bundle_folder(arguments.bundle), threads=arguments.threads) as policy:
        seconds = policy.warm_up()
        server = PolicyServer(ServedBundle(policy), settings)
        try:
            server.start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}; "
                "choose another --port"
            ) from error
        try:
            write(f"serving {policy.manifest.name} ({1e3 * seconds:.0f} ms a chunk)")
            if settings.dialect != "vllm":
                write(f"  openpi     {server.url}")
            if settings.dialect != "openpi":
                write(f"  vLLM-Omni  {server.url}{VLLM_PATH}")
            write(f"  health     http{server.url[2:]}/healthz   Ctrl-C ends")
            sys.stdout.flush()  # whoever started this may wait for the address
            server.wait()
        finally:
            server.stop()
            count = server.counters
            write(f"served {count.served} requests of {count.accepted} clients; refused "
                  f"{count.refused} clients, {count.invalid} requests, {count.busy} while busy")  # fmt: skip
    return 0
