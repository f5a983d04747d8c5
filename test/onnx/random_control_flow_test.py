# SPDX-License-Identifier: Apache-2.0
"""Random graphs of RNN, GRU, LSTM, Loop, Scan and If against ONNX Runtime.

usage: random_control_flow_test.py TRTEXEC [FIRST_SEED [COUNT]]

Each seed is one graph; it is built and run by trtexec, whose outputs must be those of ONNX Runtime. What the importer
refuses is counted apart and its reasons are printed. Ends with 0 when nothing differs, 77 where onnx or onnxruntime is
missing. --keep DIR leaves the models that fail there; --unknown KIND names graphs of that kind (recurrent, unrolled,
masked, counted) in which no recurrent layer is known.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

F, I64, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FUNCTIONS = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign", "Softplus", "ScaledTanh",
             "ThresholdedRelu", "Affine"]


class Net:
    """A graph under construction; values are (name, shape, type)."""

    def __init__(self, rng, parent=None):
        self.rng, self.parent = rng, parent
        self.nodes, self.inits, self.inputs, self.feeds, self.shapes = [], [], [], {}, {}
        self.counter = parent.counter if parent else [0]

    def name(self, stem="v"):
        self.counter[0] += 1
        return f"{stem}{self.counter[0]}"

    def coin(self, p=0.5):
        return self.rng.random() < p

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def const(self, array, stem="w"):
        name = self.name(stem)
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def numbers(self, *shape):
        return (self.rng.uniform(-1, 1, shape) / max(1, shape[-1] if shape else 1) ** 0.5).astype(np.float32)

    def weights(self, *shape):
        return self.const(self.numbers(*shape))

    def input(self, *shape, integers=None, dynamic=None):
        name = self.name("x")
        if integers is None:
            self.feeds[name] = (self.rng.uniform(-1, 1, shape)).astype(np.float32)
            dims = list(shape)
            if dynamic is not None:  # one dimension that has a profile
                dims[dynamic] = "d_" + name
                self.shapes[name] = [[n if d == dynamic else s for d, s in enumerate(shape)]
                                     for n in (1, shape[dynamic], shape[dynamic] + 3)]
            self.inputs.append(helper.make_tensor_value_info(name, F, dims))
        else:
            self.feeds[name] = self.rng.integers(integers[0], integers[1] + 1, shape).astype(np.int32)
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT32, list(shape)))
        return name

    def op(self, kind, inputs, outputs=1, **attrs):
        names = [self.name() for _ in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(kind, inputs, names, name=self.name(kind), **attrs))
        return names[0] if len(names) == 1 else names


# ---- layers of cells


def functions_of(net, count):
    """Attributes activations, activation_alpha, activation_beta; often none."""
    if net.coin(0.6):
        return {}
    names = [net.pick(*FUNCTIONS) for _ in range(count)]
    attrs = {"activations": names}
    # ONNX Runtime takes alphas and betas of those functions that have one, in order.
    alpha = {"LeakyRelu": 0.1, "Elu": 0.7, "HardSigmoid": 0.3, "ScaledTanh": 0.8, "ThresholdedRelu": 0.2, "Affine": 0.6}
    beta = {"HardSigmoid": 0.4, "ScaledTanh": 0.9, "Affine": 0.1}
    if any(n in alpha for n in names):
        attrs["activation_alpha"] = [alpha[n] for n in names if n in alpha]
    if any(n in beta for n in names):
        attrs["activation_beta"] = [beta[n] for n in names if n in beta]
    return attrs


def cells(net, x, steps, batch, inputs):
    """x [T,N,E] -> [T,N,directions * H], and H of it."""
    kind = net.pick("RNN", "GRU", "LSTM")
    gates, of_each = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[kind]
    direction = net.pick("forward", "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    h = net.pick(1, 2, 3, 5, 8, 9, 16, 17)
    attrs = {"hidden_size": h, "direction": direction, **functions_of(net, of_each * d)}
    if net.coin(0.15):
        attrs["clip"] = float(net.rng.uniform(0.3, 2))
    if kind == "GRU" and net.coin():
        attrs["linear_before_reset"] = 1
    if kind == "LSTM" and net.coin(0.15):
        attrs["input_forget"] = 1
    ins = [x, net.weights(d, gates * h, inputs), net.weights(d, gates * h, h)]
    optional = [net.weights(d, 2 * gates * h) if net.coin(0.7) else ""]
    # The last state of a sequence of length 0 is its initial one; ONNX Runtime gives zeros.
    optional.append(net.input(batch, integers=(1, steps)) if net.coin(0.3) else "")
    optional.append(net.input(d, batch, h) if net.coin() else "")
    if kind == "LSTM":
        optional.append(net.input(d, batch, h) if net.coin() else "")
        optional.append(net.weights(d, 3 * h) if net.coin(0.3) else "")
    while optional and not optional[-1]:
        optional.pop()
    y = net.op(kind, ins + optional, [net.name() for _ in range(3 if kind == "LSTM" else 2)], **attrs)
    extra = [v for v in y[1:] if net.coin()]
    turned = net.op("Transpose", [y[0]], perm=[0, 2, 1, 3])
    out = net.op("Reshape", [turned, net.const(np.array([steps, batch, d * h]))])
    return out, d * h, extra


def recurrent(net):
    steps, batch, e = net.pick(1, 2, 3, 7), net.pick(1, 2, 3, 5), net.pick(1, 2, 4, 7, 8)
    x = net.input(steps, batch, e)
    outputs = []
    for _ in range(net.pick(1, 1, 2, 3)):
        x, e, extra = cells(net, x, steps, batch, e)
        outputs += extra
        if net.coin(0.2):
            x = net.op("Add", [x, net.weights(e)])
    return outputs + [x]


# ---- cells spelled out


def gate(net, parts, width, scheme):
    """A sum of products with the parts [N, e], and a bias."""
    if scheme == "gemm":
        total = None
        for v, e in parts:
            w = net.weights(width, e)
            y = net.op("Gemm", [v, w, net.weights(width)] if net.coin(0.7) else [v, w], transB=1)
            total = net.op("Add", [total, y]) if total else y
        return total
    if scheme == "joined":
        row = net.op("Concat", [v for v, _ in parts], axis=1)
        y = net.op("MatMul", [row, net.weights(sum(e for _, e in parts), width)])
        return net.op("Add", [y, net.weights(width)])
    total = net.weights(width)
    for v, e in parts:
        total = net.op("Add", [net.op("MatMul", [v, net.weights(e, width)]), total])
    return total


class Cell:
    """One step of a cell; the weights are made by the first step and used by all."""

    def __init__(self, net, e, h):
        self.net, self.e, self.h = net, e, h
        self.kind = net.pick("rnn", "lstm", "gru", "gru_reset_after")
        self.scheme = net.pick("gemm", "joined", "apart")
        self.together = net.coin() and self.kind != "gru"
        self.swap, self.form = net.coin(), net.pick(0, 1, 2)
        self.made, self.seed = [], int(net.rng.integers(1 << 30))

    def replay(self, net, make):
        """Runs `make`, whose constants are those of the first step."""
        mine, original = iter(list(self.made)), net.weights

        def weights(*shape):  # not of net.rng, which draws the same choices in each step
            if self.first:
                numbers = np.random.default_rng([self.seed, len(self.made)]).uniform(-1, 1, shape)
                self.made.append(net.const((numbers / shape[-1] ** 0.5).astype(np.float32)))
                return self.made[-1]
            return next(mine)
        self.first = not self.made
        state = net.rng.bit_generator.state
        if not self.first:
            net.rng.bit_generator.state = self.state
        else:
            self.state = state
        net.weights = weights
        try:
            return make()
        finally:
            net.weights = original
            if not self.first:
                net.rng.bit_generator.state = state

    def gates(self, net, x, h, count):
        parts = [(x, self.e), (h, self.h)]
        if not self.together:
            return [gate(net, parts, self.h, self.scheme) for _ in range(count)]
        all_gates = gate(net, parts, self.h * count, self.scheme)
        return net.op("Split", [all_gates, net.const(np.array([self.h] * count))], [net.name() for _ in range(count)],
                      axis=1)

    def step(self, net, x, state):
        return self.replay(net, lambda: self.spell(net, x, state))

    def spell(self, net, x, state):
        h = state[0]
        if self.kind == "rnn":
            return [net.op("Relu" if self.form == 1 else "Tanh", [gate(net, [(x, self.e), (h, self.h)], self.h,
                                                                      self.scheme)])]
        if self.kind == "lstm":
            i, f, g, o = self.gates(net, x, h, 4)
            i, f, o = [net.op("Sigmoid", [v]) for v in (i, f, o)]
            c = net.op("Add", [net.op("Mul", [f, state[1]]), net.op("Mul", [net.op("Tanh", [g]), i])])
            return [net.op("Mul", [o, net.op("Tanh", [c])]), c]
        z, r = [net.op("Sigmoid", [gate(net, [(x, self.e), (h, self.h)], self.h, self.scheme)]) for _ in range(2)]
        if self.kind == "gru":
            n = net.op("Tanh", [gate(net, [(x, self.e), (net.op("Mul", [r, h]), self.h)], self.h, self.scheme)])
        else:
            of_x = net.op("Add", [net.op("MatMul", [x, net.weights(self.e, self.h)]), net.weights(self.h)])
            inner = net.op("Add", [net.op("MatMul", [h, net.weights(self.h, self.h)]), net.weights(self.h)])
            n = net.op("Tanh", [net.op("Add", [of_x, net.op("Mul", [r, inner])])])
        if self.form == 0:
            one = net.const(np.float32(1))
            return [net.op("Add", [net.op("Mul", [net.op("Sub", [one, z]), n]), net.op("Mul", [z, h])])]
        if self.form == 1:
            return [net.op("Add", [n, net.op("Mul", [z, net.op("Sub", [h, n])])])]
        return [net.op("Add", [h, net.op("Mul", [net.op("Sub", [n, h]), z])])]


def unrolled(net):
    steps, batch, e, h = net.pick(2, 3, 5), net.pick(1, 2, 3), net.pick(2, 4, 7), net.pick(3, 4, 8)
    first = net.coin()  # batch first
    x = net.input(batch, steps, e) if first else net.input(steps, batch, e)
    axis = 1 if first else 0
    how = net.pick("gather", "slice", "split")
    parts = net.op("Split", [x, net.const(np.array([1] * steps))], [net.name() for _ in range(steps)],
                   axis=axis) if how == "split" else None

    def at(t):
        if how == "gather":
            return net.op("Gather", [x, net.const(np.array(t))], axis=axis)
        v = parts[t] if parts else net.op("Slice", [x] + [net.const(np.array([n])) for n in (t, t + 1, axis)])
        return net.op("Squeeze", [v, net.const(np.array([axis]))])
    xs = [at(t) for t in (range(steps) if net.coin(0.7) else reversed(range(steps)))]
    outputs = []
    for layer in range(net.pick(1, 1, 2)):
        cell = Cell(net, e, h)
        zeros = net.const(np.zeros((batch, h), np.float32)) if net.coin() else None
        state = [zeros or net.input(batch, h) for _ in range(2)]
        hs = []
        for v in xs:
            state = cell.step(net, v, state)
            hs.append(state[0])
        outputs += [s for s in state if net.coin()]
        xs, e = hs, h
    if net.coin(0.7):
        axis = net.pick(0, 1)
        lifted = [net.op("Unsqueeze", [v, net.const(np.array([axis]))]) for v in xs]
        outputs.append(net.op("Concat", lifted, axis=axis))
    return outputs + [net.op("Relu", [xs[-1]])]


def masked(net):
    """A cell in a Scan, or in a Loop that gathers its steps; states may stay as they are past the end of a sequence."""
    steps, batch, e, h = net.pick(1, 2, 4, 6), net.pick(1, 2, 3), net.pick(2, 4, 7), net.pick(3, 4, 8)
    by_loop, reverse = net.coin(), net.coin(0.4)
    axis = net.pick(0, 1)
    x = net.input(*((steps, batch, e) if axis == 0 else (batch, steps, e)))
    lengths = net.input(batch, integers=(0, steps + 1)) if net.coin(0.8) else None
    if lengths and net.coin(0.3):
        lengths = net.op("Cast", [lengths], to=I64)
        kind = np.int64
    else:
        kind = np.int32
    cell = Cell(net, e, h)
    states = [net.op("Identity", [net.input(batch, h)]) for _ in range(2 if cell.kind == "lstm" else 1)]
    body = Net(net.rng, net)
    inside = [net.name("s") for _ in states]
    infos = [value_info(s, F, [batch, h]) for s in inside]
    spelled_before = net.coin(0.3) and lengths  # the mask of all steps stands in front of a scan
    mask = None
    if spelled_before:
        numbers = np.arange(steps).reshape(steps, 1).astype(kind)
        row = net.op("Unsqueeze", [lengths, net.const(np.array([0]))])
        mask = net.op("Less", [net.const(numbers), row])
    scanned, scan_infos = [], []
    if by_loop:
        i, go = net.name("i"), net.name("go")
        at = body.op("Sub", [body.const(np.array(steps - 1)), i]) if reverse else i
        x_t = body.op("Gather", [x, at], axis=axis)
        if mask:
            condition = body.op("Gather", [mask, at], axis=0)
        number = at
    else:
        x_t = net.name("x_t")
        scanned, scan_infos = [(x, axis)], [value_info(x_t, F, [batch, e])]
        if mask:
            condition = net.name("m")
            scanned.append((mask, 0))
            scan_infos.append(value_info(condition, B, [batch]))
        elif lengths and net.coin():  # the number of the step goes along
            number = net.name("n")
            scanned.append((net.const(np.arange(steps)), 0))
            scan_infos.append(value_info(number, I64, []))
        elif lengths:  # or is carried
            number = net.name("n")
            states.append(net.const(np.array(steps - 1 if reverse else 0)))
            inside.append(number)
            infos.append(value_info(number, I64, []))
    nexts = cell.step(body, x_t, inside[:2 if cell.kind == "lstm" else 1])
    stacks = [nexts[0]] if not lengths else []
    if lengths:
        if not mask:
            if kind == np.int32:
                cast = body.op("Cast", [number], to=TensorProto.INT32)
            else:
                cast = number
            how = net.pick("less", "greater", "not_ge", "le", "ge_swapped")
            if how == "less":
                condition = body.op("Less", [cast, lengths])
            elif how == "greater":
                condition = body.op("Greater", [lengths, cast])
            elif how == "not_ge":
                condition = body.op("Not", [body.op("GreaterOrEqual", [cast, lengths])])
            elif how == "le":
                condition = body.op("LessOrEqual", [body.op("Add", [cast, body.const(kind(1))]), lengths])
            else:
                condition = body.op("GreaterOrEqual", [cast, lengths])
        flip = not mask and how == "ge_swapped"
        column = body.op("Unsqueeze", [condition, body.const(np.array([1]))])

        def where(new, old):
            return body.op("Where", [column, old, new] if flip else [column, new, old])
        if net.coin():
            stacks.append(where(nexts[0], body.const(np.zeros(net.pick((), (1, 1), (batch, h)), np.float32))))
        nexts = [where(n, o) for n, o in zip(nexts, inside)]
        if net.coin() or not stacks:
            stacks.append(nexts[0])
    if len(states) > len(nexts):
        nexts.append(body.op("Add", [number, body.const(np.array(-1 if reverse else 1))]))
    nexts, stacks = [body.op("Identity", [v]) for v in nexts], [body.op("Identity", [v]) for v in stacks]
    lift(net, body)
    outs = [net.name() for _ in states + stacks]
    next_infos = [value_info(n, i.type.tensor_type.elem_type, [d.dim_value for d in i.type.tensor_type.shape.dim])
                  for n, i in zip(nexts, infos)] + [value_info(v, F, [batch, h]) for v in stacks]
    if by_loop:
        on = body.op("Identity", [go])
        g = graph(body, [value_info(i, I64, []), value_info(go, B, [])] + infos, [value_info(on, B, [])] + next_infos)
        net.op("Loop", [net.const(np.array(steps)), net.const(np.array(True))] + states, outs, body=g)
    else:
        g = graph(body, infos + scan_infos, next_infos)
        net.op("Scan", states + [v for v, _ in scanned], outs, body=g, num_scan_inputs=len(scanned),
               scan_input_axes=[a for _, a in scanned], scan_input_directions=[int(reverse)] * len(scanned),
               scan_output_directions=[net.pick(0, 1) for _ in stacks])
    cells_states = 2 if cell.kind == "lstm" else 1
    return outs[:cells_states] + outs[len(states):]


def counted(net):
    """A cell in a Loop whose condition compares a number of its own, as tf2onnx writes loops of Keras, or any such
    loop: the end is never past the sequence."""
    steps, batch, e, h = net.pick(1, 2, 4, 6), net.pick(1, 2, 3), net.pick(2, 4, 7), net.pick(3, 4, 8)
    kind, code = net.pick((np.int32, TensorProto.INT32), (np.int64, I64))
    down, by = net.coin(0.3), net.pick(1, 1, 1, 1, 1, 1, 2)
    dynamic = net.coin(0.4)
    x = net.input(steps, batch, e, dynamic=0 if dynamic else None)

    def number(inside, value):
        return inside.const(np.array(value, kind))
    from_shape = net.coin() or dynamic
    if from_shape:
        size = net.op("Gather", [net.op("Shape", [x]), net.const(np.array(0))], axis=0)
        size = net.op("Cast", [size], to=code) if kind == np.int32 or net.coin() else size
    elif net.coin(0.2):  # the run decides
        size = net.op("Cast", [net.input(integers=(0, steps))], to=code)
    else:
        size = number(net, steps)
    # Trips see the numbers first, first + by, ...; the last one of `size` that they may see is size - 1.
    cell = Cell(net, e, h)
    states = [net.op("Identity", [net.input(batch, h)]) for _ in range(2 if cell.kind == "lstm" else 1)]
    nb_states = len(states)
    first = net.op("Sub", [size, number(net, 1)]) if down else number(net, net.pick(0, 0, 0, 0, 0, 1))
    states.append(first)
    carries_end = net.coin(0.4)
    if carries_end:
        states.append(size)
    has_other = net.coin()  # a counter of its own with a limit of its own
    most = net.pick(2, steps, 2**31 - 1, 2**31 - 1, 2**31 - 1)
    if has_other:
        states.append(number(net, 0))
    inside_names = [net.name("s") for _ in states]
    how, joined_first = net.pick("less", "greater", "not_ge", "le", "not_gt"), net.coin()

    def goes_on(g, at, end, other):
        if down:
            zero = number(g, 0)
            c = {"less": lambda: g.op("Less", [number(g, -1), at]), "greater": lambda: g.op("Greater", [at, number(g, -1)]),
                 "not_ge": lambda: g.op("Not", [g.op("Less", [at, zero])]),
                 "le": lambda: g.op("LessOrEqual", [zero, at]), "not_gt": lambda: g.op("GreaterOrEqual", [at, zero])}[how]()
        else:
            c = {"less": lambda: g.op("Less", [at, end]), "greater": lambda: g.op("Greater", [end, at]),
                 "not_ge": lambda: g.op("Not", [g.op("GreaterOrEqual", [at, end])]),
                 "le": lambda: g.op("LessOrEqual", [g.op("Add", [at, number(g, 1)]), end]),
                 "not_gt": lambda: g.op("Not", [g.op("Greater", [at, g.op("Sub", [end, number(g, 1)])])])}[how]()
        if other:
            less = g.op("Less", [other, number(g, most)])
            c = g.op("And", [less, c] if joined_first else [c, less])
        return c
    body = Net(net.rng, net)
    i, go = net.name("i"), net.name("go")
    at = inside_names[nb_states]
    end = inside_names[nb_states + 1] if carries_end else size
    other = inside_names[-1] if has_other else None
    x_t = body.op("Gather", [x, at], axis=0)
    nexts = cell.step(body, x_t, inside_names[:nb_states])
    stacks = [nexts[0]] if net.coin(0.7) else []
    next_at = body.op("Sub" if down else "Add", [at, number(body, by)])
    nexts.append(next_at)
    if carries_end:
        nexts.append(body.op("Identity", [end]))
    if has_other:
        nexts.append(body.op("Add", [other, number(body, 1)]))
    on = goes_on(body, next_at, end, nexts[-1] if has_other else None)
    if net.coin(0.3):
        on = body.op("And", [on, go])
    on = body.op("Identity", [on])
    nexts, stacks = [body.op("Identity", [v]) for v in nexts], [body.op("Identity", [v]) for v in stacks]
    lift(net, body)
    types = [F] * nb_states + [code] * (len(states) - nb_states)
    shapes = [[batch, h]] * nb_states + [[]] * (len(states) - nb_states)
    infos = [value_info(n, t, d) for n, t, d in zip(inside_names, types, shapes)]
    next_infos = [value_info(n, t, d) for n, t, d in zip(nexts, types, shapes)]
    g = graph(body, [value_info(i, I64, []), value_info(go, B, [])] + infos,
              [value_info(on, B, [])] + next_infos + [value_info(v, F, [batch, h]) for v in stacks])
    start = goes_on(net, first, size, states[-1] if has_other else None)
    trips = net.pick("", net.const(np.array(2**63 - 1)), net.const(np.array(steps)), net.op("Cast", [size], to=I64))
    outs = [net.name() for _ in states + stacks]
    net.op("Loop", [trips, start] + states, outs, body=g)
    return outs[:nb_states] + outs[len(states):]


# ---- loops, scans, conditionals


def body_value(net, values, width):
    """Something [N, width] of a list of such."""
    v = net.pick(*values)
    for _ in range(net.pick(1, 2, 3)):
        kind = net.pick("Tanh", "Relu", "Add", "Mul", "MatMul", "Sub", "Where", "Concat", "Reduce")
        if kind in ("Tanh", "Relu"):
            v = net.op(kind, [v])
        elif kind in ("Add", "Mul", "Sub"):
            v = net.op(kind, [v, net.pick(*values)])
        elif kind == "MatMul":
            v = net.op(kind, [v, net.weights(width, width)])
        elif kind == "Where":
            v = net.op(kind, [net.op("Less", [v, net.pick(*values)]), v, net.pick(*values)])
        elif kind == "Concat":
            both = net.op(kind, [v, net.pick(*values)], axis=1)
            v = net.op("MatMul", [both, net.weights(2 * width, width)])
        else:
            v = net.op("Add", [v, net.op("ReduceMean", [v], axes=[1], keepdims=1)])
    return v


def value_info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def inner(net, values, n, width, depth):
    """A value of the body: plain, or of a loop, scan or conditional inside."""
    if depth > 0 and net.coin(0.4):
        return net.pick(loop, scan, conditional)(net, values, n, width, depth - 1)[0]
    return body_value(net, values, width)


def graph(net, inputs, outputs, name="body"):
    return helper.make_graph(net.nodes, name, inputs, outputs, net.inits)


def lift(net, body):
    """What the body asks for as inputs of the network belongs to the outermost net."""
    net.inputs += body.inputs
    net.feeds.update(body.feeds)


def loop(net, values, n, width, depth):
    body = Net(net.rng, net)
    carried, scanned = net.pick(1, 1, 2), net.pick(0, 1, 2)
    i, go = net.name("i"), net.name("go")
    states = [net.name("s") for _ in range(carried)]
    seen = states + [v for v in values if net.coin()]
    if net.coin(0.4):
        number = body.op("Cast", [i], to=F)
        seen.append(body.op("Add", [net.pick(*seen), number]))
    nexts = [body.op("Identity", [inner(body, seen, n, width, depth)]) for _ in range(carried)]
    stacked = [body.op("Identity", [body_value(body, seen + nexts, width)]) for _ in range(scanned)]
    counted = net.coin(0.7)
    if counted:
        on = body.op("Identity", [go])
    else:
        total = body.op("ReduceSum", [nexts[0]], keepdims=0)
        on = body.op("And", [body.op("Less", [total, body.const(np.float32(net.rng.uniform(-1, 3)))]), go])
    lift(net, body)
    g = graph(body, [value_info(i, I64, []), value_info(go, B, [])] + [value_info(s, F, [n, width]) for s in states],
              [value_info(on, B, [])] + [value_info(v, F, [n, width]) for v in nexts + stacked])
    trips = net.const(np.array(net.pick(0, 1, 2, 4) if counted else 5))
    start = net.const(np.array(True)) if net.coin() or not counted else ""
    outs = [net.name() for _ in range(carried + scanned)]
    net.op("Loop", [trips, start] + [net.pick(*values) for _ in states], outs, body=g)
    result = outs[:carried]
    for v in outs[carried:]:
        result.append(net.op("ReduceSum", [v, net.const(np.array([0]))], keepdims=0) if net.coin() or net.parent else v)
    return result


def scan(net, values, n, width, depth):
    body = Net(net.rng, net)
    steps, scanned, carried, stacked = net.pick(1, 2, 3), net.pick(1, 2), net.pick(0, 1, 1, 2), net.pick(1, 2)
    states, slices = [net.name("s") for _ in range(carried)], [net.name("x") for _ in range(scanned)]
    seen = states + slices + [v for v in values if net.coin()]
    nexts = [body.op("Identity", [inner(body, seen, n, width, depth)]) for _ in range(carried)]
    outs = [body.op("Identity", [body_value(body, seen + nexts, width)]) for _ in range(stacked)]
    lift(net, body)
    g = graph(body, [value_info(s, F, [n, width]) for s in states + slices],
              [value_info(v, F, [n, width]) for v in nexts + outs])
    axes = [net.pick(0, 1, 2) for _ in slices]
    out_axes = [net.pick(0, 1, 2) for _ in outs]

    def whole(axis):
        shape = [n, width]
        shape.insert(axis, steps)
        if net.parent:
            return net.weights(*shape)
        return net.input(*shape)
    names = [net.name() for _ in range(carried + stacked)]
    net.op("Scan", [net.pick(*values) for _ in states] + [whole(a) for a in axes], names, body=g,
           num_scan_inputs=scanned, scan_input_axes=axes, scan_input_directions=[net.pick(0, 1) for _ in slices],
           scan_output_axes=out_axes, scan_output_directions=[net.pick(0, 1) for _ in outs])
    result = names[:carried]
    for v, axis in zip(names[carried:], out_axes):
        inside = net.parent or not result
        result.append(net.op("ReduceSum", [v, net.const(np.array([axis]))], keepdims=0) if inside or net.coin() else v)
    return result


def conditional(net, values, n, width, depth):
    limit = net.const(np.float32(net.rng.uniform(-2, 2)))
    condition = net.op("Less", [net.op("ReduceSum", [net.pick(*values)], keepdims=0), limit])
    count = net.pick(1, 1, 2)
    branches = []
    for name in ("then", "else"):
        body = Net(net.rng, net)
        outs = [body.op("Identity", [inner(body, values, n, width, depth)]) for _ in range(count)]
        lift(net, body)
        branches.append(graph(body, [], [value_info(v, F, [n, width]) for v in outs], name))
    names = [net.name() for _ in range(count)]
    net.op("If", [condition], names, then_branch=branches[0], else_branch=branches[1])
    return names


def control(net):
    n, width = net.pick(1, 2, 3), net.pick(1, 2, 5)
    values = [net.input(n, width) for _ in range(net.pick(1, 2))]
    outputs = []
    for _ in range(net.pick(1, 2)):
        outs = net.pick(loop, scan, conditional)(net, values, n, width, 2)
        outputs += outs
        values.append(outs[0])
    return outputs


# ---- running


def model_of(seed):
    rng = np.random.default_rng(seed)
    net = Net(rng)
    kind = net.pick(recurrent, unrolled, masked, control, counted)
    outputs = [net.op("Identity", [v]) for v in kind(net)]
    g = helper.make_graph(net.nodes, "g", net.inputs,
                          [helper.make_empty_tensor_value_info(v) for v in outputs], net.inits)
    for o in g.output:
        o.type.tensor_type.elem_type = F
    model = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return kind.__name__, model, net.feeds, net.shapes


def run(trtexec, seed, folder):
    kind, model, feeds, shapes = model_of(seed)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        wanted = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"]).run(None, feeds)
    except Exception as e:  # the generator made a graph that ONNX Runtime has no meaning for
        return kind, "invalid", str(e).splitlines()[0][:200]
    for i, (name, array) in enumerate(feeds.items()):
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(array, name).SerializeToString())
    for i, array in enumerate(wanted):
        with open(os.path.join(folder, f"output_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(array, model.graph.output[i].name).SerializeToString())
    command = [trtexec, f"--onnx={path}", f"--loadInputsFrom={folder}", f"--compare={folder}", "--iterations=1",
               "--warmUp=0", "--duration=0", "--avgRuns=1", "--compareAtol=1e-4", "--compareRtol=1e-3",
               "--compareCosine=0.9999", "--verbose"]
    for i, flag in enumerate(("--minShapes", "--optShapes", "--maxShapes") if shapes else ()):
        command.append(flag + "=" + ",".join(f"{name}:{'x'.join(map(str, s[i]))}" for name, s in shapes.items()))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return kind, "hang", "no end after 300 s"
    text = done.stdout + done.stderr
    if done.returncode == 0:
        return kind, "same", text
    errors = [line for line in text.splitlines() if "[E]" in line] or text.splitlines()[-3:]
    if done.returncode < 0:
        return kind, "crash", f"signal {-done.returncode}: " + " | ".join(errors)[:500]
    return kind, "fails", " | ".join(errors)[:500]


def main(args):
    keep = None
    if "--keep" in args:
        at = args.index("--keep")
        keep = args[at + 1]
        del args[at:at + 2]
    show = None
    if "--unknown" in args:
        at = args.index("--unknown")
        show = args[at + 1]
        del args[at:at + 2]
    trtexec, first, count = args[0], int(args[1]) if len(args) > 1 else 1, int(args[2]) if len(args) > 2 else 20
    counts, bad, fused = {}, 0, {}
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            kind, verdict, text = run(trtexec, seed, folder)
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == "same":
                known, all_of = fused.get(kind, (0, 0))
                is_known = re.search(r"fused .*\.cell|recurrence_", text) is not None
                fused[kind] = (known + is_known, all_of + 1)
                if show and not is_known and kind == show:
                    print(f"seed {seed} ({kind}): no cell is known")
            if verdict not in ("same", "invalid"):
                bad += 1
                print(f"seed {seed} ({kind}): {verdict}: {text}", flush=True)
                if keep:
                    shutil.copytree(folder, os.path.join(keep, str(seed)), dirs_exist_ok=True)
            elif verdict == "invalid":
                print(f"seed {seed} ({kind}): no valid graph: {text}", flush=True)
    for kind, (known, all_of) in sorted(fused.items()):
        print(f"{kind}: cells are known in {known} of {all_of} graphs")
    print(f"{count} graphs: " + ", ".join(f"{n} {v}" for v, n in sorted(counts.items())))
    return 1 if bad or not counts.get("same") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
