#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: refit.py TRTEXEC [--model resnet50] [--rounds 12] [--threads] [--json FILE]

What refit costs, on the CPU or the GPU that trtexec takes: the time of a refit of all weights of a network, and runs of a
refittable engine beside one that is not. Both engines are built once (one timing cache, so that both have the same
kernels to choose of); runs are in turns, a process for each, and the ratio is the median of the rounds' ratios. Goals on a
CPU: ResNet-50 refitted within 0.3 s, its runs within 2 %. Needs numpy and onnx, for the model.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

from record import device_of, header, write_record

HERE = os.path.dirname(os.path.abspath(__file__))
GOAL_SECONDS, GOAL_RATIO = 0.3, 1.02


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n" + "\n".join(text.splitlines()[-12:]))
    return text


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"trtexec's output has no '{pattern}':\n" + "\n".join(text.splitlines()[-12:]))
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trtexec")
    parser.add_argument("--model", default="resnet50", help="a name that models/make.py knows, or a file")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", action="store_true", help="refit with ten threads")
    parser.add_argument("--json", help="write a record there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model
        if not os.path.exists(model):
            call(sys.executable, os.path.join(HERE, "models", "make.py"), args.model, "--out", folder)
            model = os.path.join(folder, args.model + ".onnx")
        cache = f"--timingCacheFile={os.path.join(folder, 'cache')}"
        plain, refittable = os.path.join(folder, "plain.plan"), os.path.join(folder, "refit.plan")
        call(args.trtexec, f"--onnx={model}", f"--saveEngine={plain}", "--buildOnly", cache)
        threads = ["--threads"] if args.threads else []
        text = call(args.trtexec, f"--onnx={model}", "--refit", "--timeRefit", f"--saveEngine={refittable}", cache,
                    "--iterations=1", "--warmUp=0", "--duration=0", *threads)
        device = device_of(text)
        seconds = number(r"Engine refitted in ([0-9.]+) ms", text) / 1000
        times = {plain: [], refittable: []}
        for i in range(args.rounds):
            for plan in (plain, refittable) if i % 2 == 0 else (refittable, plain):
                text = call(args.trtexec, f"--loadEngine={plan}", "--warmUp=300", "--duration=1", "--iterations=10")
                times[plan].append(number(r"GPU Compute Time: .*?median = ([0-9.]+) ms", text))
    ratios = [b / a for a, b in zip(times[plain], times[refittable])]
    ratio = statistics.median(ratios)
    medians = [statistics.median(times[plan]) for plan in (plain, refittable)]
    print(f"{args.model}: refit of all weights {seconds:.3f} s (goal {GOAL_SECONDS}); a run {medians[0]:.3f} ms, refittable {medians[1]:.3f} ms, "
          f"ratio {ratio:.3f} (goal {GOAL_RATIO}; rounds {min(ratios):.3f} to {max(ratios):.3f})")
    if args.json:
        row = {"network": args.model, "refit_s": seconds, "threads": args.threads, "ratio": ratio, "ratios": [min(ratios), max(ratios)],
               "plain_ms": medians[0], "refittable_ms": medians[1], "rounds": args.rounds}
        write_record(args.json, header(device, rows=[row]))
    return 0 if seconds <= GOAL_SECONDS and ratio <= GOAL_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
