# SPDX-License-Identifier: Apache-2.0
"""Tiny decoder models for the tests of generation: seeded weights, the ONNX file as exporters write it, and the same in NumPy, which shares
nothing with it but the weights."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import decoding


class Decoder:
    """kind "gpt2": learned positions, LayerNorm, GELU; "llama": rotary positions, RMSNorm, grouped queries, SiLU."""

    def __init__(self, kind="gpt2", layers=2, heads=4, groups=2, head=8, tokens=40, positions=96, seed=0):
        self.kind, self.layers, self.heads, self.head, self.tokens, self.positions = kind, layers, heads, head, tokens, positions
        self.groups = groups if kind == "llama" else heads
        self.width = heads * head
        random = np.random.default_rng(seed)

        def make(*shape, scale=None):
            return (random.standard_normal(shape) * (scale or shape[0] ** -0.5)).astype(np.float32)

        e, g = self.width, self.groups * head
        self.w = {"table": make(tokens, e, scale=1.0), "places": make(positions, e, scale=0.5), "norm": 1 + make(e, scale=0.1)}
        for i in range(layers):
            self.w |= {f"{i}.q": make(e, e), f"{i}.k": make(e, g), f"{i}.v": make(e, g), f"{i}.o": make(e, e), f"{i}.up": make(e, 2 * e),
                       f"{i}.gate": make(e, 2 * e), f"{i}.down": make(2 * e, e), f"{i}.n1": 1 + make(e, scale=0.1), f"{i}.n2": 1 + make(e, scale=0.1)}
        self.w["out"] = make(e, tokens, scale=3 * e**-0.5)  # so that one token is clearly the best

    # In NumPy, all at once, without a cache.

    def _normed(self, x, w):
        if self.kind == "gpt2":
            x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w

    def _turned(self, x):
        """Rotary positions of [S, H, D]."""
        half = self.head // 2
        angle = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(half) / half)
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    def logits(self, tokens, window=0):
        """Of each position, [S, V]."""
        w, s, d = self.w, len(tokens), self.head
        x = w["table"][tokens].astype(np.float64)
        if self.kind == "gpt2":
            x = x + w["places"][:s]
        for i in range(self.layers):
            y = self._normed(x, w[f"{i}.n1"])
            q, k, v = ((y @ w[f"{i}.{n}"]).reshape(s, -1, d) for n in "qkv")
            if self.kind == "llama":
                q, k = self._turned(q), self._turned(k)
            k, v = (np.repeat(t, self.heads // self.groups, 1) for t in (k, v))
            p = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d)
            p = np.where(np.tri(s, dtype=bool) & ~np.tri(s, k=-(window or s), dtype=bool), p, -np.inf)
            p = np.exp(p - p.max(-1, keepdims=True))
            x = x + np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(s, -1) @ w[f"{i}.o"]
            y = self._normed(x, w[f"{i}.n2"])
            up = y @ w[f"{i}.up"]
            if self.kind == "gpt2":
                up = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
            else:
                up = up / (1 + np.exp(-up)) * (y @ w[f"{i}.gate"])
            x = x + up @ w[f"{i}.down"]
        return self._normed(x, w["norm"]) @ w["out"]

    def greedy(self, prompt, count, ends=()):
        """The tokens that follow, greedily."""
        return self.follow(prompt, count, ends, lambda row, tokens: int(row.argmax()))

    def follow(self, prompt, count, ends, choose):
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(choose(self.logits(tokens)[-1], tokens))
            if tokens[-1] in ends:
                break
        return tokens[len(prompt):]

    def sampled(self, prompt, count, ends=(), **settings):
        """Likewise, by the rules of docs/plugins.md."""
        floats, ints = decoding.settings(1, **settings)

        def choose(row, tokens):
            y = decoding.processed(row, tokens, len(prompt), floats[0], ints[0], ends)
            return decoding.sampled(y, len(tokens), floats[0], ints[0])

        return self.follow(prompt, count, ends, choose)

    # As exporters write it.

    def onnx(self, mask=True, places=True, caches="concat", names=("past_key_values.{}.{}", "present.{}.{}"), logits="logits", window=0, triangle=False):
        """The file's bytes. places: positions are an input; False: computed of the mask; None: of the size of the cache. caches: "concat",
        "scatter" (a cache of fixed capacity: write_indices, and no mask but lengths), or None. window: tokens back that are seen, by the
        places of the cache; 0: all. triangle: what is behind a token is a part of a constant, as in GPT-2."""
        return Graph(self, mask and caches != "scatter", places, caches, names, logits, window, triangle).bytes()


def merged(model, change=lambda data: data, **options):
    """As optimum merged two decoders into one file: an If by use_cache_branch, whose other branch has no past. change: what becomes of both before."""
    graphs = [onnx_graph(change(model.onnx(caches=caches, **options))) for caches in ("concat", "first")]
    outer = [helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]), *graphs[0].input]
    outputs = list(graphs[0].output)
    branches = []
    for number, graph in enumerate(graphs):
        renamed = {n: f"{number}/{n}" for node in graph.node for n in node.output} | {t.name: f"{number}/{t.name}" for t in graph.initializer}
        nodes = []
        for node in graph.node:
            node.input[:] = [renamed.get(n, n) for n in node.input]
            node.output[:] = [renamed.get(n, n) for n in node.output]
            nodes.append(node)
        for t in graph.initializer:
            t.name = renamed[t.name]
        results = [helper.make_tensor_value_info(renamed[o.name], TensorProto.FLOAT, None) for o in outputs]
        branches.append(helper.make_graph(nodes, f"branch{number}", [], results, list(graph.initializer)))
    choice = helper.make_node("If", ["use_cache_branch"], [o.name for o in outputs], then_branch=branches[0], else_branch=branches[1])
    graph = helper.make_graph([choice], "merged", outer, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def halved(model, **options):
    """The same in FP16: weights, caches, logits."""
    made = onnx.load_model_from_string(model.onnx(**options))
    for t in made.graph.initializer:
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(np.clip(numpy_helper.to_array(t), -6e4, 6e4).astype(np.float16), t.name))
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return made.SerializeToString()


def onnx_graph(data):
    return onnx.load_model_from_string(data).graph


class Graph:
    """The ONNX graph of a Decoder."""

    def __init__(self, model, mask, places, caches, names, logits, window, triangle):
        self.m, self.mask, self.places, self.caches, self.names, self.logits = model, mask, places, caches, names, logits
        self.nodes, self.weights, self.inputs, self.outputs, self.count, self.window, self.triangle = [], [], [], [], 0, window, triangle

    def input(self, name, shape, kind=TensorProto.INT64):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array, name=None):
        self.count += 1
        name = name or f"c{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op, *inputs, name=None, **attributes):
        self.count += 1
        name = name or f"{op}_{self.count}"
        inputs = [self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in inputs]
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def extent(self, x, axis):
        return self("Gather", self("Shape", x), np.int64(axis), axis=0)

    def norm(self, x, w):
        if self.m.kind == "gpt2":
            return self("LayerNormalization", x, self.m.w[w], epsilon=1e-5)
        mean = self("ReduceMean", self("Pow", x, np.float32(2)), axes=[-1])
        return self("Mul", self("Div", x, self("Sqrt", self("Add", mean, np.float32(1e-5)))), self.m.w[w])

    def heads(self, x, w, count):
        """[B, H, s, D] of a product."""
        y = self("Reshape", self("MatMul", x, self.m.w[w]), np.array([0, 0, count, self.m.head]))
        return self("Transpose", y, perm=[0, 2, 1, 3])

    def turned(self, x, cos, sin):
        half = self.m.head // 2
        a = self("Slice", x, np.array([0]), np.array([half]), np.array([3]))
        b = self("Slice", x, np.array([half]), np.array([2 * half]), np.array([3]))
        other = self("Concat", self("Neg", b), a, axis=3)
        return self("Add", self("Mul", x, cos), self("Mul", other, sin))

    def bytes(self):
        m, kind = self.m, TensorProto.FLOAT
        ids = self.input("input_ids", ["batch", "sequence"])
        mask = self.input("attention_mask", ["batch", "total"]) if self.mask else None
        where = self.input("position_ids", ["batch", "sequence"]) if self.places else None
        pasts = []
        scatter, growing = self.caches == "scatter", self.caches == "concat"
        if scatter:
            index = self.input("write_indices", ["batch"])
            lengths = self.input("nonpad_kv_seqlen", ["batch"])
        for i in range(m.layers if self.caches not in (None, "first") else 0):
            pasts.append([self.input(self.names[0].format(i, n), ["batch", m.groups, "past", m.head], kind) for n in ("key", "value")])
        new = self.extent(ids, 1)
        past = self.extent(pasts[0][0], 2) if growing else self.constant(np.int64(0))
        total = self.extent(pasts[0][0], 2) if scatter else self("Add", past, new)
        ahead = self("Range", past, total, np.int64(1)) if not scatter else self("Range", np.int64(0), new, np.int64(1))
        if scatter:
            ahead = self("Add", self("Unsqueeze", index, np.array([1])), self("Unsqueeze", ahead, np.array([0])))  # [B, s]
            ahead = self("Unsqueeze", ahead, np.array([1, 3]))
        else:
            ahead = self("Unsqueeze", ahead, np.array([0, 1, 3]))
        columns = self("Unsqueeze", self("Range", np.int64(0), total, np.int64(1)), np.array([0, 1, 2]))
        hidden = self("Greater", columns, ahead)  # [1 or B, 1, s, total]
        if self.triangle:
            hidden, ends = ~np.tri(m.positions, dtype=bool)[None, None], self("Unsqueeze", total, np.array([0]))
            hidden = self("Slice", hidden, self("Unsqueeze", past, np.array([0])), ends, np.array([2]))
            hidden = self("Slice", hidden, np.array([0]), ends, np.array([3]))
        if self.window:
            hidden = self("Or", hidden, self("LessOrEqual", columns, self("Sub", ahead, np.int64(self.window))))
        if mask:
            empty = self("Equal", self("Unsqueeze", mask, np.array([1, 2])), np.int64(0))
            hidden = self("Or", hidden, empty)
        if scatter:
            hidden = self("Or", hidden, self("GreaterOrEqual", columns, self("Unsqueeze", lengths, np.array([1, 2, 3]))))
        bias = self("Where", hidden, np.float32(-1e9), np.float32(0))
        if self.places is False and mask:
            where = self("Sub", self("CumSum", mask, np.int64(1)), np.int64(1))
            where = self("Slice", where, self("Unsqueeze", past, np.array([0])), np.array([2**31 - 1]), np.array([1]))
            where = self("Max", where, np.int64(0))
        elif where is None:
            where = self("Unsqueeze", self("Range", past, total, np.int64(1)), np.array([0]))
        x = self("Gather", m.w["table"], ids, axis=0)
        if m.kind == "gpt2":
            x = self("Add", x, self("Gather", m.w["places"], where, axis=0))
        else:
            half = m.head // 2
            angle = np.arange(m.positions)[:, None] * 10000.0 ** (-np.arange(half) / half)
            cos, sin = (self("Unsqueeze", self("Gather", np.tile(f(angle), 2).astype(np.float32), where, axis=0), np.array([1])) for f in (np.cos, np.sin))
        for i in range(m.layers):
            y = self.norm(x, f"{i}.n1")
            q, k, v = self.heads(y, f"{i}.q", m.heads), self.heads(y, f"{i}.k", m.groups), self.heads(y, f"{i}.v", m.groups)
            if m.kind == "llama":
                q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
            if self.caches:
                names = [self.names[1].format(i, n) for n in ("key", "value")]
                if self.caches == "first":
                    k, v = (self("Identity", t, name=n) for t, n in zip((k, v), names))
                elif scatter:
                    k, v = (self("TensorScatter", p, t, index, name=n) for p, t, n in zip(pasts[i], (k, v), names))
                else:
                    k, v = (self("Concat", p, t, name=n, axis=2) for p, t, n in zip(pasts[i], (k, v), names))
                self.outputs += [helper.make_tensor_value_info(n, kind, ["batch", m.groups, "all", m.head]) for n in names]
            if m.groups != m.heads:
                r = m.heads // m.groups
                shape = self("Concat", np.array([1, 1, r]), self("Unsqueeze", total, np.array([0])), np.array([1]), axis=0)
                k, v = (self("Reshape", self("Expand", self("Unsqueeze", t, np.array([2])), shape), np.array([0, m.heads, -1, m.head])) for t in (k, v))
            p = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
            p = self("Softmax", self("Add", self("Mul", p, np.float32(m.head**-0.5)), bias), axis=-1)
            y = self("Reshape", self("Transpose", self("MatMul", p, v), perm=[0, 2, 1, 3]), np.array([0, 0, m.width]))
            x = self("Add", x, self("MatMul", y, m.w[f"{i}.o"]))
            y = self.norm(x, f"{i}.n2")
            up = self("MatMul", y, m.w[f"{i}.up"])
            if m.kind == "gpt2":
                cube = self("Mul", self("Add", up, self("Mul", self("Pow", up, np.float32(3)), np.float32(0.044715))), np.float32((2 / np.pi) ** 0.5))
                up = self("Mul", self("Mul", up, np.float32(0.5)), self("Add", self("Tanh", cube), np.float32(1)))
            else:
                up = self("Mul", self("Mul", up, self("Sigmoid", up)), self("MatMul", y, m.w[f"{i}.gate"]))
            x = self("Add", x, self("MatMul", up, m.w[f"{i}.down"]))
        self("MatMul", self.norm(x, "norm"), m.w["out"], name=self.logits)
        self.outputs.insert(0, helper.make_tensor_value_info(self.logits, kind, ["batch", "sequence", m.tokens]))
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, self.weights)
        opset = 24 if scatter else 17
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 18 else 10).SerializeToString()


CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz.,!?'0123-<>"  # one token each


def tokenizer(characters=CHARACTERS, special=("</s>",)):
    """The text of a tokenizer.json whose tokens are characters; special ones stand behind them."""
    words = {c: i for i, c in enumerate(characters)}
    added = [{"id": len(words) + i, "content": s, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, s in enumerate(special)]
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False},
        "post_processor": None, "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": " "},
    })


def folder(path, model, end=None, data=None, **files):
    """A folder as exporters leave it: model.onnx, config.json, tokenizer.json, generation_config.json."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.onnx").write_bytes(data or model.onnx())
    config = {"model_type": model.kind, "vocab_size": model.tokens, "max_position_embeddings": model.positions}
    characters = CHARACTERS[: model.tokens - 1]
    contents = {"config": config, "tokenizer": json.loads(tokenizer(characters)), "generation_config": {"eos_token_id": end}} | files
    for name, content in contents.items():
        if content is not None:
            (path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def apart(data: bytes, three: bool = False) -> tuple[bytes, bytes]:
    """Of a decoder of tokens the file that makes embeddings of these, and one that reads embeddings. three: places are those of time, height and width."""
    model = onnx.load_model_from_string(data)
    graph = model.graph
    table = next(n for n in graph.node if n.op_type == "Gather" and n.input[1] == "input_ids")
    weights = next(w for w in graph.initializer if w.name == table.input[0])
    ids = next(i for i in graph.input if i.name == "input_ids")
    embeds = helper.make_tensor_value_info("inputs_embeds", TensorProto.FLOAT, ["batch", "sequence", weights.dims[1]])
    first = helper.make_graph([helper.make_node("Gather", table.input, ["inputs_embeds"])], "embed", [ids], [embeds], [weights])
    instead = {table.output[0]: "inputs_embeds", "input_ids": "like tokens"}
    nodes = [helper.make_node("ReduceMax", ["inputs_embeds"], ["like tokens"], axes=[2], keepdims=0)]  # whose extents are read
    inputs = [embeds, *(i for i in graph.input if i.name != "input_ids")]
    if three:
        inputs = [helper.make_tensor_value_info(i.name, TensorProto.INT64, [3, "batch", "sequence"]) if i.name == "position_ids" else i for i in inputs]
        instead["position_ids"] = "places of time"
        graph.initializer.append(numpy_helper.from_array(np.array(0), "time"))
        nodes.append(helper.make_node("Gather", ["position_ids", "time"], ["places of time"], axis=0))
    for node in graph.node:
        if node is not table and list(node.output) != list(table.output):
            node.input[:] = [instead.get(n, n) for n in node.input]
            nodes.append(node)
    del graph.input[:], graph.node[:]
    graph.input.extend(inputs)
    graph.node.extend(nodes)
    embedding = helper.make_model(first, opset_imports=model.opset_import, ir_version=model.ir_version)
    return embedding.SerializeToString(), model.SerializeToString()
