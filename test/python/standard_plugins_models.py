# SPDX-License-Identifier: Apache-2.0
"""ONNX models whose nodes are plugins, in the forms of exporters: makes them, and runs them beside NumPy."""

import numpy as np
import onnx
import tensorrt as trt
from onnx import TensorProto, helper, numpy_helper

from small import QUIET, run

_KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT32}


class Model:
    """A graph under construction: names of tensors go in and out of its methods."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def input(self, name, shape, kind="f"):
        self.inputs.append(helper.make_tensor_value_info(name, _KINDS[kind], shape))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, *inputs, outputs=1, domain="", **attributes):
        inputs = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        names = outputs if isinstance(outputs, list) else [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def conv(self, x, w, b):
        return self.node("Conv", x, w[:, :, None, None], b)

    def reshape(self, x, *dims):
        return self.node("Reshape", x, np.array(dims, np.int64))

    def part(self, x, axis, begin, end):
        return self.node("Slice", x, *(np.array([v], np.int64) for v in (begin, end, axis)))

    def output(self, *names, kinds=None):
        for name, kind in zip(names, kinds or "f" * len(names)):
            self.outputs.append(helper.make_tensor_value_info(name, _KINDS[kind], None))

    def bytes(self, opset=13):
        graph = helper.make_graph(self.nodes, "model", self.inputs, self.outputs, self.constants)
        domains = {n.domain for n in self.nodes if n.domain}
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains])
        return model.SerializeToString()


def parsed(model, opset=13):
    """(builder, network) of it, or the parser's error."""
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, QUIET)
    if parser.parse(model.bytes(opset)):
        return builder, network, parser
    return parser.get_error(0).desc()


def plan_of(model, sizes=None, flags=(), opset=13):
    """`sizes`: least, best and largest first dimension of open inputs."""
    made = parsed(model, opset)
    assert not isinstance(made, str), made
    builder, network, parser = made
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        t = network.get_input(i)
        if t.shape and t.shape[0] == -1:
            profile.set_shape(t.name, *((n, *t.shape[1:]) for n in sizes))
    if sizes:
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return plan


def outputs(model, arrays, sizes=None, flags=(), opset=13):
    """Outputs by name, of inputs by name."""
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan_of(model, sizes, flags, opset))
    return run(engine, **arrays)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def conv(x, w, b):
    return np.einsum("nchw,kc->nkhw", x, w) + b[:, None, None]
