#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: spellings.py TRTEXEC [NAME...] [--rounds 7] [--seconds 1] [--json FILE] [-- TRTEXEC OPTIONS]

The time of one mathematics must not depend on how an exporter spells it. Two networks, a transformer and an image network, each in a plain
spelling and once more with one thing written another way: attention in the form of nn.MultiheadAttention, one packed projection, Einsum,
norms as operators or taken apart, masks by Where or by sums, products as Gemm or as 1x1 convolutions, and so on. For each the ratio of its
time to that of the plain spelling, medians of interleaved rounds; goal: within 1.03 of each other. Outputs of both are compared first where Python
has onnxruntime. Needs numpy and onnx.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from record import device_of, header, write_record
from refit import call, number

GOAL = 1.03
BATCH, LENGTH, WIDTH, HEADS, LAYERS = 4, 128, 512, 8, 4
SIZE, CHANNELS, BLOCKS = 56, 64, 6


class Net:
    """Nodes; weights by name, the same in all spellings of a network."""

    def __init__(self, how, opset=21):
        self.how, self.opset, self.nodes, self.weights, self.count = how, opset, [], {}, 0

    def node(self, op, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{op}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [i if isinstance(i, str) else self.number(i) for i in inputs], names, name=f"{op}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def number(self, value):
        array = np.asarray(value)
        return self.keep(f"n{self.count}_{len(self.weights)}", array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64))

    def keep(self, name, array):
        self.weights[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def weight(self, name, *shape, scale=None, centre=0.0):
        values = np.random.default_rng([ord(c) for c in name]).standard_normal(shape).astype(np.float32)
        return values * np.float32(scale if scale is not None else 1 / math.sqrt(shape[0])) + np.float32(centre)

    def model(self, x, shape, y, mask=None):
        inputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)]
        if mask:
            inputs.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, mask))
        graph = helper.make_graph(self.nodes, "net", inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], list(self.weights.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


# --- a transformer ---


def linear(n, x, name, inner, outer):
    w, b = n.weight(name, inner, outer), n.weight(name + "b", outer, scale=0.1)
    if "gemm" in n.how:
        y = n.node("Gemm", n.node("Reshape", x, [-1, inner]), n.keep(name, w), n.keep(name + "b", b))
        return n.node("Reshape", y, [BATCH, LENGTH, outer])
    if "transposed_gemm" in n.how:  # as nn.Linear keeps them
        y = n.node("Gemm", n.node("Reshape", x, [-1, inner]), n.keep(name, w.T), n.keep(name + "b", b), transB=1)
        return n.node("Reshape", y, [BATCH, LENGTH, outer])
    if "convolution" in n.how:
        y = n.node("Conv", n.node("Transpose", x, perm=[0, 2, 1]), n.keep(name, w.T[:, :, None]), n.keep(name + "b", b), kernel_shape=[1])
        return n.node("Transpose", y, perm=[0, 2, 1])
    return n.node("Add", n.node("MatMul", x, n.keep(name, w)), n.keep(name + "b", b))


def layer_norm(n, x, name):
    g, b = n.keep(name + "g", n.weight(name + "g", WIDTH, scale=0.1, centre=1)), n.keep(name + "h", n.weight(name + "h", WIDTH, scale=0.1))
    if "norm_operator" in n.how:
        return n.node("LayerNormalization", x, g, b, axis=-1, epsilon=1e-5)
    away = n.node("Sub", x, n.node("ReduceMean", x, [-1]))
    if "norm_by_reciprocal" in n.how:
        squares = n.node("ReduceMean", n.node("Mul", away, away), [-1])
        y = n.node("Mul", away, n.node("Reciprocal", n.node("Sqrt", n.node("Add", squares, 1e-5))))
        return n.node("Add", n.node("Mul", y, g), b)
    squares = n.node("ReduceMean", n.node("Pow", away, 2.0), [-1])
    return n.node("Add", n.node("Mul", n.node("Div", away, n.node("Sqrt", n.node("Add", squares, 1e-5))), g), b)


def gelu(n, x):
    if "gelu_operator" in n.how:
        return n.node("Gelu", x)
    if "gelu_order" in n.how:
        return n.node("Mul", x, n.node("Mul", 0.5, n.node("Add", 1.0, n.node("Erf", n.node("Mul", x, 1 / math.sqrt(2))))))
    y = n.node("Erf", n.node("Div", x, math.sqrt(2)))
    return n.node("Mul", n.node("Mul", x, n.node("Add", y, 1.0)), 0.5)


def attention(n, x, name, mask):
    head = WIDTH // HEADS
    parts = [(n.weight(name + k, WIDTH, WIDTH), n.weight(name + k + "b", WIDTH, scale=0.1)) for k in "qkv"]
    packed = np.concatenate([w for w, _ in parts], 1), np.concatenate([b for _, b in parts])
    add = lambda t, w, b, k: n.node("Add", n.node("MatMul", t, n.keep(name + k, w)), n.keep(name + k + "b", b))
    if "multihead" in n.how:  # nn.MultiheadAttention, sequence first: one projection, taken apart by Gather
        t = add(n.node("Transpose", x, perm=[1, 0, 2]), *packed, "p")
        t = n.node("Reshape", t, [LENGTH, BATCH, 3, WIDTH])
        t = n.node("Squeeze", n.node("Transpose", n.node("Unsqueeze", t, [0]), perm=[3, 1, 2, 0, 4]), [3])
        q, k, v = (n.node("Transpose", n.node("Reshape", n.node("Gather", t, np.int64(i), axis=0), [LENGTH, BATCH * HEADS, head]), perm=[1, 0, 2]) for i in range(3))
        scores = n.node("MatMul", n.node("Mul", q, 1 / math.sqrt(head)), n.node("Transpose", k, perm=[0, 2, 1]))
        scores = n.node("Add", scores, n.node("Reshape", n.node("Expand", mask, [BATCH, HEADS, 1, LENGTH]), [BATCH * HEADS, 1, LENGTH]))
        y = n.node("MatMul", n.node("Softmax", scores, axis=-1), v)
        y = n.node("Reshape", n.node("Transpose", y, perm=[1, 0, 2]), [LENGTH * BATCH, WIDTH])
        return n.node("Transpose", n.node("Reshape", y, [LENGTH, BATCH, WIDTH]), perm=[1, 0, 2])
    if "packed" in n.how:
        q, k, v = n.node("Split", add(x, *packed, "p"), outputs=3, axis=-1, num_outputs=3)
    elif "packed_heads" in n.how:  # [batch, length, 3, heads, head], as timm has it
        t = n.node("Transpose", n.node("Reshape", add(x, *packed, "p"), [BATCH, LENGTH, 3, HEADS, head]), perm=[2, 0, 3, 1, 4])
        q, k, v = (n.node("Squeeze", s, [0]) for s in n.node("Split", t, outputs=3, axis=0, num_outputs=3))
    else:
        q, k, v = (add(x, w, b, k) for (w, b), k in zip(parts, "qkv"))
    if "joined_heads" in n.how:
        q = n.node("Mul", q, head**-0.5)
    if "packed_heads" not in n.how:
        q, k, v = (n.node("Reshape", t, [BATCH, LENGTH, HEADS, head]) for t in (q, k, v))
    if "joined_heads" in n.how:  # as models of translation have it: batch and heads are one but where the mask is added
        q, k, v = (n.node("Reshape", n.node("Transpose", t, perm=[0, 2, 1, 3]), [BATCH * HEADS, LENGTH, head]) for t in (q, k, v))
        scores = n.node("Reshape", n.node("MatMul", q, n.node("Transpose", k, perm=[0, 2, 1])), [BATCH, HEADS, LENGTH, LENGTH])
        scores = n.node("Reshape", n.node("Add", scores, mask), [BATCH * HEADS, LENGTH, LENGTH])
        y = n.node("Reshape", n.node("MatMul", n.node("Softmax", scores, axis=-1), v), [BATCH, HEADS, LENGTH, head])
        return n.node("Reshape", n.node("Transpose", y, perm=[0, 2, 1, 3]), [BATCH, LENGTH, WIDTH])
    if "einsum" in n.how:
        scores = n.node("Einsum", q, k, equation="blhd,bmhd->bhlm")
    else:
        if "packed_heads" not in n.how:
            q, v = (n.node("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
            k = n.node("Transpose", k, perm=[0, 2, 3, 1])
        else:
            k = n.node("Transpose", k, perm=[0, 1, 3, 2])
        if "scaled_factors" in n.how:
            q, k = (n.node("Mul", t, head**-0.25) for t in (q, k))
        scores = n.node("MatMul", q, k)
    if "scaled_factors" not in n.how:
        scores = n.node("Div", scores, math.sqrt(head))
    if "where" in n.how:
        scores = n.node("Where", n.node("Less", mask, -1.0), -1e4, scores)
    else:
        scores = n.node("Add", scores, mask)
    weights = n.node("Softmax", scores, axis=-1)
    if "einsum" in n.how:
        return n.node("Reshape", n.node("Einsum", weights, v, equation="bhlm,bmhd->blhd"), [BATCH, LENGTH, WIDTH])
    return n.node("Reshape", n.node("Transpose", n.node("MatMul", weights, v), perm=[0, 2, 1, 3]), [BATCH, LENGTH, WIDTH])


def transformer(how):
    n = Net(how)
    x, mask = "x", n.node("Mul", n.node("Sub", 1.0, n.node("Unsqueeze", "mask", [1, 2])), -1e4)
    for i in range(LAYERS):
        x = n.node("Add", x, linear(n, attention(n, layer_norm(n, x, f"{i}a"), f"{i}t", mask), f"{i}o", WIDTH, WIDTH))
        x = n.node("Add", x, linear(n, gelu(n, linear(n, layer_norm(n, x, f"{i}c"), f"{i}u", WIDTH, 4 * WIDTH)), f"{i}d", 4 * WIDTH, WIDTH))
    return n.model("x", [BATCH, LENGTH, WIDTH], layer_norm(n, x, "last"), [BATCH, LENGTH])


# --- an image network ---


def silu(n, x):
    if "swish_by_division" in n.how:
        return n.node("Div", x, n.node("Add", 1.0, n.node("Exp", n.node("Neg", x))))
    return n.node("Mul", x, n.node("Sigmoid", x))


def convolution(n, x, name, inner, outer, kernel, group=1):
    w, b = n.weight(name, inner // group * kernel * kernel, outer).T.reshape(outer, inner // group, kernel, kernel), n.weight(name + "b", outer, scale=0.1)
    attributes = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "group": group}
    if "batch_norm" not in n.how:
        return n.node("Conv", x, n.keep(name, w), n.keep(name + "b", b), **attributes)
    scale = np.abs(n.weight(name + "s", outer, scale=0.1, centre=1)) + np.float32(0.2)
    y = n.node("Conv", x, n.keep(name, w / scale[:, None, None, None]), **attributes)
    zeros, ones = np.zeros(outer, np.float32), np.ones(outer, np.float32) - np.float32(1e-5)
    return n.node("BatchNormalization", y, *(n.keep(name + k, v) for k, v in (("s", scale), ("b", b), ("m", zeros), ("v", ones))), epsilon=1e-5)


def squeeze(n, x, name, channels):
    few = channels // 4
    s = n.node("ReduceMean", x, [2, 3], keepdims=1) if "mean_pool" in n.how else n.node("GlobalAveragePool", x)
    if "squeeze_by_gemm" in n.how:
        s = n.node("Flatten", s)
        for part, inner, outer in (("1", channels, few), ("2", few, channels)):
            s = n.node("Gemm", s, n.keep(name + part, n.weight(name + part, inner, outer)), n.keep(name + part + "b", n.weight(name + part + "b", outer, scale=0.1)))
            s = silu(n, s) if part == "1" else n.node("Unsqueeze", s, [2, 3])
    else:
        for part, inner, outer in (("1", channels, few), ("2", few, channels)):
            s = n.node("Conv", s, n.keep(name + part, n.weight(name + part, inner, outer).T[:, :, None, None]), n.keep(name + part + "b", n.weight(name + part + "b", outer, scale=0.1)), kernel_shape=[1, 1])
            s = silu(n, s) if part == "1" else s
    return n.node("Mul", x, n.node("Sigmoid", s))


def group_norm(n, x, name, channels):
    g, b = n.weight(name + "g", channels, scale=0.1, centre=1), n.weight(name + "h", channels, scale=0.1)
    if "group_operator" in n.how:
        return n.node("GroupNormalization", x, n.keep(name + "g", g), n.keep(name + "h", b), num_groups=8)
    y = n.node("InstanceNormalization", n.node("Reshape", x, [0, 8, -1]), n.keep(name + "1", np.ones(8, np.float32)), n.keep(name + "0", np.zeros(8, np.float32)))
    y = n.node("Reshape", y, [1, channels, SIZE, SIZE])
    return n.node("Add", n.node("Mul", y, n.keep(name + "g", g[:, None, None])), n.keep(name + "h", b[:, None, None]))


def images(how):
    n, x, wide = Net(how), "x", 4 * CHANNELS
    for i in range(BLOCKS):
        y = silu(n, convolution(n, x, f"{i}e", CHANNELS, wide, 1))
        y = squeeze(n, silu(n, convolution(n, y, f"{i}d", wide, wide, 3, wide)), f"{i}s", wide)
        x = n.node("Add", x, group_norm(n, convolution(n, y, f"{i}p", wide, CHANNELS, 1), f"{i}n", CHANNELS))
    if "upsample_by_expand" in n.how:
        x = n.node("Reshape", n.node("Expand", n.node("Unsqueeze", x, [3, 5]), [1, CHANNELS, SIZE, 2, SIZE, 2]), [1, CHANNELS, 2 * SIZE, 2 * SIZE])
    else:
        x = n.node("Resize", x, "", np.array([1, 1, 2, 2], np.float32), mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    return n.model("x", [1, CHANNELS, SIZE, SIZE], convolution(n, x, "last", CHANNELS, 32, 3))


SPELLINGS = {transformer: ["multihead", "joined_heads", "packed", "packed_heads", "einsum", "scaled_factors", "where", "gemm", "transposed_gemm", "convolution", "norm_operator",
                           "norm_by_reciprocal", "gelu_operator", "gelu_order"],
             images: ["swish_by_division", "batch_norm", "mean_pool", "squeeze_by_gemm", "group_operator", "upsample_by_expand"]}


def difference(one, other):
    """Of the outputs, to the largest of them; None where there is nothing to run them with."""
    try:
        import onnxruntime
    except ImportError:
        return None
    rng, feeds = np.random.default_rng(1), {}
    for i in one.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        feeds[i.name] = (np.arange(shape[1])[None] < np.array([shape[1] - 7 * k for k in range(shape[0])])[:, None]).astype(np.float32) if i.name == "mask" else rng.standard_normal(shape).astype(np.float32)
    a, b = (onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0] for m in (one, other))
    return float(np.abs(a - b).max() / np.abs(a).max())


def main():
    own, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trtexec")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json")
    args = parser.parse_args(own.split())
    rows, device, worst = [], None, 1.0
    timing = ["--warmUp=100", f"--duration={args.seconds}", "--iterations=10", "--noDataTransfers", "--useCudaGraph"] + [o for o in options.split() if o.startswith("--threads")]
    with tempfile.TemporaryDirectory() as folder:
        def built(name, model):
            nonlocal device
            path = os.path.join(folder, name)
            onnx.save(model, path + ".onnx")
            text = call(args.trtexec, f"--onnx={path}.onnx", f"--saveEngine={path}.plan", "--buildOnly", *options.split())
            device = device or device_of(text)
            return path + ".plan"

        for network, names in SPELLINGS.items():
            names = [n for n in names if not args.names or n in args.names]
            if not names:
                continue
            plain = network(set())
            base = built("plain", plain)
            for name in names:
                other = network({name})
                apart = difference(plain, other)
                if apart is not None and not apart < 1e-3:
                    sys.exit(f"{name}: another function, outputs are {apart} apart")
                plan, ratios, times = built(name, other), [], []
                for _ in range(args.rounds):
                    pair = [number(r"GPU Compute Time:.*?median = ([0-9.]+) ms", call(args.trtexec, f"--loadEngine={p}", *timing)) for p in (base, plan)]
                    ratios.append(pair[1] / pair[0])
                    times.append(pair)
                ratio = statistics.median(ratios)
                worst = max(worst, ratio, 1 / ratio)
                row = {"network": network.__name__, "spelling": name, "ratio": round(ratio, 4), "ms": [round(statistics.median(t[i] for t in times), 4) for i in (0, 1)]}
                rows.append(row | ({} if apart is None else {"outputs_apart": apart}))
                print(f"{network.__name__:12s} {name:20s} {ratio:.3f}   plain {row['ms'][0]:.4f} ms, so {row['ms'][1]:.4f} ms", flush=True)
    print(f"{len(rows)} spellings, the farthest {worst:.3f} (goal {GOAL})")
    if args.json:
        write_record(args.json, header(device, goal=GOAL, rounds=args.rounds, options=options, load_average=os.getloadavg()[0], rows=rows))


if __name__ == "__main__":
    main()
