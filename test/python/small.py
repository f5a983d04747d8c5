# SPDX-License-Identifier: Apache-2.0
"""Small networks and what the tests do with them."""

import numpy as np
import tensorrt as trt

QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)
LOUD = trt.Logger(trt.Logger.WARNING)


def convolution(logger=LOUD, shape=(1, 3, 8, 8), dtype=np.float32, flags=None):
    """(builder, network, config) of relu(convolution(x)) -> y with the weights W and B."""
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    x = network.add_input("x", trt.float32, shape)
    layer = network.add_convolution_nd(x, 4, (3, 3), W.astype(dtype), B.astype(dtype))
    layer.name = "conv"
    layer.padding_nd = (1, 1)
    relu = network.add_activation(layer.get_output(0), trt.ActivationType.RELU)
    relu.get_output(0).name = "y"
    network.mark_output(relu.get_output(0))
    config = builder.create_builder_config()
    for flag in flags or ():
        config.set_flag(flag)
    return builder, network, config


_random = np.random.default_rng(1)
W = _random.standard_normal((4, 3, 3, 3)).astype(np.float32)
B = _random.standard_normal(4).astype(np.float32)


def engine_of(builder, network, config, logger=LOUD):
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None
    return engine


def run(engine, context=None, stream=0, **inputs):
    """Outputs by name, as NumPy arrays, of inputs by name."""
    context = context or engine.create_execution_context()
    arrays = {}
    for name, value in inputs.items():
        arrays[name] = np.ascontiguousarray(value)
        if -1 in tuple(engine.get_tensor_shape(name)):
            assert context.set_input_shape(name, value.shape)
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        if name not in arrays:
            arrays[name] = np.zeros(tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name)))
        assert context.set_tensor_address(name, arrays[name].ctypes.data)
    assert context.execute_async_v3(stream)
    return {name: array for name, array in arrays.items() if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT}


def one_layer(add, *shapes, dtype=trt.float32, outputs=1):
    """The engine of one layer: add(network, *inputs) gives it; inputs are called x0, x1, ..., outputs y0, ..."""
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shapes)
    layer = add(network, *(network.add_input(f"x{i}", d, s) for i, (s, d) in enumerate(zip(shapes, dtypes))))
    assert layer is not None
    for i in range(outputs):
        layer.get_output(i).name = f"y{i}"
        network.mark_output(layer.get_output(i))
    return engine_of(builder, network, builder.create_builder_config())
