# SPDX-License-Identifier: Apache-2.0
"""Networks with Q/DQ pairs that a seed describes, as exporters and people write them: 1-D to 3-D convolutions, transposed ones,
products, sums, pools, joins, activations, movements; weights in several forms; pairs on some edges; operator sets 10 to 21. Each
node is evaluated by ONNX Runtime when it is added, so that shapes and scales are those of real numbers."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
LARGEST = 40_000  # elements of a tensor


def plain_session(model):
    """Every node as it stands: nothing fused, nothing moved."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Network:
    """model(): the network. feed: its inputs. ranges: of inputs whose batch is open, the (minimum, optimum, maximum) shapes."""

    def __init__(self, seed, steps=None, zero_points=False):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.zero_points = zero_points  # pairs of UINT8 and INT8 whose zero points are anywhere
        self.opset = int(self.rng.choice(OPSETS))
        self.float = np.dtype(np.float16 if self.opset >= 19 and self.chance(0.6) else np.float32)
        self.style = ["inputs", "both", "some"][self.below(3)]
        self.has_open_batch = self.chance(0.35)
        self.nodes, self.constants, self.values = [], [], {}
        self.pairs, self.integers, self.feed, self.ranges, self.kept, self.zeros = {}, {}, {}, {}, {}, {}
        self.channels_last = self.chance(0.3)  # [n, tokens, channels] and products, else images
        count = 2 + self.below(9)
        self.live = [self.start()]
        for _ in range(count if steps is None else steps):  # fewer: the first ones of the same
            self.step()
        self.outputs = self.choose_outputs()

    # Decisions.
    def chance(self, p):
        return bool(self.rng.random() < p)

    def below(self, n):
        return int(self.rng.integers(n))

    def pick(self, items):
        return items[self.below(len(items))]

    # Parts of the graph.
    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        self.values[name] = np.asarray(array)
        return name

    def emit(self, op, inputs, count=1, **attributes):
        names = [f"{op.lower()}{len(self.nodes)}" + (f"_{i}" if count > 1 else "") for i in range(count)]
        node = helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attributes)
        used = [n for n in dict.fromkeys(inputs) if n]
        graph = helper.make_graph(
            [node], "one", [self.info(n) for n in used],
            [onnx.ValueInfoProto(name=n) for n in names])
        results = plain_session(self.packed(graph)).run(None, {n: self.values[n] for n in used})
        self.nodes.append(node)
        self.values.update(zip(names, results))
        return names[0] if count == 1 else names

    def packed(self, graph):
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def info(self, name, changed=()):
        """Type and shape; `changed`: index to what a dimension is there."""
        value, changed = self.values[name], dict(changed)
        shape = [changed.get(i, d) for i, d in enumerate(value.shape)]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    def shape(self, name):
        return self.values[name].shape

    def start(self):
        batch = 1 + self.below(3)
        if self.channels_last:
            tail = (1 + self.below(9), self.pick([4, 8, 13, 16, 33]))
        else:
            rank = self.pick([1, 2, 2, 2, 3])
            tail = (self.pick([1, 3, 4, 8, 16, 17]), *(self.pick({1: [7, 16, 40], 2: [5, 8, 12, 17], 3: [4, 6]}[rank]) for _ in range(rank)))
        x = self.rng.standard_normal((batch, *tail)).astype(np.float32)
        integers = self.float == np.float32 and self.chance(0.1)
        if integers:
            x = np.clip(np.rint(x * 40), -128, 127).astype(np.int8)
        elif self.float == np.float16 and self.chance(0.5):
            x = x.astype(np.float16)
        self.values["x"] = self.feed["x"] = x
        if self.has_open_batch:
            self.ranges["x"] = [(n, *tail) for n in (1, 2, 4)]
        if integers:
            return self.emit("DequantizeLinear", ["x", self.constant(np.float32(0.025))])
        return "x" if x.dtype == self.float else self.emit("Cast", ["x"], to=TensorProto.FLOAT16)

    # Quantization.
    def scale_for(self, x):
        largest = np.abs(self.values[x].astype(np.float64)).max() or 1
        return self.float.type(max(largest * self.rng.uniform(0.6, 1.1) / 127, 1e-4))

    def pair(self, x, scale=None):
        if scale is None and x in self.pairs and self.chance(0.8):
            return self.pairs[x]
        if self.zero_points and self.chance(0.85):
            return self.asymmetric_pair(x, scale)
        form = self.pick([(), (1,)])
        scale = np.full(form, self.scale_for(x) if scale is None else scale)
        s, z = self.constant(scale), self.constant(np.zeros(form, np.int8))
        s2, z2 = (s, z) if self.chance(0.7) else (self.constant(scale), self.pick([z, ""]))
        if self.opset >= 21 and self.chance(0.2):
            q = self.emit("QuantizeLinear", [x, s], output_dtype=TensorProto.INT8)
        else:
            q = self.emit("QuantizeLinear", [x, s, z])
        y = self.emit("DequantizeLinear", [q, s2] + ([z2] if z2 else []))
        self.pairs[x], self.integers[y] = y, (q, scale)
        return y

    def asymmetric_pair(self, x, scale):
        """Tensors of one scale have one zero point."""
        low, high = (min(self.values[x].min(initial=0), 0), max(self.values[x].max(initial=0), 0))
        if scale is None:
            scale = self.float.type(max((float(high) - float(low)) / 255 * self.rng.uniform(0.8, 1.1), 1e-4))
        key = float(np.max(scale))
        if key not in self.zeros:
            kind = np.iinfo(self.pick([np.uint8, np.uint8, np.int8]))
            self.zeros[key] = kind.dtype.type(np.clip(np.rint(kind.min - float(low) / key), kind.min, kind.max))
        s, z = self.constant(scale), self.constant(np.full(np.shape(scale), self.zeros[key]))
        q = self.emit("QuantizeLinear", [x, s, z])
        y = self.emit("DequantizeLinear", [q, s, z])
        self.pairs[x], self.integers[y] = y, (q, scale)
        return y

    def edge(self, x):
        """x as an operator of sums reads it."""
        if x in self.integers or self.chance({"inputs": 0.05, "both": 0.05, "some": 0.4}[self.style]):
            return x
        return self.pair(x)

    def done(self, y):
        self.live.append(self.pair(y) if self.chance({"inputs": 0.1, "both": 0.8, "some": 0.3}[self.style]) else y)

    def weights(self, array, axis, may_split=True):
        """`axis`: of the output channels, which may have scales of their own."""
        key = array.shape, axis, may_split
        if key not in self.kept or self.chance(0.6):  # else those of another layer
            self.kept[key] = self.new_weights(array, axis, may_split)
        return self.kept[key]

    def new_weights(self, array, axis, may_split):
        array = array.astype(self.float)
        if self.chance(0.07):
            return self.constant(array)
        split = may_split and self.opset >= 13 and self.chance(0.6)
        others = tuple(i for i in range(array.ndim) if i != axis)
        largest = np.abs(array.astype(np.float32)).max(axis=others if split else None)
        scale = np.maximum(largest / 127, 1e-4).astype(self.float)
        along = scale.reshape([-1 if i == axis else 1 for i in range(array.ndim)]) if split else scale
        integers = np.clip(np.rint(array.astype(np.float32) / along), -128, 127).astype(np.int8)
        attributes = {"axis": self.pick([axis, axis - array.ndim])} if split else {}
        if not split and self.chance(0.5):
            scale = scale.reshape(1)
        s, z = self.constant(scale), self.constant(np.zeros(scale.shape, np.int8))
        form = self.pick(["integers", "quantized", "quantized", "one"])
        if form == "integers":
            return self.emit("DequantizeLinear", [self.constant(integers), s] + ([z] if self.chance(0.7) else []), **attributes)
        if form == "one":  # integers as floats: Q has a scale of 1
            one, none = self.constant(np.ones(scale.shape, self.float)), self.constant(np.zeros(scale.shape, np.int8))
            q = self.emit("QuantizeLinear", [self.constant(integers.astype(self.float)), one, none], **attributes)
        else:
            q = self.emit("QuantizeLinear", [self.constant(array), s, z], **attributes)
        return self.emit("DequantizeLinear", [q, s, z], **attributes)

    def bias(self, count):
        """None, floats, or INT32 as ONNX Runtime's quantizer writes it."""
        values = self.rng.standard_normal(count).astype(self.float)
        kind = self.below(4)
        if kind == 0:
            return None
        if kind > 1 or self.float != np.float32:
            return self.constant(values)
        split = self.opset >= 13 and self.chance(0.5)
        scale = self.rng.uniform(0.001, 0.01, count if split else ()).astype(np.float32)
        attributes = {"axis": 0} if split else {}
        return self.emit("DequantizeLinear", [self.constant(np.rint(values / scale).astype(np.int32)), self.constant(scale)], **attributes)

    # One layer.
    def step(self):
        x = self.live[-1] if self.chance(0.75) else self.pick(self.live)
        rank = len(self.shape(x))
        kinds = [self.sum, self.sum, self.activation, self.movement, self.bytes_moved, self.norm]
        if self.channels_last:
            kinds += [self.product] * 4 + [self.attention] * 2
        elif rank >= 3:
            kinds += [self.convolution] * 5 + [self.transposed, self.pool, self.pool, self.join]
        else:
            kinds += [self.product] * 4
        self.pick(kinds)(x)

    def draw(self, *shape, fan):
        w = self.rng.standard_normal(shape) / np.sqrt(max(fan, 1))
        return w * self.rng.uniform(0.2, 2, (shape[0],) + (1,) * (len(shape) - 1))  # channels differ

    def window(self, x, transposed=False):
        """Attributes of a convolution."""
        extents, a = self.shape(x)[2:], {}
        a["kernel_shape"] = [1 + self.below(min(3 if transposed else 5, e)) for e in extents]
        a["strides"] = [1 + self.below(2) for _ in extents]
        a["dilations"] = [1 + self.below(2) if (k - 1) * 2 < e else 1 for k, e in zip(a["kernel_shape"], extents)]
        pads = [self.below(d * (k - 1) + 1) for k, d in zip(a["kernel_shape"], a["dilations"])]
        if self.chance(0.7):
            a["pads"] = pads + pads if self.chance(0.6) else pads + [self.below(p + 1) for p in pads]
        elif not transposed and self.chance(0.5):
            a["auto_pad"] = self.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
            if a["auto_pad"] != "VALID":
                a["dilations"] = [1 for _ in extents]
        return a

    def batch_norm(self, y):
        c = self.shape(y)[1]
        parts = [self.rng.uniform(0.5, 1.5, c), self.rng.standard_normal(c), self.rng.standard_normal(c), self.rng.uniform(0.5, 2, c)]
        return self.emit("BatchNormalization", [y, *(self.constant(p.astype(self.float)) for p in parts)])

    def convolution(self, x):
        a, c = self.window(x), self.shape(x)[1]
        groups = self.pick([1, 1, c, next(g for g in (4, 2, 3, 1) if c % g == 0)])
        k = groups * (1 + self.below(2)) if groups == c > 1 else groups * (1 + self.below(max(32 // groups, 1)))
        w = self.draw(k, c // groups, *a["kernel_shape"], fan=c // groups * np.prod(a["kernel_shape"]))
        inputs = [self.edge(x), self.weights(w, 0)]
        bias = self.bias(k)
        y = self.emit("Conv", inputs + ([bias] if bias else []), group=groups, **a)
        if self.chance(0.15):
            y = self.batch_norm(y)
        self.done(self.activated(y) if self.chance(0.5) else y)

    def transposed(self, x):
        if self.values[x].size > LARGEST // 4:
            return self.pool(x)
        a, c = self.window(x, True), self.shape(x)[1]
        a["pads"] = [min(p, (k - 1) // 2) for p, k in zip(a.get("pads", [0] * 6), a["kernel_shape"] * 2)]
        if self.chance(0.3):
            a["output_padding"] = [self.below(s) for s in a["strides"]]
        groups = self.pick([1, 1, 1, c, 2 if c % 2 == 0 else 1])
        each = 1 + self.below(max(16 // groups, 1))
        w = self.draw(c, each, *a["kernel_shape"], fan=c // groups * np.prod(a["kernel_shape"]))
        inputs = [self.edge(x), self.weights(w, 1, groups == 1)]
        bias = self.bias(each * groups)
        y = self.emit("ConvTranspose", inputs + ([bias] if bias else []), group=groups, **a)
        self.done(self.activated(y) if self.chance(0.4) else y)

    def product(self, x):
        c, k = self.shape(x)[-1], self.pick([1, 5, 8, 16, 32, 40])
        w = self.draw(k, c, fan=c)
        left = self.edge(x)
        kind = "Gemm" if len(self.shape(x)) == 2 and self.chance(0.6) else self.pick(["MatMul", "transposed"])
        if kind == "Gemm":
            turned = self.below(2)
            right = self.weights(w if turned else w.T, 1 - turned)
            bias = self.bias(k) or (self.constant(np.zeros(k, self.float)) if self.opset < 11 else None)
            a = {"alpha": 0.5, "beta": 2.0} if self.chance(0.1) else {}
            y = self.emit("Gemm", [left, right] + ([bias] if bias else []), transB=turned, **a)
        else:  # PyTorch keeps [k, c] and transposes it
            right = self.weights(w.T, 1) if kind == "MatMul" else self.emit("Transpose", [self.weights(w, 0)], perm=[1, 0])
            y = self.emit("MatMul", [left, right])
            bias = self.bias(k)
            if bias:
                y = self.emit("Add", [y, bias] if self.chance(0.5) else [bias, y])
        if self.chance(0.4):
            y = self.activated(y)
        self.done(y)

    def attention(self, x):
        """Of one head or several, with a mask or without; pairs on any of its edges, its scores and weights too."""
        if len(self.shape(x)) != 3:
            return self.product(x)
        tokens, width = self.shape(x)[1:]
        heads = self.pick([h for h in (0, 1, 2, 4) if h == 0 or width % h == 0])  # 0: no dimension for them
        form = self.constant(np.array([0, 0, heads, width // max(heads, 1)], np.int64))

        def operand(perm):
            y = self.edge(x)
            if heads:
                y = self.emit("Transpose", [self.emit("Reshape", [y, form])], perm=perm)
            elif perm[-1] == 1:
                y = self.emit("Transpose", [y], perm=[0, 2, 1])
            return self.edge(y) if y not in self.integers and self.chance(0.5) else y

        rounded = self.chance(0.6)
        def between(y):
            return self.pair(y) if rounded and self.chance(0.5) else y

        factor, first = self.float.type(self.rng.uniform(0.5, 1) / np.sqrt(width)), self.chance(0.3)
        q, k = operand([0, 2, 1, 3]), operand([0, 2, 3, 1])
        if first:
            q = self.emit("Mul", [q, self.constant(factor)])
        y = between(self.emit("MatMul", [q, k]))
        if not first:
            y = self.emit(*self.pick([("Mul", [y, self.constant(factor)]), ("Div", [y, self.constant(self.float.type(8))])]))
        if self.chance(0.6):
            y, mask = between(y), self.constant(self.rng.uniform(-4, 0, (1,) * (len(self.shape(y)) - 1) + (tokens,)).astype(self.float))
            both = [y, between(mask)]
            y = self.emit("Add", both if self.chance(0.7) else both[::-1])
        p = between(self.emit("Softmax", [between(y)], axis=len(self.shape(y)) - 1))
        y = self.emit("MatMul", [p, operand([0, 2, 1, 3])])
        if heads:
            y = self.emit("Reshape", [self.emit("Transpose", [y], perm=[0, 2, 1, 3]), self.constant(np.array([0, 0, width], np.int64))])
        self.done(y)

    def sum(self, x):
        """With a tensor of the same shape, one or both of them behind pairs, in both orders."""
        others = [n for n in self.live if self.shape(n) == self.shape(x) and n != x]
        if others:
            y = self.pick(others)
        elif self.chance(0.5) and len(self.shape(x)) >= 3 and not self.channels_last:
            c = self.shape(x)[1]
            y = self.emit("Conv", [self.edge(x), self.weights(self.draw(c, c, *[1] * (len(self.shape(x)) - 2), fan=c), 0)])
        else:
            y = self.activated(x)
        both = [self.edge(x), self.edge(y)] if self.chance(0.6) else self.pick([[self.edge(x), y], [x, self.edge(y)]])
        op = self.pick(["Add"] * 6 + ["Mul", "Sub", "Max"])
        z = self.emit(op, both if self.chance(0.5) else both[::-1])
        self.done(self.emit("Relu", [z]) if self.chance(0.5) else z)

    def activated(self, x):
        kind = self.pick(["Relu"] * 5 + ["Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "Elu", "PRelu", "silu", "gelu"])
        if kind == "Clip":
            if self.opset < 11:
                return self.emit("Clip", [x], min=0.0, max=1.5)
            low, high = (self.constant(self.float.type(v)) for v in self.pick([(0, 1.5), (-0.7, 0.9)]))
            return self.emit("Clip", [x, low, high])
        if kind == "PRelu":
            rank = len(self.shape(x))
            slope = [1] * rank
            slope[-1 if self.channels_last or rank < 3 else 1] = -1
            c = self.shape(x)[slope.index(-1)]
            return self.emit("PRelu", [x, self.constant(self.rng.uniform(0, 0.5, c).astype(self.float).reshape(slope[1:]))])
        if kind == "silu":
            return self.emit("Mul", [x, self.emit("Sigmoid", [x])])
        if kind == "gelu":
            inner = self.emit("Erf", [self.emit("Mul", [x, self.constant(self.float.type(np.sqrt(0.5)))])])
            outer = self.emit("Mul", [x, self.emit("Add", [inner, self.constant(self.float.type(1))])])
            return self.emit("Mul", [outer, self.constant(self.float.type(0.5))])
        return self.emit(kind, [x])

    def activation(self, x):
        if self.chance(0.2) and self.opset >= 13 and len(self.shape(x)) >= 2:
            self.done(self.emit("Softmax", [self.edge(x)], axis=self.pick([-1, 1])))
        else:
            self.done(self.activated(self.edge(x)))

    def pool(self, x):
        extents, op = self.shape(x)[2:], self.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool"])
        a = {}
        if op != "GlobalAveragePool":
            a["kernel_shape"] = [1 + self.below(min(3, e)) for e in extents]
            a["strides"] = [1 + self.below(2) for _ in extents]
            if self.chance(0.4):
                a["pads"] = [self.below(k // 2 + 1) for k in a["kernel_shape"]] * 2
            if op == "AveragePool" and self.chance(0.4):
                a["count_include_pad"] = 1
        elif self.chance(0.6):
            op, a = "MaxPool", {"kernel_shape": [min(2, e) for e in extents], "strides": [min(2, e) for e in extents]}
        y = self.edge(x)
        z = self.emit(op, [y], **a)
        # Equal scales on both sides, as tools write them: the pool is one of integers.
        if y in self.integers and self.chance(0.5):
            self.live.append(self.pair(z, self.integers[y][1].reshape(-1)[0]))
        else:
            self.done(z)

    def join(self, x):
        fits = [n for n in self.live if len(self.shape(n)) == len(self.shape(x)) and self.shape(n)[2:] == self.shape(x)[2:]]
        parts = [x] + [self.pick(fits) for _ in range(1 + self.below(2))]
        if sum(self.values[p].size for p in parts) > LARGEST:
            return self.pool(x)
        scale = self.scale_for(x)  # one for all, or each its own
        parts = [self.pair(p, scale) for p in parts] if self.chance(0.5) else [self.edge(p) for p in parts]
        self.done(self.emit("Concat", parts, axis=1))

    def bytes_moved(self, x):
        """Between Q and DQ stands what moves integers."""
        if self.opset < 13 or x in self.integers and self.integers[x][1].size != 1:
            return self.movement(x)
        scale = self.scale_for(x)
        q = self.emit("QuantizeLinear", [x, self.constant(scale), self.constant(np.int8(0))])
        rank, kind = len(self.shape(x)), self.below(5)
        if kind == 0:
            q = self.emit("Concat", [q, q], axis=1) if self.values[q].size < LARGEST // 4 else q
        elif kind == 1:
            q = self.emit("Gather", [q, self.constant(self.rng.integers(0, self.shape(q)[1], 3).astype(np.int64))], axis=1)
        elif kind == 2 and rank == 4 and not self.channels_last:
            q = self.emit("MaxPool", [q], kernel_shape=[min(2, d) for d in self.shape(q)[2:]])
        elif rank >= 3:
            q = self.emit("Transpose", [q], perm=[0, *range(rank - 1, 0, -1)])
        y = self.emit("DequantizeLinear", [q, self.constant(scale)])
        self.integers[y] = q, np.asarray(scale)
        if self.chance(0.3):  # other steps
            y = self.pair(y)
        self.done(y)
        return None

    def norm(self, x):
        """What stands in floats between quantized layers."""
        last = self.shape(x)[-1]
        kinds = ["ReduceMean"] + (["LayerNormalization"] if self.opset >= 17 and last > 2 else [])
        kinds += ["DepthToSpace"] if len(self.shape(x)) == 4 and self.shape(x)[1] % 4 == 0 and not self.channels_last else []
        kind, x = self.pick(kinds), self.edge(x)
        if kind == "LayerNormalization":
            gain, shift = (self.constant(self.rng.uniform(0.5, 1.5, last).astype(self.float)) for _ in range(2))
            return self.done(self.emit(kind, [x, gain, shift], axis=-1))
        if kind == "DepthToSpace":
            return self.done(self.emit(kind, [x], blocksize=2))
        if len(self.shape(x)) < 3 or self.opset >= 18:
            return self.done(self.activated(x))
        return self.done(self.emit(kind, [x], axes=[len(self.shape(x)) - 1], keepdims=1))

    def movement(self, x):
        x, dims = self.edge(x), self.shape(x)
        rank, integers = len(dims), lambda *v: self.constant(np.array(v, np.int64))
        kind = self.pick(["Transpose", "Slice", "Reshape", "Pad", "Split", "Resize", "Flatten"])
        if kind == "Transpose" and rank >= 3 and self.channels_last:
            return self.done(self.emit("Transpose", [x], perm=[0, 2, 1]))
        if kind == "Slice" and dims[1] > 1:
            begin = self.below(dims[1] - 1)
            return self.done(self.emit("Slice", [x, integers(begin), integers(dims[1]), integers(1), integers(1 + self.below(2))]))
        if kind == "Pad" and rank >= 3 and self.opset >= 11 and self.values[x].size < LARGEST // 4:
            pads = [0] * (2 * rank)
            pads[rank - 1], pads[-1] = self.below(3), self.below(3)
            return self.done(self.emit("Pad", [x, integers(*pads)]))
        if kind == "Split" and dims[1] >= 2 and self.opset >= 13:
            cut = 1 + self.below(dims[1] - 1)
            parts = self.emit("Split", [x, integers(cut, dims[1] - cut)], 2, axis=1)
            for part in parts:
                self.done(part)
            return None
        if kind == "Resize" and rank == 4 and not self.channels_last and self.opset >= 13 and self.values[x].size < LARGEST // 4:
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            return self.done(self.emit("Resize", [x, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
                                       nearest_mode="floor"))
        if kind == "Flatten" and not self.channels_last and rank >= 3 and np.prod(dims[1:]) < 600:
            return self.done(self.emit("Flatten", [x], axis=1))
        if rank >= 4:  # two dimensions become one and two again
            y = self.emit("Reshape", [x, integers(0, dims[1], -1)])
            return self.done(self.emit("Reshape", [self.activated(y), integers(0, *dims[1:])]))
        return self.done(self.emit("Neg", [x]))

    # The whole.
    def choose_outputs(self):
        outputs = [self.live[-1]] + [n for n in self.live[1:-1] if self.chance(0.15)]
        outputs = list(dict.fromkeys(n for n in outputs if n != "x"))
        outputs = [self.integers[n][0] if n in self.integers and self.values[self.integers[n][0]].dtype == np.int8 and self.chance(0.15) else n
                   for n in outputs]
        return outputs or [self.emit("Neg", [self.live[-1]])]

    def has_integers(self):
        """Whether there are Q and DQ nodes but those of INT32 biases, which are floats at import."""
        return any(self.values[n].dtype in (np.int8, np.uint8) for node in self.nodes if "quantize" in node.op_type.lower() for n in (*node.input[:1], *node.output))

    def model(self):
        batches = {0: "n"} if self.has_open_batch else {}
        inputs = [self.info(name, batches) for name in self.feed]
        outputs = [self.info(name, dict.fromkeys(batches)) for name in self.outputs]
        return self.packed(helper.make_graph(self.nodes, "quantized", inputs, outputs, self.constants))

    def listing(self):
        for node in self.nodes:
            attributes = " ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute)
            shapes = " ".join("x".join(map(str, self.shape(n))) or "1" for n in node.output)
            yield f"{', '.join(node.output)} [{shapes}] = {node.op_type}({', '.join(node.input)}) {attributes}"
