#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: networks.py --bin FOLDER --models FOLDER [--only NAME,...] [--passes fp32,tf32,fp16] [--gpus N,...] [--json FILE]

Whole networks on a GPU: makes each with its seeded weights (bench/models/make.py in --models), runs it once on the CPU with ONNX
Runtime, builds it with trtexec in exact FP32, with TF32 and in FP16, compares the outputs each time and times it. With several
--gpus (numbers as CUDA_VISIBLE_DEVICES takes them) as many networks run at a time. Needs numpy, onnx and onnxruntime. Status 1: a network failed.
"""
import argparse
import concurrent.futures
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

# Those that take longest first: lanes end together.
NAMES = ["yolov8n", "densenet121", "efficientnet_b0", "gpt2_s128", "inception_v3", "resnet50", "vit_b16", "mobilenet_v2", "unet",
         "bert_base_s128", "resnet18"]

# Errors of TF32 and FP16 (both have 10 bits of mantissa) grow from layer to layer of these random networks; each layer was
# compared within narrow bounds when it was built. FP16 rounds what lies between layers too: on an H200 the lowest cosine of the
# eleven was 0.9991 (ResNet-50). A kernel that is wrong leaves these bounds far behind.
PASSES = {
    "fp32": ["--noTF32", "--compareAtol=1e-4", "--compareRtol=1e-3", "--iterations=20", "--duration=0.5"],
    "tf32": ["--compareAtol=0.25", "--compareRtol=0.1", "--compareCosine=0.998", "--iterations=20", "--duration=0.5"],
    "fp16": ["--fp16", "--compareAtol=0.4", "--compareRtol=0.1", "--compareCosine=0.998", "--iterations=20", "--duration=0"],
}


def make(models, name, folder):
    """The network as a file. Returns its path, or None and what was said."""
    made = subprocess.run([sys.executable, os.path.join(models, "make.py"), name, "--out", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = made.stdout.decode(errors="replace")
    return (os.path.join(folder, name + ".onnx") if made.returncode == 0 else None), text


def data_set(model, folder):
    """Inputs, and what ONNX Runtime makes of them, as the files that trtexec reads."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(7)
    feed = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        if "int" in i.type:
            feed[i.name] = random.integers(0, 2 if "mask" in i.name or "type" in i.name else 1000, shape).astype(
                np.int64 if "64" in i.type else np.int32)
        else:
            feed[i.name] = random.standard_normal(shape).astype(np.float32)
    outputs = session.run(None, feed)
    os.makedirs(folder)
    for kind, pairs in (("input", list(feed.items())),
                        ("output", [(o.name, v) for o, v in zip(session.get_outputs(), outputs)])):
        for i, (name, value) in enumerate(pairs):
            with open(os.path.join(folder, "%s_%d.pb" % (kind, i)), "wb") as f:
                f.write(onnx.numpy_helper.from_array(value, name).SerializeToString())


def trtexec(binaries, gpu, flags):
    """Runs it on one GPU (None: the first). Returns whether it passed, milliseconds, seconds of the build, its lines."""
    environment = dict(os.environ)
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    try:
        done = subprocess.run([os.path.join(binaries, "trtexec")] + flags, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=400, check=False, env=environment)
    except subprocess.TimeoutExpired as late:
        return False, None, None, (late.stdout or b"").decode(errors="replace") + "\nended after 400 s"
    text = done.stdout.decode(errors="replace")
    number = lambda pattern: (lambda m: float(m.group(1)) if m else None)(re.search(pattern, text))
    return (done.returncode == 0, number(r"GPU Compute Time:.*?median = ([0-9.]+) ms"),
            number(r"Engine built in ([0-9.]+) sec"), text)


def run(args, name, gpus, folder):
    """One network in each pass. Returns its row and, where it failed, the last lines."""
    row, begin = {"network": name, "ok": False}, time.time()
    model, text = make(args.models, name, folder)
    if model:
        data = os.path.join(folder, name)
        data_set(model, data)
        row["ok"] = True
        gpu = gpus.get()  # one network at a time on a GPU; others are made meanwhile
        try:
            for key in args.passes.split(","):
                good, ms, build, text = trtexec(args.bin, gpu, ["--onnx=" + model, "--loadInputsFrom=" + data, "--compare=" + data,
                                                                "--useCudaGraph", "--warmUp=50"] + PASSES[key])
                suffix = "" if key == "fp32" else "_" + key
                row["ok"] = row["ok"] and good
                row["ms" + suffix], row["build_s" + suffix] = ms, build
                cosines = re.findall(r"max absolute = (\S+), max relative = \S+, cosine = (\S+)", text)
                if cosines:
                    row["cosine" + suffix] = min(float(c) for _, c in cosines)
                    row["difference" + suffix] = max(float(d) for d, _ in cosines)
                if not row["ok"]:
                    break
        finally:
            gpus.put(gpu)
        os.remove(model)
    row["s"] = round(time.time() - begin)
    return row, "" if row["ok"] else "\n".join(line[:500] for line in text.splitlines()[-12:])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--passes", default=",".join(PASSES))
    parser.add_argument("--gpus")
    parser.add_argument("--json")
    args = parser.parse_args()
    listed = args.gpus.split(",") if args.gpus else [None]
    gpus = queue.Queue()
    for gpu in listed:
        gpus.put(gpu)
    rows, lock = [], threading.Lock()
    with tempfile.TemporaryDirectory() as folder:

        def one(name):
            try:
                row, text = run(args, name, gpus, folder)
            except Exception as error:  # counted as any other failure
                row, text = {"network": name, "ok": False, "s": 0}, repr(error)
            with lock:
                rows.append(row)
                print("%-16s %-6s" % (name, "ok" if row["ok"] else "FAILED") + "".join(
                    "  %s %8s ms (build %5.1f s, cosine %.6f)" % (
                        key, row["ms" + suffix], row["build_s" + suffix] or 0, row.get("cosine" + suffix, float("nan")))
                    for key, suffix in (("fp32", ""), ("tf32", "_tf32"), ("fp16", "_fp16")) if "ms" + suffix in row)
                    + "  %d s in all" % row["s"], flush=True)
                if text:
                    print(text, flush=True)
                if args.json:
                    with open(args.json, "w", encoding="utf-8") as f:
                        json.dump(rows, f, indent=1)

        # One more than there are GPUs: its network and ONNX Runtime's results are made while the others run.
        with concurrent.futures.ThreadPoolExecutor(len(listed) + 1) as pool:
            list(pool.map(one, args.only.split(",")))
    failed = sum(not row["ok"] for row in rows)
    print("%d networks in %s, %d failed" % (len(rows), args.passes, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
