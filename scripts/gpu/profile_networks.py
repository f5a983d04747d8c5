#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: profile_networks.py --bin FOLDER --models FOLDER --out FOLDER [--flags FLAGS] [NAME...]

Where the time of whole networks goes: makes each NAME with its seeded weights (bench/models/make.py in --models), or takes it
as an ONNX file when it is the path of one, and has trtexec time it in a CUDA graph and then, in a run of its own, layer by
layer (--dumpProfile --exportProfile --separateProfileRun; events between layers cost some microseconds each, so these add up to
more than the graph's time). --flags are more of trtexec's (default "--fp16"). Writes profile.json
(layers with op, tactic and median milliseconds) and profile_NAME.log to --out; a short table comes last. Status 1: a network failed.
"""
import argparse
import json
import os
import shlex
import sys
import tempfile
import time

import networks

NAMES = ["resnet50", "bert_base_s128", "vit_b16", "mobilenet_v2"]
SHOWN = 5  # layers of each network in the table


def profile(args, name, folder):
    row = {"network": name, "flags": args.flags, "ok": False}
    if os.path.exists(name):
        model, text = name, ""
        row["network"] = os.path.basename(os.path.dirname(os.path.abspath(name))) or name
    else:
        model, text = networks.make(args.models, name, folder)
    if model:
        times, layers = os.path.join(folder, "times.json"), os.path.join(folder, "layers.json")
        good, row["ms"], row["build_s"], text = networks.trtexec(args.bin, None, [
            "--onnx=" + model, "--useCudaGraph", "--iterations=50", "--duration=0.3", "--warmUp=100", "--profilingVerbosity=detailed",
            "--dumpProfile", "--separateProfileRun", "--exportProfile=" + times, "--exportLayerInfo=" + layers] + shlex.split(args.flags))
        if good:
            with open(times, encoding="utf-8") as f:
                measured = json.load(f)
            with open(layers, encoding="utf-8") as f:
                about = {layer["Name"]: layer for layer in json.load(f)["Layers"] if isinstance(layer, dict)}
            row["runs"] = measured[0]["count"]
            row["layers"] = [{"name": m["name"], "op": about.get(m["name"], {}).get("Op", ""),
                              "tactic": about.get(m["name"], {}).get("TacticName", ""), "ms": m["medianMs"]} for m in measured[1:]]
            row["sum_ms"] = sum(layer["ms"] for layer in row["layers"])
            row["ok"] = row["sum_ms"] > 0
        if model != name:
            os.remove(model)
    with open(os.path.join(args.out, "profile_%s.log" % row["network"]), "w", encoding="utf-8") as f:
        f.write(text)
    if not row["ok"]:
        print("\n".join(line[:300] for line in text.splitlines()[-12:]), flush=True)
    return row


def table(rows):
    for row in rows:
        if not row["ok"]:
            print("%-16s FAILED" % row["network"])
            continue
        timed = [layer for layer in row["layers"] if layer["ms"] > 0]
        print("%-16s %s %.4f ms as a graph; %d layers one by one %.4f ms; build %.1f s" % (
            row["network"], row["flags"], row["ms"], len(timed), row["sum_ms"], row["build_s"]))
        for layer in sorted(timed, key=lambda entry: -entry["ms"])[:SHOWN]:
            print("    %5.1f %% %8.4f ms  %-48.48s %s" % (100 * layer["ms"] / row["sum_ms"], layer["ms"], layer["tactic"],
                                                       layer["name"][:60]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--flags", default="--fp16")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or NAMES:
            begin = time.time()
            rows.append(profile(args, name, folder))
            print("%s: %.0f s" % (rows[-1]["network"], time.time() - begin), flush=True)
            with open(os.path.join(args.out, "profile.json"), "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
    table(rows)
    failed = sum(not row["ok"] for row in rows)
    print("%d networks, %d failed" % (len(rows), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
