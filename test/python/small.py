# SPDX-License-Identifier: Apache-2.0
"""Small networks and what the tests do with them."""

import os

import numpy as np
import tensorrt as trt
from tensorwright import _memory

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


def device_memory():
    """Of the device that TENSORWRIGHT_DEVICE names; the CPU's when it names none."""
    return _memory.memory_of(_memory.resolve(os.environ.get("TENSORWRIGHT_DEVICE") or "cpu"))


class Tensors:
    """Arrays and where they lie for a run."""

    def __init__(self):
        self.memory, self.host, self.held = device_memory(), _memory.Host(), {}

    def given(self, name, array, on_host=False):
        """The address of an input."""
        place = self.host if on_host else self.memory
        address, kept = place.take(np.ascontiguousarray(array))
        self.held[name] = (place, kept, None, None)
        return address

    def room(self, name, shape, dtype, on_host=False):
        """The address of an output."""
        place, size = self.host if on_host else self.memory, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        address, kept = place.make(size)
        self.held[name] = (place, kept, tuple(shape), np.dtype(dtype))
        return address

    def results(self, stream=0):
        """Outputs by name, when the run on the stream has ended."""
        self.memory.wait(stream)
        return {name: place.read(kept, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize).view(dtype).reshape(shape)
                for name, (place, kept, shape, dtype) in self.held.items() if dtype}


class Room(trt.IOutputAllocator):
    """Memory for an output whose size the run finds."""

    def __init__(self, tensors):
        super().__init__()
        self.tensors, self.shape, self.held = tensors, None, None

    def reallocate_output(self, name, memory, size, alignment):
        address, self.held = self.tensors.memory.make(max(size, 1))
        return address

    def notify_shape(self, name, shape):
        self.shape = tuple(shape)

    def array(self, dtype):
        count = int(np.prod(self.shape, dtype=np.int64))
        return self.tensors.memory.read(self.held, count * np.dtype(dtype).itemsize).view(dtype).reshape(self.shape)


def run(engine, context=None, stream=0, **inputs):
    """Outputs by name, as NumPy arrays, of inputs by name."""
    context = context or engine.create_execution_context()
    tensors, rooms = Tensors(), {}
    lies_on_host = {name: engine.get_tensor_location(name) == trt.TensorLocation.HOST for name in map(engine.get_tensor_name, range(engine.num_io_tensors))}
    for name, value in inputs.items():
        value = np.asarray(value)
        if -1 in tuple(engine.get_tensor_shape(name)):
            assert context.set_input_shape(name, value.shape)
        assert context.set_tensor_address(name, tensors.given(name, value, lies_on_host[name]))
    for name, on_host in lies_on_host.items():
        if name not in inputs:
            dtype = trt.nptype(engine.get_tensor_dtype(name))
            shape = context.get_tensor_shape(name)
            if -1 in tuple(shape):
                rooms[name] = (Room(tensors), dtype)
                assert context.set_output_allocator(name, rooms[name][0])
            else:
                assert context.set_output_allocator(name, None)  # an allocator of an earlier run goes before an address
                assert context.set_tensor_address(name, tensors.room(name, shape, dtype, on_host))
    assert context.execute_async_v3(stream)
    results = tensors.results(stream)
    return {**results, **{name: room.array(dtype) for name, (room, dtype) in rooms.items()}}


def run_batch(engine, arrays):
    """The same of a network with an implicit batch: that of the inputs, which stands in front of outputs too."""
    batch, bindings, tensors = len(next(iter(arrays.values()))), [], Tensors()
    for i in range(engine.num_bindings):
        name = engine.get_binding_name(i)
        if engine.binding_is_input(i):
            bindings.append(tensors.given(name, arrays[name]))
        else:
            bindings.append(tensors.room(name, (batch, *engine.get_binding_shape(i)), trt.nptype(engine.get_binding_dtype(i))))
    assert engine.create_execution_context().execute(batch, bindings)
    return tensors.results()


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
