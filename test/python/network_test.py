# SPDX-License-Identifier: Apache-2.0
"""Networks by the network API with NumPy weights: layers, their properties, and answers against NumPy."""

import numpy as np
import pytest
import tensorrt as trt

from models import close, conv2d, max_pool
from small import LOUD, QUIET, W, convolution, engine_of, one_layer, run

RANDOM = np.random.default_rng(11)


def array(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_mnist_sample():
    """The network of the sample that defines MNIST by the API, with weights from a dictionary."""
    weights = {
        "conv1.weight": array(20, 1, 5, 5) / 5,
        "conv1.bias": array(20),
        "conv2.weight": array(50, 20, 5, 5) / 22,
        "conv2.bias": array(50),
        "fc1.weight": array(500, 800) / 28,
        "fc1.bias": array(500),
        "fc2.weight": array(10, 500) / 22,
        "fc2.bias": array(10),
    }
    builder = trt.Builder(LOUD)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    config = builder.create_builder_config()
    input_tensor = network.add_input(name="data", dtype=trt.float32, shape=(1, 1, 28, 28))

    def add_matmul_as_fc(net, input, outputs, w, b):
        assert len(input.shape) >= 3
        m = 1 if len(input.shape) == 3 else input.shape[0]
        k = int(np.prod(input.shape) / m)
        n = int(w.size / k)
        assert w.size == n * k and b.size == n
        input_reshape = net.add_shuffle(input)
        input_reshape.reshape_dims = trt.Dims2(m, k)
        filter_const = net.add_constant(trt.Dims2(n, k), w)
        mm = net.add_matrix_multiply(
            input_reshape.get_output(0), trt.MatrixOperation.NONE, filter_const.get_output(0), trt.MatrixOperation.TRANSPOSE
        )
        bias_const = net.add_constant(trt.Dims2(1, n), b)
        bias_add = net.add_elementwise(mm.get_output(0), bias_const.get_output(0), trt.ElementWiseOperation.SUM)
        output_reshape = net.add_shuffle(bias_add.get_output(0))
        output_reshape.reshape_dims = trt.Dims4(m, n, 1, 1)
        return output_reshape

    conv1 = network.add_convolution(
        input=input_tensor, num_output_maps=20, kernel_shape=(5, 5), kernel=weights["conv1.weight"], bias=weights["conv1.bias"]
    )
    conv1.stride = (1, 1)
    pool1 = network.add_pooling(input=conv1.get_output(0), type=trt.PoolingType.MAX, window_size=(2, 2))
    pool1.stride = (2, 2)
    conv2 = network.add_convolution(pool1.get_output(0), 50, (5, 5), weights["conv2.weight"], weights["conv2.bias"])
    conv2.stride = (1, 1)
    pool2 = network.add_pooling(conv2.get_output(0), trt.PoolingType.MAX, (2, 2))
    pool2.stride = (2, 2)
    fc1 = add_matmul_as_fc(network, pool2.get_output(0), 500, weights["fc1.weight"], weights["fc1.bias"])
    relu1 = network.add_activation(input=fc1.get_output(0), type=trt.ActivationType.RELU)
    fc2 = add_matmul_as_fc(network, relu1.get_output(0), 10, weights["fc2.weight"], weights["fc2.bias"])
    fc2.get_output(0).name = "prob"
    network.mark_output(tensor=fc2.get_output(0))
    config.max_workspace_size = 1 << 28
    engine = engine_of(builder, network, config)
    x = array(1, 1, 28, 28)
    y = max_pool(conv2d(x, weights["conv1.weight"], weights["conv1.bias"]), 2, 2)
    y = max_pool(conv2d(y, weights["conv2.weight"], weights["conv2.bias"]), 2, 2).reshape(1, -1)
    y = np.maximum(y @ weights["fc1.weight"].T + weights["fc1.bias"], 0) @ weights["fc2.weight"].T + weights["fc2.bias"]
    close(run(engine, data=x)["prob"], y.reshape(1, 10, 1, 1), 1e-3)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def set_(layer, **properties):
    for name, value in properties.items():
        setattr(layer, name, value)
        got = getattr(layer, name)
        assert got == value or tuple(got)[: len(value)] == tuple(value), (name, got)
    return layer


def constant(network, value):
    return network.add_constant(value.shape, value).get_output(0)


X, Z = array(2, 3, 4, 5), array(2, 3, 4, 5)
I32 = np.array([2, 0, 1], np.int32)
LAYERS = {
    "activation": (
        lambda n, x: set_(n.add_activation(x, trt.ActivationType.LEAKY_RELU), alpha=0.25),
        [X],
        np.where(X >= 0, X, 0.25 * X),
    ),
    "unary": (lambda n, x: n.add_unary(input=x, op=trt.UnaryOperation.EXP), [X], np.exp(X)),
    "elementwise": (
        lambda n, x, z: set_(n.add_elementwise(x, z, trt.ElementWiseOperation.SUM), op=trt.ElementWiseOperation.PROD),
        [X, Z],
        X * Z,
    ),
    "reduce": (
        lambda n, x: n.add_reduce(x, trt.ReduceOperation.AVG, axes=(1 << 1) | (1 << 3), keep_dims=True),
        [X],
        X.mean((1, 3), keepdims=True),
    ),
    "softmax": (lambda n, x: set_(n.add_softmax(x), axes=1 << 3), [X], softmax(X, 3)),
    "concatenation": (lambda n, x, z: set_(n.add_concatenation([x, z]), axis=2), [X, Z], np.concatenate([X, Z], 2)),
    "shuffle": (
        lambda n, x: set_(n.add_shuffle(x), first_transpose=(0, 2, 3, 1), reshape_dims=(2, 20, 3), second_transpose=(2, 1, 0)),
        [X],
        X.transpose(0, 2, 3, 1).reshape(2, 20, 3).transpose(2, 1, 0),
    ),
    "slice": (lambda n, x: n.add_slice(x, (0, 1, 0, 4), (2, 2, 2, 3), (1, 1, 2, -2)), [X], X[:, 1:3, 0:4:2, 4::-2]),
    "slice fill": (
        lambda n, x: set_(n.add_slice(x, (0, 0, -1, -1), (2, 3, 6, 7), (1, 1, 1, 1)), mode=trt.SampleMode.FILL),
        [X],
        np.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1))),
    ),
    "topk": (lambda n, x: n.add_topk(x, trt.TopKOperation.MAX, k=2, axes=1 << 3), [X], -np.sort(-X, 3)[..., :2]),
    "gather": (lambda n, x: n.add_gather(x, constant(n, I32), axis=1), [X], X[:, I32]),
    "matrix multiply": (
        lambda n, x, z: set_(
            n.add_matrix_multiply(x, trt.MatrixOperation.NONE, z, trt.MatrixOperation.NONE), op1=trt.MatrixOperation.TRANSPOSE
        ),
        [X, Z],
        X @ Z.swapaxes(2, 3),
    ),
    "einsum": (lambda n, x, z: n.add_einsum([x, z], "bcij,bckj->bcik"), [X, Z], np.einsum("bcij,bckj->bcik", X, Z)),
    "scale": (
        lambda n, x: n.add_scale(x, trt.ScaleMode.CHANNEL, shift=np.float32([1, 2, 3]), scale=np.float32([4, 5, 6])),
        [X],
        X * np.float32([4, 5, 6])[:, None, None] + np.float32([1, 2, 3])[:, None, None],
    ),
    "scale nd": (
        lambda n, x: n.add_scale_nd(x, trt.ScaleMode.CHANNEL, scale=np.arange(1, 6, dtype=np.float32), channel_axis=3),
        [X],
        X * np.arange(1, 6),
    ),
    "identity": (lambda n, x: n.add_identity(x), [X], X),
    "pooling": (
        lambda n, x: set_(n.add_pooling_nd(x, trt.PoolingType.AVERAGE, (2, 2)), stride_nd=(2, 1)),
        [X],
        np.lib.stride_tricks.sliding_window_view(X, (2, 2), (2, 3))[:, :, ::2].mean((4, 5)),
    ),
    "resize": (
        lambda n, x: set_(n.add_resize(x), resize_mode=trt.ResizeMode.NEAREST, scales=[1, 1, 2, 2]),
        [X],
        X.repeat(2, 2).repeat(2, 3),
    ),
    "parametric relu": (
        lambda n, x: n.add_parametric_relu(x, constant(n, np.full((1, 3, 1, 1), 0.5, np.float32))),
        [X],
        np.where(X >= 0, X, X / 2),
    ),
    "deconvolution": (
        lambda n, x: set_(n.add_deconvolution_nd(x, 1, (2, 2), np.ones((3, 1, 2, 2), np.float32)), stride_nd=(2, 2)),
        [X],
        X.sum(1, keepdims=True).repeat(2, 2).repeat(2, 3),
    ),
    "select": (
        lambda n, x, z: n.add_select(n.add_elementwise(x, z, trt.ElementWiseOperation.GREATER).get_output(0), x, z),
        [X, Z],
        np.maximum(X, Z),
    ),
    "lrn": (lambda n, x: n.add_lrn(x, window=1, alpha=1.0, beta=1.0, k=2.0), [X], X / (2 + X * X)),
    "scatter": (
        lambda n, x: set_(
            n.add_scatter(
                x,
                constant(n, np.zeros((2, 3, 4, 1), np.int32)),
                constant(n, np.full((2, 3, 4, 1), 9, np.float32)),
                trt.ScatterMode.ELEMENT,
            ),
            axis=3,
        ),
        [X],
        np.concatenate([np.full((2, 3, 4, 1), 9, np.float32), X[..., 1:]], 3),
    ),
    "shape": (lambda n, x: n.add_shape(x), [X], np.array(X.shape, np.int32)),
    "fill": (
        lambda n: set_(n.add_fill((7,), trt.FillOperation.LINSPACE), alpha=1.5, beta=0.5),
        [],
        1.5 + 0.5 * np.arange(7, dtype=np.float32),
    ),
    "one hot": (
        lambda n, x: n.add_one_hot(
            n.add_topk(x, trt.TopKOperation.MAX, 1, 1 << 3).get_output(1),
            constant(n, np.float32([0, 1])),
            constant(n, np.array(5, np.int32)),
            axis=-1,
        ),
        [X],
        np.eye(5, dtype=np.float32)[X.argmax(3)][..., None, :],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    add, inputs, expected = LAYERS[name]
    engine = one_layer(add, *(x.shape for x in inputs))
    close(run(engine, **{f"x{i}": x for i, x in enumerate(inputs)})["y0"], expected)


def test_loop():
    """x doubled five times."""

    def add(network, x):
        loop = network.add_loop()
        loop.name = "five"
        loop.add_trip_limit(constant(network, np.array(5, np.int32)), trt.TripLimit.COUNT)
        value = loop.add_recurrence(x)
        twice = network.add_elementwise(value.get_output(0), value.get_output(0), trt.ElementWiseOperation.SUM)
        value.set_input(1, twice.get_output(0))
        output = loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)
        assert value.loop.name == "five" and output.kind == trt.LoopOutput.LAST_VALUE
        return output

    close(run(one_layer(add, (3, 4)), x0=X[0, :, :, 0])["y0"], 32 * X[0, :, :, 0])


def test_conditional():
    def add(network, x, z):
        largest = network.add_reduce(x, trt.ReduceOperation.MAX, 0b11, False).get_output(0)
        condition = network.add_if_conditional()
        condition.set_condition(
            network.add_elementwise(
                largest, constant(network, np.array(1, np.float32)), trt.ElementWiseOperation.GREATER
            ).get_output(0)
        )
        a, b = condition.add_input(x), condition.add_input(z)
        plus = network.add_unary(a.get_output(0), trt.UnaryOperation.EXP)
        minus = network.add_unary(b.get_output(0), trt.UnaryOperation.NEG)
        assert a.conditional.name == condition.name
        return condition.add_output(plus.get_output(0), minus.get_output(0))

    engine = one_layer(add, (3, 4), (3, 4))
    a, b = np.full((3, 4), 0.5, np.float32), array(3, 4)
    a[0, 0] = -1
    close(run(engine, x0=a, x1=b)["y0"], -b)
    a[1, 1] = 2
    close(run(engine, x0=a, x1=b)["y0"], np.exp(a))


def test_properties_of_tensors_and_layers():
    builder, network, config = convolution()
    x = network.get_input(0)
    assert (x.name, x.dtype, x.shape, x.location, x.is_network_input, x.is_network_output) == (
        "x",
        trt.float32,
        (1, 3, 8, 8),
        trt.TensorLocation.DEVICE,
        True,
        False,
    )
    x.name, x.shape = "renamed", (2, 3, 8, 8)
    assert (
        network.get_input(0) == x and network.get_input(0).name == "renamed" and network.get_layer(0).get_input(0).shape[0] == 2
    )
    assert x.dynamic_range is None and np.isnan(x.dynamic_range[0] if x.dynamic_range else np.nan)
    assert x.set_dynamic_range(-1, 2) and x.dynamic_range == (-1, 2)
    x.dynamic_range = (-3.0, 4.0)
    assert x.dynamic_range == (-3, 4)
    with pytest.raises(RuntimeError, match="renamed"):
        x.dynamic_range = (1, -1)
    x.reset_dynamic_range()
    x.set_dimension_name(0, "batch")
    assert x.get_dimension_name(0) == "batch" and x.get_dimension_name(1) is None
    x.allowed_formats = 1 << int(trt.TensorFormat.LINEAR)
    assert x.allowed_formats == 1
    layer = network[0]
    assert (
        layer.type == trt.LayerType.CONVOLUTION
        and layer.num_inputs == 1
        and layer.num_outputs == 1
        and not layer.precision_is_set
    )
    layer.precision = trt.float16
    layer.set_output_type(0, trt.float16)
    assert (
        layer.precision == trt.float16
        and layer.precision_is_set
        and layer.output_type_is_set(0)
        and layer.get_output_type(0) == trt.float16
    )
    layer.reset_precision()
    layer.reset_output_type(index=0)
    assert not layer.precision_is_set and not layer.output_type_is_set(0)
    layer.__class__ = trt.IConvolutionLayer
    assert (
        layer.num_output_maps == 4
        and layer.kernel_size_nd == (3, 3)
        and layer.padding_mode == trt.PaddingMode.EXPLICIT_ROUND_DOWN
    )
    np.testing.assert_array_equal(layer.kernel.reshape(W.shape), W)
    assert layer.kernel.ctypes.data == layer.kernel.ctypes.data and layer.get_input(5) is None and layer.get_output(-1) is None
    assert [type(l) for l in network] == [trt.ILayer] * 2 and network[-1] == network[1]
    for bad in (2, -3):
        with pytest.raises(IndexError, match="the network has 2"):
            network[bad]
    assert len({network[0], network[0], network[1]}) == 2


def test_weights():
    for dtype, name in (
        (np.float32, "FLOAT"),
        (np.float16, "HALF"),
        (np.int8, "INT8"),
        (np.int32, "INT32"),
        (np.bool_, "BOOL"),
        (np.uint8, "UINT8"),
    ):
        values = np.arange(6).reshape(2, 3).astype(dtype)
        weights = trt.Weights(values)
        assert (
            weights.dtype == trt.DataType.__members__[name]
            and weights.size == len(weights) == 6
            and weights.nbytes == values.nbytes
        )
        assert weights.numpy().dtype == dtype and (weights.numpy() == values.ravel()).all()
        assert weights.numpy().ctypes.data == values.ctypes.data  # the same memory
        assert trt.nptype(weights.dtype) == dtype and weights.dtype.itemsize == values.itemsize
    assert (
        trt.Weights().size == 0
        and trt.Weights(trt.int8).dtype == trt.int8
        and trt.Weights(type=trt.DataType.HALF).numpy().dtype == np.float16
    )
    assert (trt.Weights(a=np.arange(8, dtype=np.int32)[::2]).numpy() == [0, 2, 4, 6]).all()
    view = trt.Weights(np.arange(4, dtype=np.int32)).numpy()
    assert (view == [0, 1, 2, 3]).all()  # its memory is kept
    for bad in (np.zeros(2), np.zeros(2, np.int64), np.zeros(2, ">f4"), np.array(["a"]), np.zeros(2, "V4")):
        with pytest.raises(TypeError, match="weights"):
            trt.Weights(bad)
    with pytest.raises(TypeError):
        trt.Weights([1.0, 2.0])
    assert trt.Weights(np.empty((0, 3), np.float32)).size == 0 and trt.Weights(np.float32(3).reshape(())).size == 1


def test_dims():
    d = trt.Dims((1, 2, 3))
    assert str(d) == repr(d) == "(1, 2, 3)" and str(trt.Dims([5])) == "(5,)" and str(trt.Dims()) == "()" and len(trt.Dims()) == 0
    assert d == (1, 2, 3) and d == [1, 2, 3] and d != (1, 2) and d != "123" and not d == (1, 2, 4) and d == trt.Dims([1, 2, 3])
    assert (
        tuple(d) == (1, 2, 3)
        and list(d) == [1, 2, 3]
        and d[-1] == 3
        and d[1:] == (2, 3)
        and d[::-1] == (3, 2, 1)
        and isinstance(d[1:], tuple)
    )
    d[0], d[1:3] = 7, [8, 9]
    assert d == (7, 8, 9) and np.zeros(d).shape == (7, 8, 9) and trt.volume(d) == 504 and np.prod(d) == 504
    for bad in (3, -4):
        with pytest.raises(IndexError):
            d[bad]
    with pytest.raises(ValueError):
        d[0:2] = (1, 2, 3)
    hw = trt.DimsHW(h=3, w=4)
    hw.h = 5
    assert (
        (hw.h, hw.w, hw) == (5, 4, (5, 4))
        and isinstance(hw, trt.Dims2)
        and isinstance(hw, trt.Dims)
        and hw.MAX_DIMS == trt.Dims.MAX_DIMS == 8
    )
    assert (
        trt.Dims4(1, 2, 3, 4) == (1, 2, 3, 4)
        and trt.Dims3([1, 2, 3]) == (1, 2, 3)
        and trt.Dims2(dim0=1, dim1=2) == (1, 2)
        and trt.Dims3() == (0, 0, 0)
    )
    for bad, match in (
        (lambda: trt.Dims2((1, 2, 3)), "2 are expected"),
        (lambda: trt.Dims([0] * 9), "too many"),
        (lambda: trt.Dims((1, "a")), "str"),
        (lambda: trt.Dims((2**40,)), "32 bits"),
        (lambda: trt.Dims([None]), "NoneType"),
    ):
        with pytest.raises(ValueError, match=match):
            bad()
    with pytest.raises(TypeError):
        trt.Dims("123")
    assert trt.Dims(np.array([2, 3])) == (2, 3) and trt.Dims((np.int64(4), True)) == (4, 1)
    with pytest.raises(TypeError):
        hash(d)
    # Dimensions that cannot be computed have no length.
    network = trt.Builder(QUIET).create_network(1)
    bad = network.add_elementwise(
        network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, (3,)), trt.ElementWiseOperation.SUM
    )
    if bad is not None:
        with pytest.raises(ValueError):
            len(bad.get_output(0).shape)


def test_bad_arguments():
    builder, network, config = convolution(QUIET)
    x = network.get_input(0)
    for bad in (
        lambda: network.add_activation(None, trt.ActivationType.RELU),
        lambda: network.add_activation(x, 99),
        lambda: network.add_input("q", trt.float32),
        lambda: network.add_input(5, trt.float32, (1,)),
        lambda: network.add_concatenation(x),
        lambda: network.mark_output("y"),
        lambda: network.add_constant((1,), None),
        lambda: builder.create_network(-1),
        lambda: builder.create_network("1"),
        lambda: trt.Builder(None),
        lambda: trt.Runtime(5),
        lambda: config.set_flag("INT8"),
        lambda: network.get_layer("conv"),
        lambda: builder.build_serialized_network(network, None),
    ):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(ValueError, match="input 1 is None"):
        network.add_concatenation([x, None])
    with pytest.raises(ValueError):
        network.add_convolution(x, 4, (3, 3, 3), W)
    assert builder.create_network(1).add_input("q", trt.float32, (1,) * 8).shape == (1,) * 8
