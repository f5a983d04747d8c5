# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models of tests: made, imported, run."""

import os

import numpy as np
import onnx
import tensorrt as trt
from onnx import helper, numpy_helper

from small import run

VARIABLE = "TENSORWRIGHT_ONNX_QUANTIZED_OPS"


class Quiet(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.lines = []

    def log(self, severity, text):
        self.lines.append(text)


class Model:
    """Nodes with initializers and inputs made as they are named: arrays of `fed` are inputs, the others initializers."""

    def __init__(self, opset=17):
        self.nodes, self.initializers, self.feed, self.opset, self.domains = [], [], {}, opset, set()

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def fed(self, name, array):
        self.feed[name] = np.asarray(array)
        return name

    def node(self, op, inputs, outputs, **attributes):
        if attributes.get("domain"):
            self.domains.add(attributes["domain"])
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def bytes(self, dynamic=False, **outputs):
        """dynamic: no dimension of an input is said."""
        def value(name, dtype, shape):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        graph = helper.make_graph(self.nodes, "g", [value(n, a.dtype, [None] * a.ndim if dynamic else a.shape) for n, a in self.feed.items()],
                                  [value(n, d, s) for n, (d, s) in outputs.items()], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in self.domains],
                                  ir_version=8 if self.opset < 18 else onnx.IR_VERSION)
        onnx.checker.check_model(model)
        return model.SerializeToString()

    def answer(self, data):
        """ONNX Runtime's."""
        import onnxruntime  # not every test has it
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = 1  # more would only wait for each other
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return dict(zip((o.name for o in session.get_outputs()), session.run(None, self.feed)))


def parsed(data, allowed=True):
    """(network and what it stands on, the parser's error or None)"""
    logger = Quiet()
    before = os.environ.pop(VARIABLE, None)
    if allowed:
        os.environ[VARIABLE] = "1"
    try:
        builder = trt.Builder(logger)
        network = builder.create_network(1)
        parser = trt.OnnxParser(network, logger)
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
    ok = parser.parse(data)
    return (builder, network, parser, logger), None if ok else parser.get_error(0).desc()


def outputs(data, feed, fp16=False):
    (builder, network, parser, logger), error = parsed(data)
    assert error is None, error
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    if fp16:
        config.set_flag(trt.BuilderFlag.FP16)
    if any(-1 in network.get_input(i).shape for i in range(network.num_inputs)):
        profile = builder.create_optimization_profile()
        for name, a in feed.items():
            profile.set_shape(name, a.shape, a.shape, a.shape)
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.lines[-3:]
    kinds = [network.get_layer(i).type for i in range(network.num_layers)]
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    # The API has INT32 for the other integers.
    held = {name: a.astype(np.int32) if a.dtype.kind in "iu" and a.dtype.itemsize > 1 else a for name, a in feed.items()}
    return run(engine, **held), kinds
