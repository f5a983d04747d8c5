# SPDX-License-Identifier: Apache-2.0
"""Each layer of Caffe beside NumPy, as Caffe's documentation has it, in networks with an implicit and with an explicit batch."""

import itertools

import numpy as np
import pytest
import tensorrt as trt

from caffe_files import Net, Word, f, network_of, plan_of, refusal, run_plan
from small import QUIET


def flat_close(got, wanted, tolerance, what=""):
    """Equal but for the dimensions of 1: tensors may have more of them than Caffe's blobs."""
    wanted = np.asarray(wanted, np.float64)
    strip = lambda shape: tuple(d for d in shape[1:] if d != 1)
    assert got.shape[0] == wanted.shape[0] and strip(got.shape) == strip(wanted.shape), f"{what}: {got.shape} for {wanted.shape}"
    got = got.reshape(wanted.shape).astype(np.float64)
    scale = np.maximum(1, np.abs(wanted))
    error = np.abs(got - wanted) / scale
    assert error.max(initial=0) <= tolerance, f"{what}: error {error.max()}"


def check(kind, shapes, wanted, *, blobs=(), tops=1, seed=0, low=-2, high=2, explicit=(False, True), tolerance=2e-5, arrays=None, **params):
    """The layer on random inputs of these shapes, without the batch; `wanted` of arrays with the batch gives an array or a list."""
    random = np.random.default_rng(seed)
    for mode in explicit:
        n = 1 if mode else 3
        given = arrays(random, n) if arrays else [random.uniform(low, high, (n, *s)).astype(f) for s in shapes]
        net = Net()
        names = [net.input(f"x{i}", *a.shape[1:]) for i, a in enumerate(given)]
        names_of_tops = [f"y{i}" for i in range(tops)]
        net.layer(kind, names, names_of_tops, blobs, name="it", **params)
        right = wanted(*[a.astype(np.float64) for a in given])
        right = right if isinstance(right, (list, tuple)) else [right]
        got = run_plan(plan_of(net, names_of_tops, explicit=mode, batch=n), {k: a for k, a in zip(names, given)}, mode)
        for name, r in zip(names_of_tops, right):
            assert np.isfinite(r).all()
            flat_close(got[name], r, tolerance, f"{kind} explicit={mode} {params}")


def normal(seed, *shape, scale=0.5):
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(f)


# ---- windows


def windows(x, k, stride, pad, dilation):
    x = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])))
    extent = [d * (s - 1) + 1 for d, s in zip(dilation, k)]
    view = np.lib.stride_tricks.sliding_window_view(x, extent, (2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def conv(x, w, b=None, stride=(1, 1), pad=(0, 0), dilation=(1, 1), group=1):
    x, w = x.astype(np.float64), w.astype(np.float64)
    parts = [np.einsum("nchwij,kcij->nkhw", windows(xs, ws.shape[2:], stride, pad, dilation), ws, optimize=True)
             for xs, ws in zip(np.split(x, group, 1), np.split(w, group, 0))]
    y = np.concatenate(parts, 1)
    return y if b is None else y + b.astype(np.float64)[:, None, None]


def deconv(x, w, b=None, stride=(1, 1), pad=(0, 0), group=1):
    """w: [C, K / group, h, w]."""
    n, c, h, wd = x.shape
    k, kh, kw = w.shape[1], w.shape[2], w.shape[3]
    y = np.zeros((n, k * group, (h - 1) * stride[0] + kh, (wd - 1) * stride[1] + kw))
    for g in range(group):
        xs, ws = x[:, g * (c // group) : (g + 1) * (c // group)], w[g * (c // group) : (g + 1) * (c // group)].astype(np.float64)
        for i, j in itertools.product(range(h), range(wd)):
            y[:, g * k : (g + 1) * k, i * stride[0] : i * stride[0] + kh, j * stride[1] : j * stride[1] + kw] += np.einsum("nc,ckij->nkij", xs[:, :, i, j], ws)
    y = y[:, :, pad[0] : y.shape[2] - pad[0], pad[1] : y.shape[3] - pad[1]]
    return y if b is None else y + b.astype(np.float64)[:, None, None]


CONVOLUTIONS = [
    # shape, outputs, parameters of the text, and of the reference
    ((3, 8, 9), 4, dict(kernel_size=3), dict()),
    ((3, 8, 9), 4, dict(kernel_size=3, pad=1, stride=2), dict(pad=(1, 1), stride=(2, 2))),
    ((4, 9, 7), 6, dict(kernel_size=[3, 2], pad=[2, 1], stride=[1, 3]), dict(pad=(2, 1), stride=(1, 3))),
    ((4, 9, 7), 6, dict(kernel_h=1, kernel_w=4, pad_h=0, pad_w=2, stride_h=2, stride_w=1), dict(pad=(0, 2), stride=(2, 1))),
    ((4, 9, 9), 6, dict(kernel_size=3, group=2, dilation=2, pad=2), dict(group=2, dilation=(2, 2), pad=(2, 2))),
    ((2, 9, 8), 3, dict(kernel_size=2, dilation=[3, 1]), dict(dilation=(3, 1))),
    ((5, 1, 1), 7, dict(kernel_size=1), dict()),
    ((6, 5, 5), 6, dict(kernel_size=3, group=6, pad=1), dict(group=6, pad=(1, 1))),
]


def kernel_of(p):
    k = p.get("kernel_size")
    return (p["kernel_h"], p["kernel_w"]) if k is None else tuple(k) if isinstance(k, list) else (k, k)


@pytest.mark.parametrize("shape, outputs, p, reference", CONVOLUTIONS)
@pytest.mark.parametrize("bias", [None, True, False])
def test_convolution(shape, outputs, p, reference, bias):
    w, b = normal(1, outputs, shape[0] // p.get("group", 1), *kernel_of(p)), normal(2, outputs)
    params = dict(num_output=outputs, **p) if bias is None else dict(num_output=outputs, bias_term=bias, **p)
    check("Convolution", [shape], lambda x: conv(x, w, None if bias is False else b, **reference), blobs=[w] if bias is False else [w, b], convolution_param=params)


@pytest.mark.parametrize("kind", ["ConvolutionDepthwise", "DepthwiseConvolution"])
@pytest.mark.parametrize("outputs", [4, 8])
def test_depthwise(kind, outputs):
    w, b = normal(3, outputs, 1, 3, 3), normal(4, outputs)
    check(kind, [(4, 7, 6)], lambda x: conv(x, w, b, pad=(1, 1), group=4), blobs=[w, b], convolution_param=dict(num_output=outputs, kernel_size=3, pad=1))


@pytest.mark.parametrize("shape, outputs, p, reference", [
    ((3, 4, 5), 4, dict(kernel_size=3), dict()),
    ((4, 4, 5), 2, dict(kernel_size=4, stride=2, pad=1), dict(stride=(2, 2), pad=(1, 1))),
    ((4, 4, 5), 6, dict(kernel_size=[3, 2], stride=[1, 3], pad=[2, 0], group=2), dict(stride=(1, 3), pad=(2, 0), group=2)),
    ((4, 5, 5), 4, dict(kernel_h=4, kernel_w=2, stride_h=2, stride_w=1, group=4), dict(stride=(2, 1), group=4)),
])
@pytest.mark.parametrize("bias", [True, False])
def test_deconvolution(shape, outputs, p, reference, bias):
    w, b = normal(5, shape[0], outputs // p.get("group", 1), *kernel_of(p)), normal(6, outputs)
    check("Deconvolution", [shape], lambda x: deconv(x, w, b if bias else None, **reference), blobs=[w, b] if bias else [w],
          convolution_param=dict(num_output=outputs, bias_term=bias, **p))


def pool(x, kind, k, stride, pad, floor=False):
    """As Caffe's loops have it: windows are clipped, padding is counted, a last window that begins behind input and padding goes."""
    n, c, h, w = x.shape

    def count(size, k, s, p):
        number = (size + 2 * p - k) / s
        out = int(np.floor(number) if floor else np.ceil(number)) + 1
        return out - 1 if p and (out - 1) * s >= size + p else out

    y = np.zeros((n, c, count(h, k[0], stride[0], pad[0]), count(w, k[1], stride[1], pad[1])))
    for i, j in itertools.product(range(y.shape[2]), range(y.shape[3])):
        top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
        bottom, right = min(top + k[0], h + pad[0]), min(left + k[1], w + pad[1])
        size = (bottom - top) * (right - left)
        part = x[:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
        y[:, :, i, j] = part.max((2, 3)) if kind == "MAX" else part.sum((2, 3)) / size
    return y


@pytest.mark.parametrize("kind", ["MAX", "AVE"])
@pytest.mark.parametrize("shape, p, k, stride, pad", [
    ((2, 12, 12), dict(kernel_size=3, stride=2), (3, 3), (2, 2), (0, 0)),  # 6 by rounding up, 5 down
    ((2, 4, 4), dict(kernel_size=2, stride=3, pad=1), (2, 2), (3, 3), (1, 1)),  # 3 by rounding up, 2 by the rule of the last window
    ((3, 7, 6), dict(kernel_size=3, stride=2, pad=1), (3, 3), (2, 2), (1, 1)),
    ((3, 7, 6), dict(kernel_h=3, kernel_w=2, stride_h=1, stride_w=2, pad_h=2, pad_w=1), (3, 2), (1, 2), (2, 1)),  # padding is the window less 1
    ((3, 7, 6), dict(kernel_size=2), (2, 2), (1, 1), (0, 0)),
    ((3, 5, 9), dict(global_pooling=True), (5, 9), (1, 1), (0, 0)),
    ((3, 5, 9), dict(global_pooling=True, pad=1, stride=2), (5, 9), (1, 1), (0, 0)),
    ((2, 8, 8), dict(kernel_size=3, stride=3), (3, 3), (3, 3), (0, 0)),
    ((2, 5, 5), dict(kernel_size=2, stride=4), (2, 2), (4, 4), (0, 0)),
])
@pytest.mark.parametrize("rounding", [{}, {"round_mode": Word("FLOOR")}, {"torch_pooling": True}, {"ceil_mode": False}, {"round_mode": Word("CEIL")}])
def test_pooling(kind, shape, p, k, stride, pad, rounding):
    floor = bool(rounding) and rounding != {"round_mode": "CEIL"}
    check("Pooling", [shape], lambda x: pool(x, kind, k, stride, pad, floor), pooling_param=dict(pool=Word(kind), **p, **rounding))


# ---- products


@pytest.mark.parametrize("shape", [(3, 4, 5), (7, 1, 1), (1, 1, 9)])
@pytest.mark.parametrize("bias, transpose", list(itertools.product([True, False], repeat=2)))
def test_inner_product(shape, bias, transpose):
    size, outputs = int(np.prod(shape)), 6
    w, b = normal(7, outputs, size), normal(8, outputs)
    check("InnerProduct", [shape], lambda x: x.reshape(len(x), -1) @ w.T.astype(float) + (b if bias else 0), blobs=[w.T if transpose else w] + [b] * bias,
          inner_product_param=dict(num_output=outputs, bias_term=bias, **({"transpose": True} if transpose else {})))


@pytest.mark.parametrize("axis", [2, 3, -1])
def test_inner_product_of_the_last_axes(axis):
    shape = (3, 4, 5)
    size = 5 if axis in (3, -1) else 20
    w, b = normal(9, 6, size), normal(10, 6)

    def wanted(x):
        return x.reshape(*x.shape[: 3 if size == 5 else 2], size) @ w.T.astype(float) + b

    check("InnerProduct", [shape], wanted, blobs=[w, b], inner_product_param=dict(num_output=6, axis=axis))


def test_embed():
    w, b = normal(11, 9, 4), normal(12, 4)
    numbers = lambda random, n: [random.integers(0, 9, (n, 5, 1, 1)).astype(f)]
    check("Embed", [], lambda x: w[x.astype(int)] + b, blobs=[w, b], explicit=(True,), arrays=numbers, embed_param=dict(num_output=4, input_dim=9))
    net = Net()
    net.layer("Embed", net.input("x", 5, 1, 1), "y", [w, b], embed_param=dict(num_output=4, input_dim=9))
    assert "kEXPLICIT_BATCH" in refusal(net)


# ---- functions of one number

sigmoid = lambda x: 1 / (1 + np.exp(-x))
UNARY = [
    ("ReLU", {}, lambda x: np.maximum(x, 0)),
    ("ReLU", dict(relu_param=dict(negative_slope=0.25)), lambda x: np.where(x > 0, x, 0.25 * x)),
    ("ReLU6", {}, lambda x: np.clip(x, 0, 6)),
    ("ELU", {}, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    ("ELU", dict(elu_param=dict(alpha=0.5)), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1))),
    ("Sigmoid", {}, sigmoid),
    ("TanH", {}, np.tanh),
    ("AbsVal", {}, np.abs),
    ("BNLL", {}, lambda x: np.log(1 + np.exp(x))),
    ("Clip", dict(clip_param=dict(min=-0.5, max=1.25)), lambda x: np.clip(x, -0.5, 1.25)),
    ("Clip", dict(clip_param=dict(min=-0.5)), lambda x: np.maximum(x, -0.5)),
    ("Clip", dict(clip_param=dict(max=0.5)), lambda x: np.minimum(x, 0.5)),
    ("Swish", {}, lambda x: x * sigmoid(x)),
    ("Swish", dict(swish_param=dict(beta=2.0)), lambda x: x * sigmoid(2 * x)),
    ("Power", {}, lambda x: x),
    ("Power", dict(power_param=dict(power=2.0, scale=0.5, shift=-1.0)), lambda x: (0.5 * x - 1) ** 2),
    ("Power", dict(power_param=dict(scale=-3.0)), lambda x: -3 * x),
    ("Power", dict(power_param=dict(power=0.5, scale=0.5, shift=2.0)), lambda x: np.sqrt(0.5 * x + 2)),
    ("Exp", {}, np.exp),
    ("Exp", dict(exp_param=dict(base=2.0, scale=0.5, shift=1.0)), lambda x: 2 ** (0.5 * x + 1)),
    ("Log", dict(log_param=dict(shift=3.0)), lambda x: np.log(x + 3)),
    ("Log", dict(log_param=dict(base=10.0, scale=2.0, shift=5.0)), lambda x: np.log10(2 * x + 5)),
    ("Threshold", {}, lambda x: (x > 0).astype(float)),
    ("Threshold", dict(threshold_param=dict(threshold=0.75)), lambda x: (x > 0.75).astype(float)),
]


@pytest.mark.parametrize("kind, params, wanted", UNARY)
@pytest.mark.parametrize("shape", [(3, 5, 4), (1, 1, 1)])
def test_unary(kind, params, wanted, shape):
    check(kind, [shape], wanted, low=-8 if kind in ("ReLU6",) else -2, high=8 if kind in ("ReLU6",) else 2, **params)


def test_dropout():
    """Nothing is added: the top is the bottom's tensor."""
    net = Net()
    x = net.layer("ReLU", net.input("x", 2, 3, 4), "r")
    net.layer("Dropout", x, "y", dropout_param=dict(dropout_ratio=0.5))
    _, network, _ = network_of(net, ["y"])
    assert network.num_layers == 1 and network.get_output(0).name == "y"


@pytest.mark.parametrize("shape", [(5, 3, 4), (5, 1, 1)])
@pytest.mark.parametrize("shared", [False, True])
def test_prelu(shape, shared):
    w = normal(13, *(() if shared else (5,)))
    slopes = w if shared else w[:, None, None]
    check("PReLU", [shape], lambda x: np.where(x > 0, x, x * slopes), blobs=[np.atleast_1d(w)], prelu_param=dict(channel_shared=shared))


# ---- normalization


@pytest.mark.parametrize("factor, eps", [(1.0, None), (999.98, None), (0.5, 1e-3)])
def test_batch_norm(factor, eps):
    mean, var = normal(14, 4), np.abs(normal(15, 4)) + f(0.1)
    e = 1e-5 if eps is None else eps
    wanted = lambda x: (x - (mean / f(factor))[:, None, None]) / np.sqrt((var / f(factor)).astype(float)[:, None, None] + e)
    check("BatchNorm", [(4, 3, 5)], wanted, blobs=[mean, var, np.array([factor], f)], batch_norm_param={} if eps is None else dict(eps=eps), tolerance=1e-4)
    # NVIDIA's Caffe: five blobs, of which the factor says nothing.
    gamma, beta = normal(16, 4), normal(17, 4)
    wanted = lambda x: (x - mean[:, None, None]) / np.sqrt(var.astype(float)[:, None, None] + e) * gamma[:, None, None] + beta[:, None, None]
    check("BatchNorm", [(4, 3, 5)], wanted, blobs=[mean, var, np.array([factor], f), gamma, beta], batch_norm_param=dict(scale_bias=True, eps=e), tolerance=1e-4)


def test_batch_norm_and_scale_in_place():
    mean, var, gamma, beta = normal(18, 4), np.abs(normal(19, 4)) + f(0.1), normal(20, 4), normal(21, 4)
    w = normal(22, 4, 2, 3, 3)
    for explicit in (False, True):
        net, n = Net(), 1 if explicit else 2
        net.layer("Convolution", net.input("data", 2, 6, 6), "conv", [w], convolution_param=dict(num_output=4, kernel_size=3, bias_term=False))
        net.layer("BatchNorm", "conv", "conv", [mean, var, np.ones(1, f)], param=[dict(lr_mult=0)] * 3)
        net.layer("Scale", "conv", "conv", [gamma, beta], scale_param=dict(bias_term=True))
        net.layer("ReLU", "conv", "conv")
        x = normal(23, n, 2, 6, 6, scale=1)
        got = run_plan(plan_of(net, ["conv"], explicit=explicit, batch=n), {"data": x}, explicit)["conv"]
        y = (conv(x, w) - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5) * gamma[:, None, None] + beta[:, None, None]
        flat_close(got, np.maximum(y, 0), 2e-5)


@pytest.mark.parametrize("bias", [True, False, None])
def test_scale(bias):
    w, b = normal(24, 4), normal(25, 4)
    wanted = lambda x: x * w[:, None, None] + (0 if bias is False else b[:, None, None])
    # Without bias_term a second array is a bias all the same.
    check("Scale", [(4, 3, 5)], wanted, blobs=[w] if bias is False else [w, b], scale_param={} if bias is None else dict(bias_term=bias))


@pytest.mark.parametrize("axis, axes, shape", [(1, 3, (4, 3, 5)), (1, -1, (4, 3, 5)), (1, 2, (4, 3, 1)), (2, 1, (1, 3, 1)), (-1, 1, (1, 1, 5)), (2, 2, (1, 3, 5)), (1, 0, (1, 1, 1))])
@pytest.mark.parametrize("kind", ["Scale", "Bias"])
def test_scale_of_axes(kind, axis, axes, shape):
    used = 3 if axes < 0 else axes
    first = axis - 1 if axis > 0 else 2
    blob_shape = [(4, 3, 5)[i] for i in range(first, first + used)] or [1]
    w, b = normal(26, *blob_shape), normal(27, *blob_shape)
    if kind == "Scale":
        check(kind, [(4, 3, 5)], lambda x: x * w.reshape(shape) + b.reshape(shape), blobs=[w, b], scale_param=dict(axis=axis, num_axes=axes, bias_term=True))
    else:
        check(kind, [(4, 3, 5)], lambda x: x + b.reshape(shape), blobs=[b], bias_param=dict(axis=axis, num_axes=axes))


@pytest.mark.parametrize("kind, op, param", [("Scale", np.multiply, "scale_param"), ("Bias", np.add, "bias_param")])
def test_scale_by_a_bottom(kind, op, param):
    """Gates of squeeze and excitation: [n, c, 1, 1] and the result of a fully connected layer."""
    check(kind, [(4, 3, 5), (4, 1, 1)], op, **{param: dict(axis=0)})
    check(kind, [(4, 3, 5), (4, 3, 5)], op, **{param: dict(axis=0)})
    w = normal(28, 4, 60)
    for explicit in (False, True):
        net, n = Net(), 1 if explicit else 2
        gate = net.layer("InnerProduct", net.input("x", 4, 3, 5), "gate", [w], inner_product_param=dict(num_output=4, bias_term=False))
        net.layer(kind, ["x", gate], "y", **{param: dict(axis=0)})
        x = normal(29, n, 4, 3, 5, scale=1)
        got = run_plan(plan_of(net, ["y"], explicit=explicit, batch=n), {"x": x}, explicit)["y"]
        flat_close(got, op(x, (x.reshape(n, -1) @ w.T)[:, :, None, None]), 5e-5)


@pytest.mark.parametrize("size, alpha, beta, k", [(5, 1e-4, 0.75, None), (3, 2.0, 0.5, 2.0), (1, 1.0, None, None), (9, 0.7, 1.0, 1.5)])
@pytest.mark.parametrize("within", [False, True])
def test_lrn(size, alpha, beta, k, within):
    params = dict(local_size=size, alpha=alpha)
    if beta is not None:
        params["beta"] = beta
    if k is not None and not within:
        params["k"] = k
    if within:
        params["norm_region"] = Word("WITHIN_CHANNEL")
    beta, k = 0.75 if beta is None else beta, 1 if k is None else k

    def wanted(x):
        if within:
            return x * (1 + alpha * pool(x * x, "AVE", (size, size), (1, 1), (size // 2, size // 2))) ** -beta
        padded = np.pad(x * x, ((0, 0), (size // 2, size // 2), (0, 0), (0, 0)))
        sums = sum(padded[:, i : i + x.shape[1]] for i in range(size))
        return x / (k + alpha / size * sums) ** beta

    check("LRN", [(7, 10, 11)], wanted, lrn_param=params)


@pytest.mark.parametrize("variance, across", list(itertools.product([True, False], repeat=2)))
def test_mvn(variance, across):
    axes = (1, 2, 3) if across else (2, 3)

    def wanted(x):
        y = x - x.mean(axes, keepdims=True)
        return y / (np.sqrt((y * y).mean(axes, keepdims=True)) + 1e-9) if variance else y

    check("MVN", [(3, 6, 7)], wanted, mvn_param=dict(normalize_variance=variance, across_channels=across))


@pytest.mark.parametrize("spatial, shared", list(itertools.product([True, False], repeat=2)))
def test_normalize(spatial, shared):
    w = normal(30, *(() if shared else (5,))) + f(1)

    def wanted(x):
        y = x / np.sqrt((x * x).sum((1, 2, 3) if spatial else 1, keepdims=True) + 1e-10)
        return y * (w if shared else w[:, None, None])

    check("Normalize", [(5, 4, 6)], wanted, blobs=[np.atleast_1d(w)], norm_param=dict(across_spatial=spatial, channel_shared=shared))


# ---- arithmetic of several


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("operation, wanted", [(None, lambda *x: sum(x)), ("SUM", lambda *x: sum(x)), ("PROD", lambda *x: np.prod(x, 0)), ("MAX", lambda *x: np.max(x, 0))])
def test_eltwise(count, operation, wanted):
    check("Eltwise", [(3, 4, 5)] * count, wanted, eltwise_param={} if operation is None else dict(operation=Word(operation)))


@pytest.mark.parametrize("coefficients", [[1.0, -1.0], [0.5, 2.0], [-1.0, 1.0, -1.0], [0.0, 3.0]])
def test_eltwise_coefficients(coefficients):
    check("Eltwise", [(3, 4, 5)] * len(coefficients), lambda *x: sum(c * v for c, v in zip(coefficients, x)), eltwise_param=dict(coeff=coefficients))


def test_axpy():
    check("Axpy", [(4, 1, 1), (4, 3, 5), (4, 3, 5)], lambda a, x, y: a * x + y)


@pytest.mark.parametrize("operation, wanted", [
    ("SUM", np.sum), ("MEAN", np.mean), ("ASUM", lambda x, axis: np.abs(x).sum(axis)), ("SUMSQ", lambda x, axis: (x * x).sum(axis)),
])
@pytest.mark.parametrize("axis, coeff", [(1, None), (2, 0.5), (3, None), (-1, 2.0), (-3, None)])
def test_reduction(operation, wanted, axis, coeff):
    axes = tuple(range(axis % 4, 4))
    params = dict(operation=Word(operation), axis=axis, **({} if coeff is None else dict(coeff=coeff)))
    check("Reduction", [(3, 4, 5)], lambda x: (1 if coeff is None else coeff) * wanted(x, axis=axes), reduction_param=params)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [None, 1, 2, 3, -1, -3])
def test_softmax(axis):
    check("Softmax", [(5, 4, 3)], lambda x: softmax(x, 1 if axis is None else axis), softmax_param={} if axis is None else dict(axis=axis))


def test_softmax_with_loss():
    net = Net()
    net.layer("SoftmaxWithLoss", [net.input("x", 5, 1, 1), "label"], "y")
    x = normal(31, 2, 5, 1, 1, scale=1)
    flat_close(run_plan(plan_of(net, ["y"], batch=2), {"x": x}, False)["y"], softmax(x.astype(float), 1), 1e-6)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("axis", [None, 1, 2, -1])
def test_arg_max(k, values, axis):
    def wanted(x):
        v = x.reshape(len(x), -1) if axis is None else x
        at = np.argsort(-v, 1 if axis is None else axis, "stable").take(range(k), 1 if axis is None else axis)
        best = np.take_along_axis(v, at, 1 if axis is None else axis)
        return np.stack([at, best] if values else [at], 1) if axis is None else best if values else at

    check("ArgMax", [(4, 5, 6)], wanted, argmax_param=dict(top_k=k, out_max_val=values, **({} if axis is None else dict(axis=axis))))


# ---- layers that move elements


@pytest.mark.parametrize("axis, params", [(1, {}), (1, dict(axis=1)), (2, dict(axis=2)), (3, dict(axis=-1)), (1, dict(concat_dim=1)), (2, dict(concat_dim=2))])
def test_concat(axis, params):
    shapes = [[3, 4, 5] for _ in range(3)]
    for i, s in enumerate(shapes):
        s[axis - 1] += i
    check("Concat", shapes, lambda *x: np.concatenate(x, axis), concat_param=params)
    check("Concat", [(2, 3, 4)], lambda x: x, concat_param=params)


@pytest.mark.parametrize("axis, points, tops", [(1, None, 3), (1, [2, 3], 3), (2, [1], 2), (3, None, 5), (-1, [4], 2), (1, None, 1)])
def test_slice(axis, points, tops):
    shape = (6, 4, 5)
    if tops == 1:
        net = Net()
        net.layer("Slice", net.layer("ReLU", net.input("x", *shape), "r"), ["y"], slice_param=dict(axis=axis))
        x = normal(32, 2, *shape)
        return flat_close(run_plan(plan_of(net, ["y"], batch=2), {"x": x}, False)["y"], np.maximum(x, 0), 1e-6)
    params = dict(axis=axis, **({} if points is None else dict(slice_point=points)))
    check("Slice", [shape], lambda x: np.split(x, tops if points is None else points, axis), tops=tops, slice_param=params)


def test_split_and_silence():
    for explicit in (False, True):
        net, n = Net(), 1 if explicit else 2
        net.layer("Split", net.layer("TanH", net.input("x", 2, 3, 4), "t"), ["a", "b", "c"])
        net.layer("Silence", "c", [])
        net.layer("Eltwise", ["a", "b"], "y")
        x = normal(33, n, 2, 3, 4)
        flat_close(run_plan(plan_of(net, ["y"], explicit=explicit, batch=n), {"x": x}, explicit)["y"], 2 * np.tanh(x), 1e-5)


@pytest.mark.parametrize("axis, offsets, shape", [
    (None, [], (3, 4, 5)), (2, [1, 2], (3, 4, 5)), (2, [1], (3, 4, 5)), (3, [3], (3, 7, 4)), (-1, [2], (3, 7, 5)), (1, [1, 0, 2], (2, 4, 5)), (-2, [2, 1], (3, 4, 5)),
])
def test_crop(axis, offsets, shape):
    axis_of = 2 if axis is None else axis % 4
    full = [0] * axis_of + (offsets * (4 - axis_of) if len(offsets) == 1 else offsets or [0] * (4 - axis_of))

    def wanted(x, reference):
        return x[tuple(slice(o, o + s) if i >= axis_of else slice(None) for i, (o, s) in enumerate(zip(full, reference.shape)))]

    params = dict(**({} if axis is None else dict(axis=axis)), **({"offset": offsets} if offsets else {}))
    # The second bottom says sizes alone; it is used so that it stays an input.
    for explicit in (False, True):
        net, n = Net(), 1 if explicit else 2
        random = np.random.default_rng(34)
        arrays = {"x": random.standard_normal((n, 3, 7, 8)).astype(f), "size": random.standard_normal((n, *shape)).astype(f)}
        for name, a in arrays.items():
            net.input(name, *a.shape[1:])
        net.layer("Crop", ["x", "size"], "c", crop_param=params)
        net.layer("Eltwise", ["c", "size"], "y")
        got = run_plan(plan_of(net, ["c", "y"], explicit=explicit, batch=n), arrays, explicit)
        flat_close(got["c"], wanted(arrays["x"], arrays["size"]), 1e-7)
        flat_close(got["y"], wanted(arrays["x"], arrays["size"]) + arrays["size"], 1e-6)


@pytest.mark.parametrize("params, shape", [
    (dict(shape=dict(dim=[0, -1])), (24,)), (dict(shape=dict(dim=[0, 0, -1])), (2, 12)), (dict(shape=dict(dim=[0, 4, 3, 2])), (4, 3, 2)),
    (dict(shape=dict(dim=[0, 0, 2, -1])), (2, 2, 6)), (dict(shape=dict(dim=[6, -1]), axis=1), (6, 4)), (dict(shape=dict(dim=[-1]), axis=1), (24,)),
    (dict(shape=dict(dim=[6]), axis=1, num_axes=2), (6, 4)), (dict(shape=dict(dim=[2, 2]), axis=-2), (2, 3, 2, 2)), (dict(shape=dict(dim=[1, 2]), axis=1, num_axes=1), (1, 2, 3, 4)),
    (dict(shape=dict(dim=[1]), axis=1, num_axes=0), (1, 2, 3, 4)), (dict(shape=dict(dim=[0, -1, 1, 1])), (24, 1, 1)),
    (dict(shape=dict(dim=[2, 6]), axis=-3), None), (dict(shape=dict(dim=[1, -1, 3])), (8, 3)),
])
def test_reshape(params, shape):
    if shape is None:  # -3: the places behind the second dimension
        shape = (2, 2, 6)
    check("Reshape", [(2, 3, 4)], lambda x: x.reshape(len(x), *shape), reshape_param=params)


@pytest.mark.parametrize("params, shape", [({}, (24,)), (dict(axis=1), (24,)), (dict(axis=2), (2, 12)), (dict(axis=1, end_axis=2), (6, 4)), (dict(axis=-2), (2, 12)), (dict(axis=3), (2, 3, 4))])
def test_flatten(params, shape):
    check("Flatten", [(2, 3, 4)], lambda x: x.reshape(len(x), *shape), flatten_param=params)


@pytest.mark.parametrize("order", [[0, 2, 3, 1], [0, 3, 1, 2], [0, 2], [0], [0, 1, 3, 2], [0, 3]])
def test_permute(order):
    whole = order + [i for i in range(4) if i not in order]
    check("Permute", [(2, 3, 4)], lambda x: x.transpose(whole), permute_param=dict(order=order))


@pytest.mark.parametrize("axis, tiles", [(None, 2), (2, 3), (3, 1), (-1, 4)])
def test_tile(axis, tiles):
    counts = [1] * 4
    counts[1 if axis is None else axis] = tiles
    check("Tile", [(2, 3, 4)], lambda x: np.tile(x, counts), tile_param=dict(tiles=tiles, **({} if axis is None else dict(axis=axis))))


@pytest.mark.parametrize("group", [1, 2, 3])
def test_shuffle_channel(group):
    wanted = lambda x: x.reshape(len(x), group, 6 // group, 4, 5).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    check("ShuffleChannel", [(6, 4, 5)], wanted, shuffle_channel_param=dict(group=group))


@pytest.mark.parametrize("params, size", [(dict(height=9, width=5), (9, 5)), (dict(zoom_factor=2), (7, 9)), (dict(shrink_factor=2), (2, 3)), (dict(shrink_factor=2, zoom_factor=3), (4, 7)), (dict(height=1, width=1), (1, 1))])
def test_interp(params, size):
    def wanted(x):
        def at(n, m):
            places = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0)
            low = np.minimum(places.astype(int), n - 1)
            return low, np.minimum(low + 1, n - 1), places - low

        (t, b, u), (l, r, v) = at(x.shape[2], size[0]), at(x.shape[3], size[1])
        u, v = u[:, None], v
        rows = lambda i, j: x[:, :, i][:, :, :, j]
        return (rows(t, l) * (1 - v) + rows(t, r) * v) * (1 - u) + (rows(b, l) * (1 - v) + rows(b, r) * v) * u

    check("Interp", [(3, 4, 5)], wanted, interp_param=params)


@pytest.mark.parametrize("params, scale", [(dict(scale=2), (2, 2)), ({}, (2, 2)), (dict(scale_h=3, scale_w=1), (3, 1)), (dict(upsample_h=8, upsample_w=15), (2, 3))])
def test_upsample(params, scale):
    check("Upsample", [(3, 4, 5)], lambda x: x.repeat(scale[0], 2).repeat(scale[1], 3), upsample_param=params)


# ---- ranks: layers behind fully connected ones, reductions and flattening


@pytest.mark.parametrize("explicit", [False, True])
def test_layers_behind_flat_ones(explicit):
    """[n, k] of Caffe is [n, k, 1, 1] here; axes count as Caffe's do."""
    n = 1 if explicit else 3
    w, gamma, beta, mean, var, slopes = normal(35, 6, 24), normal(36, 6), normal(37, 6), normal(38, 6), np.abs(normal(39, 6)) + f(0.2), normal(40, 6)
    second = normal(41, 4, 6)
    net = Net()
    x = net.input("x", 2, 3, 4)
    net.layer("Flatten", x, "flat")
    net.layer("InnerProduct", "flat", "fc", [w], inner_product_param=dict(num_output=6, bias_term=False))
    net.layer("BatchNorm", "fc", "fc", [mean, var, np.ones(1, f)])
    net.layer("Scale", "fc", "fc", [gamma, beta], scale_param=dict(bias_term=True))
    net.layer("PReLU", "fc", "fc", [slopes])
    net.layer("Softmax", "fc", "last", softmax_param=dict(axis=-1))
    net.layer("Concat", ["fc", "flat"], "joined")
    net.layer("Slice", "fc", ["left", "right"], slice_param=dict(axis=1, slice_point=[2]))
    net.layer("InnerProduct", "fc", "out", [second], inner_product_param=dict(num_output=4, bias_term=False))
    net.layer("Reshape", "fc", "table", reshape_param=dict(shape=dict(dim=[0, 2, -1])))
    net.layer("Softmax", "table", "rows", softmax_param=dict(axis=2))
    net.layer("Softmax", "table", "columns")
    net.layer("Power", "table", "cubes", power_param=dict(power=3.0, scale=0.5))
    net.layer("Scale", "table", "scaled", [gamma[:2], beta[:2]], scale_param=dict(bias_term=True))
    net.layer("BatchNorm", "table", "normed", [mean[:2], var[:2], np.ones(1, f)])
    net.layer("Reduction", "table", "sums", reduction_param=dict(axis=-1))
    net.layer("Permute", "table", "turned", permute_param=dict(order=[0, 2, 1]))
    net.layer("ArgMax", "fc", "best")
    outputs = ["fc", "last", "joined", "left", "right", "out", "rows", "columns", "cubes", "scaled", "normed", "sums", "turned", "best"]
    array = normal(42, n, 2, 3, 4, scale=1)
    got = run_plan(plan_of(net, outputs, explicit=explicit, batch=n), {"x": array}, explicit)
    flat = array.reshape(n, -1).astype(float)
    fc = (flat @ w.T - mean) / np.sqrt(var + 1e-5) * gamma + beta
    fc = np.where(fc > 0, fc, fc * slopes)
    table = fc.reshape(n, 2, 3)
    wanted = dict(fc=fc, last=softmax(fc, 1), joined=np.concatenate([fc, flat], 1), left=fc[:, :2], right=fc[:, 2:], out=fc @ second.T, rows=softmax(table, 2), columns=softmax(table, 1),
                  cubes=(table / 2) ** 3, scaled=table * gamma[:2, None] + beta[:2, None], normed=(table - mean[:2, None]) / np.sqrt(var[:2, None] + 1e-5),
                  sums=table.sum(2), turned=table.transpose(0, 2, 1), best=fc.argmax(1)[:, None])
    for name in outputs:
        flat_close(got[name], wanted[name], 1e-4, name)


def test_an_explicit_batch_may_become_open():
    """The batch of 1 is the input's alone: layers copy it, and a client may make it a wildcard."""
    w = normal(43, 4, 2, 3, 3)
    net = Net()
    net.layer("Convolution", net.input("x", 2, 6, 6), "c", [w], convolution_param=dict(num_output=4, kernel_size=3, bias_term=False))
    net.layer("Flatten", "c", "f")
    net.layer("InnerProduct", "f", "i", [normal(44, 6, 64)], inner_product_param=dict(num_output=6, bias_term=False))
    net.layer("Reshape", "i", "r", reshape_param=dict(shape=dict(dim=[0, 3, 2])))
    net.layer("Permute", "r", "p", permute_param=dict(order=[0, 2, 1]))
    net.layer("ShuffleChannel", "c", "s", shuffle_channel_param=dict(group=2))
    net.layer("Slice", "c", ["s1", "s2"], slice_param=dict(slice_point=1))
    net.layer("Tile", "s2", "t", tile_param=dict(axis=2, tiles=2))
    net.layer("Upsample", "s2", "u")
    net.layer("Interp", "s2", "v", interp_param=dict(height=7, width=4))
    net.layer("Crop", ["c", "s2"], "w", crop_param=dict(axis=1, offset=[1, 0, 0]))
    net.layer("Crop", ["u", "w"], "k", crop_param=dict(offset=1))
    net.layer("Reshape", "c", "one", reshape_param=dict(shape=dict(dim=[1, -1, 8])))
    net.layer("ArgMax", "c", "a")
    net.layer("Scale", ["c", "s1"], "g", scale_param=dict(axis=0))
    builder, network, _parser = network_of(net, ["p", "s", "s1", "t", "u", "v", "w", "k", "one", "a", "g"], explicit=True)
    network.get_input(0).shape = (-1, 2, 6, 6)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, 2, 6, 6), (2, 2, 6, 6), (5, 2, 6, 6))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    from small import run

    x = normal(45, 4, 2, 6, 6, scale=1)
    got = run(engine, x=x)
    c = conv(x, w)
    flat_close(got["p"], (c.reshape(4, -1) @ normal(44, 6, 64).T).reshape(4, 3, 2).transpose(0, 2, 1), 5e-5)
    flat_close(got["s"], c.reshape(4, 2, 2, 4, 4).transpose(0, 2, 1, 3, 4).reshape(c.shape), 5e-5)
    u = c[:, 1:].repeat(2, 2).repeat(2, 3)
    for name, wanted in dict(s1=c[:, :1], t=np.tile(c[:, 1:], (1, 1, 2, 1)), u=u, w=c[:, 1:], k=u[:, :, 1:5, 1:5], one=c.reshape(4, 8, 8), a=c.reshape(4, -1).argmax(1)[:, None],
                             g=c * c[:, :1]).items():
        flat_close(got[name], wanted, 5e-5, name)
    flat_close(got["v"][:, :, ::2], c[:, 1:], 5e-5)  # every other row is one of the input's


# ---- files


@pytest.mark.parametrize("form", ["float", "old", "unpacked", "double", "raw_double", "raw_float", "raw_half"])
def test_forms_of_arrays(form):
    w, b = (normal(46, 4, 2, 3, 3).astype(np.float16).astype(f), normal(47, 4).astype(np.float16).astype(f))
    net = Net(form=form)
    net.layer("Convolution", net.input("x", 2, 6, 6), "y", [w, b], convolution_param=dict(num_output=4, kernel_size=3))
    x = normal(48, 2, 2, 6, 6, scale=1)
    flat_close(run_plan(plan_of(net, ["y"], batch=2), {"x": x}, False)["y"], conv(x, w, b), 2e-5)


def test_half_weights():
    w, b, slopes = normal(49, 4, 2, 3, 3), normal(50, 4), normal(51, 4)
    net = Net()
    net.layer("Convolution", net.input("x", 2, 6, 6), "c", [w, b], convolution_param=dict(num_output=4, kernel_size=3))
    net.layer("PReLU", "c", "y", [slopes])
    _, network, _ = network_of(net, ["y"], dtype=trt.float16)
    assert layer_of(network, 0, trt.IConvolutionLayer).kernel.dtype == np.float16
    assert layer_of(network, 1, trt.IConstantLayer).weights.dtype == np.float32
    x = normal(52, 2, 2, 6, 6, scale=1)
    h = lambda a: a.astype(np.float16).astype(float)
    c = conv(x, h(w), h(b))
    flat_close(run_plan(plan_of(net, ["y"], batch=2, dtype=trt.float16), {"x": x}, False)["y"], np.where(c > 0, c, c * slopes[:, None, None]), 2e-5)


@pytest.mark.parametrize("with_inputs", [True, False])
def test_the_form_until_2015(with_inputs):
    """`layers` with types in capitals, in the text and in the model."""
    w, b, w2 = normal(53, 4, 2, 3, 3), normal(54, 4), normal(55, 5, 16)
    net = Net(form="old", v1=True)
    net.text += 'name: "old" input: "x" input_dim: 1 input_dim: 2 input_dim: 6 input_dim: 6\n'
    net.layer("CONVOLUTION", "x", "c", [w, b], name="conv", convolution_param=dict(num_output=4, kernel_size=3), blobs_lr=[1, 2], weight_decay=[1, 0])
    net.layer("RELU", "c", "c", name="relu")
    net.layer("POOLING", "c", "p", name="pool", pooling_param=dict(pool=Word("MAX"), kernel_size=2, stride=2))
    net.layer("DROPOUT", "p", "p", name="drop", dropout_param=dict(dropout_ratio=0.5))
    net.layer("INNER_PRODUCT", "p", "i", [w2, np.zeros(5, f)], name="ip", inner_product_param=dict(num_output=5))
    net.layer("SOFTMAX", "i", "y", name="prob")
    x = normal(56, 2, 2, 6, 6, scale=1)
    got = run_plan(plan_of(net, ["y"], batch=2), {"x": x}, False)["y"]
    p = pool(np.maximum(conv(x, w, b), 0), "MAX", (2, 2), (2, 2), (0, 0))
    flat_close(got, softmax(p.reshape(2, -1) @ w2.T, 1), 2e-5)


def layer_of(network, index, kind):
    layer = network.get_layer(index)
    layer.__class__ = kind
    return layer


RANDOM = [  # kind, parameters, blobs: (deviation or None, range)
    ("Convolution", trt.IConvolutionLayer, dict(convolution_param=dict(num_output=32, kernel_size=3, group=2)), lambda l: (l.kernel, l.bias), [("normal", (9 * np.sqrt(16 / 2 * 32)) ** -0.5), ("uniform", -0.01, 0.01)]),
    ("Deconvolution", trt.IDeconvolutionLayer, dict(convolution_param=dict(num_output=32, kernel_size=3, group=2)), lambda l: (l.kernel, l.bias), [("normal", (9 * np.sqrt(16 * 32)) ** -0.5), ("uniform", -0.01, 0.01)]),
    ("InnerProduct", trt.IFullyConnectedLayer, dict(inner_product_param=dict(num_output=32)), lambda l: (l.kernel, l.bias), [("normal", (16 * 36 * 32) ** -0.5), ("uniform", -0.01, 0.01)]),
    ("Scale", trt.IScaleLayer, {}, lambda l: (l.scale,), [("uniform", 0.9, 1.1)]),
]


@pytest.mark.parametrize("kind, cls, params, arrays, wanted", RANDOM)
def test_random_weights(kind, cls, params, arrays, wanted):
    """Without a model: numbers of the distribution that the layer has, the same in each parse."""
    net = Net()
    net.layer(kind, net.input("x", 16, 6, 6), "y", **params)
    layers = [network_of(net, ["y"], random=True) for _ in range(2)]
    for got, again, rule in zip(*(arrays(layer_of(network, 0, cls)) for _, network, _ in layers), wanted):
        got, again = np.array(got), np.array(again)
        assert got.size > 8 and (got == again).all()
        if rule[0] == "normal":
            assert abs(got.mean()) < 4 * rule[1] / np.sqrt(got.size) and abs(got.std() / rule[1] - 1) < 0.1
        else:
            assert rule[1] <= got.min() < got.max() <= rule[2] and got.max() - got.min() > 0.5 * (rule[2] - rule[1])


def test_a_network_of_all_layers_with_random_weights():
    net = Net()
    x = net.input("x", 8, 6, 6)
    net.layer("Convolution", x, "a", convolution_param=dict(num_output=8, kernel_size=3, pad=1))
    net.layer("BatchNorm", "a", "b")
    net.layer("Scale", "b", "c", scale_param=dict(bias_term=True))
    net.layer("PReLU", "c", "d")
    net.layer("Normalize", "d", "e", norm_param=dict(across_spatial=False, channel_shared=False))
    net.layer("Bias", "e", "f")
    net.layer("InnerProduct", "f", "g", inner_product_param=dict(num_output=10))
    net.layer("Softmax", "g", "y")
    got = run_plan(plan_of(net, ["y"], random=True, batch=2), {"x": normal(57, 2, 8, 6, 6)}, False)["y"]
    assert np.isfinite(got).all() and np.abs(got.sum(1) - 1).max() < 1e-5 and got.std() > 0


# ---- refusals


@pytest.mark.parametrize("kind, params, words", [
    ("Convolution", dict(convolution_param=dict(num_output=3)), "kernel_size is 0 (allowed: 1.."),
    ("Convolution", dict(convolution_param=dict(kernel_size=1)), "num_output is 0"),
    ("Convolution", dict(convolution_param=dict(num_output=3, kernel_size=1, group=4)), "group 4 does not divide the 2 input and 3 output channels"),
    ("Convolution", dict(convolution_param=dict(num_output=3, kernel_size=9)), "it:"),
    ("Deconvolution", dict(convolution_param=dict(num_output=3, kernel_size=2, dilation=2)), "dilation is 2 x 2"),
    ("Pooling", dict(pooling_param=dict(pool=Word("STOCHASTIC"), kernel_size=2)), "pool is STOCHASTIC"),
    ("Pooling", dict(pooling_param=dict(kernel_size=0)), "kernel_size is 0"),
    ("Pooling", dict(pooling_param=dict(kernel_size=2, pad=2)), "pad 2 x 2 must be smaller than the window 2 x 2"),
    ("Pooling", dict(pooling_param=dict(kernel_size=2, stride=0)), "stride is 0"),
    ("InnerProduct", dict(inner_product_param=dict(num_output=2, axis=0)), "axis 0 is the batch"),
    ("InnerProduct", dict(inner_product_param=dict(num_output=2, axis=7)), "axis 7 is out of range"),
    ("LRN", dict(lrn_param=dict(local_size=4)), "local_size is 4; it must be odd"),
    ("Softmax", dict(softmax_param=dict(axis=0)), "axis 0 is the batch"),
    ("Concat", dict(concat_param=dict(axis=0)), "kEXPLICIT_BATCH"),
    ("Reduction", {}, "axis 0 is the batch"),
    ("Reshape", dict(reshape_param=dict(shape=dict(dim=[2, 36]))), "the first dim must be 0"),
    ("Reshape", dict(reshape_param=dict(shape=dict(dim=[0, 7, -1]))), "the elements of shape [2, 6, 6] do not fill [7, -1]"),
    ("Reshape", dict(reshape_param=dict(shape=dict(dim=[0, 9, 9]))), "the elements of shape [2, 6, 6] do not fill [9, 9]"),
    ("Reshape", {}, "the first dim must be 0"),
    ("Permute", dict(permute_param=dict(order=[1, 0])), "order must begin with 0"),
    ("Permute", dict(permute_param=dict(order=[0, 2, 2])), "order [0, 2, 2]"),
    ("Flatten", dict(flatten_param=dict(axis=2, end_axis=1)), "axis 2 is behind end_axis 1"),
    ("Slice", dict(slice_param=dict(slice_point=[3])), "slice points [3]"),
    ("Tile", dict(tile_param=dict(axis=1)), "tiles is 0"),
    ("Log", dict(log_param=dict(base=1.0)), "base is 1"),
    ("ShuffleChannel", dict(shuffle_channel_param=dict(group=4)), "group 4"),
    ("Interp", dict(interp_param=dict(pad_beg=1)), "pad_beg"),
    ("Upsample", dict(upsample_param=dict(scale=0)), "its output would be 0 x 0"),
    ("Eltwise", {}, "expected 2 bottom blobs, found 1"),
    ("ArgMax", dict(argmax_param=dict(top_k=0)), "top_k is 0"),
    ("LSTM", {}, "recurrent layers are not imported"),
    ("RNN", {}, "recurrent layers are not imported"),
    ("Python", {}, "could not parse layer type Python"),
])
def test_refusals(kind, params, words):
    net = Net()
    net.layer(kind, net.input("x", 2, 6, 6), "y", name="it", **params)
    assert words in refusal(net, random=True), refusal(net, random=True)


@pytest.mark.parametrize("kind, bottoms, tops, words", [
    ("ReLU", 2, 1, "it: expected 1 bottom blobs, found 2"), ("ReLU", 1, 2, "it: expected 1 tops blobs, found 2"), ("Eltwise", 2, 2, "expected 1 tops blobs, found 2"),
    ("PriorBox", 1, 1, "expected 2 bottom blobs, found 1"), ("DetectionOutput", 2, 1, "expected 3 bottom blobs, found 2"), ("RPROI", 3, 2, "expected 4 bottom blobs, found 3"),
    ("Crop", 1, 1, "expected 2 bottom blobs, found 1"), ("Upsample", 2, 1, "a mask of a pooling layer"), ("Axpy", 2, 1, "expected 3 bottom blobs"),
])
def test_counts(kind, bottoms, tops, words):
    net = Net()
    names = [net.input(f"x{i}", 2, 6, 6) for i in range(bottoms)]
    net.layer(kind, names, [f"y{i}" for i in range(tops)], name="it")
    assert words in refusal(net), refusal(net)


def test_explicit_axis_0():
    """With an explicit batch axis 0 can be reduced and softened: it has one element."""
    check("Reduction", [(3, 4, 5)], lambda x: x.sum().reshape(1), explicit=(True,))
    check("Softmax", [(3, 4, 5)], lambda x: np.ones_like(x), explicit=(True,), softmax_param=dict(axis=0))
    check("Concat", [(3, 4, 5)] * 2, lambda a, b: np.concatenate([a, b], 0), explicit=(True,), concat_param=dict(axis=0))
