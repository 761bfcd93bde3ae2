# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The bag that is written: readable by others, bounded, and whole whatever ends the recording."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcap")
pytest.importorskip("rosbags")

from rosbags.highlevel import AnyReader  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

from omni_ros.replay.bag import Bag  # noqa: E402
from omni_ros.replay.recording import BagWriter, Limits  # noqa: E402
from omni_ros.replay.recording_mend import mend, scan  # noqa: E402
from omni_ros.replay.recording_topics import Topic, full_definition, qos_entry  # noqa: E402

STORE = get_typestore(Stores.ROS2_JAZZY)
TEXT = Topic("/say", "std_msgs/msg/String", "string data\n", STORE.hash_rihs01("std_msgs/msg/String"),
             (qos_entry(reliable=True, latched=False),))
LATCHED = Topic("/told", "std_msgs/msg/String", "string data\n", "",
                (qos_entry(reliable=True, latched=True, depth=1),))
NO_FLOOR = 0


def text(value: str) -> bytes:
    kind = STORE.types["std_msgs/msg/String"]
    return bytes(STORE.serialize_cdr(kind(data=value), "std_msgs/msg/String"))


def noise(number: int, size: int) -> str:
    """Text that does not compress away."""
    return f"{number} " + np.random.default_rng(number).bytes(size // 2).hex()


def limits(**changed) -> Limits:
    return Limits(**{"free_bytes": NO_FLOOR, **changed})


def read(folder: Path, topic: str | None = None) -> list[str]:
    with AnyReader([folder], default_typestore=STORE) as reader:
        return [reader.deserialize(data, connection.msgtype).data.split(" ")[0]
                for connection, _, data in reader.messages() if topic in (None, connection.topic)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_another_library_reads_what_was_written(tmp_path):
    writer = BagWriter(tmp_path / "bag", limits())
    writer.add(TEXT)
    for number in range(5):
        assert writer.write("/say", text(str(number)), 1_000 + number)
    writer.close()
    assert read(tmp_path / "bag") == ["0", "1", "2", "3", "4"]
    assert writer.written == {"/say": 5} and writer.lost == {}


def test_type_quality_of_service_and_times_are_in_the_bag(tmp_path):
    writer = BagWriter(tmp_path / "bag", limits())
    writer.add(LATCHED)
    writer.write("/told", text("go"), 77, 70)
    writer.close()
    with AnyReader([tmp_path / "bag"], default_typestore=STORE) as reader:
        connection, = reader.connections
        assert connection.msgdef.data == "string data\n"
        assert connection.ext.offered_qos_profiles[0].durability.name == "TRANSIENT_LOCAL"
        assert [stamp for _, stamp, _ in reader.messages()] == [77]


def test_a_folder_that_exists_is_not_written_over(tmp_path):
    with pytest.raises(ValueError, match="is there already"):
        BagWriter(tmp_path)


def test_a_bag_can_be_found_from_its_first_second_on(tmp_path):
    BagWriter(tmp_path / "bag", limits())
    assert (tmp_path / "bag" / "metadata.yaml").exists()


def test_what_is_due_is_on_the_disk_although_nothing_is_closed(tmp_path):
    clock = Clock()
    writer = BagWriter(tmp_path / "bag", limits(flush_s=0.5), monotonic=clock)
    writer.add(TEXT)
    writer.write("/say", text("early"), 1)
    clock.now = 0.6
    writer.tick()
    writer.write("/say", text("late"), 2)
    assert scan(tmp_path / "bag" / "bag_0.mcap").messages == 1


CHILD = """
import sys, time
from omni_ros.replay.recording import BagWriter, Limits
sys.path.insert(0, {tests!r})
import test_recording as t
writer = BagWriter({folder!r}, t.limits(flush_s=0.2))
writer.add(t.TEXT)
number = 0
while True:
    writer.write("/say", t.text(t.noise(number, 20_000)), time.time_ns())
    writer.tick()
    number += 1
    time.sleep(0.002)
"""


def killed(folder: Path) -> int:
    """Record until SIGKILL; return when that was, ns."""
    child = subprocess.Popen([sys.executable, "-P", "-c", CHILD.format(
        tests=str(Path(__file__).parent), folder=str(folder))])
    deadline = time.monotonic() + 60.0
    file = folder / f"{folder.name}_0.mcap"
    while time.monotonic() < deadline and not (file.exists() and file.stat().st_size > 500_000):
        time.sleep(0.02)
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    return time.time_ns()


def test_sigkill_takes_at_most_the_last_second(tmp_path):
    ended_ns = killed(tmp_path / "bag")
    mend(tmp_path / "bag")
    with AnyReader([tmp_path / "bag"], default_typestore=STORE) as reader:
        last_ns = max(stamp for _, stamp, _ in reader.messages())
    numbers = [int(number) for number in read(tmp_path / "bag")]
    assert ended_ns - last_ns < 1_000_000_000
    assert numbers == list(range(len(numbers)))


def small_bag(folder: Path, count: int = 40, **changed) -> BagWriter:
    writer = BagWriter(folder, limits(**changed))
    writer.add(LATCHED)
    writer.add(TEXT)
    writer.write("/told", text("go"), 1)
    for number in range(count):
        writer.write("/say", text(noise(number, 8_000)), 10 + number)
        writer.flush()
    return writer


@pytest.mark.parametrize("share", [0.31, 0.5, 0.77, 0.999])
def test_a_file_that_ends_anywhere_is_mended_to_its_last_whole_part(tmp_path, share):
    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    os.truncate(file, round(file.stat().st_size * share))
    done, = mend(tmp_path / "bag")
    numbers = read(tmp_path / "bag", "/say")
    assert numbers == [str(number) for number in range(len(numbers))]
    assert not done.was_closed and len(numbers) >= 40 * share - 2


def test_mending_twice_changes_nothing(tmp_path):
    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    os.truncate(file, file.stat().st_size - 100)
    mend(tmp_path / "bag")
    before = file.read_bytes()
    assert mend(tmp_path / "bag")[0].was_closed
    assert file.read_bytes() == before


def test_what_is_no_bag_is_not_touched_by_mending(tmp_path):
    (tmp_path / "a.mcap").write_bytes(b"a letter")
    with pytest.raises(ValueError, match="no MCAP file"):
        mend(tmp_path)
    assert (tmp_path / "a.mcap").read_bytes() == b"a letter"


def test_a_recording_that_goes_on_is_not_mended(tmp_path):
    writer = small_bag(tmp_path / "bag", 3)
    with pytest.raises(ValueError, match="bag_0.mcap is being written by a recorder: stop that first"):
        mend(tmp_path / "bag")
    writer.write("/say", text("more"), 100)
    writer.close()
    assert read(tmp_path / "bag", "/say") == ["0", "1", "2", "more"]


def test_zeros_at_the_end_of_a_file_are_cut_off(tmp_path):
    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    whole = scan(file).end
    os.truncate(file, whole)
    os.truncate(file, whole + 5_000)
    assert mend(tmp_path / "bag")[0].cut == 5_000
    assert len(read(tmp_path / "bag", "/say")) == 40


def test_a_damaged_chunk_does_not_take_those_after_it(tmp_path):
    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    content, contents = bytearray(file.read_bytes()), scan(file)
    chunk = contents.chunks[20]
    content[chunk.chunk_start_offset + 200] ^= 0x55
    file.write_bytes(content[:contents.end])
    done, = mend(tmp_path / "bag")
    assert (done.damaged, done.cut, done.messages) == (1, 0, 40)
    assert len(read(tmp_path / "bag", "/say")) == 39


def test_the_first_chunk_may_be_damaged_although_it_names_the_topics(tmp_path):
    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    content = bytearray(file.read_bytes())
    content[scan(file).chunks[0].chunk_start_offset + 200] ^= 0x55
    file.write_bytes(content)
    with Bag(file) as bag:
        assert len(bag.load({"/say"})) == 39
        assert [problem.lost for problem in bag.problems] == [True]


def test_messages_outside_of_chunks_are_kept_by_mending(tmp_path):
    from mcap.writer import Writer

    file = tmp_path / "other.mcap"
    with file.open("wb") as stream:
        writer = Writer(stream, use_chunking=False)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data\n")
        channel = writer.register_channel("/say", "cdr", schema)
        for number in range(3):
            writer.add_message(channel, number, text(str(number)), number)
    done, = mend(file)
    assert done.messages == 3 and not done.was_closed


def test_a_mended_file_reads_in_the_library_of_its_format(tmp_path):
    from mcap.reader import make_reader

    small_bag(tmp_path / "bag").close()
    file = tmp_path / "bag" / "bag_0.mcap"
    os.truncate(file, file.stat().st_size // 2)
    mend(tmp_path / "bag")
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        count = reader.get_summary().statistics.message_count
        assert count == len(list(reader.iter_messages())) > 10


def test_files_are_split_by_size_and_each_opens_with_what_is_latched(tmp_path):
    writer = small_bag(tmp_path / "bag", file_bytes=70_000, total_bytes=10_000_000)
    writer.close()
    files = sorted((tmp_path / "bag").glob("*.mcap"))
    assert len(files) >= 3
    assert read(tmp_path / "bag", "/told") == ["go"] * len(files)
    assert [int(number) for number in read(tmp_path / "bag", "/say")] == list(range(40))
    assert writer.written == {"/told": 1, "/say": 40}


def test_files_are_split_by_length(tmp_path):
    clock = Clock()
    writer = BagWriter(tmp_path / "bag", limits(file_s=10.0), monotonic=clock)
    writer.add(TEXT)
    for second in range(25):
        clock.now = float(second)
        writer.write("/say", text(str(second)), second)
        writer.tick()
    writer.close()
    assert len(list((tmp_path / "bag").glob("*.mcap"))) == 3
    assert len(read(tmp_path / "bag")) == 25


def test_a_recording_stops_at_its_largest_size_and_counts_what_comes_then(tmp_path):
    writer = small_bag(tmp_path / "bag", file_bytes=70_000, total_bytes=150_000)
    assert "max_mb" in writer.stopped
    size = sum(file.stat().st_size for file in (tmp_path / "bag").glob("*.mcap"))
    kept = read(tmp_path / "bag", "/say")
    assert size < 150_000 + 20_000
    assert writer.lost["/say"] == 40 - len(kept) > 0


def test_the_newest_is_kept_if_that_is_wanted(tmp_path):
    writer = small_bag(tmp_path / "bag", file_bytes=70_000, total_bytes=150_000, keep="last")
    writer.close()
    kept = [int(number) for number in read(tmp_path / "bag", "/say")]
    size = sum(file.stat().st_size for file in (tmp_path / "bag").glob("*.mcap"))
    assert kept == list(range(kept[0], 40)) and kept[0] > 10
    assert writer.files_dropped > 0 and size < 150_000 + 20_000
    assert set(read(tmp_path / "bag", "/told")) == {"go"}


def test_room_on_the_disk_is_left_to_others(tmp_path):
    writer = small_bag(tmp_path / "bag", free_bytes=2**60)
    assert "min_free_mb" in writer.stopped
    assert writer.lost["/say"] + writer.written["/say"] == 40


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_recording as t
# As on a full disk: a write in the middle of the file fails.
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
writer = t.small_bag(Path({folder!r}), count=200)
assert "File too large" in writer.stopped, writer.stopped
print(writer.written["/say"], writer.lost["/say"])
"""


def test_a_disk_that_takes_no_more_leaves_a_bag_that_opens(tmp_path):
    child = subprocess.run(
        [sys.executable, "-P", "-c", LIMITED.format(
            tests=str(Path(__file__).parent), folder=str(tmp_path / "bag"))],
        stdout=subprocess.PIPE, text=True, check=True)
    written, lost = map(int, child.stdout.split())
    mend(tmp_path / "bag")
    kept = [int(number) for number in read(tmp_path / "bag", "/say")]
    assert kept == list(range(written)) and written > 50
    assert written + lost == 200


def test_a_full_disk_leaves_a_bag_that_is_closed(tmp_path, small_disk):
    writer = small_bag(small_disk / "bag", count=400)
    assert "No space left" in writer.stopped
    kept = [int(number) for number in read(small_disk / "bag", "/say")]
    assert kept == list(range(writer.written["/say"]))
    assert writer.written["/say"] + writer.lost["/say"] == 400


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
                           stderr=subprocess.PIPE, text=True, check=False)
    if mount.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_limits_that_cannot_hold_are_refused():
    for wrong in ({"keep": "some"}, {"file_bytes": 10}, {"flush_s": 2.0}, {"total_bytes": 100_000},
                  {"keep": "last", "file_bytes": 600_000, "total_bytes": 1_000_000}):
        with pytest.raises(ValueError):
            Limits(**wrong)


@pytest.mark.parametrize(("option", "value", "words"), [
    ("--seconds", "nan", "expected 0 (until Ctrl-C) to 1e9"), ("--seconds", "-1", "expected 0"),
    ("--max-mb", "0", "expected 1 to 100000000"), ("--file-mb", "-5", "expected 1 to 1000000"),
    ("--min-free-mb", "-1", "expected 0 to 100000000"),
])
def test_numbers_that_make_no_recording_are_refused_in_one_line(capsys, option, value, words):
    from omni_ros.cli import main

    assert main.main(["record", "bag", f"{option}={value}"]) == 2
    err = capsys.readouterr().err
    assert f"{option} {value}: {words}" in err and err.count("\n") == 1


def test_a_definition_holds_the_types_inside_of_a_type(tmp_path):
    share = {"a": tmp_path / "a", "b": tmp_path / "b"}
    for package, name, content in (
            ("a", "Outer", "Inner[<=3] many\nb/Other one\nuint8 K=1  # Not a field\nstring<=5 s\n"),
            ("a", "Inner", "float64[3] x\n"), ("b", "Other", "int32 y\n")):
        (share[package] / "msg").mkdir(parents=True, exist_ok=True)
        (share[package] / "msg" / f"{name}.msg").write_text(content)
    found = full_definition("a/msg/Outer", share.__getitem__)
    assert found.count("=" * 80) == 2
    assert "MSG: a/Inner\nfloat64[3] x" in found and "MSG: b/Other\nint32 y" in found
