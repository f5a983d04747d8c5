# SPDX-License-Identifier: Apache-2.0
"""MatMulNBits as a plugin, whose weights a network computes or is fed, beside NumPy. Models with it: few_bits_test.py."""

import numpy as np
import pytest

from standard_plugins import Lines, check, engine_of, make


def numbers(words, bits, k):
    """Integers of 32-bit words [n, blocks, words], the lowest bits first: [n, k]."""
    shifts = np.arange(0, 32, bits)
    return (words.astype(np.int64)[..., None] >> shifts & ((1 << bits) - 1)).reshape(len(words), -1)[:, :k]


def product(k, bits, block, zero_points, g_idx, bias, x, words, scales, *more):
    more = list(more)
    zeros = more.pop(0) if zero_points else np.full(scales.shape, 1 << (bits - 1))
    groups = np.clip(more.pop(0), 0, scales.shape[1] - 1) if g_idx else np.arange(k) // block
    w = scales.astype(np.float64)[:, groups] * (numbers(words, bits, k) - zeros.astype(np.float64)[:, groups])
    return [x.astype(np.float64) @ w.T + (more[0].astype(np.float64) if bias else 0)]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero_points, g_idx, bias", [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 0), (1, 0, 1)])
def test_products(bits, zero_points, g_idx, bias):
    random = np.random.default_rng(bits + zero_points)
    k, n, block = 70, 19, 32
    blocks = -(-k // block)
    x = random.normal(size=(2, 3, k)).astype(np.float32)
    arrays = [x, random.integers(-2**31, 2**31, (n, blocks, block * bits // 32)).astype(np.int32), random.uniform(0.01, 0.03, (n, blocks)).astype(np.float32)]
    if zero_points:
        arrays.append(random.integers(0, 1 << bits, (n, blocks)).astype(np.float32))
    if g_idx:
        arrays.append(random.integers(-1, blocks + 1, k).astype(np.int32))
    if bias:
        arrays.append(random.normal(size=n).astype(np.float32))
    plugin = make("MatMulNBits", K=k, bits=bits, block_size=block, zero_points=zero_points, g_idx=g_idx, bias=bias)
    check(plugin, arrays, lambda *a: product(k, bits, block, zero_points, g_idx, bias, *a), open_shapes=False, tolerance=5e-5, half_tolerance=1e-2)


@pytest.mark.parametrize("fields, shapes, sentence", [
    ({"bits": 3}, {}, "weights of 3 bits"), ({"block_size": 8}, {}, "a multiple of 16"), ({"K": 0}, {}, "there must be products"), ({"K": 65}, {}, "65 numbers"),
    ({"zero_points": 1}, {}, "input 3 is missing"), ({}, {1: (5, 2, 3)}, "must be [n, blocks"), ({}, {2: (5, 3)}, "must be [n, blocks]"), ({"bits": 8}, {}, "block * bits / 32"),
])
def test_refusals(fields, shapes, sentence):
    arrays = [np.zeros(shapes.get(i, shape), dtype) for i, (shape, dtype) in enumerate([((3, 64), np.float32), ((5, 2, 4), np.int32), ((5, 2), np.float32)])]
    lines = Lines()
    assert engine_of(make("MatMulNBits", **({"K": 64, "bits": 4, "block_size": 32} | fields)), arrays, logger=lines) is None
    assert any(sentence in text for _, text in lines.lines), lines.lines
