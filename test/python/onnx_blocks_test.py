# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of blocks and of types that layers on INT8 do not have, and initializers of small types."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402

RANGES = {"INT2": (-2, 1), "UINT2": (0, 3), "INT4": (-8, 7), "UINT4": (0, 15), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767), "UINT16": (0, 65535)}
SMALL_FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT8E8M0"]
HELD = {"INT8": np.int8, "UINT8": np.uint8}  # at inputs and outputs; INT32 for the others


def integers(r, kind, shape):
    low, high = RANGES[kind]
    x = r.integers(low, high + 1, shape)
    x.flat[:2] = low, high
    return x


def stored(name, kind, values):
    return helper.make_tensor(name, getattr(TensorProto, kind), values.shape, values.flatten().tolist())


def blocks(shape, axis, block):
    return [-(-n // block) if i == axis else n for i, n in enumerate(shape)]


def spread(steps, shape, axis, block):
    """A scale or zero point for each element."""
    if axis is None:
        return np.broadcast_to(steps, shape)
    if block == 0:
        return np.broadcast_to(steps.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
    return np.take(steps.repeat(block, axis), range(shape[axis]), axis)


class Case:
    """Steps at random: for all, for each index of an axis, or for blocks."""

    def __init__(self, seed, kind, shape=None):
        self.r = r = np.random.default_rng(seed)
        self.kind = kind
        self.shape = shape or [int(n) for n in r.integers(1, 8, int(r.integers(1, 4)))]
        if np.prod(self.shape) < 2:
            self.shape = [3, 2]
        self.axis = int(r.integers(0, len(self.shape)))
        self.block = int(r.integers(1, 6))
        form = r.integers(4)
        if form == 0:
            self.axis, self.block, of = None, 0, []
        elif form == 1:
            self.block, of = 0, [self.shape[self.axis]]
        else:
            of = blocks(self.shape, self.axis, self.block)
        self.dtype = np.float16 if r.integers(3) == 0 else np.float32
        self.scale = r.uniform(0.01, 0.2, of).astype(self.dtype)
        low, high = RANGES[kind]
        self.zero = r.integers(low, high + 1, of) if r.integers(2) else None
        self.attributes = {} if self.axis is None else {"axis": self.axis - (len(self.shape) if r.integers(2) else 0)}
        if self.block:
            self.attributes["block_size"] = self.block

    def inputs(self, model, x, scale_is_fed=False):
        names = [x, (model.fed if scale_is_fed else model.constant)("s", self.scale)]
        if self.zero is not None:
            model.initializers.append(stored("z", self.kind, self.zero))
            names.append("z")
        return names

    def numbers(self, x):
        zero = 0 if self.zero is None else spread(self.zero, self.shape, self.axis, self.block)
        return ((x - zero) * spread(self.scale, self.shape, self.axis, self.block).astype(np.float64)).astype(self.dtype)

    def quantized(self, x):
        zero = 0 if self.zero is None else spread(self.zero, self.shape, self.axis, self.block)
        steps = np.rint(x.astype(np.float32) / spread(self.scale, self.shape, self.axis, self.block).astype(np.float32))
        return np.clip(steps + zero, *RANGES[self.kind]).astype(np.int64)


def result(model, name, onnx_type, rank, types={}):
    """Of the model's one output; `types`: of inputs that NumPy has no type for."""
    inputs = [helper.make_tensor_value_info(n, types.get(n) or helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in model.feed.items()]
    graph = helper.make_graph(model.nodes, "g", inputs, [helper.make_tensor_value_info(name, onnx_type, [None] * rank)], model.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", model.opset)], ir_version=onnx.IR_VERSION)
    return made.SerializeToString()


@pytest.mark.parametrize("kind", RANGES)
def test_initializers_become_numbers(kind):
    """Also behind a product, whose weights they are."""
    for seed in range(8):
        case = Case(seed, kind)
        if kind == "INT8" and not case.block and case.zero is None:
            continue  # an INT8 tensor of 8.5
        x = integers(case.r, kind, case.shape)
        model = Model(25)
        model.initializers.append(stored("x", kind, x))
        model.node("DequantizeLinear", case.inputs(model, "x"), ["f"], **case.attributes)
        model.node("Add", ["f", model.fed("a", np.ones(case.shape, case.dtype))], ["y"])
        data = result(model, "y", helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype)), len(case.shape))
        got = outputs(data, model.feed)[0]["y"]
        np.testing.assert_allclose(got, case.numbers(x) + case.dtype(1), rtol=2e-3 if case.dtype == np.float16 else 1e-5, atol=1e-5, err_msg=f"seed {seed}")


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "UINT8"])
def test_products_with_weights_of_few_bits(kind):
    """As language models have them: blocks along the rows of a weight, nothing left to be dequantized at run time."""
    r = np.random.default_rng(2)
    rows, columns, block = 64, 24, 16
    w, s, z = integers(r, kind, (rows, columns)), r.uniform(0.01, 0.1, (rows // block, columns)).astype(np.float32), integers(r, kind, (rows // block, columns))
    x = r.standard_normal((3, rows)).astype(np.float32)
    model = Model(21)
    model.initializers += [stored("w", kind, w), stored("z", kind, z)]
    model.node("DequantizeLinear", ["w", model.constant("s", s), "z"], ["f"], axis=0, block_size=block)
    model.node("MatMul", [model.fed("x", x), "f"], ["y"])
    got, kinds = outputs(result(model, "y", TensorProto.FLOAT, 2), model.feed)
    np.testing.assert_allclose(got["y"], x @ ((w - z.repeat(block, 0)) * s.repeat(block, 0)), rtol=1e-4, atol=1e-4)
    assert trt.LayerType.DEQUANTIZE not in kinds and kinds.count(trt.LayerType.CONSTANT) == 1


@pytest.mark.parametrize("kind", RANGES)
def test_numbers_of_tensors(kind):
    """Q and DQ at run time; scales are initializers or not."""
    done = 0
    for seed in range(40):
        case = Case(seed, kind)
        if kind in HELD and not case.block:
            continue  # of 8.5: symmetric, on INT8
        done += 1
        x = integers(case.r, kind, case.shape)
        model = Model(25)
        model.fed("x", x.astype(HELD.get(kind, np.int32)))
        model.node("DequantizeLinear", case.inputs(model, "x", seed % 2 == 0), ["y"], **case.attributes)
        data = result(model, "y", helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype)), len(case.shape), {"x": getattr(TensorProto, kind)})
        np.testing.assert_allclose(outputs(data, model.feed)[0]["y"], case.numbers(x), rtol=2e-3 if case.dtype == np.float16 else 1e-5, atol=1e-4, err_msg=f"seed {seed}")
        f = (case.r.standard_normal(case.shape) * 3).astype(case.dtype)
        model = Model(25)
        inputs = case.inputs(model, model.fed("f", f), seed % 2 == 0)
        model.node("QuantizeLinear", inputs, ["y"], output_dtype=getattr(TensorProto, kind), **case.attributes)
        got = outputs(result(model, "y", getattr(TensorProto, kind), len(case.shape)), model.feed)[0]["y"]
        np.testing.assert_array_equal(got, case.quantized(f), err_msg=f"seed {seed}")
    assert done >= 10


def test_there_and_back():
    r = np.random.default_rng(0)
    x, s = r.standard_normal((4, 10)).astype(np.float32), r.uniform(0.05, 0.3, (4, 4)).astype(np.float32)
    for kind in RANGES:
        model = Model(25)
        z = integers(r, kind, (4, 4)) // 4
        model.initializers.append(stored("z", kind, z))
        model.node("QuantizeLinear", [model.fed("x", x), model.constant("s", s), "z"], ["q"], axis=1, block_size=3)
        model.node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=3)
        step, zero = (np.take(a.repeat(3, 1), range(10), 1) for a in (s, z))
        want = (np.clip(np.rint(x / step) + zero, *RANGES[kind]) - zero) * step
        np.testing.assert_allclose(outputs(result(model, "y", TensorProto.FLOAT, 2), model.feed)[0]["y"], want, rtol=1e-5, atol=1e-5, err_msg=kind)


@pytest.mark.parametrize("kind", SMALL_FLOATS)
@pytest.mark.parametrize("raw", [True, False])
def test_small_floats(kind, raw):
    """Every number of the type, beside what the onnx package reads."""
    number = getattr(TensorProto, kind)
    codes = list(range(256))
    tensor = TensorProto(name="w", data_type=number, dims=[512 if kind == "FLOAT4E2M1" else 256])
    if raw:
        tensor.raw_data = bytes(codes)
    else:
        tensor.int32_data.extend(codes)
    want = numpy_helper.to_array(tensor).astype(np.float32)
    model = Model(25)
    model.initializers.append(tensor)
    model.node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)
    model.node("Add", ["f", model.fed("x", np.zeros(want.shape, np.float32))], ["y"])
    np.testing.assert_array_equal(outputs(result(model, "y", TensorProto.FLOAT, 1), model.feed)[0]["y"], want)


@pytest.mark.parametrize("kind, scale", [("FLOAT8E4M3FN", "FLOAT"), ("FLOAT8E5M2", "FLOAT16"), ("FLOAT4E2M1", "FLOAT8E8M0"), ("FLOAT4E2M1", "FLOAT")])
def test_weights_of_small_floats(kind, scale):
    r = np.random.default_rng(5)
    weights = stored("w", kind, r.standard_normal((8, 6)))
    w = numpy_helper.to_array(weights).astype(np.float32)
    step = stored("s", scale, 2.0 ** r.integers(-3, 3, (2, 6)))
    s = numpy_helper.to_array(step).astype(np.float32).repeat(4, 0)
    x = r.standard_normal((2, 8)).astype(np.float32)
    model = Model(25)
    model.initializers += [weights, step]
    model.node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=4, output_dtype=TensorProto.FLOAT)
    model.node("MatMul", [model.fed("x", x), "f"], ["y"])
    np.testing.assert_allclose(outputs(result(model, "y", TensorProto.FLOAT, 2), model.feed)[0]["y"], x @ (w * s), rtol=1e-4, atol=1e-5)


def error(op, x, scale, zero=None, kind=TensorProto.FLOAT, **attributes):
    model = Model(25)
    inputs = [model.fed("x", x), model.constant("s", scale)]
    if zero is not None:
        model.initializers.append(zero)
        inputs.append("z")
    model.node(op, inputs, ["y"], **attributes)
    return parsed(result(model, "y", kind, x.ndim))[1] or ""


def test_what_is_refused():
    x, one = np.zeros((4, 6), np.float32), np.float32(1)
    z = lambda kind, *shape: stored("z", kind, np.zeros(shape, int))  # noqa: E731
    assert "do not fit block_size 2 along axis 1 of [4, 6]" in error("QuantizeLinear", x, np.ones((4, 2), np.float32), block_size=2)
    assert "do not fit block_size 2" in error("QuantizeLinear", x, np.ones(3, np.float32), block_size=2)
    assert "block_size is -1" in error("QuantizeLinear", x, np.ones((4, 3), np.float32), block_size=-1)
    assert "block_size is 9223372036854775807" in error("QuantizeLinear", x, np.ones((4, 3), np.float32), block_size=2**63 - 1)
    assert "axis" in error("QuantizeLinear", x, np.ones((4, 3), np.float32), block_size=2, axis=2)
    assert "its zero point [4, 2]" in error("QuantizeLinear", x, np.ones((4, 3), np.float32), z("INT8", 4, 2), block_size=2)
    assert "its scale is INT32" in error("QuantizeLinear", x, np.ones((4, 3), np.int32), block_size=2)
    assert "FLOAT8 or FLOAT4" in error("QuantizeLinear", x, one, z("FLOAT8E4M3FN"))
    assert "asks for FLOAT8E5M2" in error("QuantizeLinear", x, one, output_dtype=TensorProto.FLOAT8E5M2)
    assert "asks for INT32" in error("QuantizeLinear", x, one, output_dtype=TensorProto.INT32)
    assert "its input is INT8" in error("QuantizeLinear", x.astype(np.int8), np.ones((4, 3), np.float32), block_size=2)
    assert "its input is FLOAT" in error("DequantizeLinear", x, np.ones((4, 3), np.float32), block_size=2)
    assert "asks for INT64" in error("DequantizeLinear", x.astype(np.int16), one, output_dtype=TensorProto.INT64)
    for kind in SMALL_FLOATS:
        model = Model(25)
        model.fed("x", np.zeros(4, np.uint8))
        model.node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
        data = result(model, "y", TensorProto.FLOAT, 1, {"x": getattr(TensorProto, kind)})
        assert parsed(data)[1] == f"input 'x' has element type {kind}, which cannot be imported"
        model = Model(25)
        model.node("Cast", [model.fed("x", x)], ["y"], to=getattr(TensorProto, kind))
        assert f"asks for {kind}" in parsed(result(model, "y", getattr(TensorProto, kind), 2))[1]
