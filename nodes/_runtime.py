# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What every node's `main` shares: signals, spinning, an orderly end.

rclpy's own SIGINT handler shuts the context down at once, after which nothing can be published. A
robot's nodes must still say their last words (a hold command, a final status), so signals only set
a flag here, and the node is wound up while its publishers still work.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from typing import Any, Callable, Sequence

import rclpy
from lifecycle_msgs.msg import State
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

#: Longest wait of the executor; a signal is noticed at the latest after this, seconds.
POLL_S = 0.05
#: Environment variable that holds the process id of the launch.
LAUNCHER = "OMNI_ROS_LAUNCHER"
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def spin_until_signal(nodes: Sequence, stop: threading.Event) -> None:
    """Spin the nodes' callbacks in this thread until `stop` is set."""
    executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    try:
        while not stop.is_set() and rclpy.ok():
            try:
                executor.spin_once(timeout_sec=POLL_S)
            except RCLError as error:
                # A lifecycle request that does not fit the state raises in rclpy; it must not be
                # possible to end a node by asking it for something.
                nodes[0].get_logger().error(f"a request was refused: {error}")
    except ExternalShutdownException:
        pass
    finally:
        for node in nodes:
            executor.remove_node(node)
        executor.shutdown()


def wind_down(node: LifecycleNode) -> None:
    """Take a lifecycle node from wherever it is to finalized."""
    state = node._state_machine.current_state[0]  # rclpy has no public getter before Kilted
    if state == State.PRIMARY_STATE_ACTIVE:
        node.trigger_deactivate()
        state = node._state_machine.current_state[0]
    if state == State.PRIMARY_STATE_INACTIVE:
        node.trigger_cleanup()
    if node._state_machine.current_state[0] != State.PRIMARY_STATE_FINALIZED:
        node.trigger_shutdown()


def end_with_launcher(stop: threading.Event) -> None:
    """Be signalled when the launch that started this process ends without ending its nodes.

    A launch that is killed, or told to terminate, leaves its nodes running; the next launch would
    put a second player beside the first, on one arm. The launch file names its process in the
    environment; a node that was started by hand outlives whatever started it.
    """
    launcher = os.environ.get(LAUNCHER, "")
    if not launcher.isdecimal() or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if not os.path.exists(f"/proc/{launcher}"):
        stop.set()  # it ended before the kernel was asked


def run(make: Callable[[], Any], argv: list | None = None) -> int:
    """Run nodes to their orderly end; exit status 0 after SIGINT or SIGTERM, 1 after an error.

    :param make: makes a node, or a list of them, which are wound down from the first to the last.

    A node may end the process: it sets its `exit_status`, then `stop_requested`. Further signals while
    the node winds down are ignored: it is stopping already.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    end_with_launcher(stop)
    rclpy.init(args=argv if argv is not None else sys.argv,
               signal_handler_options=SignalHandlerOptions.NO)
    nodes: list = []
    status = 0
    try:
        made = make()
        nodes = made if isinstance(made, list) else [made]
        for node in nodes:
            node.stop_requested = stop
        spin_until_signal(nodes, stop)
        status = max(getattr(node, "exit_status", 0) for node in nodes)
    except Exception:  # noqa: BLE001 - the last place where it can be shown
        traceback.print_exc()
        status = 1
    finally:
        for node in nodes:
            try:
                if isinstance(node, LifecycleNode):
                    wind_down(node)
                node.destroy_node()
            except Exception:  # noqa: BLE001
                traceback.print_exc()
                status = 1
        if rclpy.ok():
            rclpy.shutdown()
        # The interpreter puts the default handlers back as it ends; a second Ctrl-C in that moment
        # would kill a process that has already stopped in good order.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return status


def refusing(make: Callable[[], Any], status: int = 1) -> Callable[[], Any]:
    """Wrap what makes a node: what it refuses (ValueError, OSError, ImportError) is said in one line.

    :param status: the process's exit status then.
    """
    def wrapper() -> Any:
        try:
            return make()
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            raise SystemExit(status) from None
    return wrapper


def logged(callback: Callable) -> Callable:
    """Wrap a transition callback: an exception becomes an ERROR in the log and FAILURE.

    rclpy swallows exceptions in transition callbacks; without this a node that cannot be
    configured says nothing about why. Configuration errors (ValueError, OSError) are shown as one
    line, anything else with its traceback.
    """
    def wrapper(self, state):
        try:
            return callback(self, state) or TransitionCallbackReturn.SUCCESS
        except (ValueError, OSError, ImportError) as error:
            self.get_logger().error(f"{callback.__name__} failed: {error}")
        except Exception:  # noqa: BLE001
            self.get_logger().error(f"{callback.__name__} failed:\n{traceback.format_exc()}")
        return TransitionCallbackReturn.FAILURE
    wrapper.__name__ = callback.__name__
    return wrapper


class Transitions:
    """How a node that computes in a thread of its own leaves its states; to be mixed into one.

    The node gives `_end`: stop at once what was begun; `_free`: undo what configure made, as far as it
    got; and `_tell_state`: publish its state now. All three may be called in any state.
    """

    @logged
    def on_deactivate(self, state):
        self._end()
        self._tell_state()

    @logged
    def on_cleanup(self, state):
        self._free()
        self._tell_state()

    @logged
    def on_shutdown(self, state):
        self._end()
        self._free()
        self._tell_state()

    def on_error(self, state):
        self._end()
        self._free()
        return super().on_error(state)
