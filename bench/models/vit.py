# SPDX-License-Identifier: Apache-2.0
"""ViT-B/16 as timm's model exports: one product for q, k and v, taken apart by Transpose and Gather; or the body alone: hidden
states in and out, the last LayerNorm included. The batches share their weights."""
import numpy as np

from graph import Net, Tensor
from transformer import attend, gelu, layer_norm, linear, reshape, transpose

PATCH, EPSILON = 16, 1e-6


def _attention(net, x, heads):
    batch, tokens, width = x.shape
    head = width // heads
    qkv = reshape(net, linear(net, x, 3 * width, 1.2), (batch, tokens, 3, heads, head))
    qkv = transpose(net, qkv, [2, 0, 3, 1, 4])
    q, k, v = (net.node("Gather", [qkv, net.constant(i, "int64")], (batch, heads, tokens, head), qkv.std, axis=0)
               for i in range(3))
    q = net.node("Mul", [q, net.constant(float(head) ** -0.5)], q.shape)
    y = attend(net, q, transpose(net, k, [0, 1, 3, 2]), v)
    y = reshape(net, transpose(net, y, [0, 2, 1, 3]), (batch, tokens, width))
    return linear(net, y, width, 0.5)


def _tokens(net, batch, size, width):
    """Patches, behind the class token, with their positions."""
    x = net.conv(net.input("input", (batch, 3, size, size)), width, PATCH, PATCH, pad=0)
    tokens = x.shape[2] * x.shape[3]
    x = transpose(net, reshape(net, x, (batch, width, tokens)), [0, 2, 1])
    first = Tensor(net.weight(net.normal(1, 1, width), "class_token"), (1, 1, width), 1.0)
    if batch > 1:
        first = net.node("Expand", [first, net.constant([batch, 1, width], "int64")], (batch, 1, width))
    x = net.concat([first, x], axis=1)
    positions = net.weight(net.normal(1, tokens + 1, width) * np.float32(0.5), "positions")
    return net.add(x, Tensor(positions, (1, tokens + 1, width), 0.5))


def vit(name, layers, width, heads, size=224, batch=1, body=False):
    net = Net(name, seed_name="vit_b16")
    if body:
        x = net.input("hidden_states", (batch, (size // PATCH) ** 2 + 1, width))
    else:
        x = _tokens(net, batch, size, width)
    for _ in range(layers):
        x = net.add(x, _attention(net, layer_norm(net, x, EPSILON), heads))
        y = gelu(net, linear(net, layer_norm(net, x, EPSILON), 4 * width))
        x = net.add(x, linear(net, y, width, 0.5))
    x = layer_norm(net, x, EPSILON)
    if body:
        net.output(x, "last_hidden_state")
        return net
    x = net.node("Gather", [x, net.constant(0, "int64")], (batch, width), axis=1)
    net.output(net.gemm(x, 1000), "output")
    return net


def vit_b16():
    return vit("vit_b16", 12, 768, 12)
