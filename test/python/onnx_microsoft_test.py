# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft but those of attention, at random shapes and attributes, beside ONNX Runtime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx_attention_models import Node, close, ours, runtimes  # noqa: E402
from onnx_models import parsed  # noqa: E402

make = onnx.helper


class Draw:
    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.dtype = np.float16 if self.r.integers(4) == 0 else np.float32

    def __call__(self, *shape):
        return self.r.standard_normal(shape).astype(self.dtype)

    def one_of(self, *values):
        return values[int(self.r.integers(len(values)))]

    def sizes(self, n, top=6):
        return [int(v) for v in self.r.integers(1, top, n)]

    def given(self, node, name, array, by_chance=False):
        """An input or an initializer; by_chance: or neither."""
        if by_chance and self.r.integers(2):
            return node.skip()
        if self.r.integers(2):
            return node.weights(name, array)
        return node.feed(name, array, [None] * array.ndim if self.r.integers(2) else None)


def compare(node, names, seed):
    data, feed = node.bytes(*names), node.model.feed
    message = f"seed {seed}: {node.model.nodes[-1]} {[(n, a.shape, a.dtype) for n, a in feed.items()]}"
    want, got = runtimes(data, feed), ours(data, feed)
    assert set(got) == set(want), message
    for name, array in want.items():
        if array.dtype.kind == "f":
            assert got[name].dtype == array.dtype, message
            close(got[name], array, f"{name} {message}", array.dtype == np.float16)
        else:
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} {message}")


# ---- norms

def simplified(d):
    node = Node("SimplifiedLayerNormalization", "", 17)
    x = d(*d.sizes(d.one_of(1, 2, 3, 4)))
    node.feed("x", x, [None] * (x.ndim - 1) + [x.shape[-1]])
    d.given(node, "scale", d(x.shape[-1]))
    if d.r.integers(2):
        node.attributes.update(epsilon=d.one_of(1e-6, 0.1), axis=d.one_of(-1, x.ndim - 1))
    return node, ["y"]


def skipped(d, op, has_beta):
    node = Node(op)
    n, s, h = d.sizes(3, 8)
    x = d(n, s, h)
    node.feed("x", x, d.one_of(None, [None, None, h]))
    skip = d(*d.one_of((n, s, h), (n, s, h), (1, s, h), (s, h)))
    node.feed("s", skip)
    d.given(node, "gamma", d(h))
    if has_beta:
        d.given(node, "beta", d(h), True)
    d.given(node, "bias", d(h), True)
    if d.r.integers(2):
        node.attributes["epsilon"] = d.one_of(1e-6, 0.1)
    return node, d.one_of(["y"], ["y", "", "", "sum"])


def embedded(d):
    d.dtype = np.float32
    node = Node("EmbedLayerNormalization")
    n, s, h = d.sizes(3, 8)
    node.model.opset = 17
    words, places = 11, 9
    node.feed("ids", d.r.integers(0, words, (n, s)).astype(np.int32), d.one_of(None, [None, None]))
    has_segments = d.r.integers(2)
    node.feed("segments", d.r.integers(0, 2, (n, s)).astype(np.int32)) if has_segments else node.skip()
    node.weights("w", d(words, h)), node.weights("p", d(places, h))
    node.weights("g", d(2, h)) if has_segments else node.skip()
    node.weights("gamma", d(h)), node.weights("beta", d(h))
    keep = np.arange(s) < d.r.integers(1, s + 1, (n, 1))
    node.feed("mask", keep.astype(np.int32)) if d.r.integers(2) else node.skip()
    if d.r.integers(2):
        node.feed("at", d.r.integers(0, places, (d.one_of(1, n), s)).astype(np.int32))
    if d.r.integers(2):
        node.attributes["epsilon"] = 0.1
    return node, d.one_of(["y", "count"], ["y", "count", "sum"])


# ---- functions and products

def function(d, op, has_bias=False, needs_bias=False):
    node = Node(op)
    x = d(*d.sizes(d.one_of(1, 2, 3)))
    if op in ("Gelu", "QuickGelu", "BiasGelu"):  # FLOAT alone on CPUs, or other digits
        x = x.astype(np.float32)
    node.feed("x", x, d.one_of(None, [None] * (x.ndim - 1) + [x.shape[-1]]))
    if has_bias:
        d.given(node, "b", d(x.shape[-1]).astype(x.dtype), not needs_bias)
    if op == "QuickGelu" and d.r.integers(2):
        node.attributes["alpha"] = d.one_of(1.0, 0.5)
    return node, ["y"]


def product(d):
    d.dtype = np.float32
    node = Node("FusedMatMul")
    m, k, n = d.sizes(3)
    batch = d.sizes(d.one_of(0, 1, 2), 4)
    shapes = []
    for name, rows, columns in (("A", m, k), ("B", k, n)):
        matrix = [rows, columns]
        if d.r.integers(2):
            node.attributes["trans" + name] = 1
            matrix.reverse()
        shape = batch + matrix
        if batch and d.r.integers(2):  # the first dimension stands before the last, which moves in front
            node.attributes["transBatch" + name] = 1
            shape = matrix[:1] + batch + matrix[1:]
        shapes.append(shape)
    if d.r.integers(2):
        node.attributes["alpha"] = d.one_of(0.5, -2.0)
    d.given(node, "a", d(*shapes[0]))
    node.feed("b", d(*shapes[1]))
    return node, ["y"]


def gemm(d):
    d.dtype = np.float32
    node = Node("FusedGemm")
    m, k, n = d.sizes(3)
    a, b = d(m, k), d(k, n)
    if d.r.integers(2):
        node.attributes["transA"], a = 1, a.T.copy()
    if d.r.integers(2):
        node.attributes["transB"], b = 1, b.T.copy()
    node.feed("a", a), d.given(node, "b", b)
    d.given(node, "c", d(*d.one_of((n,), (m, n), (1, n))), True)
    node.attributes.update(alpha=d.one_of(1.0, 0.5), beta=d.one_of(1.0, 2.0))
    kind = node.attributes["activation"] = d.one_of("Relu", "Sigmoid", "Tanh", "LeakyRelu")
    if kind == "LeakyRelu":
        node.attributes["activation_alpha"] = 0.3
    return node, ["y"]


def pack(numbers, bits):
    """Of each row, the lower bits of a byte first."""
    each = 8 // bits
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)]).astype(np.uint8)
    parts = padded.reshape(*padded.shape[:-1], -1, each)
    return sum(parts[..., i] << np.uint8(i * bits) for i in range(each)).astype(np.uint8)


def gathered(d):
    """Of blocks along one axis; of UINT8, several numbers in a byte."""
    node = Node("GatherBlockQuantized", opset=21)
    bytes_ = d.r.integers(2)
    rank = 2 if bytes_ else d.one_of(2, 3)
    block = d.one_of(16, 32)
    quantized = rank - 1 if bytes_ else int(d.r.integers(rank))
    shape = [int(n) for n in d.r.integers(1, 5, rank)]
    shape[quantized] = int(d.r.integers(1, 4)) * block - (0 if bytes_ else d.one_of(0, 0, 2))
    axis = 0 if bytes_ else int(d.r.integers(rank))
    bits = d.one_of(4, 8) if bytes_ else 4
    of_scales = [-(-n // block) if i == quantized else n for i, n in enumerate(shape)]
    draw = lambda shape: d.r.integers(0, 1 << bits, shape)  # noqa: E731
    numbers, zeros = draw(shape), draw(of_scales)
    if bytes_:
        node.weights("data", pack(numbers, bits))
        node.attributes["bits"] = bits
    else:
        kind = d.one_of(onnx.TensorProto.UINT4, onnx.TensorProto.INT4)
        signed = 8 if kind == onnx.TensorProto.INT4 else 0
        as_weights(node, "data", kind, numbers - signed)
    indices = d.r.integers(0, shape[axis], d.sizes(d.one_of(1, 2))).astype(d.one_of(np.int32, np.int64))
    node.feed("i", indices)
    node.weights("scales", d(*of_scales))
    if d.r.integers(2):
        if bytes_:
            node.weights("zeros", pack(zeros, bits))
        else:
            as_weights(node, "zeros", kind, zeros - signed)
    node.attributes.update(block_size=block, gather_axis=axis, quantize_axis=quantized)
    return node, ["y"]


def as_weights(node, name, kind, numbers):
    node.model.initializers.append(make.make_tensor(name, kind, numbers.shape, numbers.reshape(-1).tolist()))
    node.inputs.append(name)


# ---- RotaryEmbedding

def rotary(d):
    node = Node("RotaryEmbedding")
    b, heads, s = d.sizes(3)
    form = d.one_of("whole", "whole", "part")
    pairs = d.one_of(2, 4, 8)
    size = 2 * pairs if form == "whole" else 2 * pairs + d.one_of(2, 4)
    is_flat = d.r.integers(2)
    x = d(b, s, heads * size) if is_flat else d(b, heads, s, size)
    node.feed("x", x, d.one_of(None, [None, None, heads * size] if is_flat else [None, heads, None, size]))
    places = d.r.integers(0, 5, 1) if d.r.integers(2) else d.r.integers(0, 12, (b, s))
    node.feed("at", places.astype(np.int64), d.one_of(None, [1] if places.ndim == 1 else [None, None]))
    angles = np.outer(np.arange(12), d.r.random(pairs))
    node.feed("cos", np.cos(angles).astype(d.dtype), d.one_of(None, [None, pairs])), node.weights("sin", np.sin(angles).astype(d.dtype))
    if form == "part":
        node.attributes.update(num_heads=heads, rotary_embedding_dim=2 * pairs)
    elif d.r.integers(2):
        node.attributes["num_heads"] = heads
    node.attributes["interleaved"] = int(d.r.integers(2))
    if d.r.integers(4) == 0:
        node.attributes["is_packed_batching"] = 1
    return node, ["y"]


KINDS = {
    "simplified": simplified, "embedded": embedded, "product": product, "gemm": gemm, "rotary": rotary, "gathered": gathered,
    "skipped": lambda d: skipped(d, "SkipLayerNormalization", True),
    "skipped_simplified": lambda d: skipped(d, "SkipSimplifiedLayerNormalization", False),
    "gelu": lambda d: function(d, "Gelu"), "quick_gelu": lambda d: function(d, "QuickGelu"),
    "fast_gelu": lambda d: function(d, "FastGelu", True), "bias_gelu": lambda d: function(d, "BiasGelu", True, True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_random(kind):
    for seed in range(24):
        node, names = KINDS[kind](Draw([seed, len(kind)]))
        compare(node, names, seed)


# ---- what is refused

@pytest.mark.parametrize("op, sentence", [
    ("QMoE", "a mixture of experts cannot be imported"), ("MoE", "a mixture of experts"), ("PagedAttention", "caches in pages cannot be imported"),
    ("SparseAttention", "leaves out blocks"), ("BeamSearch", "import the decoder"),
])
def test_refused_by_name(op, sentence):
    node = Node(op)
    node.feed("x", np.zeros((1, 2, 8), np.float32))
    error = parsed(node.bytes("y"))[1]
    assert op in error and sentence in error, error
