# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Policies at the other end of an OpenPI websocket, and the robot's own policy behind one.

`client.RemotePolicy` asks a server for chunks without ever being waited for; `server.PolicyServer`
answers clients; `wire` is what both write and read. Free of ROS; `websockets` and `msgpack` are
asked for at use.
"""
