# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table-top as MJCF text, built from primitive geoms.

Primitives only: without a GPU a scene of meshes takes close to a second a frame, this one about
a millisecond. Lengths are metres, angles radians, masses kilograms; the world frame "world" has
its origin on the table top below the pan axis, x away from the robot, z up.

Zero pose: upper arm up, forearm level, hand down. The hand's origin is the wrist-flex axis and
its -z axis is the roll axis, which runs through the tip site.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Geometry of the arm, shared with the closed-form kinematics.
SHOULDER_HEIGHT = 0.117
SHOULDER_OFFSET = 0.030
UPPER_ARM = 0.116
FOREARM = 0.135
HAND = 0.150

CUBE_SIDE = 0.030
CUBE_MASS = 0.030

JOINT_NAMES = (
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
)
JOINT_LOWER = np.array([-1.92, -1.75, -1.69, -1.66, -2.74, -0.17])
JOINT_UPPER = np.array([1.92, 1.75, 1.69, 1.66, 2.74, 1.75])
HOME = np.array([0.0, -0.6, 0.35, 0.2, 0.0, 0.2])
HOME_SPREAD = np.array([0.35, 0.12, 0.12, 0.15, 0.1, 0.05])

#: Gripper angle at which the pads are parallel and just touch a cube; the fully closed stop
#: (-0.17) is where their tips meet.
GRIPPER_PARALLEL = 0.214
#: A gripper angle wide enough to come down around a cube: fingertips 67 mm apart. Any wider and
#: the jaw meets neighbouring blocks. Come down 6 mm off the cube on the fixed finger's side.
GRIPPER_OPEN = 0.7

BLOCK_COLOURS = {
    "red": (0.84, 0.15, 0.14),
    "green": (0.14, 0.60, 0.25),
    "blue": (0.13, 0.33, 0.80),
    "yellow": (0.96, 0.77, 0.10),
}
BLOCK_NAMES = tuple(f"block_{colour}" for colour in BLOCK_COLOURS)

# Where an episode may put blocks: a ring segment in front of the robot.
BLOCK_RADIUS = (0.15, 0.28)
BLOCK_ANGLE = 0.85
BLOCK_SPACING = 0.075

#: The place pad: a flat disc that marks where to put a block. Nothing collides with it.
PAD_NAME = "place_pad"
PAD_SIZE = 0.034  # radius
PAD_RADIUS = (0.16, 0.26)
PAD_ANGLE = 0.80
PAD_SPACING = 0.068  # between its centre and those of the blocks, where there is room


@dataclass(frozen=True)
class CameraSpec:
    """A camera of the scene: its MJCF name, vertical field of view and ROS optical frame."""

    name: str
    fovy_deg: float
    frame_id: str


CAMERAS = {
    "front": CameraSpec("front", 45.0, "front_camera_optical_frame"),
    "wrist": CameraSpec("wrist", 66.0, "wrist_camera_optical_frame"),
    # For people: the whole scene from the side.
    "overview": CameraSpec("overview", 42.0, "overview_camera_optical_frame"),
}

# One line a joint: servo stiffness, largest torque. The gripper's torque is what limits the
# squeeze: 0.6 Nm over its 70 mm lever is about 9 N, thirty times the weight of a block.
_SERVOS = {
    "shoulder_pan": (40.0, 12.0),
    "shoulder_lift": (60.0, 12.0),
    "elbow_flex": (50.0, 12.0),
    "wrist_flex": (25.0, 6.0),
    "wrist_roll": (10.0, 3.0),
    "gripper": (5.0, 0.6),
}
_SERVO_DAMPING = 0.06  # velocity gain as a share of the stiffness

_SHELL = 'material="shell"'
_SERVO = 'material="servo"'


def build_mjcf(
    *, timestep: float = 0.0025, offscreen: tuple[int, int] = (640, 480), antialias: bool = False
) -> str:
    """Return the scene as MJCF text.

    :param timestep: physics step in seconds.
    :param offscreen: largest image (width, height) that the off-screen buffer must hold.
    :param antialias: smooth edges, at three times the drawing time.
    """
    blocks = "\n".join(
        _block(name, rgb, index) for index, (name, rgb) in enumerate(BLOCK_COLOURS.items())
    )
    return f"""<mujoco model="omni_ros_tabletop">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{timestep}" integrator="implicitfast" cone="elliptic" impratio="10"/>
  <visual>
    <global offwidth="{offscreen[0]}" offheight="{offscreen[1]}"/>
    <quality offsamples="{4 if antialias else 0}" shadowsize="0" numslices="20" numstacks="10"/>
    <headlight ambient="0.46 0.46 0.47" diffuse="0 0 0" specular="0 0 0"/>
    <map znear="0.02" zfar="40"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.90 0.92 0.95"
      rgb2="0.62 0.67 0.73" width="64" height="384"/>
    <texture name="mat" type="2d" builtin="flat" mark="edge" rgb1="0.80 0.82 0.83"
      markrgb="0.70 0.73 0.75" width="64" height="64"/>
    <material name="floor" rgba="0.55 0.56 0.58 1"/>
    <material name="table" rgba="0.70 0.60 0.48 1" specular="0"/>
    <material name="edge" rgba="0.55 0.46 0.36 1" specular="0"/>
    <material name="mat" texture="mat" texrepeat="5 12" specular="0"/>
    <material name="shell" rgba="0.93 0.93 0.92 1" specular="0.3" shininess="0.4"/>
    <material name="servo" rgba="0.15 0.16 0.18 1" specular="0.4" shininess="0.5"/>
    <material name="accent" rgba="0.52 0.38 0.66 1" specular="0.3" shininess="0.4"/>
    <material name="pad" rgba="0.27 0.28 0.30 1" specular="0"/>
    <material name="pad_rim" rgba="0.97 0.97 0.96 1" specular="0"/>
    <material name="pad_disc" rgba="0.09 0.09 0.11 1" specular="0"/>
  </asset>
  <default>
    <geom condim="3" friction="0.8 0.01 0.0002" solref="0.008 1" solimp="0.95 0.99 0.001"/>
    <default class="visual"><geom contype="0" conaffinity="0" group="1"/></default>
    <default class="arm">
      <joint type="hinge" damping="1.0" armature="0.03"/>
      <geom contype="2" conaffinity="0"/>
    </default>
    <default class="pad">
      <geom contype="2" conaffinity="0" condim="4" friction="1.6 0.03 0.0005" material="pad"/>
    </default>
    <default class="block"><geom contype="1" conaffinity="3" mass="{CUBE_MASS}"/></default>
  </default>
  <worldbody>
    <light pos="0.5 -0.5 1.4" dir="-0.3 0.35 -1" directional="true" castshadow="false"
      diffuse="0.46 0.45 0.43" specular="0.2 0.2 0.2"/>
    <light pos="-0.3 0.8 1.2" dir="0.3 -0.6 -1" directional="true" castshadow="false"
      diffuse="0.20 0.21 0.23" specular="0 0 0"/>
    <camera name="front" pos="0.44 0 0.50" xyaxes="0 1 0 -0.8716 0 0.490"
      fovy="{CAMERAS['front'].fovy_deg}"/>
    <camera name="overview" pos="0.62 -0.50 0.44" xyaxes="0.7141 0.7000 0 -0.3187 0.3251 0.8904"
      fovy="{CAMERAS['overview'].fovy_deg}"/>
    <geom name="floor" class="visual" type="plane" size="4 4 0.1" pos="0 0 -0.74"
      material="floor"/>
    <geom name="table" type="box" size="0.42 0.48 0.02" pos="0.18 0 -0.02" material="table"
      contype="1" conaffinity="3"/>
    <geom class="visual" type="box" size="0.424 0.484 0.014" pos="0.18 0 -0.024"
      material="edge"/>
    <geom class="visual" type="box" size="0.125 0.30 0.0004" pos="0.205 0 0" material="mat"/>
    {_place_pad()}
    {_arm()}
    {blocks}
  </worldbody>
  <actuator>
    {_actuators()}
  </actuator>
</mujoco>
"""


def _block(colour: str, rgb: tuple[float, float, float], index: int) -> str:
    half = CUBE_SIDE / 2
    return (
        f'<body name="block_{colour}" pos="0.2 {0.1 * (index - 1.5):.3f} {half}">'
        f'<freejoint name="block_{colour}"/>'
        f'<geom name="block_{colour}" class="block" type="box" size="{half} {half} {half}" '
        f'rgba="{rgb[0]} {rgb[1]} {rgb[2]} 1"/></body>'
    )


def _place_pad() -> str:
    """Return the place pad; its slides make its place part of a pose, and nothing moves them."""
    return f"""<body name="{PAD_NAME}" pos="0 0 0" gravcomp="1">
      <joint name="{PAD_NAME}_x" type="slide" axis="1 0 0" damping="1"/>
      <joint name="{PAD_NAME}_y" type="slide" axis="0 1 0" damping="1"/>
      <geom class="visual" type="cylinder" size="{PAD_SIZE} 0.0006" mass="0.01"
        material="pad_rim"/>
      <geom class="visual" type="cylinder" size="{PAD_SIZE - 0.007} 0.0009" mass="0.01"
        material="pad_disc"/>
    </body>"""


def _actuators() -> str:
    lines = []
    for joint, lower, upper in zip(JOINT_NAMES, JOINT_LOWER, JOINT_UPPER):
        kp, torque = _SERVOS[joint]
        lines.append(
            f'<position name="{joint}" joint="{joint}" kp="{kp}" kv="{_SERVO_DAMPING * kp}" '
            f'ctrlrange="{lower} {upper}" forcerange="{-torque} {torque}"/>'
        )
    return "\n    ".join(lines)


def _joint(index: int, axis: str, extra: str = "") -> str:
    return (
        f'<joint name="{JOINT_NAMES[index]}" axis="{axis}" '
        f'range="{JOINT_LOWER[index]} {JOINT_UPPER[index]}" {extra}/>'
    )


def _arm() -> str:
    """Return the arm's bodies; gravity compensation stands for the servos' integral term."""
    upper, fore = UPPER_ARM, FOREARM
    return f"""
    <geom class="visual" type="cylinder" size="0.052 0.004" pos="0 0 0.004" {_SERVO}/>
    <geom name="base" type="cylinder" size="0.040 0.028" pos="0 0 0.034" {_SHELL}
      contype="1" conaffinity="1"/>
    <body name="shoulder" childclass="arm" gravcomp="1">
      {_joint(0, "0 0 1")}
      <geom type="cylinder" size="0.036 0.014" pos="0 0 0.076" {_SERVO} mass="0.10"/>
      <geom type="box" size="0.030 0.020 0.024" pos="0.012 0 0.108" {_SHELL} mass="0.10"/>
      <body name="upper_arm" pos="{SHOULDER_OFFSET} 0 {SHOULDER_HEIGHT}" gravcomp="1">
        {_joint(1, "0 1 0")}
        <geom type="cylinder" size="0.021 0.029" euler="1.5708 0 0" {_SERVO} mass="0.06"/>
        <geom type="capsule" fromto="0 0 0.018 0 0 {upper - 0.012}" size="0.017" {_SHELL}
          mass="0.08"/>
        <geom class="visual" type="box" size="0.0175 0.0178 0.004" pos="0 0 {upper / 2}"
          material="accent" mass="0"/>
        <body name="forearm" pos="0 0 {upper}" gravcomp="1">
          {_joint(2, "0 1 0")}
          <geom type="cylinder" size="0.019 0.026" euler="1.5708 0 0" {_SERVO} mass="0.05"/>
          <geom type="capsule" fromto="0.016 0 0 {fore - 0.016} 0 0" size="0.0145" {_SHELL}
            mass="0.06"/>
          <geom class="visual" type="box" size="0.004 0.0152 0.0152" pos="{fore / 2} 0 0"
            material="accent" mass="0"/>
          <body name="wrist" pos="{fore} 0 0" gravcomp="1">
            {_joint(3, "0 1 0")}
            <geom type="cylinder" size="0.016 0.022" euler="1.5708 0 0" {_SERVO} mass="0.04"/>
            <geom type="cylinder" size="0.015 0.012" pos="0 0 -0.026" {_SHELL} mass="0.02"/>
            <body name="hand" gravcomp="1">
              {_joint(4, "0 0 1", 'damping="0.25"')}
              {_hand()}
            </body>
          </body>
        </body>
      </body>
    </body>"""


def _hand() -> str:
    """Return the gripper: an outer fixed finger, and an inner jaw that closes against it.

    The inner faces of the pads are half a cube from the roll axis when parallel, so the tip site
    lies in the middle of a held cube and the wrist's length holds for touching and for gripping.
    """
    half = CUBE_SIDE / 2
    hinge_x, hinge_z = -0.026, -0.070
    face = -half - hinge_x  # inner face of the jaw, seen from its hinge
    pad_z, pad_half = -0.124, 0.026  # pads span 98 to 150 mm below the wrist
    return f"""
              <geom type="box" size="0.027 0.017 0.012" pos="0.001 0 -0.050" {_SERVO}
                mass="0.04"/>
              <geom class="visual" type="box" size="0.0275 0.0175 0.003" pos="0.001 0 -0.043"
                material="accent" mass="0"/>
              <geom type="box" size="0.005 0.011 0.022" pos="{half + 0.007} 0 -0.080" {_SHELL}
                mass="0.01"/>
              <geom type="box" size="0.0035 0.010 {pad_half}" pos="{half + 0.0060} 0 {pad_z}"
                {_SHELL} mass="0.01"/>
              <geom name="pad_fixed" class="pad" type="box" size="0.0015 0.009 {pad_half}"
                pos="{half + 0.0015} 0 {pad_z}" mass="0.003"/>
              <site name="tip" pos="0 0 {-HAND}" size="0.003" rgba="0 0 0 0"/>
              <geom class="visual" type="box" size="0.010 0.022 0.003" pos="0 -0.036 -0.036"
                {_SERVO} mass="0"/>
              <geom class="visual" type="box" size="0.011 0.007 0.011" pos="0 -0.064 -0.036"
                euler="0.42 0 0" {_SERVO} mass="0"/>
              <camera name="wrist" pos="0 -0.062 -0.046" xyaxes="1 0 0 0 0.9135 0.4067"
                fovy="{CAMERAS['wrist'].fovy_deg}"/>
              <body name="jaw" pos="{hinge_x} 0 {hinge_z}" euler="0 {-GRIPPER_PARALLEL} 0"
                gravcomp="1">
                {_joint(5, "0 1 0", 'damping="0.15" armature="0.004"')}
                <geom type="cylinder" size="0.010 0.014" euler="1.5708 0 0" {_SERVO}
                  mass="0.01"/>
                <geom type="box" size="0.005 0.011 0.016" pos="{face - 0.010} 0 -0.020"
                  euler="0 -0.30 0" {_SHELL} mass="0.01"/>
                <geom type="box" size="0.0035 0.010 {pad_half}"
                  pos="{face - 0.0060} 0 {pad_z - hinge_z}" {_SHELL} mass="0.01"/>
                <geom name="pad_jaw" class="pad" type="box" size="0.0015 0.009 {pad_half}"
                  pos="{face - 0.0015} 0 {pad_z - hinge_z}" mass="0.003"/>
              </body>"""
