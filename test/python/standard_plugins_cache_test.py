# SPDX-License-Identifier: Apache-2.0
"""Caches of keys and values: TensorScatter with the cache and its changed copy at one address, and at two."""

import numpy as np
import pytest
import tensorrt as trt
from onnx import TensorProto

import standard_plugins_models
from small import LOUD, QUIET, Tensors
from standard_plugins_models import Model, parsed

standard_plugins_models._KINDS.setdefault("h", TensorProto.FLOAT16)
trt.init_libnvinfer_plugins(QUIET, "")
DTYPES = {"f": np.float32, "h": np.float16}


def updated(cache, rows, index, axis, circular):
    """The rule of ONNX: row i of image n goes to row index[n] + i; linear ones that lie outside go nowhere."""
    out, capacity = cache.copy(), cache.shape[axis]
    for n in range(len(cache)):
        for i in range(rows.shape[axis]):
            at = int(index[n]) + i
            if circular:
                at %= capacity
            if 0 <= at < capacity:
                np.moveaxis(out[n], axis - 1, 0)[at] = np.moveaxis(rows[n], axis - 1, 0)[i]
    return out


def engine(kind, axis, mode, batch, capacity, fp16=False):
    """present = the cache with the new rows; old and new: what readers of both see."""
    shape = [batch, 3, capacity, 8] if axis == 2 else [batch, capacity, 3, 8]
    model = Model()
    past = model.input("past", shape, kind)
    rows = model.input("rows", [*shape[:axis], "k", *shape[axis + 1:]], kind)
    index = model.input("index", [batch], "i")
    model.node("ReduceMax", past, axes=[3], keepdims=0, outputs=["old"])
    present = model.node("TensorScatter", past, rows, index, axis=axis - 4, mode=mode, plugin_version="1", outputs=["present"])
    model.node("ReduceMax", present, axes=[3], keepdims=0, outputs=["new"])
    model.output("present", "new", "old", kinds=kind * 3)
    made = parsed(model, 16)
    assert not isinstance(made, str), made
    builder, network, _parser = made
    config = builder.create_builder_config()
    if fp16:
        config.set_flag(trt.BuilderFlag.FP16)
    profile = builder.create_optimization_profile()
    profile.set_shape("rows", *([*shape[:axis], k, *shape[axis + 1:]] for k in (1, 1, 4)))
    config.add_optimization_profile(profile)
    return shape, trt.Runtime(LOUD).deserialize_cuda_engine(builder.build_serialized_network(network, config))


def step(context, tensors, cache, present, rows, index, axis):
    """Runs with the cache at one address and present at another, or at the same; (new, old)."""
    dtype, held = rows.dtype, [d for i, d in enumerate(context.engine.get_tensor_shape("past")) if i != 3]
    context.set_input_shape("rows", rows.shape)
    for name, address in (("past", cache), ("present", present), ("rows", tensors.given("rows", rows)),
                          ("index", tensors.given("index", index)), ("new", tensors.room("new", held, dtype)), ("old", tensors.room("old", held, dtype))):
        assert context.set_tensor_address(name, address)
    assert context.execute_async_v3(0)
    results = tensors.results()
    return results["new"], results["old"]


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("kind", ["f", "h"])
def test_steps_in_place(kind, axis, mode):
    """Readers of the cache see it as it was, readers of the result as it is, whether these are one tensor or two."""
    rng = np.random.default_rng([axis, len(mode), ord(kind)])
    batch, capacity = 2, 11
    shape, built = engine(kind, axis, mode, batch, capacity, kind == "h")
    context, tensors = built.create_execution_context(), Tensors()
    wanted = rng.standard_normal(shape).astype(DTYPES[kind])
    twin = tensors.room("present", shape, wanted.dtype)  # what a run with two addresses leaves
    cache = tensors.room("cache", shape, wanted.dtype)
    first = wanted
    for number in range(12):
        k = int(rng.integers(1, 5))
        rows = rng.standard_normal([*shape[:axis], k, *shape[axis + 1:]]).astype(DTYPES[kind])
        index = rng.integers(-1, capacity + 1, batch).astype(np.int32)
        before, wanted = wanted, updated(wanted, rows, index, axis, mode == "circular")
        if number == 0:  # from the client's array into the cache
            new, old = step(context, tensors, tensors.given("past", first), cache, rows, index, axis)
        else:
            two, was = step(context, tensors, cache, twin, rows, index, axis)
            assert np.array_equal(tensors.results()["present"], wanted)
            assert np.array_equal(tensors.results()["cache"], before), "the input is no output"
            new, old = step(context, tensors, cache, cache, rows, index, axis)
            assert np.array_equal(new, two) and np.array_equal(old, was)
        assert np.array_equal(tensors.results()["cache"], wanted)
        assert np.array_equal(new, wanted.max(3)) and np.array_equal(old, before.max(3))


@pytest.mark.parametrize("kind", ["f", "h"])
@pytest.mark.parametrize("images", [1, 3])
def test_pages(kind, images):
    """A cache in blocks of 16 rows; rows of blocks that there are not go nowhere."""
    rng, dtype = np.random.default_rng([images, ord(kind)]), DTYPES[kind]
    blocks, pages, shape = 11, 3, (11, 3, 16, 8)
    model = Model()
    past, rows, index = model.input("past", shape, kind), model.input("rows", [images, 3, "k", 8], kind), model.input("index", [images], "i")
    table = model.input("pages", [images, pages], "i")
    model.node("TensorScatter", past, rows, index, table, axis=-2, plugin_version="1", outputs=["present"])
    model.output("present", kinds=kind)
    made = parsed(model, 16)
    assert not isinstance(made, str), made
    builder, network, _parser = made
    config = builder.create_builder_config()
    if kind == "h":
        config.set_flag(trt.BuilderFlag.FP16)
    profile = builder.create_optimization_profile()
    profile.set_shape("rows", *([images, 3, k, 8] for k in (1, 1, 40)))
    config.add_optimization_profile(profile)
    context = trt.Runtime(LOUD).deserialize_cuda_engine(builder.build_serialized_network(network, config)).create_execution_context()
    tensors, wanted = Tensors(), rng.standard_normal(shape).astype(dtype)
    cache, twin = tensors.room("cache", shape, dtype), tensors.room("present", shape, dtype)
    past = first = tensors.given("past", wanted)  # the client's array, then the cache
    for k in (1, 40, 1, 17, 2, 33):
        new, at = rng.standard_normal((images, 3, k, 8)).astype(dtype), rng.integers(-1, 17 * pages, images).astype(np.int32)
        of = rng.permutation(blocks + 2)[: images * pages].reshape(images, pages).astype(np.int32) - 1
        before, wanted = wanted, wanted.copy()
        for n, i in np.ndindex(images, k):
            row = at[n] + i
            if 0 <= row < 16 * pages and 0 <= of[n, row // 16] < blocks:
                wanted[of[n, row // 16], :, row % 16] = new[n, :, i]
        context.set_input_shape("rows", new.shape)
        for present in (twin, cache):
            for name, address in (("past", past), ("present", present), ("rows", tensors.given("rows", new)), ("index", tensors.given("index", at)),
                                  ("pages", tensors.given("pages", of))):
                assert context.set_tensor_address(name, address)
            assert context.execute_async_v3(0)
            assert np.array_equal(tensors.results()["present" if present is twin else "cache"], wanted)
            assert past is first or present is cache or np.array_equal(tensors.results()["cache"], before)
        past = cache


class Kept(trt.ILogger):
    """What was said, as one text."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def log(self, severity, msg):
        self.text += msg + "\n"


@pytest.mark.parametrize("attributes, rows, sentence", [
    ({}, 6, "dimension 2 of the update input 'rows'"), ({"mode": "round"}, 1, "gave a null pointer for the attributes"),
    ({"axis": 0}, 1, "axis 0 is no dimension behind the first of the 4 of 'past'"), ({"axis": 4}, 1, "axis 4 is no dimension"),
])
def test_refusals(attributes, rows, sentence):
    model = Model()
    model.node("TensorScatter", model.input("past", [2, 3, 5, 8]), model.input("rows", [2, 3, rows, 8]), outputs=["y"], plugin_version="1", **attributes)
    model.output("y")
    kept = Kept()
    builder = trt.Builder(kept)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, kept)
    if parser.parse(model.bytes(16)):
        assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    else:
        kept.text += parser.get_error(0).desc()
    assert sentence in kept.text


def test_rows_without_dimensions():
    """Of a cache in pages."""
    model = Model()
    past, rows, index, table = model.input("past", [11, 3, 16, 8]), model.input("rows", []), model.input("index", [2], "i"), model.input("pages", [2, 3], "i")
    model.node("TensorScatter", past, rows, index, table, axis=-2, outputs=["y"], plugin_version="1")
    model.output("y")
    kept = Kept()
    builder = trt.Builder(kept)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, kept)
    if parser.parse(model.bytes(16)):
        assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    else:
        kept.text += parser.get_error(0).desc()
    assert "must have dimensions, images first" in kept.text, kept.text
