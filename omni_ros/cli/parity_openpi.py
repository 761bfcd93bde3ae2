# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity BUNDLE --openpi URL`: a bundle against a remote policy."""

from __future__ import annotations

import argparse
import contextlib
import json
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance

#: Rows of a chunk that the table shows.
SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a comparison with a remote policy."""
    add = parser.add_argument_group("with a remote policy, instead of --oracle").add_argument
    add(
        "--openpi",
        metavar="URL",
        help="an OpenPI server: ws://HOST:PORT, vLLM-Omni, openpi or omni serve",
    )
    add("--mapping", type=Path, metavar="FILE",
        help="what the remote calls cameras and joints (config/openpi/); default: as the "
        "bundle does")  # fmt: skip
    add("--observations", default="4", metavar="N|FILE",
        help="N made-up observations (default 4), or an .npz with images/CAMERA, state, "
        "prompt")  # fmt: skip
    add("--bag", type=Path, metavar="BAG",
        help="N observations of a recording instead, spread over its length")
    add("--robot", default="", metavar="YAML", help="robot of the recording, if it does not say")
    add(
        "--prompt",
        default="pick up the red block",
        metavar="TEXT",
        help="the sentence for made-up ones",
    )
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="of noise and made-up observations (default 0)",
    )
    add(
        "--tolerance",
        type=float,
        metavar="X",
        help="largest difference allowed, in the bundle's units",
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="longest wait for a reply (default 60 s)",
    )
    add("--token-file", metavar="FILE", help="holds the token for the server")
    add("--ca", metavar="FILE", help="certificate of a private authority, for wss")


def run(arguments: argparse.Namespace) -> int:
    """Compare and print. Exit status 1 if a joint does not pass."""
    if arguments.bundle is None or arguments.oracle is not None or arguments.recipe is not None:
        raise UsageError("--openpi compares BUNDLE with a server; expected BUNDLE, and neither "
                         "--oracle nor --recipe")  # fmt: skip
    for name, low, high in (("timeout", 0.05, 600.0), ("tolerance", 0.0, 1e9), ("seed", 0, 2**31 - 1)):
        value = getattr(arguments, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"--{name} {value}: expected {low} to {high}")
    document = {**measure(arguments), "provenance": provenance()}
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 1 if document["passed"] is False else 0


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Open the bundle, connect, and compare."""
    from omni_ros.openpi.agreement import objection
    from omni_ros.openpi.client import RemotePolicy
    from omni_ros.openpi.mapping import load_mapping
    from omni_ros.openpi.settings import RemoteSettings
    from omni_ros.parity.openpi import Pairing, compare_remote

    mapping = None if arguments.mapping is None else load_mapping(arguments.mapping)
    settings = mapping.remote if mapping is not None and mapping.remote is not None else (
        RemoteSettings(arguments.openpi))
    # A comparison has time, and asks the same thing twice.
    settings = replace(
        settings, url=arguments.openpi, token_file=arguments.token_file or settings.token_file,
        ca_file=arguments.ca or settings.ca_file, reply_timeout_s=arguments.timeout,
        remote_timeout_s=arguments.timeout, warm_up_timeout_s=max(180.0, arguments.timeout),
        identical="accept",
    )
    with _given(arguments) as (policy, observations, prompts, note):
        pairing = Pairing(policy, mapping)
        remote = RemotePolicy(
            settings, expect=mapping.expectation if mapping else None,
            check_metadata=(lambda metadata: objection(mapping, metadata)) if mapping else None,
        )
        remote.start()
        try:
            remote.wait_connected(arguments.timeout)
            first = pairing.message(pairing.shown(observations[0]), prompts[0])
            remote.ask(first, settings.warm_up_timeout_s)
            document = compare_remote(
                policy, remote, pairing, observations, prompts, seed=arguments.seed,
                timeout_s=arguments.timeout, tolerance=arguments.tolerance,
            )
            return {**document, "shown": note}
        finally:
            remote.stop()


@contextlib.contextmanager
def _given(arguments: argparse.Namespace) -> Iterator[tuple[Any, list, list[str], str]]:
    """Open the bundle; yield it, what it and the remote are shown, the sentences, and what that is."""
    from omni_ros.bundles.named import bundle_folder
    from omni_ros.parity.openpi import recorded, synthetic
    from omni_ros.parity.recorded import from_bag
    from omni_ros.policy.smolvla import SmolVLAPolicy

    folder, given = bundle_folder(str(arguments.bundle)), arguments.observations
    count = int(given) if given.isdigit() else 0
    if given.isdigit() and not 1 <= count <= 10_000:
        raise UsageError(f"--observations {given}: expected 1 to 10000, or a file")
    if arguments.bag is None and arguments.robot:
        raise UsageError("--robot is for --bag; expected both or neither")
    if arguments.bag is not None:
        if not count:
            raise UsageError("--bag and --observations FILE given; expected one of them")
        with contextlib.ExitStack() as opened:
            try:
                found = opened.enter_context(from_bag(
                    arguments.bag, folder, robot=arguments.robot, count=count,
                    threads=arguments.threads))
            except ValueError as error:
                raise UsageError(str(error)) from error
            lacking = f"; {found.lacking} lack something: {found.example}" if found.lacking else ""
            yield (found.policy, found.observations, found.prompts,
                   f"of the recording {arguments.bag}{lacking}")
        return
    with SmolVLAPolicy(folder, threads=arguments.threads) as policy:
        if count:
            yield (policy, synthetic(policy, count, arguments.seed), [arguments.prompt] * count,
                   "made up")
        else:
            yield (policy, *recorded(Path(given), policy), f"of {given}")


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the document as text."""
    same = document["passed"] is not None
    cells = []
    for joint in document["joints"]:
        place = f"{joint['observation']}:{joint['row']}"
        last = [f"{joint['tolerance']:.1e}", "pass" if joint["passed"] else "FAIL"] if same else [
            f"{joint['spread']:.2f}"]
        cells.append([joint["name"], joint["unit"], _figure(joint["largest"]), place,
                      _figure(joint["mean"]), *last])  # fmt: skip
    header = [
        "joint",
        "unit",
        "max abs diff",
        "at",
        "mean",
        *(["tolerance", ""] if same else ["spreads"]),
    ]
    step = max(1, -(-document["rows"] // SHOWN))
    picked = sorted({*range(0, document["rows"], step), document["rows"] - 1})
    rows = [[str(row), *(_figure(value) for value in document["by_row"][row])] for row in picked]
    names = [joint["name"] for joint in document["joints"]]
    failed = [joint["name"] for joint in document["joints"] if joint["passed"] is False]
    verdict = (
        (f"all {len(names)} joints pass" if not failed else f"FAIL: {', '.join(failed)}")
        if same
        else ("no verdict: the remote draws its own noise, so two equal policies differ too")
    )
    seconds = document["seconds"]
    lines = [
        "at: observation:row of the largest difference." + ("" if same else
            f" Means of {document['draws']} chunks are compared; spreads: their difference in units "
            "of what such means vary by, about 1 for equal policies."),
        f"A chunk takes {1e3 * seconds['local_p50']:.0f} ms here and {1e3 * seconds['remote_p50']:.0f} "
        "ms from the remote (p50, with the way there and back).",
        one_line(document["provenance"]),
    ]  # fmt: skip
    title = (f"{document['bundle']} against {document['remote']} ({document['dialect']}): "
             f"{document['observations']} observations {document['shown']}, {document['rows']} rows; noise "
             f"{document['noise']}")  # fmt: skip
    prose = [
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines
    ]
    return "\n".join([title, "", format_table(header, cells), "", "largest difference by row",
                      format_table(["row", *names], rows), "", verdict, "", *prose])  # fmt: skip


def _figure(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"
