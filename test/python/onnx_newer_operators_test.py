# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX's operator sets 18 to 28 at random shapes, attributes and types, beside NumPy and ONNX's reference."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402

LATEST = onnx.defs.onnx_opset_version()


def tolerance(dtype):
    return {"rtol": 4e-3, "atol": 4e-3} if dtype == np.float16 else {"rtol": 2e-4, "atol": 2e-5}


def compare(model, want, dynamic=False):
    """`want`: arrays by the names of outputs."""
    data = model.bytes(dynamic, **{n: (a.dtype, [None] * a.ndim) for n, a in want.items()})
    got = outputs(data, model.feed)[0]
    for name, array in want.items():
        assert got[name].shape == array.shape, name
        if array.dtype.kind == "f":
            assert got[name].dtype == array.dtype
            np.testing.assert_allclose(got[name].astype(np.float64), array.astype(np.float64), err_msg=name, **tolerance(array.dtype))
        else:
            np.testing.assert_array_equal(got[name], array, err_msg=name)


def unchecked(model, *names):
    """Of a model whose results' shapes are not said, or that ONNX's checker would not pass."""
    make = onnx.helper
    inputs = [make.make_tensor_value_info(n, make.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in model.feed.items()]
    results = [onnx.ValueInfoProto(name=n) for n in names]
    graph = make.make_graph(model.nodes, "g", inputs, results, model.initializers)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", model.opset)], ir_version=onnx.IR_VERSION)


def check(model, *names, dynamic=False):
    """Beside the reference."""
    want = ReferenceEvaluator(unchecked(model, *names)).run(list(names), model.feed)
    compare(model, dict(zip(names, want)), dynamic)


def error_of(model):
    return parsed(unchecked(model, "y").SerializeToString())[1] or ""


# ---- Attention

def attention(q, k, v, bias, scale, cap, dtype):
    """q: [B, heads, S, size]; k, v of fewer heads; bias: added to the scores. (y, scores, capped, with bias, weights)"""
    q, k, v, bias = (a.astype(np.float64) for a in (q, k, v, bias))
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat(times, axis=1), v.repeat(times, axis=1)
    scores = q @ k.transpose(0, 1, 3, 2) * scale
    capped = cap * np.tanh(scores / cap) if cap else scores
    masked = capped + bias
    largest = masked.max(-1, keepdims=True)
    weights = np.where(np.isinf(largest), 0, np.exp(masked - np.where(np.isinf(largest), 0, largest)))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return [a.astype(dtype) for a in (weights @ v, scores, capped, masked, weights)]


def random_attention(seed):
    """A model and what its outputs are."""
    r = np.random.default_rng(seed)
    dtype = np.float16 if r.integers(4) == 0 else np.float32
    b, kv, times, s, t = (int(r.integers(1, n)) for n in (4, 4, 4, 9, 9))
    size, value_size, heads = int(r.choice([1, 2, 5, 8])), int(r.choice([1, 4, 8])), kv * times
    opset = int(r.choice([23, 24, 25]))
    flat = bool(r.integers(2))
    model, attributes = Model(opset), {}
    draw = lambda *shape: r.standard_normal(shape).astype(dtype)  # noqa: E731
    q, k, v = draw(b, heads, s, size), draw(b, kv, t, size), draw(b, kv, t, value_size)

    def given(name, x):
        return model.fed(name, x.transpose(0, 2, 1, 3).reshape(b, x.shape[2], -1) if flat else x)

    inputs = [given("q", q), given("k", k), given("v", v), "", "", "", ""]
    if flat:
        attributes.update(q_num_heads=heads, kv_num_heads=kv)
    past = int(r.integers(1, 5)) if r.integers(2) else 0
    if past:
        old = draw(b, kv, past, size), draw(b, kv, past, value_size)
        inputs[4:6] = model.fed("pk", old[0]), model.fed("pv", old[1])
        k, v = np.concatenate((old[0], k), 2), np.concatenate((old[1], v), 2)
    total = past + t
    j, i = np.arange(total), np.arange(s)[:, None] + past
    allowed = np.ones((b, 1, s, total), bool)
    if opset > 23 and not past and r.integers(2):
        lengths = r.integers(0, total + 1, b)
        inputs[6] = model.fed("n", lengths.astype(np.int64))
        allowed &= (j < lengths[:, None])[:, None, None]
        i = np.arange(s)[:, None] + (lengths - s)[:, None, None, None]
    if r.integers(2):
        attributes["is_causal"] = 1
        allowed = allowed & (j <= i)
    if opset > 24 and r.integers(2):
        left, right = int(r.integers(-1, 4)), int(r.integers(-1, 4))
        attributes.update(left_window_size=left, right_window_size=right)
        allowed = allowed & ((left < 0) | (j >= i - left)) & ((right < 0) | (j <= i + right))
    bias = np.where(allowed, 0.0, -np.inf)
    if kind := r.integers(3):
        rank, given_length = int(r.integers(1, 5)), int(r.integers(1, total + 1)) if r.integers(3) == 0 else total
        shape = [int(n if r.integers(2) else 1) for n in (b, heads, s)] + [given_length]
        shape = shape[4 - rank:]
        mask = r.integers(0, 4, shape) > 0 if kind == 1 else np.where(r.integers(0, 6, shape) > 0, draw(*shape), dtype(-np.inf))
        inputs[3] = model.fed("m", mask)
        added = np.where(mask, 0.0, -np.inf) if kind == 1 else mask
        bias = bias + np.pad(added, [(0, 0)] * (rank - 1) + [(0, total - given_length)], constant_values=-np.inf)
    scale = 1 / np.sqrt(size)
    if r.integers(2):
        scale = float(r.choice([0.25, 1.0, 0.125]))
        attributes["scale"] = scale
    cap = float(r.choice([0, 0, 1.5, 20]))
    if cap:
        attributes["softcap"] = cap
    if r.integers(3) == 0:
        attributes["softmax_precision"] = 1
    mode = int(r.integers(4))
    y, *inner = attention(q, k, v, np.broadcast_to(bias, (b, heads, s, total)), scale, cap, dtype)
    want = {"y": y.transpose(0, 2, 1, 3).reshape(b, s, -1) if flat else y}
    names = ["y", "", "", ""]
    if past or r.integers(2):
        names[1:3] = "pk1", "pv1"
        want.update(pk1=k, pv1=v)
    if r.integers(2):
        attributes["qk_matmul_output_mode"] = mode
        names[3] = "qk"
        want["qk"] = inner[mode]
    while not inputs[-1]:
        inputs.pop()
    while not names[-1]:
        names.pop()
    model.node("Attention", inputs, names, **attributes)
    return model, want


@pytest.mark.parametrize("part", range(6))
def test_attention(part):
    for seed in range(part * 12, part * 12 + 12):
        model, want = random_attention(seed)
        try:
            compare(model, want)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {model.nodes[0]}") from e


@pytest.mark.parametrize("part", range(2))
def test_attention_of_sizes_that_are_not_known(part):
    done = 0
    for seed in range(1000 + part * 40, 1040 + part * 40):
        model, want = random_attention(seed)
        attributes = {a.name for a in model.nodes[0].attribute}
        if "scale" not in attributes or "q_num_heads" in attributes:
            continue
        compare_partly_known(model, want)
        done += 1
    assert done >= 4


def compare_partly_known(model, want, unknown=lambda name, rank: (0, 2) if rank == 4 and name != "m" else range(rank)):
    """Heads and their size are known, the rest is not."""
    data = onnx.load_from_string(model.bytes(**{n: (a.dtype, [None] * a.ndim) for n, a in want.items()}))
    for value in data.graph.input:
        dims = value.type.tensor_type.shape.dim
        for at in unknown(value.name, len(dims)):
            dims[at].Clear()
    got = outputs(data.SerializeToString(), model.feed)[0]
    for name, array in want.items():
        np.testing.assert_allclose(got[name].astype(np.float64), array.astype(np.float64), err_msg=name, **tolerance(array.dtype))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("form", ["plain", "causal", "bool", "float", "shared", "past", "lengths", "window"])
def test_attention_is_one_node(flat, form):
    b, heads, s, size = 2, 4, 6, 8
    kv = 2 if form in ("shared", "past") else heads
    r = np.random.default_rng(1)
    model, attributes = Model(25), {}
    give = lambda name, n: model.fed(name, r.standard_normal((b, s, n * size) if flat else (b, n, s, size)).astype(np.float32))  # noqa: E731
    inputs = [give("q", heads), give("k", kv), give("v", kv), "", "", "", ""]
    if flat:
        attributes.update(q_num_heads=heads, kv_num_heads=kv)
    if form in ("causal", "float", "past", "lengths"):
        attributes["is_causal"] = 1
    if form == "window":
        attributes["left_window_size"] = 2
    if form == "bool":
        inputs[3] = model.fed("m", np.ones((s, s), bool))
    if form == "float":
        inputs[3] = model.fed("m", np.zeros((b, 1, s, s), np.float32))
    if form == "past":
        inputs[4:6] = [model.fed(n, np.zeros((b, kv, 3, size), np.float32)) for n in ("pk", "pv")]
    if form == "lengths":
        inputs[6] = model.fed("n", np.array([3, 6]))
    names = ["y", "k1", "v1"] if form == "past" else ["y"]
    model.node("Attention", inputs, names, **attributes)
    (builder, network, _, _), error = parsed(unchecked(model, *names).SerializeToString())
    assert error is None
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    logger = trt.Logger(trt.Logger.ERROR)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    layers = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    kinds = [layer["LayerType"] for layer in layers]
    # Over caches it is a plugin's, whose second layer, if any, brings heads to the front.
    assert (kinds.count("PluginV2") == 2 - flat if form == "lengths" else kinds.count("Myelin") == 1) and not {"CudaSoftMax", "SoftMax", "MatrixMultiply"} & set(kinds), kinds


def attention_error(attributes, shapes=((1, 2, 3, 4),) * 3, extra=()):
    model = Model(25)
    inputs = [model.fed(n, np.zeros(shape, np.float32)) for n, shape in zip("qkv", shapes)]
    inputs += [model.fed(f"x{i}", a) if a is not None else "" for i, a in enumerate(extra)]
    model.node("Attention", inputs, ["y"], **attributes)
    return error_of(model)


def test_attentions_that_are_none():
    flat = ((1, 3, 8),) * 3
    past = np.zeros((1, 2, 1, 4), np.float32)
    assert "attribute 'q_num_heads'" in attention_error({}, flat)
    assert "q_num_heads is 3" in attention_error({"q_num_heads": 3, "kv_num_heads": 2}, flat)
    assert "q_num_heads is -2" in attention_error({"q_num_heads": -2, "kv_num_heads": 2}, flat)
    assert "2 heads of queries, 4 of keys" in attention_error({"q_num_heads": 2, "kv_num_heads": 4}, flat)
    assert "q_num_heads is 3" in attention_error({"q_num_heads": 3})
    assert "3 or 4 dimensions" in attention_error({}, ((2, 3),) * 3)
    assert "qk_matmul_output_mode is 7" in attention_error({"qk_matmul_output_mode": 7})
    assert "softmax_precision is 6" in attention_error({"softmax_precision": 6})
    assert "left_window_size is -2" in attention_error({"left_window_size": -2})
    assert "one of them is missing" in attention_error({}, extra=(None, past))
    assert "nonpad_kv_seqlen" in attention_error({}, extra=(None, past, past, np.array([2])))
    assert "nonpad_kv_seqlen is INT32 of shape [1, 1]" in attention_error({}, extra=(None, None, None, np.array([[2]])))
    assert "the mask is INT32" in attention_error({}, extra=(np.zeros((3, 3), np.int32),))
    assert "there are 3 keys" in attention_error({}, extra=(np.zeros((3, 5), np.float32),))
    assert "1 to 4 dimensions" in attention_error({}, extra=(np.zeros((1, 1, 1, 3, 3), np.float32),))
    for shapes in (((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4)), ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 5, 4))):
        assert attention_error({}, shapes) != ""


# ---- the others

@pytest.mark.parametrize("part", range(2))
def test_rotary(part):
    for seed in range(part * 20, part * 20 + 20):
        r = np.random.default_rng(seed)
        dtype = np.float16 if seed % 5 == 0 else np.float32
        b, heads, s, pairs, rest = (int(r.integers(1, n)) for n in (3, 4, 6, 5, 3))
        turned = 2 * pairs
        size = turned + 2 * (rest - 1)
        flat, table = bool(r.integers(2)), bool(r.integers(2))
        model, attributes = Model(int(r.choice([23, 24, LATEST]))), {"interleaved": int(r.integers(2))}
        x = r.standard_normal((b, s, heads * size) if flat else (b, heads, s, size)).astype(dtype)
        angles = r.uniform(-3, 3, (9, pairs) if table else (b, s, pairs))
        inputs = [model.fed("x", x), model.fed("c", np.cos(angles).astype(dtype)), model.fed("s", np.sin(angles).astype(dtype))]
        if table:
            inputs.append(model.fed("at", r.integers(0, 9, (b, s))))
        if flat:
            attributes["num_heads"] = heads
        if size != turned:
            attributes["rotary_embedding_dim"] = turned
        model.node("RotaryEmbedding", inputs, ["y"], **attributes)
        check(model, "y")


def test_rotations_that_are_none():
    def error(x, c, at=None, **attributes):
        model = Model(23)
        inputs = [model.fed("x", np.zeros(x, np.float32)), model.fed("c", np.zeros(c, np.float32)), model.fed("s", np.zeros(c, np.float32))]
        if at:
            inputs.append(model.fed("at", np.zeros(at, np.int64)))
        model.node("RotaryEmbedding", inputs, ["y"], **attributes)
        return error_of(model)
    assert "attribute 'num_heads'" in error((1, 2, 8), (1, 2, 2))
    assert "num_heads is 3" in error((1, 2, 8), (1, 2, 2), num_heads=3)
    assert "rotary_embedding_dim is 3" in error((1, 1, 2, 4), (1, 2, 2), rotary_embedding_dim=3)
    assert "rotary_embedding_dim is 6" in error((1, 1, 2, 4), (1, 2, 2), rotary_embedding_dim=6)
    assert "rotary_embedding_dim is -2" in error((1, 1, 2, 4), (1, 2, 2), rotary_embedding_dim=-2)
    assert "without position_ids" in error((1, 1, 2, 4), (5, 2))
    assert "with position_ids" in error((1, 1, 2, 4), (1, 2, 2), at=(1, 2))
    assert "last dimension must be 2" in error((1, 1, 2, 4), (1, 2, 3))
    assert "position_ids" in error((1, 1, 2, 4), (5, 2), at=(2,))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("neighbours", [0, 1])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_layer_of_a_decoder(flat, neighbours, past, dynamic):
    """A norm, projections, positions, attention with shared heads and what is kept of earlier calls, a residual sum."""
    b, s, heads, kv, size = 2, 5, 4, 2, 8
    width, r = heads * size, np.random.default_rng(4)
    draw = lambda *shape: (r.standard_normal(shape) * 0.3).astype(np.float32)  # noqa: E731
    model = Model(24)
    model.node("RMSNormalization", [model.fed("x", draw(b, s, width)), model.constant("g", 1 + draw(width))], ["n"])
    angles = r.uniform(-3, 3, (16, size // 2)).astype(np.float32)
    model.constant("cos", np.cos(angles)), model.constant("sin", np.sin(angles))
    model.fed("at", np.broadcast_to(np.arange(past, past + s), (b, s)).copy())
    for name, count in (("q", heads), ("k", kv), ("v", kv)):
        model.node("MatMul", ["n", model.constant(f"w_{name}", draw(width, count * size))], [f"{name}_rows"])
        if not flat:
            model.node("Reshape", [f"{name}_rows", model.constant(f"{name}_shape", np.array([0, 0, count, size]))], [f"{name}_parts"])
            model.node("Transpose", [f"{name}_parts"], [f"{name}_heads"], perm=[0, 2, 1, 3])
        if name != "v":
            attributes = {"num_heads": count} if flat else {}
            model.node("RotaryEmbedding", [f"{name}_rows" if flat else f"{name}_heads", "cos", "sin", "at"], [name], interleaved=neighbours, **attributes)
    inputs = ["q", "k", "v_rows" if flat else "v_heads"]
    if past:
        inputs += ["", model.fed("pk", draw(b, kv, past, size)), model.fed("pv", draw(b, kv, past, size))]
    attributes = {"q_num_heads": heads, "kv_num_heads": kv} if flat else {}
    kept = ["keys", "values"] if past else []
    model.node("Attention", inputs, ["a", *kept], is_causal=1, **attributes)
    rows = "a"
    if not flat:
        model.node("Transpose", ["a"], ["a_parts"], perm=[0, 2, 1, 3])
        model.node("Reshape", ["a_parts", model.constant("shape", np.array([0, 0, width]))], ["a_rows"])
        rows = "a_rows"
    model.node("MatMul", [rows, model.constant("w_o", draw(width, width))], ["o"])
    model.node("Add", ["o", "x"], ["y"])
    check(model, "y", *kept, dynamic=dynamic)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode):
    for seed in range(16):
        r = np.random.default_rng(seed)
        rank, b, longest = int(r.integers(2, 5)), int(r.integers(1, 4)), int(r.integers(1, 7))
        axis, length = int(r.integers(1, rank)), int(r.integers(1, longest + 1))
        cache = [b] + [int(n) for n in r.integers(1, 4, rank - 1)]
        cache[axis] = longest
        update = cache.copy()
        update[axis] = length
        model = Model(24)
        inputs = [model.fed("c", r.standard_normal(cache).astype(np.float32)), model.fed("u", r.standard_normal(update).astype(np.float32))]
        if seed % 4:
            inputs.append(model.fed("at", r.integers(0, longest - length + 1 if mode == "linear" else longest, b)))
        model.node("TensorScatter", inputs, ["y"], mode=mode, axis=axis if seed % 2 else axis - rank)
        check(model, "y", dynamic=seed % 3 == 0)


def test_tensor_scatters_that_are_none():
    def error(cache, update, at=None, **attributes):
        model = Model(24)
        inputs = [model.fed("c", np.zeros(cache, np.float32)), model.fed("u", np.zeros(update, np.float32))]
        if at:
            inputs.append(model.fed("at", np.zeros(at, np.int64)))
        model.node("TensorScatter", inputs, ["y"], **attributes)
        return error_of(model)
    assert "axis is 0" in error((2, 3), (2, 3), axis=0)
    assert "axis" in error((2, 3), (2, 3), axis=5)
    assert "mode 'round'" in error((2, 3), (2, 3), mode="round", axis=1)
    assert "does not fit a cache" in error((2, 3), (2, 4), axis=1)
    assert "does not fit a cache" in error((2, 3), (1, 3), axis=1)
    assert "does not fit a cache" in error((2, 3), (2, 3, 1), axis=1)
    assert "write_indices" in error((2, 3), (2, 1), at=(2, 1), axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_norms_and_gates(dtype):
    for seed in range(8):
        r = np.random.default_rng(seed)
        shape = [int(n) for n in r.integers(1, 7, int(r.integers(2, 5)))]
        axis = int(r.integers(-len(shape), len(shape)))
        x = (r.standard_normal(shape) * 3).astype(dtype)
        model = Model(23)
        scale = model.constant("s", r.standard_normal(shape[axis:]).astype(dtype))
        model.node("RMSNormalization", [model.fed("x", x), scale], ["y"], axis=axis, epsilon=float(r.choice([1e-5, 0.1])))
        check(model, "y", dynamic=seed % 2 == 1)
        model = Model(24)
        model.node("Swish", [model.fed("x", x)], ["y"], alpha=float(r.choice([1, 0.5, 1.702])))
        check(model, "y")
        model = Model(28)
        model.node("SwiGLU", [model.fed("a", x), model.fed("b", x[::-1].copy())], ["y"], alpha=float(r.choice([1, 2])))
        check(model, "y")
        model = Model(22)
        x[0] = 0
        p = int(r.choice([1, 2]))
        model.node("LpNormalization", [model.fed("x", x)], ["y"], axis=axis, p=p)
        norm = np.linalg.norm(x.astype(np.float64), p, axis, keepdims=True)
        compare(model, {"y": (x / np.where(norm == 0, 1, norm)).astype(dtype)})


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_running_products(dtype):
    for seed in range(8):
        r = np.random.default_rng(seed)
        shape = [int(n) for n in r.integers(1, 9, int(r.integers(1, 4)))]
        x = r.integers(-2, 3, shape).astype(dtype)
        model = Model(26)
        axis = model.constant("axis", np.array(int(r.integers(-len(shape), len(shape)))))
        model.node("CumProd", [model.fed("x", x), axis], ["y"], exclusive=int(r.integers(2)), reverse=int(r.integers(2)))
        check(model, "y")


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule):
    for seed in range(6):
        r = np.random.default_rng(seed)
        b, kv, times, t, size, value_size = (int(r.integers(1, n)) for n in (3, 4, 3, 5, 5, 5))
        draw = lambda *s: (r.standard_normal(s) * 0.5).astype(np.float32)  # noqa: E731
        model = Model(27)
        inputs = [model.fed("q", draw(b, t, kv * times * size)), model.fed("k", draw(b, t, kv * size)), model.fed("v", draw(b, t, kv * value_size)), "", "", ""]
        if r.integers(2):
            inputs[3] = model.fed("past", draw(b, kv, size, value_size))
        if "gated" in rule:
            inputs[4] = model.fed("g", -np.abs(draw(b, t, kv * (size if r.integers(2) else 1))))
        if "delta" in rule:
            inputs[5] = model.fed("beta", np.abs(draw(b, t, kv if r.integers(2) else 1)))
        while not inputs[-1]:
            inputs.pop()
        attributes = {"scale": 0.5} if r.integers(2) else {}
        model.node("LinearAttention", inputs, ["y", "state"], q_num_heads=kv * times, kv_num_heads=kv, update_rule=rule, **attributes)
        check(model, "y", "state")
        want = ReferenceEvaluator(unchecked(model, "y", "state")).run(["y", "state"], model.feed)
        compare_partly_known(model, dict(zip(("y", "state"), want)), lambda name, rank: (0, 1) if rank == 3 else (0,))


def test_causal_convolution():
    for seed in range(16):
        r = np.random.default_rng(seed)
        b, c, length, k = (int(r.integers(1, n)) for n in (3, 6, 7, 5))
        draw = lambda *s: r.standard_normal(s).astype(np.float32)  # noqa: E731
        model = Model(27)
        make = model.constant if seed % 2 else model.fed
        inputs = [model.fed("x", draw(b, c, length)), make("w", draw(c, 1, k)), make("bias", draw(c)) if r.integers(2) else ""]
        if k > 1 and r.integers(2):
            inputs.append(model.fed("past", draw(b, c, k - 1)))
        model.node("CausalConvWithState", inputs, ["y", "state"], activation=str(r.choice(["none", "silu", "swish"])))
        check(model, "y", "state")
        want = ReferenceEvaluator(unchecked(model, "y", "state")).run(["y", "state"], model.feed)
        compare_partly_known(model, dict(zip(("y", "state"), want)), lambda name, rank: {"x": (0, 2), "past": (0,)}.get(name, ()))


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_transforms_from_one_side(length):
    x = np.random.default_rng(length).standard_normal((2, length, 3))
    half = np.fft.rfft(x, axis=1)
    for opset in (17, 20):
        model = Model(opset)
        inputs = [model.fed("x", np.stack((half.real, half.imag), -1).astype(np.float32)), model.constant("n", np.array(length))]
        attributes = {"inverse": 1, "onesided": 1}
        if opset == 17:
            attributes["axis"] = 1
        else:
            inputs.append(model.constant("axis", np.array(1)))
        model.node("DFT", inputs, ["y"], **attributes)
        compare(model, {"y": x[..., None].astype(np.float32)})


def test_windows_with_dilations():
    for seed in range(8):
        r = np.random.default_rng(seed)
        x = r.standard_normal((1, 2, 9, 8)).astype(np.float32)
        model = Model(18)
        model.node("LpPool", [model.fed("x", x)], ["y"], kernel_shape=[2, 3], dilations=[int(r.integers(1, 4)), 2], strides=[int(r.integers(1, 3)), 1], p=int(r.choice([1, 2, 3])))
        check(model, "y")


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_signed_shifts(dtype, direction):
    r = np.random.default_rng(7)
    info = np.iinfo(dtype)
    x = r.integers(info.min, info.max + 1, 200).astype(dtype)
    x[:4] = info.min, info.max, -1, 0
    by = r.integers(-3, info.bits + 3, 200).astype(dtype)
    by[:8] = [0, 1, info.bits - 1, info.bits] * 2
    inside = (by >= 0) & (by < info.bits)
    amount = np.where(inside, by, 0).astype(np.int64)
    left = np.where(inside, x.astype(np.int64) << amount, 0).astype(np.uint64).astype(dtype)
    right = np.where(inside, x.astype(np.int64) >> amount, np.where(x < 0, -1, 0)).astype(dtype)
    model = Model(28)
    model.node("BitShift", [model.fed("x", x), model.fed("by", by)], ["y"], direction=direction)
    compare(model, {"y": left if direction == "LEFT" else right})


def test_rests_of_floats():
    r = np.random.default_rng(3)
    a, b = r.uniform(-9, 9, 300).astype(np.float32), r.uniform(0.5, 4, 300).astype(np.float32) * r.choice([-1, 1], 300).astype(np.float32)
    for fmod in (0, 1):
        model = Model(28)
        model.node("Mod", [model.fed("a", a), model.fed("b", b)], ["y"], fmod=fmod)
        compare(model, {"y": np.fmod(a, b) if fmod else np.mod(a, b)})


def test_grids_of_volumes():
    for align in (0, 1):
        for shape in ((2, 3, 4, 5, 6), (1, 1, 2 if align else 1, 2, 3), (2, 3, 4, 5)):
            spatial = len(shape) - 2
            theta = np.random.default_rng(spatial).standard_normal((shape[0], spatial, spatial + 1)).astype(np.float32)
            model = Model(20)
            model.node("AffineGrid", [model.fed("t", theta), model.constant("n", np.array(shape))], ["y"], align_corners=align)
            check(model, "y")
