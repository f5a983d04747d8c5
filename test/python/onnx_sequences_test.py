# SPDX-License-Identifier: Apache-2.0
"""Sequences and optional values of ONNX, which are lists of the importer: at random, beside ONNX Runtime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402


def agree(model, **wanted):
    data = model.bytes(**wanted)
    got, answer = outputs(data, model.feed)[0], model.answer(data)
    for name in wanted:
        np.testing.assert_allclose(got[name], answer[name], rtol=1e-6, err_msg=name)
        assert got[name].shape == answer[name].shape
    return answer


def count(model, name, at):
    return model.constant(name, np.array(at, np.int64))


@pytest.mark.parametrize("seed", range(24))
def test_lists(seed):
    """Inserted, erased, taken out, and put together again."""
    r = np.random.default_rng(seed)
    model = Model(17)
    tensors = [model.fed(f"x{i}", r.standard_normal((2, int(r.integers(1, 4)), 3)).astype(np.float32)) for i in range(5)]
    if seed % 2:
        model.node("SequenceConstruct", tensors[:3], ["s0"])
        length = 3
    else:
        model.node("SequenceEmpty", [], ["s0"])
        length = 0
    for step in range(6):
        name, before = f"s{step + 1}", f"s{step}"
        if length > 1 and r.integers(2):
            at = int(r.integers(-length, length))
            model.node("SequenceErase", [before, count(model, f"p{step}", at)] if r.integers(4) else [before], [name])
            length -= 1
        else:
            at = int(r.integers(-length, length + 1))
            inputs = [before, tensors[int(r.integers(5))]]
            model.node("SequenceInsert", [*inputs, count(model, f"p{step}", at)] if r.integers(4) else inputs, [name])
            length += 1
    model.node("ConcatFromSequence", ["s6"], ["y"], axis=int(r.choice([1, -2])))
    model.node("SequenceLength", ["s6"], ["n"])
    model.node("SequenceAt", ["s6", count(model, "at", int(r.integers(-length, length)))], ["z"])
    assert agree(model, y=(np.float32, [None] * 3), z=(np.float32, [None] * 3), n=(np.int64, []))["n"] == length


@pytest.mark.parametrize("seed", range(18))
def test_split(seed):
    r = np.random.default_rng(seed)
    axis = int(r.integers(-3, 3))
    x = r.standard_normal((4, 6, 5)).astype(np.float32)
    model = Model(17)
    inputs, attributes = [model.fed("x", x)], {"axis": axis}
    if seed % 3 == 0:
        attributes["keepdims"] = int(r.integers(2))
    elif seed % 3 == 1:
        inputs.append(count(model, "split", int(r.integers(1, 4))))
    else:
        first = int(r.integers(1, 3))
        inputs.append(count(model, "split", [first, x.shape[axis] - first - 1, 1]))
    model.node("SplitToSequence", inputs, ["s"], **attributes)
    model.node("SequenceAt", ["s", count(model, "i", -1)], ["last"])
    model.node("SequenceAt", ["s", count(model, "j", 0)], ["first"])
    model.node("SequenceLength", ["s"], ["n"])
    rank = 2 if attributes.get("keepdims", 1) == 0 else 3
    wanted = {"last": (np.float32, [None] * rank), "first": (np.float32, [None] * rank), "n": (np.int64, [])}
    if seed % 3 == 0:
        model.node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)
        wanted["y"] = (np.float32, [None] * (rank + 1))
    agree(model, **wanted)


def value(name, shape=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


@pytest.mark.parametrize("seed", range(6))
def test_map(seed):
    """The body for each element, with another sequence or one tensor beside it."""
    r = np.random.default_rng(seed)
    model = Model(17)
    shapes = [(int(n), 3) for n in r.integers(1, 5, 3)]
    model.node("SequenceConstruct", [model.fed(f"a{i}", r.standard_normal(s).astype(np.float32)) for i, s in enumerate(shapes)], ["a"])
    if seed % 2:
        model.node("SequenceConstruct", [model.fed(f"b{i}", r.standard_normal(s).astype(np.float32)) for i, s in enumerate(shapes)], ["b"])
    else:
        model.fed("b", r.standard_normal(3).astype(np.float32))
    body = helper.make_graph([helper.make_node("Add", ["p", "q"], ["t"]), helper.make_node("Relu", ["t"], ["u"]),
                              helper.make_node("Mul", ["p", "k"], ["v"])], "body", [value("p"), value("q")], [value("u"), value("v")])
    model.fed("k", np.float32([2.5]))  # from around
    model.node("SequenceMap", ["a", "b"], ["s", "t"], body=body)
    model.node("ConcatFromSequence", ["s"], ["y"], axis=0)
    model.node("ConcatFromSequence", ["t"], ["z"], axis=0)
    agree(model, y=(np.float32, [None] * 2), z=(np.float32, [None] * 2))


@pytest.mark.parametrize("stop", [None, 2])
def test_loop_over_a_sequence(stop):
    """Elements in turn, the results in a list and stacked; the number of trips is the length, or the body ends it."""
    r = np.random.default_rng(1)
    model = Model(17)
    model.node("SequenceConstruct", [model.fed(f"x{i}", r.standard_normal((2, 3)).astype(np.float32)) for i in range(4)], ["s"])
    model.node("SequenceEmpty", [], ["none"])
    model.node("SequenceLength", ["s"], ["n"])
    model.constant("yes", np.array(True))
    nodes = [helper.make_node("SequenceAt", ["s", "i"], ["x"]), helper.make_node("Add", ["sum", "x"], ["total"]),
             helper.make_node("SequenceInsert", ["list", "total"], ["longer"])]
    if stop is None:
        nodes.append(helper.make_node("Identity", ["go"], ["on"]))
    else:
        nodes += [helper.make_node("Constant", [], ["limit"], value_int=stop), helper.make_node("Less", ["i", "limit"], ["on"])]
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(nodes, "body", [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("sum", [2, 3]),
                                             sequence("list", TensorProto.FLOAT, None)],
                             [value("on", [], TensorProto.BOOL), value("total", [2, 3]), sequence("longer", TensorProto.FLOAT, None), value("x", [2, 3])])
    model.node("Loop", ["n", "yes", model.fed("zero", np.zeros((2, 3), np.float32)), "none"], ["sum_y", "list_y", "stack"], body=body)
    model.node("ConcatFromSequence", ["list_y"], ["lists"], axis=1)
    agree(model, sum_y=(np.float32, [2, 3]), lists=(np.float32, [2, None]), stack=(np.float32, [None, 2, 3]))


def test_optional():
    r = np.random.default_rng(1)
    model = Model(18)
    model.fed("x", r.standard_normal(4).astype(np.float32))
    model.node("Optional", ["x"], ["o"])
    model.node("OptionalHasElement", ["o"], ["has"])
    model.node("OptionalGetElement", ["o"], ["y"])
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [4]))
    model.node("Optional", [], ["none"], type=kind.optional_type.elem_type)
    model.node("OptionalHasElement", ["none"], ["hasnot"])
    yes, no = (helper.make_graph([helper.make_node(op, ["y"], [out])], op, [], [value(out, [4])]) for op, out in (("Relu", "p"), ("Neg", "q")))
    model.node("If", ["hasnot"], ["z"], then_branch=yes, else_branch=no)
    agree(model, y=(np.float32, [4]), z=(np.float32, [4]), has=(bool, []), hasnot=(bool, []))


def test_sequence_as_an_output():
    model = Model(17)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    model.node("SplitToSequence", [model.fed("x", x)], ["y"])
    model.initializers.append(helper.make_tensor("unused", TensorProto.FLOAT, [1], [0]))
    graph = helper.make_graph(model.nodes, "g", [value("x", [3, 2])], [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    got = outputs(data, model.feed)[0]
    assert sorted(got) == ["y_0", "y_1", "y_2"]
    for i in range(3):
        np.testing.assert_array_equal(got[f"y_{i}"], x[i:i + 1])


def repeated(depth, op):
    """Loops in loops, each of which runs as often as it may, around a sequence."""
    sequence = helper.make_tensor_sequence_value_info
    nodes = [helper.make_node(op, ["l0", "x"] if op == "SequenceInsert" else ["l0"], ["m0"])]
    for d in range(depth):
        body = helper.make_graph([*nodes, helper.make_node("Identity", [f"go{d}"], [f"on{d}"])], "body",
                                 [value(f"i{d}", [], TensorProto.INT64), value(f"go{d}", [], TensorProto.BOOL), sequence(f"l{d}", TensorProto.FLOAT, None)],
                                 [value(f"on{d}", [], TensorProto.BOOL), sequence(f"m{d}", TensorProto.FLOAT, None)])
        nodes = [helper.make_node("Loop", ["many", "yes", f"l{d + 1}"], [f"m{d + 1}"], body=body)]
    model = Model(17)
    model.constant("many", np.array(1 << 40, np.int64))
    model.constant("yes", np.array(True))
    model.fed("x", np.zeros(1, np.float32))
    model.nodes = [helper.make_node("SequenceEmpty", [], [f"l{depth}"]), *nodes, helper.make_node("SequenceLength", [f"m{depth}"], ["n"])]
    return model.bytes(n=(np.int64, []))


@pytest.mark.parametrize("op", ["SequenceInsert", "Identity"])
@pytest.mark.parametrize("depth", [1, 3])
def test_trips_without_end(depth, op):
    error = parsed(repeated(depth, op))[1]
    assert "more than 4096 elements" in error or "repeated for each trip" in error


@pytest.mark.parametrize("op, inputs, sentence", [
    ("SequenceAt", ["s", "nine"], "position 9 is out of range for 2 places"),
    ("SequenceAt", ["s", "x"], "position must be an initializer!"),
    ("SequenceAt", ["s", "half"], "it must be one integer"),
    ("SequenceAt", ["x", "nine"], "input 0 is a tensor, not a sequence"),
    ("SequenceErase", ["s", "nine"], "position 9 is out of range for 2 places"),
    ("SequenceInsert", ["s", "s"], "a sequence of sequences"),
    ("SequenceInsert", ["s", "x", "nine"], "position 9 is out of range"),
    ("Relu", ["s"], "input 0 is a sequence; the operator takes tensors"),
    ("Add", ["x", "none"], "input 1 is an optional value that is not there; the operator takes tensors"),
    ("OptionalGetElement", ["none"], "the optional value is not there"),
    ("Identity", ["s"], ""),
    ("SplitToSequence", ["x", "nothing"], "split is 0"),
    ("SplitToSequence", ["x", "list"], "the parts have 2 elements along axis 0, the tensor has 3"),
])
def test_refusals(op, inputs, sentence):
    model = Model(17)
    model.fed("x", np.zeros(3, np.float32))
    for name, array in {"nine": np.int64(9), "half": np.float32(0.5), "nothing": np.int64(0), "list": np.array([1, 1], np.int64)}.items():
        model.constant(name, np.asarray(array))
    model.node("SequenceConstruct", ["x", "x"], ["s"])
    model.nodes.append(helper.make_node("Optional", [], ["none"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [1])))
    model.node(op, inputs, ["y"])
    graph = helper.make_graph(model.nodes, "g", [value("x", [3])], [value("y")], model.initializers)
    _, error = parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    assert (error is None) == (sentence == "") and sentence in (error or "")


def test_sequences_are_no_inputs():
    graph = helper.make_graph([helper.make_node("SequenceLength", ["s"], ["n"])], "g", [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
                              [value("n", [], TensorProto.INT64)])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    assert "inputs of a network are tensors, not sequences or maps" in parsed(data)[1]
