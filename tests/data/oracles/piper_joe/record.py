# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Record what onnxruntime makes of a Piper voice. Needs onnx, onnxruntime and numpy, nothing of ours.

    python record.py FOLDER_OF_THE_VOICE    # holds en_US-joe-medium.onnx and its .json
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

VOICE = "en_US-joe-medium"
#: Phonemes as espeak-ng 1.51 writes them (en-us), and the scales: noise, length, durations' noise.
CASES = {
    "plain": ("aɪ wɪl pˈɪk ˌʌp ðə ɹˈɛd blˈɑːk.", (0.0, 1.0, 0.0)),
    "noisy": ("həlˈoʊ, wˈɜːld!", (0.667, 1.0, 0.8)),
    "slow": ("ɹˈɛdi?", (0.0, 1.5, 0.0)),
}
#: Our name -> the graph's.
TENSORS = {
    "mean": "/enc_p/Split_output_0", "log_spread": "/enc_p/Split_output_1",
    "duration_noise": "/dp/RandomNormalLike_output_0", "frames": "/Ceil_output_0",
    "noise": "/RandomNormalLike_output_0", "decoder_input": "/Mul_7_output_0",
}


def main() -> None:
    folder = Path(sys.argv[1])
    config = json.loads((folder / f"{VOICE}.onnx.json").read_text("utf-8"))
    ids_of = config["phoneme_id_map"]
    model = onnx.load(folder / f"{VOICE}.onnx")
    for name in TENSORS.values():
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    stored = {}
    for case, (phonemes, scales) in CASES.items():
        ids = [ids_of["^"][0], ids_of["_"][0]]
        for symbol in phonemes:
            ids += [ids_of[symbol][0], ids_of["_"][0]]
        ids.append(ids_of["$"][0])
        given = {
            "input": np.array([ids], np.int64), "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(scales, np.float32),
        }
        outputs = session.run(["output", *TENSORS.values()], given)
        stored[f"{case}.ids"] = np.array(ids, np.int16)
        stored[f"{case}.scales"] = given["scales"]
        stored[f"{case}.samples"] = outputs[0].reshape(-1)
        for name, values in zip(TENSORS, outputs[1:], strict=True):
            stored[f"{case}.{name}"] = values
    np.savez_compressed("reference.npz", **stored)
    facts = {
        "family": "piper", "voice": VOICE, "recorded_by": f"onnxruntime {onnxruntime.__version__}",
        "cases": {case: {"phonemes": phonemes} for case, (phonemes, _) in CASES.items()},
    }
    Path("arch.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")


main()
