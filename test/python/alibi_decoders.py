# SPDX-License-Identifier: Apache-2.0
"""Small decoders whose scores have more than one mask, in the forms that torch's exporters give to models of Transformers: ALiBi, which adds
to scores how far away keys are, beside what is hidden; scores that are the lowest number where they would be below it. Seeded."""

import numpy as np
import onnx
from decoders import FLOAT, HEADS, INT64, LAYERS, LOWEST, PLACES, SIZE, VOCABULARY, WIDTH, Graph, Spec, apart, caches, causal_mask, gelu_tanh, joined, layer_norm

SLOPES = np.array([2.0 ** -(1 + i) for i in range(HEADS)], np.float32)


def bf16(g, values):
    """A constant of BFLOAT16."""
    bits = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    name = g.name("constant")
    g.weights.append(onnx.helper.make_tensor(name, onnx.TensorProto.BFLOAT16, values.shape, bits.tobytes(), raw=True))
    return name


def slopes_by_places(g, mask, total, form, standard):
    """What is added to scores: [batch * heads, 1, total], of ones that are counted (BLOOM, Falcon) or of all places."""
    if form == "tiled":
        places = g.op("Cast", g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1))), to=FLOAT)
        one = g.op("Mul", g.const(SLOPES[:, None, None]), places)
        return g.op("Tile", one, g.shape(g.dim(mask, 0), 1, 1))
    one = g.const(np.int64(1))
    counts = g.op("Unsqueeze", g.op("Mul", g.op("Sub", g.op("CumSum", mask, g.const(np.int64(-1))), one), mask), g.ints(1))
    if form == "complex" and not standard:  # torch's number of bfloat16, which is another type's in ONNX
        added = g.op("Cast", g.op("Mul", bf16(g, SLOPES[:, None]), g.op("Cast", counts, to=15)), to=FLOAT)
    else:
        added = g.op("Mul", g.const(SLOPES[:, None]), g.op("Cast", counts, to=FLOAT))
    return g.reshape(added, g.op("Mul", g.dim(mask, 0), g.const(np.int64(HEADS))), 1, g.dim(mask, 1))


def table_of_places(g, total):
    """MPT: the end of a table for as many places as the model is for."""
    table = g.const((SLOPES[:, None, None] * np.arange(1 - PLACES, 1)).astype(np.float32))
    return g.slice(table, 2, g.op("Sub", g.const(np.int64(PLACES)), total), 2**62)


def flat(g, x):
    """[batch, heads, rows, size] -> [batch * heads, rows, size]"""
    return g.reshape(x, g.op("Mul", g.dim(x, 0), g.const(np.int64(HEADS))), -1, SIZE)


def attention(g, form, q, k, v, hidden, added, b, s, total):
    if form == "table":
        scores = g.op("Add", g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), SIZE**-0.5), added)
        scores = g.op("Where", g.op("Cast", hidden, to=onnx.TensorProto.BOOL), LOWEST, scores)
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    if form == "complex":  # as Falcon has it
        shape = g.shape(b, HEADS, 1, -1)
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", g.op("Add", scores, g.op("Reshape", added, shape)), SIZE**-0.5)
        return g.op("MatMul", g.op("Softmax", g.op("Add", scores, hidden), axis=-1), v)
    scores = g.op("MatMul", flat(g, q), g.op("Transpose", flat(g, k), perm=[0, 2, 1]))
    if form != "lowest":
        scores = g.op("Add", g.op("Mul", scores, SIZE**-0.5), added)
    scores = g.op("Add", g.reshape(scores, b, HEADS, s, total), hidden)
    if form == "lowest":
        scores = g.op("Max", scores, LOWEST)
    many = g.op("Mul", b, g.const(np.int64(HEADS)))
    if form == "lowest":
        weights = g.op("Softmax", g.reshape(scores, many, s, total), axis=-1)
        weights = g.reshape(g.reshape(weights, b, HEADS, s, total), many, s, total)
    else:
        weights = g.reshape(g.op("Softmax", scores, axis=-1), many, s, total)
    return g.reshape(g.op("MatMul", weights, flat(g, v)), b, HEADS, s, SIZE)


def decoder(seed, form, standard=True):
    """form: counted (BLOOM), tiled (BLOOM by Transformers' exporter), table (MPT), complex (Falcon by TorchScript; standard: without types that
    none but that exporter means so), lowest (XGLM, of places that are learned)."""
    g = Graph(seed, opset=17)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s")
    places = g.input("position_ids", INT64, "batch", "s") if form == "lowest" else None
    pasts = [caches(g, i, HEADS) for i in range(LAYERS)]
    past, b, s = g.dim(pasts[0][0], 2), g.dim(ids, 0), g.dim(ids, 1)
    total = g.op("Add", past, s)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    hidden, added = causal_mask(g, ids, mask, total, past), None
    if form == "lowest":
        x = g.op("Add", x, g.op("Gather", g.weight(PLACES, WIDTH), places))
    elif form == "table":
        added = table_of_places(g, total)
    else:
        added = slopes_by_places(g, mask, total, form, standard)
    for i, (past_k, past_v) in enumerate(pasts):
        y = layer_norm(g, x)
        q, k, v = (apart(g, g.linear(y, WIDTH, WIDTH, bias=True), HEADS) for _ in range(3))
        if form == "lowest":
            q = g.op("Mul", q, SIZE**-0.5)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        x = g.op("Add", x, g.linear(joined(g, attention(g, form, q, k, v, hidden, added, b, s, total)), WIDTH, WIDTH))
        x = g.op("Add", x, g.linear(gelu_tanh(g, g.linear(layer_norm(g, x), WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH))
    g.output("logits", g.linear(layer_norm(g, x), WIDTH, VOCABULARY))
    return g.bytes() if standard else g.bytes(domains=("none",))  # which is not checked


def spec_of(seed, form):
    more = {"standard": decoder(seed, form)} if form == "complex" else {}
    return Spec(decoder(seed, form, not more), HEADS, places=form == "lowest", padded=form != "tiled", **more)


FORMS = {f"alibi_{form}": lambda seed=61 + i, form=form: spec_of(seed, form) for i, form in enumerate(("counted", "tiled", "table", "complex"))}
FORMS["lowest"] = lambda: spec_of(65, "lowest")
