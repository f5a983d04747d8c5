# SPDX-License-Identifier: Apache-2.0
"""Names of dimensions that are sums of others' names, and of channels."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx_attention_models import engine_of, held  # noqa: E402
from onnx_models import parsed  # noqa: E402
from small import run  # noqa: E402


def model(*names):
    """y = x + the sum of a mask [b, this name] over a, whose first dimension has each of the other names."""
    inputs = [helper.make_tensor_value_info("mask", TensorProto.INT64, ["b", names[0]])]
    inputs += [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [n, 2]) for i, n in enumerate(names[1:])]
    nodes = [helper.make_node("Concat", [f"x{i}" for i in range(len(names) - 1)], ["all"], axis=0),
             helper.make_node("Cast", ["mask"], ["floats"], to=TensorProto.FLOAT),
             helper.make_node("MatMul", ["floats", "all"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def feed_of(r, length, *lengths):
    feed = {f"x{i}": r.standard_normal((n, 2)).astype(np.float32) for i, n in enumerate(lengths)}
    return {"mask": r.integers(0, 2, (2, length)), **feed}


@pytest.mark.parametrize("name, names", [("past + s", ["past", "s"]), ("s+past", ["past", "s"]), ("a + a", ["a", "a"]), (" past +  s ", ["past", "s"]),
                                         ("past + 3", ["past", 3]), ("x y + z", ["x y", "z"]), ("1 + past + s", [1, "past", "s"])])
def test_sums(name, names):
    r = np.random.default_rng(1)
    same = names[0] == names[1]
    sizes = [n if isinstance(n, int) else 2 if same else i + 2 for i, n in enumerate(names)]
    feed = feed_of(r, sum(sizes), *sizes)
    more = [n if isinstance(n, int) else s + 3 for n, s in zip(names, sizes)]
    engine = engine_of(model(name, *names), [feed, feed_of(r, sum(more), *more)])
    got = run(engine, **held(feed))["y"]
    np.testing.assert_allclose(got, feed["mask"] @ np.concatenate([feed[f"x{i}"] for i in range(len(names))]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, size", [("3", 3), ("0", 0), ("12345678901", -1), ("3.0", -1), ("-3", -1), ("a3", -1)])
def test_numbers(name, size):
    (_, network, *_), error = parsed(model("past + s", "past", name))
    assert error is None and network.get_input(2).shape[0] == size


@pytest.mark.parametrize("name", ["past", "past + nobody", "+", "past +", "+ s", "++", " ", "past + 99999999999999999999", "past - s", "past+past+past+"])
def test_other_names(name):
    """They say nothing: the import does not fail."""
    assert parsed(model(name, "past", "s"))[1] is None


def test_a_mask_that_is_too_short():
    r = np.random.default_rng(2)
    data = model("past + s", "past", "s")
    engine = engine_of(data, [feed_of(r, 5, 2, 3), feed_of(r, 1, 1, 1), feed_of(r, 9, 4, 5)])
    with pytest.raises(AssertionError):
        run(engine, **held(feed_of(r, 4, 2, 3)))


@pytest.mark.parametrize("op, shape, kernel, group", [("Conv", (2, 6, 9), (4, 6, 3), 1), ("Conv", (1, 6, 7, 8), (4, 3, 3, 2), 2), ("Conv", (1, 2, 5, 4, 6), (3, 2, 2, 2, 2), 1),
                                                      ("ConvTranspose", (2, 6, 9), (6, 4, 3), 1), ("ConvTranspose", (1, 6, 5, 4), (6, 2, 3, 3), 3)])
def test_channels(op, shape, kernel, group):
    """Their number is the kernel's where the model names it, as exporters of speech models do."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="SKIP: onnxruntime is not installed")
    r = np.random.default_rng(sum(shape))
    names = ["batch", "channels", *(f"size {i}" for i in range(len(shape) - 2))]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, names)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))]
    weights = onnx.numpy_helper.from_array(r.standard_normal(kernel).astype(np.float32), "w")
    node = helper.make_node(op, ["x", "w"], ["y"], group=group, strides=[2] * (len(shape) - 2), pads=[1] * 2 * (len(shape) - 2))
    graph = helper.make_graph([node], "g", inputs, outputs, [weights])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    feeds = [{"x": r.standard_normal((b, shape[1], *(s + more for s in shape[2:]))).astype(np.float32)} for b, more in ((1, 0), (shape[0], 2), (3, 5))]
    engine, session = engine_of(data, feeds), onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for feed in feeds:
        np.testing.assert_allclose(run(engine, **feed)["y"], session.run(None, feed)[0], rtol=1e-4, atol=1e-5)
