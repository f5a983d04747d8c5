#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every trained model of models.txt through the example program and through trtexec, and compares with the recorded
outputs; counts right answers where labelled data come with the models.

  run_models.py --bin build/release/bin --models FOLDER [--report FILE] [--markdown FILE] [--only NAME]
                [--trtexec-only]: without the programs that run on the CPU wherever they are

Exit status 0: everything as models.txt says; 77: the folder of models is not there (a skip); 1: a failure.
"""
import argparse
import ast
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

import streams

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77

# Pictures right out of those of the data sets that come with the models, and how a picture becomes the input.
MNIST, CIFAR = "mnist_t10k_first1000.npz", "cifar100.npz"


def scaled(scale, mean, std):
    return lambda v, c: (v * scale - mean[c % len(mean)]) / std[c % len(std)]


ACCURACY = {
    # name: (data, channels, conversion of value v of channel c, least number right, where the number comes from)
    "mnist12": (MNIST, 1, lambda v, c: float(v), 980, "98.91 % on all of t10k"),
    "resnet2b": (CIFAR, 3, scaled(1 / 255, [.4914, .4822, .4465], [.2471, .2435, .2616]), 86, "86 of 100"),
    "resnet2b_qdq": (CIFAR, 3, scaled(1 / 255, [.4914, .4822, .4465], [.2471, .2435, .2616]), 86,
                     "ONNX Runtime: 87 of 100"),
    "cifar_imgcls": (CIFAR, 3, scaled(1 / 255, [.5], [.5]), 77, "77 of 100"),
}


# Of outputs and states after 400 frames, as a share of the largest: a frame alone is off by some 1e-6.
STREAM_TOLERANCE = 2e-5

# Inputs whose dimensions are dynamic: smallest, usual and largest shape of one engine that then runs the recorded ones.
RANGES = {
    "vespa_enc": [("input_ids", "1x1", "2x16", "4x64"), ("attention_mask", "1x1", "2x16", "4x64")],
    "cifar_imgcls": [("modelInput", "1x3x32x32", "4x3x32x32", "8x3x32x32")],
    "superres": [("input", "1x1x224x224", "1x1x224x224", "2x1x224x224")],
    "dnsmos_v8": [("input_1", "1x900x120", "2x900x120", "4x900x120")],
}


# Models with QuantizeLinear and DequantizeLinear nodes: trtexec is told that INT8 is permitted.
QUANTIZED = {"resnet2b_qdq", "kws_qdq"}
# Models with zero points, which trtexec imports and the example does not: ONNX Runtime with optimizations, whose outputs these are, and
# without differ by one step of the last quantization, too.
ONE_STEP = {"kws_qdq": 0.009}  # a share of the largest number

# Pictures, the first ones of the data, that a model is calibrated on; the others are judged, in FP32 and in INT8.
CALIBRATED = {"mnist12": 100, "resnet2b": 20, "cifar_imgcls": 20}


def read_list():
    models = []
    for line in open(os.path.join(HERE, "models.txt"), encoding="utf-8"):
        line = line.split("#")[0].strip()
        if line:
            name, what = line.split(None, 1)
            models.append((name, what))
    return models


def read_npz(path):
    """Arrays of unsigned bytes or integers by name: (shape, list of numbers)."""
    out = {}
    with zipfile.ZipFile(path) as z:
        for entry in z.namelist():
            data = z.read(entry)
            size = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:10 + size].decode().strip())
            body = data[10 + size:]
            code = {"|u1": "B", "<i8": "q", "<i4": "i"}[header["descr"]]
            count = len(body) // struct.calcsize(code)
            out[entry[:-4]] = (header["shape"], struct.unpack("<%d%s" % (count, code), body))
    return out


def run(command, seconds=600):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def accuracy(args, name):
    data, channels, convert, least, note = ACCURACY[name]
    arrays = read_npz(os.path.join(args.models, "data", data))
    shape, pixels = arrays["images"]
    labels = arrays["labels"][1]
    count, height, width = shape[0], shape[1], shape[2]
    values = []
    table = [[convert(v, c) for v in range(256)] for c in range(channels)]
    plane = height * width
    for n in range(count):  # stored NHWC, wanted NCHW
        base = n * plane * channels
        for c in range(channels):
            values.extend(table[c][p] for p in pixels[base + c:base + plane * channels:channels])
    with tempfile.TemporaryDirectory() as folder:
        inputs, labelFile = os.path.join(folder, "inputs"), os.path.join(folder, "labels")
        with open(inputs, "wb") as f:
            f.write(struct.pack("<%df" % len(values), *values))
        with open(labelFile, "wb") as f:
            f.write(bytes(labels))
        command = [os.path.join(args.bin, "model_accuracy"), os.path.join(args.models, name, "model.onnx"), inputs,
                   labelFile]
        texts = [run(command + more)[1] for more in [[]] + (
            [[kind, str(CALIBRATED[name])] for kind in ("float", "entropy", "minmax")] if name in CALIBRATED else [])]
    matches = [re.search(r"right (\d+) of (\d+)", text) for text in texts]
    if not all(matches):
        return False, "accuracy: failed\n" + "\n".join(texts)
    right = [int(match.group(1)) for match in matches]
    good = right[0] >= least
    line = "%d of %s right (at least %d; %s)" % (right[0], matches[0].group(2), least, note)
    if name in CALIBRATED: # INT8 may lose one picture
        good = good and min(right[2:]) >= right[1] - 1
        line += "; of %s others than the %d of the calibration FP32 reads %d, INT8 %d by entropy and %d by the largest" % (
            matches[1].group(2), CALIBRATED[name], *right[1:])
    return good, line


def first_set(args, name):
    folder = os.path.join(args.models, name)
    return os.path.join(folder, sorted(d for d in os.listdir(folder) if d.startswith("test_data_set_"))[0])


def shape_flags(args, name):
    """Dynamic inputs: trtexec gets the shapes of the first data set from the recorded inputs itself."""
    return ["--loadInputsFrom=" + first_set(args, name)] + (["--int8"] if name in QUANTIZED else [])


def dynamic(args, name):
    """One engine for a range of shapes, on every recorded data set."""
    flags = ["--%sShapes=" % kind + ",".join("%s:%s" % (entry[0], entry[k]) for entry in RANGES[name])
             for k, kind in enumerate(["min", "opt", "max"], start=1)]
    folder = os.path.join(args.models, name)
    with tempfile.TemporaryDirectory() as temporary:
        plan = os.path.join(temporary, "plan")
        status, text = run([os.path.join(args.bin, "trtexec"), "--onnx=" + os.path.join(folder, "model.onnx"),
                            "--saveEngine=" + plan, "--buildOnly", "--noTF32"] + flags)
        sets = sorted(d for d in os.listdir(folder) if d.startswith("test_data_set_"))
        for data in sets:
            if status == 0:
                status, text = run([os.path.join(args.bin, "trtexec"), "--loadEngine=" + plan, "--iterations=1",
                                    "--duration=0", "--warmUp=0", "--loadInputsFrom=" + os.path.join(folder, data),
                                    "--compare=" + os.path.join(folder, data)])
    return status == 0, "one engine for %s to %s: %d data sets%s" % (
        RANGES[name][0][1], RANGES[name][0][3], len(sets), "" if status == 0 else ": FAILED\n" + text[-3000:])


def caffe_source(args, name, outputs):
    folder = os.path.join(args.models, name)
    return ["--deploy=" + os.path.join(folder, "deploy.prototxt"), "--model=" + os.path.join(folder, "model.caffemodel"), "--output=" + outputs]


def run_model(args, name, what):
    model = os.path.join(args.models, name, "model.onnx")
    lines, good = [], True
    source = ["--onnx=" + model]
    if not os.path.exists(model):
        source = caffe_source(args, name, what.split("outputs", 1)[1].strip())
    elif not args.trtexec_only and name not in ONE_STEP:
        status, text = run([os.path.join(args.bin, "onnx_inference"), model, os.path.join(args.models, name)])
        good = good and status == 0
        found = re.findall(r"max \|difference\| (\S+) of (\S+), cosine (\S+): (\w+)", text)
        worst = max((float(d) / max(float(m), 1e-30) for d, m, _, _ in found), default=float("nan"))
        lines.append("example: %d outputs, worst difference %.2g of the maximum%s" %
                     (len(found), worst, "" if status == 0 else ": FAILED\n" + text))
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan")
        status, text = run([os.path.join(args.bin, "trtexec"), *source, "--saveEngine=" + plan,
                            "--buildOnly", "--noTF32"] + shape_flags(args, name))
        if status == 0:
            status, text = run([os.path.join(args.bin, "trtexec"), "--loadEngine=" + plan, "--iterations=1",
                                "--duration=0", "--warmUp=0",
                                "--compare=" + first_set(args, name)] +
                               (["--compareAtol=%g" % ONE_STEP[name], "--compareCosine=0.9999"] if name in ONE_STEP else []) +
                               shape_flags(args, name))
    good = good and status == 0
    lines.append("trtexec: build, save, load, compare%s" % ("" if status == 0 else ": FAILED\n" + text[-3000:]))
    if name in RANGES:
        right, line = dynamic(args, name)
        good = good and right
        lines.append(line)
    if name in ACCURACY and not args.trtexec_only:
        right, line = accuracy(args, name)
        good = good and right
        lines.append(line)
    if name in streams.STREAMS and not args.trtexec_only:
        right, line = stream(args, name)
        good = good and right
        lines.append(line)
    return good, lines


def stream(args, name):
    """Every frame with the state that the one before gave."""
    frame, state, others = streams.STREAMS[name]
    shape, frames, state_shape = streams.frames_of(os.path.join(args.models, name))
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, p) for p in ("frames", "state", "out")]
        with open(paths[0], "wb") as f:
            f.write(frames)
        with open(paths[1], "wb") as f:
            f.write(bytes(4 * math.prod(state_shape)))
        status, text = run([os.path.join(args.bin, "model_stream"), os.path.join(args.models, name, "model.onnx"), *paths,
                            *("%s:%s" % (key, "x".join(map(str, dims))) for key, dims in ((frame, shape), (state, state_shape))),
                            *("%s=%d" % entry for entry in others.items())])
        if status != 0:
            return False, "stream: failed\n" + text
        with open(paths[2], "rb") as f:
            outputs, last = streams.compare(name, f.read())
    good = max(outputs, last) <= STREAM_TOLERANCE
    return good, "%d frames with carried state: outputs within %.1g, the last state within %.1g of the largest%s" % (
        streams.FRAMES, outputs, last, "" if good else ": MORE THAN %g" % STREAM_TOLERANCE)


def refuse_model(args, name, what):
    """A model of a later issue must end in a clear error, not in a wrong result."""
    word = what.split("says", 1)[1].strip()
    folder = os.path.join(args.models, name)
    status, text = run([os.path.join(args.bin, "trtexec"), "--buildOnly", "--onnx=" + os.path.join(folder, "model.onnx")])
    errors = [line for line in text.splitlines() if "[E]" in line]
    good = status not in (0, 139, 134, -6, -11) and any(word.lower() in line.lower() for line in errors)
    return good, ["refused: " + what.split(";")[0] + ("" if good else ": NO CLEAR ERROR\n" + text[-2000:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--report")
    parser.add_argument("--markdown")
    parser.add_argument("--only")
    parser.add_argument("--trtexec-only", action="store_true")
    args = parser.parse_args()
    if not os.path.isdir(args.models):
        print("SKIP: the folder of trained models '%s' is not there (set TENSORWRIGHT_MODELS_DIR)" % args.models)
        return SKIP
    passed = failed = refused = 0
    rows = []
    for name, what in read_list():
        if args.only and name != args.only:
            continue
        if not os.path.isdir(os.path.join(args.models, name)):
            good, lines = False, ["the model is missing in the folder of models"]
        elif what.startswith("run"):
            good, lines = run_model(args, name, what)
        else:
            good, lines = refuse_model(args, name, what)
        print("%s %s" % ("ok  " if good else "FAIL", name))
        for line in lines:
            print("     " + line)
        sys.stdout.flush()
        failed += not good
        refused += good and not what.startswith("run")
        passed += good and what.startswith("run")
        rows.append("| `%s` | %s | %s |" % (name, "runs" if what.startswith("run") else "later", "; ".join(
            line.split("\n")[0] for line in lines) if good else "**fails**"))
    summary = "models: %d give the recorded outputs, %d refused as models.txt says, %d failed" % (passed, refused, failed)
    print(summary)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            f.write(summary + "\n")
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as f:
            f.write("\n".join(["| model | state | result |", "| --- | --- | --- |"] + rows) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
