# SPDX-License-Identifier: Apache-2.0
"""More programs in the ways of 8.5's Python samples, at random parameters (TW_SEED chooses them): what they keep, choose, record and ask of
an engine, beside answers by NumPy."""

import json
import os

import numpy as np
import pytest
import tensorrt as trt

from models import close, conv2d, max_pool
from small import LOUD, QUIET, engine_of, run

SEEDS = [int(os.environ.get("TW_SEED", 0)) + i for i in range(3)]
EXPLICIT = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


class ConvNet:
    """A network of convolutions, activations, poolings and a classifier, as a sample fills it with the weights of a state dictionary."""

    def __init__(self, seed, batch=None, logger=LOUD):
        self.random = np.random.default_rng(seed)
        r = self.random
        self.batch, self.channels, self.size = batch or int(r.integers(1, 4)), int(r.integers(1, 5)), int(r.integers(9, 20))
        self.shape = (self.batch, self.channels, self.size, self.size)
        self.weights, self.steps, c = {}, [], self.channels
        for i in range(int(r.integers(1, 4))):
            k, window = int(r.integers(2, 9)), int(r.choice([1, 3, 5]))
            self.weights[f"conv{i}.weight"] = (r.standard_normal((k, c, window, window)) / window / np.sqrt(c)).astype(np.float32)
            self.weights[f"conv{i}.bias"] = r.standard_normal(k).astype(np.float32)
            self.steps.append((f"conv{i}", window // 2, str(r.choice(["RELU", "TANH", "SIGMOID"])), bool(r.random() < 0.5)))
            c = k
        self.weights["fc.weight"] = (r.standard_normal((5, c)) / np.sqrt(c)).astype(np.float32)
        self.weights["fc.bias"] = r.standard_normal(5).astype(np.float32)

    def input(self):
        return self.random.standard_normal(self.shape).astype(np.float32)

    def fill(self, network, batch=None):
        x = network.add_input("data", trt.float32, (batch or self.batch, *self.shape[1:]))
        for name, padding, activation, pool in self.steps:
            w = self.weights[name + ".weight"]
            conv = network.add_convolution_nd(x, w.shape[0], w.shape[2:], w, self.weights[name + ".bias"])
            conv.name, conv.padding_nd = name, (padding, padding)
            act = network.add_activation(conv.get_output(0), getattr(trt.ActivationType, activation))
            act.name = name + ".act"
            x = act.get_output(0)
            if pool:
                pool = network.add_pooling_nd(x, trt.PoolingType.MAX, trt.Dims([2, 2]))
                pool.stride_nd, pool.name = (1, 1), name + ".pool"
                x = pool.get_output(0)
        mean = network.add_reduce(x, trt.ReduceOperation.AVG, axes=(1 << 2) | (1 << 3), keep_dims=False)
        mean.name = "mean"
        w = network.add_constant((5, mean.get_output(0).shape[1]), self.weights["fc.weight"])
        w.name = "fc.weight"
        product = network.add_matrix_multiply(mean.get_output(0), trt.MatrixOperation.NONE, w.get_output(0), trt.MatrixOperation.TRANSPOSE)
        product.name = "fc"
        b = network.add_constant((1, 5), self.weights["fc.bias"])
        b.name = "fc.bias"
        y = network.add_elementwise(product.get_output(0), b.get_output(0), trt.ElementWiseOperation.SUM)
        y.name = "logits"
        y.get_output(0).name = "scores"
        network.mark_output(y.get_output(0))
        return network

    def answer(self, x):
        x = x.astype(np.float64)
        for name, padding, activation, pool in self.steps:
            x = conv2d(x, self.weights[name + ".weight"], self.weights[name + ".bias"], 1, padding)
            x = {"RELU": lambda v: np.maximum(v, 0), "TANH": np.tanh, "SIGMOID": lambda v: 1 / (1 + np.exp(-v))}[activation](x)
            x = max_pool(x, 2, 1) if pool else x
        return x.mean((2, 3)) @ self.weights["fc.weight"].T.astype(np.float64) + self.weights["fc.bias"]


def built(net, config=None, builder=None, **more):
    builder = builder or trt.Builder(LOUD)
    return engine_of(builder, net.fill(builder.create_network(EXPLICIT)), config or builder.create_builder_config(), **more)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_timing_cache_from_file_to_file(seed, tmp_path):
    """The first program writes the cache, the next reads it: the same plan, and a cache that has grown by nothing."""
    plans, path = [], tmp_path / "timing.cache"
    for turn in range(3):
        builder = trt.Builder(LOUD)
        config = builder.create_builder_config()
        data = path.read_bytes() if path.exists() else b""
        cache = config.create_timing_cache(data)
        assert cache is not None and config.set_timing_cache(cache, ignore_mismatch=False)
        plan = builder.build_serialized_network(ConvNet(seed).fill(builder.create_network(EXPLICIT)), config)
        plans.append(bytes(plan))
        kept = config.get_timing_cache().serialize()
        assert kept.nbytes == len(bytes(kept)) > 32
        assert turn == 0 or bytes(kept) == data
        with open(path, "wb") as file:
            file.write(kept)
    assert plans[1] == plans[2]
    # Two programs' caches put together serve both; after reset() the cache is as empty as a new one.
    config = trt.Builder(LOUD).create_builder_config()
    one, other = config.create_timing_cache(path.read_bytes()), config.create_timing_cache(b"")
    assert other.combine(one, ignore_mismatch=False) and bytes(other.serialize()) == path.read_bytes()
    assert other.reset() and bytes(other.serialize()) == bytes(config.create_timing_cache(b"").serialize())


class LayerTimes(trt.IProfiler):
    def __init__(self):
        trt.IProfiler.__init__(self)
        self.times = {}

    def report_layer_time(self, layer_name, ms):
        self.times.setdefault(layer_name, []).append(ms)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("detail", ["DETAILED", "LAYER_NAMES_ONLY", "NONE"])
def test_profiler_and_inspector_name_the_same_layers(seed, detail):
    net, builder = ConvNet(seed), trt.Builder(LOUD)
    config = builder.create_builder_config()
    config.profiling_verbosity = getattr(trt.ProfilingVerbosity, detail)
    engine = built(net, config, builder)
    assert engine.profiling_verbosity == config.profiling_verbosity
    context, x = engine.create_execution_context(), net.input()
    times = context.profiler = LayerTimes()
    assert context.enqueue_emits_profile
    for _ in range(2):
        close(run(engine, context, data=x)["scores"], net.answer(x))
    context.enqueue_emits_profile = False
    close(run(engine, context, data=x)["scores"], net.answer(x))
    counts = {len(t) for t in times.times.values()}
    assert counts == {2} and all(ms >= 0 for t in times.times.values() for ms in t)
    assert context.report_to_profiler() and {len(t) for t in times.times.values()} == {3}
    assert len(times.times) == engine.num_layers
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    whole = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    if detail == "NONE":
        assert not whole.get("Layers")
        return
    assert len(whole["Layers"]) == engine.num_layers
    names = [layer["Name"] if isinstance(layer, dict) else layer for layer in whole["Layers"]]
    assert sorted(names) == sorted(times.times)
    for i, name in enumerate(names):
        assert name in inspector.get_layer_information(i, trt.LayerInformationFormat.JSON)
        assert name in inspector.get_layer_information(i, trt.LayerInformationFormat.ONELINE)
    if detail == "DETAILED":
        layer = next(layer for layer in whole["Layers"] if "conv0" in layer["Name"])
        assert layer["Inputs"] and layer["Outputs"] and layer["TacticName"]


class Recorded(trt.IAlgorithmSelector):
    """Keeps what the builder chose."""

    def __init__(self):
        trt.IAlgorithmSelector.__init__(self)
        self.choices, self.offered = {}, {}

    def select_algorithms(self, context, choices):
        self.offered[context.name] = len(choices)
        return list(range(len(choices)))

    def report_algorithms(self, contexts, choices):
        for context, choice in zip(contexts, choices):
            variant = choice.algorithm_variant
            io = [choice.get_algorithm_io_info(i) for i in range(context.num_inputs + context.num_outputs)]
            self.choices[context.name] = (variant.implementation, variant.tactic, [(i.dtype, i.tensor_format, tuple(i.strides)) for i in io])


class Replayed(Recorded):
    """Allows what a record holds, or what `pick` says, alone."""

    def __init__(self, record=None, pick=None):
        Recorded.__init__(self)
        self.record, self.pick = record, pick

    def select_algorithms(self, context, choices):
        if self.pick:
            return [self.pick(choices)]
        implementation, tactic, io = self.record[context.name]
        found = []
        for i, choice in enumerate(choices):
            variant = choice.algorithm_variant
            mine = [choice.get_algorithm_io_info(j) for j in range(context.num_inputs + context.num_outputs)]
            if (variant.implementation, variant.tactic) == (implementation, tactic):
                if [(i.dtype, i.tensor_format, tuple(i.strides)) for i in mine] == io:
                    found.append(i)
        assert found, f"{context.name}: what was chosen is not offered again"
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_algorithms_recorded_chosen_and_replayed(seed):
    net = ConvNet(seed)
    x = net.input()
    record = None
    for selector in (Recorded(), None, Replayed(pick=lambda c: max(range(len(c)), key=lambda i: c[i].timing_msec)),
                     Replayed(pick=lambda c: min(range(len(c)), key=lambda i: c[i].workspace_size))):
        builder = trt.Builder(LOUD)
        config = builder.create_builder_config()
        config.algorithm_selector = selector or Replayed(record)
        assert config.algorithm_selector is not None
        close(run(built(net, config, builder), data=x)["scores"], net.answer(x))
        chosen = config.algorithm_selector.choices
        assert chosen
        if record is None:
            record = chosen
        elif selector is None:
            assert chosen == record
    # None of them: the build says so.
    config.algorithm_selector = Replayed(pick=lambda choices: len(choices) + 5)
    builder = trt.Builder(QUIET)
    assert builder.build_serialized_network(net.fill(builder.create_network(EXPLICIT)), config) is None


class Errors(trt.IErrorRecorder):
    def __init__(self):
        trt.IErrorRecorder.__init__(self)
        self.rows = []

    def num_errors(self):
        return len(self.rows)

    def get_error_code(self, arg0):
        return self.rows[arg0][0]

    def get_error_desc(self, arg0):
        return self.rows[arg0][1]

    def has_overflowed(self):
        return False

    def clear(self):
        self.rows.clear()

    def report_error(self, arg0, arg1):
        self.rows.append((arg0, arg1))
        return False


@pytest.mark.parametrize("seed", SEEDS)
def test_each_object_tells_its_recorder(seed):
    net, errors = ConvNet(seed), {}
    for name in ("builder", "network", "runtime", "engine", "context", "inspector"):
        errors[name] = Errors()

    def told(name, word):
        rows = errors[name].rows
        assert rows and all(isinstance(code, trt.ErrorCodeTRT) and text for code, text in rows), (name, rows)
        assert any(word in text for _, text in rows), (name, rows)
        errors[name].clear()

    builder = trt.Builder(QUIET)
    builder.error_recorder = errors["builder"]
    network = builder.create_network(EXPLICIT)
    network.error_recorder = errors["network"]
    assert builder.error_recorder is errors["builder"] and network.error_recorder is errors["network"]
    x = network.add_input("data", trt.float32, (1, net.channels, 8, 8))
    w = np.ones((2, net.channels + 1, 3, 3), np.float32)
    layer = network.add_convolution_nd(x, 2, (3, 3), w)
    if layer is not None:
        network.mark_output(layer.get_output(0))
        assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    rows = errors["network"].rows + errors["builder"].rows
    assert rows and all(isinstance(code, trt.ErrorCodeTRT) for code, _ in rows), rows
    good = net.fill(builder.create_network(EXPLICIT))
    plan = builder.build_serialized_network(good, builder.create_builder_config())
    runtime = trt.Runtime(QUIET)
    runtime.error_recorder = errors["runtime"]
    data = bytearray(bytes(plan))
    data[len(data) // 2 :] = b""
    assert runtime.deserialize_cuda_engine(data) is None
    told("runtime", "")
    engine = runtime.deserialize_cuda_engine(plan)
    engine.error_recorder = errors["engine"]
    with pytest.raises(ValueError):
        len(engine.get_tensor_shape("nobody"))  # of rank -1, as in C++
    told("engine", "nobody")
    context = engine.create_execution_context()
    context.error_recorder = errors["context"]
    assert not context.set_input_shape("data", (net.batch + 1, *net.shape[1:]))
    told("context", "data")
    assert not context.execute_async_v3(0)  # no addresses
    told("context", "")
    value = net.input()
    close(run(engine, context, data=value)["scores"], net.answer(value))
    assert not errors["context"].rows
    inspector = engine.create_engine_inspector()
    inspector.error_recorder = errors["inspector"]
    inspector.get_layer_information(engine.num_layers + 7, trt.LayerInformationFormat.JSON)
    told("inspector", "")


def packed(x, lanes):
    """[n, c, h, w] as [n, c / lanes, h, w, lanes], filled with zeros."""
    n, c, h, w = x.shape
    groups = -(-c // lanes)
    y = np.zeros((n, groups * lanes, h, w), x.dtype)
    y[:, :c] = x
    return np.ascontiguousarray(y.reshape(n, groups, lanes, h, w).transpose(0, 1, 3, 4, 2))


def unpacked(x, channels):
    n, groups, h, w, lanes = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, groups * lanes, h, w)[:, :channels]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form, lanes", [("LINEAR", 1), ("CHW4", 4), ("CHW32", 32)])
def test_int8_inputs_and_outputs(seed, form, lanes):
    """The caller gives quantized tensors in the layout that it asked for. Without reformats the CPU has linear ones alone."""
    r = np.random.default_rng(seed)
    n, c, k, size = int(r.integers(1, 4)), int(r.integers(1, 40)), int(r.integers(1, 40)), int(r.integers(3, 9))
    scale_x, scale_y = 0.05, 0.1
    w = (r.standard_normal((k, c, 3, 3)) / np.sqrt(9 * c)).astype(np.float32)
    builder = trt.Builder(LOUD)
    network, config = builder.create_network(EXPLICIT), builder.create_builder_config()
    x = network.add_input("x", trt.float32, (n, c, size, size))
    conv = network.add_convolution_nd(x, k, (3, 3), w, np.zeros(k, np.float32))
    conv.padding_nd = (1, 1)
    y = conv.get_output(0)
    y.name = "y"
    network.mark_output(y)
    for tensor, scale in ((x, scale_x), (y, scale_y)):
        tensor.dtype = trt.int8
        tensor.allowed_formats = 1 << int(getattr(trt.TensorFormat, form))
        assert tensor.set_dynamic_range(-127 * scale, 127 * scale) and tensor.dynamic_range == pytest.approx((-127 * scale, 127 * scale))
    config.set_flag(trt.BuilderFlag.INT8)
    if form == "LINEAR":
        config.set_flag(trt.BuilderFlag.DIRECT_IO)
    engine = engine_of(builder, network, config)
    for name in "xy":
        assert engine.get_tensor_dtype(name) == trt.int8 and engine.get_tensor_format(name) == getattr(trt.TensorFormat, form)
        assert engine.get_tensor_components_per_element(name) == (lanes if lanes > 1 else -1) or lanes == 1
        assert engine.get_tensor_bytes_per_component(name) == 1 or lanes == 1
        assert form == "LINEAR" or engine.get_tensor_vectorized_dim(name) == 1
    q = r.integers(-128, 128, (n, c, size, size)).astype(np.int8)
    context = engine.create_execution_context()
    given, taken = packed(q, lanes), np.zeros((n, -(-k // lanes), size, size, lanes), np.int8)
    if lanes == 1:
        given, taken = q.copy(), np.zeros((n, k, size, size), np.int8)
    assert context.set_tensor_address("x", given.ctypes.data) and context.set_tensor_address("y", taken.ctypes.data)
    assert context.execute_async_v3(0)
    result = taken if lanes == 1 else unpacked(taken, k)
    # Weights are quantized or not, as the builder finds best: within what that moves, and one step.
    exact = conv2d(q.astype(np.float64) * scale_x, w, None, 1, 1)
    expected = np.clip(np.rint(exact / scale_y), -128, 127)
    assert np.ptp(expected) > 20
    assert np.abs(result.astype(int) - expected).max() <= 2 + 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_profiles_by_bindings_of_old(seed):
    """Two profiles, a context of each, bindings by number: each profile's follow those of the one before."""
    net = ConvNet(seed, batch=1)
    builder = trt.Builder(LOUD)
    network, config = net.fill(builder.create_network(EXPLICIT), batch=-1), builder.create_builder_config()
    ranges = [(1, 2, 3), (4, 6, 9)]
    for i, three in enumerate(ranges):
        profile = builder.create_optimization_profile()
        profile.set_shape("data", *((n, *net.shape[1:]) for n in three))
        assert config.add_optimization_profile(profile) == i
    engine = engine_of(builder, network, config)
    assert engine.num_optimization_profiles == 2 and engine.num_bindings == 4 and engine.num_io_tensors == 2
    contexts = [engine.create_execution_context() for _ in ranges]
    for turn in range(2):
        for i, (low, best, high) in enumerate(ranges):
            context = contexts[i]
            if turn == 0:
                assert context.set_optimization_profile_async(i, 0)
            assert context.active_optimization_profile == i
            assert tuple(engine.get_profile_shape(i, i * 2)) == tuple((n, *net.shape[1:]) for n in (low, best, high))
            n = int(net.random.integers(low, high + 1))
            x = net.random.standard_normal((n, *net.shape[1:])).astype(np.float32)
            assert context.set_binding_shape(i * 2, x.shape) and context.all_binding_shapes_specified
            assert tuple(context.get_binding_shape(i * 2 + 1)) == (n, 5)
            y = np.zeros((n, 5), np.float32)
            bindings = [0] * engine.num_bindings
            bindings[i * 2], bindings[i * 2 + 1] = x.ctypes.data, y.ctypes.data
            assert context.execute_async_v2(bindings, 0)
            close(y, net.answer(x))
            outside = (high + 1, *net.shape[1:])
            assert not context.set_binding_shape(i * 2, outside)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("named", [False, True])
def test_refit_of_some_weights_at_a_time(seed, named):
    """Any of the weights, in any order; get_missing() says what belongs to them."""
    net, builder = ConvNet(seed), trt.Builder(LOUD)
    config, network = builder.create_builder_config(), builder.create_network(EXPLICIT)
    config.set_flag(trt.BuilderFlag.REFIT)
    net.fill(network)
    roles = {f"{s[0]}.{part}": (s[0], getattr(trt.WeightsRole, role)) for s in net.steps for part, role in (("weight", "KERNEL"), ("bias", "BIAS"))}
    roles.update({name: (name, trt.WeightsRole.CONSTANT) for name in ("fc.weight", "fc.bias")})
    if named:
        for i in range(network.num_layers):
            layer = network.get_layer(i)
            if layer.type == trt.LayerType.CONVOLUTION:
                layer.__class__ = trt.IConvolutionLayer
                assert network.set_weights_name(trt.Weights(layer.kernel), layer.name + ".weight")
                assert network.set_weights_name(trt.Weights(layer.bias), layer.name + ".bias")
    engine = engine_of(builder, network, config)
    with trt.Refitter(engine, LOUD) as refitter:
        assert set(zip(*refitter.get_all())) == set(roles.values())
        for _ in range(3):
            names = list(net.random.permutation(sorted(roles)))[: int(net.random.integers(1, len(roles) + 1))]
            for name in names:
                old = net.weights[name]
                net.weights[name] = (old + 0.3 * net.random.standard_normal(old.shape)).astype(np.float32)
                if named and "conv" in name:
                    assert refitter.set_named_weights(name, trt.Weights(net.weights[name]))
                else:
                    assert refitter.set_weights(*roles[name], net.weights[name])
            layers, kinds = refitter.get_missing()
            for layer, kind in zip(layers, kinds):
                name = next(n for n, role in roles.items() if role == (layer, kind))
                assert refitter.set_weights(layer, kind, net.weights[name])
            assert refitter.get_missing() == ([], [])
            assert refitter.refit_cuda_engine()
            x = net.input()
            close(run(engine, data=x)["scores"], net.answer(x))
        assert not refitter.set_weights("nobody", trt.WeightsRole.KERNEL, np.ones(3, np.float32))
        assert not refitter.set_weights("conv0", trt.WeightsRole.KERNEL, np.ones(3, np.float32))


class Chosen(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.memory, self.shape, self.asked = None, None, 0

    def reallocate_output(self, tensor_name, memory, size, alignment):
        self.asked += 1
        self.memory = np.zeros(max(size, 1) + alignment, np.uint8)
        self.at = -self.memory.ctypes.data % max(alignment, 1)
        return self.memory.ctypes.data + self.at

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)

    def array(self, dtype):
        count = int(np.prod(self.shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return self.memory[self.at : self.at + count].view(dtype).reshape(self.shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_output_allocator_from_run_to_run(seed):
    """Sizes that follow from numbers: none, some and all elements, in one context."""
    r = np.random.default_rng(seed)
    shape = tuple(int(n) for n in r.integers(1, 7, int(r.integers(1, 4))))
    builder = trt.Builder(LOUD)
    network = builder.create_network(EXPLICIT)
    x = network.add_input("x", trt.float32, shape)
    limit = network.add_constant([1] * len(shape), np.zeros([1] * len(shape), np.float32))
    above = network.add_elementwise(x, limit.get_output(0), trt.ElementWiseOperation.GREATER)
    places = network.add_non_zero(above.get_output(0)).get_output(0)
    moved = network.add_shuffle(places)
    moved.first_transpose = trt.Permutation([1, 0])
    values = network.add_gather_v2(x, moved.get_output(0), trt.GatherMode.ND).get_output(0)
    for name, tensor in (("places", places), ("values", values)):
        tensor.name = name
        network.mark_output(tensor)
    engine = engine_of(builder, network, builder.create_builder_config())
    context = engine.create_execution_context()
    outputs = {name: Chosen() for name in ("places", "values")}
    for name, output in outputs.items():
        assert context.set_output_allocator(name, output) and context.get_output_allocator(name) is output
        assert -1 in tuple(engine.get_tensor_shape(name)) and context.get_max_output_size(name) >= 0
    for shift in (0.0, -9.0, 9.0, 0.5):
        given = (r.standard_normal(shape) + shift).astype(np.float32)
        assert context.set_tensor_address("x", given.ctypes.data) and context.execute_async_v3(0)
        np.testing.assert_array_equal(outputs["places"].array(np.int32), np.array(np.nonzero(given > 0)))
        np.testing.assert_array_equal(outputs["values"].array(np.float32), given[given > 0])
