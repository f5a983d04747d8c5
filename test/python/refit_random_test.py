# SPDX-License-Identifier: Apache-2.0
"""Random networks whose weights a refit replaces, beside engines that are built anew with the new weights.

usage: refit_random_test.py [onnx|layers]... [--seed FIRST] [--count N] [--seconds N] [--keep FOLDER]

Rule: each array of floating numbers that a client can name is listed and can be set, and then the engine's numbers are those of a fresh
build; or it is not listed, and setting it is refused. `onnx`: graphs in which initializers are read directly, through other operators,
several times, and in bodies. `layers`: networks of the API, weights by name and by layer and role. Many numbers are 0, 1 or 2 at first, which
a build could simplify away. On a GPU where TENSORWRIGHT_DEVICE says so, which wants torch. --seconds: nothing is begun after them. Prints what failed with its seed, and how many names of how many arrays were listed; ends with 1 if any failed.
"""

import os
import sys
import time

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt
from onnx import TensorProto, helper, numpy_helper

os.environ.setdefault("TENSORWRIGHT_DEVICE", "cpu")

OPSET = 17
SHAPE = (2, 4, 6)  # of what goes from operator to operator


class Messages(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, message):
        if severity <= trt.ILogger.ERROR:
            self.errors.append(message)


class Graph:
    """A random ONNX graph. weights: by name, first numbers; must: names that have to be listed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.integers, self.must = [], {}, {}, set()
        self.count = 0
        self.inner = None  # nodes of a body that is being made

    def pick(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share):
        return self.random.random() < share

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def node(self, op, inputs, outputs=1, **attributes):
        names = [self.name("v") for _ in range(outputs)]
        (self.nodes if self.inner is None else self.inner).append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def ints(self, *numbers):
        name = self.name("i")
        self.integers[name] = np.array(numbers, np.int64)
        return name

    def first(self, shape, kind=None):
        """First numbers of weights: often such that a build could simplify."""
        kind = kind or self.pick("random", "random", "random", "ones", "zeros", "twos")
        if kind == "random":
            return self.random.uniform(-1, 1, shape).astype(np.float32)
        return np.full(shape, {"ones": 1, "zeros": 0, "twos": 2, "positive": 0.7}[kind], np.float32)

    def weight(self, shape, kind=None, must=True):
        # An array is often read again.
        known = [n for n, w in self.weights.items() if w.shape == tuple(shape) and w.dtype == np.float32 and not n.endswith("+")]
        if known and kind is None and self.chance(0.3):
            return self.pick(*known)
        name = self.name("w") + ("+" if kind == "positive" else "")
        self.weights[name] = self.first(shape, kind)
        if must and np.prod(shape) > 1:
            self.must.add(name)
        return name

    def derived(self, shape, depth=0):
        """Weights of a shape, often computed of others."""
        shape = tuple(shape)
        if depth > 2 or self.chance(0.25):
            return self.weight(shape)
        more = depth + 1
        way = self.pick("slice", "gather", "concat", "transpose", "expand", "neg", "binary", "split", "where", "cast", "sqrt", "reciprocal",
                        "reshape", "unsqueeze", "identity", "sum", "min")
        last = len(shape) - 1
        if way == "slice" and shape:
            w = self.derived(shape[:-1] + (shape[-1] + 2,), more)
            return self.node("Slice", [w, self.ints(1), self.ints(1 + shape[-1]), self.ints(last)])
        if way == "gather" and shape:
            w = self.derived((shape[0] + 1,) + shape[1:], more)
            return self.node("Gather", [w, self.ints(*self.random.integers(0, shape[0] + 1, shape[0]))], axis=0)
        if way == "concat" and shape and shape[-1] > 1:
            k = int(self.random.integers(1, shape[-1]))
            return self.node("Concat", [self.derived(shape[:-1] + (k,), more), self.derived(shape[:-1] + (shape[-1] - k,), more)], axis=last)
        if way == "transpose" and len(shape) > 1:
            order = list(self.random.permutation(len(shape)))
            before = [0] * len(shape)
            for i, o in enumerate(order):
                before[o] = shape[i]
            return self.node("Transpose", [self.derived(before, more)], perm=[int(o) for o in order])
        if way == "expand" and shape:
            return self.node("Expand", [self.derived((1,) + shape[1:], more), self.ints(*shape)])
        if way == "neg":
            return self.node("Neg", [self.derived(shape, more)])
        if way in ("binary", "min"):
            other = self.derived(shape if self.chance(0.5) or not shape else (1,) * len(shape), more)
            op = self.pick("Min", "Max") if way == "min" else self.pick("Mul", "Add", "Sub")
            return self.node(op, [self.derived(shape, more), other])
        if way == "split" and shape:
            w = self.derived(shape[:-1] + (2 * shape[-1],), more)
            return self.pick(*self.node("Split", [w, self.ints(shape[-1], shape[-1])], outputs=2, axis=last))
        if way == "where" and shape:
            name = self.name("b")
            self.integers[name] = self.random.integers(0, 2, shape).astype(bool)
            return self.node("Where", [name, self.derived(shape, more), self.derived(shape, more)])
        if way == "cast":
            name = self.name("h")
            self.weights[name] = self.first(shape).astype(np.float16)
            if np.prod(shape) > 1:
                self.must.add(name)
            return self.node("Cast", [name], to=TensorProto.FLOAT)
        if way == "sqrt":
            return self.node("Sqrt", [self.weight(shape, "positive")])
        if way == "reciprocal":
            return self.node("Reciprocal", [self.weight(shape, "positive")])
        if way == "reshape":
            return self.node("Reshape", [self.derived((int(np.prod(shape)),), more), self.ints(*shape) if shape else self.empty()])
        if way == "unsqueeze" and shape and shape[0] == 1:
            return self.node("Unsqueeze", [self.derived(shape[1:], more), self.ints(0)])
        if way == "sum" and shape:
            return self.node("ReduceSum", [self.derived(shape + (3,), more), self.ints(len(shape))], keepdims=0)
        return self.node("Identity", [self.derived(shape, more)])

    def empty(self):
        name = self.name("i")
        self.integers[name] = np.zeros((0,), np.int64)
        return name

    def broadcast(self):
        n, c, k = SHAPE
        return self.pick((k,), (1, k), (c, k), (1, c, 1), (c, 1), SHAPE, (1,), ())

    def bounded(self, x):
        return self.node(self.pick("Tanh", "Sigmoid", "Softsign"), [x])

    def step(self, x, depth=0):
        n, c, k = SHAPE
        kinds = ["add", "mul", "sub", "div", "pow", "matmul", "gemm", "conv", "conv1", "deconv", "batchnorm", "instancenorm", "layernorm",
                 "spelled_norm", "prelu", "where", "concat", "tied", "lstm", "gru", "rnn", "quantized", "twice", "gelu", "scale_shift"]
        if depth < 2:
            kinds += ["if", "loop"]
        kind = self.pick(*kinds)
        if kind in ("add", "mul", "sub"):
            pair = [x, self.derived(self.broadcast())]
            return self.node(kind.capitalize(), pair if self.chance(0.7) else pair[::-1])
        if kind == "div":
            return self.node("Div", [x, self.weight(self.broadcast(), self.pick("ones", "positive", "twos"))])
        if kind == "pow":
            return self.node("Pow", [self.node("Sigmoid", [x]), self.weight(self.broadcast(), self.pick("ones", "twos", "positive"))])
        if kind == "matmul":
            return self.bounded(self.node("MatMul", [x, self.derived((k, k))]))
        if kind == "gemm":
            flat = self.node("Reshape", [x, self.ints(n * c, k)])
            b = self.derived(self.pick((k,), (1, k), (n * c, k)))
            y = self.node("Gemm", [flat, self.derived((k, k)), b], transB=self.pick(0, 1), alpha=self.pick(1.0, 0.5), beta=self.pick(1.0, 2.0))
            return self.bounded(self.node("Reshape", [y, self.ints(n, c, k)]))
        if kind in ("conv", "conv1", "deconv", "batchnorm", "instancenorm") and self.inner is None or kind == "conv1":
            one = kind == "conv1" or self.chance(0.3)
            y = x if one else self.node("Reshape", [x, self.ints(n, c, 2, k // 2)])
            window = [1] if one else [1, 1]
            if kind == "deconv":
                y = self.node("ConvTranspose", [y, self.derived([c, c] + window), self.derived((c,))])
            elif kind == "instancenorm":
                y = self.node("InstanceNormalization", [y, self.derived((c,)), self.derived((c,))])
            else:
                if kind != "batchnorm" or self.chance(0.6):
                    y = self.node("Conv", [y, self.derived([c, c] + window)] + ([self.derived((c,))] if self.chance(0.7) else []))
                if kind == "batchnorm" or self.chance(0.2):
                    y = self.node("BatchNormalization", [y, self.derived((c,)), self.derived((c,)), self.weight((c,)), self.weight((c,), "positive")])
            return self.bounded(y if one else self.node("Reshape", [y, self.ints(n, c, k)]))
        if kind == "layernorm":
            return self.node("LayerNormalization", [x, self.derived((k,)), self.derived((k,))], axis=-1)
        if kind == "spelled_norm":
            mean = self.node("ReduceMean", [x], axes=[2], keepdims=1)
            d = self.node("Sub", [x, mean])
            v = self.node("ReduceMean", [self.node("Pow", [d, self.weight((), "twos")])], axes=[2], keepdims=1)
            r = self.node("Sqrt", [self.node("Add", [v, self.weight((), "positive")])])
            y = self.node("Mul", [self.node("Div", [d, r]), self.derived((k,))])
            return self.node("Add", [y, self.derived((k,))])
        if kind == "prelu":
            return self.node("PRelu", [x, self.derived(self.pick((k,), (1, c, 1), (c, 1)))])
        if kind == "where":
            return self.node("Where", [self.node("Greater", [x, self.weight((), "zeros")]), self.derived(self.broadcast()), x])
        if kind == "concat":  # a class token
            token = self.node("Expand", [self.derived((1, 1, k)), self.ints(n, 1, k)])
            y = self.node("Concat", [token, x], axis=1)
            return self.node("Slice", [y, self.ints(0), self.ints(c), self.ints(1)])
        if kind == "tied":
            table = self.weight((7, k))
            rows = self.node("Gather", [table, self.ints(*self.random.integers(0, 7, c))], axis=0)
            y = self.node("Softmax", [self.node("MatMul", [self.node("Add", [x, rows]), self.node("Transpose", [table], perm=[1, 0])])])
            return self.bounded(self.node("MatMul", [y, table]))
        if kind in ("lstm", "gru", "rnn") and self.inner is None:
            gates = {"lstm": 4, "gru": 3, "rnn": 1}[kind]
            d = self.pick(1, 1, 2)
            h = k // d
            w, r, b = (self.derived(s) for s in ((d, gates * h, k), (d, gates * h, h), (d, 2 * gates * h)))
            more = {"linear_before_reset": self.pick(0, 1)} if kind == "gru" else {}
            direction = "bidirectional" if d == 2 else self.pick("forward", "reverse")
            y = self.node(kind.upper(), [x, w, r, b], hidden_size=h, direction=direction, **more)  # [n, d, c, h]
            return self.node("Reshape", [self.node("Transpose", [y], perm=[0, 2, 1, 3]), self.ints(n, c, k)])
        if kind == "quantized" and self.inner is None:
            zero = self.name("z")
            self.integers[zero] = np.zeros((), np.int8)
            s = self.name("s")
            self.weights[s] = np.float32(1 / 64)

            def through(v, scale, zero, **a):
                return self.node("DequantizeLinear", [self.node("QuantizeLinear", [v, scale, zero], **a), scale, zero], **a)
            zeros = self.name("z")
            self.integers[zeros] = np.zeros((k,), np.int8)
            sw = self.name("s")
            self.weights[sw] = np.full((k,), 1 / 100, np.float32)
            return self.bounded(self.node("MatMul", [through(x, s, zero), through(self.weight((k, k), "random"), sw, zeros, axis=1)]))
        if kind == "twice":
            w = self.derived(self.broadcast())
            return self.node("Add", [self.node("Mul", [x, w]), self.pick(w, self.derived(self.broadcast()))])
        if kind == "scale_shift":
            return self.node("Add", [self.node("Mul", [x, self.derived((k,))]), self.derived((k,))])
        if kind == "gelu":
            e = self.node("Erf", [self.node("Div", [x, self.weight((), "positive")])])
            return self.node("Mul", [self.node("Mul", [x, self.node("Add", [e, self.weight((), "ones")])]), self.weight((), "positive")])
        if kind == "if":
            condition = self.node("Greater", [self.node("ReduceSum", [x], keepdims=0), self.weight((), "zeros")])
            return self.node("If", [condition], then_branch=self.body(x, depth), else_branch=self.body(x, depth))
        if kind == "loop":
            trips = self.name("i")
            self.integers[trips] = np.array(int(self.random.integers(1, 4)), np.int64)
            i, cond, state = self.name("i"), self.name("c"), self.name("s")
            ins = [helper.make_tensor_value_info(i, TensorProto.INT64, []), helper.make_tensor_value_info(cond, TensorProto.BOOL, []),
                   helper.make_tensor_value_info(state, TensorProto.FLOAT, SHAPE)]
            body = self.body(state, depth, ins, cond)
            return self.node("Loop", [trips, "", x], body=body)
        return self.bounded(self.node("Add", [x, self.derived(self.broadcast())]))

    def body(self, x, depth, inputs=(), cond=None):
        outer, self.inner = self.inner, []
        y = x
        for _ in range(int(self.random.integers(1, 3))):
            y = self.bounded(self.step(y, depth + 1))
        outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, SHAPE)]
        if cond:
            kept = self.node("Identity", [cond])
            outputs.insert(0, helper.make_tensor_value_info(kept, TensorProto.BOOL, []))
        graph = helper.make_graph(self.inner, self.name("g"), list(inputs), outputs)
        self.inner = outer
        return graph

    def make(self):
        x = "x"
        for _ in range(int(self.random.integers(1, 5))):
            x = self.step(x)
        self.nodes.append(helper.make_node("Identity", [x], ["y"]))

    def model(self, weights):
        tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in {**self.integers, **weights}.items()]
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model.SerializeToString()


def engine_of(builder, network, messages, refit, flags=()):
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    for flag in flags:
        config.set_flag(flag)
    if refit:
        config.set_flag(trt.BuilderFlag.REFIT)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RuntimeError("build: " + "; ".join(messages.errors[-2:]))
    return trt.Runtime(messages).deserialize_cuda_engine(plan)


def build(model, refit, messages, half=False):
    builder = trt.Builder(messages)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parser = trt.OnnxParser(network, messages)
    if not parser.parse(model):
        raise RuntimeError("parse: " + "; ".join(parser.get_error(i).desc() for i in range(parser.num_errors)))
    flags = [trt.BuilderFlag.INT8] + ([trt.BuilderFlag.FP16] if half else [])
    return engine_of(builder, network, messages, refit, flags)


def run(engine, x):
    context = engine.create_execution_context()
    y = np.zeros(tuple(context.get_tensor_shape("y")), np.float32)
    x = np.ascontiguousarray(x)
    if os.environ["TENSORWRIGHT_DEVICE"] != "cpu":
        import torch

        on_device = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
        context.set_tensor_address("x", on_device[0].data_ptr())
        context.set_tensor_address("y", on_device[1].data_ptr())
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        assert context.execute_async_v3(stream.cuda_stream)
        stream.synchronize()
        return on_device[1].cpu().numpy()
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    return y


def renewed(random, first, name):
    low, high = (0.3, 1.5) if name.endswith("+") else (0.008, 0.016) if name.startswith("s") else (-1, 1)
    return random.uniform(low, high, first.shape).astype(first.dtype)


def check(want, got, what, most=2e-3):
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    assert np.isfinite(want).sum() == np.isfinite(got).sum(), f"{what}: other infinities"
    difference = float(np.abs(np.where(np.isfinite(want), want - got, 0)).max(initial=0))
    assert difference <= most * scale, f"{what}: differs by {difference:.4g} of {scale:.3g}"


def one_graph(seed, keep=None):
    """Returns (arrays, listed)."""
    graph = Graph(seed)
    graph.make()
    messages = Messages()
    model = graph.model(graph.weights)
    if keep:
        open(os.path.join(keep, f"{seed}.onnx"), "wb").write(model)
    random = np.random.default_rng(seed + 1)
    x = random.uniform(-1, 1, SHAPE).astype(np.float32)
    half = seed % 5 == 4
    most = 4e-2 if half else 2e-3
    engine = build(model, True, messages, half)
    check(run(build(model, False, messages), x), run(engine, x), "before a refit", most)
    refitter = trt.Refitter(engine, messages)
    listed = set(refitter.get_all_weights())
    foreign = {n for n in listed if n not in graph.weights}
    assert not foreign, f"names that the model does not have: {sorted(foreign)}"
    read = needed(graph.nodes)
    missing = sorted(n for n in graph.must & read if n not in listed)
    now = dict(graph.weights)
    for round in range(3):
        names = [n for n in sorted(listed) if round == 1 or random.random() < 0.5]
        for n in names:
            now[n] = renewed(random, graph.weights[n], n)
            assert refitter.set_named_weights(n, trt.Weights(now[n])), f"{n}: {messages.errors[-1:]}"
        before = len(messages.errors)
        if not refitter.refit_cuda_engine():
            text = messages.errors[before] if len(messages.errors) > before else "?"
            # Scales of Q and DQ that the build has taken for equal, or that are refused for another reason that a sentence gives.
            assert "refused" in text, text
            return len(read & set(graph.weights)), len(listed), missing
        assert not refitter.get_missing_weights()
        check(run(build(graph.model(now), False, messages), x), run(engine, x), f"refit {round} of {names}", most)
    for n in sorted(set(graph.weights) - listed):
        assert not refitter.set_named_weights(n, trt.Weights(graph.weights[n])), f"{n} is not listed and is taken"
        assert n in messages.errors[-1]
    return len(read & set(graph.weights)), len(listed), missing


def needed(nodes, outputs=("y",)):
    """Names that the outputs follow from."""
    names = set(outputs)
    for node in reversed(nodes):
        if names & set(node.output):
            names |= set(node.input)
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    names |= needed(list(a.g.node), [o.name for o in a.g.output])
    return names


class Layers:
    """A random network of the API into `network`. replaced: other numbers for arrays by key. After make(), arrays: by key their first
    numbers, and how a refit names them: ("weights", name) or (layer, role)."""

    def __init__(self, seed, network, replaced=()):
        self.random = np.random.default_rng(seed)
        self.network, self.replaced = network, dict(replaced)
        self.arrays, self.kept, self.count = {}, [], 0

    pick, chance = Graph.pick, Graph.chance

    def numbers(self, shape, kind=None):
        """Numbers of a new array: its key and its weights."""
        self.count += 1
        key = f"a{self.count}"
        first = Graph.first(self, shape, kind)
        self.arrays[key] = [first, None]
        values = np.ascontiguousarray(self.replaced.get(key, first))
        self.kept.append(values)
        return key, trt.Weights(values)

    def named(self, key, weights, layer=None, role=None):
        """Sometimes by a name of its own."""
        if layer is None or self.chance(0.4):
            assert self.network.set_weights_name(weights, key)
            self.arrays[key][1] = ("weights", key)
        else:
            self.arrays[key][1] = (layer.name, role)

    def constant(self, shape, kind=None):
        key, weights = self.numbers(shape, kind)
        layer = self.network.add_constant(shape, weights)
        layer.name = "layer " + key
        self.named(key, weights, layer, trt.WeightsRole.CONSTANT)
        return layer.get_output(0)

    def number(self, value):  # not one that a refit sets
        values = np.full((1, 1, 1), value, np.float32)
        self.kept.append(values)
        return self.network.add_constant((1, 1, 1), trt.Weights(values)).get_output(0)

    def binary(self, a, b, op):
        return self.network.add_elementwise(a, b, op).get_output(0)

    def bounded(self, x):
        return self.network.add_activation(x, self.pick(trt.ActivationType.TANH, trt.ActivationType.SIGMOID)).get_output(0)

    def step(self, x):
        n, c, k = SHAPE
        op = trt.ElementWiseOperation
        around = self.pick((1, 1, k), (1, c, 1), (1, c, k), (1, 1, 1), SHAPE)
        kind = self.pick("binary", "binary", "twice", "dead", "norm", "matmul", "conv", "scale", "connected", "prelu", "rnn", "loop", "swish",
                         "deconv", "shuffled", "if")
        if kind == "binary":
            return self.binary(x, self.constant(around), self.pick(op.SUM, op.PROD, op.SUB, op.MAX))
        if kind == "twice":
            w = self.constant(around)
            return self.binary(self.binary(x, w, op.PROD), w, op.SUM)
        if kind == "dead":
            w = self.constant(around)
            self.binary(x, w, op.MIN)
            return self.binary(x, w, self.pick(op.SUM, op.PROD))
        if kind == "shuffled":
            s = self.network.add_shuffle(self.constant((k, c)))
            s.first_transpose = (1, 0)
            s.reshape_dims = (1, c, k)
            return self.binary(x, s.get_output(0), self.pick(op.SUM, op.PROD))
        if kind == "norm":
            reduce = lambda v: self.network.add_reduce(v, trt.ReduceOperation.AVG, 4, True).get_output(0)
            d = self.binary(x, reduce(x), op.SUB)
            v = self.binary(reduce(self.binary(d, d, op.PROD)), self.number(1e-3), op.SUM)
            y = self.binary(d, self.network.add_unary(v, trt.UnaryOperation.SQRT).get_output(0), op.DIV)
            return self.binary(self.binary(y, self.constant((1, 1, k)), op.PROD), self.constant((1, 1, k)), op.SUM)
        if kind == "matmul":
            none = trt.MatrixOperation.NONE
            return self.bounded(self.network.add_matrix_multiply(x, none, self.constant((1, k, k)), self.pick(none, trt.MatrixOperation.TRANSPOSE)).get_output(0))
        if kind in ("conv", "deconv", "scale", "connected"):
            s = self.network.add_shuffle(x)
            s.reshape_dims = (n, c * k, 1, 1) if kind == "connected" else (n, c, 2, k // 2)
            y = s.get_output(0)
            none = trt.Weights()
            if kind == "scale":
                mode, many = self.pick((trt.ScaleMode.UNIFORM, 1), (trt.ScaleMode.CHANNEL, c), (trt.ScaleMode.ELEMENTWISE, c * k))
                (a, shift), (b, scale) = self.numbers((many,)), self.numbers((many,))
                layer = self.network.add_scale(y, mode, shift, scale, none)
                roles = [(a, shift, trt.WeightsRole.SHIFT), (b, scale, trt.WeightsRole.SCALE)]
            else:
                (a, w), (b, bias) = self.numbers((c, c, 1, 1) if kind != "connected" else (c * k, c * k)), self.numbers((c if kind != "connected" else c * k,))
                if kind == "connected":
                    layer = self.network.add_fully_connected(y, c * k, w, bias)
                else:
                    add = self.network.add_convolution_nd if kind == "conv" else self.network.add_deconvolution_nd
                    layer = add(y, c, (1, 1), w, bias)
                roles = [(a, w, trt.WeightsRole.KERNEL), (b, bias, trt.WeightsRole.BIAS)]
            layer.name = "layer " + a
            for key, weights, role in roles:
                self.named(key, weights, layer, role)
            s = self.network.add_shuffle(self.bounded(layer.get_output(0)))
            s.reshape_dims = SHAPE
            return s.get_output(0)
        if kind == "prelu":
            return self.network.add_parametric_relu(x, self.constant(self.pick((1, 1, k), (1, c, 1)))).get_output(0)
        if kind == "rnn":
            cell, gates = self.pick((trt.RNNOperation.RELU, ["INPUT"]), (trt.RNNOperation.TANH, ["INPUT"]),
                                    (trt.RNNOperation.GRU, ["UPDATE", "RESET", "HIDDEN"]), (trt.RNNOperation.LSTM, ["INPUT", "FORGET", "CELL", "OUTPUT"]))
            layer = self.network.add_rnn_v2(x, 1, k, c, cell)
            for gate in gates:
                for is_w in (True, False):
                    for shape, set in (((k, k), layer.set_weights_for_gate), ((k,), layer.set_bias_for_gate)):
                        key, weights = self.numbers(shape)
                        set(0, getattr(trt.RNNGateType, gate), is_w, weights)
                        if self.chance(0.8):
                            self.named(key, weights)
                        else:
                            del self.arrays[key]
            return self.bounded(layer.get_output(0))
        if kind == "loop":  # a cell: h = tanh(x W + h R + b)
            loop = self.network.add_loop()
            steps = np.array(c, np.int32)
            self.kept.append(steps)
            loop.add_trip_limit(self.network.add_constant((), trt.Weights(steps)).get_output(0), trt.TripLimit.COUNT)
            none = trt.MatrixOperation.NONE
            zero = np.zeros((n, k), np.float32)
            self.kept.append(zero)
            h = loop.add_recurrence(self.network.add_constant((n, k), trt.Weights(zero)).get_output(0))
            row = loop.add_iterator(x, 1).get_output(0)
            product = lambda v, w: self.network.add_matrix_multiply(v, none, w, none).get_output(0)
            y = self.binary(product(row, self.constant((k, k))), product(h.get_output(0), self.constant((k, k))), op.SUM)
            y = self.binary(y, self.constant((1, k)), op.SUM)
            z = self.network.add_activation(y, trt.ActivationType.TANH).get_output(0)
            h.set_input(1, z)
            out = loop.add_loop_output(z, trt.LoopOutput.CONCATENATE, 1)
            out.set_input(1, self.network.add_constant((), trt.Weights(steps)).get_output(0))
            return out.get_output(0)
        if kind == "if":
            total = self.network.add_reduce(x, trt.ReduceOperation.SUM, 7, False).get_output(0)
            zero = np.zeros((), np.float32)
            self.kept.append(zero)
            both = self.network.add_if_conditional()
            both.set_condition(self.binary(total, self.network.add_constant((), trt.Weights(zero)).get_output(0), op.GREATER))
            inner = both.add_input(x).get_output(0)
            return both.add_output(self.binary(inner, self.constant(around), op.SUM), self.binary(inner, self.constant(around), op.PROD)).get_output(0)
        y = self.binary(x, self.constant(around), op.SUM)
        return self.binary(y, self.network.add_activation(y, trt.ActivationType.SIGMOID).get_output(0), op.PROD)

    def make(self):
        x = self.network.add_input("x", trt.float32, SHAPE)
        for _ in range(int(self.random.integers(1, 6))):
            x = self.step(x)
        y = self.network.add_identity(x).get_output(0)
        y.name = "y"
        self.network.mark_output(y)


def network_engine(seed, refit, messages, replaced=()):
    builder = trt.Builder(messages)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    layers = Layers(seed, network, replaced)
    layers.make()
    return engine_of(builder, network, messages, refit), layers


def one_network(seed, keep=None):
    messages = Messages()
    random = np.random.default_rng(seed + 1)
    x = random.uniform(-1, 1, SHAPE).astype(np.float32)
    engine, layers = network_engine(seed, True, messages)
    check(run(network_engine(seed, False, messages)[0], x), run(engine, x), "before a refit")
    refitter = trt.Refitter(engine, messages)
    names, roles = set(refitter.get_all_weights()), set(zip(*refitter.get_all()))

    def is_listed(how):
        return how[1] in names if how[0] == "weights" else how in roles

    def put(how, values):
        return refitter.set_named_weights(how[1], trt.Weights(values)) if how[0] == "weights" else refitter.set_weights(*how, trt.Weights(values))

    listed = {k for k, (_, how) in layers.arrays.items() if is_listed(how)}
    missing = sorted(k for k, (first, _) in layers.arrays.items() if k not in listed and first.size > 1)
    now = {}
    for round in range(3):
        changed = [k for k in sorted(listed) if round == 1 or random.random() < 0.5]
        for k in changed:
            now[k] = random.uniform(-1, 1, layers.arrays[k][0].shape).astype(np.float32)
            assert put(layers.arrays[k][1], now[k]), f"{k}: {messages.errors[-1:]}"
        assert refitter.refit_cuda_engine(), messages.errors[-1:]
        check(run(network_engine(seed, False, messages, now)[0], x), run(engine, x), f"refit {round} of {changed}")
    for k in sorted(set(layers.arrays) - listed):
        assert not put(layers.arrays[k][1], layers.arrays[k][0]), f"{k} is not listed and is taken"
    return len(layers.arrays), len(listed), missing


KINDS = {"onnx": one_graph, "layers": one_network}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(30))
def test_refit_is_a_build(kind, seed):
    arrays, listed, missing = KINDS[kind](seed)
    assert not missing


def main(arguments):
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--keep")
    args = parser.parse_args(arguments)
    wrong, end = 0, time.monotonic() + args.seconds
    for kind in args.kinds or KINDS:
        failed = arrays = listed = unlisted = 0
        seeds = range(args.seed, args.seed + args.count)
        for done, seed in enumerate(seeds):
            if time.monotonic() > end:
                seeds = seeds[:done]
                break
            try:
                a, l, missing = KINDS[kind](seed, args.keep)
                arrays, listed = arrays + a, listed + l
                if missing:
                    unlisted += 1
                    print(f"{kind} {seed}: not listed: {missing}", flush=True)
            except Exception as e:
                failed += 1
                print(f"{kind} {seed}: {type(e).__name__}: {str(e)[:300]}", flush=True)
        print(f"{kind}: {len(seeds)} seeds from {args.seed}: {failed} failed, {unlisted} with arrays that are not listed; "
              f"{listed} of {arrays} arrays listed")
        wrong += failed + unlisted
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
