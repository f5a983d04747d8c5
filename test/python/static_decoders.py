# SPDX-License-Identifier: Apache-2.0
"""Small Llamas with static caches, inputs and outputs of one length, as exporters write them. counted(): Transformers' exporter (torch.export), each cache
with its cumulative_length, rows written by ScatterND between transposes, masks of each new token as inputs. placed(): wrappers of StaticCache, all
caches written at cache_position, by ScatterElements (TorchScript's index_copy) or by ScatterND (torch.export's); the mask is computed of it."""

import json

import numpy as np
from onnx import helper

import decoders
from decoders import BOOL, FLOAT, GROUPS, HEADS, INT64, LAYERS, LOWEST, SIZE, VOCABULARY, WIDTH

WINDOW = 6


def by_tuples(g, cache, places, update):
    """cache[:, :, places] = update, as index_put is translated."""
    front = g.op("Transpose", cache, perm=[2, 0, 1, 3])
    rows = g.op("Transpose", update, perm=[2, 0, 1, 3])
    kept = g.op("Gather", g.op("Shape", cache), g.ints(0, 1, 3), axis=0)
    rows = g.op("Expand", rows, g.op("Concat", g.op("Shape", places), kept, axis=0))
    return g.op("Transpose", g.op("ScatterND", front, g.op("Unsqueeze", places, g.ints(-1)), rows), perm=[1, 2, 0, 3])


def by_elements(g, cache, places, update):
    """index_copy of TorchScript."""
    index = g.op("Expand", g.op("Unsqueeze", places, g.ints(0, 1, 3)), g.op("Shape", update))
    return g.op("ScatterElements", cache, index, update, axis=2)


def body(g, ids, places, keys, values, write, mask, seed):
    """write(layer, cache, update); mask(layer): of numbers, added."""
    g.random = np.random.default_rng(seed)  # weights are those of decoders.llama_like()
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids)
    tables = decoders.rotary_tables(g, places, SIZE)
    presents = []
    for i in range(LAYERS):
        y = decoders.rms_norm(g, x)
        q, k, v = (decoders.apart(g, g.linear(y, WIDTH, n * SIZE), n) for n in (HEADS, GROUPS, GROUPS))
        q, k = decoders.rotated(g, q, tables), decoders.rotated(g, k, tables)
        k, v = write(i, keys[i], k), write(i, values[i], v)
        presents.append((k, v))
        y = decoders.attention(g, q, decoders.repeated(g, k), decoders.repeated(g, v), mask(i))
        x = g.op("Add", x, g.linear(y, WIDTH, WIDTH))
        x = g.op("Add", x, decoders.gated(g, decoders.rms_norm(g, x), decoders.silu))
    g.output("logits", g.linear(decoders.rms_norm(g, x), WIDTH, VOCABULARY))
    return presents


def counted(seed=2, kinds=None, length="length", batch="batch", floats=False):
    """kinds: of masks, one for each layer ("full", "sliding"), or None: one for all. floats: masks are added numbers."""
    g = decoders.Graph(seed, opset=17)
    ids = g.input("input_ids", INT64, batch, "s")
    names = {k: f"attention_mask.{k}_attention" for k in kinds} if kinds else {None: "attention_mask"}
    made = {k: g.input(n, FLOAT if floats else BOOL, batch, 1, "s", length) for k, n in names.items()}
    places = g.input("position_ids", INT64, batch, "s")
    keys, values, counts = [], [], []
    for i in range(LAYERS):
        for list_, kind in ((keys, "keys"), (values, "values")):
            list_.append(g.input(f"input.cache.layers.{i}.{kind}", FLOAT, batch, GROUPS, length, SIZE))
        counts.append(g.input(f"input.cache.layers.{i}.cumulative_length", INT64))
    zero, one = g.const(np.int64(0)), g.const(np.int64(1))
    new = g.op("Squeeze", g.op("Slice", g.op("Shape", ids), g.ints(1), g.ints(2), g.ints(0)))
    where = [g.op("Add", g.op("Range", zero, new, one), c) for c in counts]
    added = made if floats else {k: g.op("Where", m, 0.0, LOWEST) for k, m in made.items()}
    presents = body(g, ids, places, keys, values, lambda i, c, u: by_tuples(g, c, where[i], u), lambda i: added[kinds[i] if kinds else None], seed)
    for i, pair in enumerate(presents):
        for kind, x in zip(("keys", "values"), pair):
            g.output(f"output.cache.layers.{i}.{kind}", x)
        g.op("Add", counts[i], new, outputs=[f"output.cache.layers.{i}.cumulative_length"])
        g.outputs.append(helper.make_tensor_value_info(f"output.cache.layers.{i}.cumulative_length", INT64, []))
    return g.bytes()


def placed(seed=2, elements=True, length=24, batch="batch", mask_by_places=True):
    """mask_by_places: False: masks and places of tokens are inputs, so that cache_position says where rows are written and nothing else."""
    g = decoders.Graph(seed, opset=17)
    ids = g.input("input_ids", INT64, batch, "s")
    order = g.input("cache_position", INT64, "s")
    keys, values = ([g.input(f"past_key_values.{i}.{k}", FLOAT, batch, GROUPS, length, SIZE) for i in range(LAYERS)] for k in ("key", "value"))
    if mask_by_places:
        places = g.op("Unsqueeze", order, g.ints(0))
        columns = g.op("Range", g.const(np.int64(0)), g.dim(keys[0], 2), g.const(np.int64(1)))
        hidden = g.op("Greater", columns, g.op("Reshape", order, g.ints(-1, 1)))
        added = g.op("Unsqueeze", g.op("Mul", g.op("Cast", hidden, to=FLOAT), LOWEST), g.ints(0, 1))
    else:
        places = g.input("position_ids", INT64, batch, "s")
        added = g.op("Where", g.input("attention_mask", BOOL, batch, 1, "s", length), 0.0, LOWEST)
    write = by_elements if elements else by_tuples
    presents = body(g, ids, places, keys, values, lambda i, c, u: write(g, c, order, u), lambda i: added, seed)
    for i, pair in enumerate(presents):
        for kind, x in zip(("key", "value"), pair):
            g.output(f"present.{i}.{kind}", x)
    return g.bytes()


def folder(path, data, name="model.onnx", **config):
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(data)
    (path / "config.json").write_text(json.dumps({"max_position_embeddings": 64, **config}))
    return path


class Reference:
    """The same with caches that get longer, by ONNX Runtime, which reads all tokens at each step."""

    def __init__(self, seed=2, window=0):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1  # more would only wait for each other
        self.session = onnxruntime.InferenceSession(decoders.llama_like(seed, window=window).data, options, providers=["CPUExecutionProvider"])

    def logits(self, tokens):
        """Of each token."""
        count = len(tokens)
        feed = {"input_ids": np.array([tokens], np.int64), "attention_mask": np.ones((1, count), np.int64), "position_ids": np.arange(count)[None]}
        feed |= {i.name: np.zeros((1, GROUPS, 0, SIZE), np.float32) for i in self.session.get_inputs() if i.name.startswith("past")}
        return self.session.run(["logits"], feed)[0][0]

    def greedy(self, prompt, count):
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens[len(prompt):]
