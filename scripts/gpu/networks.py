#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: networks.py --bin FOLDER --models FOLDER [--only NAME,...] [--json FILE]

Whole networks on a GPU: makes each with its seeded weights (bench/models/make.py in --models), runs it once on the CPU with ONNX
Runtime, builds it with trtexec without TF32 and with it, compares the outputs and times it. Needs numpy, onnx and onnxruntime. Status 1: a network failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

NAMES = ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "inception_v3", "densenet121", "unet", "yolov8n",
         "bert_base_s128", "vit_b16", "gpt2_s128"]


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


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--only")
    parser.add_argument("--json")
    args = parser.parse_args()
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only.split(",") if args.only else NAMES:
            begin = time.time()
            made = subprocess.run([sys.executable, os.path.join(args.models, "make.py"), name, "--out", folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            model, data = os.path.join(folder, name + ".onnx"), os.path.join(folder, name)
            row = {"network": name, "ok": False}
            rows.append(row)
            text = made.stdout.decode(errors="replace")
            if made.returncode == 0:
                data_set(model, data)
                row["ok"] = True
                # Errors of TF32 grow from layer to layer of these random networks as those of FP16 do; each layer was
                # compared when it was built.
                for key, flags in (("", ["--noTF32", "--compareAtol=1e-4", "--compareRtol=1e-3"]),
                                   ("_tf32", ["--compareAtol=0.25", "--compareRtol=0.1", "--compareCosine=0.998"])):
                    done = subprocess.run(
                        [os.path.join(args.bin, "trtexec"), "--onnx=" + model, "--loadInputsFrom=" + data,
                         "--compare=" + data, "--useCudaGraph", "--iterations=20", "--duration=1", "--warmUp=100"] + flags,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400, check=False)
                    text = done.stdout.decode(errors="replace")
                    row["ok"] = row["ok"] and done.returncode == 0
                    found = re.search(r"GPU Compute Time:.*?median = ([0-9.]+) ms", text)
                    row["ms" + key] = float(found.group(1)) if found else None
                    found = re.search(r"Engine built in ([0-9.]+) sec", text)
                    row["build_s" + key] = float(found.group(1)) if found else None
                    if not row["ok"]:
                        break
                os.remove(model)
            failed += not row["ok"]
            print("%-18s %-6s %8s ms  build %6s s, with TF32 %8s ms  build %6s s  (%.0f s in all)" % (
                name, "ok" if row["ok"] else "FAILED", row.get("ms"), row.get("build_s"), row.get("ms_tf32"),
                row.get("build_s_tf32"), time.time() - begin), flush=True)
            if not row["ok"]:
                print("\n".join(line[:500] for line in text.splitlines()[-12:]), flush=True)
            if args.json:
                with open(args.json, "w", encoding="utf-8") as f:
                    json.dump(rows, f, indent=1)
    print("%d networks, %d failed" % (len(rows), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
