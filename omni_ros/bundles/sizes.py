# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of a manifest that have to agree: with each other, and with its programs' tensors.

Whoever signs a manifest can write any number; arrays are reserved and rows are cut by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import JointName, Manifest
from omni_ros.robot.units import POLICY_UNITS

STAGES = {"vision_encoder", "fusion_backbone", "action_head"}
#: Where the state comes in, by family.
STATE_IN = {"smolvla": "prefix", "pi0": "suffix", "pi05": "prompt"}


def check_sizes(manifest: Manifest) -> None:
    """Check numbers and names against each other.

    :raises BundleError: the first two that disagree, with both.
    """
    for holds, text in (*_general(manifest), *_policy(manifest)):
        if not holds:
            raise BundleError(text)
    for kind, joints in (("joints", manifest.joints), ("state_joints", manifest.state_joints)):
        _check_units(kind, joints)
    for name, entry in manifest.programs.items():
        for tensor in (*entry.inputs, *entry.outputs):
            wanted = _shape(manifest, tensor.name)
            if wanted not in (None, tensor.shape):
                raise BundleError(
                    f"programs.{name}: {tensor.name} is {list(tensor.shape)}, by dimensions, image "
                    f"and embeddings it has to be {list(wanted)}"
                )


def _general(manifest: Manifest) -> Iterator[tuple[bool, str]]:
    sizes, flow, image = manifest.dimensions, manifest.flow, manifest.image
    yield (sizes.action <= sizes.max_action,
           f"dimensions.action is {sizes.action}, max_action {sizes.max_action}")  # fmt: skip
    yield (sizes.state <= sizes.max_state,
           f"dimensions.state is {sizes.state}, max_state {sizes.max_state}")  # fmt: skip
    yield (sizes.action_steps <= sizes.chunk,
           f"dimensions.action_steps is {sizes.action_steps} of a chunk of {sizes.chunk}")
    yield (flow.steps == sizes.steps,
           f"flow.steps is {flow.steps}, dimensions.steps {sizes.steps}")  # fmt: skip
    yield (abs(flow.dt * flow.steps + flow.t_start) < 1e-6,
           f"flow goes from {flow.t_start} by {flow.dt} in {flow.steps} steps, expected to 0")
    yield (flow.min_period < flow.max_period,
           f"flow.min_period is {flow.min_period}, max_period {flow.max_period}")  # fmt: skip
    yield (image.low < image.high, f"image.low is {image.low}, high {image.high}")
    # LeRobot 0.4 padded a π0's pictures with -1 before scaling, which is as far below it again.
    yield (2 * image.low - image.high <= image.pad_value <= image.high,
           f"image.pad_value is {image.pad_value}, beyond {image.low} to {image.high}")
    yield (manifest.tokenizer.max_length == sizes.language_tokens,
           f"tokenizer.max_length is {manifest.tokenizer.max_length}, dimensions.language_tokens "
           f"{sizes.language_tokens}")  # fmt: skip
    yield (manifest.tokenizer.pad_token < manifest.embeddings.rows,
           f"tokenizer.pad_token is {manifest.tokenizer.pad_token}, embeddings.rows "
           f"{manifest.embeddings.rows}")  # fmt: skip
    keys = [camera.key for camera in manifest.cameras]
    yield len(set(keys)) == len(keys), f"cameras has a key twice: {short(', '.join(keys))}"
    yield (manifest.features.state != manifest.features.action,
           f"features has {short(manifest.features.state)} for both")  # fmt: skip
    own = [manifest.tokenizer.file, manifest.embeddings.file, manifest.normalisation.file,
           *(entry.file for entry in manifest.programs.values()), *manifest.golden.values()]
    twice = sorted({file for file in own if own.count(file) > 1})
    yield not twice, f"the file {short(twice and twice[0])} is named for two things"
    yield _is_date(manifest.provenance.created), (
        f"provenance.created is {short(manifest.provenance.created)}, expected a date and time")


def _policy(manifest: Manifest) -> Iterator[tuple[bool, str]]:
    sizes, prefix, features = manifest.dimensions, manifest.prefix, manifest.features
    yield (set(manifest.programs) == STAGES,
           f"programs are {', '.join(manifest.programs)}, expected {', '.join(sorted(STAGES))}")
    count = len(manifest.cameras)
    yield (count >= 1 and count + manifest.empty_cameras == prefix.slots,
           f"there are {count} cameras and {manifest.empty_cameras} empty ones, prefix.slots is "
           f"{prefix.slots}")  # fmt: skip
    slot = prefix.start_marks + sizes.image_tokens + prefix.end_marks
    yield (prefix.state == STATE_IN[manifest.family],
           f"prefix.state is {prefix.state!r}, in a {manifest.family} it is "
           f"{STATE_IN[manifest.family]!r}")  # fmt: skip
    in_prefix = prefix.state == "prefix"
    length = prefix.slots * slot + sizes.language_tokens + in_prefix
    yield (length == sizes.prefix,
           f"dimensions.prefix is {sizes.prefix}; {prefix.slots} slots of {slot} tokens, "
           f"{sizes.language_tokens} of the prompt{' and the state' * in_prefix} make "
           f"{length}")  # fmt: skip
    relative = manifest.conventions.relative
    yield (len(relative) in (0, sizes.action),
           f"conventions.relative has {len(relative)} values, dimensions.action is {sizes.action}")
    yield (not any(relative[sizes.state:]),
           f"conventions.relative has actions relative to values that a state of {sizes.state} "
           "does not have")  # fmt: skip
    yield (manifest.conventions.aloha == "none" or (sizes.state, sizes.action) == (14, 14),
           f"conventions.aloha is for 14 joints, there are {sizes.state} in the state and "
           f"{sizes.action} actions")  # fmt: skip
    yield ((features.state, features.action) == ("observation.state", "action"),
           f"features are {short(features.state)} and {short(features.action)}, expected "
           "observation.state and action")  # fmt: skip
    outputs = manifest.programs["fusion_backbone"].outputs if (
        "fusion_backbone" in manifest.programs) else ()
    layers = sum(re.fullmatch(r"keys_\d+", tensor.name) is not None for tensor in outputs)
    yield (layers in (0, sizes.layers),
           f"dimensions.layers is {sizes.layers}, fusion_backbone gives keys of {layers}")


def _shape(manifest: Manifest, name: str) -> tuple[int, ...] | None:
    """Return the shape that a tensor has to have by the other parts, if it has one."""
    sizes, image, width = manifest.dimensions, manifest.image, manifest.embeddings.width
    kind = re.sub(r"_\d+$", "", name)
    heads, head_dim, chunk = sizes.kv_heads, sizes.head_dim, sizes.chunk
    return {
        "pixels": (3, image.height, image.width), "image": (sizes.image_tokens, width),
        "language": (sizes.language_tokens, width), "state": (1, sizes.max_state),
        "valid": (sizes.prefix,), "noisy": (chunk, sizes.max_action),
        "velocity": (chunk, sizes.max_action), "time": (1, sizes.expert_width),
        "keys": (heads, head_dim, sizes.prefix) if kind != name else None,
        "values": (heads, sizes.prefix, head_dim) if kind != name else None,
    }.get(kind)


def _check_units(kind: str, joints: tuple[JointName, ...] | str) -> None:
    for joint in () if isinstance(joints, str) else joints:
        if joint.unit not in POLICY_UNITS:
            raise BundleError(
                f"{kind}: {joint.name} has the unit {short(joint.unit)}, expected one of "
                f"{', '.join(POLICY_UNITS)}"
            )


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
