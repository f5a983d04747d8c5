# SPDX-License-Identifier: Apache-2.0
"""Whole programs in the ways of 8.5's Python samples: what they import, how they hold memory, in which order they call. The CUDA
runtime is tensorrt.hostcuda under cudart's name; answers come from NumPy."""

import ctypes
import os
import threading

import numpy as np
import onnx
import pytest
import tensorrt as trt
from onnx import TensorProto, helper, numpy_helper
from tensorrt import hostcuda as cudart

from models import Resnet, close, conv2d
from small import LOUD

EXPLICIT = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


def check(call):
    """cuda-python's answers: (error, result...)."""
    error, *results = call
    if error != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(cudart.cudaGetErrorName(error)[1])
    return results[0] if len(results) == 1 else tuple(results)


class Memory:
    """Memory of the host and of the device for one tensor, as the samples' common.py keeps them."""

    def __init__(self, shape, dtype):
        self.host = np.zeros(shape, dtype)
        self.device = check(cudart.cudaMalloc(max(1, self.host.nbytes)))

    def to_device(self, stream):
        kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        check(cudart.cudaMemcpyAsync(self.device, self.host, self.host.nbytes, kind, stream))

    def to_host(self, stream):
        kind = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
        check(cudart.cudaMemcpyAsync(self.host, self.device, self.host.nbytes, kind, stream))

    def free(self):
        check(cudart.cudaFree(self.device))


class Inferer:
    """An engine with its context, memory and stream: infer(name=array, ...) -> {name: array}."""

    def __init__(self, plan, logger=LOUD):
        self.runtime = trt.Runtime(logger)
        if isinstance(plan, (str, os.PathLike)):
            with open(plan, "rb") as file:
                plan = file.read()
        self.engine = self.runtime.deserialize_cuda_engine(plan)
        assert self.engine, "the plan was refused"
        self.context = self.engine.create_execution_context()
        self.stream = check(cudart.cudaStreamCreate())

    def infer(self, **inputs):
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        memory = {}
        for name in names:
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                memory[name] = Memory(inputs[name].shape, trt.nptype(self.engine.get_tensor_dtype(name)))
                memory[name].host[...] = inputs[name]
                assert self.context.set_input_shape(name, inputs[name].shape)
                memory[name].to_device(self.stream)
        assert self.context.infer_shapes() == []
        for name in names:
            if name not in memory:
                memory[name] = Memory(self.context.get_tensor_shape(name), trt.nptype(self.engine.get_tensor_dtype(name)))
            assert self.context.set_tensor_address(name, memory[name].device)
        assert self.context.execute_async_v3(self.stream)
        outputs = [n for n in names if n not in inputs]
        for name in outputs:
            memory[name].to_host(self.stream)
        check(cudart.cudaStreamSynchronize(self.stream))
        for m in memory.values():
            m.free()
        return {name: memory[name].host for name in outputs}


class EngineBuilder:
    """A model becomes a plan: the class that the samples of detectors and classifiers have."""

    def __init__(self, model, logger=LOUD):
        self.builder = trt.Builder(logger)
        self.config = self.builder.create_builder_config()
        self.config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)
        self.network = self.builder.create_network(EXPLICIT)
        self.parser = trt.OnnxParser(self.network, logger)
        if not self.parser.parse(model):
            raise ValueError("; ".join(str(self.parser.get_error(i)) for i in range(self.parser.num_errors)))

    def profile(self, name, low, best, high):
        profile = self.builder.create_optimization_profile()
        profile.set_shape(name, low, best, high)
        assert profile.get_shape(name) == [tuple(low), tuple(best), tuple(high)]
        return self.config.add_optimization_profile(profile)

    def build(self, *flags):
        for flag in flags:
            self.config.set_flag(flag)
        plan = self.builder.build_serialized_network(self.network, self.config)
        assert plan is not None, "the build failed"
        return plan


def model_of(nodes, inputs, outputs, weights=(), opset=13):
    def value(name, shape, dtype=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        [helper.make_node(op, i, o, name=o[0], **a) for op, i, o, a in nodes],
        "sample",
        [value(*i) for i in inputs],
        [value(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(weights).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def fake_quantize(x, scale, axis=None):
    """Quantize and dequantize with zero points of 0, the scale per tensor or along an axis."""
    scale = np.asarray(scale, np.float32)
    if axis is not None:
        scale = scale.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.clip(np.rint(x / scale), -128, 127) * scale


@pytest.mark.parametrize("batch", [1, 3])
def test_network_with_quantize_and_dequantize(batch):
    """A model that was trained for INT8: activations per tensor, weights per output channel."""
    random = np.random.default_rng(11)
    w1 = random.standard_normal((8, 3, 3, 3)).astype(np.float32)
    w2 = random.standard_normal((5, 8)).astype(np.float32)
    b1 = random.standard_normal(8).astype(np.float32)
    scales = {
        "sx": np.float32(0.03),
        "sh": np.float32(0.11),
        "s1": (np.abs(w1).max((1, 2, 3)) / 127).astype(np.float32),
        "s2": (np.abs(w2).max(1) / 127).astype(np.float32),
    }
    weights = {"w1": w1, "w2": w2, "b1": b1, **scales}
    weights.update(zx=np.int8(0), zh=np.int8(0), z1=np.zeros(8, np.int8), z2=np.zeros(5, np.int8))

    def pair(x, s, z, **attributes):
        return [
            ("QuantizeLinear", [x, s, z], [x + "_q"], attributes),
            ("DequantizeLinear", [x + "_q", s, z], [x + "_dq"], attributes),
        ]

    nodes = [
        *pair("x", "sx", "zx"),
        *pair("w1", "s1", "z1", axis=0),
        ("Conv", ["x_dq", "w1_dq", "b1"], ["c"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Relu", ["c"], ["r"], {}),
        ("GlobalAveragePool", ["r"], ["g"], {}),
        ("Flatten", ["g"], ["h"], {}),
        *pair("h", "sh", "zh"),
        *pair("w2", "s2", "z2", axis=0),
        ("Gemm", ["h_dq", "w2_dq"], ["y"], {"transB": 1}),
    ]
    model = model_of(nodes, [("x", (batch, 3, 12, 12))], [("y", (batch, 5))], weights)
    builder = EngineBuilder(model)
    types = [builder.network.get_layer(i).type for i in range(builder.network.num_layers)]
    assert types.count(trt.LayerType.QUANTIZE) == 4 and types.count(trt.LayerType.DEQUANTIZE) == 4
    x = random.uniform(-3, 3, (batch, 3, 12, 12)).astype(np.float32)
    h = conv2d(fake_quantize(x, 0.03), fake_quantize(w1, scales["s1"], 0), b1, 2, 1)
    h = np.maximum(h, 0).mean((2, 3))
    expected = fake_quantize(h.astype(np.float32), 0.11) @ fake_quantize(w2, scales["s2"], 0).T
    y = Inferer(builder.build(trt.BuilderFlag.INT8)).infer(x=x)["y"]
    # A mean on the border of two steps may go to either; else the numbers are the same.
    assert np.ptp(expected) > 8 * 0.11 and np.abs(y - expected).max() <= 0.11 * np.abs(w2).max() + 1e-4, (y, expected)
    assert (np.abs(y - expected) < 1e-3).mean() > 0.5 / batch, (y, expected)


class Batches:
    """Batches of images, as calibrators of the samples read them."""

    def __init__(self, shape, count, seed=3):
        random = np.random.default_rng(seed)
        self.all = [random.standard_normal(shape).astype(np.float32) for _ in range(count)]

    def __iter__(self):
        return iter(self.all)


CALIBRATORS = [
    trt.IInt8EntropyCalibrator2,
    trt.IInt8EntropyCalibrator,
    trt.IInt8MinMaxCalibrator,
    trt.IInt8LegacyCalibrator,
]


def calibrator(base, batches, cache_file, shape):
    class Calibrator(base):
        def __init__(self):
            super().__init__()
            self.device = check(cudart.cudaMalloc(int(np.prod(shape)) * 4))
            self.batches = iter(batches)
            self.served = 0

        def get_batch_size(self):
            return shape[0]

        def get_batch(self, names):
            assert names == ["input"]
            try:
                batch = np.ascontiguousarray(next(self.batches))
            except StopIteration:
                return None
            kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
            check(cudart.cudaMemcpy(self.device, batch, batch.nbytes, kind))
            self.served += 1
            return [int(self.device)]

        def read_calibration_cache(self):
            if os.path.exists(cache_file):
                with open(cache_file, "rb") as file:
                    return file.read()

        def write_calibration_cache(self, cache):
            with open(cache_file, "wb") as file:
                file.write(cache)

        if base is trt.IInt8LegacyCalibrator:

            def get_quantile(self):
                return 0.999

            def get_regression_cutoff(self):
                return 0.9

            def read_histogram_cache(self, length):
                return None

            def write_histogram_cache(self, ptr, length):
                pass

    return Calibrator()


@pytest.mark.parametrize("base", CALIBRATORS, ids=lambda c: c.__name__)
def test_calibration_with_a_cache(base, tmp_path):
    net = Resnet(batch=4, size=16)
    cache = tmp_path / "calibration.cache"
    x = Batches(net.shape, 1, seed=5).all[0]
    expected = net.answer(x)
    errors = []
    for turn in range(2):
        builder = EngineBuilder(net.model())
        made = calibrator(base, Batches(net.shape, 4), cache, net.shape)
        builder.config.int8_calibrator = made
        plan = builder.build(trt.BuilderFlag.INT8)
        # The second build reads what the first wrote, and asks for no batch.
        assert made.served == (4 if turn == 0 else 0)
        errors.append(np.abs(Inferer(plan).infer(input=x)["prob"] - expected).max())
    text = cache.read_text().splitlines()
    assert text[0].startswith("TRT-8503-") and any(line.startswith("input: ") for line in text)
    assert max(errors) < 0.1 * np.ptp(expected), errors


def test_calibration_of_a_dynamic_model(tmp_path):
    """The calibration profile says at which shape batches come."""
    net = Resnet(batch=2, size=16)
    builder = EngineBuilder(net.model(dynamic_batch=True))
    builder.profile("input", (1, *net.shape[1:]), net.shape, (8, *net.shape[1:]))
    calibration = builder.builder.create_optimization_profile()
    calibration.set_shape("input", net.shape, net.shape, net.shape)
    assert builder.config.set_calibration_profile(calibration)
    made = calibrator(CALIBRATORS[0], Batches(net.shape, 3), tmp_path / "cache", net.shape)
    builder.config.int8_calibrator = made
    inferer = Inferer(builder.build(trt.BuilderFlag.INT8))
    assert made.served == 3
    for batch in (1, 2, 5, 8):
        x = np.random.default_rng(batch).standard_normal((batch, *net.shape[1:])).astype(np.float32)
        expected = net.answer(x)
        assert np.abs(inferer.infer(input=x)["prob"] - expected).max() < 0.1 * np.ptp(expected)


def test_ranges_and_precisions_by_hand():
    """INT8 without a calibrator: a range for every tensor, precisions for layers."""
    net = Resnet(batch=2, size=16)
    builder = EngineBuilder(net.model())
    network = builder.network
    for i in range(network.num_inputs):
        assert network.get_input(i).set_dynamic_range(-5.0, 5.0)
    for layer in network:
        for j in range(layer.num_outputs):
            assert layer.get_output(j).set_dynamic_range(-8.0, 8.0)
            assert layer.get_output(j).dynamic_range == (-8.0, 8.0)
    for layer in network:
        if layer.type == trt.LayerType.SOFTMAX:
            layer.precision = trt.float32
            layer.set_output_type(0, trt.float32)
            assert layer.precision_is_set and layer.output_type_is_set(0)
    plan = builder.build(trt.BuilderFlag.INT8, trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    x = np.random.default_rng(1).standard_normal(net.shape).astype(np.float32)
    y, expected = Inferer(plan).infer(input=x)["prob"], net.answer(x)
    assert np.abs(y - expected).max() < 0.3 * np.ptp(expected)


def test_refit_of_a_model_by_its_initializers(tmp_path):
    """An engine of a model whose weights are set from another file of the same graph."""
    nets = [Resnet(size=16, seed=s) for s in (1, 2)]
    builder = EngineBuilder(nets[0].model())
    path = tmp_path / "refittable.plan"
    with builder.build(trt.BuilderFlag.REFIT) as plan, open(path, "wb") as file:
        file.write(plan)
    inferer = Inferer(path)
    x = np.random.default_rng(1).standard_normal(nets[0].shape).astype(np.float32)
    close(inferer.infer(input=x)["prob"], nets[0].answer(x), 1e-3)
    refitter = trt.Refitter(inferer.engine, LOUD)
    names = refitter.get_all_weights()
    assert "fc.w" in names and "stem.w" in names
    for name in names:
        assert name in nets[1].weights, name
        assert refitter.set_named_weights(name, nets[1].weights[name]), name
    # A batch normalization is a layer of scales without names of their own: they are set by layer and role.
    for layer, role in zip(*refitter.get_all()):
        if role in (trt.WeightsRole.SCALE, trt.WeightsRole.SHIFT):
            s, t, m, v = (nets[1].weights[f"{layer[len('node_of_') :]}.{n}"] for n in "stmv")
            scale = s / np.sqrt(v + 1e-5)
            assert refitter.set_weights(layer, role, scale if role == trt.WeightsRole.SCALE else t - m * scale)
    layers, roles = refitter.get_missing()
    assert not layers and not roles and refitter.get_missing_weights() == []
    assert refitter.refit_cuda_engine()
    left = [n for n in nets[1].weights if n not in names and n.rsplit(".", 1)[-1] not in "stmv"]
    assert not left, left
    y = inferer.infer(input=x)["prob"]
    assert np.abs(y - nets[0].answer(x)).max() > 1e-3
    close(y, nets[1].answer(x), 1e-3)


def test_reshaping_in_front_of_a_model():
    """Two engines: one brings images of any size to the size of the other, on one stream, the first one's output in place."""
    size = 16
    builder = trt.Builder(LOUD)
    network = builder.create_network(EXPLICIT)
    image = network.add_input("image", trt.float32, (-1, 3, -1, -1))
    resize = network.add_resize(image)
    # The batch stays, the rest is fixed: a shape that is computed.
    shape = network.add_shape(image).get_output(0)
    batch = network.add_slice(shape, (0,), (1,), (1,)).get_output(0)
    rest = network.add_constant((3,), np.array([3, size, size], np.int32)).get_output(0)
    target = network.add_concatenation([batch, rest])
    target.axis = 0
    resize.set_input(1, target.get_output(0))
    resize.resize_mode = trt.ResizeMode.LINEAR
    resize.get_output(0).name = "input"
    network.mark_output(resize.get_output(0))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 3, 1, 1), (1, 3, 24, 32), (4, 3, 64, 64))
    config.add_optimization_profile(profile)
    before = Inferer(builder.build_serialized_network(network, config))
    net = Resnet(size=size)
    second = EngineBuilder(net.model(dynamic_batch=True))
    second.profile("input", (1, *net.shape[1:]), (2, *net.shape[1:]), (4, *net.shape[1:]))
    after = Inferer(second.build())
    for shape in ((1, 3, 32, 32), (2, 3, 48, 16), (4, 3, 64, 64), (1, 3, 16, 16), (1, 3, 5, 7)):
        x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
        resized = before.infer(image=x)["input"]
        assert resized.shape == (shape[0], 3, size, size)
        rows, columns = (np.minimum(np.arange(size) * n / size, n - 1) for n in shape[2:])
        close(resized, bilinear(x, rows, columns))
        close(after.infer(input=resized)["prob"], net.answer(resized))
    with pytest.raises(AssertionError):
        before.infer(image=np.zeros((5, 3, 8, 8), np.float32))


def bilinear(x, rows, columns):
    """x [n, c, h, w] at rows and columns, which may lie between elements."""
    for axis, at in ((2, rows), (3, columns)):
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        part = (at - low).reshape((-1, 1) if axis == 2 else (-1,))
        x = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return x


def test_network_of_a_state_dictionary():
    """The network API with weights by name, as they come from torch: .numpy() of tensors, Fortran order and views among them."""
    random = np.random.default_rng(2)
    state = {
        "conv1.weight": random.standard_normal((20, 1, 5, 5)).astype(np.float32),
        "conv1.bias": random.standard_normal(20).astype(np.float32),
        "fc1.weight": np.asfortranarray(random.standard_normal((30, 20 * 12 * 12)).astype(np.float32)),
        "fc1.bias": random.standard_normal(60).astype(np.float32)[::2],
    }
    builder = trt.Builder(LOUD)
    network = builder.create_network(EXPLICIT)
    x = network.add_input(name="data", dtype=trt.float32, shape=(-1, 1, 28, 28))
    conv = network.add_convolution(x, 20, (5, 5), state["conv1.weight"], state["conv1.bias"])
    conv.stride = (1, 1)
    pool = network.add_pooling(conv.get_output(0), trt.PoolingType.MAX, (2, 2))
    pool.stride = (2, 2)
    flat = network.add_shuffle(pool.get_output(0))
    flat.reshape_dims = (-1, 20 * 12 * 12)
    w = network.add_constant(state["fc1.weight"].shape, state["fc1.weight"])
    product = network.add_matrix_multiply(
        flat.get_output(0), trt.MatrixOperation.NONE, w.get_output(0), trt.MatrixOperation.TRANSPOSE
    )
    b = network.add_constant((1, 30), trt.Weights(np.ascontiguousarray(state["fc1.bias"])))
    total = network.add_elementwise(product.get_output(0), b.get_output(0), trt.ElementWiseOperation.SUM)
    relu = network.add_activation(total.get_output(0), type=trt.ActivationType.RELU)
    relu.get_output(0).name = "prob"
    network.mark_output(tensor=relu.get_output(0))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("data", (1, 1, 28, 28), (4, 1, 28, 28), (8, 1, 28, 28))
    config.add_optimization_profile(profile)
    inferer = Inferer(builder.build_serialized_network(network, config))
    for batch in (1, 3, 8):
        data = random.standard_normal((batch, 1, 28, 28)).astype(np.float32)
        y = conv2d(data, state["conv1.weight"], state["conv1.bias"])
        y = y.reshape(batch, 20, 12, 2, 12, 2).max((3, 5)).reshape(batch, -1)
        y = np.maximum(y @ state["fc1.weight"].T.astype(np.float64) + state["fc1.bias"], 0)
        close(inferer.infer(data=data)["prob"], y)


def test_outputs_of_unknown_size():
    """A detector's filter: how many rows come is known after the run, and an allocator gives the memory."""

    class Allocator(trt.IOutputAllocator):
        def __init__(self):
            super().__init__()
            self.memory, self.size, self.shape = 0, 0, None

        def reallocate_output(self, name, memory, size, alignment):
            if size > self.size:
                if self.memory:
                    check(cudart.cudaFree(self.memory))
                self.memory, self.size = check(cudart.cudaMalloc(size)), size
            return self.memory

        def notify_shape(self, name, shape):
            self.shape = tuple(shape)

        def array(self):
            result = np.empty(self.shape, np.float32)
            check(cudart.cudaMemcpy(result, self.memory, result.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost))
            return result

    nodes = [
        ("Greater", ["scores", "limit"], ["keep"], {}),
        ("NonZero", ["keep"], ["where"], {}),
        ("Squeeze", ["where", "zero"], ["rows"], {}),
        ("Gather", ["boxes", "rows"], ["kept"], {"axis": 0}),
    ]
    model = model_of(
        nodes,
        [("boxes", ("n", 4)), ("scores", ("n",))],
        [("kept", ("m", 4))],
        {"limit": np.float32(0.5), "zero": np.array([0])},
    )
    builder = EngineBuilder(model)
    profile = builder.builder.create_optimization_profile()
    profile.set_shape("boxes", (1, 4), (50, 4), (100, 4))
    profile.set_shape("scores", (1,), (50,), (100,))
    builder.config.add_optimization_profile(profile)
    engine = trt.Runtime(LOUD).deserialize_cuda_engine(builder.build())
    context = engine.create_execution_context()
    allocator = Allocator()
    assert context.set_output_allocator("kept", allocator)
    stream = check(cudart.cudaStreamCreate())
    for count in (50, 1, 100, 7):
        random = np.random.default_rng(count)
        boxes, scores = random.standard_normal((count, 4)).astype(np.float32), random.random(count).astype(np.float32)
        for turn in range(3):
            if turn == 2:
                scores[:] = 0
            for name, array in (("boxes", boxes), ("scores", scores)):
                assert context.set_input_shape(name, array.shape) and context.set_tensor_address(name, array.ctypes.data)
            assert context.execute_async_v3(stream)
            check(cudart.cudaStreamSynchronize(stream))
            np.testing.assert_array_equal(allocator.array(), boxes[scores > 0.5])
    check(cudart.cudaStreamDestroy(stream))


def test_threads_with_contexts_profiles_and_streams():
    """One engine, a thread for each of its profiles, each with a context, a stream and batches of its own."""
    net = Resnet(size=16)
    builder = EngineBuilder(net.model(dynamic_batch=True))
    rest = net.shape[1:]
    for low, best, high in ((1, 1, 1), (2, 4, 4), (5, 8, 8)):
        builder.profile("input", (low, *rest), (best, *rest), (high, *rest))
    engine = trt.Runtime(LOUD).deserialize_cuda_engine(builder.build())
    assert engine.num_optimization_profiles == 3
    failures = []

    def work(profile, batches):
        try:
            context = engine.create_execution_context()
            stream = check(cudart.cudaStreamCreate())
            assert context.set_optimization_profile_async(profile, stream)
            for turn, batch in enumerate(batches * 4):
                x = np.random.default_rng(100 * profile + turn).standard_normal((batch, *rest)).astype(np.float32)
                y = np.zeros((batch, 10), np.float32)
                assert context.set_input_shape("input", x.shape)
                assert context.set_tensor_address("input", x.ctypes.data) and context.set_tensor_address("prob", y.ctypes.data)
                assert context.execute_async_v3(stream)
                check(cudart.cudaStreamSynchronize(stream))
                close(y, net.answer(x))
            check(cudart.cudaStreamDestroy(stream))
        except BaseException as error:  # what a thread raises is seen nowhere else
            failures.append(error)

    threads = [threading.Thread(target=work, args=a) for a in ((0, [1]), (1, [2, 3, 4]), (2, [5, 8]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_builders_in_threads():
    """Engines are built side by side, with loggers of their own."""
    nets, plans = [Resnet(size=16, seed=s) for s in range(3)], {}

    class Logger(trt.ILogger):
        def __init__(self):
            super().__init__()
            self.lines = 0

        def log(self, severity, msg):
            self.lines += 1

    loggers = [Logger() for _ in nets]

    def work(i):
        plans[i] = EngineBuilder(nets[i].model(), loggers[i]).build()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(nets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, net in enumerate(nets):
        x = np.random.default_rng(i).standard_normal(net.shape).astype(np.float32)
        close(Inferer(plans[i]).infer(input=x)["prob"], net.answer(x))
        assert loggers[i].lines


def test_pinned_memory_through_ctypes():
    """Pinned pages as an array, the samples' HostDeviceMem, and bindings by index."""
    net = Resnet(size=16)
    engine = trt.Runtime(LOUD).deserialize_cuda_engine(EngineBuilder(net.model()).build())
    context = engine.create_execution_context()
    inputs, outputs, bindings, held = [], [], [], []
    for binding in engine:
        count = trt.volume(engine.get_binding_shape(binding))
        dtype = np.dtype(trt.nptype(engine.get_binding_dtype(binding)))
        address = check(cudart.cudaMallocHost(count * dtype.itemsize))
        host = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))
        device = check(cudart.cudaMalloc(count * dtype.itemsize))
        held.append(address)
        bindings.append(int(device))
        (inputs if engine.binding_is_input(binding) else outputs).append((host, device))
    x = np.random.default_rng(4).standard_normal(net.shape).astype(np.float32)
    np.copyto(inputs[0][0], x.ravel())
    stream = check(cudart.cudaStreamCreate())
    to, back = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
    for host, device in inputs:
        check(cudart.cudaMemcpyAsync(device, host, host.nbytes, to, stream))
    assert context.execute_async_v2(bindings=bindings, stream_handle=stream)
    for host, device in outputs:
        check(cudart.cudaMemcpyAsync(host, device, host.nbytes, back, stream))
    check(cudart.cudaStreamSynchronize(stream))
    close(outputs[0][0].reshape(1, 10), net.answer(x))
    for address, device in zip(held, bindings):
        check(cudart.cudaFreeHost(address))
        check(cudart.cudaFree(device))
