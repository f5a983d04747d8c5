# SPDX-License-Identifier: Apache-2.0
"""Blocks of transformers in the nodes that PyTorch's exporter writes below opset 17: LayerNorm taken apart, GELU by Erf
or by Tanh, linear layers as MatMul and Add."""
import math

import numpy as np

from graph import Tensor, ACTIVATION_STD


def linear(net, x, out, std=1.0, bias=True):
    k = x.shape[-1]
    values = net.normal(k, out) * np.float32(std / (x.std * math.sqrt(k)))
    shape = (*x.shape[:-1], out)
    y = net.node("MatMul", [x, net.weight(values)], shape, std)
    if not bias:
        return y
    return net.node("Add", [net.weight(net.normal(out) * np.float32(0.1 * std), "bias"), y], shape, std)


def layer_norm(net, x, eps):
    width, reduced = x.shape[-1], (*x.shape[:-1], 1)
    mean = net.node("ReduceMean", [x], reduced, axes=[-1])
    centred = net.node("Sub", [x, mean], x.shape)
    squares = net.node("Pow", [centred, net.constant(2.0)], x.shape)
    variance = net.node("ReduceMean", [squares], reduced, axes=[-1])
    root = net.node("Sqrt", [net.node("Add", [variance, net.constant(eps)], reduced)], reduced)
    y = net.node("Div", [centred, root], x.shape)
    gamma = net.weight(1 + np.float32(0.1) * net.normal(width), "gamma")
    beta = net.weight(np.float32(0.1) * net.normal(width), "beta")
    return net.node("Add", [net.node("Mul", [y, gamma], x.shape), beta], x.shape)


def gelu(net, x):
    y = net.node("Erf", [net.node("Div", [x, net.constant(math.sqrt(2))], x.shape)], x.shape)
    y = net.node("Mul", [x, net.node("Add", [y, net.constant(1.0)], x.shape)], x.shape)
    return net.node("Mul", [y, net.constant(0.5)], x.shape, x.std * ACTIVATION_STD["Gelu"])


def gelu_tanh(net, x):
    half = net.node("Mul", [x, net.constant(0.5)], x.shape)
    cube = net.node("Pow", [x, net.constant(3.0)], x.shape)
    y = net.node("Add", [x, net.node("Mul", [cube, net.constant(0.044715)], x.shape)], x.shape)
    y = net.node("Tanh", [net.node("Mul", [y, net.constant(math.sqrt(2 / math.pi))], x.shape)], x.shape)
    y = net.node("Add", [y, net.constant(1.0)], x.shape)
    return net.node("Mul", [half, y], x.shape, x.std * ACTIVATION_STD["Gelu"])


def reshape(net, x, shape):
    full = [abs(math.prod(x.shape) // math.prod(shape)) if d == -1 else d for d in shape]
    return net.node("Reshape", [x, net.constant(shape, "int64")], full, x.std)


def transpose(net, x, perm):
    return net.node("Transpose", [x], [x.shape[p] for p in perm], x.std, perm=perm)


def attend(net, q, k_transposed, v, scores_hook=None):
    """softmax(hook(q k')) v for heads-first tensors; the scores vary by about 2, so that attention is neither flat nor
    one-hot, and the result by about a third."""
    shape = (*q.shape[:-1], k_transposed.shape[-1])
    scores = net.node("MatMul", [q, k_transposed], shape, 2.0)
    if scores_hook:
        scores = scores_hook(scores)
    weights = net.node("Softmax", [scores], shape, axis=-1)
    return net.node("MatMul", [weights, v], q.shape, v.std / 3)


def gather_rows(net, table, indices, shape, std):
    return net.node("Gather", [table, indices], shape, std, axis=0)


def constant_tensor(net, array, std):
    return Tensor(net.weight(array.astype(np.float32), "table"), array.shape, std)
