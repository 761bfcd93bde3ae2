# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Connect, use, say why it ended, wait, connect again: the life of a client's thread."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from .connection import Connection, LinkError, open_connection
from .exchange import Exchange
from .states import Reason, State

if TYPE_CHECKING:
    from .client import RemotePolicy

#: A link that lasted this long and is closed in good order was idle; a shorter one was turned away.
ORDERLY_AFTER_S = 1.0


async def keep_linked(policy: RemotePolicy, ended: threading.Event) -> None:
    """Keep a policy's link up until the task is cancelled.

    :param ended: set before that: what ends at the same moment may swallow a cancellation, as
        `asyncio.wait_for` does before Python 3.12.
    """
    failures, warm = 0, None
    while not ended.is_set():
        connection, orderly = None, False
        try:
            connection = await open_connection(policy.settings)
            if ended.is_set():
                return
            policy.counters.connects += 1
            began = time.monotonic()
            reason, answered = await _use(policy, connection, warm)
            failures = 0 if answered else failures
            # A server that tidies up idle links is not a failing one.
            orderly = reason.code == "closed" and time.monotonic() - began >= ORDERLY_AFTER_S
            known = answered or warm is not None
            warm = connection.said if orderly and known else None
        except LinkError as error:
            policy.counters.failed_connects += 1
            reason, warm = error.reason, None
        except Exception as error:  # a fault here must show, and must not end the thread
            reason, warm = Reason("internal", f"{type(error).__name__}: {error}"), None
        finally:
            # Said before the closing handshake, which a dead peer can draw out.
            if connection is not None and not ended.is_set():
                policy.set_state(State.CONNECTING if orderly else State.DEGRADED, reason)
            if connection is not None:
                await connection.close()
        policy.drop_stale()
        if not orderly and not ended.is_set():
            policy.set_state(State.DEGRADED, reason)
            await _back_off(policy, failures)
            failures += 1


async def _use(
    policy: RemotePolicy, connection: Connection, warm: bytes | None
) -> tuple[Reason, bool]:
    """Use a link to its end; return why it ended, and whether it gave good replies.

    :param warm: what a server said of itself that gave good replies on the link before.
    """
    policy.meet(connection)
    check = policy.check_metadata
    wrong = check(connection.metadata) if check is not None else None
    if wrong:
        return Reason("mapping", wrong), False
    exchange = Exchange(policy, connection, policy.settings, policy.expect)
    reason = await exchange.run(warm=warm == connection.said)
    return reason, exchange.answered


async def _back_off(policy: RemotePolicy, failures: int) -> None:
    settings = policy.settings
    delay = min(settings.backoff_max_s, settings.backoff_s * 2.0 ** min(failures, 30))
    delay *= 0.5 + 0.5 * policy.jitter()
    policy.next_try = time.monotonic() + delay
    await asyncio.sleep(delay)
    policy.next_try = 0.0
