# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy's rows: from pixels to actions, and whether every input counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..policy.bundle_parts import normaliser as normaliser_of
from ..policy.flow import step_times
from ..policy.flow_policy import FlowPolicy, Inference
from ..policy.observation import Observation
from ..policy.prefix import action_positions, prefix_positions
from ..policy.rtc import SCHEDULES, RtcConfig, RtcGuide
from .reference import Reference, cross_projections, state_deviation
from .rows import FLOAT32, SAME, Row, compare, effect

#: How many times more or less than recorded an input may move the actions. How camera, state and
#: noise were changed is known; of the task only that it was another one.
EFFECT = {"fp32": 1.1, "int8": 2.0}
OTHER_TASK = 3.0
OTHER_TASKS = ("put the blue cup on the shelf", "close the door")


#: Relative difference allowed to int8. Weights and inputs of every product are rounded to 1 part in
#: 127 of the largest of their row: 0.5 to 1 % of a product's size, adding up as a root over the
#: layers. Measured on two small random networks: image tokens, keys and values 1.9 to 2.6 %,
#: velocities 2.7 to 4.1 %, actions 1.5 to 2.2 % (errors of the steps partly cancel). The limits are
#: about twice that. What is left out altogether can be below them: `effect_rows` is for that.
INT8, INT8_ACTIONS = 0.08, 0.04


@dataclass(frozen=True)
class Gate:
    """How what the programs compute is judged."""

    recipe: str

    def __call__(
        self, name: str, ours: np.ndarray, theirs: np.ndarray, *, int8: float = INT8,
        scale: float = 1.0, note: str = "",
    ) -> Row:
        if self.recipe == "fp32":
            return compare(name, ours, theirs, FLOAT32 * scale, note=note)
        return compare(name, ours, theirs, int8, relative=True, note=note)


class Trace:
    """A guide that changes nothing and keeps every velocity."""

    def __init__(self) -> None:
        self.velocities: list[np.ndarray] = []

    def __call__(self, x: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        self.velocities.append(v.copy())
        return v


def parity_rows(policy: FlowPolicy, reference: Reference) -> list[Row]:
    """Compare a policy with a set of its own checkpoint.

    :raises ValueError: the set is of another checkpoint: its sizes are others.
    """
    check_sizes(policy, reference)
    recipes = {entry.recipe for entry in policy.manifest.programs.values()}
    gate = Gate("fp32" if recipes == {"fp32"} else "int8")
    observation = observation_of(policy, reference)
    trace = Trace()
    result = policy.infer(observation, reference.task, noise=reference.noise, guide=trace)
    rows = [
        *host_rows(policy, reference, observation),
        *fact_rows(policy, reference),
        *prefix_rows(policy, reference, gate),
    ]
    for step, ours in enumerate(trace.velocities):
        rows.append(gate(f"v_t step {step}", ours, reference.steps["v_t"][step, 0]))
    # Robot units have an offset, which would make any relative difference look small.
    middle = policy.head.decode(np.zeros_like(result.normalised)).astype(np.float64)
    # Numbers in the thousands are no nearer to each other than 1e-4 in float32.
    units = max(1.0, float(np.abs(reference.outputs["actions"]).max()) / 100.0)
    rows += [
        gate("actions, normalised", result.normalised, reference.outputs["actions_normalised"][0],
             int8=INT8_ACTIONS),
        gate("actions, robot units", result.actions - middle,
             reference.outputs["actions"][0] - middle, int8=INT8_ACTIONS, scale=units),
        *rtc_rows(policy, reference, observation, gate),
        *effect_rows(policy, reference, observation, result, gate),
    ]
    return rows


def observation_of(policy: FlowPolicy, reference: Reference) -> Observation:
    """Return what the set shows; its missing cameras are masked."""
    images = {
        camera.name: reference.inputs.get(f"image/{camera.key}")
        for camera in policy.manifest.cameras
    }
    return Observation(images, reference.inputs["state"])


def check_sizes(policy: FlowPolicy, reference: Reference) -> None:
    """:raises ValueError: the set does not have the bundle's sizes, or has cameras it lacks."""
    sizes = policy.manifest.dimensions
    keys = [camera.key for camera in policy.manifest.cameras]
    shown = [name.removeprefix("image/") for name in reference.inputs if name[:6] == "image/"]
    pairs = [
        ("noise (chunk, padded action)", policy.head.shape, reference.noise.shape),
        ("steps", sizes.steps, len(reference.steps["v_t"])),
        ("state", sizes.state, reference.inputs["state"].shape[-1]),
        ("action", sizes.action, reference.outputs["actions"].shape[-1]),
        ("layers", sizes.layers, len(reference.prefix["prefix_k"])),
    ]
    wrong = [f"{what} {ours}, the set's is {theirs}" for what, ours, theirs in pairs
             if ours != theirs]
    wrong += [f"no camera {key} (it has {', '.join(keys)})" for key in shown if key not in keys]
    if wrong:
        raise ValueError(
            f"{policy.bundle.root} is not of the checkpoint in {reference.folder}: the bundle has "
            f"{'; '.join(wrong)}. Give the set's own bundle, or export it: --recipe"
        )


def host_rows(
    policy: FlowPolicy, reference: Reference, observation: Observation
) -> list[Row]:
    """Compare what the host computes: pixels, tokens, state."""
    made, rows = reference.preprocessed, []
    present = [name for name in policy.cameras if observation.images[name] is not None]
    for slot, name in enumerate(present):
        policy.encoder.prepare(observation.images[name], camera=name)
        rows.append(compare(
            f"pixels {name}", policy.encoder.pixels, made[f"pixel_values/{slot}"][0], SAME
        ))
    tokens, mask = policy.backbone.tokens, made["token_mask"][0]
    theirs = made["tokens"][0]
    # A set padded to the longest of one prompt has no padding to compare.
    ours = tokens.ids if len(theirs) == len(tokens.ids) else tokens.trimmed()
    rows.append(compare("tokens", ours, theirs, 0.0, note=f"{int(mask.sum())} in use"))
    if tokens.count != mask.sum():
        rows.append(compare("tokens in use", tokens.count, mask.sum(), 0.0))
    width = policy.manifest.dimensions.state
    state = policy.backbone.state[0]
    rows.append(compare("state, normalised", state[:width], made["state_normalised"][0], SAME))
    if "state_padded" in made:  # nothing takes it in π0.5
        rows.append(compare("state, padded", state, made["state_padded"][0], SAME))
    return rows


def fact_rows(policy: FlowPolicy, reference: Reference) -> list[Row]:
    """Compare lengths, positions and times. Call it after a run."""
    prefix, steps = reference.prefix, reference.steps
    valid = policy.backbone.valid
    flow, rows = policy.manifest.flow, []
    if "t" in steps:
        rows.append(compare("times of the steps", step_times(flow.steps), steps["t"], 0.0,
                            note=f"dt {flow.dt:g}"))
    theirs = prefix["prefix_pad_masks"][0]
    # A prompt padded to the longest of one is shorter.
    if "prefix_position_ids" in prefix and len(theirs) == len(valid):
        positions = prefix_positions(valid)
        rows.append(compare("prefix, which tokens count", valid > 0, theirs, 0.0,
                            note=f"{int(theirs.sum())} of {len(theirs)}"))
        rows.append(compare("prefix, positions", positions, prefix["prefix_position_ids"][0], 0.0))
    if "suffix_position_ids" in steps:
        recorded = steps["suffix_position_ids"][0]
        own = action_positions(valid, len(policy.head.program.input("cos")))
        rows.append(compare("suffix, positions", own, recorded, 0.0, note=f"{len(own)} tokens"))
    return rows


def prefix_rows(policy: FlowPolicy, reference: Reference, gate: Gate) -> list[Row]:
    """Compare image tokens, keys and values. Call it after a run."""
    sizes, rows = policy.manifest.dimensions, []
    shown = reference.preprocessed
    present = [name for name in policy.cameras
               if f"image/{key_of(policy, name)}" in reference.inputs]
    for slot, name in enumerate(present):
        if not shown[f"image_mask/{slot}"][0]:
            raise ValueError(
                f"{reference.folder}: image {slot} is masked, though {len(present)} cameras are "
                "recorded; expected the present ones first"
            )
        rows.append(gate(
            f"image embeddings {name}", policy.backbone.images[slot],
            reference.prefix["image_embs"][slot, 0],
        ))
    ours_count = policy.backbone.valid > 0
    theirs_count = reference.prefix["prefix_pad_masks"][0]
    rows.append(compare("prefix, tokens that count", ours_count.sum(), theirs_count.sum(), 0.0))
    if ours_count.sum() != theirs_count.sum():
        return rows  # rows of keys and values have no partner
    smolvla = policy.manifest.family == "smolvla"
    cross = cross_projections(reference.folder, sizes.layers) if smolvla else {}
    for kind, short in (("keys", "k"), ("values", "v")):
        recorded = reference.prefix[f"prefix_{short}"][:, 0]
        if not smolvla:  # [layer, key heads, prefix, head width]
            recorded = recorded.swapaxes(1, 2)
        recorded = recorded[:, theirs_count]
        for name, layers in (
            ("self-attention", [i for i in range(sizes.layers) if i not in cross]),
            ("cross-attention, projected", list(cross)),
        ):
            if not layers:
                continue
            ours, theirs = [], []
            for layer in layers:
                array = policy.backbone.keys_values[f"{kind}_{layer}"]
                # Keys lie transposed: [heads, width, prefix]; values [heads, prefix, width].
                array = array.transpose(2, 0, 1) if kind == "keys" else array.transpose(1, 0, 2)
                ours.append(array[ours_count])
                theirs.append(projected(recorded[layer], cross.get(layer), kind))
            worst = max(
                range(len(layers)), key=lambda i: float(np.abs(ours[i] - theirs[i]).max())
            )
            note = f"{len(layers)} layers, worst {layers[worst]}"
            rows.append(
                gate(f"prefix {kind}, {name}", np.stack(ours), np.stack(theirs), note=note)
            )
    return rows


def projected(
    recorded: np.ndarray, weights: tuple[np.ndarray, np.ndarray] | None, kind: str
) -> np.ndarray:
    """Return recorded keys or values [tokens, heads, width] as the action head reads them."""
    if weights is None:
        return recorded
    flat = recorded.reshape(len(recorded), -1)
    return (flat @ weights[kind == "values"].T).reshape(recorded.shape)


def rtc_rows(
    policy: FlowPolicy, reference: Reference, observation: Observation, gate: Gate
) -> list[Row]:
    """Compare a guided chunk a schedule."""
    made, rows = reference.rtc, []
    for schedule in SCHEDULES:
        if f"out_{schedule}" not in made:
            continue
        guide = RtcGuide(
            RtcConfig(
                schedule, execution_horizon=int(made["execution_horizon"]),
                max_guidance_weight=float(made["max_guidance_weight"]),
                padding="zero",  # as LeRobot does it
            ),
            chunk=policy.head.shape[0], width=policy.head.shape[1],
        )
        guide.begin(made["prev_chunk_left_over"][0], delay=int(made["inference_delay"]))
        rows.append(
            compare(f"RTC {schedule}, weights", guide.weights, made[f"weights_{schedule}"], SAME)
        )
        result = policy.infer(observation, reference.task, noise=reference.noise, guide=guide)
        rows.append(gate(
            f"RTC {schedule}, actions", result.normalised, made[f"out_{schedule}"][0],
            int8=INT8_ACTIONS,
        ))
    return rows


def effect_rows(
    policy: FlowPolicy, reference: Reference, observation: Observation, base: Inference,
    gate: Gate,
) -> list[Row]:
    """Change each input as it was changed for arch.json, and compare how far actions move."""
    recorded = reference.arch.get("sensitivity_max_abs", {})
    factor, rows = EFFECT[gate.recipe], []
    normaliser = normaliser_of(policy.bundle, "state")

    def add(name: str, key: str, within: float, **changed: object) -> None:
        if key not in recorded:
            return
        given = {"images": observation.images, "state": observation.state,
                 "task": reference.task, "noise": reference.noise, **changed}
        result = policy.infer(
            Observation(given["images"], given["state"]), given["task"], noise=given["noise"]
        )
        moved = float(np.abs(result.normalised - base.normalised).max())
        rows.append(effect(name, moved, float(recorded[key]), within))

    for camera in policy.manifest.cameras:
        image = observation.images[camera.name]
        if image is not None:
            images = {**observation.images, camera.name: 255 - image}
            add(f"effect of {camera.name}, inverted", camera.key, factor, images=images)
    # One standard deviation more, whatever the state is normalised by.
    deviation = state_deviation(reference.folder)
    add("effect of the state, 1 deviation more", "state", factor,
        state=observation.state + deviation if deviation is not None else normaliser.inverse(
            normaliser.forward(observation.state) + np.float32(1.0)))
    other = next(task for task in OTHER_TASKS if task != reference.task.strip())
    add("effect of the text, another", "task", OTHER_TASK, task=other)
    add("effect of the noise, negated", "noise", factor, noise=-reference.noise)
    return rows


def key_of(policy: FlowPolicy, name: str) -> str:
    """Return the checkpoint's key of a camera."""
    return next(camera.key for camera in policy.manifest.cameras if camera.name == name)
