# SPDX-License-Identifier: Apache-2.0
"""A model of a DLA from Python: networks beside numpy, cut where a layer cannot go, in FP16 and INT8."""
import numpy as np
import pytest
import tensorrt as trt


class Keeper(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, message):
        self.lines.append(message)

    def has(self, part):
        return [line for line in self.lines if part in line]


@pytest.fixture(params=["orin", "xavier"])
def model(request, monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_DLA_MODEL", request.param)
    return request.param


def convolved(x, w, b):
    """3x3, padding 1, NCHW."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.zeros((x.shape[0], w.shape[0], *x.shape[2:])) + b[:, None, None]
    for i in range(3):
        for j in range(3):
            y += np.einsum("nchw,kc->nkhw", padded[:, :, i : i + x.shape[2], j : j + x.shape[3]], w[:, :, i, j])
    return y


def run(logger, plan, feeds):
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine, logger.lines
    context = engine.create_execution_context()
    outputs = {}
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        array = feeds.get(name)
        if array is None:
            array = outputs[name] = np.zeros(tuple(engine.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name)))
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    return outputs


@pytest.mark.parametrize("seed", range(3))
def test_cut_in_three(model, seed):
    random = np.random.default_rng(seed)
    n, c, h, w = (int(v) for v in random.integers([1, 1, 3, 3], [4, 6, 12, 12]))
    logger = Keeper()
    builder = trt.Builder(logger)
    assert builder.num_DLA_cores == 2 and builder.max_DLA_batch_size == 4096
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (n, c, h, w))
    want = feed = random.standard_normal((n, c, h, w)).astype(np.float32)
    t, kept = x, []
    for step in range(3):
        weights = (random.standard_normal((8, t.shape[1], 3, 3)) * 0.2).astype(np.float32)
        bias = random.standard_normal(8).astype(np.float32)
        kept += [weights, bias]
        layer = network.add_convolution_nd(t, 8, (3, 3), weights, bias)
        layer.padding_nd = (1, 1)
        t, want = layer.get_output(0), convolved(want, weights, bias)
        if step < 2:  # DLA has no tan^-1
            layer = network.add_unary(t, trt.UnaryOperation.ATAN)
            layer.name = f"atan{step}"
            t, want = layer.get_output(0), np.arctan(want)
    t.name = "y"
    network.mark_output(t)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = 1
    assert config.DLA_core == 1
    assert [config.can_run_on_DLA(network[i]) for i in range(5)] == [True, False, True, False, True]
    assert builder.build_serialized_network(network, config) is None
    assert logger.has("layer 'atan0' (Unary) cannot run on DLA (not supported on DLA)")
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    plan = builder.build_serialized_network(network, config)
    assert logger.has(f"3 of 3 subgraph candidates compiled to loadables for core 1 of {model} (model, not the device)")
    y = run(logger, plan, {"x": feed})["y"]
    np.testing.assert_allclose(y, want, atol=2e-2 * np.abs(want).max())


def test_int8_clips_and_rounds(model):
    random = np.random.default_rng(5)
    logger = Keeper()
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    shape = (2, 4, 3, 5)
    x = network.add_input("x", trt.float32, shape)
    # The largest weight of each output is 127, so that a step is 1; the others lie between integers, many in the middle.
    weights = (random.integers(-8, 9, (6, 4, 1, 1)) / 2).astype(np.float32)
    weights[:, 0] = 127
    layer = network.add_convolution_nd(x, 6, (1, 1), weights)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    x.dynamic_range = (-127, 127)
    layer.get_output(0).dynamic_range = (-254, 254)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    config.default_device_type = trt.DeviceType.DLA
    assert config.can_run_on_DLA(network[0])
    feed = random.integers(-40, 41, shape).astype(np.float32)
    feed[:, 0] = random.integers(-2, 3, (2, 3, 5))
    y = run(logger, builder.build_serialized_network(network, config), {"x": feed})["y"]
    to_zero = np.sign(weights) * np.ceil(np.abs(weights) - 0.5)
    want = np.einsum("nchw,kc->nkhw", feed, to_zero[:, :, 0, 0])
    np.testing.assert_array_equal(y, np.clip(np.round(want / 2), -128, 127) * 2)


def test_formats(model):
    logger = Keeper()
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    x = network.add_input("x", trt.float16, (1, 3, 4, 5))
    weights = np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1)
    layer = network.add_convolution_nd(x, 2, (1, 1), weights)
    y = layer.get_output(0)
    y.name = "y"
    network.mark_output(y)
    y.dtype = trt.float16
    x.allowed_formats = 1 << int(trt.TensorFormat.DLA_HWC4)
    y.allowed_formats = 1 << int(trt.TensorFormat.DLA_LINEAR)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.DIRECT_IO)
    config.default_device_type = trt.DeviceType.DLA
    engine = builder.build_engine(network, config)
    assert engine, logger.lines
    context = engine.create_execution_context()
    row = 4 if model == "xavier" else 8
    row = -(-5 // row) * row
    assert tuple(context.get_strides(0)) == (4 * row * 4, 1, row * 4, 4)
    assert tuple(context.get_tensor_strides("y")) == (2 * 4 * 32, 4 * 32, 32, 1)
    assert engine.get_tensor_format("x") == trt.TensorFormat.DLA_HWC4 and tuple(engine.get_tensor_shape("x")) == (1, 3, 4, 5)
    image = np.full((1, 4, row, 4), np.nan, np.float16)
    image[:, :, :5, :3] = np.random.default_rng(1).integers(-3, 4, (1, 4, 5, 3))
    out = np.zeros((1, 2, 4, 32), np.float16)
    context.set_tensor_address("x", image.ctypes.data)
    context.set_tensor_address("y", out.ctypes.data)
    assert context.execute_async_v3(0)
    want = np.einsum("nhwc,kc->nkhw", image[:, :, :5, :3].astype(np.float32), weights[:, :, 0, 0])
    np.testing.assert_array_equal(out[..., :5], want)


def test_standalone(model):
    logger = Keeper()
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    layer = network.add_activation(network.add_input("x", trt.float16, (1, 3, 4, 5)), trt.ActivationType.RELU)
    network.mark_output(layer.get_output(0))
    layer.get_output(0).dtype = trt.float16
    for t in layer.get_input(0), layer.get_output(0):
        t.allowed_formats = 1 << int(trt.TensorFormat.CHW16)
    config = builder.create_builder_config()
    config.engine_capability = trt.EngineCapability.DLA_STANDALONE
    assert config.engine_capability == trt.EngineCapability.DLA_STANDALONE
    config.default_device_type = trt.DeviceType.DLA
    config.set_flag(trt.BuilderFlag.FP16)
    assert builder.build_serialized_network(network, config) is None
    assert logger.has("needs BuilderFlag::kDIRECT_IO")
    config.set_flag(trt.BuilderFlag.DIRECT_IO)
    loadable = builder.build_serialized_network(network, config)
    assert bytes(loadable)[:6] == b"TWDLAM"
    assert trt.Runtime(logger).deserialize_cuda_engine(loadable) is None
    assert logger.has("cuDLA (libcudla) runs it")
