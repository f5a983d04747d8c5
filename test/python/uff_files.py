# SPDX-License-Identifier: Apache-2.0
"""UFF files written field by field, and a model whose nodes are computed in NumPy by TensorFlow's rules as they are written."""

import struct

import numpy as np
import tensorrt as trt

from small import QUIET, run_batch

INC = 2**31 - 1
TYPES = {np.dtype(np.int8): 0x10008, np.dtype(np.int16): 0x10010, np.dtype(np.int32): 0x10020, np.dtype(np.int64): 0x10040,
         np.dtype(np.float16): 0x20010, np.dtype(np.float32): 0x20020}  # fmt: skip
DATA = {"N+C": [0, 2, INC, 1], "NC+": [0, 1, INC], "NC": [0, 1], "+CK": [2, INC, 1, 0], "KC+": [0, 1, INC], "CK": [1, 0]}


# ---- the wire format


def varint(v):
    v &= 2**64 - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def part(field, v):
    v = v.encode() if isinstance(v, str) else bytes(v)
    return varint(field << 3 | 2) + varint(len(v)) + v


def entry(field, key, value):
    return part(field, part(1, key) + part(2, value))


class Ref(str):
    """A key of the referenced data."""


class Dtype(int):
    pass


class Orders(tuple):
    """Lists of places, one for each input; or their names. In files they stand in the referenced data."""


class InlineOrders(Orders):
    """The same at the node."""


def orders_of(places):
    places = DATA.get(places, places) if isinstance(places, str) else places
    return part(1, number(1, -1) + part(2, part(1, b"".join(map(varint, places)))))


def data(v):
    """A message Data of a Python value."""
    if isinstance(v, Ref):
        return part(100, v)
    if isinstance(v, str):
        return part(1, v)
    if isinstance(v, (bytes, bytearray)):
        return part(9, v)
    if isinstance(v, Dtype):
        return number(101, v)
    if isinstance(v, Orders):
        return part(104, b"".join(part(1, orders_of(o)) for o in v))
    if isinstance(v, bool):
        return number(5, v)
    if isinstance(v, (int, np.integer)):
        return number(7, int(v))
    if isinstance(v, float):
        return varint(3 << 3 | 1) + struct.pack("<d", v)
    v = list(v)
    if v and isinstance(v[0], str):
        return part(2, b"".join(part(1, s) for s in v))
    if v and isinstance(v[0], bool):
        return part(6, part(1, b"".join(varint(b) for b in v)))
    if v and isinstance(v[0], float):
        return part(4, part(1, b"".join(struct.pack("<d", d) for d in v)))
    return part(8, part(1, b"".join(varint(int(i)) for i in v)))


class File:
    """Nodes and referenced data; bytes() is the file, its nodes in a random order."""

    def __init__(self):
        self.nodes, self.data, self.graphs = [], {}, 1

    def node(self, operation, name, inputs=(), **fields):
        body = part(1, name) + b"".join(part(2, i) for i in inputs) + part(3, operation)
        for key, value in fields.items():
            if type(value) is Orders:
                ref = Ref("orders_" + "_".join(map(str, value)))
                self.data[ref] = data(value)
                value = ref
            body += entry(4, key, data(value))
        self.nodes.append(body)
        return name

    def const(self, name, array):
        array = np.asarray(array)
        ref = Ref("weights_" + name)
        self.data[ref] = data(array.tobytes())
        return self.node("Const", name, dtype=Dtype(TYPES[array.dtype]), shape=list(array.shape), values=ref)

    def bytes(self, seed=0):
        order = np.random.default_rng(seed).permutation(len(self.nodes))
        graph = part(1, "main") + b"".join(part(2, self.nodes[i]) for i in order)
        head = number(1, 1) + number(2, 1) + part(3, part(1, "tensorflow_extension") + number(2, 1))
        return head + part(4, graph) * self.graphs + b"".join(entry(5, k, v) for k, v in self.data.items())


# ---- TensorFlow's rules, channels last


def same_pads(size, window, stride):
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def windows(x, kernel, strides, same, dilation=(1, 1), fill=0.0):
    """[N, outH, outW, C, kh, kw] of x [N, H, W, C]."""
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    pads = [same_pads(s, e, t) if same else (0, 0) for s, e, t in zip(x.shape[1:3], extents, strides)]
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    w = np.lib.stride_tricks.sliding_window_view(x, extents, (1, 2))
    return w[:, :: strides[0], :: strides[1], :, :: dilation[0], :: dilation[1]]


def conv(x, w, strides, same, dilation=(1, 1)):
    return np.einsum("nhwcij,ijck->nhwk", windows(x, w.shape[:2], strides, same, dilation), w, optimize=True)


def depthwise(x, w, strides, same):
    y = np.einsum("nhwcij,ijcm->nhwcm", windows(x, w.shape[:2], strides, same), w, optimize=True)
    return y.reshape(*y.shape[:3], -1)


def conv_transpose(x, w, strides, same, size):
    """The gradient of a convolution by w [h, w, outputs, inputs] that goes over images of this size."""
    y = np.zeros((x.shape[0], *size, w.shape[2]))
    pads = [same_pads(s, k, t) if same else (0, 0) for s, k, t in zip(size, w.shape[:2], strides)]
    wide = np.zeros((x.shape[0], size[0] + sum(pads[0]), size[1] + sum(pads[1]), w.shape[2]))
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            r, c = i * strides[0], j * strides[1]
            wide[:, r : r + w.shape[0], c : c + w.shape[1]] += np.einsum("nk,ijck->nijc", x[:, i, j], w)
    y[:] = wide[:, pads[0][0] : pads[0][0] + size[0], pads[1][0] : pads[1][0] + size[1]]
    return y


def pool(x, function, kernel, strides, same):
    if function == "max":
        return windows(x, kernel, strides, same, fill=-np.inf).max((4, 5))
    count = windows(np.ones_like(x), kernel, strides, same).sum((4, 5))
    return windows(x, kernel, strides, same).sum((4, 5)) / count


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum, "pow": np.power}


class Value:
    def __init__(self, name, value, channels=None):
        self.name, self.value, self.channels = name, value, channels

    @property
    def shape(self):
        return self.value.shape


class Model:
    """`last`: images are N H W C in the graph, else N C H W. Values are double; a Value's array has the graph's order."""

    def __init__(self, batch=2, last=True, seed=0, orders=True):
        self.file, self.batch, self.last, self.orders = File(), batch, last, orders
        self.random = np.random.default_rng(seed)
        self.inputs, self.count = {}, 0

    # In and out.
    def input(self, name, shape, order=None, value=None, file_shape=True, dtype=np.float32):
        """`shape`: in the graph's order, without the batch; `order`: of the registration."""
        x = self.random.standard_normal((self.batch, *shape)) if value is None else value
        x = x.astype(dtype)
        self.file.node("Input", name, dtype=Dtype(TYPES[x.dtype]), shape=[-1, *shape] if file_shape else [])
        self.inputs[name] = (x, order, self.last)
        return Value(name, x.astype(np.float64) if x.dtype == np.float32 else x)

    def fresh(self, operation):
        self.count += 1
        return f"{operation.lower()}_{self.count}/{operation}"

    def const(self, array, name=None):
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        return Value(self.file.const(name or self.fresh("Const"), array), array.astype(np.float64) if array.dtype.kind == "f" else array)

    def weights(self, *shape, scale=0.5):
        return self.const((scale * self.random.standard_normal(shape)).astype(np.float32))

    def node(self, operation, inputs, value, **fields):
        name = self.file.node(operation, fields.pop("name", None) or self.fresh(operation), [i.name for i in inputs], **fields)
        return Value(name, value)

    # Images pass through TensorFlow's functions channels last.
    def image(self, function, x):
        return function(x) if self.last else np.moveaxis(function(np.moveaxis(x, 1, -1)), -1, 1)

    def ordered(self, *kernels):
        if not self.orders:
            return {}
        return {"inputs_orders": Orders(["N+C" if self.last else "NC+", *kernels])}

    def window(self, strides, same, **more):
        fields = {"strides": list(strides), **more}
        if same:
            fields["implicit_padding"] = "same"
        return fields

    def conv(self, x, w, strides=(1, 1), same=True, dilation=(1, 1), **more):
        """w: [h, w, c, k]."""
        y = self.image(lambda v: conv(v, w.value, strides, same, dilation), x.value)
        fields = {"dilation": list(dilation)} if tuple(dilation) != (1, 1) else {}
        return self.node("Conv", [x, w], y, **self.window(strides, same, **fields), **self.ordered("+CK"), **more)

    def depthwise(self, x, w, strides=(1, 1), same=True, field="group"):
        y = self.image(lambda v: depthwise(v, w.value, strides, same), x.value)
        return self.node("Conv", [x, w], y, **self.window(strides, same), **{field: w.shape[2]}, **self.ordered("+CK"))

    def conv_transpose(self, x, w, size, strides=(1, 1), same=True, whole=False):
        y = self.image(lambda v: conv_transpose(v, w.value, strides, same, size), x.value)
        shape = self.const(np.array(y.shape if whole else size, np.int32))
        return self.node("ConvTranspose", [x, w, shape], y, **self.window(strides, same), **self.ordered("+CK"))

    def pool(self, x, function, kernel, strides, same=False, **more):
        y = self.image(lambda v: pool(v, function, kernel, strides, same), x.value)
        return self.node("Pool", [x], y, func=function, **self.window(strides, same, kernel=list(kernel)), **self.ordered(), **more)

    def connected(self, x, w, **more):
        fields = {"inputs_orders": Orders(["NC", "CK"])} if self.orders else {}
        return self.node("FullyConnected", [x, w], x.value.reshape(len(x.value), -1) @ w.value, **fields, **more)

    def binary(self, function, a, b, **more):
        return self.node("Binary", [a, b], BINARY[function](a.value, b.value), func=function, **more)

    def unary(self, function, x, value):
        return self.node("Unary", [x], value(x.value), func=function)

    def activation(self, function, x, value, **more):
        return self.node("Activation", [x], value(x.value), func=function, **more)

    def relu(self, x, **more):
        return self.activation("relu", x, lambda v: np.maximum(v, 0), **more)

    def softmax(self, x, **more):
        return self.node("Softmax", [x], softmax(x.value), axis=0, **({"inputs_orders": Orders(["N+C"])} if self.orders else {}), **more)

    def batchnorm(self, x, gamma, beta, mean, variance, epsilon=1e-3):
        of = lambda v: (v - mean.value) / np.sqrt(variance.value + epsilon) * gamma.value + beta.value
        return self.node("Batchnorm", [x, gamma, beta, mean, variance], self.image(of, x.value), epsilon=epsilon, **self.ordered())

    def reshape(self, x, shape, **more):
        return self.node("Reshape", [x, self.const(np.array(shape, np.int32))], x.value.reshape(len(x.value), *shape[1:]), **more)

    def flatten(self, x, **more):
        return self.node("Flatten", [x], x.value.reshape(len(x.value), -1), **more)

    def transpose(self, x, permutation, **more):
        return self.node("Transpose", [x], x.value.transpose(permutation), permutation=list(permutation), **more)

    def concat(self, parts, axis, **more):
        return self.node("Concat", parts, np.concatenate([p.value for p in parts], axis), axis=axis, **more)

    # Through the library.
    def registered(self, name):
        """(dimensions, order, what the network takes) of an input."""
        x, order, last = self.inputs[name]
        if x.ndim == 4:
            canonical = np.moveaxis(x, -1, 1) if last else x
            if order == trt.UffInputOrder.NHWC:
                return np.moveaxis(canonical, 1, -1).shape[1:], order, canonical
            return canonical.shape[1:], order or trt.UffInputOrder.NCHW, canonical
        return x.shape[1:], order or trt.UffInputOrder.NC, x

    def parsed(self, *outputs, logger=QUIET, dtype=trt.float32, seed=None, register=True):
        """(builder, network, parser), or None where it is refused."""
        builder = trt.Builder(logger)
        builder.max_batch_size = self.batch
        network = builder.create_network()
        parser = trt.UffParser()
        for name in self.inputs if register else ():
            dims, order, _ = self.registered(name)
            assert parser.register_input(name, dims, order)
        for o in outputs:
            assert parser.register_output(o.name if isinstance(o, Value) else o)
        ok = parser.parse_buffer(self.file.bytes(len(self.file.nodes) if seed is None else seed), network, dtype)
        return (builder, network, parser) if ok else None

    def run(self, *outputs, flags=(), **how):
        """Outputs by name."""
        lines = Lines()
        parsed = self.parsed(*outputs, logger=lines, **how)
        assert parsed, lines.errors()
        builder, network, parser = parsed
        config = builder.create_builder_config()
        for flag in flags:
            config.set_flag(flag)
        plan = builder.build_serialized_network(network, config)
        assert plan is not None, lines.errors()
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
        return run_batch(engine, {engine[i]: self.registered(engine[i])[2] for i in range(engine.num_bindings) if engine.binding_is_input(i)})

    def check(self, *outputs, tolerance=2e-5, **how):
        """The outputs in the graph's order against NumPy."""
        flat = [self.reshape(o, [-1, o.value[0].size]) for o in outputs]
        got = self.run(*flat, **how)
        assert set(got) == {f.name for f in flat}
        for f in flat:
            close(got[f.name], f.value, tolerance)

    def refusal(self, *outputs, **how):
        """The error lines of a model that is refused."""
        lines = Lines()
        assert self.parsed(*outputs, logger=lines, **how) is None
        assert lines.errors()
        return "\n".join(lines.errors())


class Lines(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.lines = []

    def log(self, severity, message):
        self.lines.append((severity, message))

    def errors(self):
        return [m for s, m in self.lines if s <= trt.ILogger.ERROR]


def close(got, wanted, tolerance):
    """And not nearly constant: that would prove nothing."""
    assert got.shape == wanted.shape, f"{got.shape} for {wanted.shape}"
    assert wanted.size < 2 or np.ptp(wanted) > 0
    scale = np.maximum(1, np.abs(wanted))
    error = (np.abs(got.astype(np.float64) - wanted) / scale).max()
    assert error <= tolerance, f"error {error}"
