# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX graphs node by node, with seeded random weights that keep every activation near unit scale.

A tensor carries its shape and `std`, an estimate of how much it varies. A convolution or a linear layer draws its
weights so that its output has the asked-for standard deviation whatever comes in, as batch normalization sees to in
training; filters sum to zero, so that the positive mean behind a ReLU does not drown what varies (a net whose output
hardly depends on its input would hide wrong kernels). Batch normalization folded by the exporter is such a
convolution with a bias. Draws come from one generator seeded by the net's name: the same file on every machine.
"""
import math
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# std(act(z)) for z ~ N(0, 1), by numeric integration.
ACTIVATION_STD = {"Relu": 0.584, "Relu6": 0.583, "Silu": 0.559, "Gelu": 0.588}


class Tensor:
    def __init__(self, name, shape, std):
        self.name, self.shape, self.std = name, tuple(shape), std

    @property
    def channels(self):
        return self.shape[1]


class Net:
    def __init__(self, name, seed_name=None, opset=13):
        self.name, self.opset = name, opset
        self.rng = np.random.Generator(np.random.PCG64(zlib.crc32((seed_name or name).encode())))
        self.nodes, self.inputs, self.outputs, self.weights, self.metadata = [], [], [], [], {}
        self.count = 0
        self.again = None  # names of weights that repeat() takes once more

    # --- the raw graph ---
    def input(self, name, shape, dtype=np.float32, domain="normal", std=1.0):
        """domain: what cpu_peers.py fills it with: normal | int LOW HIGH | prefix_ones COUNT."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.metadata["input:" + name] = domain
        return Tensor(name, shape, std)

    def output(self, tensor, name):
        """Renames the tensor, which a node of this graph must have written last, to an output of the graph."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, n in enumerate(names):
                    if n == tensor.name:
                        names[i] = name
        tensor.name = name
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, tensor.shape))

    def repeat(self, times, layer, x):
        """`layer`, so many times in a row, with the weights of the first one each time."""
        first = len(self.weights)
        x = layer(x)
        names = [w.name for w in self.weights[first:]]
        for _ in range(times - 1):
            self.again = iter(names)
            x = layer(x)
        self.again = None
        return x

    def weight(self, array, stem="weight"):
        if self.again is not None:
            return next(self.again)
        name = f"{stem}_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def constant(self, value, dtype=np.float32):
        """A Constant node, as exporters write scalars and small lists."""
        name = self._new("Constant")
        tensor = numpy_helper.from_array(np.array(value, dtype), name + "_value")
        self.nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    def node(self, op, inputs, shape, std=1.0, outputs=1, **attrs):
        name = self._new(op)
        names = [name + "_out"] if outputs == 1 else [f"{name}_out{i}" for i in range(outputs)]
        inputs = [i.name if isinstance(i, Tensor) else i for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attrs))
        if outputs == 1:
            return Tensor(names[0], shape, std)
        return [Tensor(n, s, std) for n, s in zip(names, shape)]

    def _new(self, op):
        self.count += 1
        return f"{op}_{self.count - 1}"

    def normal(self, *shape):
        return self.rng.standard_normal(shape, np.float32)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="tensorwright-bench", ir_version=8)
        helper.set_model_props(model, self.metadata)
        return model

    # --- layers of vision networks ---
    def conv(self, x, out, kernel=1, stride=1, pad=None, groups=1, bias=True, std=1.0):
        """pad None: half the kernel. kernel and pad: one number, or one for each axis."""
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        ph, pw = (kh // 2, kw // 2) if pad is None else (pad, pad) if isinstance(pad, int) else pad
        n, c, h, w = x.shape
        fan_in = c // groups * kh * kw
        values = self.normal(out, c // groups, kh, kw)
        if fan_in > 1:
            values -= values.mean(axis=(1, 2, 3), keepdims=True)
        values *= np.float32(std / (x.std * math.sqrt(max(fan_in - 1, 1))))
        inputs = [x, self.weight(values)]
        if bias:
            inputs.append(self.weight(self.normal(out) * np.float32(0.1 * std), "bias"))
        shape = (n, out, (h + 2 * ph - kh) // stride + 1, (w + 2 * pw - kw) // stride + 1)
        return self.node("Conv", inputs, shape, std, kernel_shape=[kh, kw], strides=[stride, stride],
                         pads=[ph, pw, ph, pw], dilations=[1, 1], group=groups)

    def conv_transpose2(self, x, out, std=1.0):
        """2x2 with stride 2: every output pixel takes one tap of every input channel."""
        n, c, h, w = x.shape
        values = self.normal(c, out, 2, 2)
        values -= values.mean(axis=0, keepdims=True)
        values *= np.float32(std / (x.std * math.sqrt(c - 1)))
        bias = self.weight(self.normal(out) * np.float32(0.1 * std), "bias")
        return self.node("ConvTranspose", [x, self.weight(values), bias], (n, out, 2 * h, 2 * w), std,
                         kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1], group=1)

    def batch_norm(self, x, mean=0.0, std=1.0, eps=1e-5):
        """mean: about what the input's channels have; std: of the output."""
        c = x.channels
        gamma = np.float32(std) * (1 + np.float32(0.1) * self.normal(c))
        beta = np.float32(0.1 * std) * self.normal(c)
        means = np.float32(mean) + np.float32(0.1 * x.std) * self.normal(c)
        variances = np.float32(x.std**2) * np.exp(np.float32(0.1) * self.normal(c))
        inputs = [x] + [self.weight(v.astype(np.float32), s) for v, s in
                        ((gamma, "bn_scale"), (beta, "bn_bias"), (means, "bn_mean"), (variances, "bn_var"))]
        return self.node("BatchNormalization", inputs, x.shape, std, epsilon=eps, momentum=0.9)

    def relu(self, x, kept=ACTIVATION_STD["Relu"]):
        """kept: the share of the input's variation that passes; more where the input is mostly positive."""
        return self.node("Relu", [x], x.shape, x.std * kept)

    def relu6(self, x):
        return self.node("Clip", [x, self.constant(0.0), self.constant(6.0)], x.shape, x.std * ACTIVATION_STD["Relu6"])

    def silu(self, x):
        gate = self.node("Sigmoid", [x], x.shape)
        return self.node("Mul", [x, gate], x.shape, x.std * ACTIVATION_STD["Silu"])

    def add(self, a, b):
        return self.node("Add", [a, b], np.broadcast_shapes(a.shape, b.shape), math.hypot(a.std, b.std))

    def concat(self, tensors, axis=1):
        shape = list(tensors[0].shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        weighted = sum(t.std**2 * t.shape[axis] for t in tensors) / shape[axis]
        return self.node("Concat", tensors, shape, math.sqrt(weighted), axis=axis)

    def max_pool(self, x, kernel, stride, pad=0):
        """The largest of 9 standard normal values varies by 0.6, of 4 by 0.7."""
        n, c, h, w = x.shape
        shape = (n, c, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)
        return self.node("MaxPool", [x], shape, x.std, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                         ceil_mode=0)

    def average_pool(self, x, kernel, stride):
        """Neighbours are alike, and channels keep their means: three quarters of the variation stay."""
        n, c, h, w = x.shape
        shape = (n, c, (h - kernel) // stride + 1, (w - kernel) // stride + 1)
        return self.node("AveragePool", [x], shape, x.std * 0.75, kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=[0] * 4, ceil_mode=0)

    def global_average_pool(self, x):
        """What is left is how channels differ in their means: about half of the variation."""
        return self.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1), x.std / 2)

    def flatten(self, x):
        return self.node("Flatten", [x], (x.shape[0], math.prod(x.shape[1:])), x.std, axis=1)

    def gemm(self, x, out, std=1.0, transposed=True):
        """x [m, k] times [out, k]' (a PyTorch Linear) or [k, out] (a GPT-2 Conv1D), and a bias."""
        k = x.shape[1]
        values = self.normal(out, k)
        values -= values.mean(axis=1, keepdims=True)
        values *= np.float32(std / (x.std * math.sqrt(k)))
        bias = self.weight(self.normal(out) * np.float32(0.1 * std), "bias")
        if transposed:
            return self.node("Gemm", [x, self.weight(values), bias], (x.shape[0], out), std, alpha=1.0, beta=1.0,
                             transB=1)
        return self.node("Gemm", [x, self.weight(values.T), bias], (x.shape[0], out), std, alpha=1.0, beta=1.0)

    def classifier(self, x, classes=1000):
        return self.gemm(self.flatten(self.global_average_pool(x)), classes, 2.0)


def macs(model):
    """Multiplications of convolutions, transposed convolutions and matrix products, zero taps of padding included."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in [*graph.input, *graph.output, *graph.value_info]}
    shapes.update({w.name: list(w.dims) for w in graph.initializer})
    total = 0
    for n in graph.node:
        if n.op_type == "Conv":
            total += math.prod(shapes[n.output[0]]) * math.prod(shapes[n.input[1]][1:])
        elif n.op_type == "ConvTranspose":
            total += math.prod(shapes[n.input[0]]) * math.prod(shapes[n.input[1]][1:])
        elif n.op_type in ("MatMul", "Gemm"):
            transposed = n.op_type == "Gemm" and any(a.name == "transA" and a.i for a in n.attribute)
            total += math.prod(shapes[n.output[0]]) * shapes[n.input[0]][-2 if transposed else -1]
    return total
