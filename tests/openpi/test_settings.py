# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of both ends: refused where they could not work, or would not be safe."""

from __future__ import annotations

import pytest

from omni_ros.openpi.dialect import VLLM_PATH
from omni_ros.openpi.errors import SettingsError
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.settings import RemoteSettings, is_loopback, read_token, remote_settings


@pytest.mark.parametrize(("url", "urls"), [
    ("ws://gpu:8000", [f"ws://gpu:8000{VLLM_PATH}", "ws://gpu:8000/"]),
    ("ws://gpu:8000/", [f"ws://gpu:8000{VLLM_PATH}", "ws://gpu:8000/"]),
    ("wss://gpu/policy?x=1", ["wss://gpu/policy?x=1"]),
])  # fmt: skip
def test_a_url_without_a_path_stands_for_those_that_servers_have(url, urls):
    assert list(RemoteSettings(url).urls()) == urls


def test_a_known_dialect_needs_one_path():
    assert RemoteSettings("ws://a", dialect="openpi").urls() == ("ws://a/",)
    assert RemoteSettings("ws://a", dialect="vllm").urls() == (f"ws://a{VLLM_PATH}",)


@pytest.mark.parametrize("url", ["gpu:8000", "http://gpu", "ws://", "ws://a:b", "ws://a:99999", "",
                                 "ws://user:pw@gpu", "ws://a/#x", 5])  # fmt: skip
def test_what_is_no_websocket_url_is_refused(url):
    with pytest.raises(SettingsError, match=r"remote\.url"):
        RemoteSettings(url)


@pytest.mark.parametrize("changed", [
    {"remote_timeout_s": 0}, {"remote_timeout_s": float("nan")}, {"remote_timeout_s": True},
    {"reply_timeout_s": 0.1}, {"max_reply_bytes": 1.5}, {"dialect": "grpc"}, {"auth": "basic"},
    {"identical": "maybe"}, {"proxy": 1}, {"token_file": ""}, {"ca_file": "a.pem"},
])  # fmt: skip
def test_a_setting_that_cannot_work_is_named(changed):
    with pytest.raises(SettingsError, match=next(iter(changed))):
        RemoteSettings("ws://gpu", **changed)


def test_a_token_does_not_cross_a_network_in_the_clear():
    with pytest.raises(SettingsError, match="readable by anyone"):
        RemoteSettings("ws://gpu:8000", token_file="t")
    RemoteSettings("ws://gpu:8000", token_file="t", plain_token=True)
    RemoteSettings("ws://127.0.0.1:8000", token_file="t")
    RemoteSettings("wss://gpu:8000", token_file="t")


def test_unknown_settings_are_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="known are url, dialect"):
        remote_settings({"url": "ws://a", "timeout": 3})
    with pytest.raises(SettingsError, match=r"remote\.url is missing"):
        remote_settings({})


@pytest.mark.parametrize("text", ["", "\n", "two words", "tök", "a\nb", "a\tb"])
def test_a_file_without_a_token_is_refused(tmp_path, text):
    (tmp_path / "t").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="expected one line"):
        read_token(tmp_path / "t")


@pytest.mark.parametrize(("host", "own"), [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True),
                                           ("localhost", True), ("0.0.0.0", False), ("gpu", False),
                                           ("192.168.1.4", False)])  # fmt: skip
def test_loopback_is_told_from_networks(host, own):
    assert is_loopback(host) is own


def test_a_server_open_to_a_network_wants_a_token():
    with pytest.raises(SettingsError, match="token_file"):
        ServerSettings(host="0.0.0.0")
    ServerSettings(host="0.0.0.0", insecure=True)
    ServerSettings(host="0.0.0.0", token_file="t")


@pytest.mark.parametrize("changed", [{"port": -1}, {"max_clients": 0}, {"busy": "drop"},
                                     {"dialect": "x"}, {"max_waiting": "4"}, {"port": True}])  # fmt: skip
def test_a_server_setting_that_cannot_work_is_named(changed):
    with pytest.raises(SettingsError, match=next(iter(changed))):
        ServerSettings(**changed)


def test_a_certificate_needs_its_key():
    with pytest.raises(SettingsError, match="belong together"):
        ServerSettings(cert_file="a")
    with pytest.raises(SettingsError, match="cannot be used"):
        ServerSettings(cert_file="/nowhere", key_file="/nowhere").context()
