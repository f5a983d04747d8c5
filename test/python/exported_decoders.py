# SPDX-License-Identifier: Apache-2.0
"""Small decoders in the forms that torch's two exporters give to models of Transformers today: what hides padding is read of the mask at every
sequence and place, the factor is in queries and keys, weights that are NaN count as 0. Seeded, as those of decoders.py."""

import numpy as np
import onnx
from decoders import BOOL, FLOAT, GROUPS, HEADS, INT64, LAYERS, LOWEST, SIZE, VOCABULARY, WIDTH, Graph, Spec, apart, caches, causal_mask, gated, joined, repeated, rms_norm, rotary_tables, rotated, silu
from onnx import helper


def padding_at(g, mask, sequences, keys, form):
    """[batch, 1, 1, total] of a mask [batch, total], by indices [batch, 1, 1, 1] and [1, 1, 1, total]."""
    if form == "tuples":
        shape = g.op("Shape", g.op("Max", sequences, keys))
        parts = [g.op("Unsqueeze", g.op("Expand", x, shape), g.ints(-1)) for x in (sequences, keys)]
        return g.op("GatherND", mask, g.op("Concat", *parts, axis=-1))
    flat = g.op("Flatten", mask, axis=2)
    places = g.op("Add", keys, g.op("Mul", sequences, g.dim(mask, 1)))
    return g.op("Reshape", g.op("Reshape", g.op("Gather", flat, places, axis=0), g.ints(-1)), g.op("Shape", places))


def seen(g, ids, mask, past, form, window):
    """[batch, 1, s, total], true where a key counts."""
    zero, one = g.const(np.int64(0)), g.const(np.int64(1))
    total = g.op("Add", past, g.dim(ids, 1))
    sequences = g.op("Unsqueeze", g.op("Range", zero, g.dim(ids, 0), one), g.ints(1, 2, 3))
    queries = g.op("Unsqueeze", g.op("Add", g.op("Range", zero, g.dim(ids, 1), one), past), g.ints(0, 1, 3))
    keys = g.op("Unsqueeze", g.op("Range", zero, total, one), g.ints(0, 1, 2))
    counts = g.op("LessOrEqual", keys, queries)
    if window:
        counts = g.op("And", g.op("Greater", keys, g.op("Sub", queries, g.const(np.int64(window)))), counts)
    if mask:
        counts = g.op("And", counts, padding_at(g, g.op("Cast", mask, to=BOOL), sequences, keys, form))
    return g.expand(counts, g.shape(g.dim(ids, 0), -1, g.dim(ids, 1), total))


def written(g, ids, mask, past):
    """[batch, 1, s, total] to be added: x[:, :, :, :total] = masked(x), by a ScatterND at all its places."""
    whole = causal_mask(g, ids, mask, g.op("Add", past, g.dim(ids, 1)), past)
    shape, zero, one = g.op("Shape", whole), g.const(np.int64(0)), g.const(np.int64(1))
    ranges = [g.op("Reshape", g.op("Range", zero, g.dim(whole, d), one), g.ints(*(-1 if e == d else 1 for e in range(4)))) for d in range(4)]
    places = g.op("Concat", *(g.op("Unsqueeze", g.op("Expand", r, shape), g.ints(-1)) for r in ranges), axis=-1)
    return g.op("ScatterND", g.op("Mul", whole, 0.5), places, whole)


def attention(g, q, k, v, counts, form, lowest):
    if form == "tuples":  # keys are turned with their heads and sequences as one dimension
        shape = g.op("Shape", k)
        last, before, rest = (g.op("Slice", shape, g.ints(a), g.ints(b), g.ints(0)) for a, b in ((-1, 2**62), (-2, -1), (-(2**62), -2)))
        flat = g.op("Reshape", k, g.op("Concat", g.ints(-1), before, last, axis=0))
        turned = g.op("Reshape", g.op("Transpose", flat, perm=[0, 2, 1]), g.op("Concat", rest, last, before, axis=0))
    else:
        turned = g.op("Transpose", k, perm=[0, 1, 3, 2])
    added = counts if form == "written" else g.op("Where", counts, 0.0, lowest)
    scores = g.op("MatMul", g.op("Mul", q, SIZE**-0.25), g.op("Mul", turned, SIZE**-0.25))
    weights = g.op("Softmax", g.op("Add", scores, added), axis=-1)
    weights = g.op("Where", g.op("IsNaN", weights), 0.0, weights)
    return joined(g, g.op("MatMul", weights, v))


def sdpa(seed, form, window=0, lowest=LOWEST, heads=GROUPS, masked=True):
    """form: tuples (torch.export, opset 18 and later), flat (TorchScript) or written (TorchScript of earlier releases); lowest: -inf in earlier releases; masked: padding is known."""
    g = Graph(seed, opset=17)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s") if masked else None
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [caches(g, i, heads) for i in range(LAYERS)]
    past = g.dim(pasts[0][0], 2)
    counts = written(g, ids, mask, past) if form == "written" else seen(g, ids, mask, past, form, window)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    tables = rotary_tables(g, places, SIZE)
    for i, (past_k, past_v) in enumerate(pasts):
        y = rms_norm(g, x)
        q, k, v = (apart(g, g.linear(y, WIDTH, n * SIZE), n) for n in (HEADS, heads, heads))
        q, k = rotated(g, q, tables), rotated(g, k, tables)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        many = [repeated(g, t) if heads == GROUPS else t for t in (k, v)]  # the product repeats a single head
        x = g.op("Add", x, g.linear(attention(g, q, *many, counts, form, lowest), WIDTH, WIDTH))
        x = g.op("Add", x, gated(g, rms_norm(g, x), silu))
    g.output("logits", g.linear(rms_norm(g, x), WIDTH, VOCABULARY))
    return Spec(g.bytes(), heads, mask=masked)


def as_transformers_writes(spec, window=None):
    """With the names that Transformers' own exporter gives, which leaves out the mask where nothing is padded. window: of its first layer, an input
    that no node but an output reads."""
    model = onnx.load_from_string(spec.data)
    graph, names = model.graph, {}
    for i in range(LAYERS):
        for kind in ("key", "value"):
            names[f"past_key_values.{i}.{kind}"] = f"input.cache.layers.{i}.{kind}s"
            names[f"present.{i}.{kind}"] = f"output.cache.layers.{i}.{kind}s"
    for node in graph.node:
        node.input[:] = [names.get(n, n) for n in node.input]
        node.output[:] = [names.get(n, n) for n in node.output]
    for value in (*graph.input, *graph.output):
        value.name = names.get(value.name, value.name)
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value:
                dim.dim_param = str(dim.dim_value)
    if window:
        name = "put.cache.layers.0._sliding_window_tensor"
        graph.input.append(helper.make_tensor_value_info("in" + name, INT64, []))
        graph.output.append(helper.make_tensor_value_info("out" + name, INT64, []))
        graph.node.append(helper.make_node("Identity", ["in" + name], ["out" + name]))
    return model.SerializeToString()


FORMS = {
    "tuples": lambda: sdpa(51, "tuples"),
    "flat": lambda: sdpa(52, "flat", heads=HEADS),
    "tuples_window": lambda: sdpa(53, "tuples", window=6),
    "one_head": lambda: sdpa(55, "tuples", heads=1),
    "written": lambda: sdpa(57, "written"),
    "flat_infinite": lambda: sdpa(54, "flat", lowest=-float("inf")),
}
