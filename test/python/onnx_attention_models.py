# SPDX-License-Identifier: Apache-2.0
"""Random nodes of com.microsoft with their inputs, and what ONNX Runtime makes of them."""

import numpy as np
import onnx
import tensorrt as trt

from onnx_models import Model, parsed
from small import run

DOMAIN = "com.microsoft"
make = onnx.helper


class Node:
    """One node of com.microsoft: what it reads is fed, or an initializer."""

    def __init__(self, op, domain=DOMAIN, opset=20):
        self.op, self.domain = op, domain
        self.model, self.inputs, self.attributes = Model(opset), [], {}
        self.known = {}  # by input: its dimensions in the model, None where they are not said

    def feed(self, name, array, known=None):
        self.inputs.append(self.model.fed(name, array))
        if known is not None:
            self.known[name] = known
        return array

    def weights(self, name, array):
        self.inputs.append(self.model.constant(name, array))
        return array

    def skip(self, count=1):
        self.inputs += [""] * count

    def bytes(self, *outputs):
        while self.inputs and not self.inputs[-1]:
            self.inputs.pop()
        if not any(n.op_type == self.op for n in self.model.nodes):
            self.model.node(self.op, self.inputs, list(outputs), domain=self.domain, **self.attributes)
        values = [make.make_tensor_value_info(n, make.np_dtype_to_tensor_dtype(a.dtype), self.known.get(n, a.shape))
                  for n, a in self.model.feed.items()]
        given = [*self.model.feed.values(), *map(onnx.numpy_helper.to_array, self.model.initializers)]
        dtype = next(a.dtype for a in given if a.dtype.kind == "f")
        results = [make.make_tensor_value_info(n, 6 if n == "count" else make.np_dtype_to_tensor_dtype(dtype), None) for n in outputs if n]
        graph = make.make_graph(self.model.nodes, "g", values, results, self.model.initializers)
        sets = [make.make_opsetid("", self.model.opset), make.make_opsetid(DOMAIN, 1)]
        return make.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()


def engine_of(data, feeds, logger=None):
    """The engine for inputs like any of these."""
    (builder, network, _parser, logger), error = parsed(data)
    assert error is None, error
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        all_of = [np.asarray(f[tensor.name]) for f in feeds]
        if tensor.is_shape_tensor:
            lists = [a.reshape(-1).tolist() for a in all_of]
            profile.set_shape_input(tensor.name, min(lists), lists[0], max(lists))
        if -1 in tensor.shape:
            shapes = np.array([a.shape for a in all_of])
            profile.set_shape(tensor.name, tuple(shapes.min(0)), tuple(shapes[0]), tuple(shapes.max(0)))
    config.add_optimization_profile(profile)
    if any(network.get_layer(i).type in (trt.LayerType.QUANTIZE, trt.LayerType.DEQUANTIZE) for i in range(network.num_layers)):
        config.set_flag(trt.BuilderFlag.INT8)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.lines[-3:]
    return trt.Runtime(logger).deserialize_cuda_engine(plan)


def held(feed):
    """The API has INT32 for the other integers."""
    return {n: a.astype(np.int32) if a.dtype.kind in "iu" and a.dtype.itemsize > 1 else a for n, a in feed.items()}


def ours(data, feed):
    engine = engine_of(data, [feed])
    names = {engine.get_tensor_name(i) for i in range(engine.num_io_tensors)}
    return run(engine, **{n: a for n, a in held(feed).items() if n in names})


def runtimes(data, feed, **settings):
    """ONNX Runtime's answer."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # more would only wait for each other
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, feed)))


def close(got, want, message, half=False):
    assert got.shape == want.shape, message
    tolerance = {"rtol": 8e-3, "atol": 8e-3} if half else {"rtol": 2e-4, "atol": 2e-5}
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), err_msg=message, **tolerance)
