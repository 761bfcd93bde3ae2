# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The action player: chunks in, one safe command a tick out.

Free of ROS. Times are int nanoseconds of ROS time; all methods are to be called from one thread.
How it decides where the message definitions leave it open:

- STALE brakes from the first tick that notices, forgets all chunks and lets go of the source. It
  resumes by itself with the first good chunk, of any source, that is not older than what was
  played before; a chunk that comes while the arm still brakes is played by wall clock, one that
  comes at rest from its row 0, both through the ramp.
- A source that beat once must go on beating; with require_heartbeat one that never did is refused.
  After its process ended only a new heartbeat lets it in again. When a heartbeat is lost or
  a process ends its chunk ids may start anew (it may be another process); order then still holds
  by the observation stamps.
- Of two sources the one that is followed is played until it is stale, but for a preferred one: its
  first good chunk, by the same rules, takes over as the next chunk of one source would.
- A trip outlives deactivation: only a reset clears it. A reset needs the cool-down since the
  trip (asking for the stop again restarts it), the arm at rest and the stop no longer asked for.
  Chunks that were decided from observations before the reset are refused.
- NaN in a chunk trips, whatever source it came from: something on the topic is broken.
- A jump of the clock forgets chunks, never trips, and makes a moving arm brake and wait for the
  next chunk. It cannot be told from a pause of the process of the same length; both are safe.
- At rest and without fresh joint states nothing is sent: controllers hold by themselves, and an arm
  that was switched off may come back elsewhere, where the old command would tear at it. When it is
  measured again, it is held where it is.
- A measured pose is taken over only when samples over the still window agree on it: one wrong
  sample must not become a step of the command. Until then nothing is sent at the start and after
  lost joint states, and the last command goes on otherwise. A pose far outside of the position
  limits is a fault of a sensor or of the YAML: nothing is sent, whatever agrees on it.
- In joint_trajectory output a controller follows the last message through missed ticks, and so
  does the player's idea of where the arm is. Forward controllers stand still, and so does it.
"""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np

from omni_ros.player.chunk import Chunk, Refusal
from omni_ros.player.command import Command, Counters, PlayerStatusData
from omni_ros.player.gate import Gate, refuse
from omni_ros.player.inputs import Measured
from omni_ros.player.mover import Mover
from omni_ros.player.reasons import ControlMode, Reason, State
from omni_ros.player.watchdog import Ages, stale
from omni_ros.player.words import in_words
from omni_ros.robot import Robot

_MOVING = (State.RAMPING_IN, State.PLAYING)


class Player:
    """Plays chunks at a fixed rate behind a limiter and a watchdog."""

    def __init__(self, robot: Robot) -> None:
        """Reserve everything; raises ValueError if the robot's limits make stops endless."""
        self.robot = robot
        self.config = robot.player
        self.counters = Counters()
        self.state = State.INACTIVE
        self.trip_reason = Reason.NONE
        self.last_refusal: Refusal | None = None
        self._mover = Mover(robot)
        self._measured = Measured(robot)
        self._gate = Gate(self.config)
        self._reasons: tuple[Reason, ...] = ()  # why STALE, as long as it lasts
        self._words: dict[Reason, str] = {}
        self._waiting_for = Reason.NONE
        self._stop_asked = False
        self._leaving = False
        self._told_to_leave = False  # the last word of a status, until activated again
        self._said_rest = False  # leaving: a command at rest has gone out
        self._was_holding = False
        self._blind = False  # at rest, and the arm is not measured any more
        self._trip_ns = 0
        self._last_tick_ns: int | None = None

    @property
    def source(self) -> str:
        """The source followed now, "" if none."""
        return self._gate.source

    @property
    def at_rest(self) -> bool:
        """True if the command does not move (or there is none)."""
        return self._mover.at_rest

    # Inputs

    def on_joint_state(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        stamp_ns: int,
        now_ns: int,
    ) -> None:
        """Take a measurement in topic units; it may hold some of the joints, and others."""
        self._measured.update(names, positions, stamp_ns, now_ns)

    def on_heartbeat(self, source: str, now_ns: int) -> None:
        """Take a sign of life of a source. Beats of a process known to be dead must not come."""
        self._gate.beat(source, now_ns)

    def on_source_exit(self, source: str, now_ns: int) -> None:
        """Take the news that the process of a source ended."""
        self._gate.exited(source)
        if source == self.source and self.state in _MOVING:
            self._go_stale((Reason.HEARTBEAT_LOST,))

    def on_chunk(self, chunk: Chunk | Refusal, now_ns: int) -> Refusal | None:
        """Take a parsed chunk; returns why if it is refused, else None."""
        self.counters.chunks_received += 1
        refusal = chunk if isinstance(chunk, Refusal) else self._judge(chunk, now_ns)
        if refusal is None:
            self._accept(chunk, now_ns)
            return None
        self.counters.refused[refusal.reason] += 1
        self.last_refusal = refusal
        if refusal.reason is Reason.NON_FINITE and self.state is not State.INACTIVE:
            self._trip(Reason.NON_FINITE, now_ns)
        return refusal

    def prefer(self, source: str) -> None:
        """Let good chunks of this source take over from another one's; "" for none's."""
        self._gate.prefer(source)

    def protective_stop(self, active: bool, now_ns: int) -> None:
        """Ask for a stop (latched), or say that it is no longer asked for (reset still needed)."""
        self._stop_asked = active
        if active:
            self._trip(Reason.PROTECTIVE_STOP, now_ns)

    def restore_trip(self, reason: Reason, now_ns: int) -> None:
        """Latch a trip that an earlier process of this player entered and nobody has reset."""
        self._trip(reason, now_ns)

    def reset(self, now_ns: int) -> tuple[bool, str]:
        """Clear a trip; returns whether, and why not, in plain words."""
        if self.trip_reason is Reason.NONE:
            return True, "nothing to reset: the player is not tripped"
        since = (now_ns - self._trip_ns) * 1e-9
        if since < self.config.reset_cooldown_s:
            return False, (
                f"refused: tripped {since:.3f} s ago, wait {self.config.reset_cooldown_s:g} s"
            )
        if self._stop_asked:
            return False, (
                "refused: the protective stop is still asked for; publish false on "
                "protective_stop first"
            )
        if not self.at_rest:
            return False, "refused: the arm is still braking; try again when it stands"
        cleared, self.trip_reason = self.trip_reason, Reason.NONE
        self._mover.clear()
        self._gate.only_after(now_ns)
        if self.state is State.TRIPPED:
            self.state = State.HOLDING
        return True, f"reset of {cleared.name}; waiting for a chunk from an observation after now"

    def activate(self, now_ns: int) -> None:
        """Begin: wait for clock and joints, then hold where the arm is."""
        if self.state is State.INACTIVE:
            self._start_anew()
            self._told_to_leave = False
            self.state = State.WAITING

    def deactivate(self, now_ns: int) -> None:
        """Brake to rest. Go on ticking until `state` is INACTIVE, one tick after standing."""
        if self.state is State.INACTIVE:
            return
        self._told_to_leave = True
        if self._mover.motion is None:
            self.state = State.INACTIVE
            return
        self._leaving = True
        if self.state is not State.TRIPPED:
            self._go_stale((Reason.SHUTDOWN,))

    def on_clock_jump(self, now_ns: int) -> None:
        """Forget what was timed by the old clock; nothing is stale because of the jump."""
        self._measured.rebase(now_ns)
        self._gate.rebase(now_ns)
        self._last_tick_ns = None
        self._trip_ns = now_ns
        if self.state in _MOVING:
            self._go_stale((Reason.CLOCK_JUMP,))

    # The tick

    def tick(self, now_ns: int) -> Command | None:
        """Return the command for one period from now, or None if nothing is to be commanded."""
        if self.state is State.INACTIVE:
            return None
        self.counters.ticks += 1
        missed = self._pass_time(now_ns)
        if self.state is State.WAITING and not self._ready(now_ns):
            return None
        if self._said_rest:
            self._start_anew()
            self.state = State.INACTIVE
            return None
        mover = self._mover
        mover.catch_up(missed, self._measured.possible_position)
        self._watch(now_ns)
        if self._look(now_ns):
            self._said_rest = self._leaving
            return None
        if self.state in _MOVING:
            mover.play(now_ns)
            self.state = State.RAMPING_IN if mover.ramping else State.PLAYING
        else:
            mover.hold()
        self._said_rest = self._leaving and mover.at_rest
        command = mover.command(missed + 1)
        for reason in set(command.joint_reasons.tolist()) - {0}:
            self.counters.limited[reason] += 1
        self.counters.commands += 1
        return command

    def _pass_time(self, now_ns: int) -> int:
        """Return how many ticks were missed since the last one; none if the clock jumped."""
        last, self._last_tick_ns = self._last_tick_ns, now_ns
        if last is None:
            return 0
        passed = now_ns - last
        if passed < 0 or passed * 1e-9 > self.config.clock_jump_s:
            self.on_clock_jump(now_ns)
            self._last_tick_ns = now_ns
            return 0
        missed = max(round(passed / self.config.period_ns) - 1, 0)
        self.counters.ticks_missed += missed
        return missed

    def _ready(self, now_ns: int) -> bool:
        """Leave WAITING once there is a clock and a fresh measurement of all joints."""
        self._waiting_for = Reason.NONE
        if now_ns <= 0:
            self._waiting_for = Reason.NO_CLOCK
        elif not self._measured.complete:
            self._waiting_for = Reason.NO_JOINT_STATE
        elif self._measured.age_s(now_ns) > self.config.joint_state_timeout_s:
            self._waiting_for = Reason.JOINT_STATE_STALE
        elif not self._measured.still:
            self._waiting_for = Reason.NO_JOINT_STATE
        elif self._measured.impossible:
            self._waiting_for = Reason.OUT_OF_LIMITS
        if self._waiting_for is not Reason.NONE:
            return False
        self._mover.rest_at(self._measured.position)
        self.state = State.HOLDING
        if self.trip_reason is not Reason.NONE:
            self.state = State.TRIPPED
        return True

    def _watch(self, now_ns: int) -> None:
        ages = self._ages(now_ns)
        reasons = stale(ages, self.config)
        if self.state not in _MOVING:
            reasons += self._doubts()
        if self.state in _MOVING:
            ended = self._mover.ended(now_ns)
            if ended:
                reasons.append(ended)
            if reasons:
                self._go_stale(tuple(reasons), ages)
        elif self.state is State.HOLDING and reasons:
            self._give_reasons(tuple(dict.fromkeys(reasons)), ages)
            self._was_holding = True
            self.state = State.STALE
        elif self.state is State.STALE and self._was_holding and not reasons:
            self.state = State.HOLDING

    def _doubts(self) -> list[Reason]:
        """Return why the measured pose of an arm at rest is not to be acted on, however fresh."""
        if not self._mover.holding:
            return []
        if self._measured.still and self._measured.impossible:
            return [Reason.OUT_OF_LIMITS]
        return [Reason.JOINT_STATE_STALE] if self._blind and not self._measured.still else []

    def _look(self, now_ns: int) -> bool:
        """True while the arm rests unseen; once it is seen again, hold it where it is."""
        stands = self.state not in _MOVING and self._mover.holding
        was_blind = self._blind
        aged = self._measured.age_s(now_ns) > self.config.joint_state_timeout_s
        self._blind = stands and (aged or bool(self._doubts()))
        if was_blind and stands and not self._blind:
            self._mover.take_over(self._measured.position)
        return self._blind

    # Decisions

    def _judge(self, chunk: Chunk, now_ns: int) -> Refusal | None:
        """Return why a chunk is not to be played now, or None."""
        if self.state is State.INACTIVE or self._leaving:
            return refuse(chunk, Reason.SHUTDOWN, "the player is not active")
        if self.state is State.WAITING:
            return refuse(chunk, self._waiting_for, "the player is still waiting")
        if self.state is State.TRIPPED:
            return refuse(chunk, self.trip_reason, "the player is tripped; reset it first")
        if (chunk.control_mode is ControlMode.VELOCITY) != self.config.velocity_mode:
            text = f"mode {chunk.control_mode.name}, but output is {self.config.output}"
            return refuse(chunk, Reason.BAD_MODE, text)
        if not np.isfinite(chunk.values).all():
            return refuse(chunk, Reason.NON_FINITE, "values are NaN or infinite")
        refusal = self._gate.judge(chunk, now_ns)
        if refusal is not None:
            return refusal
        if self._measured.age_s(now_ns) > self.config.joint_state_timeout_s:
            return refuse(chunk, Reason.JOINT_STATE_STALE, "joint states are too old to act on")
        if self.state not in _MOVING and self._doubts():
            reason = self._doubts()[0]
            return refuse(chunk, reason, self._describe(reason, self._ages(now_ns)))
        if self._from_row_0(now_ns):
            return None
        late = now_ns - chunk.stamp_ns - len(chunk.values) * chunk.dt_ns
        if late >= 0:
            self.counters.rows_dropped_late += len(chunk.values)
            return refuse(
                chunk, Reason.CHUNK_STALE, f"its last row was due {late * 1e-9:.3f} s ago"
            )
        return None

    def _from_row_0(self, now_ns: int) -> bool:
        """True if a chunk would start at row 0: nothing played, the arm held and measured still."""
        return self.state not in _MOVING and self.at_rest and self._measured.still

    def _accept(self, chunk: Chunk, now_ns: int) -> None:
        from_row_0 = self._from_row_0(now_ns)
        if self.state not in _MOVING:
            measured = self._measured
            self._mover.begin(measured.position if measured.believable else None, now_ns)
            self._reasons = ()
            self._was_holding = False
            self.state = State.RAMPING_IN
        self.counters.rows_dropped_late += self._mover.add(chunk, now_ns, from_row_0)
        self.counters.chunks_played += 1
        self._gate.follow(chunk)

    def _go_stale(self, reasons: tuple[Reason, ...], ages: Ages = Ages()) -> None:
        if self.state in _MOVING:
            self.counters.stops += 1
        self._mover.clear()
        self._gate.release(lost=Reason.HEARTBEAT_LOST in reasons)
        self._give_reasons(reasons, ages)
        self._was_holding = False
        self.state = State.STALE

    def _give_reasons(self, reasons: tuple[Reason, ...], ages: Ages) -> None:
        # In words now: the ages that gave the reason are gone once the source is let go.
        self._reasons = reasons
        self._words = {reason: self._describe(reason, ages) for reason in reasons}

    def _trip(self, reason: Reason, now_ns: int) -> None:
        self._trip_ns = now_ns
        if self.trip_reason is Reason.NONE:
            self.trip_reason = reason
        self._mover.clear()
        self._gate.release()
        if self.state not in (State.INACTIVE, State.WAITING, State.TRIPPED):
            self.counters.stops += 1
            self.state = State.TRIPPED

    def _start_anew(self) -> None:
        self._mover.forget()
        self._gate.release()
        self._reasons = ()
        self._leaving = self._said_rest = self._was_holding = self._blind = False
        self._last_tick_ns = None
        self._waiting_for = Reason.NO_JOINT_STATE

    # What to say

    def _ages(self, now_ns: int) -> Ages:
        plan = self._mover.plan
        return Ages(
            observation=(now_ns - plan.chunk.stamp_ns) * 1e-9 if plan else math.nan,
            chunk=(now_ns - plan.chunk.received_ns) * 1e-9 if plan else math.nan,
            joint_state=self._measured.age_s(now_ns),
            heartbeat=self._gate.beat_age_s(now_ns),
        )

    def _reasons_now(self, ages: Ages) -> tuple[Reason, ...]:
        reasons: list[Reason] = []
        if self.state is State.WAITING:
            reasons.append(self._waiting_for)
        elif self.state is State.STALE:
            reasons += self._reasons
            reasons += self._doubts()
        if self.trip_reason is not Reason.NONE:
            reasons.append(self.trip_reason)
        if self._stop_asked:
            reasons.append(Reason.PROTECTIVE_STOP)
        if self._told_to_leave:
            reasons.append(Reason.SHUTDOWN)
        if self.state is not State.INACTIVE:
            reasons += stale(ages, self.config)
            position = self._measured.position
            if ((position < self.robot.lower) | (position > self.robot.upper)).any():
                reasons.append(Reason.OUT_OF_LIMITS)
        return tuple(r for r in dict.fromkeys(reasons) if r is not Reason.NONE)

    def _describe(self, reason: Reason, ages: Ages) -> str:
        return in_words(reason, ages, self._measured, self.robot)

    def status(self, now_ns: int) -> PlayerStatusData:
        """Say what the player does and why; the counters in it go on counting."""
        ages = self._ages(now_ns)
        reasons = self._reasons_now(ages)
        fresh = stale(ages, self.config)
        words = "; ".join(
            self._words[reason]
            if self.state is State.STALE and reason in self._words and reason not in fresh
            else self._describe(reason, ages)
            for reason in reasons
        )
        plan = self._mover.plan
        motion = self._mover.motion
        return PlayerStatusData(
            stamp_ns=now_ns,
            state=self.state,
            reasons=reasons,
            trip_reason=self.trip_reason,
            text=f"{self.state.name}: {words}" if words else self.state.name,
            source=self.source,
            chunk_id=plan.chunk.chunk_id if plan else 0,
            observation_stamp_ns=plan.chunk.stamp_ns if plan else 0,
            observation_age=ages.observation,
            chunk_age=ages.chunk,
            joint_state_age=ages.joint_state,
            heartbeat_age=ages.heartbeat,
            joint_names=self.robot.joint_names,
            command_position=tuple(motion.p.tolist()) if motion else (),
            command_velocity=tuple(motion.v.tolist()) if motion else (),
            joint_reasons=tuple(self._mover.joint_reasons.tolist()),
            counters=self.counters,
        )
