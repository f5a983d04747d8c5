# SPDX-License-Identifier: Apache-2.0
"""Standard plugins that move elements, beside NumPy."""

import ctypes

import numpy as np
import pytest
import tensorrt as trt

from standard_plugins import check, close, creator, engine_of, make, outputs_of, refusal

random = np.random.default_rng(8)


def data(*shape):
    return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shapes", [[(2, 3, 4, 5), (2, 1, 2, 2), (2, 6, 1, 1)], [(1, 3, 2, 2)]])
def test_flatten_concat(shapes):
    def wanted(*arrays):
        return [np.concatenate([a.reshape(a.shape[0], -1) for a in arrays], 1)[..., None, None]]

    check(make("FlattenConcat_TRT", axis=1, ignoreBatch=0), [data(*s) for s in shapes], wanted, implicit=True, open_shapes=False)


@pytest.mark.parametrize("shape, stride", [((2, 8, 4, 6), 2), ((1, 9, 3, 3), 3), ((1, 4, 2, 2), 1)])
def test_reorg(shape, stride):
    n, c, h, w = shape

    def wanted(x):
        flat, out = x.ravel(), np.empty(x.size)
        c2 = c // stride**2
        for i in range(x.size):
            b, k, j, m = i // (c * h * w), i // (h * w) % c, i // w % h, i % w
            o, s2 = k // c2, k % c2
            out[i] = flat[(m * stride + o % stride) + w * stride * ((j * stride + o // stride) + h * stride * (s2 + c2 * b))]
        return [out.reshape(n, c * stride**2, h // stride, w // stride)]

    check(make("Reorg_TRT", stride=stride), [data(*shape)], wanted, implicit=True, open_shapes=False)


@pytest.mark.parametrize("scale", [2.0, 1.0, 3.0, 1.5, 0.5, 2.3])
def test_resize_nearest(scale):
    def wanted(x):
        h, w = (np.minimum(np.floor(np.arange(int(d * scale)) / np.float32(scale)).astype(int), d - 1) for d in x.shape[2:])
        return [x[:, :, h][:, :, :, w]]

    check(make("ResizeNearest_TRT", scale=scale), [data(2, 3, 4, 6)], wanted, implicit=True)


def test_batch_tile():
    a, b = data(3, 2), data(1, 2, 3, 4)
    check(make("BatchTilePlugin_TRT"), [a, b], lambda a, b: [np.repeat(b, 3, 0)], open_shapes=False)
    arrays = [a, np.repeat(b[None], 3, 0)]  # with an implicit batch the 1 stands behind it
    close(outputs_of(engine_of(make("BatchTilePlugin_TRT"), arrays, explicit=False), arrays), [np.repeat(b, 3, 0)], 0)


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 1, 1, 5), (3, 2, 2, 2)])
def test_coord_conv(shape):
    def wanted(x):
        n, _, h, w = x.shape
        rows = np.linspace(-1, 1, h)[:, None] + np.zeros((h, w)) if h > 1 else np.full((h, w), -1.0)
        columns = np.linspace(-1, 1, w)[None] + np.zeros((h, w)) if w > 1 else np.full((h, w), -1.0)
        return [np.concatenate([x, np.broadcast_to(np.stack([rows, columns]), (n, 2, h, w))], 1)]

    check(make("CoordConvAC"), [data(*shape)], wanted, implicit=True)


@pytest.mark.parametrize("integers", [False, True])
def test_scatter_nd(integers):
    x, updates = data(4, 5, 3), data(2, 3)
    if integers:
        x, updates = (100 * x).astype(np.int32), (100 * updates).astype(np.int32)
    indices = np.array([[0, 4], [3, 1]], np.int32)

    def wanted(x, indices, updates):
        y = x.copy()
        y[indices[:, 0], indices[:, 1]] = updates
        return [y]

    check(make("ScatterND"), [x, indices, updates], wanted, half=False, open_shapes=False)


@pytest.mark.parametrize("axis, lengths", [(1, [2, 3, 1]), (0, [4]), (2, [1, 2])])
def test_split(axis, lengths):
    """Made of bytes alone, which are ours."""
    number = lambda v: int(v).to_bytes(8, "little")
    field = lambda name, values: number(len(name)) + name.encode() + number(int(trt.PluginFieldType.INT32)) + number(4 * len(values)) + np.array(values, np.int32).tobytes()
    plugin = creator("Split").deserialize_plugin("Split", b"tensorwright Split 1\n" + number(2) + field("axis", [axis]) + field("lengths", lengths))
    ends = np.cumsum(lengths)
    check(plugin, [data(4, 6, 3)], lambda x: np.split(x, ends, axis)[: len(lengths)], open_shapes=axis > 0)
    assert creator("Split").deserialize_plugin("Split", b"tensorwright Split 1\n") is None


@pytest.mark.parametrize("coords", [4, 3])
def test_region(coords):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def wanted(x):
        v = x.reshape(2, 3, coords + 1 + 5, -1).copy()
        v[:, :, :2], v[:, :, coords : coords + 1] = sigmoid(v[:, :, :2]), sigmoid(v[:, :, coords : coords + 1])
        e = np.exp(v[:, :, coords + 1 :])
        v[:, :, coords + 1 :] = e / e.sum(2, keepdims=True)
        return [v.reshape(x.shape)]

    check(make("Region_TRT", num=3, coords=coords, classes=5), [data(2, 3 * (coords + 6), 4, 4)], wanted, implicit=True)


class SoftmaxTree(ctypes.Structure):
    _fields_ = [("leaf", ctypes.c_void_p), ("n", ctypes.c_int32), ("parent", ctypes.c_void_p), ("child", ctypes.c_void_p), ("group", ctypes.c_void_p),
                ("name", ctypes.c_void_p), ("groups", ctypes.c_int32), ("groupSize", ctypes.c_void_p), ("groupOffset", ctypes.c_void_p)]


def test_region_of_a_tree():
    sizes, offsets = np.array([2, 3], np.int32), np.array([0, 2], np.int32)
    tree = SoftmaxTree(n=5, groups=2, groupSize=sizes.ctypes.data, groupOffset=offsets.ctypes.data)
    fields = [trt.PluginField(n, np.array([v], np.int32), trt.PluginFieldType.INT32) for n, v in (("num", 1), ("coords", 4), ("classes", 5))]
    fields.append(trt.PluginField("smTree", np.frombuffer(bytes(tree), np.uint8), trt.PluginFieldType.INT32))
    plugin = creator("Region_TRT").create_plugin("region", trt.PluginFieldCollection(fields))

    def wanted(x):
        v = x.copy()
        for rows in ([0, 1], [4]):
            v[:, rows] = 1 / (1 + np.exp(-v[:, rows]))
        for begin, end in ((5, 7), (7, 10)):
            e = np.exp(v[:, begin:end])
            v[:, begin:end] = e / e.sum(1, keepdims=True)
        return [v]

    check(plugin, [data(2, 10, 3, 3)], wanted)


def test_sequence_to_image():
    def wanted(x, bias, residual, image):
        return [(x + bias + residual).transpose(0, 2, 1).reshape(image.shape)]

    check(make("SeqLen2Spatial"), [data(2, 12, 5), data(5), data(2, 12, 5), data(2, 5, 3, 4)], wanted, half=False, open_shapes=False)


def test_refusals():
    assert "missing required fields: {axis, ignoreBatch}" in refusal("FlattenConcat_TRT")
    assert "axis is 2; it must be 1" in refusal("FlattenConcat_TRT", axis=2, ignoreBatch=0)
    assert "stride is 0" in refusal("Reorg_TRT", stride=0)
    assert "scale is" in refusal("ResizeNearest_TRT", scale=float("nan"))
    assert "above 0" in refusal("Region_TRT", num=0, classes=3)
    split = creator("Split")
    assert make("Split") is None and len(split.field_names or []) == 0
