# SPDX-License-Identifier: Apache-2.0
"""Small networks of convolutions over one, two and three axes, as exporters write them, beside onnx's own evaluator: in FP32 and in FP16. On a
GPU tensors lie by pixels in between, joins and halves of channels are parts of others, and padding repeats whole pixels."""

import numpy as np
import onnx
import pytest
import tensorwright
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LARGEST = {"fp32": 2e-5, "fp16": 1e-2}  # of the largest number of an output; on GPUs FP32 may round factors to TF32


class Writer:
    """Nodes and seeded weights of a network."""

    def __init__(self, seed):
        self.random, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, *shape, scale=1.0):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def conv(self, x, before, after, window, **attributes):
        weights = self.drawn(after, before, *window, scale=(before * np.prod(window)) ** -0.5)
        return self.add("Conv", x, weights, self.drawn(after, scale=0.1), **attributes)

    def up(self, x, before, after, window):
        weights = self.drawn(before, after, *window, scale=before**-0.5)
        return self.add("ConvTranspose", x, weights, strides=window)

    def model(self, shape, *outputs):
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_empty_tensor_value_info(o) for o in outputs],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def volumes():
    """Two levels of a U-Net: what is joined was made by convolutions and is read by others too."""
    w = Writer(1)
    a = w.add("Relu", w.conv("x", 2, 16, (3, 3, 3), pads=[1] * 6))
    b = w.add("Relu", w.conv(a, 16, 24, (2, 2, 2), strides=[2, 2, 2]))
    b = w.add("InstanceNormalization", b, w.drawn(24), w.drawn(24))
    c = w.add("Concat", a, w.up(b, 24, 8, (2, 2, 2)), axis=1)
    d = w.conv(w.add("Concat", c, a, axis=1), 40, 3, (3, 3, 3), pads=[1] * 6)
    return w.model([2, 2, 4, 6, 8], d, w.add("Sigmoid", w.conv(c, 24, 4, (1, 1, 1))))


def sequences():
    """Gated convolutions with a residual and a skip, batch normalization, joins, reflected ends, and means over time."""
    w = Writer(2)
    x, skip = w.conv("x", 10, 16, (1,)), None
    for dilation in (1, 2, 4):
        reflected = w.add("Pad", x, w.constant(np.array([0, 0, dilation, 0, 0, dilation], np.int64)), mode="reflect")
        a, b = w.add("Split", w.conv(reflected, 16, 32, (3,), dilations=[dilation]), axis=1, outputs=2)
        y = w.add("Mul", w.add("Tanh", a), w.add("Sigmoid", b))
        p, q = w.add("Split", w.conv(y, 16, 32, (1,)), axis=1, outputs=2)
        x, skip = w.add("Add", x, p), q if skip is None else w.add("Add", skip, q)
    variance = w.constant(np.abs(w.random.standard_normal(16)).astype(np.float32) + 0.5)
    n = w.add("BatchNormalization", skip, w.drawn(16), w.drawn(16), w.drawn(16), variance)
    joined = w.add("Concat", w.add("Elu", n), x, axis=1)
    weights = w.add("Softmax", w.conv(joined, 32, 32, (1,)), axis=2)
    pooled = w.add("ReduceMean", w.add("Mul", weights, joined), axes=[2], keepdims=0)
    return w.model([3, 10, 21], pooled, w.conv(joined, 32, 5, (5,), pads=[2, 2], strides=[2]))


def images():
    """A generator's ends: large windows from three channels and to three, reflected borders, an image made larger."""
    w = Writer(3)
    border = w.constant(np.array([0, 0, 3, 3, 0, 0, 3, 3], np.int64))
    a = w.conv(w.add("Pad", "x", border, mode="reflect"), 3, 24, (7, 7))
    a = w.add("Relu", w.add("InstanceNormalization", a, w.drawn(24), w.drawn(24)))
    b = w.add("Relu", w.up(w.conv(a, 24, 40, (3, 3), strides=[2, 2], pads=[1] * 4), 40, 24, (2, 2)))
    c = w.conv(w.add("Pad", w.add("Add", a, b), border, mode="reflect"), 24, 3, (7, 7))
    return w.model([2, 3, 18, 22], w.add("Tanh", c), w.conv(b, 24, 1, (5, 5), pads=[2] * 4))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("network", [volumes, sequences, images], ids=lambda f: f.__name__)
def test_network(network, precision, tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    made = network()
    shape = [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    wanted = ReferenceEvaluator(made).run(None, {"x": x})
    compiled = tensorwright.compile(made, precision=precision, cache=False)
    for _ in range(2):  # a second time from a graph of the device
        got = compiled(x)
        for value, want in zip(got.values() if isinstance(got, dict) else got, wanted):
            assert value.shape == want.shape
            assert np.abs(np.asarray(value) - want).max() <= LARGEST[precision] * np.abs(want).max()
