# SPDX-License-Identifier: Apache-2.0
"""Standard plugins that normalize, and functions of one number, beside NumPy."""

import math

import numpy as np
import pytest

from standard_plugins import check, make, refusal

random = np.random.default_rng(7)


def data(*shape):
    return random.standard_normal(shape).astype(np.float32)


def normalized(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


def along(v, rank, axis=1):
    return np.asarray(v, np.float64).reshape([-1 if i == axis else 1 for i in range(rank)])


erf = np.vectorize(math.erf, otypes=[np.float64])


@pytest.mark.parametrize("version", "12")
@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 4, 5, 6), (3, 8, 4, 4), (2, 3, 4, 5, 6), (1, 1, 2, 2)])
@pytest.mark.parametrize("relu", [0, 1])
def test_instance_norm(version, shape, relu):
    scales, bias = data(shape[1]), data(shape[1])

    def wanted(x):
        y = normalized(x, tuple(range(2, x.ndim)), 1e-3) * along(scales, x.ndim) + along(bias, x.ndim)
        return [np.where(y < 0, 0.25 * y, y) if relu else y]

    plugin = make("InstanceNormalization_TRT", version, epsilon=1e-3, scales=list(scales), bias=list(bias), relu=relu, alpha=0.25)
    check(plugin, [data(*shape)], wanted)


@pytest.mark.parametrize("shape, groups", [((2, 6, 4, 5), 3), ((1, 8, 3), 1), ((2, 4, 3, 2, 2), 4)])
def test_group_normalization(shape, groups):
    def wanted(x, gamma, beta):
        y = normalized(x.reshape(x.shape[0], groups, -1), (2,), 1e-4).reshape(x.shape)
        return [y * along(gamma.ravel(), x.ndim) + along(beta.ravel(), x.ndim)]

    check(make("GroupNormalizationPlugin", eps=1e-4, num_groups=groups), [data(*shape), data(shape[1]), data(shape[1])], wanted, half=False, open_shapes=False)


@pytest.mark.parametrize("swish", [0, 1])
def test_group_norm(swish):
    def wanted(x, gamma, beta):
        y = normalized(x.reshape(x.shape[0], 32, -1), (2,), 1e-5).reshape(x.shape) * along(gamma, 4) + along(beta, 4)
        return [y / (1 + np.exp(-y)) if swish else y]

    check(make("GroupNorm", epsilon=1e-5, bSwish=swish), [data(2, 64, 4, 4), data(64), data(64)], wanted, half=False, open_shapes=False)


@pytest.mark.parametrize("shape, axis", [((2, 5, 16), -1), ((3, 4, 6), 1), ((2, 4, 3, 5), 2)])
def test_layer_norm(shape, axis):
    def wanted(x, gamma, beta):
        return [normalized(x, tuple(range(axis % x.ndim, x.ndim)), 1e-5) * gamma + beta]

    check(make("LayerNorm", epsilon=1e-5, axis=axis), [data(*shape), data(*shape[axis:]), data(*shape[axis:])], wanted, open_shapes=False)


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("shared", [0, 1])
def test_normalize(across, shared):
    weights = data(1 if shared else 5)

    def wanted(x):
        axes = (1, 2, 3) if across else (1,)
        return [x / np.sqrt((x * x).sum(axes, keepdims=True) + 1e-6) * along(weights, 4)]

    plugin = make("Normalize_TRT", weights=list(weights), acrossSpatial=across, channelShared=shared, nbWeights=len(weights), eps=1e-6)
    check(plugin, [data(2, 5, 4, 6)], wanted, implicit=True)


def test_functions():
    x = data(2, 3, 8)
    check(make("Clip_TRT", clipMin=-0.5, clipMax=0.75), [x], lambda x: [np.clip(x, -0.5, 0.75)], implicit=True)
    check(make("LReLU_TRT", negSlope=0.1), [x], lambda x: [np.where(x > 0, x, 0.1 * x)], implicit=True)
    check(make("SplitGeLU"), [x], lambda x: [x[..., :4] * x[..., 4:] * (1 + erf(x[..., 4:] / math.sqrt(2))) / 2])
    bias = data(8)

    def gelu(x):
        x = x + bias
        return [x * (0.5 + 0.5 * np.tanh(x * (0.0356774 * x * x + 0.797885)))]

    check(make("CustomGeluPluginDynamic", type_id=0, bias=bias), [x], gelu)


def test_refusals():
    assert "PluginFieldCollection missing required fields: {clipMax, clipMin}" in refusal("Clip_TRT")
    assert "PluginFieldCollection missing required fields: {clipMin}" in refusal("Clip_TRT", clipMax=1.0)
    assert "field 'clipMin' is of kINT32; it must be of kFLOAT32" in refusal("Clip_TRT", clipMin=1, clipMax=1.0)
    assert "num_groups is 0" in refusal("GroupNormalizationPlugin", num_groups=0)
    assert make("LReLU_TRT", unknown=3) is not None
