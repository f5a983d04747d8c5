# SPDX-License-Identifier: Apache-2.0
"""Plugins of a C++ library that is opened by ctypes, as 8.5's samples do: fields, creators, networks, plans."""

import ctypes
import gc
import pathlib

import callback_probe
import numpy as np
import pytest
import tensorrt as trt

from models import close
from small import LOUD, QUIET, engine_of, run

# Also the first thing that the process does with the library of plugins.
LIBRARY = ctypes.CDLL(str(pathlib.Path(callback_probe.__file__).with_name("libpool_plugin.so")))


def creator():
    found = [c for c in trt.get_plugin_registry().plugin_creator_list if c.name == "PoolOfPairs"]
    assert len(found) == 1
    return found[0]


def make(factor):
    field = trt.PluginField("factor", np.array([factor], np.float32), trt.PluginFieldType.FLOAT32)
    return creator().create_plugin("pool", trt.PluginFieldCollection([field]))


def network_of(plugin, shape):
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, shape)], plugin)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return builder, network, layer


def test_registry():
    assert trt.init_libnvinfer_plugins(LOUD, "") and trt.init_libnvinfer_plugins(None, namespace="")
    registry = trt.get_plugin_registry()
    assert registry.get_plugin_creator("PoolOfPairs", "1", "").plugin_version == "1"
    assert registry.get_plugin_creator(type="PoolOfPairs", version="2") is None
    assert trt.get_builder_plugin_registry(trt.EngineCapability.STANDARD).get_plugin_creator("PoolOfPairs", "1") is not None
    fields = creator().field_names
    assert [(f.name, f.type, f.size) for f in fields] == [("factor", trt.PluginFieldType.FLOAT32, 1)]
    assert creator().tensorrt_version == 8503
    assert registry.deregister_creator(creator()) is True and registry.get_plugin_creator("PoolOfPairs", "1") is None


@pytest.fixture(autouse=True)
def registered():
    """Registered again after the test that takes it out."""
    kept = creator()
    yield
    if not any(c.name == "PoolOfPairs" for c in trt.get_plugin_registry().plugin_creator_list):
        assert trt.get_plugin_registry().register_creator(kept, "")


def test_fields():
    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    field = trt.PluginField("name", data, trt.PluginFieldType.INT32)
    assert (field.name, field.type, field.size) == ("name", trt.PluginFieldType.INT32, 6) and "capsule" in repr(field.data)
    field.name, field.type, field.size = trt.FallbackString("other"), trt.PluginFieldType.CHAR, 2
    field.data = b"text"
    assert (field.name, field.type, field.size) == ("other", trt.PluginFieldType.CHAR, 4)
    assert trt.PluginField().name == "" and trt.PluginField("a").data is None
    with pytest.raises((BufferError, ValueError, TypeError)):
        trt.PluginField("name", data[:, ::2])
    fields = trt.PluginFieldCollection()
    assert not fields and len(fields) == 0
    fields.append(field)
    fields.extend([trt.PluginField(c) for c in "bcd"])
    fields.insert(1, trt.PluginField("a"))
    assert [f.name for f in fields] == ["other", "a", "b", "c", "d"] and fields[-1].name == "d"
    assert [f.name for f in fields[1:3]] == ["a", "b"] and fields.pop().name == "d" and fields.pop(0).name == "other"
    del fields[0]
    fields[0] = trt.PluginField("z")
    assert [f.name for f in trt.PluginFieldCollection_(fields)] == ["z", "c"]
    kept = fields[0]
    fields.clear()
    assert kept.name == "z"
    for bad in (lambda: fields.pop(), lambda: fields[0], lambda: fields.insert(5, kept)):
        with pytest.raises(IndexError):
            bad()


def test_plugin_in_an_engine():
    plugin = make(2.0)
    assert isinstance(plugin, trt.IPluginV2) and (plugin.plugin_type, plugin.plugin_version, plugin.num_outputs) == (
        "PoolOfPairs",
        "1",
        1,
    )
    assert bytes(plugin.serialize()) == np.float32(2).tobytes() and plugin.serialization_size == 4
    builder, network, layer = network_of(plugin, (3, 8))
    assert layer.type == trt.LayerType.PLUGIN_V2 and layer.plugin.plugin_type == "PoolOfPairs"
    with pytest.raises(RuntimeError, match="belongs to its network"):
        layer.plugin.destroy()
    del plugin
    gc.collect()
    x = np.random.default_rng(2).standard_normal((3, 8)).astype(np.float32)
    expected = 2 * x.reshape(3, 4, 2).max(2)
    engine = engine_of(builder, network, builder.create_builder_config())
    close(run(engine, x=x)["y"], expected)
    again = trt.Runtime(LOUD).deserialize_cuda_engine(bytes(engine.serialize()))
    del engine, builder, network, layer
    close(run(again, x=x)["y"], expected)


def test_plugins_are_destroyed_once():
    gc.collect()
    before = LIBRARY.alivePlugins()
    plugin = make(3.0)
    copy = plugin.clone()
    assert LIBRARY.alivePlugins() == before + 2 and copy.get_output_data_type(0, [trt.float32]) == trt.float32
    restored = creator().deserialize_plugin("pool", plugin.serialize())
    assert bytes(restored.serialize()) == np.float32(3).tobytes()
    plugin.destroy()
    assert LIBRARY.alivePlugins() == before + 2
    with pytest.raises((TypeError, RuntimeError)), pytest.warns(RuntimeWarning):
        plugin.plugin_type
    del plugin, copy, restored
    gc.collect()
    assert LIBRARY.alivePlugins() == before
    assert make(0.0) is None and creator().deserialize_plugin("pool", b"12345") is None


def test_wrong_arguments():
    with pytest.raises(IndexError):
        make(1.0).get_output_shape(1, [trt.Dims((2, 4))])
    with pytest.raises(ValueError):
        make(1.0).configure_plugin([(2, 4)], [(2, 2)], [], [trt.float32], [False], [False], trt.TensorFormat.LINEAR, 1)
    with pytest.raises(ValueError, match="input 1 is None"):
        network = trt.Builder(QUIET).create_network(1)
        network.add_plugin_v2([network.add_input("x", trt.float32, (2, 4)), None], make(1.0))
    with pytest.raises(TypeError):
        trt.init_libnvinfer_plugins("no logger", "")
