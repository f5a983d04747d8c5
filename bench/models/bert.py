# SPDX-License-Identifier: Apache-2.0
"""BERT-base and -large with embeddings and pooler, as Hugging Face models export: token ids, attention mask and token types
as 64-bit integers; or the body alone: hidden states in and out, every token counts. The batches and lengths of one size share
their weights."""
import numpy as np

from graph import Net, Tensor
from transformer import attend, gather_rows, gelu, layer_norm, linear, reshape, transpose

VOCABULARY, EPSILON = 30522, 1e-12


def _mask(net, mask, batch, length):
    """0 where the token counts, the lowest float where it does not: [batch, 1, 1, length]."""
    shape = (batch, 1, 1, length)
    m = net.node("Unsqueeze", [mask, net.constant([1], "int64")], (batch, 1, length))
    m = net.node("Unsqueeze", [m, net.constant([2], "int64")], shape)
    m = net.node("Cast", [m], shape, to=1)
    m = net.node("Sub", [net.constant(1.0), m], shape)
    return net.node("Mul", [m, net.constant(np.finfo(np.float32).min)], shape)


def _attention(net, x, mask, heads):
    batch, length, width = x.shape
    split = (batch, length, heads, width // heads)
    q = linear(net, x, width, 1.4)
    k = transpose(net, reshape(net, linear(net, x, width, 1.4), split), [0, 2, 3, 1])
    v = transpose(net, reshape(net, linear(net, x, width), split), [0, 2, 1, 3])
    q = transpose(net, reshape(net, q, split), [0, 2, 1, 3])

    def scaled_and_masked(scores):
        root = net.constant(float(np.sqrt(width // heads)))
        scaled = net.node("Div", [scores, root], scores.shape)
        return net.node("Add", [scaled, mask], scores.shape) if mask else scaled

    y = transpose(net, attend(net, q, k, v, scaled_and_masked), [0, 2, 1, 3])
    return linear(net, reshape(net, y, (batch, length, width)), width)


def _embeddings(net, batch, width, length):
    """The embedded tokens and the mask."""
    ids = net.input("input_ids", (batch, length), np.int64, f"int 0 {VOCABULARY}")
    mask = net.input("attention_mask", (batch, length), np.int64, f"prefix_ones {length * 7 // 8}")
    types = net.input("token_type_ids", (batch, length), np.int64, "int 0 2")
    mask = _mask(net, mask, batch, length)

    table = lambda rows: net.weight(net.normal(rows, width) * np.float32(0.05), "table")
    shape = (batch, length, width)
    words = gather_rows(net, table(VOCABULARY), ids, shape, 0.05)
    x = net.add(words, gather_rows(net, table(2), types, shape, 0.05))
    positions = net.weight(net.normal(512, width)[None, :length] * np.float32(0.05), "table")
    return layer_norm(net, net.add(x, Tensor(positions, (1, length, width), 0.05)), EPSILON), mask


def _layer(net, x, mask, heads):
    width = x.shape[-1]
    x = layer_norm(net, net.add(_attention(net, x, mask, heads), x), EPSILON)
    y = linear(net, gelu(net, linear(net, x, 4 * width)), width)
    return layer_norm(net, net.add(y, x), EPSILON)


def albert(name, layers, width, heads, length, vocabulary=30000, embedding=128):
    """ALBERT: narrow embeddings, and one layer's weights for all layers."""
    net = Net(name)
    ids = net.input("input_ids", (1, length), np.int64, f"int 0 {vocabulary}")
    table = net.weight(net.normal(vocabulary, embedding) * np.float32(0.05), "table")
    x = gather_rows(net, table, ids, (1, length, embedding), 0.05)
    positions = net.weight(net.normal(1, length, embedding) * np.float32(0.05), "table")
    x = layer_norm(net, net.add(x, Tensor(positions, x.shape, 0.05)), EPSILON)
    x = net.repeat(layers, lambda y: _layer(net, y, None, heads), linear(net, x, width))
    net.output(x, "last_hidden_state")
    return net


def bert(name, layers, width, heads, length, batch=1, body=False):
    net = Net(name, seed_name=f"bert{width}")
    if body:
        x, mask = net.input("hidden_states", (batch, length, width)), None
    else:
        x, mask = _embeddings(net, batch, width, length)
    for _ in range(layers):
        x = _layer(net, x, mask, heads)
    if body:
        net.output(x, "last_hidden_state")
        return net
    first = net.node("Gather", [x, net.constant(0, "int64")], (batch, width), axis=1)
    pooled = net.gemm(first, width)
    pooled = net.node("Tanh", [pooled], pooled.shape)
    net.output(x, "last_hidden_state")
    net.output(pooled, "pooler_output")
    return net


def bert_base_s128():
    return bert("bert_base_s128", 12, 768, 12, 128)


def bert_large_s128():
    return bert("bert_large_s128", 24, 1024, 16, 128)


def bert_large_s384():
    return bert("bert_large_s384", 24, 1024, 16, 384)
