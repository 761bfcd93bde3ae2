# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What can happen to a link, and the state that each of it leads to."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
import time

import numpy as np
import pytest

from omni_ros.openpi import exchange, linking
from omni_ros.openpi.client import RemotePolicy
from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.states import Reason, State
from omni_ros.openpi.wire import pack

from .conftest import ACTIONS, failed, quick, reply, until


async def steady(link, number):
    """A server that answers at once."""
    await link.send(pack({}))
    async for _ in link:
        await link.send(reply())


def test_nothing_happens_before_the_start(serve):
    server = serve(steady)
    policy = RemotePolicy(quick(server.url))
    assert policy.status().state is State.OFF and server.connections == 0


def test_a_link_goes_from_connecting_over_warming_to_active_and_off(serve, remote):
    events = []
    server = serve(steady)
    policy = RemotePolicy(quick(server.url), on_event=lambda: events.append(policy.status().state))
    policy.start()
    assert policy.status().state in (State.CONNECTING, State.WARMING)
    until(lambda: policy.status().state is State.WARMING)
    policy.ask({}, 20)
    assert policy.status().state is State.ACTIVE
    policy.stop()
    assert policy.status().state is State.OFF
    assert [s for i, s in enumerate(events) if s not in events[:i]] == [
        State.WARMING, State.ACTIVE, State.OFF]  # fmt: skip


def test_a_stopped_client_can_be_started_again(serve, remote):
    policy = remote(serve(steady).url)
    policy.ask({}, 20)
    policy.stop()
    policy.start()
    assert policy.ask({}, 20).code == "good"


def test_a_stop_in_the_moment_in_which_a_connection_is_there_ends_the_thread(
        serve, remote, monkeypatch):
    """asyncio.wait_for swallows a cancellation then, before Python 3.12."""
    opening, real = threading.Event(), linking.open_connection

    async def swallow(settings):
        opening.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return await real(settings)

    monkeypatch.setattr(linking, "open_connection", swallow)
    policy = remote(serve(steady).url)
    assert opening.wait(20)
    thread = policy._thread
    policy.stop()
    thread.join(20)
    assert not thread.is_alive() and policy.state is State.OFF


def test_a_stop_in_the_moment_in_which_a_link_ends_ends_the_thread(serve, remote, monkeypatch):
    """Which of both is seen first must not matter: the server ends as the client is stopped."""
    ending = threading.Event()

    class Slow(exchange.Exchange):
        async def run(self, *, warm):
            reason = Reason("restart", "the server restarts")
            ending.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
            return reason

    monkeypatch.setattr(linking, "Exchange", Slow)
    policy = remote(serve(steady).url)
    assert ending.wait(20)
    thread = policy._thread
    policy.stop()
    thread.join(20)
    assert not thread.is_alive() and policy.state is State.OFF


def test_a_name_that_is_not_found(remote, monkeypatch):
    def nowhere(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert "'gpu.invalid' is not found" in failed(remote("ws://gpu.invalid:8000"), "dns")


def test_a_resolver_that_hangs_holds_nothing_up(remote, monkeypatch):
    hang = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **o: hang.wait(60) and [])
    policy = remote(quick("ws://gpu.invalid:8000", connect_timeout_s=0.1))
    failed(policy, "connect_timeout")
    began = time.monotonic()
    policy.stop()
    assert policy._thread is None and time.monotonic() - began < 30
    hang.set()


def test_a_second_address_is_tried_where_the_first_swallows_packets(serve, remote, monkeypatch):
    real = socket.getaddrinfo

    def two(host, port, **options):
        if host != "two.invalid":
            return real(host, port, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
                for address in ("192.0.2.1", "127.0.0.1")]  # the first is for documentation only

    monkeypatch.setattr(socket, "getaddrinfo", two)
    policy = remote(quick(f"ws://two.invalid:{serve(steady).port}", connect_timeout_s=2.0))
    assert policy.ask({}, 60).code == "good"


def test_a_servers_own_pings_are_answered(serve, remote):
    async def slow(link, number):
        await link.send(pack({}))
        async for _ in link:
            await asyncio.sleep(0.6)
            await link.send(reply())

    server = serve(slow, ping_interval=0.1, ping_timeout=5.0)
    policy = remote(server.url)
    policy.ask({}, 20)
    time.sleep(0.3)
    assert policy.ask({}, 20).code == "good" and server.connections == 1


def test_a_port_that_nobody_listens_on(remote, free_port):
    policy = remote(f"ws://127.0.0.1:{free_port}")
    assert f"nobody listens on 127.0.0.1:{free_port}" in failed(policy, "refused")
    until(lambda: policy.status().counters["failed_connects"] >= 3)  # it goes on trying


def test_a_server_that_comes_later_is_found(serve, remote, free_port):
    policy = remote(f"ws://127.0.0.1:{free_port}")
    failed(policy, "refused")
    serve(steady, port=free_port)
    until(lambda: policy.state is State.WARMING)
    assert policy.ask({}, 20).code == "good"


@pytest.mark.parametrize(("status", "code"), [(403, "path"), (404, "path"), (401, "auth"),
                                              (503, "full"), (500, "http"), (200, "path")])  # fmt: skip
def test_an_upgrade_that_is_refused(serve, remote, status, code):
    server = serve(steady, process_request=lambda link, request: link.respond(status, "no\n"))
    assert str(status) in failed(remote(server.url), code)


def test_a_redirect_is_not_followed(serve, remote):
    other = serve(steady)

    def elsewhere(link, request):
        response = link.respond(302, "")
        response.headers["Location"] = other.url + "/"
        return response

    policy = remote(serve(steady, process_request=elsewhere).url)
    assert "sends elsewhere" in failed(policy, "http") and other.connections == 0


def test_a_client_can_be_stopped_by_what_it_tells(serve):
    server = serve(steady)
    policy = RemotePolicy(quick(server.url), on_event=lambda: policy.stop())
    policy.start()
    until(lambda: policy.state is State.OFF)


def test_a_server_that_is_not_a_web_server(remote):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def greet():
            link, _ = listener.accept()
            link.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            link.recv(4096)
            link.close()

        threading.Thread(target=greet, daemon=True).start()
        failed(remote(f"ws://127.0.0.1:{listener.getsockname()[1]}"), "http")


def test_a_server_busy_with_another_client_is_given_up_on(remote):
    """Field case: a server that computes in its event loop answers no second client meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        policy = remote(quick(url, connect_timeout_s=0.2))
        assert "may be busy with another client" in failed(policy, "connect_timeout")
        policy.request({}, deadline=time.monotonic() + 0.1)  # asking takes no time, all the same
        until(lambda: policy.status().counters["timed_out"] == 1)


@pytest.mark.parametrize("message", ["hello", b"\xc1", b"", pack([1, 2]), pack(np.zeros(3))])
def test_a_first_message_that_is_no_metadata(serve, remote, message):
    async def handle(link, number):
        await link.send(message)
        await link.wait_closed()

    failed(remote(serve(handle).url), "not_openpi")


def test_a_server_that_says_nothing(serve, remote):
    async def handle(link, number):
        await link.wait_closed()

    policy = remote(quick(serve(handle).url, handshake_timeout_s=0.1))
    assert "is this an OpenPI server?" in failed(policy, "handshake_timeout")


def test_a_slow_first_reply_is_warming_up_and_no_fault(serve, remote):
    """Field case: a first call that takes many times what the later ones take."""
    states = []

    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await asyncio.sleep(1.5)
        await link.send(reply())
        async for _ in link:
            await link.send(reply())

    policy = RemotePolicy(quick(serve(handle).url, remote_timeout_s=0.1, reply_timeout_s=0.3),
                          on_event=lambda: states.append(policy.status().state))  # fmt: skip
    policy.start()
    try:
        until(lambda: policy.state is State.WARMING)
        policy.request({}, deadline=time.monotonic() + 1.0)
        until(lambda: policy.state is State.ACTIVE)
        assert State.DEGRADED not in states
        assert [outcome.code for outcome in policy.outcomes()] == ["late"]  # nothing to play
    finally:
        policy.stop()


def test_a_server_that_never_warms_up_is_left(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.wait_closed()

    policy = remote(quick(serve(handle).url, warm_up_timeout_s=0.2))
    until(lambda: policy.state is State.WARMING)
    policy.request({}, deadline=time.monotonic() + 60)
    failed(policy, "stalled")
    assert policy.status().counters["timed_out"] == 1


def test_a_server_that_stalls_degrades_the_link_and_is_connected_to_anew(serve, remote):
    """Field case: a stall of 45 s, with limits 100 times shorter."""
    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await link.send(reply())
        await link.recv()
        if number > 1:
            await link.send(reply(ACTIONS + 1))
        await link.wait_closed()

    server = serve(handle)
    policy = remote(quick(server.url, remote_timeout_s=0.3, reply_timeout_s=0.6))
    policy.ask({"n": 0}, 20)
    policy.request({"n": 1}, deadline=time.monotonic() + 60)
    assert "no reply for 0.3 s" in failed(policy, "slow")
    failed(policy, "stalled")
    until(lambda: policy.state is State.WARMING)
    assert policy.ask({"n": 2}, 20).code == "good"
    assert server.connections == 2 and policy.status().counters["timed_out"] == 1


def test_a_reply_that_is_only_slow_degrades_and_a_quick_one_mends(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        for delay in (0.0, 2.0, 0.0):
            await link.recv()
            await asyncio.sleep(delay)
            await link.send(reply())
        await link.wait_closed()

    server = serve(handle)
    policy = remote(quick(server.url, remote_timeout_s=0.2))
    policy.ask({}, 20)
    assert (
        policy.ask({}, 20).code == "good"
    )  # the deadline, not remote_timeout_s, says what is late
    assert policy.state is State.DEGRADED and policy.status().reason.code == "slow"
    policy.ask({}, 20)
    assert policy.state is State.ACTIVE and server.connections == 1


def test_a_wire_that_goes_dead_is_noticed_while_a_reply_is_awaited(serve, remote, wire):
    """Field case: the radio is off, and TCP does not know."""
    relay = wire(serve(steady).port)
    policy = remote(
        quick(relay.url, remote_timeout_s=0.2, reply_timeout_s=0.5, connect_timeout_s=0.3)
    )
    policy.ask({}, 20)
    relay.flowing.clear()
    policy.request({"image": np.zeros(3_000_000, np.uint8)}, deadline=time.monotonic() + 60)
    failed(policy, "slow")
    failed(policy, "stalled")
    relay.flowing.set()
    until(lambda: policy.state is State.WARMING)
    assert policy.ask({}, 20).code == "good"


def test_a_wire_that_goes_dead_while_idle_is_noticed_by_pings(serve, remote, wire):
    relay = wire(serve(steady).port)
    policy = remote(
        quick(relay.url, ping_interval_s=0.1, ping_timeout_s=0.2, connect_timeout_s=0.3)
    )
    policy.ask({}, 20)
    relay.flowing.clear()
    failed(policy, "keep_alive")


def test_a_server_that_answers_no_pings_while_it_computes_is_kept(serve, remote):
    """Field case: keep-alive that closes a busy link. openpi's server computes in its event loop."""

    async def handle(link, number):
        await link.send(pack({}))
        async for _ in link:
            time.sleep(0.8)  # noqa: ASYNC251
            await link.send(reply())

    server = serve(handle)
    policy = remote(quick(server.url, ping_interval_s=0.05, ping_timeout_s=0.1))
    assert [policy.ask({"n": n}, 20).code for n in range(2)] == ["good", "good"]
    assert server.connections == 1


def test_a_server_that_answers_and_reads_no_further_is_left(serve, remote):
    """An answer to half a question: nothing more can be asked, and nothing is awaited."""

    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await link.send(reply())
        if number == 1:
            link.transport.pause_reading()
            await asyncio.sleep(0.2)
            await link.send(reply(ACTIONS + 1))
        async for _ in link:
            await link.send(reply())

    policy = remote(quick(serve(handle).url, remote_timeout_s=0.6, reply_timeout_s=0.9,
                          ping_interval_s=0.1, ping_timeout_s=0.1))  # fmt: skip
    policy.ask({"n": 0}, 20)
    policy.request({"image": np.zeros(16_000_000, np.uint8)}, deadline=time.monotonic() + 60)
    assert "does not read on" in failed(policy, "stalled")
    until(lambda: policy.state is State.WARMING)
    assert policy.ask({"n": 1}, 20).code == "good"
    slow = [s for s in policy.history if s.reason.code == "slow" and "read on" in s.reason.text]
    assert slow and slow[0].state is State.DEGRADED


def test_a_close_in_the_middle_of_a_frame(serve, remote, wire):
    server = serve(steady)
    relay = wire(server.port)
    policy = remote(relay.url)
    policy.ask({}, 20)
    relay.limit = 20  # of this many bytes downstream each link dies
    policy.request({}, deadline=time.monotonic() + 60)
    until(lambda: policy.status().counters["lost"] == 1)
    failed(policy, "broken")
    relay.limit = None
    until(lambda: policy.state is State.WARMING)
    assert policy.ask({}, 20).code == "good"


def test_a_reply_of_17_megabytes_is_not_taken(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await link.send(b"\0" * 17_000_000 if number == 1 else reply())
        await link.wait_closed()

    policy = remote(serve(handle).url)
    with pytest.raises(LinkError, match="more than is taken"):
        policy.ask({}, 20)
    failed(policy, "too_big")
    assert policy.ask({}, 20).code == "good"


CLOSES = {1012: "restart", 1001: "restart", 1011: "server_error", 1008: "policy_violation",
          1009: "too_big", 1013: "full", 4000: "broken"}  # fmt: skip


@pytest.mark.parametrize("code", CLOSES)
def test_a_close_with_a_code_degrades_and_is_connected_to_anew(serve, remote, code):
    async def handle(link, number):
        await link.send(pack({}))
        await link.recv()
        await link.send(reply())
        if number == 1:
            await link.close(code, "because")
        else:
            await link.wait_closed()

    events = []
    server = serve(handle)
    policy = RemotePolicy(quick(server.url), on_event=lambda: events.append(policy.status()))
    policy.start()
    try:
        policy.ask({}, 20)
        until(lambda: server.connections == 2)
        reason = next(e.reason for e in events if e.state is State.DEGRADED)
        assert reason.code == CLOSES[code] and str(code) in reason.text and "because" in reason.text
        until(lambda: policy.state is State.WARMING)
        assert policy.ask({}, 20).code == "good"
    finally:
        policy.stop()


def test_a_close_of_an_idle_link_is_no_fault(serve, remote):
    states = []

    async def handle(link, number):
        await link.send(pack({"mean": np.zeros(3), "takes": [np.zeros(2)], "echoes": [np.zeros(2)]}))
        await link.recv()
        await link.send(reply())
        if number == 1:
            await asyncio.sleep(1.2)
            await link.close(1000)
        else:
            await link.wait_closed()

    server = serve(handle)
    policy = RemotePolicy(quick(server.url), on_event=lambda: states.append(policy.status().state))
    policy.start()
    try:
        policy.ask({}, 20)
        until(lambda: server.connections == 2)
        until(lambda: policy.state is State.ACTIVE)  # it has answered before: no warming up
        assert State.DEGRADED not in states
    finally:
        policy.stop()


def test_a_server_that_closes_at_once_is_backed_off_from(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.close(1000)

    server = serve(handle)
    policy = remote(quick(server.url, backoff_s=0.2, backoff_max_s=100.0))
    failed(policy, "closed")
    time.sleep(0.5)
    assert server.connections < 6


def test_the_wait_between_tries_grows_to_its_limit_with_jitter(remote, free_port, monkeypatch):
    delays, real = [], asyncio.sleep

    async def sleep(delay, *rest):
        delays.append(delay)
        await real(0)

    monkeypatch.setattr("omni_ros.openpi.linking.asyncio.sleep", sleep)
    policy = remote(quick(f"ws://127.0.0.1:{free_port}", backoff_s=0.5, backoff_max_s=6.0))
    until(lambda: len(delays) >= 6)
    policy.stop()
    assert delays[:6] == [0.375, 0.75, 1.5, 3.0, 4.5, 4.5]  # 0.75 of 0.5, 1, 2, 4, 6, 6


def test_a_leap_of_the_wall_clock_changes_nothing(serve, remote, monkeypatch):
    policy = remote(serve(steady).url)
    policy.ask({}, 20)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: 4 * 10**18)
    assert policy.ask({}, 20).code == "good" and policy.state is State.ACTIVE


def test_what_was_asked_is_lost_when_the_client_is_stopped(serve, remote):
    async def handle(link, number):
        await link.send(pack({}))
        await link.wait_closed()

    policy = remote(serve(handle).url)
    until(lambda: policy.state is State.WARMING)
    policy.request({}, deadline=time.monotonic() + 60)
    until(lambda: policy.status().waiting)
    policy.stop()
    assert [outcome.code for outcome in policy.outcomes()] == ["lost"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate for localhost that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem"], check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def secure(serve, certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    return serve(steady, ssl=context)


def test_a_server_of_a_private_authority_is_reached_with_its_certificate(
    secure, remote, certificates
):
    url = f"wss://localhost:{secure.port}"
    policy = remote(quick(url, ca_file=str(certificates / "cert.pem")))
    assert policy.ask({}, 20).code == "good"


def test_a_certificate_that_nobody_vouches_for_is_refused(secure, remote):
    assert "remote.ca_file" in failed(remote(f"wss://localhost:{secure.port}"), "tls")


def test_a_certificate_of_another_name_is_refused(secure, remote, certificates):
    policy = remote(quick(f"wss://127.0.0.1:{secure.port}", ca_file=str(certificates / "cert.pem")))
    failed(policy, "tls")


def test_a_server_without_tls_is_not_taken_for_one_with(serve, remote):
    failed(remote(f"wss://127.0.0.1:{serve(steady).port}"), "tls")


def test_a_certificate_file_that_is_not_there_is_named(remote, tmp_path):
    policy = remote(quick("wss://127.0.0.1:1", ca_file=str(tmp_path / "none.pem")))
    assert "none.pem" in failed(policy, "settings")
