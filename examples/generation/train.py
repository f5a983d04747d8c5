# SPDX-License-Identifier: Apache-2.0
"""Trains a decoder of characters with NumPy alone, in some seconds, and writes it as exporters do: model.onnx with caches of keys and values,
tokenizer.json, config.json, generation_config.json. Then:

    python examples/generation/train.py /tmp/counting
    tensorwright generate /tmp/counting --prompt "seven, "

The model learns to count: its text is "one, two, three, ... ten. one, two, ...". Needs numpy and onnx."""

import json
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TEXT = (", ".join(WORDS) + ". ") * 40
CHARACTERS = sorted(set(TEXT))
LAYERS, HEADS, HEAD, POSITIONS = 2, 4, 16, 64
WIDTH, TOKENS = HEADS * HEAD, len(CHARACTERS)


def weights(random):
    """Of all layers by name. Positions are learned, the table of tokens is that of the output, too."""
    made = {"table": random.standard_normal((TOKENS, WIDTH)) * 0.1, "places": random.standard_normal((POSITIONS, WIDTH)) * 0.1, "norm": np.ones(WIDTH)}
    for i in range(LAYERS):
        shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        made |= {f"{i}.{n}": random.standard_normal(s) * s[0] ** -0.5 * (0.5 if n in ("out", "down") else 1) for n, s in shapes.items()}
        made |= {f"{i}.norm1": np.ones(WIDTH), f"{i}.norm2": np.ones(WIDTH)}
    return {n: w.astype(np.float32) for n, w in made.items()}


def norm(x, gain):
    """x / root mean square * gain, and what its derivative needs."""
    scale = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return x * scale * gain, (x, scale, gain)


def norm_back(dy, kept):
    x, scale, gain = kept
    dx = dy * gain
    return scale * dx - x * scale**3 * (dx * x).mean(-1, keepdims=True), (dy * x * scale).sum((0, 1))


def loss_and_gradients(w, tokens):
    """Mean loss of the next character for rows of [batch, length + 1], and its gradients by name."""
    x, wanted = tokens[:, :-1], tokens[:, 1:]
    batch, length = x.shape
    causal = np.where(np.tri(length, dtype=bool), 0, -1e9).astype(np.float32)
    h, kept = w["table"][x] + w["places"][:length], []
    for i in range(LAYERS):
        y, n1 = norm(h, w[f"{i}.norm1"])
        q, k, v = (y @ w[f"{i}.qkv"]).reshape(batch, length, 3, HEADS, HEAD).transpose(2, 0, 3, 1, 4)
        p = q @ k.transpose(0, 1, 3, 2) * HEAD**-0.5 + causal
        p = np.exp(p - p.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        a = (p @ v).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        h = h + a @ w[f"{i}.out"]
        z, n2 = norm(h, w[f"{i}.norm2"])
        up = z @ w[f"{i}.up"]
        active = np.maximum(up, 0)
        h = h + active @ w[f"{i}.down"]
        kept.append((y, n1, q, k, v, p, a, z, n2, up, active))
    y, last = norm(h, w["norm"])
    logits = y @ w["table"].T
    chance = np.exp(logits - logits.max(-1, keepdims=True))
    chance /= chance.sum(-1, keepdims=True)
    rows = np.arange(batch)[:, None], np.arange(length)
    loss = -np.log(chance[(*rows, wanted)] + 1e-12).mean()

    g = {n: np.zeros_like(v) for n, v in w.items()}
    d = chance
    d[(*rows, wanted)] -= 1
    d /= wanted.size
    g["table"] += np.einsum("blv,ble->ve", d, y)
    dh, g["norm"] = norm_back(d @ w["table"], last)
    for i in reversed(range(LAYERS)):
        y, n1, q, k, v, p, a, z, n2, up, active = kept[i]
        g[f"{i}.down"] = np.einsum("blf,ble->fe", active, dh)
        du = dh @ w[f"{i}.down"].T * (up > 0)
        g[f"{i}.up"] = np.einsum("ble,blf->ef", z, du)
        dz, g[f"{i}.norm2"] = norm_back(du @ w[f"{i}.up"].T, n2)
        dh = dh + dz
        g[f"{i}.out"] = np.einsum("ble,blf->ef", a, dh)
        da = (dh @ w[f"{i}.out"].T).reshape(batch, length, HEADS, HEAD).transpose(0, 2, 1, 3)
        dp = da @ v.transpose(0, 1, 3, 2)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * HEAD**-0.5
        three = np.stack([ds @ k, ds.transpose(0, 1, 3, 2) @ q, p.transpose(0, 1, 3, 2) @ da])
        three = three.transpose(1, 3, 0, 2, 4).reshape(batch, length, 3 * WIDTH)
        g[f"{i}.qkv"] = np.einsum("ble,blf->ef", y, three)
        dy, g[f"{i}.norm1"] = norm_back(three @ w[f"{i}.qkv"].T, n1)
        dh = dh + dy
    g["places"][:length] = dh.sum(0)
    np.add.at(g["table"], x, dh)
    return loss, g


def train(steps=250, batch=16, seed=0):
    """Adam on windows of the text."""
    random = np.random.default_rng(seed)
    w, text = weights(random), np.array([CHARACTERS.index(c) for c in TEXT])
    m, v = ({n: np.zeros_like(x) for n, x in w.items()} for _ in range(2))
    for step in range(1, steps + 1):
        starts = random.integers(0, len(text) - POSITIONS - 1, batch)
        loss, gradients = loss_and_gradients(w, text[starts[:, None] + np.arange(POSITIONS + 1)])
        for n, g in gradients.items():
            m[n] += 0.1 * (g - m[n])
            v[n] += 0.01 * (g**2 - v[n])
            w[n] -= 3e-3 * (1 - step / (steps + 1)) * (m[n] / (1 - 0.9**step)) / (np.sqrt(v[n] / (1 - 0.99**step)) + 1e-8)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.3f}")
    return w, loss


def onnx_of(w):
    """The decoder with past and present keys and values, by the names of Hugging Face's exporters."""
    nodes, constants, count = [], [numpy_helper.from_array(x, n) for n, x in w.items()], [0]

    def node(op, *inputs, name=None, **attributes):
        count[0] += 1
        name = name or f"{op}{count[0]}"
        for i, x in enumerate(inputs):
            if not isinstance(x, str):
                constants.append(numpy_helper.from_array(np.asarray(x), f"{name}.{i}"))
        nodes.append(helper.make_node(op, [x if isinstance(x, str) else f"{name}.{i}" for i, x in enumerate(inputs)], [name], **attributes))
        return name

    def normed(x, gain):
        mean = node("ReduceMean", node("Mul", x, x), axes=[-1])
        return node("Mul", node("Div", x, node("Sqrt", node("Add", mean, np.float32(1e-6)))), gain)

    def value(name, kind, *shape):
        return helper.make_tensor_value_info(name, kind, shape)

    integers, numbers = TensorProto.INT64, TensorProto.FLOAT
    inputs = [value("input_ids", integers, "batch", "new"), value("attention_mask", integers, "batch", "all"), value("position_ids", integers, "batch", "new")]
    outputs = [value("logits", numbers, "batch", "new", TOKENS)]
    past = node("Gather", node("Shape", "past_key_values.0.key"), np.int64(2))
    total = node("Add", past, node("Gather", node("Shape", "input_ids"), np.int64(1)))
    rows = node("Unsqueeze", node("Range", past, total, np.int64(1)), np.array([0, 1, 3]))
    columns = node("Unsqueeze", node("Range", np.int64(0), total, np.int64(1)), np.array([0, 1, 2]))
    unused = node("Equal", node("Unsqueeze", "attention_mask", np.array([1, 2])), np.int64(0))
    bias = node("Where", node("Or", node("Greater", columns, rows), unused), np.float32(-1e9), np.float32(0))
    h = node("Add", node("Gather", "table", "input_ids"), node("Gather", "places", "position_ids"))
    for i in range(LAYERS):
        y = node("MatMul", normed(h, f"{i}.norm1"), f"{i}.qkv")
        y = node("Transpose", node("Reshape", y, np.array([0, 0, 3, HEADS, HEAD])), perm=[2, 0, 3, 1, 4])
        q, k, v = (node("Gather", y, np.int64(j)) for j in range(3))
        names = [f"present.{i}.{n}" for n in ("key", "value")]
        k, v = (node("Concat", f"past_key_values.{i}.{n}", t, name=p, axis=2) for n, t, p in zip(("key", "value"), (k, v), names))
        inputs += [value(f"past_key_values.{i}.{n}", numbers, "batch", HEADS, "past", HEAD) for n in ("key", "value")]
        outputs += [value(p, numbers, "batch", HEADS, "all", HEAD) for p in names]
        p = node("Mul", node("MatMul", q, node("Transpose", k, perm=[0, 1, 3, 2])), np.float32(HEAD**-0.5))
        a = node("Transpose", node("MatMul", node("Softmax", node("Add", p, bias), axis=-1), v), perm=[0, 2, 1, 3])
        h = node("Add", h, node("MatMul", node("Reshape", a, np.array([0, 0, WIDTH])), f"{i}.out"))
        h = node("Add", h, node("MatMul", node("Relu", node("MatMul", normed(h, f"{i}.norm2"), f"{i}.up")), f"{i}.down"))
    node("MatMul", normed(h, "norm"), np.ascontiguousarray(w["table"].T), name="logits")
    graph = helper.make_graph(nodes, "counting", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def files(folder, w):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(onnx_of(w).SerializeToString())
    splitter = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False}
    words = {"type": "WordLevel", "vocab": {c: i for i, c in enumerate(CHARACTERS)}, "unk_token": " "}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor"))
    tokenizer = {"version": "1.0", **empty, "added_tokens": [], "pre_tokenizer": splitter, "decoder": {"type": "Fuse"}, "model": words}
    config = {"model_type": "counting", "max_position_embeddings": POSITIONS, "vocab_size": TOKENS}
    for name, content in (("tokenizer", tokenizer), ("config", config), ("generation_config", {"max_new_tokens": 40})):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    trained, loss = train()
    files(sys.argv[1], trained)
    print(f"wrote {sys.argv[1]} (loss {loss:.3f})")
