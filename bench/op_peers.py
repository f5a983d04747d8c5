#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares this engine with ONNX Runtime on graphs of one operator or a few equal ones, on the CPU, FP32.

Engines are processes that take turns, as in cpu_peers.py; outputs are compared first. Printed: medians over the rounds
of both times and of ONNX Runtime's time / ours. Graphs with few rows chain several layers with weights of their own:
together they are larger than the caches.
"""
import argparse
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import engines

LARGEST_ERROR = 1e-5
FLOAT = TensorProto.FLOAT


class Graph:
    """Of one network: nodes, constants, inputs with their values, outputs with their shapes."""

    def __init__(self):
        self.rng = np.random.Generator(np.random.PCG64(1))
        self.nodes, self.constants, self.inputs, self.outputs = [], {}, {}, {}

    def normal(self, *shape, std=1.0):
        return (std * self.rng.standard_normal(shape)).astype(np.float32)

    def input(self, name, value):
        self.inputs[name] = value.astype(np.float32)
        return name

    def constant(self, name, value):
        self.constants[name] = value
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output] if isinstance(output, str) else output, **attributes))
        return output

    def save(self, path):
        def values(shapes):
            return [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in shapes]
        graph = helper.make_graph(self.nodes, "op", values((n, v.shape) for n, v in self.inputs.items()),
                                  values(self.outputs.items()),
                                  [numpy_helper.from_array(v, n) for n, v in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.save(model, path)


def layers(rows, *widths):
    """Fully connected with bias and ReLU."""
    g = Graph()
    value = g.input("x", g.normal(rows, widths[0]))
    for i, (k, n) in enumerate(zip(widths, widths[1:])):
        w = g.constant(f"w{i}", g.normal(k, n, std=k ** -0.5))
        value = g.node("Gemm", [value, w, g.constant(f"b{i}", g.normal(n, std=0.1))], f"sum{i}")
        value = g.node("Relu", [value], "y" if i + 2 == len(widths) else f"y{i}")
    g.outputs["y"] = (rows, widths[-1])
    return g


def embeddings(words, width, count, tensors):
    g = Graph()
    table = g.constant("table", g.normal(words, width))
    for i in range(tensors):
        index = g.node("Cast", [g.input(f"x{i}", g.rng.integers(0, words, count))], f"i{i}", to=TensorProto.INT32)
        g.outputs[g.node("Gather", [table, index], f"y{i}")] = (count, width)
    return g


def gather_elements(rows, n):
    g = Graph()
    index = g.constant("index", g.rng.integers(0, n, (rows, n)).astype(np.int32))
    g.outputs[g.node("GatherElements", [g.input("x", g.normal(rows, n)), index], "y", axis=1)] = (rows, n)
    return g


def topk(rows, n, k):
    g = Graph()
    x, count = g.input("x", g.normal(rows, n)), g.constant("k", np.array([k], np.int64))
    g.node("TopK", [x, count], ["y", "index"], axis=1)
    g.node("Cast", ["index"], "where", to=FLOAT)
    g.outputs.update(y=(rows, k), where=(rows, k))
    return g


def arg_max(classes, side):
    g = Graph()
    g.node("ArgMax", [g.input("x", g.normal(1, classes, side, side))], "index", axis=1, keepdims=0)
    g.outputs[g.node("Cast", ["index"], "y", to=FLOAT)] = (1, side, side)
    return g


def where(heads, side):
    g = Graph()
    zero = g.constant("zero", np.zeros((1, 1, 1, 1), np.float32))
    mask = g.node("Less", [g.input("m", g.normal(1, 1, side, side)), zero], "mask")
    x, low = g.input("x", g.normal(1, heads, side, side)), g.constant("low", np.full((1, 1, 1, 1), -1e4, np.float32))
    g.outputs[g.node("Where", [mask, x, low], "y")] = (1, heads, side, side)
    return g


def parametric_relu(channels, side):
    g = Graph()
    slope = g.constant("slope", np.abs(g.normal(channels, 1, 1)))
    g.outputs[g.node("PRelu", [g.input("x", g.normal(1, channels, side, side)), slope], "y")] = (1, channels, side, side)
    return g


GRAPHS = {
    "1x2048x1000 and back, 7 layers": lambda: layers(1, *[2048, 1000] * 4),
    "1x768x3072 and back, 8 layers": lambda: layers(1, *[768, 3072] * 4, 768),
    "1x4096x4096, 2 layers": lambda: layers(1, 4096, 4096, 4096),
    "1x256x512 and back, 7 layers": lambda: layers(1, *[256, 512] * 4),
    "4x768x3072 and back, 8 layers": lambda: layers(4, *[768, 3072] * 4, 768),
    "gather 128 of 30522x768, 8 times": lambda: embeddings(30522, 768, 128, 8),
    "gather elements 256x1000": lambda: gather_elements(256, 1000),
    "top 5 of 1000": lambda: topk(1, 1000, 5),
    "top 5 of 1000, 64 rows": lambda: topk(64, 1000, 5),
    "top 100 of 20000": lambda: topk(1, 20000, 100),
    "top 100 of 20000, 16 rows": lambda: topk(16, 20000, 100),
    "top 1000 of 160000": lambda: topk(1, 160000, 1000),
    "arg max of 21 channels 256x256": lambda: arg_max(21, 256),
    "where 12x128x128, one mask": lambda: where(12, 128),
    "parametric ReLU 64x56x56": lambda: parametric_relu(64, 56),
}


def largest_error(folder, ours, peer):
    names = ours.ask(f"outputs {folder}/ours", "outputs").split()
    others = peer.ask(f"outputs {folder}/peer", "outputs").split()
    worst = 0.0
    for i, name in enumerate(names):
        got = np.fromfile(f"{folder}/ours{i}", np.float32).astype(np.float64)
        want = np.fromfile(f"{folder}/peer{others.index(name)}", np.float32).astype(np.float64)
        worst = max(worst, float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)))
    return worst


def compare(name, threads, options, folder):
    graph, model = GRAPHS[name](), os.path.join(folder, "op.onnx")
    graph.save(model)
    files = {n: os.path.join(folder, n + ".raw") for n in graph.inputs}
    for n, path in files.items():
        graph.inputs[n].tofile(path)
    plan, _ = engines.build_ours(options.bin_dir, model, {}, threads, folder, options.timeout, True)
    both = [engines.start_ours(options.bin_dir, plan, threads, files, options.timeout),
            engines.start_peer("onnxruntime", model, threads, files, {}, options.timeout)]
    try:
        for worker in both:
            worker.ready()
        error = largest_error(folder, *both)
        if error > LARGEST_ERROR:
            raise engines.EngineError(f"outputs differ by {error:.1e} (allowed: {LARGEST_ERROR:.0e})")
        times = engines.times_in_turns(both, options.turn, options.rounds, first=(3, 10), repeats=2)
        ratio = statistics.median(peer / ours for ours, peer in zip(*times))
        return "{:10.1f} us {:10.1f} us {:7.2f}".format(*(1e6 * statistics.median(t) for t in times), ratio)
    finally:
        for worker in both:
            worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="", help="part of their names")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turn", type=float, default=0.03, help="seconds of an engine's turn")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--bin-dir", default=os.path.join(engines.ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    failed = False
    print(f"{'graph':34} threads {'ours':>13} {'ONNX Runtime':>13} {'ratio':>7}")
    for name in GRAPHS:
        if options.graphs not in name:
            continue
        for threads in options.threads.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    text = compare(name, int(threads), options, folder)
                except engines.EngineError as error:
                    text, failed = str(error), True
            print(f"{name:34} {threads:>7} {text}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
