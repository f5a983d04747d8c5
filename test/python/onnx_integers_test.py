# SPDX-License-Identifier: Apache-2.0
"""Integers of ONNX that the API has no type for, beside NumPy; and where NumPy has no such operator, ONNX's reference."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402

SMALL = [np.uint8, np.int16, np.uint16]
TYPES = [*SMALL, np.uint32, np.uint64]


def numbers(r, dtype, shape, largest=None):
    info = np.iinfo(dtype)
    high = min(info.max, 2**31 - 1) if largest is None else largest
    return r.integers(info.min, high + 1, shape).astype(dtype)


def check(model, want):
    """The network's outputs are UINT8 where the model's are, else INT32."""
    data = model.bytes(**{name: (a.dtype, [None] * a.ndim) for name, a in want.items()})
    got = outputs(data, model.feed)[0]
    for name, array in want.items():
        assert got[name].dtype == (array.dtype if array.dtype in (np.uint8, np.float32, bool) else np.int32)
        np.testing.assert_array_equal(got[name], array.astype(np.int64) if array.dtype.kind in "iu" else array)


BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
          "Div": lambda a, b: a // b if a.dtype.kind == "u" else np.trunc(a / b).astype(a.dtype), "Mod": np.mod}


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", SMALL)
def test_arithmetic_wraps(op, dtype):
    r = np.random.default_rng(sum(map(ord, op)) + np.dtype(dtype).num)
    a, b = numbers(r, dtype, (3, 17)), numbers(r, dtype, (17,))
    if op == "Mul":
        a, b = numbers(r, dtype, (3, 17), 3000 % (np.iinfo(dtype).max + 1)), numbers(r, dtype, (17,), 200)
    if op in ("Div", "Mod"):
        b[b == 0] = 3
    model = Model()
    model.node(op, [model.fed("a", a), model.fed("b", b)], ["y"])
    check(model, {"y": BINARY[op](a, b).astype(dtype)})
    model = Model()  # with a constant
    model.node(op, [model.fed("a", a), model.constant("b", b)], ["y"])
    check(model, {"y": BINARY[op](a, b).astype(dtype)})


@pytest.mark.parametrize("dtype", TYPES)
def test_moves_and_counts(dtype):
    r = np.random.default_rng(5)
    x = numbers(r, dtype, (2, 3, 4), 250)
    model = Model()
    model.node("Transpose", [model.fed("x", x)], ["t"], perm=[1, 0, 2])
    model.node("Slice", ["t", model.constant("from", np.array([1])), model.constant("to", np.array([3]))], ["s"])
    model.node("Concat", ["s", model.constant("c", x[:1, :2].transpose(1, 0, 2))], ["y"], axis=1)
    model.node("Less", ["y", model.constant("l", dtype(9))], ["b"])
    model.node("ArgMax", ["x"], ["i"], axis=2, keepdims=0)
    model.node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0)
    y = np.concatenate([x.transpose(1, 0, 2)[1:3], x[:1, :2].transpose(1, 0, 2)], axis=1)
    check(model, {"y": y, "b": y < 9, "i": x.argmax(axis=2), "m": x.max(axis=1)})


@pytest.mark.parametrize("dtype", TYPES)
def test_where_gather_and_sums(dtype):
    r = np.random.default_rng(6)
    a, b, where = numbers(r, dtype, (4, 5), 250), numbers(r, dtype, (4, 5), 250), r.integers(0, 2, (4, 5)).astype(bool)
    model = Model(13)
    model.node("Where", [model.fed("c", where), model.fed("a", a), model.fed("b", b)], ["w"])
    model.node("Add", ["w", "a"], ["y"])
    model.node("ReduceSum", ["w"], ["s"], keepdims=0)
    model.node("Gather", ["w", model.constant("k", np.array([3, 0, 1]))], ["g"])
    w = np.where(where, a, b)
    check(model, {"w": w, "y": (w + a).astype(dtype), "s": w.sum(dtype=dtype), "g": w[[3, 0, 1]]})


@pytest.mark.parametrize("source", [*TYPES, np.int32, np.float32, bool])
@pytest.mark.parametrize("to", [*TYPES, np.int32, np.float32, bool])
def test_casts(source, to):
    r = np.random.default_rng(9)
    x = (r.integers(0, 255, 40) if source in (np.float32, bool) else numbers(r, source, 40, min(np.iinfo(source).max, 70000))).astype(source)
    if source in (np.int16, np.int32) and to in (np.uint32, np.uint64):
        x = np.abs(x)  # beyond INT32 otherwise
    if to == np.uint8:
        x = (x % 256).astype(source) if source not in (bool, np.uint8) else x  # the API's own conversion to UINT8 clamps
    model = Model(13)
    model.node("Cast", [model.fed("x", x)], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    check(model, {"y": x.astype(to)})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(dtype, direction):
    r = np.random.default_rng(10)
    if dtype == np.int16:
        dtype = np.uint8
    bits = np.iinfo(dtype).bits
    x, by = numbers(r, dtype, 60), r.integers(0, bits, 60).astype(dtype)
    if bits > 16 and direction == "LEFT":  # what INT32 holds
        x, by = (x % 1000).astype(dtype), (by % 21).astype(dtype)
    model = Model(13)
    model.node("BitShift", [model.fed("x", x), model.fed("by", by)], ["y"], direction=direction)
    check(model, {"y": np.left_shift(x, by) if direction == "LEFT" else np.right_shift(x, by)})


@pytest.mark.parametrize("bits", [4, -4])
@pytest.mark.parametrize("count", [6, 7])
def test_halves_of_bytes(bits, count):
    """INT4 and UINT4 initializers."""
    r = np.random.default_rng(11)
    values = r.integers(-8, 8, count) if bits < 0 else r.integers(0, 16, count)
    values[:2] = (-8, 7) if bits < 0 else (15, 8)
    packed = np.append(values & 15, 0)[:count + count % 2].reshape(-1, 2)
    raw = (packed[:, 0] | packed[:, 1] << 4).astype(np.uint8).tobytes()
    model = Model(21)
    tensor = TensorProto(name="w", data_type=TensorProto.INT4 if bits < 0 else TensorProto.UINT4, dims=[count], raw_data=raw)
    model.initializers.append(tensor)
    model.node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)
    model.node("Add", ["f", model.fed("x", np.ones(count, np.float32))], ["y"])
    check(model, {"y": (values + 1).astype(np.float32)})


def test_bfloat16():
    values = np.array([1.5, -3, 1e30, 0], np.float32)
    model = Model(13)
    model.initializers.append(TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[4], raw_data=(values.view(np.uint32) >> 16).astype(np.uint16).tobytes()))
    model.node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)
    model.node("Add", ["f", model.fed("x", np.zeros(4, np.float32))], ["y"])
    data = model.bytes(y=(np.float32, [4]))
    np.testing.assert_allclose(outputs(data, model.feed)[0]["y"], values, rtol=0.01)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("op, answer", [("ReduceMax", np.any), ("ReduceMin", np.all)])
def test_truth_is_reduced(op, answer, keep):
    x = np.random.default_rng(3).integers(0, 2, (3, 4, 2)).astype(bool)
    model = Model(20)
    model.node(op, [model.fed("x", x), model.constant("axes", np.array([1]))], ["y"], keepdims=keep)
    check(model, {"y": answer(x, axis=1, keepdims=bool(keep))})


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int16])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(dtype, mode):
    reference = pytest.importorskip("onnx.reference")
    x = numbers(np.random.default_rng(4), dtype, (1, 2, 5, 6), 200)
    x = np.maximum(x, 0)
    model = Model(13)
    model.node("Resize", [model.fed("x", x), "", model.constant("s", np.array([1, 1, 2, 1.5], np.float32))], ["y"], mode=mode)
    data = model.bytes(y=(dtype, [None] * 4))
    got = outputs(data, model.feed)[0]["y"]
    floats = Model(13)
    floats.node("Resize", [floats.fed("x", x.astype(np.float32)), "", floats.constant("s", np.array([1, 1, 2, 1.5], np.float32))], ["y"], mode=mode)
    want = reference.ReferenceEvaluator(onnx.load_from_string(floats.bytes(y=(np.float32, [None] * 4)))).run(None, floats.feed)[0]
    if dtype == np.uint8:
        want = np.clip(want, 0, 255)
    assert np.abs(got.astype(float) - np.trunc(want)).max() <= (0 if mode == "nearest" else 1)
    assert np.mean(got != np.trunc(want)) < 0.05


def test_large_numbers_are_clamped():
    model = Model(13)
    model.node("Add", [model.fed("x", np.zeros(2, np.uint32)), model.constant("c", np.array([2**32 - 1, 5], np.uint32))], ["y"])
    data = model.bytes(y=(np.uint32, [2]))
    kept, error = parsed(data)
    assert error is None and any("outside the range of INT32" in line for line in kept[3].lines)
    np.testing.assert_array_equal(outputs(data, model.feed)[0]["y"], [2**31 - 1, 5])


def test_not_of_unsigned_numbers():
    for dtype, error in ((np.uint32, "beyond those of INT32"), (np.uint16, None)):
        model = Model(18)
        x = np.array([3, 0, 40000], dtype)
        model.node("BitwiseNot", [model.fed("x", x)], ["y"])
        data = model.bytes(y=(dtype, [3]))
        if error:
            assert error in parsed(data)[1]
        else:
            check(model, {"y": np.invert(x)})


def test_strings_are_refused():
    graph = helper.make_graph([helper.make_node("Identity", ["s"], ["t"])], "g", [helper.make_tensor_value_info("s", TensorProto.STRING, [1])],
                              [helper.make_tensor_value_info("t", TensorProto.STRING, [1])])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    assert "element type STRING, which cannot be imported" in parsed(data)[1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_in_loops_and_branches(dtype):
    """Numbers that wrap on every trip."""
    r = np.random.default_rng(12)
    x, step = numbers(r, dtype, 5), numbers(r, dtype, 5)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def value(name, shape, of=kind):
        return helper.make_tensor_value_info(name, of, shape)
    body = helper.make_graph([helper.make_node("Add", ["c", "step"], ["d"]), helper.make_node("Identity", ["go"], ["on"])], "body",
                             [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("c", [5])],
                             [value("on", [], TensorProto.BOOL), value("d", [5]), value("d", [5])])
    yes, no = (helper.make_graph([helper.make_node("Add", ["x", name], [name + "y"])], name, [], [value(name + "y", [5])]) for name in ("step", "last"))
    model = Model(17)
    model.fed("x", x)
    model.fed("step", step)
    model.node("Loop", [model.constant("n", np.array(4, np.int64)), "", "x"], ["last", "all"], body=body)
    model.node("If", [model.fed("which", np.array(False))], ["y"], then_branch=yes, else_branch=no)
    trips = [(x + k * step.astype(np.int64)).astype(dtype) for k in range(1, 5)]
    check(model, {"last": trips[-1], "all": np.stack(trips), "y": (x + trips[-1]).astype(dtype)})


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("source", ["constant", "input", "sum"])
def test_maxima_of_integers(dtype, source):
    """Pooling has no layer on INT32, which constants and results of arithmetic are."""
    x = numbers(np.random.default_rng(2), dtype, (1, 2, 4, 6), 200)
    model = Model()
    if source == "sum":
        model.node("Add", [model.fed("x", x), model.constant("zero", np.zeros(1, dtype))], ["s"])
    name = {"constant": model.constant, "input": model.fed, "sum": lambda *_: "s"}[source]("x", x)
    model.node("MaxPool", [name], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    model.node("Cast", ["p"], ["i"], to=TensorProto.INT32)
    one = np.int32(1)
    model.node("Add", ["i", model.fed("one", np.array([one]))], ["y"])
    want = x.astype(np.int32).reshape(1, 2, 2, 2, 3, 2).max((3, 5)) + one
    check(model, {"y": want})


def test_outputs_of_a_type_that_is_not_said():
    """They are of the type of what they hold, not its form inside of the network, which is less by 128."""
    x = np.arange(0, 240, 7, dtype=np.uint8)
    model = Model()
    model.node("DequantizeLinear", [model.fed("x", x), model.constant("s", np.float32(0.5))], ["f"])
    model.node("QuantizeLinear", ["f", "s", model.constant("z", np.uint8(3))], ["y"])
    file = onnx.load_from_string(model.bytes(y=(np.uint8, [None])))
    file.graph.output[0].ClearField("type")
    got = outputs(file.SerializeToString(), model.feed)[0]
    assert got["y"].dtype == np.uint8
    np.testing.assert_array_equal(got["y"], np.minimum(x.astype(int) + 3, 255))
