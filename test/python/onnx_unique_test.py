# SPDX-License-Identifier: Apache-2.0
"""Unique beside NumPy: the outputs' sizes are the run's."""

import numpy as np
import pytest
import tensorrt as trt

pytest.importorskip("onnx")
from onnx_models import Model, parsed  # noqa: E402
from small import Room, Tensors  # noqa: E402


def results(data, feed):
    (builder, network, _, logger), error = parsed(data)
    assert error is None, error
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, logger.lines[-3:]
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    context, tensors, rooms = engine.create_execution_context(), Tensors(), {}
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        if name in feed:
            assert context.set_tensor_address(name, tensors.given(name, feed[name]))
        else:
            rooms[name] = Room(tensors)
            assert context.set_output_allocator(name, rooms[name])
    assert context.execute_async_v3(0)
    tensors.memory.wait(0)
    return {name: room.array(trt.nptype(engine.get_tensor_dtype(name))) for name, room in rooms.items()}


def answer(x, axis, ordered):
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        inverse = np.argsort(order)[inverse]
        y, first, counts = np.take(y, order, axis=axis or 0), first[order], counts[order]
    return {"y": y, "first": first, "inverse": inverse, "counts": counts}


@pytest.mark.parametrize("seed", range(40))
def test_random(seed):
    r = np.random.default_rng(seed)
    dtype = [np.float32, np.int32, np.int32, np.float16, np.uint8][seed % 5]
    shape = [(1,), (37,), (5, 3), (4, 6, 2), (2, 3, 4, 2), (300,)][seed % 6]
    x = r.integers(0, [2, 9, 1000][seed % 3] if dtype != np.uint8 else 5, shape).astype(dtype) - (dtype != np.uint8)
    x = x.astype(dtype)
    axis = None if seed % 4 == 0 or len(shape) == 1 and seed % 8 else int(r.integers(-len(shape), len(shape)))
    if axis is not None and seed % 3:  # slices that come again
        x = np.take(x, r.integers(0, max(x.shape[axis] // 2, 1), x.shape[axis]), axis=axis)
    model = Model()
    attributes = {"sorted": int(seed % 7 < 5)} | ({} if axis is None else {"axis": axis})
    model.node("Unique", [model.fed("x", x)], ["y", "first", "inverse", "counts"], **attributes)
    data = model.bytes(y=(dtype, [None] * (x.ndim if axis is not None else 1)), first=(np.int64, [None]), inverse=(np.int64, [None]), counts=(np.int64, [None]))
    got, want = results(data, model.feed), answer(x, axis, attributes["sorted"])
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("ordered", [0, 1])
def test_nan_and_infinities(ordered):
    x = np.array([3, np.nan, -np.inf, 3, np.nan, np.inf, -0.0, 0.0], np.float32)
    model = Model()
    model.node("Unique", [model.fed("x", x)], ["y", "first", "inverse", "counts"], sorted=ordered)
    data = model.bytes(y=(np.float32, [None]), first=(np.int64, [None]), inverse=(np.int64, [None]), counts=(np.int64, [None]))
    got, want = results(data, model.feed), answer(x, None, ordered)
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("shape, attributes, sentence", [
    ((5000,), {}, "5000 elements of 1 numbers are more than are compared"),
    ((3000, 5), {"axis": 0}, "3000 slices of 5 numbers are more than are compared"),
    ((3, 5), {"axis": 2}, "axis 2 is out of range"),
    ((0, 5), {}, "has no elements"),
    (("n",), {}, "its sizes must be known"),
])
def test_refusals(shape, attributes, sentence):
    model = Model()
    model.node("Unique", ["x"], ["y"], **attributes)
    from onnx import TensorProto, helper
    graph = helper.make_graph(model.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    error = parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())[1]
    assert error is not None and sentence in error
