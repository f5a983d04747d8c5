# SPDX-License-Identifier: Apache-2.0
"""Concatenations of functions of one value, as encodings of positions, times and angles have them, beside NumPy; sums over the edges of graphs."""

import numpy as np
import pytest
import tensorrt as trt

from small import LOUD, run
from standard_plugins_models import Model

f = np.float32


def engine(model, ranges, opset=16):
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, LOUD)
    assert parser.parse(model.bytes(opset)), parser.get_error(0).desc()
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for name, shapes in ranges.items():
        profile.set_shape(name, *shapes)
    config.add_optimization_profile(profile)
    built = trt.Runtime(LOUD).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    layers = built.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.ONELINE).count("\n")
    return built, layers


def check(got, wanted):
    both = np.isnan(got) & np.isnan(wanted) | (got == wanted)
    assert got.shape == wanted.shape
    assert np.where(both, 0, np.abs(got - wanted)).max(initial=0) <= 2e-6


@pytest.mark.parametrize("axis, keep", [(1, True), (1, False), (0, True)])
def test_positions(axis, keep):
    """[x, sin x, cos x, sin 2x, cos 2x, ..]: NaN and infinities stay in their places."""
    model = Model()
    x = model.input("x", ["n", 3])
    factors = [2.0**k for k in range(6)]
    parts = [x] * keep
    for factor in factors:
        scaled = model.node("Mul", x, f(factor))
        parts += [model.node("Sin", scaled), model.node("Cos", scaled)]
    model.output(model.node("Concat", *parts, axis=axis, outputs=["y"]))
    built, layers = engine(model, {"x": [(1, 3), (8, 3), (40, 3)]})
    assert layers <= 12, "each function by itself"
    rng = np.random.default_rng(axis)
    for n in (1, 7, 40):
        v = rng.uniform(-3, 3, (n, 3)).astype(f)
        v[0] = [np.inf, 0, np.nan] if n > 1 else 0
        with np.errstate(invalid="ignore"):
            pieces = [v] * keep + [g(v * f(a)) for a in factors for g in (np.sin, np.cos)]
        check(run(built, x=v)["y"], np.concatenate(pieces, axis).astype(f))


def test_times():
    """Frequencies that are a vector: functions of one product."""
    model = Model()
    t = model.input("t", ["n", 1])
    angle = model.node("Mul", t, np.exp(-np.arange(16) / 4).astype(f))
    parts = [model.node(op, angle) for op in ("Sin", "Cos", "Neg", "Abs")]
    model.output(model.node("Concat", *parts, axis=-1, outputs=["y"]))
    built, _ = engine(model, {"t": [(1, 1), (4, 1), (9, 1)]})
    v = np.linspace(0, 20, 9, dtype=f)[:, None]
    a = v * np.exp(-np.arange(16) / 4).astype(f)
    check(run(built, t=v)["y"], np.concatenate([np.sin(a), np.cos(a), -a, np.abs(a)], -1).astype(f))


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
def test_edges(reduction):
    """Messages gathered by edges and reduced into nodes, with indices repeated over the features."""
    model = Model()
    x, sources, targets = model.input("x", ["n", 20]), model.input("s", ["e"], "i"), model.input("t", ["e", 1], "i")
    messages = model.node("Gather", x, sources, axis=0)
    repeated = model.node("Expand", targets, model.node("Shape", messages))
    zero = model.node("Mul", x, f(0))
    model.output(model.node("ScatterElements", zero, repeated, messages, axis=0, reduction=reduction, outputs=["y"]))
    built, _ = engine(model, {"x": [(1, 20), (50, 20), (50, 20)], "s": [(0,), (300,), (300,)], "t": [(0, 1), (300, 1), (300, 1)]}, 18)
    rng = np.random.default_rng(7)
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}[reduction]
    for n, e in ((50, 300), (3, 200), (50, 0), (1, 1)):
        v = rng.uniform(0.5, 1.5, (n, 20)).astype(f)
        s, t = rng.integers(0, n, e).astype(np.int32), rng.integers(-n, n, e).astype(np.int32)
        y = np.zeros((n, 20), f)
        ufunc.at(y, t, v[s])
        got = run(built, x=v, s=s, t=t[:, None])["y"]
        assert np.abs(got - y).max() <= 1e-4 * max(1, np.abs(y).max())
