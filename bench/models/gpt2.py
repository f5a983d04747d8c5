# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (124 million parameters), prefill of 128 tokens to logits, as Hugging Face's model exports: linear layers as
Gemm between two Reshapes, a causal mask by Where, GELU by Tanh."""
import numpy as np

from graph import Net, Tensor
from transformer import attend, gather_rows, gelu_tanh, layer_norm, reshape, transpose

WIDTH, HEADS, LAYERS, VOCABULARY, LENGTH, EPSILON = 768, 12, 12, 50257, 128, 1e-5


def _conv1d(net, x, out, std=1.0):
    y = net.gemm(reshape(net, x, (-1, x.shape[-1])), out, std, transposed=False)
    return reshape(net, y, (1, LENGTH, out))


def _attention(net, x):
    head, split = WIDTH // HEADS, (1, LENGTH, HEADS, WIDTH // HEADS)
    third = (1, LENGTH, WIDTH)
    q, k, v = net.node("Split", [_conv1d(net, x, 3 * WIDTH, 1.4), net.constant([WIDTH] * 3, "int64")], [third] * 3, 1.4,
                       outputs=3, axis=2)
    q = transpose(net, reshape(net, q, split), [0, 2, 1, 3])
    k = transpose(net, reshape(net, k, split), [0, 2, 3, 1])
    v = transpose(net, reshape(net, v, split), [0, 2, 1, 3])

    def scaled_and_causal(scores):
        y = net.node("Div", [scores, net.constant(float(np.sqrt(head)))], scores.shape)
        causal = net.weight(np.tril(np.ones((1, 1, LENGTH, LENGTH), bool)), "causal")
        return net.node("Where", [causal, y, net.constant(np.finfo(np.float32).min)], scores.shape)

    y = transpose(net, attend(net, q, k, v, scaled_and_causal), [0, 2, 1, 3])
    return _conv1d(net, reshape(net, y, third), WIDTH, 0.3)


def gpt2_s128():
    net = Net("gpt2_s128")
    shape = (1, LENGTH, WIDTH)
    ids = net.input("input_ids", (1, LENGTH), np.int64, f"int 0 {VOCABULARY}")
    table = net.normal(VOCABULARY, WIDTH)
    words = gather_rows(net, net.weight(table, "table"), ids, shape, 1.0)
    positions = Tensor(net.weight(net.normal(1, LENGTH, WIDTH) * np.float32(0.3), "table"), shape, 0.3)
    x = net.add(words, positions)
    for _ in range(LAYERS):
        x = net.add(_attention(net, layer_norm(net, x, EPSILON)), x)
        y = gelu_tanh(net, _conv1d(net, layer_norm(net, x, EPSILON), 4 * WIDTH))
        x = net.add(x, _conv1d(net, y, WIDTH, 0.3))
    x = layer_norm(net, x, EPSILON)
    # The output layer shares the embedding's values, transposed into a second weight by the exporter.
    logits = net.node("MatMul", [x, net.weight(table.T * np.float32(WIDTH**-0.5))], (1, LENGTH, VOCABULARY))
    net.output(logits, "logits")
    return net
