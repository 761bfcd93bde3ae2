# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`metadata.yaml` of a rosbag2 bag.

Of version 8: the newest that Humble reads as well as Jazzy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from omni_ros.replay.recording_topics import Topic

VERSION = 8
NAME = "metadata.yaml"


@dataclass
class BagFile:
    """One file of a bag, as far as it is on the disk."""

    name: str
    size: int = 0
    start_ns: int = 0
    end_ns: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, topic: str, log_ns: int, count: int = 1) -> None:
        """Count messages that were received at a time."""
        self.start_ns = min(self.start_ns, log_ns) if self.counts else log_ns
        self.end_ns = max(self.end_ns, log_ns)
        self.counts[topic] = self.counts.get(topic, 0) + count

    @property
    def count(self) -> int:
        return sum(self.counts.values())


def write_metadata(folder: Path, files: Sequence[BagFile], topics: Sequence[Topic]) -> None:
    """Write it whole or not at all. :raises OSError: it cannot be; the one before stays."""
    filled = [file for file in files if file.count]
    start = min((file.start_ns for file in filled), default=0)
    end = max((file.end_ns for file in filled), default=start)
    content = {
        "version": VERSION,
        "storage_identifier": "mcap",
        "duration": {"nanoseconds": end - start},
        "starting_time": {"nanoseconds_since_epoch": start},
        "message_count": sum(file.count for file in files),
        "topics_with_message_count": [{
            "topic_metadata": {
                "name": topic.name, "type": topic.type, "serialization_format": "cdr",
                "offered_qos_profiles": topic.qos_text, "type_description_hash": topic.type_hash},
            "message_count": sum(file.counts.get(topic.name, 0) for file in files),
        } for topic in topics],
        "compression_format": "", "compression_mode": "",
        "relative_file_paths": [file.name for file in files],
        "files": [{
            "path": file.name,
            "starting_time": {"nanoseconds_since_epoch": file.start_ns},
            "duration": {"nanoseconds": file.end_ns - file.start_ns},
            "message_count": file.count,
        } for file in files],
        "custom_data": None, "ros_distro": os.environ.get("ROS_DISTRO", ""),
    }
    text = yaml.safe_dump({"rosbag2_bagfile_information": content}, sort_keys=False)
    draft = folder / f".{NAME}"
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, folder / NAME)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
