# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The `speak` action: goals to requests, news to feedback and results.

A goal ends some time after it was taken, by what another thread did. rclpy's coroutines would have the
executor go round and round until then, so nothing runs for a goal while it is spoken; when it has ended,
its execution does nothing but give the result.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import GoalEvent, ServerGoalHandle
from rclpy.lifecycle import LifecycleNode

from action_msgs.msg import GoalStatus
from omni_ros.action import Speak
from omni_ros.nodes._support import duration_message
from omni_ros.speech.queue import Refused, Request, Result
from omni_ros.speech.queue_desk import Desk
from omni_ros.speech.queue_run import News

#: Seconds that a result is kept for a client that asks late.
RESULT_KEPT_S = 30
#: Seconds that a result is on its way at most: one whose sender is gone by then is thrown away.
ON_ITS_WAY_S = 0.3


class SpeakGoals:
    """Serves the action from configure to cleanup."""

    def __init__(self, node: LifecycleNode) -> None:
        self._node = node
        self.desk: Desk | None = None  # while the node is active
        self._handles: dict[bytes, ServerGoalHandle] = {}
        self._shown: dict[bytes, tuple] = {}
        self._told = -ON_ITS_WAY_S  # when the last result was sent, by the monotonic clock
        self._server = ActionServer(
            node, Speak, "speak", self._never, goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted, cancel_callback=self._on_cancel,
            result_timeout=RESULT_KEPT_S)

    def destroy(self) -> None:
        self.arrive()
        self._server.destroy()

    def arrive(self) -> None:
        """Wait until a result that was sent just now is there: of an answer nobody can tell."""
        time.sleep(max(0.0, self._told + ON_ITS_WAY_S - time.monotonic()))

    def _never(self, handle: ServerGoalHandle) -> Speak.Result:
        raise AssertionError("a goal was executed without a result")

    def _on_goal(self, goal: Speak.Goal) -> GoalResponse:
        if self.desk is None:
            self._node.get_logger().warning(
                "a goal was rejected: the node is not active", throttle_duration_sec=5.0)
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: ServerGoalHandle) -> None:
        goal, key = handle.request, bytes(handle.goal_id.uuid)
        self._handles[key] = handle
        request = Request(
            key, goal.text, goal.voice, goal.rate, goal.volume, goal.priority,
            goal.more_text_follows, goal.utterance_id, time.monotonic_ns())
        try:
            if self.desk is None:
                raise Refused("the node is not active")
            self.desk.take(request)
        except Refused as refusal:
            self._node.get_logger().warning(f"a goal is refused: {refusal}",
                                            throttle_duration_sec=1.0)
            self.tell(News(key, Result.REFUSED, str(refusal), "", 0, 0.0, 0.0))

    def _on_cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        if self.desk is not None:
            self.desk.cancel(bytes(handle.goal_id.uuid))
        return CancelResponse.ACCEPT

    def tell(self, news: News) -> bool:
        """Publish what became of a goal; whether it is one of this action."""
        handle = self._handles.get(news.key)
        if handle is None:
            return False
        if news.result is not None:
            del self._handles[news.key]
            self._shown.pop(news.key, None)
            self._end(handle, news)
            return True
        if handle.status == GoalStatus.STATUS_ACCEPTED:
            handle._update_state(GoalEvent.EXECUTE)  # `execute` would call for a result now
        shown = news.speaking, news.characters, bool(news.first_s)
        if self._shown.get(news.key) != shown:
            self._shown[news.key] = shown
            handle.publish_feedback(Speak.Feedback(
                speaking=news.speaking, characters_spoken=news.characters,
                first_audio_latency=duration_message(round(news.first_s * 1e9))))
        return True

    def _end(self, handle: ServerGoalHandle, news: News) -> None:
        result = Speak.Result(
            result=int(news.result), message=news.text, characters_spoken=news.characters,
            audio_duration=duration_message(round(news.audio_s * 1e9)),
            first_audio_latency=duration_message(round(news.first_s * 1e9)))

        def conclude(handle: Any) -> Speak.Result:
            if handle.is_cancel_requested:
                handle.canceled()
            elif news.result is Result.SPOKEN:
                handle.succeed()
            else:
                handle.abort()
            return result

        if handle.status == GoalStatus.STATUS_ACCEPTED:
            handle._update_state(GoalEvent.EXECUTE)
        # Now and here: the executor, which `execute` would leave it to, may not come to it any more.
        self._server._result_futures[bytes(handle.goal_id.uuid)]._set_executor(None)
        try:
            self._server._execute_goal(conclude, handle).send(None)
        except StopIteration:
            self._told = time.monotonic()
