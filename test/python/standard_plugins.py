# SPDX-License-Identifier: Apache-2.0
"""Standard plugins beside functions of NumPy: makes plugins of fields, runs them in networks of every kind that they go into."""

import itertools

import numpy as np
import tensorrt as trt

from small import QUIET, run, run_batch

assert trt.init_libnvinfer_plugins(QUIET, "")

F, I = trt.PluginFieldType.FLOAT32, trt.PluginFieldType.INT32
_TYPES = {np.dtype(np.float32): F, np.dtype(np.float16): trt.PluginFieldType.FLOAT16, np.dtype(np.int32): I, np.dtype(np.int8): trt.PluginFieldType.INT8}
_TENSORS = {np.dtype(np.float32): trt.float32, np.dtype(np.float16): trt.float16, np.dtype(np.int32): trt.int32}


def creator(name, version="1"):
    found = trt.get_plugin_registry().get_plugin_creator(name, version, "")
    assert found, f"{name} {version} is not registered"
    return found


def make(name, version="1", **fields):
    """A plugin; floats, ints and lists of them become fields of their type, arrays weights of theirs. None where it is refused."""
    kept = []
    for key, value in fields.items():
        array = np.atleast_1d(np.asarray(value))
        if not isinstance(value, np.ndarray):
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        kept.append(trt.PluginField(key, np.ascontiguousarray(array), _TYPES[array.dtype]))
    return creator(name, version).create_plugin(name, trt.PluginFieldCollection(kept))


def engine_of(plugin, arrays, explicit=True, open_shapes=False, logger=QUIET, flags=(), outputs=None):
    """An engine of the plugin on inputs x0, x1, ... with outputs y0, y1, ...; None where it is refused."""
    builder = trt.Builder(logger)
    network = builder.create_network(int(explicit))
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    profile = builder.create_optimization_profile()
    inputs = []
    for i, a in enumerate(arrays):
        shape = a.shape if explicit else a.shape[1:]
        if open_shapes and explicit and a.ndim and a.shape[0] > 0:
            profile.set_shape(f"x{i}", (1, *a.shape[1:]), a.shape, (2 * a.shape[0], *a.shape[1:]))
            shape = (-1, *a.shape[1:])
        inputs.append(network.add_input(f"x{i}", _TENSORS[a.dtype], shape))
    if open_shapes:
        config.add_optimization_profile(profile)
    layer = network.add_plugin_v2(inputs, plugin)
    if layer is None:
        return None
    for i in range(layer.num_outputs):
        layer.get_output(i).name = f"y{i}"
        network.mark_output(layer.get_output(i))
    if not explicit:
        builder.max_batch_size = max(a.shape[0] for a in arrays)
    plan = builder.build_serialized_network(network, config)
    return None if plan is None else trt.Runtime(logger).deserialize_cuda_engine(plan)


def outputs_of(engine, arrays):
    named = {f"x{i}": a for i, a in enumerate(arrays)}
    y = run_batch(engine, named) if engine.has_implicit_batch_dimension else run(engine, **named)
    return [y[f"y{i}"] for i in range(len(y))]


def close(got, wanted, tolerance):
    assert len(got) == len(wanted)
    for g, w in itertools.zip_longest(got, wanted):
        w = np.asarray(w)
        assert g.shape == w.shape, f"{g.shape} for {w.shape}"
        g, w = g.astype(np.float64), w.astype(np.float64)
        both = np.isnan(g) & np.isnan(w) | (g == w)
        scale = np.maximum(1, np.abs(np.where(np.isfinite(w), w, 0)))
        error = np.where(both, 0, np.abs(g - w) / scale)
        assert not np.isnan(error).any() and error.max(initial=0) <= tolerance, f"error {error.max(initial=0)}"


def check(plugin, arrays, wanted, *, half=True, implicit=False, open_shapes=True, tolerance=2e-5, half_tolerance=4e-3):
    """The plugin on the arrays gives `wanted(*arrays)`, a list: with known shapes, with an open first dimension (of plugins that
    take it), with an implicit batch, and with FP16 tensors in place of FP32 ones."""
    assert plugin is not None
    right = wanted(*[a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays])
    close(outputs_of(engine_of(plugin, arrays), arrays), right, tolerance)
    if open_shapes:
        close(outputs_of(engine_of(plugin, arrays, open_shapes=True), arrays), right, tolerance)
    if implicit:
        close(outputs_of(engine_of(plugin, arrays, explicit=False), arrays), right, tolerance)
    if half:
        narrow = [a.astype(np.float16) if a.dtype == np.float32 else a for a in arrays]
        right = wanted(*[a.astype(np.float64) if a.dtype == np.float16 else a for a in narrow])
        close(outputs_of(engine_of(plugin, narrow, flags=[trt.BuilderFlag.FP16]), narrow), right, half_tolerance)


class Lines(trt.ILogger):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def log(self, severity, message):
        self.lines.append((severity, message))


def refusal(name, version="1", **fields):
    """The error line of a plugin that is not made."""
    lines = Lines()
    builder = trt.Builder(lines)  # gives the library its logger
    assert make(name, version, **fields) is None
    del builder
    errors = [m for s, m in lines.lines if s <= trt.ILogger.ERROR]
    assert len(errors) == 1, errors
    return errors[0]
