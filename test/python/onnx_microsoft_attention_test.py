# SPDX-License-Identifier: Apache-2.0
"""Attention of com.microsoft at random shapes, masks, caches and attributes, beside ONNX Runtime."""

import json
import os
import time

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
import tensorrt as trt  # noqa: E402
from onnx_attention_models import Node, close, engine_of, held, ours, runtimes  # noqa: E402
from small import Tensors, run  # noqa: E402


def todays(seeds, share):
    """One in `share` of the list, others tomorrow; TW_TEST_SHARE and TW_TEST_DAY as in test/support/share_of_the_day.h."""
    share = int(os.environ.get("TW_TEST_SHARE") or share)
    day = int(os.environ.get("TW_TEST_DAY") or time.time() // 86400)
    return list(seeds)[day % share::share]


def draw(r, *shape):
    return r.standard_normal(shape).astype(np.float32)


def lengths_unknown(array, *axes):
    return [None if i in axes else n for i, n in enumerate(array.shape)]


# ---- GroupQueryAttention

class Group:
    """Steps of a node: of each, what is fed and which rows are no padding."""

    def __init__(self, seed):
        r = self.r = np.random.default_rng(seed)
        self.batch, self.groups, self.times = (int(r.integers(1, n)) for n in (4, 4, 4))
        self.size, self.heads = int(r.choice([16, 32, 48])), self.groups * self.times
        self.packed, self.grows = bool(r.integers(2)), bool(r.integers(2))
        self.capacity = int(r.integers(12, 20))
        node = self.node = Node("GroupQueryAttention")
        a = node.attributes
        a.update(num_heads=self.heads, kv_num_heads=self.groups)
        if r.integers(2):
            a["scale"] = float(r.choice([0.25, 0.5]))
        if r.integers(3) == 0:
            a["softcap"] = float(r.choice([1.5, 10.0]))
        if r.integers(3) == 0:
            a["local_window_size"] = int(r.integers(1, 8))
        self.sinks = int(r.integers(4)) == 0
        if not self.sinks and r.integers(4) == 0:
            a["smooth_softmax"] = 1
        self.rotary = bool(r.integers(3))
        if self.rotary:
            a.update(do_rotary=1, rotary_interleaved=int(r.integers(2)))
        self.places, self.bias = self.rotary and r.integers(3) == 0, bool(r.integers(4) == 0)
        self.total_is = str(r.choice(["input", "shape"]))
        pairs = self.size // 2 if r.integers(2) or self.size < 32 else 8  # ONNX Runtime turns multiples of 16
        angles = np.outer(np.arange(32), r.random(pairs))
        self.tables = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        self.counts = np.zeros(self.batch, np.int64)  # rows of the cache that are valid
        self.cache = [np.zeros((self.batch, self.groups, 0 if self.grows else self.capacity, self.size), np.float32) for _ in range(2)]
        self.seed = seed

    def step(self, s, added):
        """`added`: of s tokens, so many of each sequence are no padding. What is fed."""
        r, b = self.r, self.batch
        totals = self.counts + added
        total = int(totals.max())
        widths = (self.heads * self.size, self.groups * self.size, self.groups * self.size)
        parts = [draw(r, b, s, n) for n in widths]
        feed = {"q": np.concatenate(parts, 2)} if self.packed else dict(zip("qkv", parts))
        feed.update(pk=self.cache[0], pv=self.cache[1], n=(totals - 1).astype(np.int32))
        if self.total_is == "input":
            feed["total"] = np.array(total, np.int32)
        else:
            feed["mask"] = (np.arange(total) < totals[:, None]).astype(np.int64)
        if self.places:
            feed["places"] = np.maximum(self.counts[:, None] + np.arange(s), 0)
        if self.bias:
            feed["bias"] = draw(r, *(n if r.integers(2) else 1 for n in (b, self.heads)), s, total)
        return feed

    def model(self):
        """For dimensions that change: batch, length, rows of a cache that grows."""
        node = self.node
        if node.inputs:
            return self.data
        feed = self.step(1, np.ones(self.batch, int))
        for name in "qkv":
            if name in feed:
                node.feed(name, feed[name], [None, None, feed[name].shape[2]])
            else:
                node.skip()
        for name in ("pk", "pv"):
            node.feed(name, feed[name], lengths_unknown(feed[name], *((0, 2) if self.grows else (0,))))
        node.feed("n", feed["n"], [None])
        if self.total_is == "input":
            node.feed("total", feed["total"])
        else:  # as ONNX Runtime GenAI's builder has it
            m = node.model
            m.fed("mask", feed["mask"])
            node.known["mask"] = [None, None]
            m.node("Shape", ["mask"], ["of_mask"])
            m.node("Gather", ["of_mask", m.constant("one", np.int64(1))], ["length"], axis=0)
            m.node("Cast", ["length"], ["total"], to=6)
            node.inputs.append("total")
        if self.rotary:
            node.weights("cos", self.tables[0]), node.weights("sin", self.tables[1])
        else:
            node.skip(2)
        node.feed("places", feed["places"], [None, None]) if self.places else node.skip()
        node.feed("bias", feed["bias"], [None] * 4) if self.bias else node.skip()
        node.weights("sinks", draw(self.r, self.heads).astype(feed["pk"].dtype)) if self.sinks else node.skip()
        self.data = node.bytes("y", "k1", "v1")
        return self.data

    def steps(self):
        """A prompt with padding behind it, one token each, several tokens of one sequence."""
        r = self.r
        s = int(r.integers(2, 6))
        added = r.integers(1, s + 1, self.batch)
        added[int(r.integers(self.batch))] = s
        yield s, added
        for _ in range(2):
            yield 1, np.ones(self.batch, int)
        if self.batch == 1:
            yield 3, np.array([3])

    def took(self, added, results):
        self.counts = self.counts + added
        self.cache = [results[n].copy() for n in ("k1", "v1")]
        for cache in self.cache:
            for b, n in enumerate(self.counts):
                cache[b, :, n:] = 0  # what stands there is no one's business


def compare_steps(group, half=False):
    data = group.model()
    feeds, wanted = [], []
    for s, added in group.steps():
        feed = group.step(s, added)
        want = runtimes(data, feed)
        feeds.append((feed, added, group.counts + added))
        wanted.append(want)
        group.took(added, want)
    engine = engine_of(data, [f for f, _, _ in feeds])
    for (feed, added, totals), want in zip(feeds, wanted):
        got = run(engine, **held(feed))
        message = f"seed {group.seed}: {group.node.attributes} {[(n, a.shape) for n, a in feed.items()]} {added}"
        assert {n: a.shape for n, a in got.items()} == {n: a.shape for n, a in want.items()}, message
        for b, (n, total) in enumerate(zip(added, totals)):
            close(got["y"][b, :n], want["y"][b, :n], message, half)
            for cache in ("k1", "v1"):
                close(got[cache][b, :, :total], want[cache][b, :, :total], message, half)


@pytest.mark.parametrize("seed", todays(range(96), 4))
def test_group_query(seed):
    compare_steps(Group(seed))


# ---- MultiHeadAttention, Attention

def random_mask(r, b, s, total, attention):
    """Of one of the forms that both have; none of which hides all keys of a query."""
    kind = int(r.integers(5))
    if kind == 0:
        return None
    if kind == 1:
        return r.integers(1, total + 1, b).astype(np.int32)
    if kind == 2 and attention:  # ends, then begins
        begins = r.integers(0, total, b)
        return np.concatenate([r.integers(begins + 1, total + 1), begins]).astype(np.int32)
    mask = r.integers(0, 3, (b, s, total) if kind == 3 else (b, total)) > 0
    mask[..., int(r.integers(total))] = True
    return mask.astype(np.int32)


def compare(node, seed, names):
    data = node.bytes(*names)
    want = runtimes(data, node.model.feed)
    message = f"seed {seed}: {node.model.nodes[-1]} {[(n, a.shape, a.dtype) for n, a in node.model.feed.items()]}"
    got = ours(data, node.model.feed)
    assert set(got) == set(want), message
    for name, array in want.items():
        clip = (lambda a: np.maximum(a, -1e38)) if name == "scores" else np.asarray  # hidden: -inf, or the lowest number
        close(clip(got[name]), clip(array), f"{name} {message}")


def unknown_of(r, array, *axes):
    """Half of the models do not say these dimensions."""
    return lengths_unknown(array, *axes) if r else None


def multi_head(seed):
    """A node and the names of its outputs."""
    r = np.random.default_rng(seed)
    b, heads, s, length = (int(r.integers(1, n)) for n in (4, 4, 6, 6))
    size, value_size = int(r.choice([1, 4, 8])), int(r.choice([1, 4, 8]))
    form = str(r.choice(["apart", "cross"]))
    hidden = r.integers(2)
    node = Node("MultiHeadAttention")
    node.attributes["num_heads"] = heads
    if r.integers(2):
        node.attributes["scale"] = float(r.choice([0.25, 1.0]))
    if r.integers(3) == 0:
        node.attributes["mask_filter_value"] = float(r.choice([-3e38, -50.0]))
    past = 0
    give = lambda name, *shape: node.feed(name, (a := draw(r, *shape)), unknown_of(hidden, a, 0, 2 if a.ndim == 4 else 1))  # noqa: E731
    if form == "apart":
        past = int(r.integers(1, 4)) if r.integers(2) else 0
        if r.integers(2):  # past and unidirectional: of the query itself
            length = s
            node.attributes["unidirectional"] = int(r.integers(2))
        if past:
            value_size = size
    if form == "cross":
        value_size = size
    give("q", b, s, heads * size)
    if form == "cross":
        give("k", b, heads, length, size), give("v", b, heads, length, size)
    else:
        give("k", b, length, heads * size), give("v", b, length, heads * value_size)
    total = past + length
    node.weights("bias", draw(r, heads * (2 * size + value_size))) if r.integers(2) else node.skip()
    mask = random_mask(r, b, s, total, False)
    node.feed("m", mask) if mask is not None else node.skip()
    give("added", *(n if r.integers(2) else 1 for n in (b, heads)), s, total) if r.integers(2) else node.skip()
    if past:
        give("pk", b, heads, past, size), give("pv", b, heads, past, size)
    names = ["y"]
    if form == "apart" and (past or r.integers(2)):
        names += ["k1", "v1"] + ["scores"] * int(r.integers(2))
    return node, names


@pytest.mark.parametrize("seed", todays(range(120), 4))
def test_multi_head(seed):
    node, names = multi_head(seed)
    compare(node, seed, names)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parts", [2, 3])
def test_packed(parts, seed):
    """Of keys and values, or of all three; ONNX Runtime has these on GPUs alone, and apart on CPUs."""
    r = np.random.default_rng([parts, seed])
    b, heads, s, length, size = (int(r.integers(1, n)) for n in (4, 4, 6, 6, 9))
    length = s if parts == 3 else length
    all_of = [draw(r, b, n, heads, size) for n in (s, length, length)]
    bias = draw(r, heads * size * 3)
    packed, apart = Node("MultiHeadAttention"), Node("MultiHeadAttention")
    for node in (packed, apart):
        node.attributes["num_heads"] = heads
    for name, x in zip("qkv", all_of):
        apart.feed(name, x.reshape(b, -1, heads * size))
    if parts == 3:
        packed.feed("q", np.stack(all_of, 3)), packed.skip(2)
    else:
        packed.feed("q", all_of[0].reshape(b, s, heads * size)), packed.feed("k", np.stack(all_of[1:], 3), [None, None, heads, 2, size]), packed.skip()
    if r.integers(2):
        packed.weights("bias", bias), apart.weights("bias", bias)
    want = runtimes(apart.bytes("y"), apart.model.feed)["y"]
    close(ours(packed.bytes("y"), packed.model.feed)["y"], want, f"seed {seed}: {[a.shape for a in all_of]}")


def attention(seed):
    """A node and the names of its outputs."""
    r = np.random.default_rng(seed)
    b, heads, s, n = (int(r.integers(1, m)) for m in (4, 4, 6, 12))
    size, value_size = int(r.choice([1, 4, 8])), int(r.choice([1, 4, 8]))
    node = Node("Attention")
    a = node.attributes
    a["num_heads"] = heads
    past = int(r.integers(1, 4)) if r.integers(2) else 0
    present = bool(past or r.integers(2))
    if present:
        value_size = size
    if value_size != size or r.integers(3) == 0:
        a["qkv_hidden_sizes"] = [heads * size, heads * size, heads * value_size]
    if r.integers(2):
        a["scale"] = float(r.choice([0.25, 1.0]))
    if r.integers(2):
        a["unidirectional"] = 1
    if r.integers(3) == 0:
        a["mask_filter_value"] = float(r.choice([-3e38, -50.0]))
    width, total = heads * (2 * size + value_size), past + s
    mask = random_mask(r, b, s, total, True)
    hidden = bool(r.integers(2)) and not (mask is not None and mask.shape == (2 * b,))
    x = draw(r, b, s, n)
    node.feed("x", x, unknown_of(hidden, x, 0, 1))
    (node.weights if r.integers(2) else node.feed)("w", draw(r, n, width))
    node.weights("bias", draw(r, width)) if r.integers(2) else node.skip()
    node.feed("m", mask) if mask is not None else node.skip()
    if past:
        kept = draw(r, 2, b, heads, past, size)
        node.feed("past", kept, unknown_of(hidden, kept, 1, 3))
    else:
        node.skip()
    if not past and r.integers(2):  # ONNX Runtime has not both
        node.feed("added", draw(r, *(m if r.integers(2) else 1 for m in (b, heads)), s, total))
    return node, ["y", "present"] if present else ["y"]


@pytest.mark.parametrize("seed", todays(range(100), 4))
def test_attention(seed):
    node, names = attention(seed)
    compare(node, seed, names)


# ---- GroupQueryAttention: what ONNX Runtime has not on CPUs, or not at once

@pytest.mark.parametrize("seed", range(6))
def test_group_query_in_half(seed):
    group = Group([seed, 16])
    group.node.attributes.pop("softcap", None)
    group.tables = [t.astype(np.float16) for t in group.tables]
    group.cache = [c.astype(np.float16) for c in group.cache]
    plain = group.step
    group.step = lambda s, added: {n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in plain(s, added).items()}
    compare_steps(group, True)


@pytest.mark.parametrize("seed", range(6))
def test_group_query_with_norms(seed):
    """q_norm_weight and k_norm_weight: as norms in front of the node."""
    r = np.random.default_rng(seed)
    b, heads, groups, size, s = 2, 4, 2, 16, int(r.integers(1, 4))
    inside, outside = Node("GroupQueryAttention"), Node("GroupQueryAttention")
    epsilons = [{}, {"qk_norm_epsilon": 0.1}, {"q_norm_epsilon": 0.2, "k_norm_epsilon": 0.3}][seed % 3]
    parts, norms = [draw(r, b, s, n * size) for n in (heads, groups, groups)], [draw(r, size), draw(r, size)]
    for node in (inside, outside):
        node.attributes.update(num_heads=heads, kv_num_heads=groups)
        for i, (name, x) in enumerate(zip("qkv", parts)):
            if node is outside and i < 2:
                apart = x.reshape(b, s, -1, size)
                epsilon = epsilons.get("qk"[i] + "_norm_epsilon", epsilons.get("qk_norm_epsilon", 1e-6))
                x = (apart / np.sqrt((apart ** 2).mean(-1, keepdims=True) + epsilon) * norms[i]).reshape(x.shape).astype(np.float32)
            node.feed(name, x)
        node.skip(2), node.feed("n", np.full(b, s - 1, np.int32)), node.weights("total", np.array(s, np.int32))
    inside.attributes.update(epsilons)
    inside.skip(7), inside.weights("qn", norms[0]), inside.weights("kn", norms[1])
    want = runtimes(outside.bytes("y", "k1", "v1"), outside.model.feed)
    got = ours(inside.bytes("y", "k1", "v1"), inside.model.feed)
    for name, array in want.items():
        close(got[name], array, f"{name} seed {seed}")


@pytest.mark.parametrize("seed", range(8))
def test_group_query_with_padded_chunks(seed):
    """query_seqlens: each sequence has its own number of new tokens, and of rows in the cache."""
    r = np.random.default_rng(seed)
    b, heads, groups, size, s, capacity = 3, 4, 2, 16, int(r.integers(1, 5)), 12
    node = Node("GroupQueryAttention")
    node.attributes.update(num_heads=heads, kv_num_heads=groups, do_rotary=1)
    if r.integers(2):
        node.attributes["local_window_size"] = 3
    added, before = r.integers(0, s + 1, b), r.integers(1, capacity - s + 1, b)
    for name, n in zip("qkv", (heads, groups, groups)):
        node.feed(name, draw(r, b, s, n * size), [None, None, n * size])
    for name in ("pk", "pv"):
        node.feed(name, draw(r, b, groups, capacity, size))
    totals = before + added
    node.feed("n", (totals - 1).astype(np.int32)), node.weights("total", np.array(capacity, np.int32))
    angles = np.outer(np.arange(16), r.random(size // 2)).astype(np.float32)
    node.weights("cos", np.cos(angles)), node.weights("sin", np.sin(angles))
    node.skip(7), node.feed("new", added.astype(np.int32))
    data = node.bytes("y", "k1", "v1")
    want, got = runtimes(data, node.model.feed), ours(data, node.model.feed)
    for i in range(b):
        close(got["y"][i, :added[i]], want["y"][i, :added[i]], f"seed {seed}")
        for cache in ("k1", "v1"):
            close(got[cache][i, :, :totals[i]], want[cache][i, :, :totals[i]], f"seed {seed}")


@pytest.mark.parametrize("seed", range(4))
def test_group_query_both_ways(seed):
    """causal 0: all valid keys for each query."""
    r = np.random.default_rng(seed)
    b, heads, groups, size, s = 2, 4, 2, 16, int(r.integers(2, 6))
    node = Node("GroupQueryAttention")
    node.attributes.update(num_heads=heads, kv_num_heads=groups, causal=0)
    for name, n in zip("qkv", (heads, groups, groups)):
        node.feed(name, draw(r, b, s, n * size))
    node.skip(2), node.feed("n", np.array([s - 1, int(r.integers(s))], np.int32)), node.weights("total", np.array(s, np.int32))
    data = node.bytes("y", "k1", "v1")
    want, got = runtimes(data, node.model.feed), ours(data, node.model.feed)
    for i, n in enumerate(node.model.feed["n"] + 1):
        close(got["y"][i, :n], want["y"][i, :n], f"seed {seed}")


# ---- caches that stay where they are

def steps_in_place(engine, feeds, capacity, groups, size):
    """Results of each step, with each cache as input and output at one address."""
    context, tensors, answers = engine.create_execution_context(), Tensors(), []
    batch = len(feeds[0]["n"])
    caches = {n: tensors.given(n, np.zeros((batch, groups, capacity, size), np.float32)) for n in ("pk", "pv")}
    for feed in feeds:
        rest = {n: a for n, a in held(feed).items() if n not in caches}
        for name, array in rest.items():
            context.set_input_shape(name, array.shape)
            context.set_tensor_address(name, tensors.given(name, array))
        for past, present in (("pk", "k1"), ("pv", "v1")):
            context.set_input_shape(past, (batch, groups, capacity, size))
            context.set_tensor_address(past, caches[past]), context.set_tensor_address(present, caches[past])
        context.set_tensor_address("y", tensors.room("y", context.get_tensor_shape("y"), np.float32))
        assert context.execute_async_v3(0)
        answers.append(tensors.results()["y"])
    return answers


@pytest.mark.parametrize("rotary", [0, 1])
def test_caches_of_a_fixed_length_stay(rotary):
    """A profile that gives them one length, which the total does not go beyond: nothing of them is copied."""
    group = Group(next(s for s in range(200) if (g := Group(s)).grows and g.rotary == bool(rotary) and g.total_is == "shape" and not g.bias and g.batch == 2))
    data, feeds, wanted = group.model(), [], []
    for s, added in ((4, np.array([4, 2])), (1, np.ones(2, int)), (1, np.ones(2, int))):
        feed = group.step(s, added)
        want = runtimes(data, feed)
        feeds.append(feed), wanted.append((added, want["y"]))
        group.took(added, want)
    capacity = 16
    fixed = [{**f, "pk": (a := np.zeros((2, group.groups, capacity, group.size), np.float32)), "pv": a} for f in feeds]
    longest = {**fixed[0], "mask": np.ones((2, capacity), np.int64)}
    engine = engine_of(data, [*fixed, longest])
    layers = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    whole = [layer["Name"] for layer in layers for o in layer.get("Outputs", []) if o["Dimensions"][2:] == [capacity, group.size]]
    assert len(whole) == 2, whole  # those of the caches themselves
    for (added, want), got in zip(wanted, steps_in_place(engine, feeds, capacity, group.groups, group.size)):
        for b, n in enumerate(added):
            close(got[b, :n], want[b, :n], "")
