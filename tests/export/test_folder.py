# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from omni_ros.models.export import folder
from omni_ros.models.export.folder import check_target, whole_folder


def names(parent) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


@pytest.fixture
def old(tmp_path):
    """A bundle that is there already."""
    bundle = tmp_path / "out"
    bundle.mkdir()
    (bundle / "bundle.yaml").write_text("old")
    return bundle


def test_a_folder_appears_when_it_is_whole(tmp_path):
    with whole_folder(tmp_path / "out") as made:
        (made / "bundle.yaml").write_text("new")
        assert not (tmp_path / "out").exists()
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "bundle.yaml").read_text() == "new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_nothing_is_left_of_one_that_fails_half_way(tmp_path, error):
    with pytest.raises(error):
        with whole_folder(tmp_path / "out") as made:
            (made / "large.pte").write_text("half")
            raise error
    assert names(tmp_path) == []


def test_what_was_there_stays_if_its_replacement_fails(old, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with whole_folder(old, force=True):
            raise KeyboardInterrupt
    assert names(tmp_path) == ["out"]
    assert (old / "bundle.yaml").read_text() == "old"


def test_a_bundle_is_replaced_when_asked_for(old, tmp_path):
    with whole_folder(old, force=True) as made:
        (made / "bundle.yaml").write_text("new")
    assert names(tmp_path) == ["out"]
    assert (old / "bundle.yaml").read_text() == "new"


def test_a_bundle_is_not_replaced_unasked(old):
    with pytest.raises(ValueError, match="is there already; pass --force"):
        check_target(old, force=False)


def test_one_that_appears_meanwhile_is_kept(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="is there already"):
        with whole_folder(out):
            out.mkdir()
    assert names(tmp_path) == ["out"]


def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="is no bundle"):
        check_target(tmp_path / "photos", force=True)


def test_a_parent_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere is no folder: make it first"):
        check_target(tmp_path / "nowhere" / "out", force=False)


def test_a_bundle_is_there_at_every_moment_while_it_is_replaced(old, tmp_path):
    """Three processes replace it again and again, and another looks."""
    code = (
        "import sys, pathlib\n"
        "from omni_ros.models.export.folder import whole_folder\n"
        "for _ in range(10):\n"
        "    with whole_folder(pathlib.Path(sys.argv[1]), force=True) as made:\n"
        "        (made / 'bundle.yaml').write_text(sys.argv[2])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(old), str(number)], env=environment)
        for number in range(3)
    ]
    looks = gone = 0
    while any(writer.poll() is None for writer in writers):
        looks += 1
        gone += not (old / "bundle.yaml").is_file()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert looks > 0 and gone == 0
    assert names(tmp_path) == ["out"]


def test_without_an_exchange_of_names_a_bundle_is_replaced_all_the_same(old, tmp_path, monkeypatch):
    def unable(*arguments):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(folder, "_rename", unable)
    with whole_folder(old, force=True) as made:
        (made / "bundle.yaml").write_text("new")
    assert names(tmp_path) == ["out"]
    assert (old / "bundle.yaml").read_text() == "new"


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    code = (
        "import os, sys, pathlib\n"
        "from omni_ros.models.export.folder import whole_folder\n"
        "with whole_folder(pathlib.Path(sys.argv[1])) as made:\n"
        "    (made / 'large.pte').write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], env=environment)
    assert len(names(tmp_path)) == 1
    with whole_folder(tmp_path / "out") as made:
        (made / "bundle.yaml").write_text("new")
    assert names(tmp_path) == ["out"]


def test_what_another_process_is_writing_stays(tmp_path):
    with whole_folder(tmp_path / "out") as one:
        (one / "bundle.yaml").write_text("one")
        with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out"):
            raise KeyboardInterrupt
        assert (one / "bundle.yaml").is_file()
    assert names(tmp_path) == ["out"]


def test_other_folders_with_like_names_are_left_alone(tmp_path):
    kept = [".out.notes.partial", ".outer.0123456789abcdef.partial", "out.0123456789abcdef.partial"]
    for name in kept:
        (tmp_path / name).mkdir()
    with whole_folder(tmp_path / "out"):
        pass
    assert names(tmp_path) == sorted([*kept, "out"])
