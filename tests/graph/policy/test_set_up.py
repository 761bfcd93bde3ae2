# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a stage refuses at configure, and what its parameters do; it lives in any case."""

from __future__ import annotations

import dataclasses
import shutil

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from omni_ros.bundles import read_manifest, write_manifest
from omni_ros.bundles.layout import JointName, Memory
from omni_ros.msg import PolicyStatus
from omni_ros.nodes._stage_node import STATUSES_QOS


@pytest.fixture(scope="module")
def shared(tools, ros_domain, tmp_path_factory):
    graph = tools.Graph(tmp_path_factory.mktemp("set_up"))
    try:
        graph.eventually = tools.eventually
        graph.statuses = graph.record(PolicyStatus, "policy_status", STATUSES_QOS)
        graph.diagnostics = graph.record(DiagnosticArray, "/diagnostics")
        yield graph
    finally:
        graph.close()


@pytest.fixture(scope="module")
def head(shared, policy_robot, policy_tools, bundle):
    """An action head whose parameters the tests change."""
    shared.start("action_head", robot=policy_robot(), bundle=str(bundle), threads=1,
                 cpus=policy_tools.all_cpus)
    shared.state("action_head")
    return shared


def changed(bundle, folder, change):
    """Return a copy of a bundle whose manifest says something else, signed as it should be."""
    copy = folder / "changed.bundle"
    shutil.copytree(bundle, copy)
    write_manifest(copy, change(read_manifest(copy)))
    return copy


def refused(graph, said: str, **parameters) -> None:
    """Configure with other parameters: it fails, says why, and the process lives."""
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import GetParameters, SetParameters

    names = list(parameters)
    before = graph.call(GetParameters, "action_head/get_parameters",
                        GetParameters.Request(names=names)).values
    values = [ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=str(value))
              for value in parameters.values()]

    def put(values) -> None:
        request = SetParameters.Request(parameters=[
            Parameter(name=name, value=value) for name, value in zip(names, values)])
        assert all(r.successful for r in graph.call(
            SetParameters, "action_head/set_parameters", request).results)

    put(values)
    try:
        assert not graph.change_state("action_head", "configure")
        assert said in graph.logs()
        assert graph.state("action_head") == "unconfigured"
        assert graph.processes[0].popen.poll() is None
    finally:
        put(before)


def test_a_bundle_that_needs_more_memory_than_there_is_is_refused_with_both_numbers(
        head, bundle, tmp_path):
    def greedy(manifest):
        entry = dataclasses.replace(manifest.programs["action_head"],
                                    constants_bytes=9_000_000_000_000)
        programs = {**manifest.programs, "action_head": entry}
        return dataclasses.replace(manifest, programs=programs, memory=Memory.of(programs))

    refused(head, "needs 9000000 MB", bundle=changed(bundle, tmp_path, greedy))
    assert "this process can have" in head.logs()


def test_a_bundle_without_joint_names_is_refused(head, bundle, tmp_path):
    raw = changed(bundle, tmp_path, lambda m: dataclasses.replace(
        m, joints="raw", state_joints="raw"))
    refused(head, "nothing says which joint a value moves", bundle=raw)


def test_other_units_than_the_robots_are_refused_with_both(head, bundle, tmp_path):
    degrees = changed(bundle, tmp_path, lambda m: dataclasses.replace(
        m, joints=tuple(JointName(j.name, "deg") for j in m.joints)))
    refused(head, "shoulder_pan in deg (robot YAML: rad)", bundle=degrees)


def test_a_camera_that_the_robot_does_not_have_is_refused_with_its_name(head, bundle):
    refused(head, "camera1 (camera1)", robot="tabletop")


@pytest.mark.parametrize("parameters, said", [
    ({"bundle": "no_such"}, "there is no bundle named 'no_such'"),
    ({"transport": "pigeon"}, "transport is 'pigeon'; expected one of auto, inline"),
    ({"cpus": "7-3"}, "7-3"), ({"robot": "so102"}, "so102")])
def test_a_parameter_that_is_wrong_is_refused_with_what_to_write(head, parameters, said):
    refused(head, said, **parameters)


def test_after_all_refusals_it_can_be_configured(head):
    assert head.change_state("action_head", "configure"), head.logs()
    status = head.eventually(lambda: next(
        (m for m in head.statuses.messages if m.memory_need_bytes), None), "need and have")
    assert 0 < status.memory_need_bytes < status.memory_have_bytes
    assert any("thread" in text for text in status.placement)
    assert head.change_state("action_head", "cleanup")


def test_the_quality_of_service_of_a_camera_can_be_overridden_and_a_mismatch_is_named(
        shared, policy_robot, policy_tools, bundle):
    """A reliable subscription never hears a best-effort camera: said with topic and policy."""
    parameters = {"qos_overrides./front/image_raw.subscription.reliability": "reliable",
                  "qos_overrides./front/image_raw.subscription.depth": 7}
    shared.publisher(Image, "front/image_raw", QoSProfile(
        depth=1, reliability=ReliabilityPolicy.BEST_EFFORT), wait=False)
    shared.start("vision_encoder", robot=policy_robot(), bundle=str(bundle), threads=1,
                 cpus=policy_tools.all_cpus, **parameters)
    shared.bring_up("vision_encoder", to="inactive")
    info = shared.eventually(
        lambda: shared.node.get_subscriptions_info_by_topic("/front/image_raw"), "a subscription")
    assert info[0].qos_profile.reliability is ReliabilityPolicy.RELIABLE
    shared.eventually(lambda: any(
        "/front/image_raw" in status.message and "RELIAB" in status.message.upper()
        for message in shared.diagnostics.messages for status in message.status
        if status.name.endswith("connections")), f"a diagnostic\n{shared.logs()}")
