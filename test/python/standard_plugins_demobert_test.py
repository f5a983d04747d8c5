# SPDX-License-Identifier: Apache-2.0
"""Networks as demoBERT's programs put them together (demobert.py) beside NumPy, and beside torch where it is there: fixed lengths with masks,
rows of sequences of several lengths, INT8 with ranges, channels in front of tokens, Megatron's sums."""

import json

import numpy as np
import pytest
import tensorrt as trt

import demobert
from demobert import Config
from small import LOUD, QUIET, run

assert trt.init_libnvinfer_plugins(QUIET, "")
# Largest error of logits, which vary by about 1.
TOLERANCE = {"fp32": 2e-5, "fp16": 1e-2}


def engine(make, precision="fp32", profile=None, logger=LOUD):
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    make(network)
    config = demobert.settings(builder, precision)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if profile:
        profile(builder, config)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return trt.Runtime(logger).deserialize_cuda_engine(plan)


def tokens(config, batch, length, counts=None, seed=2):
    rng = np.random.default_rng(seed)
    mask = np.ones((batch, length), np.int32) if counts is None else (np.arange(length) < np.asarray(counts)[:, None]).astype(np.int32)
    return {"input_ids": rng.integers(0, config.vocabulary, (batch, length)).astype(np.int32),
            "segment_ids": rng.integers(0, 2, (batch, length)).astype(np.int32), "input_mask": mask}


def wanted(config, w, given, ranges=None):
    return np.stack([demobert.reference(config, w, ids, kinds, mask > 0, ranges) for ids, kinds, mask in zip(*given.values())])


def of_rows(config, w, given, ranges=None, megatron=False):
    begins = given["cu_seqlens"]
    parts = [demobert.reference(config, w, given["input_ids"][a:e], given["segment_ids"][a:e], None, ranges, megatron) for a, e in zip(begins, begins[1:])]
    return np.concatenate(parts)


def near(got, right, tolerance):
    assert got.shape == right.shape
    error = np.abs(got.astype(np.float64) - right).max()
    assert error <= tolerance, f"error {error}"


CONFIGS = {"two_heads": Config(), "four_heads": Config(layers=1, hidden=128, heads=4), "odd": Config(layers=2, hidden=72, heads=3)}


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", CONFIGS)
def test_fixed_lengths(name, precision, custom):
    config = CONFIGS[name]
    w = demobert.weights(config)
    batch, length = 3, 21
    given = tokens(config, batch, length, [21, 1, 13])
    if precision == "fp16":
        given["input_mask"][0, 4] = 0  # a hole, which FP16 honours
    e = engine(lambda n: demobert.fixed(n, config, w, batch, length, precision=precision, custom=custom), precision)
    near(run(e, **given)["logits"][..., 0, 0], wanted(config, w, given), TOLERANCE[precision])


def test_open_batch_and_length():
    config = Config()
    w = demobert.weights(config)

    def profile(builder, settings):
        p = builder.create_optimization_profile()
        for name in ("input_ids", "segment_ids", "input_mask"):
            p.set_shape(name, (1, 1), (2, 16), (4, 40))
        settings.add_optimization_profile(p)

    e = engine(lambda n: demobert.fixed(n, config, w, -1, -1), profile=profile)
    for batch, length, counts in ((1, 1, [1]), (4, 40, [40, 39, 17, 1]), (3, 18, [2, 18, 9])):
        given = tokens(config, batch, length, counts)
        near(run(e, **given)["logits"][..., 0, 0], wanted(config, w, given), TOLERANCE["fp32"])


def test_more_tokens_than_positions():
    config = Config(layers=1, positions=16)
    with pytest.raises(ValueError):  # the embeddings have no dimensions
        engine(lambda n: demobert.fixed(n, config, demobert.weights(config), 2, 17), logger=QUIET)


def test_layers_say_the_same():
    config = Config()
    w, given = demobert.weights(config), tokens(config, 3, 21, [21, 1, 13])
    for precision in TOLERANCE:
        e = engine(lambda n: demobert.through_layers(n, config, w, 3, 21, precision), precision)
        near(run(e, **given)["logits"], wanted(config, w, given), TOLERANCE[precision])


LENGTHS = [[7, 1, 30, 16], [12], [64, 64]]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_variable_lengths(precision):
    config = CONFIGS["odd"]
    w = demobert.weights(config)
    e = engine(lambda n: demobert.variable(n, config, w, precision=precision), precision, lambda b, s: demobert.profile_of_rows(b, s, 128, 4, 64))
    for lengths in LENGTHS:
        given = demobert.rows_of(lengths, config.vocabulary)
        near(run(e, **given)["logits"][..., 0, 0], of_rows(config, w, given), TOLERANCE[precision])


def integers(engine):
    """How many layers of an engine of known shapes read INT8 and are products."""
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    return sum("Int8" in str(layer["Inputs"]) and layer["LayerType"].startswith("Cask") for layer in json.loads(text)["Layers"])


def alike(got, right, least):
    """Cosine of what INT8 gives and what it should."""
    got = got.astype(np.float64)
    cosine = (got * right).sum() / np.sqrt((got * got).sum() * (right * right).sum())
    assert cosine >= least, f"cosine {cosine}"
    near(got, right, 0.5)


@pytest.mark.parametrize("name", CONFIGS)
def test_fixed_lengths_in_int8(name):
    config, ranges = CONFIGS[name], {}
    w, given = demobert.weights(config), tokens(config, 3, 21, [21, 1, 13])
    right = wanted(config, w, given, ranges)
    e = engine(lambda n: demobert.fixed(n, config, w, 3, 21, precision="int8", ranges=ranges), "int8")
    assert integers(e) == 4 * config.layers
    alike(run(e, **given)["logits"][..., 0, 0], right, 0.998)


def test_variable_lengths_in_int8():
    config, ranges = CONFIGS["four_heads"], {}
    w = demobert.weights(config)
    given = [demobert.rows_of(lengths, config.vocabulary) for lengths in LENGTHS]
    right = [of_rows(config, w, g, ranges) for g in given]
    e = engine(lambda n: demobert.variable(n, config, w, precision="int8", ranges=ranges), "int8", lambda b, s: demobert.profile_of_rows(b, s, 128, 4, 64))
    for g, r in zip(given, right):
        alike(run(e, **g)["logits"][..., 0, 0], r, 0.998)


@pytest.mark.parametrize("megatron", [False, True])
def test_interleaved(megatron):
    config, ranges = CONFIGS["four_heads" if not megatron else "two_heads"], {}
    w = demobert.weights(config)
    given = [demobert.rows_of(lengths, config.vocabulary) for lengths in LENGTHS]
    right = [of_rows(config, w, g, ranges, megatron) for g in given]
    ranges["embedding.turned"], ranges["embedding.sum.turned"] = ranges["embedding"], ranges["embedding.sum"]
    e = engine(lambda n: demobert.interleaved(n, config, w, megatron, ranges=ranges), "int8", lambda b, s: demobert.profile_of_rows(b, s, 128, 4, 64))
    for g, r in zip(given, right):
        alike(run(e, **g)["logits"][:, :, 0, 0].T, r, 0.998)


def test_beside_torch():
    torch = pytest.importorskip("torch")
    config = CONFIGS["odd"]
    w, given = demobert.weights(config), tokens(config, 3, 21, [21, 1, 13])
    t = {k: torch.from_numpy(v) for k, v in {**w, **given}.items()}
    dense = torch.nn.functional.linear

    def norm(name, x):
        return torch.nn.functional.layer_norm(x, (config.hidden,), t[name + ".gamma"], t[name + ".beta"], 0.0)

    x = norm("embedding", t["words"][t["input_ids"].long()] + t["kinds"][t["segment_ids"].long()] + t["positions"][:21])
    for i in range(config.layers):
        q, k, v = dense(x, t[f"{i}.qkv.w"], t[f"{i}.qkv.b"]).reshape(3, 21, config.heads, 3, config.size).permute(3, 0, 2, 1, 4)
        context = torch.nn.functional.scaled_dot_product_attention(q, k, v, (t["input_mask"] > 0)[:, None, None])
        x = norm(f"{i}.norm1", dense(context.transpose(1, 2).reshape(x.shape), t[f"{i}.out.w"], t[f"{i}.out.b"]) + x)
        up = torch.nn.functional.gelu(dense(x, t[f"{i}.up.w"], t[f"{i}.up.b"]), approximate="tanh")
        x = norm(f"{i}.norm2", dense(up, t[f"{i}.down.w"], t[f"{i}.down.b"]) + x)
    right = dense(x, t["head.w"], t["head.b"]).double().numpy()
    near(wanted(config, w, given), right, 1e-4)
    e = engine(lambda n: demobert.fixed(n, config, w, 3, 21))
    near(run(e, **given)["logits"][..., 0, 0], right, 1e-4)
