# SPDX-License-Identifier: Apache-2.0
"""A small decoder with seeded weights, once as layers of a network and once in NumPy, which share the weights alone."""

import numpy as np
import tensorrt as trt

from standard_plugins import make

I32 = np.int32
ADD, SUB, MUL, MAX, LESS = (getattr(trt.ElementWiseOperation, n) for n in ("SUM", "SUB", "PROD", "MAX", "LESS"))


class Decoder:
    """Two layers, heads that share keys and values, places that are learned."""

    def __init__(self, seed, vocabulary=37, width=32, heads=4, groups=2, size=16, capacity=24, layers=2):
        random = np.random.default_rng(seed)
        self.vocabulary, self.width, self.heads, self.groups, self.size, self.capacity = vocabulary, width, heads, groups, size, capacity

        def weights(*shape):
            return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

        self.table, self.places = random.standard_normal((vocabulary, width)).astype(np.float32), random.standard_normal((capacity, width)).astype(np.float32)
        self.layers = [{"q": weights(width, heads * size), "k": weights(width, groups * size), "v": weights(width, groups * size), "o": weights(heads * size, width),
                        "up": weights(width, 2 * width), "down": weights(2 * width, width)} for _ in range(layers)]
        self.out = 4 * weights(width, vocabulary)

    def logits(self, tokens):
        """Those behind the last of a list of tokens, in double, with nothing kept from earlier ones."""
        n, share = len(tokens), self.heads // self.groups
        x = self.table[tokens].astype(np.float64) + self.places[:n]
        for layer in self.layers:
            y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
            q, k, v = ((y @ layer[w]).reshape(n, -1, self.size).transpose(1, 0, 2) for w in "qkv")
            scores = q @ np.repeat(k, share, 0).transpose(0, 2, 1) / np.sqrt(self.size)
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
            weight = np.exp(scores - scores.max(-1, keepdims=True))
            y = weight / weight.sum(-1, keepdims=True) @ np.repeat(v, share, 0)
            x = x + y.transpose(1, 0, 2).reshape(n, -1) @ layer["o"]
            y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
            x = x + np.tanh(y @ layer["up"]) @ layer["down"]
        return (x[-1] @ self.out).astype(np.float32)

    def cache_shape(self, rows):
        return rows, self.groups, self.capacity, self.size


class Net:
    """Layers by short names."""

    def __init__(self, network):
        self.network = network

    def const(self, array):
        array = np.ascontiguousarray(array)
        return self.network.add_constant(array.shape, array).get_output(0)

    def op(self, a, b, operation):
        return self.network.add_elementwise(a, b, operation).get_output(0)

    def product(self, a, b):
        plain = trt.MatrixOperation.NONE
        return self.network.add_matrix_multiply(a, plain, b, plain).get_output(0)

    def reshape(self, x, *dims, perm=None):
        """Then transposed."""
        layer = self.network.add_shuffle(x)
        layer.reshape_dims = dims
        if perm:
            layer.second_transpose = perm
        return layer.get_output(0)

    def rows(self, table, ids):
        return self.network.add_gather(table, ids, 0).get_output(0)

    def unary(self, x, operation):
        return self.network.add_unary(x, operation).get_output(0)

    def plugin(self, name, *inputs, **fields):
        layer = self.network.add_plugin_v2(list(inputs), make(name, **fields))
        return [layer.get_output(i) for i in range(layer.num_outputs)]

    def weight(self, array, rank):
        return self.const(array.reshape((1,) * (rank - array.ndim) + array.shape))

    def norm(self, x, rank):
        mean = self.network.add_reduce(self.op(x, x, MUL), trt.ReduceOperation.AVG, 1 << (rank - 1), True).get_output(0)
        root = self.unary(self.op(mean, self.weight(np.array([1e-5], np.float32), rank), ADD), trt.UnaryOperation.SQRT)
        return self.op(x, root, trt.ElementWiseOperation.DIV)

    def linear(self, x, array, rank=3):
        return self.product(x, self.weight(array, rank))

    def decode(self, decoder, x, caches, at, lengths, *places, update=None):
        """(hidden, caches): embedded tokens [B, s, width] through the layers. New keys go to `at` of the caches, or to the first places (None);
        `update(cache, rows)` writes in place of that; `places`: a table of the caches of beams."""
        after = []
        for layer, pair in zip(decoder.layers, zip(caches[::2], caches[1::2])):
            y = self.norm(x, 3)
            for cache, w in zip(pair, "kv"):
                rows = self.reshape(self.linear(y, layer[w]), 0, -1, decoder.groups, decoder.size, perm=(0, 2, 1, 3))
                after.append(update(cache, rows) if update else self.plugin("TensorScatter", cache, rows, *([at] if at else []))[0])
            fields = {"cache_indirection": 1} if places else {}
            y = self.plugin("CachedAttention", self.linear(y, layer["q"]), *after[-2:], lengths, *places, num_heads=decoder.heads, **fields)[0]
            x = self.op(x, self.linear(y, layer["o"]), ADD)
            y = self.network.add_activation(self.linear(self.norm(x, 3), layer["up"]), trt.ActivationType.TANH).get_output(0)
            x = self.op(x, self.linear(y, layer["down"]), ADD)
        return x, after

    def embedded(self, decoder, tokens, at):
        """[B] and [B] give [B, 1, width]."""
        x = self.op(self.rows(self.const(decoder.table), tokens), self.rows(self.const(decoder.places), at), ADD)
        return self.reshape(x, -1, 1, decoder.width)

    def last(self, decoder, sequences, at):
        """The token at `at` [B] of sequences [B, S]."""
        column = self.network.add_one_hot(at, self.const(np.array([0, 1], I32)), self.reshape(self.const(np.array([decoder.capacity], I32))), -1).get_output(0)
        return self.network.add_reduce(self.op(sequences, column, MUL), trt.ReduceOperation.SUM, 2, False).get_output(0)

    def prompt(self, decoder, sequences, caches, count):
        """Caches behind the first `count` tokens of each row: those behind a row's prompt are written again when their turn comes."""
        ids = self.network.add_slice(sequences, (0, 0), (0, 0), (1, 1))
        rows = self.network.add_slice(self.network.add_shape(sequences).get_output(0), (0,), (1,), (1,)).get_output(0)
        size = self.network.add_concatenation([rows, self.const(np.array([count], I32))]).get_output(0)
        ids.set_input(2, size)
        x = self.op(self.rows(self.const(decoder.table), ids.get_output(0)), self.const(decoder.places[None, :count]), ADD)
        lengths = self.network.add_fill((0,), trt.FillOperation.LINSPACE)
        lengths.set_input(0, rows)
        lengths.set_input(1, self.reshape(self.const(np.array([count], I32))))
        lengths.set_input(2, self.const(np.array([0], I32)))
        return self.decode(decoder, x, caches, None, lengths.get_output(0))[1]

    def any(self, x):
        """Of [B] numbers that are 0 or 1, a bool."""
        layer = self.network.add_identity(self.network.add_reduce(x, trt.ReduceOperation.MAX, 1, False).get_output(0))
        layer.set_output_type(0, trt.bool)
        return layer.get_output(0)

    def mark(self, name, tensor):
        tensor.name = name
        self.network.mark_output(tensor)
