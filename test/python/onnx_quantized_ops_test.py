# SPDX-License-Identifier: Apache-2.0
"""QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger and DynamicQuantizeLinear at random, beside ONNX Runtime."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
import tensorrt as trt
import tensorwright

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402

FIVE = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DynamicQuantizeLinear")


def same(got, want, step=0):
    """`step`: numbers on the edge between two may be the neighbour, rarely."""
    assert got.dtype == want.dtype or (got.dtype == np.int32 and want.dtype == np.int64), (got.dtype, want.dtype)
    assert got.shape == want.shape
    difference = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert difference.max(initial=0) <= step, f"{(difference > 0).sum()} of {difference.size}, by {difference.max()}"
    assert (difference > 0).sum() <= max(1, difference.size // 500)
    assert want.size < 8 or len(np.unique(want)) > 1


def integers(r, dtype, shape):
    info = np.iinfo(dtype)
    return r.integers(info.min, info.max + 1, shape).astype(dtype)


def zero(r, dtype, kind):
    """Symmetric, at an end, or anywhere."""
    info = np.iinfo(dtype)
    middle = 128 if dtype == np.uint8 else 0
    return dtype({"middle": middle, "end": info.min, "any": int(r.integers(info.min, info.max + 1))}[kind])


def result(r, dtype, kind, sums):
    """Scale and zero point with which most of the results lie inside of the type."""
    middle = 128 if dtype == np.uint8 else 0
    point = dtype(middle + int(r.integers(-60, 61))) if kind == "any" else zero(r, dtype, kind)
    return np.float32(np.abs(sums).max() / 120), point


def scale(r):
    return np.float32(r.uniform(0.005, 0.05))


TYPES = [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)]


@pytest.mark.parametrize("seed", range(36))
def test_qlinear_conv(seed):
    r = np.random.default_rng(seed)
    of_x, of_w = TYPES[seed % 3]
    kind = ["middle", "end", "any"][seed // 3 % 3]
    spatial = 2 if seed % 4 else 1 + 2 * (seed // 4 % 2)
    group = int(r.choice([1, 1, 2, 4]))
    c, m = group * int(r.integers(1, 5)), group * int(r.integers(1, 5))
    x_shape = (int(r.integers(1, 3)), c, *r.integers(5, 9, spatial))
    kernel = [int(k) for k in r.integers(1, 4, spatial)]
    model = Model()
    # ONNX Runtime has zero points of weights per tensor, and per channel symmetric ones alone.
    per_channel = bool(r.integers(2))
    ws = r.uniform(0.005, 0.05, m).astype(np.float32) if per_channel else scale(r)
    wz = (np.zeros(m, of_w) if of_w == np.int8 else np.full(m, 128, of_w)) if per_channel else of_w(zero(r, of_w, "middle"))
    if not per_channel and seed % 5 == 0 and of_w == np.uint8:
        wz = zero(r, of_w, "any")
    model.fed("x", integers(r, of_x, x_shape))
    xs, xz, w = scale(r), zero(r, of_x, kind), integers(r, of_w, (m, c // group, *kernel))
    summands = np.prod(w.shape[1:])
    ys, yz = result(r, of_x, kind, xs * np.max(ws) * 80 * 70 * np.sqrt(summands))
    inputs = ["x", model.constant("xs", xs), model.constant("xz", xz), model.constant("w", w), model.constant("ws", ws),
              model.constant("wz", wz), model.constant("ys", ys), model.constant("yz", yz)]
    if r.integers(2):
        inputs.append(model.constant("b", r.integers(-5000, 5000, m).astype(np.int32)))
    attributes = {"group": group, "kernel_shape": kernel, "strides": [int(s) for s in r.integers(1, 3, spatial)]}
    way = r.integers(3)
    if way == 0:
        attributes["pads"] = [int(p) for p in r.integers(0, 2, 2 * spatial)]
        attributes["dilations"] = [int(d) for d in r.integers(1, 3, spatial)]
    elif way == 1:
        attributes["auto_pad"] = "SAME_UPPER" if r.integers(2) else "SAME_LOWER"
    model.node("QLinearConv", inputs, ["y"], **attributes)
    data = model.bytes(y=(of_x, [None] * (2 + spatial)))
    got, kinds = outputs(data, model.feed, fp16=seed % 2 == 0)
    same(got["y"], model.answer(data)["y"], step=1)
    if kind == "middle" and way != 1 and of_w == np.int8:
        assert trt.LayerType.DEQUANTIZE in kinds and trt.LayerType.QUANTIZE in kinds


@pytest.mark.parametrize("seed", range(27))
def test_qlinear_matmul(seed):
    r = np.random.default_rng(100 + seed)
    of_a, of_b = TYPES[seed % 3]
    kind = ["middle", "end", "any"][seed // 3 % 3]
    m, k, n = (int(v) for v in r.integers(1, 70, 3))
    batch = [(), (2,), (2, 3)][seed // 9 % 3]
    model = Model()
    a, az, scale_a = integers(r, of_a, (*batch, m, k)), zero(r, of_a, kind), scale(r)
    model.fed("a", a)
    # Columns have scales of their own; activations on both sides do not.
    is_weight = seed % 2 == 0
    b = integers(r, of_b, (k, n) if is_weight else (*batch, k, n))
    (model.constant if is_weight else model.fed)("b", b)
    columns = is_weight and seed % 4 == 0
    bs = r.uniform(0.005, 0.05, n).astype(np.float32) if columns else scale(r)
    bz = np.full(n, zero(r, of_b, "middle"), of_b) if columns else zero(r, of_b, kind)
    ys, yz = result(r, of_a, kind, scale_a * bs * ((a.astype(float) - az) @ (b.astype(float) - bz)))
    model.node("QLinearMatMul", ["a", model.constant("as", scale_a), model.constant("az", az), "b", model.constant("bs", bs),
                                 model.constant("bz", bz), model.constant("ys", ys), model.constant("yz", yz)], ["y"])
    data = model.bytes(y=(of_a, [None] * (2 + len(batch))))
    got, _ = outputs(data, model.feed, fp16=seed % 2 == 1)
    same(got["y"], model.answer(data)["y"], step=1)


@pytest.mark.parametrize("seed", range(24))
def test_matmul_integer(seed):
    r = np.random.default_rng(200 + seed)
    of_a, of_b = TYPES[seed % 3]
    m, n = (int(v) for v in r.integers(2, 40, 2))
    k = int(r.integers(1, 250))
    batch = [(), (2,)][seed % 2]
    model = Model(13)
    model.fed("a", integers(r, of_a, (*batch, m, k)))
    (model.constant if seed % 4 else model.fed)("b", integers(r, of_b, (k, n)))
    inputs = ["a", "b"]
    if seed % 5:
        az = zero(r, of_a, "any")
        inputs.append(model.constant("az", az) if seed % 2 else model.fed("az", az))
        if seed % 3:
            inputs.append(model.constant("bz", zero(r, of_b, "any") if seed % 5 == 1 else np.full(n, zero(r, of_b, "middle"), of_b)))
    model.node("MatMulInteger", inputs, ["y"])
    data = model.bytes(y=(np.int32, [None] * (2 + len(batch))))
    got, _ = outputs(data, model.feed, fp16=seed % 3 == 0)
    same(got["y"], model.answer(data)["y"])


def convolved(x, w, pads, strides, group):
    """Sums of whole numbers: x [n, c, h, w] without zero point, padded."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    n, c, h, width = x.shape
    m, cg, kh, kw = w.shape
    oh, ow = (h - kh) // strides[0] + 1, (width - kw) // strides[1] + 1
    y = np.zeros((n, m, oh, ow), np.int64)
    for o in range(m):
        first = o // (m // group) * cg
        for i in range(oh):
            for j in range(ow):
                part = x[:, first:first + cg, i * strides[0]:i * strides[0] + kh, j * strides[1]:j * strides[1] + kw]
                y[:, o, i, j] = (part * w[o]).sum(axis=(1, 2, 3))
    return y


@pytest.mark.parametrize("seed", range(24))
def test_conv_integer(seed):
    """Types that ONNX Runtime does not have, too: beside loops."""
    r = np.random.default_rng(300 + seed)
    of_x, of_w = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8), (np.int8, np.uint8)][seed % 4]
    group = 1 + seed % 2
    cg, mg = int(r.integers(1, 9)), int(r.integers(1, 5))
    kernel = [3, 3] if seed % 3 == 0 else [int(v) for v in r.integers(1, 4, 2)]
    strides = [1, 1] if seed % 3 == 0 else [int(v) for v in r.integers(1, 3, 2)]
    pads = [int(v) for v in r.integers(0, 3, 4)] if seed % 2 else [0, 0, 0, 0]
    model = Model(13)
    x, w = integers(r, of_x, (2, group * cg, 9, 8)), integers(r, of_w, (group * mg, cg, *kernel))
    model.fed("x", x)
    inputs = ["x", model.constant("w", w) if seed % 5 else model.fed("w", w)]
    xz, wz = zero(r, of_x, "any"), np.zeros((), of_w)
    if seed % 4 != 3:
        inputs.append(model.constant("xz", xz) if seed % 3 else model.fed("xz", xz))
    else:
        xz = np.zeros((), of_x)
    if seed % 4 == 0:
        wz = integers(r, of_w, group * mg) if seed % 8 else zero(r, of_w, "any")
        inputs.append(model.constant("wz", wz))
    said = {"kernel_shape": kernel} if seed % 7 < 4 else {}  # as ONNX Runtime's quantizer does
    model.node("ConvInteger", inputs, ["y"], pads=pads, strides=strides, group=group, **said)
    data = model.bytes(y=(np.int32, [None] * 4))
    got, _ = outputs(data, model.feed, fp16=seed % 2 == 0)
    centered = w.astype(np.int64) - np.asarray(wz, np.int64).reshape([-1, 1, 1, 1] if np.ndim(wz) else [])
    same(got["y"], convolved(x.astype(np.int64) - int(xz), centered, pads, strides, group))


@pytest.mark.parametrize("seed", range(12))
def test_dynamic_quantize_linear(seed):
    r = np.random.default_rng(400 + seed)
    shape = [(64,), (5, 7), (2, 3, 4), ()][seed % 4]
    x = {0: r.standard_normal(shape), 1: r.uniform(1, 9, shape), 2: -r.uniform(1, 9, shape)}[seed % 3].astype(np.float32)
    if seed == 11:
        x = np.zeros((4, 4), np.float32)
    model = Model(13)
    model.node("DynamicQuantizeLinear", [model.fed("x", x)], ["y", "s", "z"])
    data = model.bytes(y=(np.uint8, x.shape), s=(np.float32, []), z=(np.uint8, []))
    got, _ = outputs(data, model.feed)
    want = model.answer(data)
    np.testing.assert_allclose(got["s"], want["s"], rtol=1e-6)
    assert got["z"] == want["z"]
    assert np.abs(got["y"].astype(int) - want["y"].astype(int)).max(initial=0) <= 1


@pytest.mark.parametrize("seed", range(12))
def test_network(seed):
    """As ONNX Runtime's quantizer writes it: numbers to integers, convolutions, a pool, a product, and back."""
    r = np.random.default_rng(500 + seed)
    of_x, of_w = TYPES[seed % 3]
    kind = ["middle", "end", "any"][seed % 3 if seed < 6 else 2]
    model = Model()
    model.fed("x", (3 * r.standard_normal((2, 3, 10, 10))).astype(np.float32))

    def pair(name, step):
        return [model.constant(name + "s", np.float32(step)), model.constant(name + "z", zero(r, of_x, "middle" if name == "x" else kind))]

    def weights(name, shape):
        return [model.constant(name, integers(r, of_w, shape)), model.constant(name + "s", np.float32(0.01)),
                model.constant(name + "z", zero(r, of_w, "middle"))]
    x, y1, y2, y3 = pair("x", 0.07), pair("u", 0.3), pair("v", 1.5), pair("t", 20.0)
    model.node("QuantizeLinear", ["x", *x], ["q0"])
    model.node("QLinearConv", ["q0", *x, *weights("w1", (8, 3, 3, 3)), *y1], ["q1"], pads=[1, 1, 1, 1])
    model.node("MaxPool", ["q1"], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    model.node("QLinearConv", ["p", *y1, *weights("w2", (8, 8, 3, 3)), *y2], ["q2"])
    model.node("Flatten", ["q2"], ["f"])
    model.node("QLinearMatMul", ["f", *y2, *weights("w3", (8 * 9, 5)), *y3], ["q3"])
    model.node("DequantizeLinear", ["q3", *y3], ["y"])
    data = model.bytes(y=(np.float32, [2, 5]))
    got, kinds = outputs(data, model.feed)
    want = model.answer(data)["y"]
    assert np.abs(got["y"] - want).max() <= 2 * 20.0 and len(np.unique(want)) > 1
    assert kinds.count(trt.LayerType.QUANTIZE) >= 4 and trt.LayerType.UNARY not in kinds  # on integers throughout


MICROSOFT = {"domain": "com.microsoft"}


def quantized_input(model, r, name, of, kind, shape):
    return [model.fed(name, integers(r, of, shape)), model.constant(name + "s", scale(r)), model.constant(name + "z", zero(r, of, kind))]


@pytest.mark.parametrize("of", [np.uint8, np.int8])
@pytest.mark.parametrize("kind", ["middle", "end", "any"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearAveragePool", "QLinearSigmoid",
                                "QLinearLeakyRelu", "QLinearSoftmax"])
def test_functions_of_onnx_runtime(op, kind, of):
    r = np.random.default_rng(sum(map(ord, op + kind)) + (of == np.int8))
    model = Model()
    x = quantized_input(model, r, "x", of, kind, (2, 3, 6, 5))
    largest, attributes = 255 * 0.05, {}
    if op in ("QLinearAdd", "QLinearMul", "QLinearConcat"):
        x += quantized_input(model, r, "u", of, "middle" if kind == "end" else kind, (3, 1, 5) if op != "QLinearConcat" else (2, 2, 6, 5))
    if op == "QLinearMul":
        largest = 40
    elif op == "QLinearAveragePool":
        attributes = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1], "count_include_pad": 1}
    elif op == "QLinearConcat":
        attributes = {"axis": 1}
    elif op == "QLinearLeakyRelu":
        attributes = {"alpha": 0.2}
    elif op == "QLinearSoftmax":
        largest, attributes = 1, {"axis": 3, "opset": 13}
    elif op == "QLinearSigmoid":
        largest = 1
    y = [model.constant("ys", np.float32(largest / 128)), model.constant("yz", zero(r, of, "middle"))]
    model.node(op, y + x if op == "QLinearConcat" else x + y, ["y"], **attributes, **MICROSOFT)
    data = model.bytes(y=(of, [None] * 4))
    got, _ = outputs(data, model.feed)
    want = model.answer(data)["y"].astype(int)
    difference = np.abs(got["y"].astype(int) - want)
    # ONNX Runtime's SoftMax and Sigmoid look numbers up in tables of their own.
    assert got["y"].dtype == of and difference.max() <= 1 and np.mean(difference > 0) < (0.1 if "Soft" in op or "Sig" in op else 0.02)
    assert len(np.unique(want)) > 2


@pytest.mark.parametrize("seed", range(16))
def test_gemm_of_onnx_runtime(seed):
    r = np.random.default_rng(600 + seed)
    of_a, of_b = TYPES[seed % 3]
    kind = ["middle", "end", "any"][seed // 3 % 3]
    m, k, n = (int(v) for v in r.integers(2, 40, 3))
    trans_a, trans_b = int(seed % 5 == 0), int(r.integers(2))
    model = Model()
    a, az, sa, sb = integers(r, of_a, (k, m) if trans_a else (m, k)), zero(r, of_a, kind), scale(r), scale(r)
    b, bz = integers(r, of_b, (n, k) if trans_b else (k, n)), zero(r, of_b, "middle")
    model.fed("a", a)
    (model.fed if seed % 4 == 3 else model.constant)("b", b)
    inputs = ["a", model.constant("as", sa), model.constant("az", az), "b", model.constant("bs", sb), model.constant("bz", bz)]
    inputs.append(model.constant("c", r.integers(-9000, 9000, n).astype(np.int32)) if r.integers(2) else "")
    isFloat = seed % 4 == 1
    if not isFloat:
        product = (a.T if trans_a else a).astype(float) @ (b.T if trans_b else b)
        ys, yz = result(r, of_a, kind, sa * sb * (np.abs(product).max() + 1) * np.ones(1))
        inputs += [model.constant("ys", ys), model.constant("yz", yz)]
    elif not inputs[-1]:
        inputs.pop()
    model.node("QGemm", inputs, ["y"], transA=trans_a, transB=trans_b, **MICROSOFT)
    data = model.bytes(y=(np.float32 if isFloat else of_a, [m, n]))
    got, want = outputs(data, model.feed)[0]["y"], model.answer(data)["y"]
    if isFloat:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    else:
        assert np.abs(got.astype(int) - want.astype(int)).max() <= 1 and np.mean(got != want) < 0.01


@pytest.mark.parametrize("activations, weights, per_channel", [("QUInt8", "QInt8", False), ("QUInt8", "QInt8", True), ("QUInt8", "QUInt8", False),
                                                               ("QInt8", "QInt8", True)])
def test_what_the_quantizer_writes(activations, weights, per_channel, tmp_path):
    """A network with a residual sum, depthwise convolution and classifier, quantized by ONNX Runtime's tool."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    r = np.random.default_rng(8)
    model = Model(13)
    model.fed("x", r.standard_normal((4, 3, 16, 16)).astype(np.float32))

    def weight(name, *shape):
        return model.constant(name, (0.3 * r.standard_normal(shape)).astype(np.float32))
    model.node("Conv", ["x", weight("w1", 8, 3, 3, 3), weight("b1", 8)], ["c1"], pads=[1, 1, 1, 1])
    model.node("Relu", ["c1"], ["r1"])
    model.node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2])
    model.node("Conv", ["p1", weight("w2", 8, 1, 3, 3), weight("b2", 8)], ["c2"], pads=[1, 1, 1, 1], group=8)
    model.node("Add", ["c2", "p1"], ["sum"])
    model.node("LeakyRelu", ["sum"], ["r2"], alpha=0.1)
    model.node("AveragePool", ["r2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2])
    model.node("Concat", ["p2", "p2"], ["two"], axis=1)
    model.node("GlobalAveragePool", ["two"], ["g"])
    model.node("Flatten", ["g"], ["f"])
    model.node("Gemm", ["f", weight("w4", 10, 16), weight("b4", 10)], ["y"], transB=1)
    (tmp_path / "float.onnx").write_bytes(model.bytes(y=(np.float32, [4, 10])))

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.batches = iter([model.feed])

        def get_next(self):
            return next(self.batches, None)
    kinds = quantization.QuantType
    quantization.quantize_static(str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), Reader(), quant_format=quantization.QuantFormat.QOperator,
                                 activation_type=kinds[activations], weight_type=kinds[weights], per_channel=per_channel)
    data = (tmp_path / "q.onnx").read_bytes()
    got, _ = outputs(data, model.feed)
    want = model.answer(data)["y"]
    assert np.linalg.norm(got["y"] - want) <= 0.03 * np.linalg.norm(want)


def test_dynamic_product():
    """As dynamic quantization writes it."""
    r = np.random.default_rng(7)
    model = Model(13)
    model.fed("x", r.standard_normal((4, 64)).astype(np.float32))
    model.node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    model.node("MatMulInteger", ["q", model.constant("w", integers(r, np.int8, (64, 32))), "z"], ["i"])
    model.node("Cast", ["i"], ["f"], to=TensorProto.FLOAT)
    model.node("Mul", ["f", "s"], ["y"])
    data = model.bytes(y=(np.float32, [4, 32]))
    got, _ = outputs(data, model.feed)
    want = model.answer(data)["y"]
    assert np.linalg.norm(got["y"] - want) <= 1e-2 * np.linalg.norm(want)
    compiled = tensorwright.compile(data, precision="int8", cache=False)
    np.testing.assert_allclose(np.asarray(compiled(model.feed["x"])).reshape(want.shape), got["y"], rtol=1e-5)


def test_trtexec_imports_them(tmp_path):
    r = np.random.default_rng(3)
    model = Model(13)
    model.fed("a", integers(r, np.uint8, (4, 8)))
    model.node("MatMulInteger", ["a", model.constant("b", integers(r, np.int8, (8, 3)))], ["y"])
    (tmp_path / "m.onnx").write_bytes(model.bytes(y=(np.int32, [4, 3])))
    tool = pathlib.Path(trt.tensorrt.__file__).resolve().parents[2] / "bin/trtexec"
    environment = {k: v for k, v in os.environ.items() if k != "TENSORWRIGHT_ONNX_QUANTIZED_OPS"}
    done = subprocess.run([tool, f"--onnx={tmp_path / 'm.onnx'}", "--int8", "--device=cpu", "--buildOnly"], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_quantizers_of_such_a_model_name_the_variable():
    model = Model(13)
    scale, zero = model.constant("s", np.float32(0.1)), model.constant("z", np.uint8(7))
    model.node("QuantizeLinear", [model.fed("x", np.zeros((2, 2), np.float32)), scale, zero], ["q"])
    model.node("MatMulInteger", ["q", model.constant("w", np.ones((2, 2), np.int8)), zero], ["y"])
    _, error = parsed(model.bytes(y=(np.int32, [2, 2])), allowed=False)
    assert "(QuantizeLinear): its zero point is UINT8" in error and "TENSORWRIGHT_ONNX_QUANTIZED_OPS=1" in error


@pytest.mark.parametrize("op", FIVE)
def test_not_without_the_variable(op):
    model = Model(13)
    model.node(op, [model.fed("x", np.zeros((1, 1), np.float32))], ["y"])
    graph = helper.make_graph(model.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, None)])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    kept, error = parsed(data, allowed=False)
    assert f"no importer for operator '{op}' in opset 13" in error and not kept[2].supports_operator(op)
    assert "TENSORWRIGHT_ONNX_QUANTIZED_OPS=1" in error
    kept, error = parsed(data)
    assert "no importer" not in (error or "") and kept[2].supports_operator(op)


@pytest.mark.parametrize("change, sentence", [
    ({"xs": np.float32(0)}, "scales must be positive and finite"),
    ({"xs": np.float32(np.inf)}, "scales must be positive and finite"),
    ({"w": np.zeros((2, 3, 3), np.int8)}, "does not fit input of shape"),
    ({"w": np.zeros((2, 3, 3, 3), np.float32)}, "input 3 is FLOAT; INT8 and UINT8 are possible"),
    ({"wz": np.zeros(7, np.int8)}, "there are 7 zero points for 2 channels"),
    ({"b": np.zeros(9, np.int32)}, "the bias is INT32[9], not INT32[2]"),
    ({"b": np.zeros(2, np.float32)}, "the bias is FLOAT[2], not INT32[2]"),
    ({"group": 0}, "group is 0"),
    ({"group": 1 << 40}, "group is"),
    ({"pads": [1 << 40, 0, 0, 0]}, "pads"),
    ({"strides": [0, 1]}, "strides"),
    ({"xz": np.zeros(4, np.uint8)}, "a scale or zero point has shape [4]"),
    ({"yz": np.int32(3)}, "input 7 is INT32; INT8 and UINT8 are possible"),
    ({"w": np.zeros((0, 3, 3, 3), np.int8)}, ""),
])
def test_hostile(change, sentence):
    parts = {"xs": np.float32(0.1), "xz": np.uint8(3), "w": np.ones((2, 3, 3, 3), np.int8), "ws": np.float32(0.1), "wz": np.int8(0),
             "ys": np.float32(0.1), "yz": np.uint8(1), "b": np.zeros(2, np.int32)}
    attributes = {k: v for k, v in change.items() if k not in parts}
    parts.update({k: v for k, v in change.items() if k in parts})
    model = Model()
    names = [model.constant(name, value) for name, value in parts.items()]
    model.node("QLinearConv", [model.fed("x", np.zeros((1, 3, 8, 8), np.uint8)), *names], ["y"], **attributes)
    graph = helper.make_graph(model.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, None)], model.initializers)
    _, error = parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    assert error is not None and sentence in error
