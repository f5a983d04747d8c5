# SPDX-License-Identifier: Apache-2.0
"""Functions that ONNX models define themselves, beside ONNX's reference."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import AttributeProto, TensorProto, helper, numpy_helper  # noqa: E402
from onnx.inliner import inline_local_functions  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import outputs, parsed  # noqa: E402

HERE = "here"


def node(op, inputs, results, domain="", refs=None, **attributes):
    """refs: attributes that are those of the call, with their types."""
    n = helper.make_node(op, inputs, results, domain=domain, **attributes)
    for name, (of, kind) in (refs or {}).items():
        n.attribute.append(AttributeProto(name=name, ref_attr_name=of, type=kind))
    return n


def function(name, inputs, results, nodes, attributes=(), defaults=(), opset=18, domain=HERE):
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(HERE, 1)]
    return helper.make_function(domain, name, inputs, results, nodes, sets, list(attributes), list(defaults))


def model(nodes, functions, feed, results=("y",), initializers=(), opset=18):
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feed.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=n) for n in results],
                              [numpy_helper.from_array(a, n) for n, a in dict(initializers).items()])
    return helper.make_model(graph, functions=functions, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(HERE, 1)], ir_version=9)


def check(made, feed):
    names = [o.name for o in made.graph.output]
    want = ReferenceEvaluator(inline_local_functions(made)).run(names, feed)
    got = outputs(made.SerializeToString(), feed)[0]
    for name, array in zip(names, want):
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def test_calls():
    """Two calls, names like those around, an attribute of the call and one with a default."""
    f = function("f", ["a", "b"], ["y"], [
        node("LeakyRelu", ["a"], ["x"], refs={"alpha": ("slope", AttributeProto.FLOAT)}),
        node("Constant", [], ["t"], refs={"value_float": ("by", AttributeProto.FLOAT)}),
        node("Mul", ["x", "t"], ["z"]), node("Sub", ["z", "b"], ["y"])], ["slope"], [helper.make_attribute("by", 3.0)])
    nodes = [node("f", ["x", "w"], ["z"], HERE, slope=0.25), node("f", ["z", "x"], ["y"], HERE, slope=0.5, by=0.5)]
    made = model(nodes, [f], {"x": X}, ["y", "z"], {"w": X[:1] * 2})
    assert len(made.functions[0].attribute_proto) == 1
    leaky = lambda x, slope: np.where(x < 0, slope * x, x)  # noqa: E731
    z = leaky(X, 0.25) * 3 - X[:1] * 2
    got = outputs(made.SerializeToString(), {"x": X})[0]
    np.testing.assert_allclose(got["z"], z, rtol=1e-6)
    np.testing.assert_allclose(got["y"], leaky(z, 0.5) * 0.5 - X, rtol=1e-5, atol=1e-6)


def test_functions_in_functions():
    g = function("g", ["x"], ["y"], [node("Exp", ["x"], ["e"]), node("Neg", ["e"], ["y"])])
    f = function("f", ["x"], ["y", "z"], [node("g", ["x"], ["t"], HERE), node("g", ["t"], ["z"], HERE), node("Add", ["t", "z"], ["y"])])
    check(model([node("f", ["x"], ["y", "z"], HERE)], [f, g], {"x": X}, ["y", "z"]), {"x": X})
    check(model([node("f", ["x"], ["y"], HERE)], [f, g], {"x": X}), {"x": X})


def test_inputs_that_are_left_out():
    f = function("f", ["x", "low", "high"], ["y"], [node("Clip", ["x", "low", "high"], ["y"])])
    for inputs in (["x"], ["x", "", "half"], ["x", "half"], ["x", "half", ""]):
        check(model([node("f", inputs, ["y"], HERE)], [f], {"x": X}, ["y"], {"half": np.float32(0.5)}), {"x": X})


def test_another_operator_set():
    """Softmax of opset 11 flattens behind the axis; Squeeze has its axes as attribute."""
    f = function("f", ["x"], ["y"], [node("Softmax", ["x"], ["s"], axis=1), node("Squeeze", ["s"], ["y"], axes=[0])], opset=11)
    x = X.reshape(1, 3, 4)
    made = model([node("f", ["x"], ["t"], HERE), node("Softmax", ["t"], ["y"], axis=0)], [f], {"x": x})
    e = np.exp(x.reshape(1, 12).astype(np.float64))
    s = (e / e.sum()).reshape(3, 4)
    np.testing.assert_allclose(outputs(made.SerializeToString(), {"x": x})[0]["y"], np.exp(s) / np.exp(s).sum(0), rtol=1e-5)


def test_weights_inside():
    """Constants of functions are weights of layers; the model's bytes are gone by then."""
    w = np.random.default_rng(1).standard_normal((5, 4, 1, 1)).astype(np.float32)
    f = function("f", ["x"], ["y"], [node("Constant", [], ["w"], value=numpy_helper.from_array(w)), node("Conv", ["x", "w"], ["y"])])
    x = np.random.default_rng(2).standard_normal((1, 4, 3, 3)).astype(np.float32)
    check(model([node("f", ["x"], ["y"], HERE)], [f], {"x": x}), {"x": x})


def test_conditions_inside():
    """A branch reads the function's own names, and an attribute of the call."""
    def branch(name, *nodes):
        return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)])
    then = branch("then", node("Elu", ["t"], ["then_y"], refs={"alpha": ("slope", AttributeProto.FLOAT)}))
    other = branch("other", node("Neg", ["t"], ["other_y"]))
    f = function("f", ["c", "x"], ["y"], [node("Abs", ["x"], ["a"]), node("Neg", ["a"], ["t"]), node("If", ["c"], ["y"], then_branch=then, else_branch=other)], ["slope"])
    for c in (True, False):
        feed = {"c": np.array(c), "x": X}
        made = model([node("f", ["c", "x"], ["y"], HERE, slope=0.3)], [f], feed)
        want = 0.3 * np.expm1(-np.abs(X)) if c else np.abs(X)
        np.testing.assert_allclose(outputs(made.SerializeToString(), feed)[0]["y"], want, rtol=1e-5, atol=1e-6)
        made = model([node("f", ["k", "x"], ["y"], HERE, slope=0.3)], [f], {"x": X}, ["y"], {"k": np.array(c)})
        np.testing.assert_allclose(outputs(made.SerializeToString(), {"x": X})[0]["y"], want, rtol=1e-5, atol=1e-6)


def test_operators_stay_operators():
    """A function of an operator's name is not looked at where the operator is imported."""
    f = function("Relu", ["x"], ["y"], [node("Neg", ["x"], ["y"])], domain="")
    made = model([node("Relu", ["x"], ["y"])], [f], {"x": X})
    np.testing.assert_array_equal(outputs(made.SerializeToString(), {"x": X})[0]["y"], np.maximum(X, 0))
    f = function("Nothing", ["x"], ["y"], [node("Neg", ["x"], ["y"])], domain="")
    made = model([node("Nothing", ["x"], ["y"])], [f], {"x": X})
    np.testing.assert_array_equal(outputs(made.SerializeToString(), {"x": X})[0]["y"], -X)


def error(nodes, functions, **more):
    return parsed(model(nodes, functions, {"x": X}, **more).SerializeToString())[1] or ""


def test_what_is_refused():
    f = function("f", ["x"], ["y"], [node("Neg", ["x"], ["y"])])
    call = [node("f", ["x"], ["y"], HERE)]
    assert error(call, [f]) == ""
    assert "is defined twice" in error(call, [f, f])
    assert "1 inputs and 1 outputs, the node 2 and 1" in error([node("f", ["x", "x"], ["y"], HERE)], [f])
    assert "the node 1 and 2" in error([node("f", ["x"], ["y", "z"], HERE)], [f])
    assert "which no node, input or initializer defines" in error(call, [function("f", ["a"], ["y"], [node("Neg", ["x"], ["y"])])])
    assert "function 'f', node 0 (Softmax)" in error(call, [function("f", ["x"], ["y"], [node("Softmax", ["x"], ["y"], axis=7)])])
    assert "no node, input or initializer defines 'q'" in error(call, [function("f", ["x"], ["q"], [node("Neg", ["x"], ["y"])])])
    assert "deeper than" in error(call, [function("f", ["x"], ["y"], [node("f", ["x"], ["y"], HERE)])])
    many = [function(f"f{i}", ["x"], ["y"], [node(f"f{i + 1}", ["x"], ["t"], HERE), node(f"f{i + 1}", ["t"], ["y"], HERE)]) for i in range(25)]
    many.append(function("f25", ["x"], ["y"], [node("Neg", ["x"], ["y"])]))
    assert "more than 262144 nodes" in error([node("f0", ["x"], ["y"], HERE)], many)
    large = numpy_helper.from_array(np.zeros(1 << 22, np.float32))
    heavy = function("f6", ["x"], ["y"], [node("Constant", [], ["c"], value=large), node("Neg", ["x"], ["y"])])
    wide = [function(f"f{i}", ["x"], ["y"], [node(f"f{i + 1}", ["x"], ["t"], HERE), node(f"f{i + 1}", ["t"], ["y"], HERE)]) for i in range(6)]
    wide.append(function("f", ["x"], ["y"], [node("f0", ["x"], ["t"], HERE), node("f0", ["t"], ["y"], HERE)]))
    assert "more than 1073741824 bytes" in error(call, [*wide, heavy])
