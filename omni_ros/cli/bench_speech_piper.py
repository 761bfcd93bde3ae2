# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""piper-tts on the same sentences: run as a file, by a Python that has it. Nothing of ours here.

It is under the GPL and nothing of this project needs it; this bench starts it as another program.

    python bench_speech_piper.py VOICE.onnx THREADS

Reads a sentence a line as JSON and answers each with its times, seconds: {"first", "total", "audio"}.
"""

import json
import sys
import time


def main() -> None:
    import onnxruntime
    import piper

    began = time.perf_counter()
    voice = piper.PiperVoice.load(sys.argv[1])
    threads = int(sys.argv[2])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    voice.session = onnxruntime.InferenceSession(
        sys.argv[1], options, providers=["CPUExecutionProvider"]
    )
    from importlib.metadata import version

    answer(ready=time.perf_counter() - began, piper=version("piper-tts"),
           onnxruntime=onnxruntime.__version__)
    for line in sys.stdin:
        text = json.loads(line)
        began, first, samples, rate, arrivals = time.perf_counter(), None, 0, 1, []
        for chunk in voice.synthesize(text):
            elapsed = time.perf_counter() - began
            first = elapsed if first is None else first
            arrivals.append((elapsed, samples / chunk.sample_rate))
            samples, rate = samples + len(chunk.audio_float_array), chunk.sample_rate
        total = time.perf_counter() - began
        gaps = [max(0.0, at - first - played) for at, played in arrivals]
        answer(first=first, total=total, audio=samples / rate, gap=max(gaps))


def answer(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
