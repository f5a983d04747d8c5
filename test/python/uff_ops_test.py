# SPDX-License-Identifier: Apache-2.0
"""Each operation of UFF files against TensorFlow's rules in NumPy: images with channels last and first, random sizes."""

import numpy as np
import pytest
import tensorrt as trt

from uff_files import INC, InlineOrders, Model, Orders, close, same_pads

BOTH = pytest.mark.parametrize("last", [True, False])


def image_shape(last, h, w, c):
    return (h, w, c) if last else (c, h, w)


def channels(last):
    return -1 if last else 1


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_conv(last, seed):
    random = np.random.default_rng(seed)
    m = Model(batch=int(random.integers(1, 4)), last=last, seed=seed)
    h, w, c, k = random.integers(5, 12), random.integers(5, 12), random.integers(1, 6), random.integers(1, 9)
    x = m.input("x", image_shape(last, h, w, c), trt.UffInputOrder.NHWC if seed % 2 else trt.UffInputOrder.NCHW)
    dilation = (2, 1) if seed % 3 == 2 else (1, 1)
    strides = (1, 1) if dilation != (1, 1) else tuple(int(s) for s in random.integers(1, 4, 2))
    kernel = m.weights(*random.integers(1, 5, 2), c, k)
    if dilation != (1, 1):
        kernel = m.weights(2, 3, c, k)
    m.check(m.conv(x, kernel, strides, same=bool(seed % 2), dilation=dilation))


@BOTH
def test_conv_asymmetric_same(last):
    """Odd totals go behind; both sizes of the image take other ones."""
    m = Model(last=last, seed=3)
    x = m.input("x", image_shape(last, 8, 11, 3))
    assert same_pads(8, 3, 2) == (0, 1) and same_pads(11, 4, 3) == (1, 1)
    m.check(m.conv(x, m.weights(3, 4, 3, 5), (2, 3)), m.pool(x, "avg", (3, 4), (2, 3), same=True), m.pool(x, "max", (3, 4), (2, 3), same=True))


@BOTH
def test_explicit_padding(last):
    m = Model(last=last, seed=4)
    x = m.input("x", image_shape(last, 6, 7, 2))
    w = m.weights(3, 3, 2, 4)
    padded = [(0, 0), (1, 1), (2, 2), (0, 0)] if last else [(0, 0), (0, 0), (1, 1), (2, 2)]
    from uff_files import Value, conv, pool

    wide = np.pad(x.value, padded)
    a = m.node("Conv", [x, w], m.image(lambda v: conv(v, w.value, (1, 1), False), wide), strides=[1, 1], padding=[1, 2], **m.ordered("+CK"))
    b = m.node("Pool", [x], m.image(lambda v: pool(v, "avg", (3, 4), (2, 2), False), wide), func="avg", kernel=[3, 4], strides=[2, 2], padding=[1, 2], **m.ordered())
    m.check(a, b)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_depthwise_and_groups(last, seed):
    """[H, W, C, M]: each channel gives M maps, those of a channel beside each other."""
    m = Model(last=last, seed=seed)
    c, multiplier = (3, 1) if seed == 0 else (4, 4) if seed == 1 else (5, 2) if seed == 2 else (1, 3)
    x = m.input("x", image_shape(last, 7, 6, c))
    y = m.depthwise(x, m.weights(3, 2, c, multiplier), (1 + seed % 2, 1), same=seed != 2, field=("group", "number_groups", "groups", "group")[seed])
    m.check(y)


@BOTH
def test_grouped_conv(last):
    """A kernel with the channels of a group."""
    m = Model(last=last, seed=5)
    x, w = m.input("x", image_shape(last, 6, 6, 6)), m.weights(3, 3, 2, 9)
    from uff_files import conv

    halves = lambda v: np.concatenate([conv(v[..., 2 * g : 2 * g + 2], w.value[..., 3 * g : 3 * g + 3], (1, 1), True) for g in range(3)], -1)
    m.check(m.node("Conv", [x, w], m.image(halves, x.value), strides=[1, 1], implicit_padding="same", groups=3, **m.ordered("+CK")))


def test_conv_of_one_dimension():
    """As conv1d is written: ExpandDims of data and of the kernel, Conv, Squeeze; no transposition between two of them."""
    m = Model(seed=6)
    x = m.input("x", (12, 5))
    for c, k in ((5, 7), (7, 4)):
        w = m.weights(3, c, k)
        wide = m.node("ExpandDims", [w], w.value[None], axis=0)
        tall = m.node("ExpandDims", [x], x.value[:, None], axis=1)
        y = m.conv(tall, wide)
        x = m.node("Squeeze", [y], y.value[:, 0], axes=[1])
        x = m.relu(m.binary("add", x, m.weights(k)))
    m.check(x)
    _, network, parser = m.parsed(x)
    layers = [network[i] for i in range(network.num_layers)]
    assert [layer.type for layer in layers].count(trt.LayerType.CONVOLUTION) == 2 and parser
    shuffles = [layer for layer in layers if layer.type == trt.LayerType.SHUFFLE]
    for layer in shuffles:
        layer.__class__ = trt.IShuffleLayer
    assert sum(list(layer.first_transpose)[:3] != [0, 1, 2] for layer in shuffles) == 1


@BOTH
@pytest.mark.parametrize(
    "kernel, strides, same, size", [((2, 2), (2, 2), False, (10, 8)), ((3, 3), (2, 2), True, (9, 7)), ((3, 3), (2, 2), True, (10, 8)), ((4, 2), (2, 3), True, (9, 12)),
                                    ((3, 2), (1, 1), False, (7, 5)), ((1, 2), (2, 3), False, (10, 11)), ((1, 1), (2, 3), True, (10, 12)), ((5, 4), (3, 2), False, (17, 11))]
)  # fmt: skip
def test_conv_transpose(last, kernel, strides, same, size):
    m = Model(last=last, seed=sum(size))
    x = m.input("x", image_shape(last, 5, 4, 3))
    w = m.weights(*kernel, 6, 3)
    m.check(m.conv_transpose(x, w, size, strides, same), m.conv_transpose(x, w, size, strides, same, whole=True))


def test_conv_transpose_without_a_size():
    m = Model(seed=8)
    x, w = m.input("x", (4, 5, 3)), m.weights(3, 3, 2, 3)
    from uff_files import conv_transpose

    for same, size in ((True, (8, 10)), (False, (9, 11))):
        y = m.node("ConvTranspose", [x, w], conv_transpose(x.value, w.value, (2, 2), same, size), **m.window((2, 2), same), **m.ordered("+CK"))
        m.check(y)


@BOTH
@pytest.mark.parametrize("function", ["max", "avg"])
@pytest.mark.parametrize("same", [True, False])
def test_pool(last, function, same):
    for seed in range(4):
        random = np.random.default_rng(seed)
        m = Model(batch=3, last=last, seed=seed)
        x = m.input("x", image_shape(last, *(int(v) for v in random.integers(5, 12, 3))))
        m.check(m.pool(x, function, random.integers(2, 5, 2), tuple(int(s) for s in random.integers(1, 4, 2)), same))


@pytest.mark.parametrize("shape", [(7,), (7, 1, 1), (2, 3, 4)])
@pytest.mark.parametrize("orders", [True, False])
def test_fully_connected(shape, orders):
    m = Model(seed=9, last=False, orders=orders)
    x = m.input("x", shape, trt.UffInputOrder.NCHW)
    y = m.connected(x, m.weights(int(np.prod(shape)), 5))
    m.check(m.relu(m.binary("add", y, m.weights(5))), y)


@BOTH
@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "min", "max", "pow"])
def test_binary(last, function):
    """Two tensors; a tensor and constants of each rank, on both sides; both orders of axes at once."""
    m = Model(last=last, seed=10)
    x = m.input("x", image_shape(last, 4, 5, 3), value=m.random.uniform(0.5, 2, (2, *image_shape(last, 4, 5, 3))))
    held = m.conv(x, m.const(m.random.uniform(0.1, 0.5, (1, 1, 3, 3))))
    outputs = [m.binary(function, x, held), m.binary(function, held, x)]
    shape = image_shape(last, 4, 5, 3)
    for dims in ((), (1,), shape[-1:], shape[1:], shape, (1, *shape), (1, 1, shape[2]), (shape[0], 1, 1), (1, 1, 1, 1)):
        c = m.const(m.random.uniform(0.5, 2, dims))
        outputs += [m.binary(function, held, c), m.binary(function, c, held)]
    m.check(*outputs)
    flat = m.reshape(held, [-1, 12, 5])
    m.check(m.binary(function, flat, m.const(m.random.uniform(0.5, 2, 5))), m.binary(function, flat, m.reshape(x, [-1, 12, 5])))


def test_binary_between_orders():
    """A tensor that a Transpose made, and one as a convolution gives it."""
    m = Model(seed=11)
    x = m.input("x", (4, 4, 4))
    a, b = m.conv(x, m.weights(3, 3, 4, 4)), m.conv(x, m.weights(1, 1, 4, 4))
    turned = m.transpose(a, [0, 3, 1, 2])
    m.check(m.binary("add", turned, b), m.binary("sub", b, turned), m.concat([turned, b, x], 2), m.relu(m.transpose(turned, [0, 2, 3, 1])))


UNARY = {"neg": np.negative, "exp": np.exp, "log": np.log, "abs": np.abs, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "square": np.square, "sin": np.sin,
         "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
         "acosh": lambda v: np.arccosh(v + 1), "atanh": np.arctanh, "ceil": np.ceil, "floor": np.floor}  # fmt: skip


@pytest.mark.parametrize("function", UNARY)
def test_unary(function):
    m = Model(seed=12)
    low = -0.9 if function in ("neg", "abs", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "atanh", "square", "exp") else 0.1
    x = m.input("x", (3, 4, 2), value=m.random.uniform(low, 0.9, (2, 3, 4, 2)))
    if function in ("ceil", "floor"):
        x = m.binary("mul", x, m.const(np.float32(5)))
    if function == "acosh":
        one = m.binary("add", x, m.const(np.float32(1)))
        return m.check(m.node("Unary", [one], np.arccosh(one.value), func="acosh"))
    m.check(m.unary(function, x, UNARY[function]))


def elu(v):
    return np.where(v > 0, v, np.expm1(v))


ACTIVATIONS = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "relu6": lambda v: np.clip(v, 0, 6), "elu": elu,
               "selu": lambda v: 1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * np.expm1(v)), "softplus": lambda v: np.log1p(np.exp(v)),
               "softsign": lambda v: v / (1 + np.abs(v))}  # fmt: skip


@BOTH
@pytest.mark.parametrize("function", ACTIVATIONS)
def test_activation(last, function):
    m = Model(last=last, seed=13)
    x = m.input("x", image_shape(last, 3, 4, 2), value=3 * m.random.standard_normal((2, *image_shape(last, 3, 4, 2))))
    m.check(m.activation(function, m.binary("mul", x, m.const(np.float32(2))), ACTIVATIONS[function]))


def test_leaky_relu():
    m = Model(seed=14)
    x = m.input("x", (3, 4, 2))
    leaky = lambda a: np.where(x.value > 0, x.value, a * x.value)
    m.check(m.node("LeakyRelu", [x], leaky(0.3), alpha=0.3), m.node("LeakyRelu", [x], leaky(0.2)))


def test_softmax():
    """Axis 0 is the channel of the orders; without orders and axis, too."""
    m = Model(seed=15)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(1, 1, 3, 6))
    from uff_files import softmax

    rows, flat = m.reshape(y, [-1, 20, 6]), m.flatten(y)
    m.check(
        m.softmax(y), m.softmax(rows), m.softmax(flat), m.node("Softmax", [flat], softmax(flat.value)), m.node("Softmax", [y], softmax(y.value)),
        m.node("Softmax", [y], softmax(y.value, 1), axis=1), m.node("Softmax", [y], softmax(y.value, 2), axis=-2, inputs_orders=Orders(["N+C"])),
        m.node("Softmax", [rows], softmax(rows.value), axis=2),
    )  # fmt: skip


@BOTH
def test_softmax_of_images(last):
    m = Model(last=last, seed=16)
    x = m.input("x", image_shape(last, 4, 5, 3))
    from uff_files import softmax

    m.check(m.node("Softmax", [x], softmax(x.value, channels(last)), axis=0, inputs_orders=Orders(["N+C" if last else "NC+"])))


@BOTH
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_batchnorm(last, rank):
    m = Model(last=last, seed=17)
    c = 5
    shape = {1: (c,), 2: (7, c) if last else (c, 7), 3: image_shape(last, 4, 3, c)}[rank]
    x = m.input("x", shape)
    gamma, beta, mean = m.weights(c), m.weights(c), m.weights(c)
    m.check(m.batchnorm(x, gamma, beta, mean, m.const(m.random.uniform(0.5, 2, c)), 1e-2))


@BOTH
def test_lrn(last):
    """alpha is divided by the window, as ILRNLayer does."""
    m = Model(last=last, seed=18)
    x = m.input("x", image_shape(last, 4, 3, 7))
    window, alpha, beta, k = 5, 0.7, 0.75, 1.5

    def lrn(v):
        sums = np.stack([(v[..., max(0, c - 2) : c + 3] ** 2).sum(-1) for c in range(7)], -1)
        return v / (k + alpha / window * sums) ** beta

    m.check(m.node("LRN", [x], m.image(lrn, x.value), window_size=window, alpha=alpha, beta=beta, k=k, **m.ordered()))


@BOTH
def test_reshape_and_flatten(last):
    m = Model(last=last, seed=19)
    x = m.input("x", image_shape(last, 4, 6, 3))
    y = m.conv(x, m.weights(3, 3, 3, 5))
    m.check(m.reshape(y, [-1, 8, 15]), m.reshape(y, [2, -1, 5]), m.flatten(y), m.reshape(m.transpose(y, [0, 2, 1, 3]), [-1, 120]), m.reshape(y, [1, 2, 3, 4, 5]))


def test_transpose():
    m = Model(seed=20)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(3, 3, 3, 6))
    outputs = [m.transpose(y, p) for p in ([0, 1, 3, 2], [0, 3, 1, 2], [0, 2, 3, 1], [0, 3, 2, 1], [0, 1, 2, 3])]
    outputs += [m.relu(m.transpose(outputs[1], [0, 2, 3, 1])), m.transpose(m.reshape(y, [-1, 20, 6]), [0, 2, 1])]
    m.check(*outputs)


def test_a_graph_between_orders():
    """Channels last in, transposed, convolved channels first, transposed back: the network has no shuffle."""
    m = Model(seed=21)
    x = m.input("x", (6, 5, 3), trt.UffInputOrder.NHWC)
    first = m.transpose(x, [0, 3, 1, 2])
    m.last = False
    y = m.conv(first, m.weights(3, 3, 3, 4))
    m.last = True
    z = m.pool(m.transpose(y, [0, 2, 3, 1]), "max", (2, 2), (2, 2))
    m.check(z)
    _, network, parser = m.parsed(z)
    assert parser and [network[i].type for i in range(network.num_layers)] == [trt.LayerType.CONVOLUTION, trt.LayerType.POOLING]
    assert tuple(network.get_input(0).shape) == (3, 6, 5)


def test_squeeze_and_expand_dims():
    m = Model(seed=22)
    x = m.input("x", (4, 5, 3))
    y = m.pool(x, "avg", (4, 5), (1, 1))
    line = m.pool(x, "max", (1, 5), (1, 1))
    outputs = [m.node("Squeeze", [y], y.value[:, 0, 0], axes=[1, 2]), m.node("Squeeze", [y], y.value[:, 0, 0], axes=[-3, -2]), m.node("Squeeze", [y], y.value[:, 0, 0])]
    outputs.append(m.node("Squeeze", [line], line.value[:, :, 0], axes=2))
    for axis in (1, 2, 3, 4, -1, -2, -4):
        outputs.append(m.node("ExpandDims", [x], np.expand_dims(x.value, axis), axis=axis))
        outputs.append(m.node("ExpandDims", [x, m.const(np.array([axis], np.int32))], np.expand_dims(x.value, axis)))
        assert outputs[-1].value.ndim == 5
    m.check(*outputs)


@BOTH
def test_concat(last):
    m = Model(last=last, seed=23)
    x = m.input("x", image_shape(last, 4, 5, 3))
    y, z = m.conv(x, m.weights(3, 3, 3, 3)), m.pool(x, "max", (3, 3), (1, 1), same=True)
    m.check(*[m.concat([y, z, x], axis) for axis in (1, 2, 3, -1, -2, -3)])
    c = m.const(np.broadcast_to(m.random.standard_normal((1, 1, 5, 3)) if last else m.random.standard_normal((1, 3, 1, 5)), (1, 1, 5, 3) if last else (1, 3, 1, 5)))
    repeated = np.repeat(c.value, 2, 0)
    axis = 1 if last else 2
    m.check(m.node("Concat", [y, c], np.concatenate([y.value, repeated], axis), axis=axis))


def test_stack():
    m = Model(seed=24)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(1, 1, 3, 3))
    m.check(*[m.node("Stack", [x, y, x], np.stack([x.value, y.value, x.value], axis), axis=axis) for axis in (1, 2, 3, 4, -1, -2)])


SLICES = [((0, 1, 0, 0), (0, 3, 4, 2), (1, 1, 1, 1), 1, 1, 0), ((0, 0, 4, 2), (0, 4, 0, 0), (1, 2, -2, -1), 1, 5, 0), ((0, -3, 1), (0, -1, 100), (1, 1, 2), 1, 1, 0),
          ((0, 1, 2, 1), (0, 2, 3, 2), (1, 1, 1, 1), 1, 1, 4), ((0, 0, 0, -1), (0, 0, 0, 0), (1, 1, 1, 1), 7, 7, 8), ((0, 5, 9, 1), (0, 5, 9, 0), (1, 1, 1, 1), 7, 7, 8),
          ((0,), (0,), (1,), 1, 1, 0), ((0, 1, 1, 1), (0, 2, 2, 2), (1, 1, 1, 1), 0, 1, 14)]  # fmt: skip


def sliced(x, begin, end, strides, begin_mask, end_mask, shrink):
    parts = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        if shrink >> i & 1:
            parts.append(b)
        else:
            parts.append(slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s))
    return x[tuple(parts)]


@pytest.mark.parametrize("case", range(len(SLICES)))
def test_strided_slice(case):
    m = Model(seed=25)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(3, 3, 3, 3))
    begin, end, strides, *masks = SLICES[case]
    lists = [m.const(np.array(v, np.int32)) for v in (begin, end, strides)]
    fields = dict(zip(("begin_mask", "end_mask", "shrink_axis_mask"), masks))
    m.check(*[m.node("StridedSlice", [v, *lists], sliced(v.value, begin, end, strides, *masks), **fields) for v in (x, y)])


@BOTH
@pytest.mark.parametrize("function", ["mean", "sum", "max", "min", "prod"])
def test_reduce(last, function):
    m = Model(last=last, seed=26)
    x = m.input("x", image_shape(last, 4, 3, 5))
    y = m.conv(x, m.weights(1, 1, 5, 5))
    m.check(*[m.node("Reduce", [y], getattr(np, function)(y.value, tuple(axes), keepdims=True), func=function, axes=axes) for axes in ([1], [2, 3], [-1], [1, 2, 3], [-3, -2])],
            m.node("Reduce", [y], getattr(np, function)(y.value, (1, 2), keepdims=True), func=function, axes=[1, 2], keepdims=False))  # fmt: skip


@BOTH
def test_pad(last):
    """In front of a convolution (the plane alone), and of channels, too."""
    m = Model(last=last, seed=27)
    x = m.input("x", image_shape(last, 4, 5, 3))
    for plane, c in (((1, 2), (0, 3)), 0), (((1, 0), (0, 0)), 2):
        rows = [(0, 0), *plane, (c, c)] if last else [(0, 0), (c, c), *plane]
        y = m.node("Pad", [x, m.const(np.array(rows, np.int32))], np.pad(x.value, rows))
        m.check(y, m.conv(y, m.weights(3, 3, 3 + 2 * c, 4), (2, 2), same=False), m.pool(y, "max", (2, 2), (2, 2)))
    flat = m.flatten(x)
    m.check(m.node("Pad", [flat, m.const(np.array([(0, 0), (2, 1)], np.int32))], np.pad(flat.value, [(0, 0), (2, 1)])))


def test_gather():
    m = Model(seed=28)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(3, 3, 3, 3))
    index = lambda v: m.const(np.array(v, np.int32))
    outputs = [m.node("GatherV2", [y, index(i)], y.value.take(i, axis), axis=axis) for axis, i in ((1, [3, 0, 0]), (-1, [1, 2]), (2, 4), (3, [[0, 1], [2, 2]]))]
    outputs.append(m.node("GatherV2", [y, index([1, 0]), index(2)], y.value.take([1, 0], 2)))
    ids = m.input("ids", (6,), trt.UffInputOrder.NC, value=m.random.integers(0, 9, (2, 6)), dtype=np.int32)
    table = m.weights(9, 4)
    outputs.append(m.node("GatherV2", [table, ids], table.value[ids.value], axis=0))
    m.check(*outputs)


@BOTH
@pytest.mark.parametrize("operation", ["ArgMax", "ArgMin"])
def test_arg_max(last, operation):
    m = Model(last=last, seed=29)
    x = m.input("x", image_shape(last, 4, 5, 3))
    y = m.conv(x, m.weights(3, 3, 3, 6))
    find = np.argmax if operation == "ArgMax" else np.argmin
    outputs = [m.node(operation, [y], find(y.value, axis), axis=axis) for axis in (1, 2, 3, -1)]
    outputs.append(m.node(operation, [y, m.const(np.int32(-1))], find(y.value, -1)))
    m.check(*outputs, tolerance=0)


def test_identity_and_mark_output():
    m = Model(seed=30)
    x = m.input("x", (3, 4, 2))
    y = m.relu(m.node("Identity", [m.node("Identity", [x], x.value)], x.value), name="y")
    m.file.node("MarkOutput", "MarkOutput_0", ["y"])
    got = m.run("MarkOutput_0")
    assert list(got) == ["y"]
    close(got["y"], np.moveaxis(y.value, -1, 1), 1e-6)


def test_types_of_constants():
    m = Model(seed=31)
    x = m.input("x", (3, 4, 2))
    outputs = []
    for dtype in (np.float32, np.float16, np.int8, np.int16, np.int32, np.int64):
        c = m.const(m.random.integers(-9, 9, 2).astype(dtype) / (4 if np.dtype(dtype).kind == "f" else 1)) if np.dtype(dtype).kind == "f" else m.const(m.random.integers(-9, 9, 2).astype(dtype))
        outputs.append(m.binary("add", x, c))
    half = m.const(m.random.standard_normal((1, 1, 2, 3)).astype(np.float16))
    outputs.append(m.conv(x, half))
    m.check(*outputs)


def test_computed_constants():
    """Kernels and shapes that nodes compute."""
    m = Model(seed=32)
    x = m.input("x", (4, 6, 3))
    w = m.weights(3, 3, 5, 3)
    w = m.node("Transpose", [w], w.value.transpose(0, 1, 3, 2), permutation=[0, 1, 3, 2])
    w = m.binary("mul", w, m.node("Unary", [m.const(np.float32(4))], 2.0, func="sqrt"))
    w = m.concat([w, m.weights(3, 3, 3, 2)], 3)
    halves = [m.node("StridedSlice", [w, *[m.const(np.array(v, np.int32)) for v in ((0, 0, 0, s), (0, 0, 0, 0), (1, 1, 1, 2))]], w.value[:, :, :, s::2], begin_mask=7, end_mask=15)
              for s in (0, 1)]  # fmt: skip
    w = m.node("Stack", halves, np.stack([h.value[..., :3] for h in halves], 4), axis=4) if halves[0].shape == halves[1].shape else m.concat(halves, 3)
    y = m.conv(x, w)
    shape = m.node("Shape", [y], np.array([-1, *y.shape[1:]]))
    part = lambda b, e, shrink=0: m.node("StridedSlice", [shape, *[m.const(np.array([v], np.int32)) for v in (b, e, 1)]], shape.value[b] if shrink else shape.value[b:e],
                                         **({"shrink_axis_mask": 1} if shrink else {}))  # fmt: skip
    batch, rest = part(0, 1, 1), part(1, 4)
    product = m.node("Reduce", [rest], np.prod(rest.value), func="prod", axes=[0])
    target = m.node("Stack", [batch, product], np.array([-1, np.prod(y.shape[1:])]), axis=0)
    flat = m.node("Reshape", [y, target], y.value.reshape(2, -1))
    rows = m.node("Stack", [batch, part(1, 2, 1), m.node("Binary", [part(2, 3, 1), part(3, 4, 1)], y.shape[2] * y.shape[3], func="mul")], None, axis=0)
    table = m.weights(7, 2)
    picked = m.node("GatherV2", [table, m.const(np.array([4, 1], np.int32))], table.value[[4, 1]], axis=0)
    bias = m.node("Reshape", [picked, m.const(np.array([-1], np.int32))], picked.value.reshape(-1))
    bias = m.node("Squeeze", [m.node("ExpandDims", [bias], bias.value[None], axis=0)], bias.value, axes=[0])
    m.check(flat, m.node("Reshape", [y, rows], y.value.reshape(2, 4, -1)))
    v = m.reshape(x, [-1, 18, 4])
    m.check(m.binary("add", v, bias))


def test_biases_with_channels_first():
    """A list with a number for each channel is a bias; beside what is no image it goes along the last dimension, as in NumPy."""
    m = Model(last=False, seed=40)
    x = m.input("x", (4, 3, 5))
    bias = m.weights(4)
    along = lambda v, b: v.value + b.value[:, None, None]
    y = m.conv(x, m.weights(3, 3, 4, 4))
    z = m.conv(x, m.weights(3, 3, 4, 5))
    five = m.weights(5)
    node = lambda a, b, value: m.node("Binary", [a, b], value, func="add")
    outputs = [node(x, bias, along(x, bias)), node(y, bias, along(y, bias)), node(bias, y, along(y, bias)), node(m.relu(node(z, five, along(z, five))), five, None)]
    outputs[-1].value = np.maximum(along(z, five), 0) + five.value[:, None, None]
    rows = m.reshape(x, [-1, 5, 3, 4])
    outputs += [m.binary("add", rows, bias), m.binary("add", m.reshape(x, [-1, 5, 2, 6]), m.weights(6)), m.binary("add", m.reshape(x, [-1, 4, 15, 1]), m.weights(1))]
    last = m.reshape(m.concat([y, y, y], 2), [-1, 6, 5, 6])
    outputs.append(m.binary("mul", last, m.weights(6)))
    m.check(*outputs)


def test_layers_of_each_region():
    """Channels first, regions in front of the channels: how Mask R-CNN's heads stand once the Reshapes round them are taken away."""
    m = Model(last=False, seed=38)
    regions, c = 5, 3
    x = m.input("x", (regions, c, 4, 4))
    each = lambda function, v: np.stack([m.image(function, v[:, r]) for r in range(regions)], 1)
    from uff_files import conv, conv_transpose, pool

    w = m.weights(4, 4, c, 6)
    y = m.node("Conv", [x, w], each(lambda v: conv(v, w.value, (1, 1), False), x.value), strides=[1, 1], **m.ordered("+CK"))
    gamma, beta, mean, variance = m.weights(6), m.weights(6), m.weights(6), m.const(m.random.uniform(0.5, 2, 6))
    of = lambda v: (v - mean.value) / np.sqrt(variance.value + 1e-3) * gamma.value + beta.value
    y = m.node("Batchnorm", [y, gamma, beta, mean, variance], each(of, y.value), epsilon=1e-3, **m.ordered())
    matrix, bias = m.weights(6, 4), m.weights(4)
    z = m.node("FullyConnected", [m.relu(y), matrix], np.maximum(y.value[..., 0, 0], 0) @ matrix.value, inputs_orders=Orders(["NC", "CK"]))
    z = m.binary("add", z, bias, name="logits")
    outputs = [m.node("Softmax", [z], np.exp(z.value) / np.exp(z.value).sum(-1, keepdims=True), axis=0, inputs_orders=Orders(["N+C"]))]
    outputs.append(m.node("Softmax", [z], outputs[0].value))
    k = m.weights(2, 2, 4, c)
    outputs.append(m.node("ConvTranspose", [x, k, m.const(np.array([8, 8], np.int32))], each(lambda v: conv_transpose(v, k.value, (2, 2), False, (8, 8)), x.value),
                          strides=[2, 2], **m.ordered("+CK")))  # fmt: skip
    outputs.append(m.node("Pool", [x], each(lambda v: pool(v, "max", (2, 2), (2, 2), False), x.value), func="max", kernel=[2, 2], strides=[2, 2], **m.ordered()))
    m.check(*outputs)
    # What a fully connected layer gives keeps its dimensions of 1 until a node asks for the graph's shape.
    assert m.run(z)["logits"].shape == (2, regions, 4, 1, 1)


@BOTH
def test_fully_connected_and_what_follows(last):
    m = Model(last=last, seed=39)
    x = m.input("x", image_shape(last, 3, 4, 2))
    y = m.connected(m.flatten(x), m.weights(24, 6))
    z = m.relu(m.binary("add", y, m.weights(6)))
    both = m.concat([z, y], 1)
    table = m.node("ExpandDims", [z], z.value[:, None], axis=1)
    m.check(both, m.binary("mul", y, z), m.binary("sub", m.const(np.float32(1)), z), table, m.connected(z, m.weights(6, 3)), m.transpose(table, [0, 2, 1]),
            m.binary("add", z, m.flatten(m.reshape(z, [-1, 2, 3]))), m.node("Squeeze", [table], z.value, axes=[1]), m.batchnorm(y, *[m.weights(6) for _ in range(3)],
            m.const(m.random.uniform(0.5, 2, 6))), m.node("Reduce", [y], y.value.max(1, keepdims=True), func="max", axes=[1]))  # fmt: skip


def test_fields_by_other_kinds():
    """What is one number may stand as one, orders beside their nodes and by the number of dimensions."""
    m = Model(seed=33)
    x = m.input("x", (4, 5, 3))
    w = m.weights(2, 3, 3, 4)
    from uff_files import conv

    y = conv(x.value, w.value, (1, 1), False)
    orders = [Orders([[0, 2, 3, 1], [2, 3, 1, 0]]), InlineOrders(["N+C", "+CK"]), InlineOrders([[0, 2, INC, 1], [2, INC, 1, 0]])]
    convolved = [m.node("Conv", [x, w], y, implicit_padding="valid", inputs_orders=o) for o in orders]
    m.check(m.node("Reduce", [x], x.value.mean(2, keepdims=True), func="mean", axes=2), *convolved)


def test_network_shapes_and_names():
    """Layers and tensors are called as the nodes; outputs of convolutions are C H W."""
    m = Model(seed=34)
    x = m.input("x", (4, 5, 3), trt.UffInputOrder.NHWC)
    y = m.conv(x, m.weights(3, 3, 3, 6), name="conv")
    z = m.relu(y, name="relu")
    _, network, parser = m.parsed(z, y)
    assert parser and [(network[i].name, network[i].get_output(0).name) for i in range(2)] == [("conv", "conv"), ("relu", "relu")]
    assert [tuple(network.get_output(i).shape) for i in range(2)] == [(6, 4, 5)] * 2
    assert [network.get_output(i).name for i in range(2)] == ["relu", "conv"]
    got = m.run(z, y)
    close(got["relu"], np.moveaxis(z.value, -1, 1), 2e-5)
    t = m.transpose(z, [0, 1, 3, 2], name="turned")
    got = m.run(t, z, "x")
    close(got["turned"], t.value, 2e-5)
    close(got["x_output"], np.moveaxis(x.value, -1, 1), 0)
    close(got["relu"], np.moveaxis(z.value, -1, 1), 2e-5)


@pytest.mark.parametrize("dtype", [trt.float32, trt.float16])
def test_weights_type(dtype):
    m = Model(seed=35)
    x = m.input("x", (4, 5, 3))
    y = m.conv(x, m.weights(3, 3, 3, 4))
    y = m.batchnorm(y, m.weights(4), m.weights(4), m.weights(4), m.const(m.random.uniform(0.5, 2, 4)))
    y = m.relu(m.binary("add", y, m.weights(4)))
    y = m.conv_transpose(y, m.weights(2, 2, 3, 4), (8, 10), (2, 2))
    m.check(m.connected(m.flatten(y), m.weights(8 * 10 * 3, 6, scale=0.1)), dtype=dtype, tolerance=2e-5 if dtype == trt.float32 else 1e-2)
    _, network, parser = m.parsed(y, dtype=dtype)
    layer = network[0]
    layer.__class__ = trt.IConvolutionLayer
    assert layer.kernel.dtype == trt.nptype(dtype) and parser


def test_registrations():
    """Dimensions of the client go before those of the file; without a registration the file's count."""
    m = Model(seed=36)
    x = m.input("x", (4, 5, 3), file_shape=False)
    y = m.conv(x, m.weights(3, 3, 3, 2))
    m.check(y)
    m = Model(seed=36)
    x = m.input("x", (4, 5, 3))
    m.check(m.conv(x, m.weights(3, 3, 3, 2)), register=False)
    # A graph without orders, whose shape says that channels are last.
    m = Model(seed=37, orders=False)
    x = m.input("x", (4, 5, 3))
    m.check(m.transpose(m.relu(x), [0, 2, 1, 3]))
    assert tuple(m.parsed(m.flatten(x))[1].get_input(0).shape) == (3, 4, 5)
