# SPDX-License-Identifier: Apache-2.0
"""Small decoders with mixtures of experts as torch exports them where the experts of each token are gathered (Transformers' batched_mm): Qwen3's (softmax, the
best k, their sum 1), Qwen2's with a shared expert, DeepSeek's (sigmoid with a correction, the best groups first), GPT-OSS's (softmax over the best k,
clamped gates, and attention with sinks, as its own code writes it)."""

import numpy as np
from onnx import TensorProto, numpy_helper

import decoders
from decoders import GROUPS, HEADS, INT64, LAYERS, SIZE, VOCABULARY, WIDTH

EXPERTS, BEST, INNER = 8, 3, 20


def softmax_routing(g, flat):
    p = g.op("Softmax", g.op("MatMul", flat, g.weight(WIDTH, EXPERTS, scale=1.0)), axis=-1)
    values, index = g.op("TopK", p, g.ints(BEST), outputs=2, axis=-1, largest=1, sorted=1)
    return index, g.op("Div", values, g.op("ReduceSum", values, g.ints(-1), keepdims=1))


def routing_of_the_best(g, flat):
    scores = g.op("Add", g.op("MatMul", flat, g.weight(WIDTH, EXPERTS, scale=1.0)), g.weight(EXPERTS, scale=0.2))
    values, index = g.op("TopK", scores, g.ints(BEST), outputs=2, axis=-1, largest=1, sorted=1)
    return index, g.op("Softmax", values, axis=-1)


def routing_by_groups(g, flat, groups=4, best_groups=2):
    """A group is worth its two best; experts of other groups count as 0."""
    p = g.op("Sigmoid", g.op("MatMul", flat, g.weight(WIDTH, EXPERTS, scale=1.0)))
    corrected = g.op("Add", p, g.weight(EXPERTS, scale=0.1))
    of_groups = g.op("Reshape", corrected, g.ints(-1, groups, EXPERTS // groups))
    two, _ = g.op("TopK", of_groups, g.ints(2), outputs=2, axis=-1, largest=1, sorted=1)
    worth = g.op("ReduceSum", two, g.ints(-1), keepdims=0)
    _, chosen = g.op("TopK", worth, g.ints(best_groups), outputs=2, axis=-1, largest=1, sorted=0)
    zeros = g.op("ConstantOfShape", g.op("Shape", worth), value=numpy_helper.from_array(np.zeros(1, np.float32)))
    ones = g.op("ConstantOfShape", g.op("Shape", chosen), value=numpy_helper.from_array(np.ones(1, np.float32)))
    mask = g.op("Unsqueeze", g.op("ScatterElements", zeros, chosen, ones, axis=1), g.ints(-1))
    whole = g.op("Expand", mask, g.op("Concat", g.op("Slice", g.op("Shape", of_groups), g.ints(0), g.ints(2), g.ints(0)), g.ints(EXPERTS // groups), axis=0))
    hidden = g.op("Not", g.op("Cast", g.op("Reshape", whole, g.ints(-1, EXPERTS)), to=TensorProto.BOOL))
    _, index = g.op("TopK", g.op("Where", hidden, 0.0, corrected), g.ints(BEST), outputs=2, axis=-1, largest=1, sorted=0)
    weights = g.op("GatherElements", p, index, axis=1)
    return index, g.op("Mul", g.op("Div", weights, g.op("Add", g.op("ReduceSum", weights, g.ints(-1), keepdims=1), 1e-20)), 2.5)


def experts(g, flat, index, weights, clamped):
    """[tokens, width]: weights of each token's experts are gathered, and multiplied with its row as often as there are experts."""
    rows = g.op("Expand", g.op("Unsqueeze", flat, g.ints(1)), g.op("Concat", g.op("Shape", index), g.ints(WIDTH), axis=0))
    column = g.op("Reshape", rows, g.ints(-1, WIDTH, 1))
    which = g.op("Reshape", index, g.ints(-1))
    both = g.op("Squeeze", g.op("MatMul", g.op("Gather", g.weight(EXPERTS, 2 * INNER, WIDTH, scale=WIDTH**-0.5), which, axis=0), column), g.ints(-1))
    if clamped:
        both = g.op("Add", both, g.op("Gather", g.weight(EXPERTS, 2 * INNER, scale=0.1), which, axis=0))
    gate, up = g.slice(both, 1, 0, INNER), g.slice(both, 1, INNER, 2 * INNER)
    if clamped:
        gate = g.op("Clip", gate, "", g.const(np.float32(7.0)))
        up = g.op("Clip", up, g.const(np.float32(-7.0)), g.const(np.float32(7.0)))
        made = g.op("Mul", g.op("Add", up, 1.0), g.op("Mul", gate, g.op("Sigmoid", g.op("Mul", gate, 1.702))))
    else:
        made = g.op("Mul", decoders.silu(g, gate), up)
    down = g.op("Gather", g.weight(EXPERTS, WIDTH, INNER, scale=INNER**-0.5), which, axis=0)
    y = g.op("Squeeze", g.op("MatMul", down, g.op("Unsqueeze", made, g.ints(-1))), g.ints(-1))
    y = g.op("Mul", y, g.op("Reshape", weights, g.ints(-1, 1)))
    return g.op("ReduceSum", g.op("Reshape", y, g.ints(-1, BEST, WIDTH)), g.ints(1), keepdims=0)


def shared_expert(g, flat):
    gate = g.op("Sigmoid", g.op("MatMul", flat, g.weight(WIDTH, 1, scale=1.0)))
    return g.op("Mul", gate, decoders.gated(g, flat, decoders.silu))


def attention_with_sinks(g, q, k, v, mask):
    scores = g.op("Add", g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), SIZE**-0.5), mask)
    b, s = g.dim(q, 0), g.dim(q, 2)
    sinks = g.expand(g.op("Reshape", g.weight(HEADS, scale=2.0), g.ints(1, -1, 1, 1)), g.shape(b, -1, s, -1))
    both = g.op("Concat", scores, sinks, axis=-1)
    both = g.op("Sub", both, g.op("ReduceMax", both, axes=[-1], keepdims=1))
    weights = g.op("Softmax", both, axis=-1)
    kept = g.op("Slice", weights, g.ints(0), g.ints(-1), g.ints(3), g.ints(1))
    return decoders.joined(g, g.op("MatMul", kept, v))


ROUTINGS = {"qwen3": softmax_routing, "qwen2": softmax_routing, "deepseek": routing_by_groups, "gpt_oss": routing_of_the_best}


def mixture(kind, seed=17):
    g = decoders.Graph(seed, opset=17)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s")
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [decoders.caches(g, i, GROUPS) for i in range(LAYERS)]
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    past = g.dim(pasts[0][0], 2)
    added = decoders.causal_mask(g, ids, mask, g.op("Add", past, g.dim(ids, 1)), past)
    tables = decoders.rotary_tables(g, places, SIZE)
    attend = attention_with_sinks if kind == "gpt_oss" else decoders.attention
    for i, (past_k, past_v) in enumerate(pasts):
        y = decoders.rms_norm(g, x)
        q, k, v = (decoders.apart(g, g.linear(y, WIDTH, n * SIZE), n) for n in (HEADS, GROUPS, GROUPS))
        q, k = decoders.rotated(g, q, tables), decoders.rotated(g, k, tables)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        x = g.op("Add", x, g.linear(attend(g, q, decoders.repeated(g, k), decoders.repeated(g, v), added), WIDTH, WIDTH))
        y = decoders.rms_norm(g, x)
        flat = g.op("Reshape", y, g.ints(-1, WIDTH))
        made = experts(g, flat, *ROUTINGS[kind](g, flat), kind == "gpt_oss")
        if kind in ("qwen2", "deepseek"):
            made = g.op("Add", made, shared_expert(g, flat))
        x = g.op("Add", x, g.op("Reshape", made, g.op("Shape", y)))
    g.output("logits", g.linear(decoders.rms_norm(g, x), WIDTH, VOCABULARY))
    return decoders.Spec(g.bytes(), GROUPS)


FORMS = {kind: (lambda kind=kind: mixture(kind)) for kind in ROUTINGS}
