# SPDX-License-Identifier: Apache-2.0
"""CachedAttention beside NumPy: caches that are longer than what they hold, shared heads, windows, caps, sinks, slopes and masks."""

import numpy as np
import pytest
import tensorrt as trt

from small import run
from standard_plugins import check, close, engine_of, make, refusal


def attention(q, k, v, lengths, *, scale=0, causal=1, window=0, softcap=0, mask=None, sinks=None, slopes=None, table=None, pages=None):
    """q [B, H, s, D], k and v [B, G, S, D], table [B / b, b, S]: [B, H, s, D]. pages [B, P]: k and v are [blocks, G, 16, D]."""
    batch, heads, rows, size = q.shape
    if pages is not None:
        k, v = (np.concatenate(list(x[np.clip(pages, 0, len(x) - 1)].swapaxes(0, 1)), 2) for x in (k, v))
    if table is not None:  # what each image would have, had the cache been moved
        own, sharing = np.arange(batch)[:, None], table.shape[1]
        of = own - own % sharing + np.clip(table.reshape(batch, -1), 0, sharing - 1)
        k, v = (x[of[:, None], np.arange(x.shape[1])[:, None], np.arange(x.shape[2])] for x in (k, v))
    shared, y = heads // k.shape[1], np.zeros((batch, heads, rows, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, rows):
        length = int(np.clip(lengths[b], 0, k.shape[2]))
        place = length - rows + i
        seen = np.arange(k.shape[2])
        seen = seen[(seen < length) & ((seen <= place) | (not causal)) & ((seen > place - window) | (window == 0))]
        if not len(seen):
            continue
        t = k[b, h // shared, seen] @ q[b, h, i] * (scale or 1 / np.sqrt(size))
        if softcap:
            t = softcap * np.tanh(t / softcap)
        if mask is not None:
            m = mask[b % mask.shape[0], h % mask.shape[1], i % mask.shape[2], seen]
            t = np.where(m, t, -np.inf) if m.dtype == bool else t + m
        if slopes is not None:
            t = t + slopes[h] * (seen - place)
        all_scores = t if sinks is None else np.append(t, sinks[h])
        weights = np.exp(t - all_scores.max())
        y[b, h, i] = weights / np.exp(all_scores - all_scores.max()).sum() @ v[b, h // shared, seen]
    return y


def drawn(seed):
    """Fields of a plugin, its inputs, and what it is to give; every case another mixture."""
    rng = np.random.default_rng([23, seed])
    batch, groups, shared = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3, 8]))
    rows, capacity, heads = int(rng.choice([1, 1, 2, 5, 40])), int(rng.choice([1, 17, 64, 150, 700])), groups * shared
    paged = seed % 3 == 1
    capacity = -(-capacity // 16) * 16 if paged else capacity
    size = int(rng.choice([8, 20, 32, 64, 80, 128]))
    value_size = size if rng.random() < 0.7 else int(rng.choice([16, 33, 64]))
    fields, options = {}, {}
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((batch, heads, rows, size), (batch, groups, capacity, size), (batch, groups, capacity, value_size))]
    if paged:
        blocks = int(rng.integers(1, batch * capacity // 16 + 3))
        arrays[1:] = [rng.standard_normal((blocks, groups, 16, x.shape[3])).astype(np.float32) for x in arrays[1:]]
    arrays.append(rng.integers(0, capacity + 2, batch).astype(np.int32))
    if rng.random() < 0.3:
        fields["is_causal"] = options["causal"] = 0
    if rng.random() < 0.3:
        fields["window"] = options["window"] = int(rng.integers(1, capacity + 3))
    if rng.random() < 0.3:
        fields["softcap"] = options["softcap"] = float(np.float32(rng.uniform(0.5, 5)))
    if rng.random() < 0.3:
        fields["scale"] = options["scale"] = float(np.float32(rng.uniform(0.05, 0.5)))
    names = []
    for name, array in (("mask", rng.standard_normal((batch, 1, rows, capacity) if rng.random() < 0.5 else (1, heads, 1, capacity))),
                        ("sinks", rng.standard_normal(heads)), ("slopes", rng.uniform(0, 0.1, heads))):
        if rng.random() < 0.35:
            fields["has_" + name] = 1
            names.append(name)
            arrays.append(array.astype(np.float32))
    if seed % 3 == 0:
        fields["cache_indirection"] = 1
        names.append("table")
        sharing = int(rng.choice([n for n in (1, 2, 3) if batch % n == 0]))
        arrays.append(rng.integers(-1, sharing + 1, (batch // sharing, sharing, capacity)).astype(np.int32))
    if paged:
        fields["paged"] = 1
        names.append("pages")
        arrays.append(rng.integers(-1, blocks + 1, (batch, capacity // 16)).astype(np.int32))

    def wanted(*inputs):
        return [attention(*inputs[:4], **options, **dict(zip(names, inputs[4:])))]

    return fields, arrays, wanted


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 27, 30, 33, 36, 39, 42, 45])
def test_mixtures(seed):
    fields, arrays, wanted = drawn(seed)
    check(make("CachedAttention", **fields), arrays, wanted, open_shapes=False, tolerance=5e-5, half_tolerance=1e-2)


@pytest.mark.parametrize("shared", [1, 4])
def test_rows_of_heads(shared):
    """The same attention with queries [B, s, H D], and caches [B, S, G D]."""
    rng = np.random.default_rng(shared)
    batch, groups, rows, capacity, size = 2, 2, 3, 33, 32
    q = rng.standard_normal((batch, groups * shared, rows, size)).astype(np.float32)
    k, v = (rng.standard_normal((batch, groups, capacity, size)).astype(np.float32) for _ in range(2))
    lengths = np.array([33, 9], np.int32)

    def joined(x):
        return np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1))

    plugin = make("CachedAttention", num_heads=groups * shared, kv_num_heads=groups)
    check(plugin, [joined(q), joined(k), joined(v), lengths], lambda *_: [joined(attention(q, k, v, lengths))], half=False, open_shapes=False)


def test_steps_of_one_engine():
    """Lengths are data: prompts of several tokens and steps of one by one engine, over one cache."""
    rng = np.random.default_rng(5)
    groups, shared, capacity, size = 2, 2, 50, 64
    k, v = (rng.standard_normal((2, groups, capacity, size)).astype(np.float32) for _ in range(2))
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network, config = builder.create_network(1), builder.create_builder_config()
    inputs = [network.add_input("q", trt.float32, (2, groups * shared, -1, size))]
    inputs += [network.add_input(n, trt.float32, k.shape) for n in "kv"] + [network.add_input("lengths", trt.int32, (2,))]
    layer = network.add_plugin_v2(inputs, make("CachedAttention"))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    profile = builder.create_optimization_profile()
    profile.set_shape("q", *((2, groups * shared, s, size) for s in (1, 1, 48)))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    for rows, lengths in ((48, (48, 50)), (7, (9, 7)), (1, (50, 2)), (1, (0, 1)), (33, (20, 49))):
        q = rng.standard_normal((2, groups * shared, rows, size)).astype(np.float32)
        y = run(engine, q=q, k=k, v=v, lengths=np.array(lengths, np.int32))["y"]
        close([y], [attention(q, k, v, lengths)], 5e-5)


def test_keeps_of_bools():
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal((2, 3, s, 32)).astype(np.float32) for s in (4, 40, 40))
    keep = rng.random((2, 1, 4, 40)) < 0.7
    keep[..., 0] = True
    lengths = np.array([40, 31], np.int32)
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network, config = builder.create_network(1), builder.create_builder_config()
    inputs = [network.add_input(n, t, a.shape) for n, t, a in (("q", trt.float32, q), ("k", trt.float32, k), ("v", trt.float32, v), ("l", trt.int32, lengths))]
    given = network.add_input("keep", trt.int32, keep.shape)
    same = network.add_identity(given)
    same.set_output_type(0, trt.bool)
    layer = network.add_plugin_v2([*inputs, same.get_output(0)], make("CachedAttention", has_mask=1))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    close([run(engine, q=q, k=k, v=v, l=lengths, keep=keep.astype(np.int32))["y"]], [attention(q, k, v, lengths, mask=keep)], 5e-5)


def test_refusals():
    assert "window is -1" in refusal("CachedAttention", window=-1)
    assert "softcap is nan" in refusal("CachedAttention", softcap=float("nan"))
    q, k = np.zeros((1, 3, 1, 8), np.float32), np.zeros((1, 2, 9, 8), np.float32)
    lengths = np.ones(1, np.int32)
    assert engine_of(make("CachedAttention"), [q, k, k, lengths]) is None  # three heads do not share two
    assert engine_of(make("CachedAttention", has_mask=1), [q, q, q, lengths]) is None  # no mask
    table = np.zeros((1, 2, 9), np.int32)  # of two images, and there is one
    assert engine_of(make("CachedAttention", cache_indirection=1), [k, k, k, lengths, table]) is None
    assert engine_of(make("CachedAttention", cache_indirection=1), [k, k, k, lengths, table[:, :1, :8]]) is None
    assert "paged and cache_indirection are both 1" in refusal("CachedAttention", paged=1, cache_indirection=1)
    blocks, pages = np.zeros((4, 3, 16, 8), np.float32), np.zeros((1, 2), np.int32)
    assert engine_of(make("CachedAttention", paged=1), [q, blocks, blocks, lengths, pages]) is not None
    assert engine_of(make("CachedAttention", paged=1), [q, blocks, blocks, lengths, np.zeros((2, 2), np.int32)]) is None  # of two images
    assert engine_of(make("CachedAttention", paged=1), [q, blocks[:, :, :8], blocks[:, :, :8], lengths, pages]) is None  # blocks of 8 rows
    assert engine_of(make("CachedAttention", paged=1), [q, blocks, blocks[:3], lengths, pages]) is None
    assert engine_of(make("CachedAttention", paged=1, has_mask=1), [q, blocks, blocks, lengths, np.zeros((1, 1, 1, 16), np.float32), pages]) is None
    assert engine_of(make("CachedAttention", cache_indirection=1), [k, k, k, lengths]) is None
    assert engine_of(make("CachedAttention", has_sinks=1), [k, k, k, lengths, np.zeros(2, np.int32)]) is None
    assert engine_of(make("CachedAttention", num_heads=5), [q[0], q[0], q[0], lengths]) is None
