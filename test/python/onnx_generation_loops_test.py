# SPDX-License-Identifier: Apache-2.0
"""Decoders in the body of ONNX's Loop, which generates until every sequence has ended, and of Scan, which is told the tokens, beside
ONNX Runtime. Caches have a fixed length and are written into in the ways that exporters know."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from decoders import BOOL, FLOAT, GROUPS, HEADS, INT32, INT64, LOWEST, MICROSOFT, SIZE, VOCABULARY, WIDTH, Graph, apart, attention, gelu_tanh, joined, layer_norm, repeated  # noqa: E402
from onnx import helper  # noqa: E402
from onnx_attention_models import engine_of, held, runtimes  # noqa: E402
from small import run  # noqa: E402

CAPACITY, TRIPS, EOS, PAD = 24, 14, 3, 0
# How a row is written; ScatterND has the places in front of the heads, as a static cache of torch does.
WAYS = ["TensorScatter", "GroupQueryAttention", "ScatterND", "ScatterElements", "Where"]


def written(g, way, cache, row, length):
    """The cache with a row [B, G, 1, SIZE] at `length` [B] of each sequence."""
    if way == "TensorScatter":
        return g.op("TensorScatter", cache, row, length, axis=2)
    batch = g.dim(length, 0)
    if way == "ScatterND":
        numbers = g.op("Range", g.const(np.int64(0)), batch, g.const(np.int64(1)))
        pairs = g.op("Concat", *(g.op("Unsqueeze", x, g.ints(1)) for x in (numbers, length)), axis=1)
        return g.op("ScatterND", cache, pairs, g.op("Squeeze", row, g.ints(2)))
    places = g.op("Unsqueeze", length, g.ints(1, 2, 3))
    if way == "ScatterElements":
        return g.op("ScatterElements", cache, g.op("Expand", places, g.op("Shape", row)), row, axis=2)
    every = g.const(np.arange(CAPACITY, dtype=np.int64).reshape(1, 1, CAPACITY, 1))
    return g.op("Where", g.op("Equal", every, places), row, cache)


def decoded(g, way, tokens, length, caches):
    """(logits [B, VOCABULARY], caches) of tokens [B], which stand behind `length` [B] of others."""
    def linear(x, n_in, n_out):
        return g.linear(x, n_in, n_out, bias=True)

    def rest(x, a):
        x = g.op("Add", x, linear(a, HEADS * SIZE, WIDTH))
        return g.op("Add", x, linear(gelu_tanh(g, linear(layer_norm(g, x), WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH))

    x = g.op("Add", g.op("Gather", g.weight(VOCABULARY, WIDTH, scale=1), tokens), g.op("Gather", g.weight(CAPACITY, WIDTH, scale=1), length))
    x, after = g.op("Unsqueeze", x, g.ints(1)), []
    counts = g.op("Add", length, g.const(np.int64(1)))
    for past in zip(caches[::2], caches[1::2]):
        y = layer_norm(g, x)
        if way == "GroupQueryAttention":
            rows = [linear(y, WIDTH, n * SIZE) for n in (HEADS, GROUPS, GROUPS)]
            names = [g.name("attention"), g.name("key"), g.name("value")]
            last = g.op("Cast", length, to=INT32)
            total = g.op("Add", g.op("ReduceMax", last, keepdims=0), g.const(np.int32(1)))
            g.op("GroupQueryAttention", *rows, *past, last, total, outputs=names, domain=MICROSOFT, num_heads=HEADS, kv_num_heads=GROUPS)
            x, after = rest(x, names[0]), after + names[1:]
            continue
        q = apart(g, linear(y, WIDTH, HEADS * SIZE), HEADS)
        pair = [written(g, way, cache, apart(g, linear(y, WIDTH, GROUPS * SIZE), GROUPS), length) for cache in past]
        after += pair
        if way == "TensorScatter":
            a = joined(g, g.op("Attention", q, *pair, "", "", "", counts, outputs=[g.name("attention")], is_causal=1))
        else:
            if way == "ScatterND":
                pair = [g.op("Transpose", cache, perm=[0, 2, 1, 3]) for cache in pair]
            seen = g.op("Less", g.const(np.arange(CAPACITY, dtype=np.int64).reshape(1, 1, 1, -1)), g.op("Unsqueeze", counts, g.ints(1, 2, 3)))
            a = attention(g, q, *(repeated(g, cache) for cache in pair), g.op("Where", seen, 0.0, LOWEST))
        x = rest(x, a)
    return g.linear(g.op("Squeeze", layer_norm(g, x), g.ints(1)), WIDTH, VOCABULARY), after


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


def model(kind, way, batch, layers=2):
    """Tokens, lengths and caches are given; the caches, lengths and what each trip gave come out."""
    opset = 24 if way == "TensorScatter" else 17
    shape = (batch, CAPACITY, GROUPS, SIZE) if way == "ScatterND" else (batch, GROUPS, CAPACITY, SIZE)
    caches = [f"cache{i}" for i in range(2 * layers)]
    body, g = Graph(5, opset, "body/"), Graph(6, opset)
    length = body.input("body/length", INT64, batch)
    if kind == "Loop":
        body.inputs = [value("body/i", INT64), value("body/goes_on", BOOL), value("body/tokens", INT64, batch), *body.inputs, value("body/over", BOOL, batch)]
    past = [body.input(f"body/{c}", FLOAT, *shape) for c in caches]
    if kind == "Scan":
        body.input("body/tokens", INT64, batch)
    logits, after = decoded(body, way, "body/tokens", length, past)
    stay = [value(t, FLOAT, *shape) for t in after]
    if kind == "Loop":
        best = body.op("ArgMax", logits, axis=-1, keepdims=0)
        token = body.op("Where", "body/over", body.const(np.int64(PAD)), best)
        further = body.op("Add", length, body.op("Cast", body.op("Not", "body/over"), to=INT64))
        over = body.op("Or", "body/over", body.op("Equal", token, body.const(np.int64(EOS))))
        goes_on = body.op("Cast", body.op("ReduceMax", body.op("Cast", body.op("Not", over), to=INT32), keepdims=0), to=BOOL)
        body.outputs = [value(goes_on, BOOL), value(token, INT64, batch), value(further, INT64, batch), value(over, BOOL, batch), *stay,
                        value(body.op("Identity", token), INT64, batch), value(logits, FLOAT, batch, VOCABULARY)]
        states, results = ["over", *(f"{c} after" for c in caches)], ["each", "logits"]
    else:
        further = body.op("Add", length, body.const(np.int64(1)))
        body.outputs = [value(further, INT64, batch), *stay, value(logits, FLOAT, batch, VOCABULARY)]
        states, results = [f"{c} after" for c in caches], ["logits"]
    inside = helper.make_graph(body.nodes, "body", body.inputs, body.outputs, body.weights)
    for c in caches:
        g.input(c, FLOAT, *shape)
    g.input("length", INT64, batch)
    if kind == "Loop":
        g.input("tokens", INT64, batch)
        nobody = g.op("Less", "length", g.const(np.int64(0)))
        g.op("Loop", g.const(np.int64(TRIPS)), g.const(np.bool_(True)), "tokens", "length", nobody, *caches, outputs=["last", "ends", *states, *results], body=inside)
        g.outputs = [value("ends", INT64, batch), value("over", BOOL, batch), value("each", INT64, None, batch)]
    else:
        g.input("tokens", INT64, TRIPS, batch)
        g.op("Scan", "length", *caches, "tokens", outputs=["ends", *states, *results], num_scan_inputs=1, body=inside)
        g.outputs = [value("ends", INT64, batch)]
    g.outputs += [value(n, FLOAT, *shape) for n in states if "cache" in n] + [value("logits", FLOAT, None, batch, VOCABULARY)]
    return g.bytes([MICROSOFT])


def feed(seed, kind, way, batch, layers=2):
    random = np.random.default_rng([seed, batch])
    shape = (batch, CAPACITY, GROUPS, SIZE) if way == "ScatterND" else (batch, GROUPS, CAPACITY, SIZE)
    return {"length": random.integers(0, 7, batch), "tokens": random.integers(0, VOCABULARY, batch if kind == "Loop" else (TRIPS, batch)),
            **{f"cache{i}": random.standard_normal(shape).astype(np.float32) for i in range(2 * layers)}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["Loop", "Scan"])
@pytest.mark.parametrize("batch", [3, "batch"])
def test_decoders_in_loops(kind, way, batch):
    data, feeds = model(kind, way, batch), [feed(seed, kind, way, n) for seed in range(3) for n in ((3, 1, 5) if batch == "batch" else (3,))]
    engine, trips = engine_of(data, feeds), set()
    context = engine.create_execution_context()
    for given in feeds:
        right, y = runtimes(data, given), run(engine, context, **held(given))
        assert right.keys() == y.keys()
        for name, wanted in right.items():
            assert y[name].shape == wanted.shape, name
            if "cache" in name and way == "GroupQueryAttention":  # what stands behind a sequence's end means nothing
                wanted, y[name] = (np.where(np.arange(CAPACITY)[:, None] < right["ends"][:, None, None, None], x, 0) for x in (wanted, y[name]))
            if wanted.dtype == np.float32:
                assert np.abs(y[name] - wanted).max() < 2e-4, name
            else:
                assert np.array_equal(y[name], wanted), name
        trips.add(len(right["logits"]))
    assert kind == "Scan" or max(trips) > 3


@pytest.mark.parametrize("way", WAYS[:4])
@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_caches_are_written_in_place(kind, way):
    """The engine's own memory is smaller than one more copy of the caches."""
    data = model(kind, way, 4, 8)
    assert engine_of(data, [feed(0, kind, way, 4, 8)]).device_memory_size < 16 * 4 * GROUPS * CAPACITY * SIZE * 4


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_capacities_may_be_open(kind):
    data = onnx.load_from_string(model(kind, "TensorScatter", "batch"))

    def open_all(graph):
        for v in (*graph.input, *graph.output):
            for d in v.type.tensor_type.shape.dim:
                if d.dim_value == CAPACITY:
                    d.dim_param = "capacity"
        for a in (a for n in graph.node for a in n.attribute if a.HasField("g")):
            open_all(a.g)

    open_all(data.graph)
    data = data.SerializeToString()
    feeds = [{n: np.ascontiguousarray(a[:, :, :room]) if "cache" in n else a for n, a in feed(seed, kind, "TensorScatter", batch).items()}
             for seed, batch, room in ((0, 3, 24), (1, 1, 20), (2, 4, 22))]
    engine = engine_of(data, feeds)
    context = engine.create_execution_context()
    for given in feeds:
        y = run(engine, context, **held(given))
        for name, wanted in runtimes(data, given).items():
            assert y[name].shape == wanted.shape and np.abs(y[name].astype(np.float64) - wanted).max() < 2e-4, name
