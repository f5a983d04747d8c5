# SPDX-License-Identifier: Apache-2.0
"""An ONNX model from the file to the answer, in the ways of 8.5's samples."""

import pathlib
import re

import numpy as np
import pytest
import tensorrt as trt

from models import Resnet, close

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)
EXPLICIT_BATCH = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


def build(model, configure=None):
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(EXPLICIT_BATCH)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse(model), [str(parser.get_error(i)) for i in range(parser.num_errors)]
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 28)
    if configure:
        configure(builder, network, config)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return plan


@pytest.fixture(scope="module")
def resnet():
    return Resnet(batch=2)


@pytest.fixture(scope="module")
def engine(resnet):
    return trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(build(resnet.model()))


def image(resnet, batch=None):
    return np.random.default_rng(3).standard_normal((batch or resnet.shape[0],) + resnet.shape[1:]).astype(np.float32)


def test_execute_v2(resnet, engine):
    context = engine.create_execution_context()
    x, y = image(resnet), np.empty((2, 10), np.float32)
    buffers = {"input": x, "prob": y}
    bindings = [buffers[name].ctypes.data for name in engine]
    assert context.execute_v2(bindings=bindings)
    close(y, resnet.answer(x))


def test_execute_async_v3(resnet, engine):
    context = engine.create_execution_context()
    x, y = image(resnet), np.empty((2, 10), np.float32)
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        array = x if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT else y
        assert tuple(engine.get_tensor_shape(name)) == array.shape
        assert trt.nptype(engine.get_tensor_dtype(name)) == array.dtype
        assert context.set_tensor_address(name, array.ctypes.data)
        assert context.get_tensor_address(name) == array.ctypes.data
    assert context.execute_async_v3(stream_handle=0)
    close(y, resnet.answer(x))


def test_plan_through_a_file(resnet, tmp_path):
    plan = build(resnet.model())
    path = tmp_path / "resnet.plan"
    path.write_bytes(plan)
    assert path.stat().st_size == plan.nbytes == len(memoryview(plan)) == len(bytes(plan))
    with open(path, "rb") as f:
        engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(f.read())
    assert engine.get_tensor_shape("prob") == (2, 10)
    assert bytes(engine.serialize())[:4] == bytes(plan)[:4]


def test_parse_from_file(resnet, tmp_path):
    path = tmp_path / "resnet.onnx"
    path.write_bytes(resnet.model())
    network = trt.Builder(TRT_LOGGER).create_network(EXPLICIT_BATCH)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse_from_file(str(path))
    assert network.num_layers > 10 and network.get_input(0).name == "input" and network.get_output(0).name == "prob"
    assert {layer.type for layer in network} >= {trt.LayerType.CONVOLUTION, trt.LayerType.ACTIVATION, trt.LayerType.SOFTMAX}


def test_dynamic_batch(resnet):
    def configure(builder, network, config):
        assert network.get_input(0).shape == (-1,) + resnet.shape[1:]
        profile = builder.create_optimization_profile()
        profile.set_shape("input", (1, 3, 32, 32), (2, 3, 32, 32), (4, 3, 32, 32))
        assert [tuple(s) for s in profile.get_shape("input")] == [(n, 3, 32, 32) for n in (1, 2, 4)]
        with pytest.raises(ValueError, match="input"):
            profile.set_shape("input", (5, 3, 32, 32), (2, 3, 32, 32), (4, 3, 32, 32))
        profile.set_shape(input="input", min=(1, 3, 32, 32), opt=(2, 3, 32, 32), max=(4, 3, 32, 32))
        assert config.add_optimization_profile(profile) == 0

    plan = build(resnet.model(dynamic_batch=True), configure)
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(plan)
    assert [tuple(s) for s in engine.get_tensor_profile_shape("input", 0)] == [(n, 3, 32, 32) for n in (1, 2, 4)]
    context = engine.create_execution_context()
    assert context.infer_shapes() == ["input"]
    assert not context.set_input_shape("input", (5, 3, 32, 32))
    for batch in (1, 3, 4):
        x, y = image(resnet, batch), np.empty((batch, 10), np.float32)
        assert context.set_input_shape("input", x.shape)
        assert context.infer_shapes() == [] and context.get_tensor_shape("prob") == (batch, 10)
        context.set_tensor_address("input", x.ctypes.data)
        context.set_tensor_address("prob", y.ctypes.data)
        assert context.execute_async_v3(0)
        close(y, resnet.answer(x))


def test_not_a_model():
    network = trt.Builder(TRT_LOGGER).create_network(EXPLICIT_BATCH)
    parser = trt.OnnxParser(network, trt.Logger(trt.Logger.INTERNAL_ERROR))
    assert not parser.parse(b"this is no model")
    assert parser.num_errors == 1 and parser.get_error(0).code() == trt.ErrorCode.MODEL_DESERIALIZE_FAILED
    assert "not an ONNX model" in parser.get_error(0).desc()
    with pytest.raises(IndexError):
        parser.get_error(1)
    error = parser.get_error(0)
    parser.clear_errors()
    assert parser.num_errors == 0
    assert "not an ONNX model" in error.desc() and error.node() == -1 and error.line() > 0 and error.file() and error.func()
    assert "not an ONNX model" in str(error) == repr(error)


def test_not_a_plan():
    runtime = trt.Runtime(trt.Logger(trt.Logger.INTERNAL_ERROR))
    assert runtime.deserialize_cuda_engine(b"this is no plan") is None
    assert runtime.deserialize_cuda_engine(b"") is None
    with pytest.raises(TypeError):
        runtime.deserialize_cuda_engine("text")


def test_program_of_the_readme(resnet, tmp_path, monkeypatch, capsys):
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    (tmp_path / "model.onnx").write_bytes(resnet.model())
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert capsys.readouterr().out == "ran\n"
