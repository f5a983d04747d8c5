#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: int8_beside_fp16.py --bin FOLDER --models FOLDER [--peers FOLDER] [--rows NAME_bBATCH,...] [--rounds N] [--seconds S]
                           [--json FILE]

What it costs to permit INT8 beside FP16: each network of bench/gpu_networks.py (--peers: its folder) is built by trtexec with
--fp16, and with --fp16 --int8 and the ranges that trtexec gives then; the two engines are timed in turns, and a row's ratio is
the median of the rounds'. Needs PyTorch (for the list of networks), numpy and onnx. No network begins after --seconds. Status 1:
a build or run failed, or nothing was measured; 2: a ratio is above 1.02, or their geometric mean above 0.98.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

MOST, MOST_MEAN = 1.02, 0.98


def trtexec(binaries, flags, seconds=300):
    """Its output, or an error that holds the last lines of it."""
    try:
        done = subprocess.run([os.path.join(binaries, "trtexec"), *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(f"trtexec {' '.join(flags)} did not end within {seconds} s") from late
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise RuntimeError("\n".join(text.splitlines()[-12:]))
    return text


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise RuntimeError("trtexec printed nothing like '" + pattern + "'")
    return float(found.group(1))


def measure(options, network, folder):
    import onnx
    path = os.path.join(folder, "model.onnx")
    onnx.save(network.onnx_model(), path)
    row, plans = {"network": network.row}, {}
    for kind, flags in (("fp16", ["--fp16"]), ("int8", ["--fp16", "--int8"])):
        plans[kind] = os.path.join(folder, kind + ".plan")
        text = trtexec(options.bin, ["--onnx=" + path, "--buildOnly", "--saveEngine=" + plans[kind], "--verbose", *flags])
        row["build_s_" + kind] = number(r"Engine built in ([0-9.]+) sec", text)
        if kind == "int8":  # the graph without the ranges is built, too, and the faster engine stays
            row["int8_layers"] = len(re.findall(r"INT8: '", text))
            row["said"] = [line for line in text.splitlines() if "quantize_ranges" in line and "without" in line][-2:]
    times = {kind: [] for kind in plans}
    for turn in range(options.rounds):
        for kind in sorted(plans, reverse=turn % 2 == 1):
            text = trtexec(options.bin, ["--loadEngine=" + plans[kind], "--useCudaGraph", "--warmUp=100", "--duration=0.5",
                                         "--iterations=20", "--noDataTransfers"])
            times[kind].append(number(r"GPU Compute Time:.*?median = ([0-9.]+) ms", text))
    row["ms"] = {kind: statistics.median(list_) for kind, list_ in times.items()}
    row["rounds"] = times
    row["ratio"] = statistics.median(i / f for i, f in zip(times["int8"], times["fp16"]))
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True, help="folder of bench/models")
    parser.add_argument("--peers", default=os.path.join(here, "peers"), help="folder of gpu_networks.py")
    parser.add_argument("--rows")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--json")
    options = parser.parse_args()
    sys.path[:0] = [options.peers, options.models]
    import gpu_networks
    known = {network.row: network for network in gpu_networks.rows()}
    wanted = options.rows.split(",") if options.rows else list(known)
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"there is no network {', '.join(unknown)} (there are: {', '.join(known)})")
    begin, rows, failed = time.time(), [], 0
    for name in wanted:
        if time.time() - begin > options.seconds:
            print(f"{name:18} not begun: {options.seconds:.0f} s are over")
            failed += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(measure(options, known[name], folder))
            except RuntimeError as error:
                failed += 1
                print(f"{name:18} FAILED\n{error}", flush=True)
                continue
        ms = rows[-1]["ms"]
        print(f"{name:18} fp16 {ms['fp16']:8.3f} ms  int8 permitted {ms['int8']:8.3f} ms  ratio {rows[-1]['ratio']:.3f}", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    if not rows:
        return 1
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))
    worst = max(row["ratio"] for row in rows)
    print(f"{len(rows)} networks, {failed} failed: highest ratio {worst:.3f} (at most {MOST}), geometric mean {mean:.3f} (at most {MOST_MEAN})")
    return 1 if failed else 2 if worst > MOST or mean > MOST_MEAN else 0


if __name__ == "__main__":
    sys.exit(main())
