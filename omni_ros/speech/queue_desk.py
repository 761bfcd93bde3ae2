# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Speaks what the queue holds, and says how far it has got.

Two threads share a desk: one brings goals and stops and looks how far things are, the other calls
`work` again and again, which asks the voice for chunks and hands them to the speaker. Stopping does not
wait for that one: the speaker is silenced, the voice told to abort, and what it still makes is thrown
away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from omni_ros.speech.playback import NAP_S, Speaker
from omni_ros.speech.queue import Job, Part, Refused, Request, Result, SpeechQueue
from omni_ros.speech.queue_run import News, Piece, Run
from omni_ros.speech.queue_tally import SpeechTally
from omni_ros.speech.voice import SpeechChunk, SpeechError, SpeechRefused, Utterance, Voice

#: A voice that has not come back from an abort for so long is taken to hang, seconds.
STUCK_S = 10.0
#: Longest wait for something to say, seconds.
WAIT_S = 0.5
#: Sound that may be left in a resampler until more comes, seconds; it is not waited for.
SLIVER_S = 0.02


class Desk:
    """Takes goals, speaks them one after the other, and tells what became of each."""

    def __init__(self, voices: Mapping[str, Voice], speaker: Speaker, *,
                 publish: Callable[[Piece], None],
                 news: Callable[[], None] = lambda: None, continue_s: float = 2.0,
                 volume: float = 1.0) -> None:
        """
        :param voices: by the names that goals use; the first is the default.
        :param publish: called with each piece, in the working thread.
        :param news: called when a `look` will have something to tell, in any thread.
        :param volume: of all, 0 to 1.
        """
        self.queue = SpeechQueue(list(voices), continue_s=continue_s)
        self.tally = SpeechTally()
        self.volume = volume
        self._voices, self._speaker = dict(voices), speaker
        self._publish, self._news = publish, news
        self._lock = threading.Condition()
        self._run: Run | None = None
        self._ended: list[tuple[Job, Run | None]] = []
        self._woken = False
        self._aborted_ns = 0

    # -- goals: the other thread -----------------------------------------------------------------

    def take(self, request: Request) -> None:
        """Take a goal; what becomes of it comes with `look`.

        :raises Refused: it is not taken.
        """
        with self._lock:
            self.tally.count("goals")
            try:
                _, replaced = self.queue.offer(request)
            except Refused:
                self.tally.count("refused")
                raise
            for job in replaced:
                self._stop(job, "another utterance was to replace it")
            self._lock.notify_all()

    def cancel(self, key: Any) -> bool:
        """Stop the utterance that a goal is part of; whether there was one."""
        with self._lock:
            for job in list(self.queue.jobs()):
                if any(part.request.key == key and not part.finished for part in job.parts):
                    self._stop(job, "it was cancelled")
                    return True
        return False

    def stop(self, why: str) -> int:
        """Stop what is being said and drop what waits; return how many utterances that were."""
        with self._lock:
            jobs = list(self.queue.jobs())
            for job in jobs:
                self._stop(job, why)
            return len(jobs)

    def _stop(self, job: Job, why: str) -> None:
        run = self._run
        if not job.end(Result.ABORTED, why):
            return
        if run is not None and run.job is job:
            self._speaker.clear()
            run.voice.abort()
            self._aborted_ns = time.monotonic_ns()
        else:
            run = None
        self.queue.drop(job)
        self._ended.append((job, run))
        self._news()

    def stuck_s(self) -> float:
        """Return for how long the voice has not come back from an abort; 0.0 if it has."""
        since = self._aborted_ns
        return (time.monotonic_ns() - since) * 1e-9 if since else 0.0

    def speaking(self) -> tuple[str, str]:
        """Return the name of the utterance being spoken and its clause; "" for none."""
        with self._lock:
            run = self._run
            if run is None or run.job.outcome is not None:
                return "", ""
            return run.job.name, run.reached(run.track.position())[1]

    @property
    def audible(self) -> bool:
        """Whether something is to be heard now: from the first sample to the last."""
        run = self._run
        if run is None:
            return False
        track, now = run.track, time.monotonic_ns()
        if track.cleared:
            return now < track.at_ns + round(self._speaker.latency_s * 1e9)
        return 0 < track.first_ns and not track.over

    def look(self) -> list[News]:
        """Return what has changed with each goal."""
        news: list[News] = []
        with self._lock:
            run = self._run
            if run is not None and run.job.outcome is None:
                news += self._progress(run)
            ended, self._ended = self._ended, []
        for job, run in ended:
            news += self._obituaries(job, run)
        return news

    def _progress(self, run: Run) -> list[News]:
        """Tell of the goals of an utterance that goes on; all but the last may be spoken by now."""
        news, parts = [], run.job.parts
        characters, _ = run.reached(run.track.position())
        for part in parts:
            if part.finished or (characters < part.begin and part is not parts[0]):
                continue
            spoken = part is not parts[-1] and characters >= part.speakable_end
            news.append(self._say(run.job, run, part, Result.SPOKEN if spoken else None, ""))
        return news

    def _obituaries(self, job: Job, run: Run | None) -> list[News]:
        """Tell of the goals of an utterance that has ended."""
        result, text = job.outcome or (Result.ABORTED, "")
        characters = run.reached(run.track.position())[0] if run is not None else 0
        news = []
        for part in job.parts:
            if part.finished:
                continue
            own = result
            if characters >= part.speakable_end > part.begin:
                own = Result.SPOKEN  # whatever became of the rest
            why = text if own is result else ""
            news.append(self._say(job, run, part, own, why))
        return news

    def _say(self, job: Job, run: Run | None, part: Part, result: Result | None,
             text: str) -> News:
        if result is not None:
            part.finished = True
            self.tally.count(result.name.lower())
        if run is None:
            return News(part.request.key, result, text, "", 0, 0.0, 0.0)
        return run.say(part, result, text)

    # -- speaking: the working thread ----------------------------------------------------------

    def work(self) -> None:
        """Speak the next utterance, or wait until there is one, or `wake`, or some time is over."""
        with self._lock:
            self._lock.wait_for(lambda: self._woken or self.queue.waiting, WAIT_S)
            self._woken = False
            job = self.queue.next() if self.queue.current is None else None
            if job is None:
                return
            voice = self._voices[job.voice]
            job.begun_ns = time.monotonic_ns()
            self._run = Run(job, voice, self._speaker.begin(voice.sample_rate))
        try:
            self._speak(self._run)
        except Exception as error:
            # Who made the desk ends with it: the goal must not seem to be spoken.
            job.end(Result.ABORTED, f"the voice {job.voice} failed: {type(error).__name__}: {error}. "
                                    "The log says where; say it again when the node is back")
            raise
        finally:
            self._finish(self._run)

    def wake(self) -> None:
        """End the wait of `work`."""
        with self._lock:
            self._woken = True
            self._lock.notify_all()

    def _speak(self, run: Run) -> None:
        job, track = run.job, run.track
        job.feed.audible = lambda: track.slack_s() > SLIVER_S
        job.feed.on_wait = lambda: self._speaker.pause(track)
        text = job.feed.whole
        chunks = None
        try:
            chunks = run.voice.start(job.feed if text is None else text,
                                     Utterance(rate=job.rate), track.slack_s)
            self._pull(run, chunks)
        except SpeechRefused as refusal:
            self._wait_out(run)
            job.end(Result.REFUSED, str(refusal))
        except SpeechError as error:
            job.end(Result.ABORTED, str(error))
        finally:
            if chunks is not None and hasattr(chunks, "close"):
                chunks.close()
        if not run.made and job.outcome is None:
            job.end(Result.ABORTED, _lost(track.lost) if track.lost else
                    "the voice ended before the text did")
        self._wait_out(run)

    def _pull(self, run: Run, chunks) -> None:
        """Ask the voice for chunks and hand them on, until there are no more or it is stopped."""
        job, track = run.job, run.track
        iterator = iter(chunks)
        while job.outcome is None and not track.over:
            waits, began = job.feed.waits, time.perf_counter()
            chunk = next(iterator, None)
            if chunk is None or job.outcome is not None:
                return
            if job.feed.waits == waits:
                run.work_s += time.perf_counter() - began
                if track.first_ns:
                    slack = track.slack_s()
                    run.slack_s = slack if run.slack_s is None else min(run.slack_s, slack)
            self._hand_on(run, chunk)
            if chunk.last:
                run.made = True
                return

    def _hand_on(self, run: Run, chunk: SpeechChunk) -> None:
        samples = np.clip(chunk.samples * np.float32(run.job.volume * self.volume), -1.0, 1.0)
        end = chunk.first_sample + len(samples)
        run.marks.append((end, chunk.text_end, chunk.speaking))
        run.samples = end
        self.tally.chunk(chunk.timings)
        self._publish(Piece(run.job.name, run.sequence, chunk.first_sample, run.voice.sample_rate,
                            samples, chunk.last))
        run.sequence += 1
        self._speaker.write(run.track, samples)

    def _wait_out(self, run: Run) -> None:
        """Wait until what was made has been played, or it is stopped, or the card is lost."""
        track, job = run.track, run.job
        self._speaker.end(track)
        while not track.over and job.outcome is None:
            time.sleep(NAP_S / 2)
            track.advance(time.monotonic_ns())

    def _finish(self, run: Run) -> None:
        job, track = run.job, run.track
        if run.sequence and not run.made:
            self._publish(Piece(job.name, run.sequence, run.samples, run.voice.sample_rate,
                                np.zeros(0, np.float32), True))
        text = "" if track.device else self._speaker.text
        if job.feed.timed_out:
            text = f"no more text came within {self.queue.continue_s:g} s. {text}".strip()
        with self._lock:
            if job.end(Result.SPOKEN if not track.lost else Result.ABORTED,
                       _lost(track.lost) if track.lost else text) or (
                           job is self.queue.current):
                self._ended.append((job, run))
            self.queue.drop(job)
            # Together: a stop that comes in between would find a run that nothing ends any more.
            self._run, self._aborted_ns = None, 0
        first_s = (track.first_ns - max(job.begun_ns, job.parts[0].request.accepted_ns)) * 1e-9
        self.tally.utterance(
            first_s=first_s if track.first_ns else None, work_s=run.work_s,
            length_s=run.samples / track.rate, slack_s=run.slack_s, underruns=track.dry,
            longest_gap_s=track.longest_dry_s, text_waits=max(0, job.feed.waits))
        self._news()


def _lost(why: str) -> str:
    return f"the sound device was lost: {why}"
