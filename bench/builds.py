#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: builds.py TRTEXEC [MODEL.onnx|NAME]... [--models DIR] [--builds 3] [--rounds 7] [--json FILE] [-- TRTEXEC OPTIONS]

Whether an engine depends on the luck of its build: several builds of each network, from nothing (no timing cache), and their engines in turns.
The figure is the slowest engine's time over the fastest one's, each the median of its rounds. Goals: 1.03 on a GPU, 1.05 on a CPU. NAME: a
network of bench/models, which is written first (needs numpy and onnx). Behind --: what builds get beside the model (--fp16, --threads and
the like).
"""
import argparse
import os
import statistics
import sys
import tempfile

from record import device_of, header, write_record
from refit import call, number

HERE = os.path.dirname(os.path.abspath(__file__))


def milliseconds(trtexec, plan, seconds):
    text = call(trtexec, f"--loadEngine={plan}", "--warmUp=200", f"--duration={seconds}", "--iterations=10", "--noDataTransfers", "--useSpinWait")
    return number(r"GPU Compute Time:.*?median = ([0-9.]+) ms", text)


def main():
    own, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trtexec")
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--models", help="folder of make.py and its networks")
    parser.add_argument("--builds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json")
    args = parser.parse_args(own.split())
    rows = []
    device = None
    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks:
            model = network
            if not network.endswith(".onnx"):
                make = os.path.join(args.models or os.path.join(HERE, "models"), "make.py")
                call(sys.executable, make, network, "--out", folder)
                model = os.path.join(folder, network + ".onnx")
            plans, lines = [], []
            for i in range(args.builds):
                plans.append(os.path.join(folder, f"{i}.plan"))
                text = call(args.trtexec, f"--onnx={model}", f"--saveEngine={plans[-1]}", "--buildOnly", *options.split())
                device = device or device_of(text)
                lines.append(number(r"Engine built in ([0-9.]+) sec", text))
            times = [[] for _ in plans]
            for _ in range(args.rounds):
                for t, plan in zip(times, plans):
                    t.append(milliseconds(args.trtexec, plan, args.seconds))
            medians = [statistics.median(t) for t in times]
            ratio = max(medians) / min(medians)
            name = os.path.basename(os.path.dirname(model)) if os.path.basename(model) == "model.onnx" else os.path.splitext(os.path.basename(model))[0]
            rows.append({"network": name, "ratio": round(ratio, 4), "ms": [round(m, 4) for m in medians], "build_s": lines})
            print(f"{name:24s} slowest / fastest {ratio:.3f}   ms {' '.join(f'{m:.4f}' for m in medians)}   built in {' '.join(f'{s:.0f}' for s in lines)} s", flush=True)
    if args.json:
        write_record(args.json, header(device, builds=args.builds, rounds=args.rounds, load_average=os.getloadavg()[0], rows=rows))


if __name__ == "__main__":
    main()
