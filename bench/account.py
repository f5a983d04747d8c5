#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: account.py MODEL.onnx [--threads N] [--trtexec FILE] [--peak FILE] [--runs N] [--json FILE] [-- TRTEXEC OPTIONS]

Where a network's time goes, region by region, each against its own limit on this CPU: operations over the FMA rate, or the
bytes of its tensors and weights over the rate of a copy, whichever takes longer. Rates are measured before and after, in this
process; several runs of trtexec, of which each region's least median counts, keep other work on the machine out.
Prints the regions by kind of work, then the slowest ones: milliseconds, limit, share of the limit.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from record import cpu_name, header, write_record

HERE = os.path.dirname(os.path.abspath(__file__))
BINARIES = os.path.join(HERE, "..", "build", "release", "bin")


def volume(dims):
    return int(np.prod(dims)) if dims else 1


def weights_of(layer):
    """Numbers of elements of the constants, the largest first."""
    return sorted((w["Count"] for w in layer.get("Constants", {}).values()), reverse=True)


def operations(layer):
    """Multiplications and additions of the products in a region; what else there is, counts by its bytes."""
    kind, out = layer["Op"], layer["Outputs"][0]["Dimensions"]
    if "convolution" in kind and weights_of(layer):
        return 2 * weights_of(layer)[0] * out[0] * volume(out[2:])
    if kind == "matrix_multiply":
        a = layer["Inputs"][0]["Dimensions"]
        if weights_of(layer) and weights_of(layer)[0] % out[-1] == 0 and weights_of(layer)[0] > out[-1]:
            return 2 * volume(out[:-1]) * weights_of(layer)[0]
        return 2 * volume(out) * a[-1]
    if kind == "attention":
        keys = layer["Inputs"][min(1, len(layer["Inputs"]) - 1)]["Dimensions"][1]
        return 2 * volume(out) * keys * 2
    return 0


def moved(layer):
    """Bytes of the tensors and weights, each once."""
    size = {"FP32": 4, "FP16": 2, "INT32": 4, "INT8": 1, "BOOL": 1}
    total = 0
    for tensor in layer["Inputs"] + layer["Outputs"]:
        text = tensor.get("Format/Datatype", "FP32").upper()
        total += volume(tensor["Dimensions"]) * next((s for name, s in size.items() if name in text), 4)
    return total + sum(w["Count"] * size.get(w["Type"].upper(), 4) for w in layer.get("Constants", {}).values())


def fma_rate(program, threads):
    """FLOP/s of the FMA loop now."""
    process = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    flops = json.loads(process.stdout.readline().split(" ", 1)[1])["flops"]
    process.stdin.write("run 20\n")
    process.stdin.flush()
    times = [float(t) for t in process.stdout.readline().split()[1:]]
    process.communicate("quit\n")
    return flops / min(times)


def copy_rate():
    """Bytes per second, read and written, of a copy far larger than the caches."""
    a, b = np.ones(1 << 26, np.float32), np.zeros(1 << 26, np.float32)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(b, a)
        best = min(best, time.perf_counter() - begin)
    return 2 * a.nbytes / best


def profile(args, folder):
    plan = os.path.join(folder, "engine.plan")
    common = [args.trtexec, "--cpuThreads=%d" % args.threads]
    subprocess.run(common + ["--onnx=" + args.model, "--saveEngine=" + plan, "--buildOnly", "--profilingVerbosity=detailed"] + args.options,
                   check=True, stdout=subprocess.DEVNULL)
    layers, medians = None, None
    for _ in range(args.runs):
        info, times = os.path.join(folder, "layers.json"), os.path.join(folder, "profile.json")
        subprocess.run(common + ["--loadEngine=" + plan, "--exportLayerInfo=" + info, "--exportProfile=" + times, "--iterations=20",
                                 "--duration=2", "--separateProfileRun"], check=True, stdout=subprocess.DEVNULL)
        with open(info, encoding="utf-8") as f:
            layers = json.load(f)["Layers"]
        with open(times, encoding="utf-8") as f:
            rows = [(row["name"], row["medianMs"]) for row in json.load(f)[1:]]
        medians = [min(a, b) for (_, a), b in zip(rows, medians or [m for _, m in rows])]
        names = [name for name, _ in rows]
    return layers, dict(zip(names, medians))


def kind_of(layer):
    inputs = layer["Inputs"][0]["Dimensions"] if layer["Inputs"] else []
    if "convolution" in layer["Op"] and len(inputs) == 4 and weights_of(layer):
        out = layer["Outputs"][0]["Dimensions"]
        group = layer.get("Attributes", {}).get("groups", 1)
        window = round((weights_of(layer)[0] * group / (inputs[1] * out[1])) ** 0.5)
        return "%sconvolution %dx%d%s" % ("depthwise " if group == inputs[1] and group > 1 else "", window, window,
                                          " stride 2" if layer.get("Attributes", {}).get("strides", [1])[0] == 2 else "")
    return layer["Op"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trtexec", default=os.path.join(BINARIES, "trtexec"))
    parser.add_argument("--peak", default=os.path.join(BINARIES, "fma_peak"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--slowest", type=int, default=12, help="regions to name")
    parser.add_argument("--json")
    args, args.options = parser.parse_known_args()
    args.options = [o for o in args.options if o != "--"]
    flops, copied = fma_rate(args.peak, args.threads), copy_rate()
    with tempfile.TemporaryDirectory() as folder:
        layers, medians = profile(args, folder)
    flops, copied = max(flops, fma_rate(args.peak, args.threads)), max(copied, copy_rate())

    rows = []
    for layer in layers:
        ms = medians.get(layer["Name"])
        if ms is None:
            continue
        by_work, by_bytes = operations(layer) / flops * 1e3, moved(layer) / copied * 1e3
        rows.append({"name": layer["Name"], "kind": kind_of(layer), "tactic": layer.get("TacticName"), "ms": ms,
                     "flops": operations(layer), "bytes": moved(layer), "limit_ms": max(by_work, by_bytes),
                     "bound": "work" if by_work >= by_bytes else "bytes"})
    total = sum(r["ms"] for r in rows)
    print("%s, %d thread(s): FMA loop %.1f GFLOP/s, copy %.1f GB/s; %d regions, %.3f ms" % (
        os.path.basename(args.model), args.threads, flops / 1e9, copied / 1e9, len(rows), total))
    print("%-34s %5s %9s %6s %9s %7s" % ("kind", "count", "ms", "%", "limit ms", "share"))
    kinds = {}
    for r in rows:
        kinds.setdefault(r["kind"], []).append(r)
    for kind, list_ in sorted(kinds.items(), key=lambda k: -sum(r["ms"] for r in k[1])):
        ms, limit = sum(r["ms"] for r in list_), sum(r["limit_ms"] for r in list_)
        print("%-34s %5d %9.3f %6.1f %9.3f %6.0f%%" % (kind[:34], len(list_), ms, 100 * ms / total, limit, 100 * limit / max(ms, 1e-9)))
    limit = sum(r["limit_ms"] for r in rows)
    print("%-34s %5d %9.3f %6.1f %9.3f %6.0f%%" % ("all", len(rows), total, 100, limit, 100 * limit / total))
    print("\nfarthest from their limits:")
    for r in sorted(rows, key=lambda r: r["limit_ms"] - r["ms"])[:args.slowest]:
        print("%9.3f ms, limit %8.3f (%s)  %-26s %-34s %s" % (r["ms"], r["limit_ms"], r["bound"], r["kind"][:26], (r["tactic"] or "")[:34], r["name"][:50]))
    if args.json:
        write_record(args.json, header(cpu_name(), model=os.path.basename(args.model), threads=args.threads, fma_gflops=flops / 1e9,
                                       copy_gbs=copied / 1e9, rows=rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
