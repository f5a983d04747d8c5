# SPDX-License-Identifier: Apache-2.0
"""Small decoder models with seeded weights, in the forms that exporters write them: those of torch and optimum (caches that grow
by Concat), of ONNX Runtime GenAI's builder (GroupQueryAttention), and of ONNX's operator sets 23 and 24."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INT64, INT32, FLOAT, BOOL = TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT, TensorProto.BOOL
LOWEST = float(np.finfo(np.float32).min)


class Graph:
    """Nodes in the order they are made; names of tensors are what its methods take and give."""

    def __init__(self, seed, opset=17, prefix=""):
        self.random, self.opset, self.prefix = np.random.default_rng(seed), opset, prefix
        self.nodes, self.weights, self.inputs, self.outputs, self.count = [], [], [], [], 0

    def name(self, kind):
        self.count += 1
        return f"{self.prefix}{kind}_{self.count}"

    def const(self, value, dtype=None):
        name = self.name("constant")
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def weight(self, *shape, scale=0.3):
        return self.const((self.random.standard_normal(shape) * scale).astype(np.float32))

    def norm_weight(self, n, about=1.0):
        return self.const((about + 0.1 * self.random.standard_normal(n)).astype(np.float32))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = outputs if isinstance(outputs, list) else [self.name(kind) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, [i if isinstance(i, str) else self.const(np.float32(i)) for i in inputs], names, domain=domain,
                                           name=self.name("/" + kind), **attributes))
        return names[0] if len(names) == 1 else names

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, name, x, kind=FLOAT):
        self.op("Identity", x, outputs=[name])
        self.outputs.append(helper.make_tensor_value_info(name, kind, [None] * (3 if name == "logits" else 4)))

    # ---- what torch's exporter writes for shapes

    def dim(self, x, axis):
        return self.op("Gather", self.op("Shape", x), self.const(np.int64(axis)), axis=0)

    def one(self, scalar):
        return self.op("Unsqueeze", scalar, self.ints(0))

    def shape(self, *parts):
        return self.op("Concat", *(self.ints(p) if isinstance(p, int) else self.one(p) for p in parts), axis=0)

    def reshape(self, x, *parts):
        return self.op("Reshape", x, self.shape(*parts))

    def slice(self, x, axis, begin, end):
        as_list = lambda v: self.ints(v) if isinstance(v, int) else self.one(v)  # noqa: E731
        return self.op("Slice", x, as_list(begin), as_list(end), self.ints(axis), self.ints(1))

    def expand(self, x, shape):
        """-1 stands for the dimension that is there."""
        ones = self.op("ConstantOfShape", self.op("Shape", shape), value=numpy_helper.from_array(np.array([1], np.int64)))
        hidden = self.op("Equal", shape, self.op("Mul", ones, self.const(np.int64(-1))))
        return self.op("Expand", x, self.op("Where", hidden, ones, shape))

    def linear(self, x, n_in, n_out, bias=False):
        y = self.op("MatMul", x, self.weight(n_in, n_out, scale=n_in ** -0.5))
        return self.op("Add", self.weight(n_out, scale=0.1), y) if bias else y

    def bytes(self, domains=()):
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, self.weights)
        sets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in domains]
        model = helper.make_model(graph, opset_imports=sets, ir_version=10)
        if not domains and self.opset <= 22:
            onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


def in_half(data):
    """A model whose FLOATs are FLOAT16."""
    def halved(tensor):
        if tensor.data_type == FLOAT:
            array = np.clip(numpy_helper.to_array(tensor), -65504, 65504).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

    def change(graph):
        for tensor in graph.initializer:
            halved(tensor)
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
        for node in graph.node:
            for a in node.attribute:
                if node.op_type == "Cast" and a.name == "to" and a.i == FLOAT:
                    a.i = TensorProto.FLOAT16
                halved(a.t)
                if a.HasField("g"):
                    change(a.g)

    model = onnx.load_from_string(data)
    change(model.graph)
    return model.SerializeToString()


VOCABULARY, WIDTH, LAYERS, HEADS, GROUPS, SIZE, INNER = 71, 64, 2, 4, 2, 16, 96
PLACES, ROOM = 64, 32  # of tables of positions; of caches of a fixed length


class Spec:
    """A model and what its caller has to know."""

    def __init__(self, data, heads, **more):
        self.data, self.heads = data, heads  # of a cache
        self.size, self.capacity, self.encoder = SIZE, 0, 0
        self.mask = self.places = True
        self.past = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
        self.names = "past_key_values.{}", "present.{}"
        self.padded, self.branch, self.mask_type = True, None, np.int64  # branch: use_cache_branch is an input
        self.shapes = {}  # of a key and a value, (heads, size), where they differ
        vars(self).update(more)

    def cache(self, name, rows, length):
        """The shape of a cache."""
        heads, size = self.shapes.get(name.split(".")[-1], (self.heads, self.size))
        return (rows, heads, length, size)


# ---- torch, optimum: caches grow by Concat

def caches(g, i, heads, kind=""):
    return [g.input(f"past_key_values.{i}.{kind}{n}", FLOAT, "batch", heads, "length" if kind == "encoder." else "past", SIZE) for n in ("key", "value")]


def apart(g, x, heads):
    b, s = g.dim(x, 0), g.dim(x, 1)
    return g.op("Transpose", g.reshape(x, b, s, heads, SIZE), perm=[0, 2, 1, 3])


def joined(g, x):
    y = g.op("Transpose", x, perm=[0, 2, 1, 3])
    return g.reshape(y, g.dim(y, 0), g.dim(y, 1), HEADS * SIZE)


def layer_norm(g, x, in_pieces=False):
    scale, bias = g.norm_weight(WIDTH), g.weight(WIDTH, scale=0.1)
    if not in_pieces:
        return g.op("LayerNormalization", x, scale, bias, epsilon=1e-5, axis=-1)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, 2.0), axes=[-1])
    normal = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, 1e-5)))
    return g.op("Add", g.op("Mul", normal, scale), bias)


def rms_norm(g, x, one_more=False, reciprocal=True):
    """Gemma keeps the weights less 1."""
    mean = g.op("Add", g.op("ReduceMean", g.op("Pow", x, 2.0), axes=[-1]), 1e-6)
    root = g.op("Sqrt", mean)
    normal = g.op("Mul", x, g.op("Div", 1.0, root)) if reciprocal else g.op("Div", x, root)
    if one_more:
        return g.op("Mul", normal, g.op("Add", g.norm_weight(WIDTH, 0.0), 1.0))
    return g.op("Mul", g.norm_weight(WIDTH), normal)


def gelu_tanh(g, x):
    inner = g.op("Mul", g.op("Add", x, g.op("Mul", g.op("Pow", x, 3.0), 0.044715)), 0.7978845608)
    return g.op("Mul", g.op("Mul", x, 0.5), g.op("Add", g.op("Tanh", inner), 1.0))


def gelu_erf(g, x):
    return g.op("Mul", g.op("Mul", x, g.op("Add", g.op("Erf", g.op("Div", x, 2 ** 0.5)), 1.0)), 0.5)


def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


def causal_mask(g, ids, mask, total, past, window=0):
    """[batch, 1, s, total] of 0 and the lowest number: torch makes a triangle, and writes the padding into it."""
    b, s = g.dim(ids, 0), g.dim(ids, 1)
    places = g.op("Range", past, total, g.const(np.int64(1)))
    keys = g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1)))
    lowest = g.op("ConstantOfShape", g.shape(s, total), value=numpy_helper.from_array(np.array([LOWEST], np.float32)))
    column = g.op("Reshape", places, g.ints(-1, 1))
    hidden = g.op("Greater", keys, column)
    if window:
        hidden = g.op("Or", hidden, g.op("LessOrEqual", keys, g.op("Sub", column, g.const(np.int64(window)))))
    triangle = g.op("Mul", lowest, g.op("Cast", hidden, to=FLOAT))
    whole = g.expand(g.op("Unsqueeze", g.op("Unsqueeze", triangle, g.ints(0)), g.ints(0)), g.shape(b, 1, -1, -1))
    padding = g.op("Cast", g.op("Unsqueeze", g.op("Unsqueeze", mask, g.ints(1)), g.ints(1)), to=FLOAT)
    is_padding = g.op("Equal", g.op("Add", whole, padding), 0.0)
    return g.op("Where", is_padding, LOWEST, whole)


def rotary_tables(g, places, turned):
    """Cosines and sines [batch, 1, s, turned], of products with frequencies."""
    frequencies = g.const((10000.0 ** (-np.arange(0, turned, 2) / turned)).astype(np.float32)[None, :, None])
    column = g.expand(frequencies, g.shape(g.dim(places, 0), -1, 1))
    row = g.op("Cast", g.op("Unsqueeze", places, g.ints(1)), to=FLOAT)
    angles = g.op("Transpose", g.op("MatMul", column, row), perm=[0, 2, 1])
    both = g.op("Concat", angles, angles, axis=-1)
    return [g.op("Unsqueeze", g.op(f, both), g.ints(1)) for f in ("Cos", "Sin")]


def rotated(g, x, tables, turned=SIZE):
    """x cos + rotate_half(x) sin of the first numbers of each head."""
    head = x if turned == SIZE else g.slice(x, 3, 0, turned)
    half = g.op("Div", g.dim(head, 3), g.const(np.int64(2)))
    turned_half = g.op("Concat", g.op("Neg", g.slice(head, 3, half, np.iinfo(np.int64).max)), g.slice(head, 3, 0, half), axis=-1)
    y = g.op("Add", g.op("Mul", head, tables[0]), g.op("Mul", turned_half, tables[1]))
    return y if turned == SIZE else g.op("Concat", y, g.slice(x, 3, turned, np.iinfo(np.int64).max), axis=-1)


def repeated(g, x):
    """Each head of keys for as many of queries as share it."""
    b, s = g.dim(x, 0), g.dim(x, 2)
    wide = g.expand(g.op("Unsqueeze", x, g.ints(2)), g.shape(b, GROUPS, HEADS // GROUPS, s, SIZE))
    return g.reshape(wide, b, HEADS, s, SIZE)


def attention(g, q, k, v, mask, softcap=0.0, scale=SIZE ** -0.5):
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), scale)
    if softcap:
        scores = g.op("Mul", g.op("Tanh", g.op("Div", scores, softcap)), softcap)
    return joined(g, g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask) if mask else scores, axis=-1), v))


def gpt2():
    g = Graph(1, opset=14)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s")
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [caches(g, i, HEADS) for i in range(LAYERS)]
    table = g.weight(VOCABULARY, WIDTH, scale=0.05)
    x = g.op("Add", g.op("Gather", table, ids), g.op("Gather", g.weight(PLACES, WIDTH, scale=0.05), places))
    unsqueezed = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.ints(1)), g.ints(2))
    padding = g.op("Mul", g.op("Sub", 1.0, g.op("Cast", unsqueezed, to=FLOAT)), LOWEST)
    triangle = g.const(np.tril(np.ones((PLACES, PLACES), bool))[None, None])

    def conv1d(x, n_in, n_out):  # a Gemm on rows
        b, s = g.dim(x, 0), g.dim(x, 1)
        rows = g.op("Gemm", g.op("Reshape", x, g.ints(-1, n_in)), g.weight(n_in, n_out, scale=n_in ** -0.5), g.weight(n_out, scale=0.1))
        return g.reshape(rows, b, s, n_out)

    for i, (past_k, past_v) in enumerate(pasts):
        parts = g.op("Split", conv1d(layer_norm(g, x, True), WIDTH, 3 * WIDTH), g.ints(WIDTH, WIDTH, WIDTH), axis=2, outputs=3)
        q, k, v = (apart(g, p, HEADS) for p in parts)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), SIZE ** 0.5)
        total, s = g.dim(k, 2), g.dim(q, 2)
        part = g.slice(g.slice(triangle, 2, g.op("Sub", total, s), total), 3, 0, total)
        weights = g.op("Softmax", g.op("Add", g.op("Where", part, scores, LOWEST), padding), axis=-1)
        x = g.op("Add", conv1d(joined(g, g.op("MatMul", weights, v)), WIDTH, WIDTH), x)
        x = g.op("Add", x, conv1d(gelu_tanh(g, conv1d(layer_norm(g, x, True), WIDTH, INNER)), INNER, WIDTH))
    g.output("logits", g.op("MatMul", layer_norm(g, x, True), g.op("Transpose", table, perm=[1, 0])))
    return Spec(g.bytes(), HEADS)


def gated(g, x, function):
    return g.linear(g.op("Mul", function(g, g.linear(x, WIDTH, INNER)), g.linear(x, WIDTH, INNER)), INNER, WIDTH)


def llama_like(seed, bias=False, window=0, softcap=0.0, gemma=False, prefix=""):
    """Llama; Qwen has biases, Mistral a window, Gemma more norms, caps and 1 + w."""
    g = Graph(seed, opset=14)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s")
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [caches(g, i, GROUPS) for i in range(LAYERS)]
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    if gemma:
        x = g.op("Mul", x, WIDTH ** 0.5)
    past = g.dim(pasts[0][0], 2)
    total = g.op("Add", past, g.dim(ids, 1))
    norm = lambda x: rms_norm(g, x, gemma)  # noqa: E731
    masks = [causal_mask(g, ids, mask, total, past, window if i % 2 == 0 or not gemma else 0) for i in range(2 if gemma else 1)]
    tables = rotary_tables(g, places, SIZE)
    for i, (past_k, past_v) in enumerate(pasts):
        y = norm(x)
        q, k, v = (apart(g, g.linear(y, WIDTH, n * SIZE, bias), n) for n in (HEADS, GROUPS, GROUPS))
        q, k = rotated(g, q, tables), rotated(g, k, tables)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        y = g.linear(attention(g, q, repeated(g, k), repeated(g, v), masks[i % len(masks)], softcap), WIDTH, WIDTH)
        x = g.op("Add", x, norm(y) if gemma else y)
        y = gated(g, norm(x), gelu_tanh if gemma else silu)
        x = g.op("Add", x, norm(y) if gemma else y)
    logits = g.linear(norm(x), WIDTH, VOCABULARY)
    if gemma:
        logits = g.op("Mul", g.op("Tanh", g.op("Div", logits, 30.0)), 30.0)
    g.output("logits", logits)
    return Spec(g.bytes(), GROUPS)


def phi():
    """A part of each head is turned; attention and MLP stand side by side."""
    g = Graph(5, opset=17)
    turned = SIZE // 2
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "past + s")
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [caches(g, i, HEADS) for i in range(LAYERS)]
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    past = g.dim(pasts[0][0], 2)
    total = g.op("Add", past, g.dim(ids, 1))
    tables, hidden = rotary_tables(g, places, turned), causal_mask(g, ids, mask, total, past)
    for i, (past_k, past_v) in enumerate(pasts):
        y = layer_norm(g, x)
        q, k, v = (apart(g, g.linear(y, WIDTH, WIDTH, True), HEADS) for _ in range(3))
        q, k = rotated(g, q, tables, turned), rotated(g, k, tables, turned)
        k, v = g.op("Concat", past_k, k, axis=-2), g.op("Concat", past_v, v, axis=-2)
        g.output(f"present.{i}.key", k), g.output(f"present.{i}.value", v)
        a = g.linear(attention(g, q, k, v, hidden), WIDTH, WIDTH, True)
        x = g.op("Add", g.op("Add", a, g.linear(gelu_tanh(g, g.linear(y, WIDTH, INNER, True)), INNER, WIDTH, True)), x)
    g.output("logits", g.linear(layer_norm(g, x), WIDTH, VOCABULARY, True))
    return Spec(g.bytes(), HEADS)


# ---- decoders of an encoder's states

def cross_attention(g, x, k, v, added, bias):
    q = apart(g, g.linear(x, WIDTH, WIDTH, bias), HEADS)
    return g.linear(attention(g, q, k, v, added, scale=1.0 if not bias else SIZE ** -0.5), WIDTH, WIDTH, bias)


def t5_bias(g, table, s, total, past):
    """Of buckets of distances: one for each short one, and of the rest by their logarithm."""
    buckets, longest = 8, 32
    queries = g.op("Unsqueeze", g.op("Range", past, total, g.const(np.int64(1))), g.ints(1))
    keys = g.op("Unsqueeze", g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1))), g.ints(0))
    back = g.op("Neg", g.op("Min", g.op("Sub", keys, queries), g.const(np.int64(0))))
    exact = buckets // 2
    ratio = g.op("Log", g.op("Div", g.op("Cast", g.op("Max", back, g.const(np.int64(1))), to=FLOAT), float(exact)))
    wide = g.op("Mul", g.op("Div", ratio, float(np.log(longest / exact))), float(buckets - exact))
    far = g.op("Min", g.op("Add", g.op("Cast", wide, to=INT64), g.const(np.int64(exact))), g.const(np.int64(buckets - 1)))
    bucket = g.op("Where", g.op("Less", back, g.const(np.int64(exact))), back, far)
    return g.op("Unsqueeze", g.op("Transpose", g.op("Gather", table, bucket), perm=[2, 0, 1]), g.ints(0))


def seq2seq_caches(g, i):
    return caches(g, i, HEADS, "decoder."), caches(g, i, HEADS, "encoder.")


class Branch(Graph):
    """A graph inside of another, which has the inputs and the weights."""

    def __init__(self, around, prefix):
        super().__init__(0, around.opset, prefix)
        self.random, self.weights, self.around = around.random, around.weights, around

    def output(self, name, x, kind=FLOAT):
        self.op("Identity", x, outputs=[self.prefix + name])
        self.outputs.append(helper.make_tensor_value_info(self.prefix + name, kind, [None] * (3 if name == "logits" else 4)))

    def graph(self):
        return helper.make_graph(self.nodes, self.prefix + "graph", [], self.outputs)


def t5_body(g, ids, states, states_mask, pasts):
    """pasts: of each layer those of the decoder and of the encoder; none: they are made of the states."""
    g.random = np.random.default_rng(8)  # both branches have the same weights
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    s = g.dim(ids, 1)
    past = g.dim(pasts[0][0][0], 2) if pasts else g.const(np.int64(0))
    total = g.op("Add", past, s)
    bias = t5_bias(g, g.weight(8, HEADS), s, total, past)
    keys = g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1)))
    places = g.op("Reshape", g.op("Range", past, total, g.const(np.int64(1))), g.ints(-1, 1))
    hidden = g.op("Cast", g.op("Greater", keys, places), to=FLOAT)
    mask = g.op("Add", bias, g.op("Mul", g.op("Unsqueeze", hidden, g.ints(0, 1)), LOWEST))
    padding = g.op("Cast", g.op("Unsqueeze", states_mask, g.ints(1, 2)), to=FLOAT)
    padding = g.op("Mul", g.op("Sub", 1.0, padding), LOWEST)
    presents = []
    for i in range(LAYERS):
        y = rms_norm(g, x, reciprocal=False)
        q, k, v = (apart(g, g.linear(y, WIDTH, WIDTH), HEADS) for _ in range(3))
        if pasts:
            k, v = (g.op("Concat", p, n, axis=2) for p, n in zip(pasts[i][0], (k, v)))
        x = g.op("Add", x, g.linear(attention(g, q, k, v, mask, scale=1.0), WIDTH, WIDTH))
        made = [apart(g, g.linear(states, WIDTH, WIDTH), HEADS) for _ in range(2)] if not pasts else pasts[i][1]
        if pasts:  # weights as in the other branch
            g.weight(WIDTH, WIDTH), g.weight(WIDTH, WIDTH)
        x = g.op("Add", x, cross_attention(g, rms_norm(g, x, reciprocal=False), *made, padding, False))
        y = g.op("Relu", g.linear(rms_norm(g, x, reciprocal=False), WIDTH, INNER))
        x = g.op("Add", x, g.linear(y, INNER, WIDTH))
        presents.append(((k, v), made))
    logits = g.linear(g.op("Mul", rms_norm(g, x, reciprocal=False), WIDTH ** -0.5), WIDTH, VOCABULARY)
    g.output("logits", logits)
    for i, both in enumerate(presents):
        for kind, pair in zip(("decoder", "encoder"), both):
            g.output(f"present.{i}.{kind}.key", pair[0]), g.output(f"present.{i}.{kind}.value", pair[1])


def seq2seq_spec(data, **more):
    names = [f"{i}.{kind}.{n}" for i in range(LAYERS) for kind in ("decoder", "encoder") for n in ("key", "value")]
    return Spec(data, HEADS, past=names, mask=False, places=False, encoder=7, **more)


def t5():
    """Merged as optimum does it: one branch for the first call, which makes the encoder's keys and values, one for the others."""
    g = Graph(7, opset=14)
    ids = g.input("input_ids", INT64, "batch", "s")
    states = g.input("encoder_hidden_states", FLOAT, "batch", "length", WIDTH)
    states_mask = g.input("encoder_attention_mask", INT64, "batch", "length")
    pasts = [seq2seq_caches(g, i) for i in range(LAYERS)]
    condition = g.input("use_cache_branch", BOOL, 1)
    branches = {}
    for name, kept in (("then", pasts), ("else", None)):
        branch = Branch(g, name + "_")
        t5_body(branch, ids, states, states_mask, kept)
        branches[name] = branch
    outputs = [o.name.removeprefix("then_") for o in branches["then"].outputs]
    g.op("If", condition, outputs=outputs, then_branch=branches["then"].graph(), else_branch=branches["else"].graph())
    g.outputs = [helper.make_tensor_value_info(n, FLOAT, [None] * (3 if n == "logits" else 4)) for n in outputs]
    return seq2seq_spec(g.bytes(), branch=True)


def whisper():
    """With caches of both; places are counted from the past."""
    g = Graph(9, opset=17)
    ids = g.input("input_ids", INT64, "batch", "s")
    pasts = [seq2seq_caches(g, i) for i in range(LAYERS)]
    past, s = g.dim(pasts[0][0][0], 2), g.dim(ids, 1)
    total = g.op("Add", past, s)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH, scale=0.1), ids)
    x = g.op("Add", x, g.slice(g.weight(40, WIDTH, scale=0.1), 0, past, total))
    keys = g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1)))
    places = g.op("Reshape", g.op("Range", past, total, g.const(np.int64(1))), g.ints(-1, 1))
    mask = g.op("Where", g.op("Unsqueeze", g.op("Greater", keys, places), g.ints(0, 1)), -np.inf, 0.0)
    for i, (own, encoders) in enumerate(pasts):
        y = layer_norm(g, x)
        q, k, v = (apart(g, g.linear(y, WIDTH, WIDTH, b), HEADS) for b in (True, False, True))
        k, v = g.op("Concat", own[0], k, axis=2), g.op("Concat", own[1], v, axis=2)
        g.output(f"present.{i}.decoder.key", k), g.output(f"present.{i}.decoder.value", v)
        x = g.op("Add", x, g.linear(attention(g, q, k, v, mask), WIDTH, WIDTH, True))
        x = g.op("Add", x, cross_attention(g, layer_norm(g, x), *encoders, "", True))
        x = g.op("Add", x, g.linear(gelu_erf(g, g.linear(layer_norm(g, x), WIDTH, INNER, True)), INNER, WIDTH, True))
    g.output("logits", g.linear(layer_norm(g, x), WIDTH, VOCABULARY))
    return seq2seq_spec(g.bytes(), branch=False)


# ---- ONNX Runtime GenAI's builder

MICROSOFT = "com.microsoft"


def contrib(g, kind, *inputs, **attributes):
    return g.op(kind, *inputs, domain=MICROSOFT, **attributes)


def rotary_weights(g, turned=SIZE):
    angles = np.outer(np.arange(PLACES), 10000.0 ** (-np.arange(0, turned, 2) / turned))
    return g.const(np.cos(angles).astype(np.float32)), g.const(np.sin(angles).astype(np.float32))


def skip_norm(g, x, y, simplified, bias=None):
    """The norm of the sum, and the sum."""
    kind = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    more = [] if simplified else [g.weight(WIDTH, scale=0.1)]
    norm, total = g.name("norm"), g.name("sum")
    g.op(kind, x, y, g.norm_weight(WIDTH), *more, domain=MICROSOFT, outputs=[norm, "", "", total], epsilon=1e-5)
    return norm, total


def genai(seed, bias=False, packed=False, phi=False, window=-1, separate_rotary=False):
    """Llama; Qwen has biases, Phi other norms, a rotation of a part of each head and a gelu."""
    g = Graph(seed, opset=14)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT64, "batch", "total")
    heads, groups = HEADS, HEADS if phi else GROUPS
    pasts = [caches(g, i, groups) for i in range(LAYERS)]
    counts = g.op("Sub", g.op("ReduceSum", mask, g.ints(1), keepdims=1), g.ints(1))
    lengths, total = g.op("Cast", counts, to=INT32), g.op("Cast", g.dim(mask, 1), to=INT32)
    cosines, sines = rotary_weights(g, SIZE)
    simplified = not phi
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    if simplified:
        y = g.op("SimplifiedLayerNormalization", x, g.norm_weight(WIDTH), axis=-1, epsilon=1e-5, stash_type=1)
    else:
        y = layer_norm(g, x)
    for i, (past_k, past_v) in enumerate(pasts):
        attributes = dict(num_heads=heads, kv_num_heads=groups, scale=SIZE ** -0.5, local_window_size=window)
        tables = [cosines, sines]
        if packed:
            parts = [g.linear(y, WIDTH, (heads + 2 * groups) * SIZE, bias), "", ""]
        else:
            parts = [g.linear(y, WIDTH, n * SIZE, bias) for n in (heads, groups, groups)]
        if separate_rotary:
            places = g.op("Add", g.op("Unsqueeze", g.op("Range", g.const(np.int64(0)), g.dim(ids, 1), g.const(np.int64(1))), g.ints(0)), g.op("Sub", g.one(g.dim(mask, 1)), g.one(g.dim(ids, 1))))
            places = g.expand(places, g.shape(g.dim(ids, 0), -1))
            parts[:2] = [contrib(g, "RotaryEmbedding", p, places, cosines, sines, interleaved=0) for p in parts[:2]]
            tables = []
        else:
            attributes.update(do_rotary=1, rotary_interleaved=0)
        outputs = [g.name("attention"), f"present.{i}.key", f"present.{i}.value"]
        g.op("GroupQueryAttention", *parts, past_k, past_v, lengths, total, *tables, domain=MICROSOFT, outputs=outputs, **attributes)
        a = g.linear(outputs[0], WIDTH, WIDTH, phi)
        y, x = skip_norm(g, x, a, simplified)
        if phi:
            y = g.linear(contrib(g, "FastGelu", g.linear(y, WIDTH, INNER, True)), INNER, WIDTH, True)
        else:
            y = gated(g, y, silu)
        y, x = skip_norm(g, x, y, simplified)
    g.outputs = [helper.make_tensor_value_info(f"present.{i}.{n}", FLOAT, ["batch", groups, "total", SIZE]) for i in range(LAYERS) for n in ("key", "value")]
    g.output("logits", g.linear(y, WIDTH, VOCABULARY))
    return Spec(g.bytes([MICROSOFT]), groups, places=False, padded=False)


def multi_head():
    """GPT-2 after ONNX Runtime's optimizer: MultiHeadAttention with past and present, norms of sums, BiasGelu."""
    g = Graph(14, opset=14)
    ids, mask = g.input("input_ids", INT64, "batch", "s"), g.input("attention_mask", INT32, "batch", "total")
    places = g.input("position_ids", INT64, "batch", "s")
    pasts = [caches(g, i, HEADS) for i in range(LAYERS)]
    x = g.op("Add", g.op("Gather", g.weight(VOCABULARY, WIDTH, scale=1.0), ids), g.op("Gather", g.weight(PLACES, WIDTH, scale=1.0), places))
    y = g.op("LayerNormalization", x, g.norm_weight(WIDTH), g.weight(WIDTH, scale=0.1), epsilon=1e-5, axis=-1)
    for i, (past_k, past_v) in enumerate(pasts):
        parts = [g.linear(y, WIDTH, WIDTH) for _ in range(3)]
        outputs = [g.name("attention"), f"present.{i}.key", f"present.{i}.value"]
        g.op("MultiHeadAttention", *parts, g.weight(3 * WIDTH, scale=0.1), mask, "", past_k, past_v, domain=MICROSOFT, outputs=outputs, num_heads=HEADS, unidirectional=1)
        y, x = skip_norm(g, x, g.linear(outputs[0], WIDTH, WIDTH, True), False)
        y = g.linear(contrib(g, "BiasGelu", g.linear(y, WIDTH, INNER), g.weight(INNER, scale=0.1)), INNER, WIDTH, True)
        y, x = skip_norm(g, x, y, False)
    g.outputs = [helper.make_tensor_value_info(f"present.{i}.{n}", FLOAT, ["batch", HEADS, "total", SIZE]) for i in range(LAYERS) for n in ("key", "value")]
    g.output("logits", g.linear(y, WIDTH, VOCABULARY))
    return Spec(g.bytes([MICROSOFT]), HEADS, mask_type=np.int32)


# ---- ONNX's operator sets 23 and 24

def onnx_attention(opset):
    """Set 23: past and present of Attention; set 24: caches of a fixed length, into which TensorScatter writes."""
    g = Graph(13, opset)
    ids = g.input("input_ids", INT64, "batch", "s")
    places = g.input("position_ids", INT64, "batch", "s")
    fixed = opset > 23
    pasts = [caches(g, i, GROUPS) for i in range(LAYERS)]
    if fixed:
        begins, lengths = g.input("write_indices", INT64, "batch"), g.input("lengths", INT64, "batch")
    cosines, sines = rotary_weights(g)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    norm = lambda x: g.op("RMSNormalization", x, g.norm_weight(WIDTH), epsilon=1e-5)  # noqa: E731
    for i, (past_k, past_v) in enumerate(pasts):
        y = norm(x)
        q, k, v = (g.linear(y, WIDTH, n * SIZE) for n in (HEADS, GROUPS, GROUPS))
        q = g.op("RotaryEmbedding", q, cosines, sines, places, num_heads=HEADS)
        k = g.op("RotaryEmbedding", k, cosines, sines, places, num_heads=GROUPS)
        present = [f"present.{i}.key", f"present.{i}.value"]
        a = g.name("attention")
        if fixed:
            for past, new, name in ((past_k, k, present[0]), (past_v, v, present[1])):
                g.op("TensorScatter", past, apart(g, new, GROUPS), begins, outputs=[name], axis=2)
            g.op("Attention", apart(g, q, HEADS), *present, "", "", "", lengths, outputs=[a], is_causal=1)
            a = joined(g, a)
        else:
            g.op("Attention", q, k, v, "", past_k, past_v, outputs=[a, *present], is_causal=1, q_num_heads=HEADS, kv_num_heads=GROUPS)
        x = g.op("Add", x, g.linear(a, WIDTH, WIDTH))
        x = g.op("Add", x, gated(g, norm(x), (lambda g, x: g.op("Swish", x)) if fixed else silu))
    g.outputs = [helper.make_tensor_value_info(f"present.{i}.{n}", FLOAT, ["batch", GROUPS, None, SIZE]) for i in range(LAYERS) for n in ("key", "value")]
    g.output("logits", g.linear(norm(x), WIDTH, VOCABULARY))
    return Spec(g.bytes(), GROUPS, mask=False, padded=False, capacity=ROOM if fixed else 0)


def sliding(spec):
    """As GenAI's builder writes layers with a window today: their caches may be as short as that."""
    model = onnx.load_from_string(spec.data)
    first = next(n for n in model.graph.node if n.op_type == "GroupQueryAttention")
    first.attribute.append(helper.make_attribute("sliding_window_cache", 1))
    spec.standard, spec.data = spec.data, model.SerializeToString()
    return spec


FORMS = {
    "gpt2": gpt2,
    "llama": lambda: llama_like(2),
    "qwen": lambda: llama_like(3, bias=True),
    "mistral": lambda: llama_like(4, window=6),
    "gemma": lambda: llama_like(6, window=5, softcap=5.0, gemma=True),
    "phi": phi,
    "t5": t5,
    "whisper": whisper,
    "genai_llama": lambda: genai(20),
    "genai_qwen": lambda: genai(21, bias=True, packed=True),
    "genai_phi": lambda: genai(22, bias=True, phi=True),
    "genai_mistral": lambda: genai(23, window=6),
    "genai_sliding": lambda: sliding(genai(25, window=6)),
    "genai_rotary_apart": lambda: genai(24, separate_rotary=True),
    "multi_head": multi_head,
    "onnx23": lambda: onnx_attention(23),
    "onnx24": lambda: onnx_attention(24),
}
