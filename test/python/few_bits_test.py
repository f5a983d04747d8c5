# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 2, 4 and 8 bits: MatMulNBits of ONNX Runtime beside it and beside NumPy."""

import os

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_models import outputs, parsed  # noqa: E402
from small import run  # noqa: E402

# Activations are left as they are on GPUs, whatever accuracy_level says.
rounds = pytest.mark.skipif(os.environ.get("TENSORWRIGHT_DEVICE") == "cuda", reason="SKIP: GPUs round no activations to 8 bits")
DTYPES = {"f": (np.float32, TensorProto.FLOAT), "h": (np.float16, TensorProto.FLOAT16)}


def packed(q, bits):
    """Integers [.., n] in bytes, the lower bits first, the last byte filled with zeros."""
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, -q.shape[-1] % (8 // bits))]).astype(np.uint8)
    q = q.reshape(*q.shape[:-1], -1, 8 // bits)
    return sum(q[..., i] << np.uint8(i * bits) for i in range(8 // bits)).astype(np.uint8)


class Case:
    """A node at random, and what it computes."""

    def __init__(self, seed, bits=None, kind=None):
        self.r = r = np.random.default_rng(seed)
        self.bits = bits or int(r.choice([2, 4, 8]))
        self.kind = kind or ("h" if r.integers(3) == 0 else "f")
        self.dtype, self.type = DTYPES[self.kind]
        self.block = int(r.choice([16, 32, 64, 128, 256]))
        self.k, self.n, self.m = int(r.integers(1, 500)), int(r.integers(1, 90)), int(r.choice([1, 2, 5, 19]))
        self.blocks = -(-self.k // self.block)
        self.q = r.integers(0, 1 << self.bits, (self.n, self.blocks * self.block))
        self.scales = r.uniform(0.01, 0.1, (self.n, self.blocks)).astype(self.dtype)
        self.zeros = r.integers(0, 1 << self.bits, (self.n, self.blocks)) if r.integers(2) else None
        self.zeros_are_floats = bool(r.integers(3) == 0)
        self.bias = r.normal(size=self.n).astype(self.dtype) if r.integers(3) == 0 else None
        self.groups = None
        self.flat = bool(r.integers(4) == 0)  # scales and zero points of one dimension, as exporters wrote them before
        self.x = r.normal(size=(self.m, self.k)).astype(self.dtype)
        self.attributes = {}

    def weights(self):
        groups = np.arange(self.k) // self.block if self.groups is None else self.groups
        zeros = np.full((self.n, self.blocks), 1 << (self.bits - 1)) if self.zeros is None else self.zeros
        return self.scales.astype(np.float64)[:, groups] * (self.q[:, :self.k] - zeros[:, groups])

    def expected(self):
        return self.x.astype(np.float64) @ self.weights().T + (0 if self.bias is None else self.bias.astype(np.float64))

    def model(self, shape=None, raw=True):
        initializers, names = [], ["x"]

        def add(name, array):
            names.append("" if array is None else name)
            if array is None:
                return
            if not raw and array.dtype == np.uint8:
                initializers.append(helper.make_tensor(name, TensorProto.UINT8, array.shape, array.flatten().tolist()))
            else:
                initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))

        flat = (lambda a: a.reshape(-1)) if self.flat else (lambda a: a)
        add("b", packed(self.q.reshape(self.n, self.blocks, self.block), self.bits))
        add("scales", flat(self.scales))
        zeros = self.zeros
        if zeros is not None:
            zeros = flat(zeros.astype(self.dtype) if self.zeros_are_floats else packed(zeros, self.bits))
        add("zeros", zeros)
        add("groups", None if self.groups is None else self.groups.astype(np.int32))
        add("bias", self.bias)
        while not names[-1]:
            names.pop()
        attributes = {"K": self.k, "N": self.n, "bits": self.bits, "block_size": self.block} | self.attributes
        node = helper.make_node("MatMulNBits", names, ["y"], "product", domain="com.microsoft", **attributes)
        shape = shape or list(self.x.shape)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", self.type, shape)],
                                  [helper.make_tensor_value_info("y", self.type, [*shape[:-1], self.n])], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def ours(model, feed, **options):
    results, kinds = outputs(model.SerializeToString(), feed, **options)
    assert trt.LayerType.PLUGIN_V2 in kinds
    return results["y"]


def refusal(model):
    return parsed(model.SerializeToString())[1]


def close(got, case, what=""):
    expected, error = case.expected(), 2e-3 if case.kind == "h" else 2e-5
    if case.attributes.get("accuracy_level") == 4:
        # x in 8 bits, each number to half of 1/127 of the largest of its block, of either sign: six deviations of a sum of them.
        blocks = np.abs(case.x.astype(np.float64)).max() / 127 / 12**0.5
        tolerance = 6 * blocks * np.linalg.norm(case.weights(), axis=1).max() + error * np.abs(expected).max()
    else:
        tolerance = error * np.abs(expected).max()
    assert got.shape == expected.shape and got.dtype == case.dtype
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("seed", range(40))
def test_beside_numpy(seed):
    case = Case(seed)
    case.attributes = {"accuracy_level": seed % 5}
    close(ours(case.model(raw=seed % 3 != 0), {"x": case.x}), case, f"seed {seed}")


def rounded(x, block):
    """x in 8 bits in blocks of a row, as accuracy_level 4 has it."""
    m, k = x.shape
    padded = np.pad(x, [(0, 0), (0, -k % block)]).reshape(m, -1, block).astype(np.float32)
    scale = np.abs(padded).max(2, keepdims=True) / np.float32(127)
    return (np.rint(padded / np.where(scale > 0, scale, 1)) * scale).reshape(m, -1)[:, :k].astype(np.float64)


@rounds
@pytest.mark.parametrize("seed", range(300, 316))
def test_eight_bits(seed):
    """Sums of what is left of x in 8 bits are exact, on CPUs; where the model does not say that x may be rounded, it is not."""
    case = Case(seed, kind="f")
    case.bias = None
    given, exact = case.x, case.expected()
    case.attributes = {"accuracy_level": 4}
    got = ours(case.model(), {"x": given})
    case.x = rounded(given, case.block)
    np.testing.assert_allclose(got, case.expected(), rtol=0, atol=1e-5 * np.abs(exact).max() + 2e-3 * np.abs(exact - case.expected()).max(), err_msg=f"seed {seed}")
    case.x = given
    for level in (0, 3):
        case.attributes = {"accuracy_level": level}
        np.testing.assert_allclose(ours(case.model(), {"x": given}), exact, rtol=0, atol=2e-5 * np.abs(exact).max(), err_msg=f"seed {seed}")


@rounds
def test_eight_bits_beside_onnx_runtime():
    """Both are as far from exact sums, to a factor of two, in blocks of 32."""
    for seed in range(400, 404):
        case = Case(seed, bits=4, kind="f")
        case.block, case.k, case.n, case.m = 32, 480, 64, 9
        case.blocks = case.k // case.block
        case.q = case.r.integers(0, 16, (case.n, case.k))
        case.scales = case.r.uniform(0.01, 0.1, (case.n, case.blocks)).astype(np.float32)
        case.zeros = case.bias = None
        case.x, case.attributes = case.r.normal(size=(case.m, case.k)).astype(np.float32), {"accuracy_level": 4}
        model = case.model()
        peer = runtime().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": case.x})[0]
        errors = [np.sqrt(np.mean((y - case.expected()) ** 2)) for y in (ours(model, {"x": case.x}), peer)]
        assert 0.5 < errors[0] / errors[1] < 2, errors


def runtime():
    return pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("seed", range(100, 124))
def test_beside_onnx_runtime(seed):
    """Accuracy level 0: sums of FP32 there, too."""
    case = Case(seed, bits=4 if seed % 3 else 8, kind="f")
    case.bias = None
    case.zeros_are_floats = case.zeros_are_floats and case.bits == 4  # of 8 bits it has integers alone
    model = case.model()
    peer = runtime().InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": case.x})[0]
    got = ours(model, {"x": case.x})
    close(got, case)
    np.testing.assert_allclose(got, peer, rtol=0, atol=3e-5 * np.abs(peer).max(), err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", range(200, 208))
def test_order_of_gptq(seed):
    """g_idx says the block of each row of the weights; its own order is none."""
    case = Case(seed)
    case.zeros_are_floats = False
    case.groups = np.arange(case.k) // case.block
    if seed % 4:
        case.r.shuffle(case.groups)
    if seed % 2:
        case.groups = np.pad(case.groups, (0, case.blocks * case.block - case.k))
    model = case.model()
    case.groups = case.groups[:case.k]
    close(ours(model, {"x": case.x}), case, f"seed {seed}")


def test_refit():
    """Scales and a bias are weights like others; the integers stay."""
    case = Case(11, bits=4, kind="f")
    case.bias, case.flat = case.r.normal(size=case.n).astype(np.float32), False
    (builder, network, _parser, logger), error = parsed(case.model().SerializeToString())
    assert error is None, error
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    close(run(engine, x=case.x)["y"], case)
    for factor in (3, 1e-3):  # FP16 has all scales of the first engine no more
        case.scales = (case.r.uniform(0.01, 0.1, case.scales.shape) * factor).astype(np.float32)
        case.bias = case.r.normal(size=case.n).astype(np.float32)
        refitter = trt.Refitter(engine, logger)
        assert {"scales", "bias"} <= set(refitter.get_all_weights())
        assert refitter.set_named_weights("scales", case.scales) and refitter.set_named_weights("bias", case.bias)
        assert refitter.refit_cuda_engine()
        close(run(engine, x=case.x)["y"], case)


def test_open_dimensions():
    case = Case(3, bits=4, kind="f")
    for rows in (1, 3, 7, 40):
        case.x = case.r.normal(size=(2, rows, case.k)).astype(np.float32)
        close(ours(case.model(["b", "s", case.k]), {"x": case.x}), case)


def test_no_rows():
    case = Case(4, kind="f")
    case.x = case.x[:0]
    assert ours(case.model(["s", case.k]), {"x": case.x}).shape == (0, case.n)


@pytest.mark.parametrize("attributes, says", [
    ({"bits": 3}, "weights of 3 bits"),
    ({"bits": 0}, "weights of 0 bits"),
    ({"block_size": 24}, "block_size is 24"),
    ({"block_size": 8}, "block_size is 8"),
    ({"block_size": 1 << 40}, "block_size"),
    ({"K": 0}, "'K' is 0"),
    ({"N": -1}, "'N' is -1"),
    ({"N": 2147483647, "K": 2147483647}, "K = 2147483647"),
    ({"N": 2147483647}, "more than 2^31"),
    ({"accuracy_level": 9}, "accuracy_level is 9"),
    ({"weight_prepacked": 1}, "weight_prepacked"),
    ({"block_size": 512}, "are not the"),
])
def test_refused(attributes, says):
    case = Case(5, bits=4, kind="f")
    case.block = 32
    case.k, case.blocks = 64, 2
    case.q, case.scales, case.x, case.zeros = case.q[:, :1].repeat(64, 1), case.scales[:, :1].repeat(2, 1), case.x[:, :1].repeat(64, 1), None
    case.attributes = attributes
    error = refusal(case.model())
    assert error and says in error, error


@pytest.mark.parametrize("cut", ["b", "scales", "zeros", "groups", "bias"])
def test_wrong_sizes(cut):
    case = Case(6, bits=4, kind="f")
    case.zeros, case.zeros_are_floats = case.r.integers(0, 16, (case.n, case.blocks)), False
    case.bias = case.r.normal(size=case.n).astype(np.float32)
    case.groups = np.arange(case.k) // case.block
    model = case.model()
    for tensor in model.graph.initializer:
        if tensor.name == cut:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array.reshape(-1)[:-1]), cut))
    error = refusal(model)
    assert error and "input" in error, error


def test_weights_are_fed():
    case = Case(7, bits=4, kind="f")
    model = case.model()
    model.graph.initializer.pop(0)
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.UINT8, [case.n, case.blocks, case.block // 2]))
    error = refusal(model)
    assert error and "initializer" in error, error


# --- DequantizeLinear in front of products ---

KINDS = {"INT4": (4, True), "UINT4": (4, False), "INT2": (2, True), "UINT2": (2, False), "INT8": (8, True), "UINT8": (8, False)}


def raw_tensor(name, kind, q):
    """An initializer with its integers in bytes."""
    bits, _ = KINDS[kind]
    tensor = onnx.TensorProto(name=name, data_type=getattr(TensorProto, kind), dims=q.shape)
    tensor.raw_data = packed(q.reshape(-1) & ((1 << bits) - 1), bits).tobytes()
    return tensor


class Dequantized:
    """x times weights that a DequantizeLinear makes, with a Transpose in between or not, by MatMul or Gemm."""

    def __init__(self, seed, kind):
        self.r = r = np.random.default_rng(seed)
        self.kind = kind
        bits, signed = KINDS[kind]
        low = -(1 << (bits - 1)) if signed else 0
        self.k, self.n, self.m = int(r.integers(16, 300)), int(r.integers(16, 70)), int(r.choice([1, 3, 20]))
        self.dtype, self.type = DTYPES["h" if r.integers(4) == 0 else "f"]
        self.turned = bool(r.integers(2))  # stored [n, k]
        self.op = "Gemm" if r.integers(3) == 0 else "MatMul"
        self.transposes = self.turned and (self.op == "MatMul" or bool(r.integers(2)))
        self.form = str(r.choice(["blocks", "columns", "one"]))
        self.block = int(r.choice([16, 32, 48, 128]))
        shape = [self.n, self.k] if self.turned else [self.k, self.n]
        along_k = 1 if self.turned else 0
        steps = {"blocks": [-(-d // self.block) if i == along_k else d for i, d in enumerate(shape)], "columns": [self.n], "one": []}[self.form]
        self.q = r.integers(low, low + (1 << bits), shape)
        self.scale = r.uniform(0.01, 0.1, steps).astype(self.dtype)
        self.zero = r.integers(low, low + (1 << bits), steps) if r.integers(2) else None
        self.axis = along_k if self.form == "blocks" else 1 - along_k
        self.along_k = along_k
        self.x = r.normal(size=(self.m, self.k)).astype(self.dtype)

    def spread(self, steps):
        if self.form == "blocks":
            return np.take(steps.repeat(self.block, self.along_k), range(self.k), self.along_k)
        return steps[:, None] if self.form == "columns" and self.turned else steps

    def weights(self):
        zero = 0 if self.zero is None else self.spread(self.zero)
        w = (self.q - zero) * self.spread(self.scale).astype(np.float64)
        return w.T if self.turned else w

    def model(self):
        initializers = [raw_tensor("q", self.kind, self.q), numpy_helper.from_array(self.scale, "s")]
        names = ["q", "s"]
        if self.zero is not None:
            initializers.append(raw_tensor("z", self.kind, self.zero))
            names.append("z")
        attributes = {"axis": self.axis} | ({"block_size": self.block} if self.form == "blocks" else {})
        nodes, w = [helper.make_node("DequantizeLinear", names, ["w"], **({} if self.form == "one" else attributes))], "w"
        if self.transposes:
            nodes.append(helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]))
            w = "wt"
        turn = {"transB": 1} if self.op == "Gemm" and self.turned and not self.transposes else {}
        nodes.append(helper.make_node(self.op, ["x", w], ["y"], **turn))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", self.type, self.x.shape)],
                                  [helper.make_tensor_value_info("y", self.type, [self.m, self.n])], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])

    def check(self, integers=True):
        results, kinds = outputs(self.model().SerializeToString(), {"x": self.x})
        expected = self.x.astype(np.float64) @ self.weights()
        tolerance = (3e-3 if self.dtype == np.float16 else 2e-5) * np.abs(expected).max()
        np.testing.assert_allclose(results["y"].astype(np.float64), expected, rtol=0, atol=tolerance)
        if integers is not None:
            assert (trt.LayerType.PLUGIN_V2 in kinds) == integers
        return kinds


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seed", range(12))
def test_dequantized(kind, seed):
    case = Dequantized(seed, kind)
    # Symmetric INT8 is a layer, of which the builder makes the same (passes/quantization/keep_integer_weights.cpp).
    is_layer = kind == "INT8" and case.zero is None and case.form != "blocks"
    case.check(not is_layer)


@pytest.mark.parametrize("change", ["blocks along n", "short blocks", "small", "scales along k"])
def test_floats_where_integers_cannot_be(change):
    case = Dequantized(3, "UINT4")
    case.turned = case.transposes = False
    case.op, case.form, case.zero, case.k, case.n = "MatMul", "blocks", None, 64, 32
    case.along_k = 0
    case.q = case.r.integers(0, 16, (64, 32))
    case.x = case.r.normal(size=(2, 64)).astype(case.dtype)
    case.m = 2
    if change == "small":
        case.n, case.q = 8, case.q[:, :8]
    case.block, case.axis = {"short blocks": (8, 0), "blocks along n": (16, 1)}.get(change, (32, 0))
    if change == "blocks along n":
        case.along_k, steps = 1, [64, 2]
        case.spread = lambda s: np.take(s.repeat(16, 1), range(32), 1)
    elif change == "scales along k":
        case.form, case.axis, steps = "columns", 0, [64]
        case.spread = lambda s: s[:, None]
    else:
        steps = [64 // case.block, case.n]
    case.scale = case.r.uniform(0.01, 0.1, steps).astype(case.dtype)
    case.check(False)


def test_several_readers():
    """One product takes the integers, another node the numbers."""
    case = Dequantized(5, "INT4")
    case.dtype, case.type = DTYPES["f"]
    case.x, case.scale = case.x.astype(np.float32), case.scale.astype(np.float32)
    model = case.model()
    model.graph.node.append(helper.make_node("ReduceSum", ["w"], ["sum"], keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("sum", case.type, []))
    results, kinds = outputs(model.SerializeToString(), {"x": case.x})
    assert trt.LayerType.PLUGIN_V2 in kinds
    expected = case.x.astype(np.float64) @ case.weights()
    np.testing.assert_allclose(results["y"], expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    np.testing.assert_allclose(results["sum"], case.weights().sum(), rtol=1e-4, atol=1e-3)


def test_numbers_are_an_output():
    case = Dequantized(6, "UINT4")
    model = case.model()
    model.graph.output.append(helper.make_tensor_value_info("w", case.type, case.q.shape))
    results, _ = outputs(model.SerializeToString(), {"x": case.x})
    w = case.weights().T if case.turned else case.weights()
    np.testing.assert_allclose(results["w"].astype(np.float64), w, rtol=2e-3 if case.dtype == np.float16 else 1e-6, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_symmetric_int8_layers(rows):
    """Weights of INT8 in front of a product whose other factor is not quantized stay integers for few rows: the same numbers."""
    case = Dequantized(9, "INT8")
    case.form, case.zero, case.turned, case.transposes, case.op = "columns", None, False, False, "MatMul"
    case.dtype, case.type = DTYPES["f"]
    case.along_k, case.axis, case.m = 0, 1, rows
    case.q, case.scale = case.r.integers(-128, 128, (case.k, case.n)), case.r.uniform(0.01, 0.1, case.n).astype(np.float32)
    case.x = case.r.normal(size=(rows, case.k)).astype(np.float32)
    case.check(None)
