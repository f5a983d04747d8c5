# SPDX-License-Identifier: Apache-2.0
"""Random UFF graphs against NumPy: nodes that count axes in the graph's order beside nodes with orders of both kinds, in any sequence.

uff_random_test.py SEED: one of them, with its nodes."""

import sys

import numpy as np
import pytest
import tensorrt as trt

from uff_files import Model, softmax
from uff_ops_test import sliced

NODES, MOST = 14, 3000  # elements of a tensor


class Walk:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.m = Model(batch=int(self.random.integers(1, 3)), last=bool(seed % 2), seed=seed)
        order = trt.UffInputOrder.NHWC if self.random.random() < 0.5 else trt.UffInputOrder.NCHW
        self.size = lambda low=2, high=6: int(self.random.integers(low, high))
        # The first node behind the input says in which order the graph has it.
        x = self.m.input("x", (self.size(3), self.size(3), self.size(3)), order)
        self.values = [self.m.pool(x, "max", (1, 1), (1, 1))]
        self.history = []

    def pick(self, rank=None):
        found = [v for v in self.values if rank is None or v.value.ndim == rank]
        return found[self.random.integers(len(found))] if found else None

    def axis(self, v, least=1):
        a = int(self.random.integers(least, v.value.ndim))
        return a - v.value.ndim if self.random.random() < 0.3 else a

    def step(self):
        kind = [self.conv, self.pool, self.norm, self.relu, self.scaled, self.sum, self.transpose, self.transpose, self.reshape, self.squeeze, self.expand, self.concat,
                self.slice, self.reduce, self.pad, self.softmax, self.gather, self.connected, self.stack][self.random.integers(19)]  # fmt: skip
        y = kind()
        if y is None or y.value.size > MOST:
            return
        limit = np.abs(y.value).max(initial=0)
        if limit > 8:
            y = self.m.binary("mul", y, self.m.const(np.float32(2 / limit)))
        self.values.append(y)
        self.history.append(f"{kind.__name__}: {y.name} {y.shape}")

    def image(self):
        """A random image, whose channels are last or first for the next node."""
        self.m.last = bool(self.random.random() < 0.5)
        return self.pick(4)

    def conv(self):
        if (x := self.image()) is not None:
            w = self.m.weights(self.size(1, 4), self.size(1, 4), x.shape[-1 if self.m.last else 1], self.size(1, 6))
            return self.m.conv(x, w, (self.size(1, 3), self.size(1, 3)))

    def pool(self):
        if (x := self.image()) is not None:
            return self.m.pool(x, ["max", "avg"][self.size(0, 2)], (self.size(1, 4), self.size(1, 4)), (self.size(1, 3), self.size(1, 3)), same=True)

    def norm(self):
        if (x := self.image()) is not None:
            c = x.shape[-1 if self.m.last else 1]
            return self.m.batchnorm(x, *[self.m.weights(c) for _ in range(3)], self.m.const(self.random.uniform(0.5, 2, c)))

    def relu(self):
        x = self.pick()
        return self.m.activation("tanh", x, np.tanh)

    def scaled(self):
        x = self.pick()
        shape = [int(d) if self.random.random() < 0.5 else 1 for d in x.shape[1:]]
        c = self.m.const(self.random.standard_normal(([1] if self.random.random() < 0.5 else []) + shape))
        return self.m.binary(["add", "mul", "sub", "max"][self.size(0, 4)], *((x, c) if self.random.random() < 0.5 else (c, x)))

    def sum(self):
        x = self.pick()
        y = [v for v in self.values if v.value.ndim == x.value.ndim and all(a == b or 1 in (a, b) for a, b in zip(v.shape, x.shape))]
        return self.m.binary(["add", "sub", "min"][self.size(0, 3)], x, y[self.random.integers(len(y))])

    def transpose(self):
        x = self.pick()
        return self.m.transpose(x, [0, *(int(a) + 1 for a in self.random.permutation(x.value.ndim - 1))])

    def reshape(self):
        x = self.pick()
        dims = list(x.shape[1:])
        if self.random.random() < 0.3:
            return self.m.flatten(x)
        if len(dims) > 1 and self.random.random() < 0.5:
            at = self.size(0, len(dims) - 1)
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
        elif len(dims) < 5:
            at = self.size(0, len(dims))
            k = [d for d in range(1, dims[at] + 1) if dims[at] % d == 0][0 if self.random.random() < 0.3 else -1 if self.random.random() < 0.5 else len(dims) // 3 - 1]
            dims[at : at + 1] = [k, dims[at] // k]
        y = x.value.reshape(len(x.value), *dims)
        if self.random.random() < 0.3:
            dims[self.size(0, len(dims))] = -1
            return self.m.node("Reshape", [x, self.m.const(np.array([self.m.batch, *dims], np.int32))], y)
        return self.m.reshape(x, [-1, *dims])

    def squeeze(self):
        x = self.pick()
        axes = [i for i in range(1, x.value.ndim) if x.shape[i] == 1 and self.random.random() < 0.7]
        if axes and len(axes) < x.value.ndim - 1:
            return self.m.node("Squeeze", [x], x.value.squeeze(tuple(axes)), axes=axes)

    def expand(self):
        x = self.pick()
        if x.value.ndim < 5:
            axis = int(self.random.integers(1, x.value.ndim + 1))
            return self.m.node("ExpandDims", [x], np.expand_dims(x.value, axis), axis=axis)

    def concat(self):
        x = self.pick()
        axis = self.axis(x)
        rest = lambda v: [d for i, d in enumerate(v.shape) if i != axis % x.value.ndim]
        fit = [v for v in self.values if v.value.ndim == x.value.ndim and rest(v) == rest(x)]
        return self.m.concat([x, *(fit[self.random.integers(len(fit))] for _ in range(self.size(1, 3)))], axis)

    def stack(self):
        x = self.pick()
        fit = [v for v in self.values if v.shape == x.shape]
        if x.value.ndim < 5:
            y = fit[self.random.integers(len(fit))]
            axis = int(self.random.integers(1, x.value.ndim + 1))
            return self.m.node("Stack", [x, y], np.stack([x.value, y.value], axis), axis=axis)

    def slice(self):
        x = self.pick()
        count = self.size(1, x.value.ndim + 1)
        begin, end, strides, shrink = [0], [0], [1], 0
        for i in range(1, count):
            d, stride = x.shape[i], [1, 1, 2, -1][self.size(0, 4)]
            first, last = sorted(int(v) for v in self.random.choice(d + 1, 2, replace=False))
            if self.random.random() < 0.2 and x.value.ndim - bin(shrink).count("1") > 2:
                shrink |= 1 << i
                first, last, stride = int(self.random.integers(d)), 0, 1
            elif stride < 0:
                first, last = last - 1, first - 1 if first else -d - 1
            begin.append(first)
            end.append(last)
            strides.append(stride)
        lists = [self.m.const(np.array(v, np.int32)) for v in (begin, end, strides)]
        return self.m.node("StridedSlice", [x, *lists], sliced(x.value, begin, end, strides, 1, 1, shrink), begin_mask=1, end_mask=1, shrink_axis_mask=shrink)

    def reduce(self):
        x = self.pick()
        axes = sorted({self.axis(x) % x.value.ndim for _ in range(self.size(1, 3))})
        function = ["mean", "sum", "max", "min"][self.size(0, 4)]
        return self.m.node("Reduce", [x], getattr(np, function)(x.value, tuple(axes), keepdims=True), func=function, axes=axes)

    def pad(self):
        x = self.pick()
        pads = [(0, 0)] + [(self.size(0, 2), self.size(0, 2)) for _ in x.shape[1:]]
        return self.m.node("Pad", [x, self.m.const(np.array(pads, np.int32))], np.pad(x.value, pads))

    def softmax(self):
        x = self.pick()
        axis = self.axis(x)
        return self.m.node("Softmax", [x], softmax(x.value, axis), axis=axis)

    def gather(self):
        x = self.pick()
        axis = self.axis(x)
        index = self.random.integers(0, x.shape[axis], self.size(1, 4)).astype(np.int32)
        return self.m.node("GatherV2", [x, self.m.const(index)], x.value.take(index, axis), axis=axis)

    def connected(self):
        x = self.pick(2)
        return None if x is None else self.m.connected(x, self.m.weights(x.shape[1], self.size(1, 6), scale=0.3))

    def check(self):
        for _ in range(NODES):
            self.step()
        last = [v for v in self.values[-4:] if v.value.size > 1 and np.ptp(v.value) > 0]
        self.m.check(*(last or self.values[:1]), tolerance=2e-4)


@pytest.mark.parametrize("seed", range(40))
def test_random_graph(seed):
    Walk(seed).check()


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(sys.argv[1]) + 1):
        walk = Walk(number)
        try:
            walk.check()
        except BaseException as e:
            print("seed", number, *walk.history, sep="\n  ")
            print(type(e), str(e)[:300])
