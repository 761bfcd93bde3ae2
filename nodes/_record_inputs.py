# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the recorder hears: topics as bytes, with the best quality of service that all publishers give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from omni_ros.nodes._polled import PolledSubscription
from omni_ros.replay.recording_topics import Topic, full_definition, known_hash, qos_entry

#: Messages of each topic that the middleware keeps while the recorder is not looked after.
DEPTH, PICTURES_DEPTH = 512, 16
#: Messages remembered where a topic is listened to twice.
REMEMBERED = 2048


@dataclass(frozen=True)
class Heard:
    """A serialised message. :param came_ns, sent_ns: by the machines' wall clocks, 0 if unknown."""

    data: bytes
    came_ns: int
    sent_ns: int


class _RawSubscription(PolledSubscription):
    """Messages as they were sent, with what the middleware says of them."""

    def take_raw(self, most: int) -> Iterator[tuple[bytes, dict]]:
        handle = self._subscription.handle
        with handle:
            for _ in range(most):
                taken = handle.take_message(self._subscription.msg_type, True)
                if taken is None:
                    return
                yield taken


class RawInput:
    """One topic of the graph.

    :ivar gaps: messages that were sent and did not come, as far as the middleware's numbers tell.
    """

    def __init__(self, node: Node, role: str, topic: str, kind: Any, *, latched: bool = False,
                 twice: bool = False, depth: int = DEPTH) -> None:
        """
        :param latched: late joiners get the last message. :param twice: publishers that are not
            latched are to be heard as well.
        """
        self.role, self.name = role, node.resolve_topic_name(topic)
        self.gaps = self.received = 0
        self._node, self._kind, self._depth = node, kind, depth
        self._ears: list[_RawSubscription] = []
        self._seen: dict[tuple[int, int], None] = {}
        self._last: dict[int, int] = {}
        self._only_one = False
        self._wanted = [(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)] if latched else []
        if not latched or twice:
            self._wanted.append((ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE))
        self._twice = twice
        for reliability, durability in self._wanted:
            self._listen(reliability, durability)
        self.look()

    def _listen(self, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> None:
        self._ears.append(_RawSubscription(self._node, self._kind, self.name, QoSProfile(
            depth=self._depth, history=HistoryPolicy.KEEP_LAST, reliability=reliability,
            durability=durability)))

    def look(self) -> None:
        """See who publishes: one that is not reliable is heard only without asking for it."""
        publishers = self._node.get_publishers_info_by_topic(self.name)
        self._only_one = len(publishers) == 1
        if (self._wanted[-1][0] == ReliabilityPolicy.RELIABLE and any(
                info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for info in publishers)):
            self._wanted[-1] = ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE
            # What the reliable one has heard is still to be taken; then it is of no more use.
            self._listen(*self._wanted[-1])
            self._twice = True

    def take(self, most: int = 1024) -> Iterator[Heard]:
        """Yield what has come, oldest first."""
        for number, ear in enumerate(list(self._ears)):
            for data, info in ear.take_raw(most):
                sent_ns = int(info.get("source_timestamp") or 0)
                if self._twice:
                    key = sent_ns, hash(data)
                    if key in self._seen:
                        continue
                    self._seen[key] = None
                    if len(self._seen) > REMEMBERED:
                        del self._seen[next(iter(self._seen))]
                self._count(number, info.get("publication_sequence_number"))
                self.received += 1
                yield Heard(data, int(info.get("received_timestamp") or 0), sent_ns)

    def _count(self, ear: int, sequence: int | None) -> None:
        """Several publishers count each for itself, and are not told apart here."""
        if not sequence or self._twice or not self._only_one:
            self._last.pop(ear, None)
            return
        last = self._last.get(ear)
        if last is not None and sequence > last + 1:
            self.gaps += sequence - last - 1
        self._last[ear] = sequence

    def describe(self, share) -> Topic:
        """Return the topic for the bag. :param share: gives the share folder of a package."""
        package, group, name = _interface(self._kind)
        kind = f"{package}/{group}/{name}"
        publishers = self._node.get_publishers_info_by_topic(self.name)
        offered = {(info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
                    info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL)
                   for info in publishers} or {
            (True, self._wanted[0][1] == DurabilityPolicy.TRANSIENT_LOCAL)}
        return Topic(self.name, kind, full_definition(kind, share), known_hash(kind, share),
                     tuple(qos_entry(reliable=reliable, latched=latched)
                           for reliable, latched in sorted(offered)))

    def destroy(self) -> None:
        for ear in self._ears:
            ear.destroy()


def _interface(kind: Any) -> list[str]:
    """Package, group and name of a message class."""
    parts = kind.__module__.split(".")
    return [*parts[:2], kind.__name__]


def own_topic(node: Node, name: str, kind: Any, share, *, latched: bool) -> Topic:
    """Return a topic that the recorder itself writes."""
    package, group, short = _interface(kind)
    full = f"{package}/{group}/{short}"
    return Topic(node.resolve_topic_name(name), full, full_definition(full, share),
                 known_hash(full, share), (qos_entry(reliable=True, latched=latched, depth=1),))
