# SPDX-License-Identifier: Apache-2.0
"""Models for the tests, and their answers in NumPy."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def conv2d(x, w, bias=None, stride=1, padding=0):
    """x [n, c, h, w], w [k, c, r, s]."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    y = np.einsum("nchwrs,kcrs->nkhw", windows.astype(np.float64), w.astype(np.float64))
    return y if bias is None else y + bias[:, None, None]


def max_pool(x, window, stride, padding=0):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(2, 3))[:, :, ::stride, ::stride].max((4, 5))


class Resnet:
    """A small residual network of the kind of ResNet: a stem, residual blocks with and without a projection, a classifier.
    model(): the bytes of the ONNX file; answer(x): its output."""

    def __init__(self, batch=1, size=32, seed=7):
        self.shape = (batch, 3, size, size)
        random = np.random.default_rng(seed)
        self.nodes, self.weights, self.steps = [], {}, []

        def weight(shape, name):
            value = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
            self.weights[name] = value
            return name

        def conv(x, c, k, window, stride, out):
            w, b = weight((k, c, window, window), out + ".w"), weight((k, 1), out + ".b")
            self.weights[b] = self.weights[b][:, 0]
            p = window // 2
            self.nodes.append(
                helper.make_node("Conv", [x, w, b], [out + ".c"], kernel_shape=[window] * 2, strides=[stride] * 2, pads=[p] * 4)
            )
            scale = {n: random.uniform(0.5, 1.5, k).astype(np.float32) for n in ("s", "m", "v")}
            for n, v in scale.items():
                self.weights[f"{out}.{n}"] = v
            self.weights[out + ".t"] = random.standard_normal(k).astype(np.float32)
            self.nodes.append(helper.make_node("BatchNormalization", [out + ".c"] + [f"{out}.{n}" for n in "stmv"], [out]))
            return out

        def relu(x, out):
            self.nodes.append(helper.make_node("Relu", [x], [out]))
            return out

        x = relu(conv("input", 3, 16, 7, 2, "stem"), "stem.relu")
        self.nodes.append(helper.make_node("MaxPool", [x], ["pool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
        x, c = "pool", 16
        for i, (k, stride) in enumerate(((16, 1), (32, 2))):
            y = relu(conv(x, c, k, 3, stride, f"block{i}.a"), f"block{i}.a.relu")
            y = conv(y, k, k, 3, 1, f"block{i}.b")
            if (c, stride) != (k, 1):
                x = conv(x, c, k, 1, stride, f"block{i}.p")
            self.nodes.append(helper.make_node("Add", [y, x], [f"block{i}.sum"]))
            x, c = relu(f"block{i}.sum", f"block{i}"), k
        self.nodes.append(helper.make_node("GlobalAveragePool", [x], ["mean"]))
        self.nodes.append(helper.make_node("Flatten", ["mean"], ["flat"], axis=1))
        self.nodes.append(helper.make_node("Gemm", ["flat", weight((10, c), "fc.w"), "fc.b"], ["logits"], transB=1))
        self.weights["fc.b"] = random.standard_normal(10).astype(np.float32)
        self.nodes.append(helper.make_node("Softmax", ["logits"], ["prob"], axis=1))

    def model(self, dynamic_batch=False):
        shape = ("batch" if dynamic_batch else self.shape[0],) + self.shape[1:]
        graph = helper.make_graph(
            self.nodes,
            "resnet",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("prob", TensorProto.FLOAT, (shape[0], 10))],
            [numpy_helper.from_array(v, n) for n, v in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()

    def answer(self, x):
        """By the nodes, in double."""
        values = {"input": x.astype(np.float64), **self.weights}
        for node in self.nodes:
            a = [values[i] for i in node.input]
            at = {t.name: helper.get_attribute_value(t) for t in node.attribute}
            if node.op_type == "Conv":
                y = conv2d(a[0], a[1], a[2], at["strides"][0], at["pads"][0])
            elif node.op_type == "BatchNormalization":
                s, t, m, v = (w[:, None, None].astype(np.float64) for w in a[1:])
                y = (a[0] - m) / np.sqrt(v + 1e-5) * s + t
            elif node.op_type == "Relu":
                y = np.maximum(a[0], 0)
            elif node.op_type == "MaxPool":
                y = max_pool(a[0], 3, 2, 1)
            elif node.op_type == "Add":
                y = a[0] + a[1]
            elif node.op_type == "GlobalAveragePool":
                y = a[0].mean((2, 3), keepdims=True)
            elif node.op_type == "Flatten":
                y = a[0].reshape(len(x), -1)
            elif node.op_type == "Gemm":
                y = a[0] @ a[1].T + a[2]
            elif node.op_type == "Softmax":
                y = np.exp(a[0] - a[0].max(1, keepdims=True))
                y /= y.sum(1, keepdims=True)
            values[node.output[0]] = y
        return values["prob"]


def close(actual, expected, tolerance=1e-4):
    """Within the tolerance, and not nearly constant: that would prove nothing."""
    assert actual.shape == expected.shape
    assert expected.size < 2 or np.ptp(expected) > 20 * tolerance * max(
        1.0, np.abs(expected).max()
    ), "the expected output is nearly constant"
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
