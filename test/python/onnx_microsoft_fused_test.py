# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that optimizers write for several others, at random shapes and attributes: beside ONNX Runtime where its CPUs have
them, else beside NumPy."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx_attention_models import Node, close, ours, runtimes  # noqa: E402
from onnx_microsoft_test import Draw, compare  # noqa: E402
from onnx_models import parsed  # noqa: E402

ACTIVATIONS = {"Relu": [], "Sigmoid": [], "Tanh": [], "LeakyRelu": [0.3], "Clip": [-0.5, 1.0], "HardSigmoid": [0.3, 0.4]}


# ---- beside ONNX Runtime

def convolution(d):
    d.dtype = np.float32
    node = Node("FusedConv")
    n, groups, c, m, size = *d.sizes(3), d.sizes(1)[0], int(d.r.integers(5, 9))
    x = d(n, groups * c, size, size)
    node.feed("x", x, d.one_of(None, [None, groups * c, None, None]))
    node.weights("w", d(groups * m, c, 3, 3))
    has_sum = d.r.integers(2)
    node.weights("b", d(groups * m)) if d.r.integers(2) else node.skip()
    pads = d.one_of(0, 1)
    if has_sum:
        node.feed("z", d(n, groups * m, size - 2 + 2 * pads, size - 2 + 2 * pads))
    kind = d.one_of("", "Relu") if has_sum else d.one_of("", *ACTIVATIONS)
    if kind:
        node.attributes["activation"] = kind
        if ACTIVATIONS[kind]:
            node.attributes["activation_params"] = ACTIVATIONS[kind]
    node.attributes.update(group=groups, kernel_shape=[3, 3], pads=[pads] * 4)
    return node, ["y"]


def scales(d, n):
    return (0.01 + 0.02 * d.r.random(n if d.r.integers(2) else ())).astype(np.float32)


def weights_of(d, node, k, n, signed, per_column=True):
    """Numbers, and what belongs to them: scale and zero point."""
    kind = np.int8 if signed else np.uint8
    node.weights("w", d.r.integers(*((-127, 128) if signed else (0, 256)), (k, n)).astype(kind))
    scale = scales(d, n) if per_column else np.float32(0.02)
    zero = np.zeros(scale.shape, np.int8) if signed else d.r.integers(100, 150, scale.shape).astype(np.uint8)
    return scale, zero


def integers_to_float(d):
    node = Node("MatMulIntegerToFloat")
    m, k, n = int(d.r.integers(1, 9)), int(d.r.integers(1, 40)), int(d.r.integers(1, 20))
    node.feed("x", d.r.integers(0, 256, (*d.sizes(d.one_of(0, 1)), m, k)).astype(np.uint8))
    scale, zero = weights_of(d, node, k, n, d.r.integers(2))
    node.feed("s", np.float32(0.03)), node.weights("t", scale)
    is_known = d.r.integers(2)
    (node.weights if is_known else node.feed)("zx", np.uint8(d.r.integers(256)))
    node.weights("zw", zero)
    if d.r.integers(2):
        node.weights("b", d(n).astype(np.float32))
    return node, ["y"]


def dynamic_product(d):
    node = Node("DynamicQuantizeMatMul")
    d.dtype = np.float32
    m, k, n = int(d.r.integers(1, 9)), int(d.r.integers(1, 40)), int(d.r.integers(1, 20))
    node.feed("x", d(*d.sizes(d.one_of(0, 1)), m, k))
    scale, zero = weights_of(d, node, k, n, d.r.integers(2))
    node.weights("t", scale), node.weights("zw", zero)
    if d.r.integers(2):
        node.weights("b", d(n))
    return node, ["y"]


def attention(d):
    node = Node("QAttention")
    d.dtype = np.float32
    b, s, heads, size, k = *d.sizes(3), 8, 12
    node.feed("x", d.r.integers(0, 256, (b, s, k)).astype(np.uint8), d.one_of(None, [None, None, k]))
    scale, zero = weights_of(d, node, k, 3 * heads * size, d.r.integers(2), per_column=False)
    node.weights("b", d(3 * heads * size))
    node.feed("s", np.float32(0.01)), node.weights("t", scale)
    if d.r.integers(2):
        keep = np.arange(s) < d.r.integers(1, s + 1, (b, 1))
        node.feed("mask", keep.astype(np.int32))
    else:
        node.skip()
    node.feed("zx", np.uint8(d.r.integers(90, 160))), node.weights("zw", zero)
    node.attributes.update(num_heads=heads, unidirectional=int(d.r.integers(2)))
    return node, ["y"]


KINDS = {"convolution": convolution, "integers_to_float": integers_to_float, "dynamic_product": dynamic_product, "attention": attention}


@pytest.mark.parametrize("kind", KINDS)
def test_random(kind):
    for seed in range(24):
        node, names = KINDS[kind](Draw([seed, len(kind)]))
        compare(node, names, seed)


# ---- beside NumPy

def gelu(x):
    from math import erf
    return x * 0.5 * (1 + np.vectorize(erf)(x / 2**0.5))


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def normed(x, gamma, beta, groups, silu):
    n, h, w, c = x.shape
    y = x.astype(np.float64).reshape(n, h * w, groups, c // groups)
    y = (y - y.mean((1, 3), keepdims=True)) / np.sqrt(y.var((1, 3), keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if silu else y


def group_norm(d, has_skip):
    node = Node("SkipGroupNorm" if has_skip else "GroupNorm")
    d.dtype = np.float32
    n, h, w, groups = d.sizes(4)
    c, silu = groups * d.sizes(1)[0], int(d.r.integers(2))
    x, gamma, beta = d(n, h, w, c), d(c), d(c)
    node.feed("x", x, d.one_of(None, [None, None, None, c])), node.weights("gamma", gamma), node.weights("beta", beta)
    node.attributes.update(groups=groups, activation=silu)
    if not has_skip:
        return node, {"y": normed(x, gamma, beta, groups, silu)}
    skip, bias = d(*d.one_of((n, h, w, c), (n, c), (n, 1, 1, c))), d(c)
    node.feed("skip", skip)
    total = x + (skip[:, None, None] if skip.ndim == 2 else skip)
    if d.r.integers(2):
        total = total + node.weights("bias", bias)
    return node, {"y": normed(total, gamma, beta, groups, silu), "sum": total}


def channels_last(d):
    node = Node("NhwcConv")
    d.dtype = np.float32
    n, c, m, h, w = *d.sizes(3), int(d.r.integers(3, 7)), int(d.r.integers(3, 7))
    x, k, b = d(n, h, w, c), d(m, 3, 3, c), d(m)
    node.feed("x", x, d.one_of(None, [None, None, None, c])), node.weights("w", k), node.weights("b", b)
    node.attributes.update(pads=[1] * 4, kernel_shape=[3, 3])
    around = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1), (0, 0)])
    y = sum(around[:, i:i + h, j:j + w] @ k[:, i, j].T.astype(np.float64) for i in range(3) for j in range(3))
    return node, {"y": y + b}


def split(d):
    node = Node("BiasSplitGelu")
    d.dtype = np.float32
    n, s, h = d.sizes(3)
    x, b = d(n, s, 2 * h), d(2 * h)
    node.feed("x", x), d.given(node, "b", b)
    left, right = np.split((x + b).astype(np.float64), 2, axis=-1)
    return node, {"y": left * gelu(right)}


def added(d):
    node = Node("BiasAdd")
    d.dtype = np.float32
    n, s, h = d.sizes(3)
    x, b, skip = d(n, s, h), d(h), d(n, s, h)
    node.feed("x", x), d.given(node, "b", b), node.feed("skip", skip)
    return node, {"y": x + b + skip}


def gemm_gelu(d):
    node = Node("GemmFastGelu")
    d.dtype = np.float32
    m, k, n = d.sizes(3)
    x, w, b = d(2, m, k), d(k, n), d(n)
    node.feed("x", x), d.given(node, "w", w)
    y = x.astype(np.float64) @ w
    if d.r.integers(2):
        y = y + node.weights("b", b)
    return node, {"y": tanh_gelu(y)}


def softmax(d):
    node = Node("BiasSoftmax")
    d.dtype = np.float32
    n, h, s, t = d.sizes(4)
    x, b = d(n, h, s, t), d(*d.one_of((n, 1, 1, t), (1, 1, s, t), (n, h, s, t)))
    node.feed("x", x), node.feed("b", b)
    node.attributes.update(axis=d.one_of(3, -1), is_inner_broadcast=1)
    e = np.exp((x + b).astype(np.float64))
    return node, {"y": e / e.sum(-1, keepdims=True)}


def product(d):
    node = Node("FusedMatMulActivation")
    d.dtype = np.float32
    m, k, n = d.sizes(3)
    a, b = d(m, k), d(n, k)
    node.feed("a", a), node.feed("b", b)
    node.attributes.update(transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.2)
    y = 0.5 * (a.astype(np.float64) @ b.T)
    return node, {"y": np.where(y > 0, y, 0.2 * y)}


NUMPY = {"group_norm": lambda d: group_norm(d, False), "skip_group_norm": lambda d: group_norm(d, True), "channels_last": channels_last, "split": split, "added": added,
         "gemm_gelu": gemm_gelu, "softmax": softmax, "product": product}


@pytest.mark.parametrize("kind", NUMPY)
def test_beside_numpy(kind):
    for seed in range(8):
        node, want = NUMPY[kind](Draw([seed, len(kind)]))
        got = ours(node.bytes(*want), node.model.feed)
        for name, array in want.items():
            close(got[name], array, f"seed {seed}: {node.model.nodes[-1]}")


@pytest.mark.parametrize("op, sentence", [
    ("PackedAttention", "rows without padding"), ("RemovePadding", "rows without padding"), ("DecoderMaskedMultiHeadAttention", "ONNX Runtime's own searches"),
    ("RelativePositionBias", "a bias by distances that only a run tells"), ("EPContext", "has compiled for its own device"),
])
def test_refused_by_name(op, sentence):
    node = Node(op)
    node.feed("x", np.zeros((1, 2, 8), np.float32))
    error = parsed(node.bytes("y"))[1]
    assert op in error and sentence in error, error


def test_layout_of_a_machine():
    model = Node("ReorderInput", domain="com.microsoft.nchwc")
    model.feed("x", np.zeros((1, 16, 8, 8), np.float32))
    assert "save it with ORT_ENABLE_EXTENDED" in parsed(model.bytes("y"))[1]


def test_unknown_activation():
    node = Node("FusedConv")
    node.feed("x", np.zeros((1, 2, 8, 8), np.float32)), node.weights("w", np.zeros((2, 2, 3, 3), np.float32))
    node.attributes["activation"] = "Erf"
    assert "the activation Erf cannot be imported" in parsed(node.bytes("y"))[1]
