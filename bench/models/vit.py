# SPDX-License-Identifier: Apache-2.0
"""ViT-B/16, 1x3x224x224, as timm's model exports: one product for q, k and v, taken apart by Transpose and Gather."""
import numpy as np

from graph import Net, Tensor
from transformer import attend, gelu, layer_norm, linear, reshape, transpose

WIDTH, HEADS, LAYERS, EPSILON = 768, 12, 12, 1e-6


def _attention(net, x):
    _, tokens, width = x.shape
    head = width // HEADS
    qkv = reshape(net, linear(net, x, 3 * width, 1.2), (1, tokens, 3, HEADS, head))
    qkv = transpose(net, qkv, [2, 0, 3, 1, 4])
    q, k, v = (net.node("Gather", [qkv, net.constant(i, "int64")], (1, HEADS, tokens, head), qkv.std, axis=0)
               for i in range(3))
    q = net.node("Mul", [q, net.constant(float(head) ** -0.5)], q.shape)
    y = attend(net, q, transpose(net, k, [0, 1, 3, 2]), v)
    y = reshape(net, transpose(net, y, [0, 2, 1, 3]), (1, tokens, width))
    return linear(net, y, width, 0.5)


def vit_b16():
    net = Net("vit_b16")
    x = net.conv(net.input("input", (1, 3, 224, 224)), WIDTH, 16, 16, pad=0)
    tokens = x.shape[2] * x.shape[3]
    x = transpose(net, reshape(net, x, (1, WIDTH, tokens)), [0, 2, 1])
    first = Tensor(net.weight(net.normal(1, 1, WIDTH), "class_token"), (1, 1, WIDTH), 1.0)
    x = net.concat([first, x], axis=1)
    x = net.add(x, Tensor(net.weight(net.normal(1, tokens + 1, WIDTH) * np.float32(0.5), "positions"), x.shape, 0.5))
    for _ in range(LAYERS):
        x = net.add(x, _attention(net, layer_norm(net, x, EPSILON)))
        y = gelu(net, linear(net, layer_norm(net, x, EPSILON), 4 * WIDTH))
        x = net.add(x, linear(net, y, WIDTH, 0.5))
    x = layer_norm(net, x, EPSILON)
    x = net.node("Gather", [x, net.constant(0, "int64")], (1, WIDTH), axis=1)
    net.output(net.gemm(x, 1000), "output")
    return net
