# SPDX-License-Identifier: Apache-2.0
"""Nodes of com.microsoft that somebody has changed: a sentence or an engine, and an engine that runs on any numbers."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")  # what makes the nodes stands beside its answers
import tensorrt as trt  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from onnx_attention_models import held  # noqa: E402
from onnx_microsoft_attention_test import Group, attention, multi_head, todays  # noqa: E402
from onnx_microsoft_test import KINDS, Draw  # noqa: E402
from onnx_models import parsed  # noqa: E402
from small import run  # noqa: E402

NUMBERS = [-2**63, -2**31, -129, -1, 0, 1, 2, 3, 7, 64, 2**16, 2**31 - 1, 2**31, 2**62]


def model_of(r, seed):
    kind = int(r.integers(4))
    if kind == 0:
        return Group(seed).model()
    node, names = [multi_head, attention, KINDS[list(KINDS)[int(r.integers(len(KINDS)))]]][kind - 1](Draw(seed) if kind == 3 else seed)
    return node.bytes(*names)


def change(r, model):
    """One thing."""
    graph = model.graph
    node = next(n for n in graph.node if n.domain == "com.microsoft" or n.op_type == "SimplifiedLayerNormalization")
    pick = lambda items: items[int(r.integers(len(items)))]  # noqa: E731
    kind = int(r.integers(8))
    if kind == 0 and node.attribute:
        a = pick(node.attribute)
        value = pick(NUMBERS) if r.integers(3) else pick([float("nan"), -0.5, 1e30, "Relu", [1, -1]])
        a.CopyFrom(helper.make_attribute(a.name, value))
    elif kind == 1:
        names = ["num_heads", "kv_num_heads", "do_rotary", "local_window_size", "interleaved", "rotary_embedding_dim", "block_size", "bits", "unidirectional"]
        node.attribute.append(helper.make_attribute(pick(names), pick(NUMBERS)))
    elif kind == 2 and node.input:
        node.input[int(r.integers(len(node.input)))] = pick(["", *node.input])
    elif kind == 3 and node.input:
        node.input.append(pick(node.input))
    elif kind == 4 and graph.input:
        dims = pick(graph.input).type.tensor_type.shape.dim
        if dims and r.integers(3):
            dims[int(r.integers(len(dims)))].CopyFrom(onnx.TensorShapeProto.Dimension(dim_value=int(pick([0, 1, 2, 3, 5, 33, 2**31 - 1]))))
        elif dims and r.integers(2):
            del dims[int(r.integers(len(dims)))]
        else:
            dims.add()
    elif kind == 5 and graph.input:
        pick(graph.input).type.tensor_type.elem_type = int(pick([1, 2, 3, 6, 7, 9, 10, 11]))
    elif kind == 6 and graph.initializer:
        w = pick(graph.initializer)
        if w.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.INT64, onnx.TensorProto.UINT8):
            array = numpy_helper.to_array(w).reshape(-1)[:int(r.integers(0, 9))]
            w.CopyFrom(numpy_helper.from_array(array.reshape(pick([(-1,), (1, -1), (-1, 1)])) if len(array) else array, w.name))
    elif kind == 7:
        node.output.append("more" if r.integers(2) else "")
        del node.input[int(r.integers(len(node.input) + 1)):]


def tried(data, r):
    (builder, network, _parser, logger), error = parsed(data)
    if error is not None:
        assert len(error) > 20, error
        return "refused"
    config, profile, feed = builder.create_builder_config(), builder.create_optimization_profile(), {}
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        shape = [int(r.integers(1, 4)) if d < 0 else d for d in tensor.shape]
        if np.prod(shape) > 1 << 20:
            return "large"
        if tensor.is_shape_tensor:
            profile.set_shape_input(tensor.name, [0], [3], [64])
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, shape, shape, shape)
        dtype = np.dtype(trt.nptype(tensor.dtype))
        array = r.standard_normal(shape) if dtype.kind == "f" else r.choice([-2**31, -5, 0, 1, 2, 3, 100, 2**31 - 1], shape)
        feed[tensor.name] = np.array(r.integers(0, 64), np.int32) if tensor.is_shape_tensor else array.astype(dtype)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return "not built"
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    try:
        run(engine, **held(feed))
    except AssertionError:  # shapes that do not fit each other
        return "not run"
    return "run"


@pytest.mark.parametrize("part", todays(range(40), 8))
def test_changed_nodes(part):
    counts = {}
    for seed in range(part * 20, part * 20 + 20):
        r = np.random.default_rng(seed)
        model = onnx.load_from_string(model_of(r, seed))
        for _ in range(int(r.integers(1, 4))):
            change(r, model)
        result = tried(model.SerializeToString(), r)
        counts[result] = counts.get(result, 0) + 1
    assert len(counts) > 1, counts
