# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""pytest plug-in: every bag of a folder is a test.

    pytest -p omni_ros.replay.pytest_plugin --replay-bags bags --replay-bundle bundles/pick_place

Tests of one's own get `assert_replays` as a fixture, with the bundle of the command line where none is
given. A bag is a folder with metadata.yaml, or an .mcap or .db3 file that lies in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("replay", "recordings of a robot, done again")
    group.addoption("--replay-bags", metavar="DIR", help="each bag in DIR is a test")
    group.addoption("--replay-bundle", metavar="B", help="the bundle to replay with: a folder or a name")
    group.addoption("--replay-robot", metavar="YAML", default="",
                    help="the robot, for bags that do not say")
    group.addoption("--replay-tolerance", metavar="X", type=float,
                    help="largest difference instead of the bundle's own")
    group.addoption("--replay-strict", action="store_true", help="not a bit may differ")
    group.addoption("--replay-incomplete", action="store_true",
                    help="a bag in which something is missing and nothing differs passes")
    group.addoption("--replay-player", action="store_true", help="compare the player's commands too")
    group.addoption("--replay-reports", metavar="DIR", help="write a page there for each that fails")


@pytest.fixture
def assert_replays(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return `omni_ros.replay.testing.assert_replays` with the command line's options filled in."""
    config = request.config

    def check(bag: Any, bundle: Any = None, **options: Any) -> Any:
        return _check(config, bag, bundle, options)

    return check


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config,
                                  items: list[pytest.Item]) -> None:
    """Add a test for each bag."""
    folder = config.getoption("--replay-bags")
    if folder is None:
        return
    if not Path(folder).is_dir():
        raise pytest.UsageError(f"--replay-bags {folder}: there is no such folder")
    if config.getoption("--replay-bundle") is None:
        raise pytest.UsageError("--replay-bags is given without --replay-bundle")
    found = list(bags_in(Path(folder)))
    if not found:
        raise pytest.UsageError(f"--replay-bags {folder}: no bag in it")
    file = _Bags.from_parent(session, name=str(folder))
    items += [_BagTest.from_parent(file, name=str(bag.relative_to(folder)), bag=bag) for bag in found]


def bags_in(folder: Path) -> Iterator[Path]:
    """Yield the bags in a folder and in those below it, in the order of their names."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if (path / "metadata.yaml").is_file():
                yield path
            else:
                yield from bags_in(path)
        elif path.suffix in (".mcap", ".db3"):
            yield path


class _Bags(pytest.Collector):
    def collect(self) -> list[pytest.Item]:
        return []


class _BagTest(pytest.Item):
    def __init__(self, *, bag: Path, **options: Any) -> None:
        super().__init__(**options)
        self.bag = bag

    def runtest(self) -> None:
        _check(self.config, self.bag, None, {})

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """Say the verdict, not where in this code it was found."""
        return str(excinfo.value) if isinstance(excinfo.value, (AssertionError, ValueError)) else (
            super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.bag, None, f"replay {self.name}"


def _check(config: pytest.Config, bag: Any, bundle: Any, options: dict[str, Any]) -> Any:
    from omni_ros.replay.testing import assert_replays as check

    get = config.getoption
    bundle = bundle if bundle is not None else get("--replay-bundle")
    if bundle is None:
        raise pytest.UsageError("no bundle: give one to assert_replays, or --replay-bundle")
    given = {"robot": get("--replay-robot"), "tolerance": get("--replay-tolerance"),
             "strict": get("--replay-strict"), "incomplete": get("--replay-incomplete"),
             "player": get("--replay-player")}
    reports = get("--replay-reports")
    if reports is not None:
        Path(reports).mkdir(parents=True, exist_ok=True)
        given["report"] = Path(reports) / f"{Path(bag).stem}.html"
    return check(bag, bundle, **{**given, **options})
