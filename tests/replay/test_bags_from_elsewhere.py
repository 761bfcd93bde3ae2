# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bags of every kind: what can be read is read, what is missing is said, nothing is made up."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace as changed
from pathlib import Path

import numpy as np
import pytest
import yaml

from omni_ros.replay.bag import Bag, BagError
from omni_ros.replay.contents import read_contents
from omni_ros.replay.replaying import Options, replay
from omni_ros.replay.types import UnknownType
from omni_ros.replay.verdict import Kind


def kinds(result) -> list[Kind]:
    return [one.kind for one in result.tally.verdicts]


def texts(result) -> str:
    return "\n".join(problem.text for problem in result.problems)


@pytest.mark.parametrize(("storage", "compression"), [
    ("sqlite3", ""), ("sqlite3", "file"), ("sqlite3", "message"), ("mcap", "storage"),
    ("mcap", "file"), ("mcap", "message")])
def test_either_storage_compressed_in_either_way(session, write_bag, bundle, storage, compression):
    bag = write_bag(session(2), storage=storage, compression=compression)
    result = replay(bag, bundle)
    assert kinds(result) == [Kind.SAME] * 2 and result.overall is Kind.SAME
    assert not result.problems


def test_a_single_file_of_a_bag(recording, bundle):
    file = next(recording.glob("*.mcap"))
    assert replay(file, bundle).overall is Kind.SAME


def test_a_bag_that_was_split_in_the_middle_of_a_chunk(session, write_bag, bundle):
    bag = split(write_bag, session(4))
    result = replay(bag, bundle)
    assert kinds(result) == [Kind.SAME] * 4 and not result.problems


def test_a_file_of_a_split_bag_that_is_gone(session, write_bag, bundle):
    bag = split(write_bag, session(4))
    sorted(bag.glob("*.mcap"))[-1].unlink()
    result = replay(bag, bundle)
    assert result.overall is Kind.INCOMPLETE
    assert "part_1.mcap belongs to the bag and is not there" in texts(result)
    assert Kind.DIFFERENT not in kinds(result) and Kind.SAME in kinds(result)


def split(write_bag, messages) -> Path:
    """Two files of one bag; the pictures of the third chunk in the first, its records in the other."""
    messages = sorted(messages, key=lambda one: one.at)
    at = [one.topic for one in messages].index("/policy_record", int(0.6 * len(messages))) - 1
    bag = write_bag(messages[:at], "part_0")
    other = write_bag(messages[at:], "part_1")
    (other / "part_1.mcap").rename(bag / "part_1.mcap")
    facts, more = (yaml.safe_load((folder / "metadata.yaml").read_text())
                   for folder in (bag, other))
    key = "rosbag2_bagfile_information"
    facts[key]["relative_file_paths"].append("part_1.mcap")
    known = {one["topic_metadata"]["name"] for one in facts[key]["topics_with_message_count"]}
    facts[key]["topics_with_message_count"] += [
        one for one in more[key]["topics_with_message_count"]
        if one["topic_metadata"]["name"] not in known]
    (bag / "metadata.yaml").write_text(yaml.safe_dump(facts))
    return bag


def humble(bag: Path) -> Path:
    """Make an sqlite3 bag what Humble writes: no definitions, no hashes, no word of the ROS."""
    database = sqlite3.connect(next(bag.glob("*.db3")))
    database.executescript(
        "DROP TABLE message_definitions; DROP TABLE schema; DROP TABLE metadata;"
        "ALTER TABLE topics DROP COLUMN type_description_hash;")
    database.commit()
    database.close()
    file = bag / "metadata.yaml"
    facts = yaml.safe_load(file.read_text())["rosbag2_bagfile_information"]
    facts["version"] = 5
    for key in ("ros_distro", "custom_data"):
        facts.pop(key, None)
    for one in facts["topics_with_message_count"]:
        one["topic_metadata"].pop("type_description_hash")
        one["topic_metadata"]["offered_qos_profiles"] = ""
    file.write_text(yaml.safe_dump({"rosbag2_bagfile_information": facts}))
    return bag


def test_a_bag_of_humble_has_no_definitions_and_is_read_by_those_of_here(session, write_bag, bundle):
    result = replay(humble(write_bag(session(2), storage="sqlite3")), bundle)
    assert kinds(result) == [Kind.SAME] * 2 and not result.problems


def test_a_bag_of_humble_without_our_records(session, write_bag, bundle, robot_file):
    bag = humble(write_bag(session(2, records=False, all_pictures=True), storage="sqlite3"))
    result = replay(bag, bundle, options=Options(robot=robot_file))
    assert kinds(result) == [Kind.SAME] * 2 and result.derived


def set_hashes(bag: Path, kind: str, value: str) -> Path:
    file = bag / "metadata.yaml"
    facts = yaml.safe_load(file.read_text())
    for one in facts["rosbag2_bagfile_information"]["topics_with_message_count"]:
        if one["topic_metadata"]["type"] == kind:
            one["topic_metadata"]["type_description_hash"] = value
    file.write_text(yaml.safe_dump(facts))
    return bag


def test_hashes_of_jazzy_are_checked_where_the_bag_has_no_definition(session, write_bag):
    bag = write_bag(session(1), storage="sqlite3")
    database = sqlite3.connect(next(bag.glob("*.db3")))
    database.execute("DELETE FROM message_definitions WHERE topic_type LIKE '%/ActionChunk'")
    database.execute("UPDATE topics SET type_description_hash = 'RIHS01_00' "
                     "WHERE type LIKE '%/ActionChunk'")
    database.commit()
    database.close()
    set_hashes(bag, "omni_ros/msg/ActionChunk", "RIHS01_00")
    with Bag(bag) as opened:
        contents = read_contents(opened)
        assert not contents.chunks
        assert "was recorded by another definition (hash RIHS01_00" in opened.problems[-1].text


def test_a_definition_that_is_not_the_hashs_is_used_and_said(recording, bundle, tmp_path):
    import shutil

    bag = Path(shutil.copytree(recording, tmp_path / "bag"))
    set_hashes(bag, "omni_ros/msg/ActionChunk", "RIHS01_00")
    result = replay(bag, bundle)
    assert result.overall is Kind.SAME
    assert "the definition in the bag is not the one that its hash is of" in texts(result)


def test_a_type_of_another_package_is_read_by_the_definition_in_the_bag(session, tmp_path):
    """A chunk of an older version had fewer fields, and another package has types nobody knows."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg("string what\nfloat32[3] much\n", "strange_msgs/msg/Thing"))
    kind = store.types["strange_msgs/msg/Thing"]
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/strange", "strange_msgs/msg/Thing", typestore=store)
        thing = kind(what="x", much=np.array([1, 2, 3], np.float32))
        writer.write(connection, 5, bytes(store.serialize_cdr(thing, "strange_msgs/msg/Thing")))
    with Bag(tmp_path / "bag") as bag:
        entry = bag.load({"/strange"})[0]
        assert bag.decode(entry).much[2] == 3.0


def test_a_type_that_nobody_defines_is_named_and_does_no_harm(session, write_bag, bundle):
    bag = write_bag(session(1), storage="sqlite3")
    database = sqlite3.connect(next(bag.glob("*.db3")))
    database.execute("INSERT INTO topics SELECT 99, '/strange', 'strange_msgs/msg/Thing', "
                     "serialization_format, offered_qos_profiles, '' FROM topics LIMIT 1")
    database.execute("INSERT INTO messages SELECT NULL, 99, timestamp, data FROM messages LIMIT 3")
    database.commit()
    database.close()
    assert replay(bag / "bag.db3", bundle).overall is Kind.SAME
    with Bag(bag / "bag.db3") as opened:
        entry = opened.load({"/strange"})[0]
        with pytest.raises(UnknownType, match="strange_msgs/msg/Thing is in no definition"):
            opened.decode(entry)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_truncated_file_is_read_as_far_as_it_goes(session, write_bag, bundle, storage):
    bag = write_bag(session(6), storage=storage)
    file = next(bag.glob("*.mcap" if storage == "mcap" else "*.db3"))
    file.write_bytes(file.read_bytes()[:int(file.stat().st_size * 0.6)])
    result = replay(bag, bundle)
    assert kinds(result)[0] is Kind.SAME and Kind.DIFFERENT not in kinds(result)
    assert 0 < len(kinds(result)) < 6
    assert "is cut off" in texts(result) and "was the recorder killed" in texts(result) or (
        "is cut off or damaged" in texts(result))


def test_a_truncated_file_that_is_compressed(session, write_bag, bundle):
    bag = write_bag(session(6), compression="file")
    file = next(bag.glob("*.zstd"))
    file.write_bytes(file.read_bytes()[:int(file.stat().st_size * 0.7)])
    result = replay(bag, bundle)
    assert kinds(result)[0] is Kind.SAME and Kind.DIFFERENT not in kinds(result)
    assert "cut off" in texts(result)


def in_chunks(store, messages, path: Path) -> Path:
    """An MCAP file as other recorders write it: in many compressed chunks, each with a checksum."""
    writing = pytest.importorskip("mcap.writer")
    with path.open("wb") as file:
        writer = writing.Writer(file, chunk_size=32_000, enable_crcs=True,
                                compression=writing.CompressionType.ZSTD)
        writer.start(profile="ros2", library="test")
        channels = {}
        for one in sorted(messages, key=lambda one: one.at):
            if one.topic not in channels:
                text, _ = store.generate_msgdef(one.kind, ros_version=2)
                schema = writer.register_schema(one.kind, "ros2msg", text.encode())
                channels[one.topic] = writer.register_channel(one.topic, "cdr", schema)
            data = bytes(store.serialize_cdr(one.value, one.kind))
            writer.add_message(channels[one.topic], one.at, data, one.at)
        writer.finish()
    return path


def test_an_mcap_file_in_chunks(session, store, tmp_path, bundle):
    result = replay(in_chunks(store, session(3), tmp_path / "bag.mcap"), bundle)
    assert kinds(result) == [Kind.SAME] * 3 and not result.problems


def test_a_chunk_that_is_damaged_leaves_a_gap_that_is_said(session, store, tmp_path, bundle):
    file = in_chunks(store, session(6), tmp_path / "bag.mcap")
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle:middle + 8] = bytes(byte ^ 0x55 for byte in content[middle:middle + 8])
    file.write_bytes(bytes(content))
    result = replay(file, bundle)
    assert result.overall is Kind.INCOMPLETE and "has a damaged chunk after" in texts(result)
    assert Kind.SAME in kinds(result) and Kind.DIFFERENT not in kinds(result)


@pytest.mark.parametrize("named", ["packed", "plain", "neither"])
def test_a_file_that_was_unpacked_beside_the_packed_one_is_not_read_twice(
        session, write_bag, bundle, named):
    from omni_ros.replay.bag_salvage import zstd_module

    bag = write_bag(session(2))
    plain, = bag.glob("*.mcap")
    plain.with_name(plain.name + ".zstd").write_bytes(zstd_module().compress(plain.read_bytes()))
    facts = bag / "metadata.yaml"
    if named == "packed":
        facts.write_text(facts.read_text().replace(plain.name, plain.name + ".zstd"))
    elif named == "neither":
        facts.unlink()
    (bag / f"._{plain.name}").write_bytes(b"left by another file system")
    result = replay(bag, bundle)
    assert kinds(result) == [Kind.SAME] * 2 and result.overall is Kind.SAME


def test_a_bag_that_lost_its_metadata(session, write_bag, bundle):
    bag = write_bag(session(2))
    (bag / "metadata.yaml").unlink()
    result = replay(bag, bundle)
    assert result.overall is Kind.SAME and "metadata.yaml is missing" in texts(result)


@pytest.mark.parametrize("content", ["", "a: [", "rosbag2_bagfile_information: 3\n", "\x00\xff"])
def test_a_bag_whose_metadata_is_no_metadata(session, write_bag, bundle, content):
    bag = write_bag(session(1))
    (bag / "metadata.yaml").write_text(content, encoding="latin-1")
    result = replay(bag, bundle)
    assert result.overall is Kind.SAME and "metadata.yaml cannot be read" in texts(result)


@pytest.mark.parametrize(("make", "words"), [
    (lambda folder: folder / "nothing", "there is no bag"),
    (lambda folder: folder, "it is no bag"),
    (lambda folder: (folder / "x.bag").write_bytes(b"#ROSBAG V2.0\n") and folder / "x.bag",
     "is no bag: expected a folder, or a file that ends in .mcap or .db3"),
    (lambda folder: (folder / "x.mcap").write_bytes(b"hello") and folder / "x.mcap",
     "nothing in it can be read"),
    (lambda folder: (folder / "x.db3").touch() or folder / "x.db3", "nothing in it can be read"),
])
def test_what_is_no_bag_is_refused_in_one_line(tmp_path, bundle, make, words):
    with pytest.raises(BagError, match=words):
        replay(make(tmp_path), bundle)


def test_a_bag_without_chunks_says_what_it_holds(session, write_bag, bundle):
    bag = write_bag([one for one in session(1) if one.topic == "/joint_states"])
    with pytest.raises(BagError, match=r"holds no omni_ros/msg/ActionChunk.*It holds /joint_states"):
        replay(bag, bundle)


@pytest.mark.parametrize(("topic", "words"), [
    ("/wrist/image_raw", "any picture of camera2: its topic is not in the bag"),
    ("/joint_states", "joint states of shoulder_pan, shoulder_lift"),
    ("/instruction", "the instruction: give it by --instruction"),
])
def test_a_topic_that_is_missing_is_named_for_each_chunk(
        session, write_bag, bundle, robot_file, topic, words):
    messages = session(2, records=False, all_pictures=True)
    bag = write_bag([one for one in messages if one.topic != topic])
    result = replay(bag, bundle, options=Options(robot=robot_file))
    assert kinds(result) == [Kind.INCOMPLETE] * 2 and result.overall is Kind.INCOMPLETE
    assert words in result.tally.verdicts[0].text and words in result.missing[0]


def test_a_sentence_that_was_not_recorded_can_be_given(session, write_bag, bundle, robot_file):
    messages = session(2, records=False, all_pictures=True)
    bag = write_bag([one for one in messages if one.topic != "/instruction"])
    options = Options(robot=robot_file, instruction="touch the red block")
    assert replay(bag, bundle, options=options).overall is Kind.SAME


def test_a_bag_that_says_nothing_of_its_robot_asks_for_it(bare_recording, bundle):
    with pytest.raises(ValueError, match="does not say which robot .* give its YAML by --robot"):
        replay(bare_recording, bundle)


def test_equal_time_stamps_in_any_order_of_storage_give_the_same(
        session, write_bag, bundle, robot_file):
    """All that was recorded within a beat has one time, and lies in the file as it happens to."""
    messages = session(3, records=False, all_pictures=True)
    at = {one.at // 8_000_000 for one in messages}
    assert len(at) < len(messages)
    equal = [changed(one, at=one.at // 8_000_000 * 8_000_000) for one in messages]
    for seed in range(3):
        random.Random(seed).shuffle(equal)
        bag = write_bag(equal, f"bag{seed}", storage=("mcap", "sqlite3")[seed % 2], in_order=False)
        result = replay(bag, bundle, options=Options(robot=robot_file))
        assert kinds(result) == [Kind.SAME] * 3


def test_two_pictures_of_one_stamp_are_told_apart_by_their_digests(session, write_bag, bundle):
    messages = session(2)
    image = next(one for one in messages if one.topic == "/front/image_raw")
    other = changed(image, value=changed(image.value, data=image.value.data[::-1].copy()))
    for number, more in enumerate(([other, *messages], [*messages, other])):
        bag = write_bag(more, f"bag{number}", in_order=False)
        assert replay(bag, bundle).overall is Kind.SAME


def test_two_pictures_of_one_stamp_without_digests_are_not_guessed_between(
        session, write_bag, bundle, robot_file):
    messages = session(2, records=False, all_pictures=True)
    image = next(one for one in messages if one.topic == "/front/image_raw")
    other = changed(image, value=changed(image.value, data=image.value.data[::-1].copy()))
    result = replay(write_bag([*messages, other]), bundle, options=Options(robot=robot_file))
    assert kinds(result) == [Kind.INCOMPLETE, Kind.SAME]
    assert "which one of 2 different pictures of camera1" in result.missing[0]


def test_a_picture_that_is_there_twice_is_no_trouble(session, write_bag, bundle, robot_file):
    messages = session(2, records=False, all_pictures=True)
    images = [one for one in messages if one.topic == "/front/image_raw"]
    result = replay(write_bag([*messages, *images]), bundle, options=Options(robot=robot_file))
    assert result.overall is Kind.SAME


def test_pictures_as_png_are_the_same_pictures(session, store, write_bag, bundle):
    """What was recorded raw may be kept compressed, as long as no byte of a pixel changes."""
    cv2 = pytest.importorskip("cv2")
    kind = "sensor_msgs/msg/CompressedImage"
    messages = []
    for one in session(2):
        if one.kind == "sensor_msgs/msg/Image":
            pixels = one.value.data.reshape(one.value.height, one.value.width, 3)[:, :, ::-1]
            png = cv2.imencode(".png", pixels)[1].ravel()
            one = changed(one, kind=kind, value=store.types[kind](one.value.header, "png", png))
        messages.append(one)
    result = replay(write_bag(messages), bundle)
    assert kinds(result) == [Kind.SAME] * 2


def test_chunks_of_others_are_counted_and_passed_over(session, write_bag, bundle):
    messages = session(2)
    chunk = next(one for one in messages if one.topic == "/action_chunk")
    other = changed(chunk, value=changed(chunk.value, source="openpi:host:8000"), at=chunk.at + 1)
    result = replay(write_bag([*messages, other]), bundle)
    assert result.overall is Kind.SAME
    assert result.passed_over == ["1 chunks of openpi:host:8000"]


def test_two_policies_in_one_bag_are_told_apart_by_their_namespace(
        session, write_bag, bundle, robot_file):
    messages = session(1, records=False, all_pictures=True)
    both = [changed(one, topic=f"/{side}{one.topic}") for one in messages for side in ("left", "right")]
    bag = write_bag(both)
    with pytest.raises(BagError, match="say which one by --namespace"):
        replay(bag, bundle, options=Options(robot=robot_file))
    result = replay(bag, bundle, options=Options(robot=robot_file, namespace="right"))
    assert result.overall is Kind.SAME


def test_a_message_that_cannot_be_read_leaves_a_gap_that_is_said(session, write_bag, bundle):
    bag = write_bag(session(3), storage="sqlite3")
    database = sqlite3.connect(next(bag.glob("*.db3")))
    database.execute(
        "UPDATE messages SET data = substr(data, 1, 40) WHERE id = (SELECT max(messages.id) FROM "
        "messages JOIN topics ON topics.id = topic_id WHERE name = '/action_chunk')")
    database.commit()
    database.close()
    result = replay(bag, bundle)
    assert kinds(result) == [Kind.SAME] * 2 and result.overall is Kind.INCOMPLETE
    assert "1 of 3 messages of /action_chunk cannot be read" in texts(result)
    assert "chunk 3, stamped" in result.missing[0]
