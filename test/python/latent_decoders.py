# SPDX-License-Identifier: Apache-2.0
"""Small decoders with latent attention (DeepSeek-V2 and V3) in the forms that torch's exporters write: keys and values of all heads are made of a latent
of each token and of a turned part that all heads share. Earlier releases of Transformers keep keys and values, whose heads differ in size;
today's keep the latent and the turned part. Seeded, as those of decoders.py."""

import numpy as np
from decoders import FLOAT, HEADS, INT64, LAYERS, LOWEST, VOCABULARY, WIDTH, Graph, Spec, gated, rms_norm, rotary_tables, silu
from exported_decoders import seen
from onnx import numpy_helper

PLAIN, TURNED, VALUE, LATENT, QUERY = 8, 8, 12, 16, 24
KEY = PLAIN + TURNED


def norm(g, x, size):
    mean = g.op("Add", g.op("ReduceMean", g.op("Pow", x, 2.0), axes=[-1]), 1e-6)
    return g.op("Mul", g.norm_weight(size), g.op("Mul", x, g.op("Reciprocal", g.op("Sqrt", mean))))


def heads_of(g, x, size):
    """[batch, heads, tokens, size]."""
    return g.op("Transpose", g.reshape(x, g.dim(x, 0), g.dim(x, 1), HEADS, size), perm=[0, 2, 1, 3])


def split(g, x, *sizes):
    return g.op("Split", x, g.ints(*sizes), outputs=len(sizes), axis=-1)


def turned(g, x, tables, interleaved):
    """interleaved: pairs lie side by side, and are put apart first."""
    if interleaved:
        b, h, s = (g.dim(x, d) for d in range(3))
        pairs = g.op("Transpose", g.reshape(x, b, h, s, TURNED // 2, 2), perm=[0, 1, 2, 4, 3])
        x = g.reshape(pairs, b, h, s, TURNED)
    a, b = g.slice(x, 3, 0, TURNED // 2), g.slice(x, 3, TURNED // 2, np.iinfo(np.int64).max)
    return g.op("Add", g.op("Mul", x, tables[0]), g.op("Mul", g.op("Concat", g.op("Neg", b), a, axis=-1), tables[1]))


def empty(g, like):
    """[batch, heads, tokens, KEY] of zeros."""
    shape = g.shape(*(g.dim(like, d) for d in range(3)), KEY)
    return g.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.zeros(1, np.float32)))


def placed(g, x, part, begin, end):
    """x[..., begin:end] = part, as torch.export writes it: rows of a transpose."""
    every = g.op("Range", g.const(np.int64(0)), g.dim(x, 3), g.const(np.int64(1)))
    rows = g.op("Unsqueeze", g.op("Slice", every, g.ints(begin), g.ints(end), g.ints(0), g.ints(1)), g.ints(-1))
    front = [g.op("Transpose", t, perm=[3, 1, 2, 0]) for t in (x, part)]
    return g.op("Transpose", g.op("ScatterND", front[0], rows, front[1]), perm=[3, 1, 2, 0])


def placed_flat(g, x, part, begin, end):
    """The same as TorchScript writes it: every element by its four places."""
    ranges = [g.op("Range", g.const(np.int64(0)), g.dim(x, d), g.const(np.int64(1))) for d in range(4)]
    ranges[3] = g.op("Slice", ranges[3], g.ints(begin), g.ints(end), g.ints(0), g.ints(1))
    shape = g.op("Shape", g.slice(x, 3, begin, end))
    places = []
    for d, r in enumerate(ranges):
        along = g.op("Reshape", r, g.ints(*(-1 if e == d else 1 for e in range(4))))
        places.append(g.op("Unsqueeze", g.op("Expand", along, shape), g.ints(-1)))
    return g.op("ScatterND", x, g.op("Concat", *places, axis=-1), g.op("Expand", part, shape))


def attention(g, q, k, v, counts):
    scores = g.op("MatMul", g.op("Mul", q, KEY**-0.25), g.op("Mul", g.op("Transpose", k, perm=[0, 1, 3, 2]), KEY**-0.25))
    weights = g.op("Softmax", g.op("Add", scores, g.op("Where", counts, 0.0, LOWEST)), axis=-1)
    weights = g.op("Where", g.op("IsNaN", weights), 0.0, weights)
    y = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return g.reshape(y, g.dim(y, 0), g.dim(y, 1), HEADS * VALUE)


def latent(seed, form, interleaved=False, low_rank=True, masked=True):
    """form: kept (keys and values are), joined (the latent is kept; keys are a concatenation), tuples or flat (keys are written into an empty
    tensor); low_rank: of queries, too; masked: padding is known."""
    g = Graph(seed, opset=17)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s") if masked else None
    places = g.input("position_ids", INT64, "batch", "s")
    shapes = {"key": (HEADS, KEY), "value": (HEADS, VALUE)} if form == "kept" else {"key": (1, LATENT), "value": (1, TURNED)}
    pasts = [[g.input(f"past_key_values.{i}.{n}", FLOAT, "batch", s[0], "past", s[1]) for n, s in shapes.items()] for i in range(LAYERS)]
    counts = seen(g, ids, mask, g.dim(pasts[0][0], 2), "flat" if form == "flat" else "tuples", 0)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    tables = rotary_tables(g, places, TURNED)
    for i, (past_a, past_b) in enumerate(pasts):
        y = rms_norm(g, x)
        queries = g.linear(norm(g, g.linear(y, WIDTH, QUERY), QUERY), QUERY, HEADS * KEY) if low_rank else g.linear(y, WIDTH, HEADS * KEY)
        q_plain, q_turned = split(g, heads_of(g, queries, KEY), PLAIN, TURNED)
        small, k_turned = split(g, g.linear(y, WIDTH, LATENT + TURNED), LATENT, TURNED)
        small = g.reshape(norm(g, small, LATENT), g.dim(y, 0), 1, g.dim(y, 1), LATENT)
        k_turned = g.reshape(k_turned, g.dim(y, 0), 1, g.dim(y, 1), TURNED)
        q_turned, k_turned = (turned(g, t, tables, interleaved) for t in (q_turned, k_turned))
        if form != "kept":
            small, k_turned = (g.op("Concat", p, n, axis=-2) for p, n in ((past_a, small), (past_b, k_turned)))
            g.output(f"present.{i}.key", small), g.output(f"present.{i}.value", k_turned)
        wide = g.linear(small, LATENT, HEADS * (PLAIN + VALUE))
        wide = g.op("Transpose", g.reshape(wide, g.dim(small, 0), g.dim(small, 2), -1, PLAIN + VALUE), perm=[0, 2, 1, 3])
        k_plain, v = split(g, wide, PLAIN, VALUE)
        all_heads = g.op("Expand", k_turned, g.ints(1, HEADS, 1, 1))
        if form in ("tuples", "flat"):
            put = placed if form == "tuples" else placed_flat
            k = put(g, put(g, empty(g, wide), k_plain, 0, PLAIN), all_heads, PLAIN, np.iinfo(np.int64).max)
        else:
            k = g.op("Concat", k_plain, all_heads, axis=-1)
        if form == "kept":
            k, v = g.op("Concat", past_a, k, axis=-2), g.op("Concat", past_b, v, axis=-2)
            g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        q = g.op("Concat", q_plain, q_turned, axis=-1)
        x = g.op("Add", x, g.linear(attention(g, q, k, v, counts), HEADS * VALUE, WIDTH))
        x = g.op("Add", x, gated(g, rms_norm(g, x), silu))
    g.output("logits", g.linear(rms_norm(g, x), WIDTH, VOCABULARY))
    return Spec(g.bytes(), shapes["key"][0], shapes=shapes, mask=masked)


FORMS = {
    "kept": lambda **more: latent(61, "kept", **more),
    "latent": lambda **more: latent(62, "joined", interleaved=True, **more),
    "latent_tuples": lambda **more: latent(63, "tuples", interleaved=True, **more),
    "latent_flat": lambda **more: latent(65, "flat", low_rank=False, **more),
}
