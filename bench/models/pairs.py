#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: pairs.py IN.onnx OUT.onnx [--adds] [--products]

Puts QuantizeLinear and DequantizeLinear in front of convolutions and products with constant weights, as tools for training with
quantization place them; with --adds in front of sums of two activations as well, with --products in front of products of two
activations (attention's scores, its weights and values). For timing alone: every activation has the scale 0.05, weights have those
of their output channels. Needs numpy and onnx.
"""
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

ZERO = "pairs_zero"


class Pairs:
    def __init__(self, model, kinds):
        self.graph, self.kinds = model.graph, kinds
        self.weights = {i.name: i for i in self.graph.initializer}
        constants = {n.output[0] for n in self.graph.node if n.op_type == "Constant"}
        self.is_constant = lambda name: name in self.weights or name in constants
        self.made, self.nodes = {}, []
        self.initializer(ZERO, np.int8(0))

    def initializer(self, name, value):
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def activation(self, name):
        if name not in self.made:
            scale = self.initializer(name + "_scale", np.float32(0.05))
            pair = (("QuantizeLinear", name, "_q"), ("DequantizeLinear", name + "_q", "_dq"))
            self.nodes += [helper.make_node(op, [x, scale, ZERO], [name + y], name=f"{name}{y}_node") for op, x, y in pair]
            self.made[name] = name + "_dq"
        return self.made[name]

    def weight(self, name, axis):
        if name not in self.made:
            w = numpy_helper.to_array(self.weights[name]).astype(np.float32)
            scale = np.maximum(np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != axis)), 1e-8) / 127
            steps = np.rint(w / scale.reshape([-1 if i == axis else 1 for i in range(w.ndim)]))
            inputs = [self.initializer(name + "_i8", np.clip(steps, -127, 127).astype(np.int8)),
                      self.initializer(name + "_scales", scale.astype(np.float32)),
                      self.initializer(name + "_zeros", np.zeros(len(scale), np.int8))]
            self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name + "_dq"], axis=axis, name=name + "_dq_node"))
            self.made[name] = name + "_dq"
        return self.made[name]

    def output_axis(self, node):
        """Of the weights of a node that gets pairs."""
        if len(node.input) < 2 or node.input[1] not in self.weights:
            return None
        if node.op_type == "Gemm":
            return 0 if any(a.name == "transB" and a.i for a in node.attribute) else 1
        is_product = node.op_type == "MatMul" and len(self.weights[node.input[1]].dims) == 2
        return 0 if node.op_type == "Conv" else 1 if is_product else None

    def run(self):
        for node in self.graph.node:
            axis = self.output_axis(node)
            if axis is not None:
                node.input[0], node.input[1] = self.activation(node.input[0]), self.weight(node.input[1], axis)
            elif node.op_type in self.kinds and not any(map(self.is_constant, node.input)):
                for i in range(2):
                    node.input[i] = self.activation(node.input[i])
            self.nodes.append(node)
        nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in self.nodes]
        read = {name for n in nodes for name in n.input}
        kept = [i for i in self.graph.initializer if i.name in read]
        for field, values in (("node", nodes), ("initializer", kept)):
            self.graph.ClearField(field)
            getattr(self.graph, field).extend(values)


def main():
    options = {"--adds": "Add", "--products": "MatMul"}
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(options):
        sys.exit(__doc__)
    model = onnx.load(sys.argv[1])
    Pairs(model, [options[option] for option in sys.argv[3:]]).run()
    onnx.save(model, sys.argv[2])


if __name__ == "__main__":
    main()
