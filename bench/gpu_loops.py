#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gpu_loops.py --bin FOLDER [--out FILE.json] [--floats 4096] [--trips 40 200] [--check]

What a trip of a loop costs on a GPU over what its body costs, by ONNX networks and trtexec (in FOLDER). Needs numpy and onnx.
The body is a softmax and a cumulative sum of some floats. Each row is timed for two numbers of trips; a trip is the difference of
the medians over the difference of the numbers, so that what every run costs falls out.
  row           the body's layers one after another, no loop
  counted       Loop with a constant count
  counting      the same with what a condition takes in the body: a counter, its comparison with an input, both carried
  while         Loop that this comparison ends
  count_input   Loop whose count is computed from an input
`while` over `counting` is what deciding costs; `while` over `row` has the kernels of the condition in it.
--check: every row's output against numpy, from one run each: for machines without a GPU.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

from record import device_of, header, write_record

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def body_nodes(x, y, prefix=""):
    """Numbers stay near 1: a softmax has the sum 1, its sums are below it."""
    return [helper.make_node("Softmax", [x], [prefix + "soft"], axis=0),
            helper.make_node("CumSum", [prefix + "soft", "axis"], [y])]


def model(kind, floats, trips):
    tensor = helper.make_tensor_value_info
    inputs = [tensor("x", F, [floats])]
    initializers = [constant("axis", np.int64(0)), constant("one", np.int64(1)), constant("zero", np.int64(0)),
                    constant("yes", np.array(True)), constant("trips", np.int64(trips))]
    if kind == "row":
        nodes, last = [], "x"
        for i in range(trips):
            nodes += body_nodes(last, f"x{i}", f"t{i}_")
            last = f"x{i}"
        nodes.append(helper.make_node("Identity", [last], ["y"]))
    else:
        hasCondition = kind in ("counting", "while")
        inner = body_nodes("before", "after")
        carriedIn, carriedOut = [tensor("before", F, [floats])], [tensor("after", F, [floats])]
        first, results, go_on = ["x"], ["y"], "go_on_in"
        if hasCondition:
            inputs.append(tensor("limit", I, []))
            inner += [helper.make_node("Add", ["i", "one"], ["next"]), helper.make_node("Less", ["next", "limit"], ["less"])]
            carriedIn += [tensor("i", I, [])]
            carriedOut += [tensor("next", I, [])]
            first, results = first + ["zero"], results + ["i_last"]
        if kind == "counting":
            carriedIn += [tensor("flag", B, [])]
            carriedOut += [tensor("less", B, [])]
            first, results = first + ["yes"], results + ["flag_last"]
            inner.append(helper.make_node("Identity", ["go_on_in"], ["go_on"]))
        elif kind == "while":
            inner.append(helper.make_node("Identity", ["less"], ["go_on"]))
        else:
            inner.append(helper.make_node("Identity", ["go_on_in"], ["go_on"]))
        body = helper.make_graph(inner, "body", [tensor("trip", I, []), tensor("go_on_in", B, [])] + carriedIn,
                                 [tensor("go_on", B, [])] + carriedOut)
        nodes, count = [], {"while": "", "count_input": "counted"}.get(kind, "trips")
        if kind == "count_input":
            # Of floats, so that it is computed on the GPU.
            inputs.append(tensor("limit", F, [2]))
            nodes += [helper.make_node("ReduceSum", ["limit"], ["sum"], keepdims=0),
                      helper.make_node("Cast", ["sum"], ["counted"], to=I)]
        nodes.append(helper.make_node("Loop", [count, "yes"] + first, results, body=body))
    outputs = [tensor("y", F, [floats])]
    if kind in ("counting", "while"):
        outputs.append(tensor("i_last", I, []))
    if kind == "counting":
        outputs.append(tensor("flag_last", B, []))
    m = helper.make_model(helper.make_graph(nodes, kind, inputs, outputs, initializers),
                          opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(m)
    return m


def trtexec(args, kind, trips, folder, extra):
    path, x, limit = folder / "m.onnx", folder / "x.bin", folder / "limit.bin"
    save(model(kind, args.floats, trips), path)
    np.linspace(-1, 1, args.floats, dtype=np.float32).tofile(x)
    (np.array([trips - 1, 1], np.float32) if kind == "count_input" else np.int32(trips)).tofile(limit)
    loads = f"x:{x}" + (f",limit:{limit}" if kind in ("counting", "while", "count_input") else "")
    done = subprocess.run([str(args.bin / "trtexec"), f"--onnx={path}", f"--loadInputs={loads}"] + extra, text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{kind}, {trips} trips: trtexec failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def check(args, kind, trips, folder):
    result = folder / "out.json"
    trtexec(args, kind, trips, folder, [f"--exportOutput={result}", "--iterations=1", "--warmUp=0", "--duration=0"])
    got = {t["name"]: np.array(t["values"]) for t in json.loads(result.read_text())}
    x = np.linspace(-1, 1, args.floats).astype(np.float64)
    for _ in range(trips):
        e = np.exp(x - x.max())
        x = np.cumsum(e / e.sum())
    worst = np.abs(got["y"].reshape(-1) - x).max()
    print(f"{kind:12} {trips:4} trips: largest error {worst:.1e}")
    if not worst < 1e-4 or ("i_last" in got and int(got["i_last"].reshape(-1)[0]) != trips):
        sys.exit("wrong results")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--floats", type=int, default=4096)
    parser.add_argument("--trips", type=int, nargs=2, default=[40, 200])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    rows, device, (few, many) = [], "unknown", sorted(args.trips)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ("row", "counted", "counting", "while", "count_input"):
            if args.check:
                for trips in (few, many):
                    check(args, kind, trips, folder)
                continue
            ms = {}
            for trips in (few, many):
                log = trtexec(args, kind, trips, folder, ["--iterations=200", "--warmUp=200", "--duration=2"])
                found = re.search(r"GPU Compute Time:.*?median = ([0-9.]+) ms", log)
                if not found:
                    sys.exit(f"{kind}: no time in\n{log[-3000:]}")
                ms[trips], device = float(found.group(1)), device_of(log)
            rows.append({"row": kind, "floats": args.floats, "ms": ms, "us_per_trip": 1000 * (ms[many] - ms[few]) / (many - few)})
            print(f"{kind:12} {few} trips {ms[few]:8.4f} ms  {many} trips {ms[many]:8.4f} ms  {rows[-1]['us_per_trip']:7.2f} us a trip",
                  flush=True)
    trip = {r["row"]: r["us_per_trip"] for r in rows}
    if trip:
        print(f"deciding: {trip['while'] - trip['counting']:.2f} us a trip; over the body without the condition's kernels: "
              f"{trip['while'] - trip['row']:.2f}; a count on the device: {trip['count_input'] - trip['row']:.2f}")
    if args.out:
        write_record(args.out, header(device, rows=rows))


if __name__ == "__main__":
    main()
