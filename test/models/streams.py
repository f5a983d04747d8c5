#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streaming networks over 400 frames with carried state: what the frames are, and what ONNX Runtime made of them.

  streams.py --record MODELS    writes streams.json (needs onnxruntime and numpy; graph optimizations are off)

Frame i is the recorded input of one of the model's data sets, in turn, times a gain from 1/32 to 2: the streams that the sets were cut
from do not come with the models.
"""
import json
import os
import struct
import sys

FRAMES = 400
RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams.json")
# name: input of the frame, input of the state, other inputs
STREAMS = {
    "silero_vad_16k_op15": ("input", "state", {"sr": 16000}),
    "silero_vad_ov16k": ("input", "state", {}),
    "dtln1": ("input_2", "input_3", {}),
}


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def read_tensor(path):
    """Shape and numbers of a serialized TensorProto of float32 with raw data."""
    with open(path, "rb") as file:
        data = file.read()
    dims, raw, at = [], b"", 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            if key >> 3 == 1:
                dims.append(value)
        elif key & 7 == 2:
            size, at = _varint(data, at)
            if key >> 3 == 9:
                raw = data[at:at + size]
            elif key >> 3 == 1:  # packed
                end = at + size
                while at < end:
                    value, at = _varint(data, at)
                    dims.append(value)
                continue
            at += size
        else:
            raise ValueError("%s: a field of wire type %d" % (path, key & 7))
    return dims, struct.unpack("<%df" % (len(raw) // 4), raw)


def frames_of(folder):
    """Shape of a frame, all frames as bytes, shape of the state."""
    sets = sorted(d for d in os.listdir(folder) if d.startswith("test_data_set_"))
    inputs = [read_tensor(os.path.join(folder, d, "input_0.pb")) for d in sets]
    state = read_tensor(os.path.join(folder, sets[0], "input_1.pb"))[0]
    out = b""
    for i in range(FRAMES):
        gain = (i * 37 % 64 + 1) / 32  # exact: the product is rounded once
        values = inputs[i % len(sets)][1]
        out += struct.pack("<%df" % len(values), *(gain * v for v in values))
    return inputs[0][0], out, state


def summary(out, frame_outputs):
    """The mean of each frame's output, and the last state."""
    values = struct.unpack("<%df" % (len(out) // 4), out)
    means = [sum(values[i * frame_outputs:(i + 1) * frame_outputs]) / frame_outputs for i in range(FRAMES)]
    return means, values[FRAMES * frame_outputs:]


def compare(name, out):
    """Largest differences of the means and of the last state from the recorded ones, each as a share of the largest number there."""
    with open(RECORDED, encoding="utf-8") as file:
        want = json.load(file)[name]
    means, state = summary(out, want["frame_outputs"])
    if len(means) != len(want["means"]) or len(state) != len(want["state"]):
        return float("inf"), float("inf")

    def worst(a, b):
        return max(abs(x - y) if x == x else float("inf") for x, y in zip(a, b)) / max(map(abs, b))
    return worst(means, want["means"]), worst(state, want["state"])


def record(models):
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    recorded = {}
    for name, (frame, state, others) in STREAMS.items():
        session = onnxruntime.InferenceSession(os.path.join(models, name, "model.onnx"), options, providers=["CPUExecutionProvider"])
        shape, frames, state_shape = frames_of(os.path.join(models, name))
        values = numpy.frombuffer(frames, numpy.float32).reshape([FRAMES] + shape)
        feed = {key: numpy.array(value, numpy.int64) for key, value in others.items()}
        feed[state] = numpy.zeros(state_shape, numpy.float32)
        out = b""
        for i in range(FRAMES):
            feed[frame] = values[i]
            y, feed[state] = session.run(None, feed)[:2]
            out += y.tobytes()
        means, last = summary(out + feed[state].tobytes(), y.size)
        recorded[name] = {"frame_outputs": y.size, "means": [float("%.7g" % v) for v in means],
                          "state": [float("%.7g" % v) for v in last]}
    with open(RECORDED, "w", encoding="utf-8") as file:
        json.dump(recorded, file)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--record":
        sys.exit(__doc__)
    record(sys.argv[2])
