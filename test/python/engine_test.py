# SPDX-License-Identifier: Apache-2.0
"""What is done with engines: refit, inspection, timing caches, settings, profiles; and the warnings of older names."""

import json
import warnings

import numpy as np
import pytest
import tensorrt as trt

from models import close, conv2d
from small import B, LOUD, QUIET, W, convolution, engine_of, run

X = np.random.default_rng(5).standard_normal((1, 3, 8, 8)).astype(np.float32)


def answer(w, b):
    return np.maximum(conv2d(X, w, b, padding=1), 0)


def test_refit():
    engine = engine_of(*convolution(flags=[trt.BuilderFlag.REFIT]))
    assert engine.refittable
    refitter = trt.Refitter(engine, LOUD)
    assert refitter.logger is LOUD
    layers, roles = refitter.get_all()
    assert sorted(zip(layers, map(int, roles))) == [("conv", int(trt.WeightsRole.KERNEL)), ("conv", int(trt.WeightsRole.BIAS))]
    w, b = W[::-1].copy(), np.arange(4, dtype=np.float32)
    assert not trt.Refitter(engine, QUIET).set_weights("nothing", trt.WeightsRole.KERNEL, w)
    assert not trt.Refitter(engine, QUIET).set_weights("conv", trt.WeightsRole.KERNEL, w[:1])
    assert refitter.set_weights("conv", trt.WeightsRole.KERNEL, w.copy())  # kept until it is applied
    missing = refitter.get_missing()
    for layer, role in zip(*missing):
        assert (layer, role) == ("conv", trt.WeightsRole.BIAS)
        assert refitter.set_weights(layer_name=layer, role=role, weights=trt.Weights(B.copy()))
    assert refitter.get_missing() == ([], [])
    assert refitter.refit_cuda_engine()
    close(run(engine, x=X)["y"], answer(w, B))
    assert refitter.set_weights("conv", trt.WeightsRole.BIAS, b) and (
        not refitter.get_missing()[0] or refitter.set_weights("conv", trt.WeightsRole.KERNEL, w)
    )
    assert refitter.refit_cuda_engine()
    close(run(engine, x=X)["y"], answer(w, b))
    with pytest.raises(RuntimeError, match="refitter"):
        trt.Refitter(engine_of(*convolution()), QUIET)


def test_refit_by_name():
    builder, network, config = convolution(flags=[trt.BuilderFlag.REFIT])
    kernel = network[0]
    kernel.__class__ = trt.IConvolutionLayer
    named = trt.Weights(W.copy())
    kernel.kernel = named
    assert network.set_weights_name(named, "the kernel") and not network.set_weights_name(trt.Weights(W.copy()), "unused")
    engine = engine_of(builder, network, config)
    refitter = trt.Refitter(engine, LOUD)
    assert refitter.get_all_weights() == ["the kernel"]
    assert refitter.set_named_weights("the kernel", 2 * W) and not trt.Refitter(engine, QUIET).set_named_weights("another", W)
    for layer, role in zip(*refitter.get_missing()):
        assert refitter.set_weights(layer, role, B)
    assert refitter.get_missing_weights() == [] and refitter.refit_cuda_engine()
    close(run(engine, x=X)["y"], answer(2 * W, B))
    assert refitter.get_tensors_with_dynamic_range() == [] and len(trt.Refitter(engine, QUIET).get_dynamic_range("x")) == 2
    assert not trt.Refitter(engine, QUIET).set_dynamic_range("x", (-1, 1))


def test_refit_of_weights_in_16_bits():
    """Products read such weights in as many bits; others that a refit brings are read by another kernel, and the inspector goes on."""
    random = np.random.default_rng(6)
    w = random.standard_normal((512, 1024)).astype(np.float16).astype(np.float32)
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (1, 512))
    weights = network.add_constant(w.shape, w)
    weights.name = "weights"
    product = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, weights.get_output(0), trt.MatrixOperation.NONE).get_output(0)
    product.name = "y"
    network.mark_output(product)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    config.clear_flag(trt.BuilderFlag.TF32)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = engine_of(builder, network, config)
    given = random.standard_normal((1, 512)).astype(np.float32)
    np.testing.assert_allclose(run(engine, x=given)["y"], given @ w, atol=1e-3)
    refitter, other = trt.Refitter(engine, logger), random.standard_normal(w.shape).astype(np.float32)
    assert refitter.set_weights("weights", trt.WeightsRole.CONSTANT, other) and refitter.refit_cuda_engine()
    np.testing.assert_allclose(run(engine, x=given)["y"], given @ other, atol=1e-3)
    inspector = engine.create_engine_inspector()
    assert json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]


def test_inspector():
    builder, network, config = convolution()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = engine_of(builder, network, config)
    assert engine.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    inspector = engine.create_engine_inspector()
    assert inspector.execution_context is None
    context = engine.create_execution_context()
    inspector.execution_context = context
    assert inspector.execution_context is context
    report = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    assert len(report["Layers"]) == engine.num_layers
    assert "conv" in inspector.get_layer_information(0, trt.LayerInformationFormat.ONELINE) or engine.num_layers > 1


def test_timing_cache():
    builder, network, config = convolution()
    cache = config.create_timing_cache(b"")
    assert config.set_timing_cache(cache, ignore_mismatch=False) and config.get_timing_cache() is cache
    first = builder.build_serialized_network(network, config)
    data = bytes(cache.serialize())
    assert len(data) > 16
    again = builder.create_builder_config()
    second = again.create_timing_cache(data)
    assert again.set_timing_cache(second, False) and bytes(builder.build_serialized_network(network, again)) == bytes(first)
    other = config.create_timing_cache(b"")
    assert other.combine(second, ignore_mismatch=True) and other.reset()
    assert trt.Builder(QUIET).create_builder_config().create_timing_cache(b"damaged bytes") is None


def test_settings():
    builder, network, config = convolution()
    assert not config.get_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.FP16)
    assert config.get_flag(trt.BuilderFlag.FP16) and config.flags & 1 << int(trt.BuilderFlag.FP16)
    config.clear_flag(trt.BuilderFlag.FP16)
    config.flags = 1 << int(trt.BuilderFlag.INT8)
    assert config.get_flag(trt.BuilderFlag.INT8) and not config.get_flag(trt.BuilderFlag.TF32)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    config.avg_timing_iterations = 3
    config.profile_stream = 0
    config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert config.get_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION) and config.quantization_flags == 1
    config.clear_quantization_flag(flag=trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert config.set_tactic_sources(1 << int(trt.TacticSource.CUDNN)) and config.get_tactic_sources() == 1 << int(
        trt.TacticSource.CUDNN
    )
    config.set_preview_feature(trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805, True)
    assert config.get_preview_feature(trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805)
    assert (config.avg_timing_iterations, config.profile_stream, config.default_device_type, config.engine_capability) == (
        3,
        0,
        trt.DeviceType.GPU,
        trt.EngineCapability.STANDARD,
    )
    assert (
        config.get_device_type(network[0]) == trt.DeviceType.GPU
        and not config.is_device_type_set(network[0])
        and not config.can_run_on_DLA(network[0])
    )
    config.reset()
    assert config.avg_timing_iterations != 3 and config.num_optimization_profiles == 0
    assert builder.max_threads == 1
    builder.max_threads = 2
    assert builder.max_threads == 2 and builder.is_network_supported(network, builder.create_builder_config())
    profile = builder.create_optimization_profile()
    assert profile and profile.get_shape("x") == [] and profile.get_shape_input("x") == []
    profile.set_shape_input("s", [1], (2,), [3])
    assert profile.get_shape_input("s") == [[1], [2], [3]]
    with pytest.raises(ValueError, match="'s'"):
        profile.set_shape_input("s", [1, 2], [2], [3])
    profile.extra_memory_target = 0.5
    assert profile.extra_memory_target == 0.5 and builder.create_builder_config().add_optimization_profile(profile) == 0
    with pytest.raises(ValueError):
        profile.extra_memory_target = 2


def test_engine_and_context():
    engine = engine_of(*convolution())
    assert (engine.num_bindings, len(engine), list(engine), engine[0], engine["y"], engine["nothing"]) == (
        2,
        2,
        ["x", "y"],
        "x",
        1,
        -1,
    )
    for bad in (2, -3):
        with pytest.raises(IndexError):
            engine[bad]
    assert (
        engine.get_tensor_mode("x") == trt.TensorIOMode.INPUT
        and engine.get_tensor_mode("nothing") == trt.TensorIOMode.NONE
        and engine.get_tensor_name(9) is None
    )
    assert (
        engine.get_tensor_format("x") == trt.TensorFormat.LINEAR
        and engine.get_tensor_location("x") == trt.TensorLocation.DEVICE
        and not engine.is_shape_inference_io("x")
    )
    assert (
        engine.get_tensor_bytes_per_component("nothing") == -1
        and engine.get_tensor_vectorized_dim("x") == -1
        and isinstance(engine.get_tensor_format_desc("x"), str)
    )
    assert (
        engine.num_optimization_profiles == 1
        and not engine.has_implicit_batch_dimension
        and engine.device_memory_size >= 0
        and engine.tactic_sources >= 0
    )
    context = engine.create_execution_context_without_device_memory()
    memory = np.empty(engine.device_memory_size + 256, np.uint8)
    context.device_memory = memory.ctypes.data + -memory.ctypes.data % 256
    with pytest.raises(AttributeError):
        context.device_memory
    close(run(engine, context, x=X)["y"], answer(W, B))
    context.name = "mine"
    assert (
        context.name == "mine"
        and context.engine is engine
        and context.all_binding_shapes_specified
        and context.all_shape_inputs_specified
    )
    assert (
        context.get_tensor_strides("x") == (192, 64, 8, 1)
        and context.active_optimization_profile == 0
        and context.set_optimization_profile_async(0, 0)
    )
    assert not context.debug_sync and context.persistent_cache_limit == 0 and context.temporary_allocator is None
    quiet = engine_of(*convolution(QUIET), logger=QUIET).create_execution_context()
    assert not quiet.execute_async_v3(0)  # no addresses
    assert not quiet.set_tensor_address("nothing", 0)
    for bad in (lambda: quiet.execute_v2([X.ctypes.data]), lambda: quiet.execute_v2([])):
        with pytest.raises(ValueError, match="2 bindings"):
            bad()
    for bad in (
        lambda: quiet.execute_v2(X),
        lambda: quiet.execute_v2([1.5, 2]),
        lambda: quiet.set_tensor_address("x", X),
        lambda: quiet.execute_async_v3("0"),
        lambda: quiet.execute_async_v3(None),
        lambda: quiet.set_tensor_address("x", -(2**70)),
    ):
        with pytest.raises((TypeError, ValueError)):
            bad()


def test_binding_names_of_old():
    """The methods by binding: they work, and say what to use instead."""
    engine = engine_of(*convolution())
    context = engine.create_execution_context()
    for call, expected, use in (
        (lambda: engine.get_binding_name(0), "x", "get_tensor_name"),
        (lambda: engine.get_binding_index("y"), 1, "get_tensor_name"),
        (lambda: engine.binding_is_input(0), True, "get_tensor_mode"),
        (lambda: engine.binding_is_input("y"), False, "get_tensor_mode"),
        (lambda: engine.get_binding_shape("y"), (1, 4, 8, 8), "get_tensor_shape"),
        (lambda: engine.get_binding_shape(0), (1, 3, 8, 8), "get_tensor_shape"),
        (lambda: engine.get_binding_dtype(0), trt.float32, "get_tensor_dtype"),
        (lambda: engine.get_binding_dtype("y"), trt.float32, "get_tensor_dtype"),
        (lambda: engine.get_location("x"), trt.TensorLocation.DEVICE, "get_tensor_location"),
        (lambda: engine.is_shape_binding(0), False, "get_tensor_location"),
        (lambda: engine.is_execution_binding(0), True, "get_tensor_location"),
        (lambda: engine.get_binding_format(0), trt.TensorFormat.LINEAR, "get_tensor_format"),
        (lambda: engine.max_batch_size, 1, "EXPLICIT_BATCH"),
        (lambda: context.get_binding_shape(1), (1, 4, 8, 8), "get_tensor_shape"),
        (lambda: context.get_strides(0), (192, 64, 8, 1), "get_tensor_strides"),
        (lambda: context.set_binding_shape(0, (1, 3, 8, 8)), True, "set_input_shape"),
        (lambda: engine.__del__(), None, "del obj"),
    ):
        with pytest.warns(DeprecationWarning, match=f"Use {use} instead"):
            assert call() == expected


def test_every_deprecated_property_warns():
    import pathlib
    import re

    builder, network, config = convolution()
    x = network.get_input(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objects = {
            "IConvolutionLayer": network.add_convolution(x, 4, (3, 3), W),
            "IDeconvolutionLayer": network.add_deconvolution(x, 1, (2, 2), np.ones((3, 1, 2, 2), np.float32)),
            "IPoolingLayer": network.add_pooling(x, trt.PoolingType.MAX, (2, 2)),
            "IPaddingLayer": network.add_padding(x, (1, 1), (1, 1)),
            "IBuilderConfig": config,
            "Builder": builder,
            "ICudaEngine": engine_of(*convolution()),
        }
    objects["IExecutionContext"] = objects["ICudaEngine"].create_execution_context()
    facts = (pathlib.Path(__file__).parents[1] / "surface" / "python-8.5.txt").read_text()
    found = re.findall(r"^property tensorrt\.(\w+)\.(\w+) .*deprecated (?:get use=(\w+))?,? ?(?:set use=(\w+))?$", facts, re.M)
    assert len(found) >= 15
    for owner, name, get, set_ in found:
        thing = objects[owner]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(thing, name)
        if get:
            with pytest.warns(DeprecationWarning, match=f"Use {get} instead"):
                getattr(thing, name)
        if set_:
            with pytest.warns(DeprecationWarning, match=f"Use {set_} instead"):
                setattr(thing, name, value)


def test_warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder, network, config = convolution()  # nothing of this is deprecated, nor is freeing it
        engine = engine_of(builder, network, config)
        with pytest.raises(DeprecationWarning):
            engine.get_binding_name(0)
        with pytest.raises(DeprecationWarning):
            network.add_pooling(network.get_input(0), trt.PoolingType.MAX, (2, 2))
        assert network.num_layers == 2
        del builder, network, config, engine


def test_with_statement_of_old():
    with pytest.warns(DeprecationWarning, match="Context managers"):
        with (
            trt.Builder(LOUD) as builder,
            builder.create_network(1) as network,
            builder.create_builder_config() as config,
            trt.OnnxParser(network, LOUD) as parser,
            trt.Runtime(LOUD) as runtime,
        ):
            assert network.num_layers == 0 and config.flags and parser.num_errors == 0 and runtime.logger is LOUD
    assert network.num_layers == 0


def test_implicit_batch():
    """Networks without the batch in their shapes, by the calls of those days."""
    builder = trt.Builder(LOUD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.max_batch_size = 4
        network = builder.create_network()
        assert network.has_implicit_batch_dimension
        x = network.add_input("x", trt.float32, (3, 8, 8))
        layer = network.add_convolution(x, 4, trt.DimsHW(3, 3), W, trt.Weights(B))
        layer.padding = (1, 1)
        layer.get_output(0).name = "y"
        network.mark_output(layer.get_output(0))
        engine = builder.build_engine(network, builder.create_builder_config())
        assert engine.max_batch_size == 4 and engine.has_implicit_batch_dimension
        context = engine.create_execution_context()
        for batch in (1, 3):
            x, y = np.random.default_rng(batch).standard_normal((batch, 3, 8, 8)).astype(np.float32), np.zeros(
                (batch, 4, 8, 8), np.float32
            )
            assert context.execute(batch, [x.ctypes.data, y.ctypes.data])
            close(y, conv2d(x, W, B, padding=1))
            y[:] = 0
            assert context.execute_async(batch_size=batch, bindings=[x.ctypes.data, y.ctypes.data], stream_handle=0)
            close(y, conv2d(x, W, B, padding=1))


def test_older_parsers_refuse_in_words():
    network = trt.Builder(QUIET).create_network(1)
    uff = trt.UffParser()
    assert (uff.uff_required_version_major, uff.uff_required_version_minor, uff.uff_required_version_patch) == (0, 6, 9)
    uff.register_input("in", (1, 28, 28), trt.UffInputOrder.NCHW)
    uff.register_output("out")
    assert uff.parse("/nothing.uff", network) is False and uff.parse_buffer(b"no model", network) is False
    caffe = trt.CaffeParser()
    caffe.plugin_namespace, caffe.protobuf_buffer_size = "space", 1 << 20
    assert caffe.parse(deploy="/nothing.prototxt", model="/nothing.caffemodel", network=network, dtype=trt.float32) is None
    assert caffe.parse_buffer(b"", b"", network, trt.float32) is None and caffe.parse_binary_proto("/nothing") is None
    field = trt.FieldMap("name", 0x1000, trt.FieldType.INT32, length=2)
    assert (field.name, field.type, field.length) == ("name", trt.FieldType.INT32, 2)


def test_a_parser_before_any_logger_warns():
    import subprocess
    import sys

    script = "import tensorrt as trt\nassert trt.CaffeParser().parse_binary_proto('mean.binaryproto') is None"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0 and "RuntimeWarning" in result.stderr and "'mean.binaryproto'" in result.stderr, result.stderr


def test_stubs_can_be_read():
    import ast
    import pathlib

    folder = pathlib.Path(trt.tensorrt.__file__).parent
    tree = ast.parse((folder / "tensorrt.pyi").read_text())
    names = {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))} | {
        t.target.id for t in tree.body if isinstance(t, ast.AnnAssign)
    }
    names |= {a.targets[0].id for a in tree.body if isinstance(a, ast.Assign)} | {"nptype", "volume"}
    assert set(trt.__all__) <= names, set(trt.__all__) - names
    ast.parse((folder / "__init__.pyi").read_text())
    assert (folder / "py.typed").exists()


def test_what_failed_is_said():
    """Exceptions carry the reason, and a recorder hears it as before."""

    class Recorder(trt.IErrorRecorder):
        def __init__(self):
            trt.IErrorRecorder.__init__(self)
            self.texts = []

        def report_error(self, code, text):
            self.texts.append(text)
            return True

    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    a, b = (network.add_input(name, trt.float32, (-1, 3)) for name in "ab")
    network.mark_output(network.add_elementwise(a, b, trt.ElementWiseOperation.SUM).get_output(0))
    profile, config = builder.create_optimization_profile(), builder.create_builder_config()
    for name in "ab":
        profile.set_shape(name, (1, 3), (2, 3), (8, 3))
    config.add_optimization_profile(profile)
    context = engine_of(builder, network, config, logger=QUIET).create_execution_context()
    for recorder in (None, Recorder()):
        context.error_recorder = recorder
        context.set_input_shape("a", (2, 3)), context.set_input_shape("b", (5, 3))
        with pytest.raises(RuntimeError, match=r"infer_shapes\(\) failed: .*2.*5"):
            context.infer_shapes()
        assert context.error_recorder is recorder
        with pytest.raises(RuntimeError, match="optimization profile 7 cannot be chosen: .*7"):
            context.active_optimization_profile = 7
    assert len(recorder.texts) >= 2
    context.set_input_shape("b", (2, 3))
    assert context.infer_shapes() == []


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("large", [0, 1])
def test_weights_beyond_fp16_leave_others_their_kernels(large, cached):
    """Two equal products, one with a weight that FP16 does not hold: each has a kernel that takes it, whatever was timed before."""

    def tactics(large, cache):
        builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        x = network.add_input("x", trt.float32, (1, 256))
        weights = [np.full((256, 256), 0.01, np.float32) for _ in range(2)]
        if large is not None:
            weights[large][3, 3] = 70000
        none = trt.MatrixOperation.NONE
        for w in weights:
            constant = network.add_constant(w.shape, trt.Weights(w)).get_output(0)
            x = network.add_matrix_multiply(x, none, constant, none).get_output(0)
            x = network.add_activation(x, trt.ActivationType.SIGMOID).get_output(0)
        network.mark_output(x)
        config = builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.FP16)
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        if cache is None:
            cache = config.create_timing_cache(b"")
        config.set_timing_cache(cache, False)
        engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(builder.build_serialized_network(network, config))
        layers = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
        return [layer["TacticName"] for layer in layers], cache

    cache = tactics(None, None)[1] if cached else None
    names = tactics(large, cache)[0]
    assert len(names) == 2 and not any("plain" in name for name in names), names
    assert "f32f16" not in names[large]
