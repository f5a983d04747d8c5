# SPDX-License-Identifier: Apache-2.0
"""Small models of an encoder and a decoder as optimum writes them: encoder_model.onnx, decoder_model.onnx (which makes the keys and values of
the encoder's states), decoder_with_past_model.onnx, decoder_model_merged.onnx (an If of both, where the branch with a past gives empty
tensors for the encoder's keys and values). T5: distances in buckets, RMS norms; BART: learned places, norms behind; Whisper: features, norms in front."""

import json

import numpy as np
from onnx import helper, numpy_helper

import decoders
from decoders import BOOL, FLOAT, HEADS, INT64, INNER, LAYERS, LOWEST, SIZE, VOCABULARY, WIDTH, apart, attention, layer_norm

KINDS = ("t5", "bart", "whisper")
MELS, FRAMES, PLACES = 12, 20, 160
START, END = 3, 1


def norm(g, kind, x):
    return decoders.rms_norm(g, x, reciprocal=False) if kind == "t5" else layer_norm(g, x)


def linear(g, kind, x, n_in=WIDTH, n_out=WIDTH, bias=True):
    return g.linear(x, n_in, n_out, bias and kind != "t5")


def scale(kind):
    return 1.0 if kind == "t5" else SIZE**-0.5


def perceptron(g, kind, x):
    y = linear(g, kind, x, WIDTH, INNER)
    y = g.op("Relu", y) if kind == "t5" else decoders.gelu_erf(g, y)
    return linear(g, kind, y, INNER, WIDTH)


def around(g, kind, x, inner):
    """x and what `inner` makes of it, with the norm where the kind has it."""
    if kind == "bart":
        return norm(g, kind, g.op("Add", x, inner(x)))
    return g.op("Add", x, inner(norm(g, kind, x)))


def hidden_padding(g, mask):
    padding = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    return g.op("Mul", g.op("Sub", 1.0, padding), LOWEST)


def distances(g, s):
    """T5's of an encoder, short ones alone: [1, heads, s, s]."""
    row = g.op("Range", g.const(np.int64(0)), s, g.const(np.int64(1)))
    apart_ = g.op("Sub", g.op("Unsqueeze", row, g.ints(0)), g.op("Unsqueeze", row, g.ints(1)))
    bucket = g.op("Add", g.op("Max", g.op("Min", apart_, g.const(np.int64(5))), g.const(np.int64(-5))), g.const(np.int64(5)))
    return g.op("Unsqueeze", g.op("Transpose", g.op("Gather", g.weight(11, HEADS), bucket), perm=[2, 0, 1]), g.ints(0))


def encoder(kind, seed=40):
    g = decoders.Graph(seed, opset=17)
    added = ""
    if kind == "whisper":
        x = g.input("input_features", FLOAT, "batch", "features", "frames")
        for n_in, stride in ((MELS, 1), (WIDTH, 2)):
            x = decoders.gelu_erf(g, g.op("Conv", x, g.weight(WIDTH, n_in, 3), g.weight(WIDTH), kernel_shape=[3], pads=[1, 1], strides=[stride]))
        x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.weight(FRAMES // 2, WIDTH))
    else:
        ids, mask = g.input("input_ids", INT64, "batch", "length"), g.input("attention_mask", INT64, "batch", "length")
        x, s = g.op("Gather", g.weight(VOCABULARY, WIDTH), ids), g.dim(ids, 1)
        added = hidden_padding(g, mask)
        if kind == "bart":
            places = g.op("Add", g.op("Range", g.const(np.int64(0)), s, g.const(np.int64(1))), g.const(np.int64(2)))
            x = layer_norm(g, g.op("Add", x, g.op("Gather", g.weight(PLACES + 2, WIDTH), places)))
        else:
            added = g.op("Add", added, distances(g, s))
    for _ in range(LAYERS):
        def attend(y):
            q, k, v = (apart(g, linear(g, kind, y), HEADS) for _ in range(3))
            return linear(g, kind, attention(g, q, k, v, added, scale=scale(kind)))

        x = around(g, kind, x, attend)
        x = around(g, kind, x, lambda y: perceptron(g, kind, y))
    x = x if kind == "bart" else norm(g, kind, x)
    g.op("Identity", x, outputs=["last_hidden_state"])
    g.outputs.append(helper.make_tensor_value_info("last_hidden_state", FLOAT, ["batch", "length", WIDTH]))
    return g.bytes()


def body(g, kind, ids, states, states_mask, pasts, seed, empty=False):
    """Logits and presents. pasts: [(of the decoder, of the encoder)] for each layer, or None. empty: keys of the encoder do not come out again."""
    g.random = np.random.default_rng(seed + 1)  # all graphs have the same weights
    s = g.dim(ids, 1)
    past = g.dim(pasts[0][0][0], 2) if pasts else g.const(np.int64(0))
    total = g.op("Add", past, s)
    x = g.op("Gather", g.weight(VOCABULARY, WIDTH, scale=1.0), ids)
    places = g.op("Range", past, total, g.const(np.int64(1)))
    columns = g.op("Range", g.const(np.int64(0)), total, g.const(np.int64(1)))
    hidden = g.op("Cast", g.op("Greater", columns, g.op("Reshape", places, g.ints(-1, 1))), to=FLOAT)
    mask = g.op("Mul", g.op("Unsqueeze", hidden, g.ints(0, 1)), LOWEST)
    if kind == "t5":
        mask = g.op("Add", decoders.t5_bias(g, g.weight(8, HEADS), s, total, past), mask)
    elif kind == "bart":
        offset = g.op("Add", places, g.const(np.int64(2)))
        x = layer_norm(g, g.op("Add", x, g.op("Gather", g.weight(PLACES + 2, WIDTH, scale=0.5), offset)))
    else:
        x = g.op("Add", x, g.slice(g.weight(PLACES, WIDTH, scale=2.0), 0, past, total))
    padding = hidden_padding(g, states_mask) if states_mask else ""
    presents = []
    for i in range(LAYERS):
        def own(y):
            q, k, v = (apart(g, linear(g, kind, y), HEADS) for _ in range(3))
            if pasts:
                k, v = (g.op("Concat", p, n, axis=2) for p, n in zip(pasts[i][0], (k, v)))
            presents.append([(k, v)])
            return linear(g, kind, attention(g, q, k, v, mask, scale=scale(kind)))

        def cross(y):
            q = apart(g, linear(g, kind, y), HEADS)
            state = g.random.bit_generator.state
            made = [apart(g, linear(g, kind, states or y), HEADS) for _ in range(2)]
            if pasts:  # weights are drawn as in the other graph, and left out
                g.random.bit_generator.state = state
                linear(g, kind, y), linear(g, kind, y)
                made = pasts[i][1]
            if pasts and empty:
                nothing = numpy_helper.from_array(np.zeros((0, HEADS, 1, SIZE), np.float32))
                presents[-1].append([g.op("Constant", value=nothing) for _ in range(2)])
            else:
                presents[-1].append(made)
            return linear(g, kind, attention(g, q, *made, padding, scale=scale(kind)))

        x = around(g, kind, x, own)
        x = around(g, kind, x, cross)
        x = around(g, kind, x, lambda y: perceptron(g, kind, y))
    x = x if kind == "bart" else norm(g, kind, x)
    g.output("logits", g.linear(x, WIDTH, VOCABULARY))
    for i, both in enumerate(presents):
        for part, pair in zip(("decoder", "encoder"), both):
            if part == "decoder" or not pasts or empty:
                g.output(f"present.{i}.{part}.key", pair[0]), g.output(f"present.{i}.{part}.value", pair[1])


def _inputs(g, kind, states, caches):
    ids = g.input("input_ids", INT64, "batch", "s")
    given = g.input("encoder_hidden_states", FLOAT, "batch", "length", WIDTH) if states else None
    mask = g.input("encoder_attention_mask", INT64, "batch", "length") if kind != "whisper" else None
    return ids, given, mask, [decoders.seq2seq_caches(g, i) for i in range(LAYERS)] if caches else None


def decoder(kind, past, seed=40):
    g = decoders.Graph(0, opset=17)
    body(g, kind, *_inputs(g, kind, not past, past), seed)
    return g.bytes()


def merged(kind, seed=40):
    g = decoders.Graph(0, opset=17)
    ids, states, mask, pasts = _inputs(g, kind, True, True)
    condition = g.input("use_cache_branch", BOOL, 1)
    branches = {}
    for name, kept in (("then", pasts), ("else", None)):
        branches[name] = decoders.Branch(g, name + "_")
        body(branches[name], kind, ids, states, mask, kept, seed, True)
    names = [o.name.removeprefix("then_") for o in branches["then"].outputs]
    order = {o.name.removeprefix("else_"): o for o in branches["else"].outputs}
    branches["else"].outputs = [order[n] for n in names]
    g.op("If", condition, outputs=names, then_branch=branches["then"].graph(), else_branch=branches["else"].graph())
    g.outputs = [helper.make_tensor_value_info(n, FLOAT, [None, None, VOCABULARY] if n == "logits" else [None] * 4) for n in names]
    return g.bytes()


def write(folder, kind, form="merged", seed=40, **generation):
    """The folder of a model. form: "merged", "two", or "none" for a decoder without caches that can be used."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"encoder_model": encoder(kind, seed)}
    if form == "merged":
        files["decoder_model_merged"] = merged(kind, seed)
    else:
        files["decoder_model"] = decoder(kind, False, seed)
        if form == "two":
            files["decoder_with_past_model"] = decoder(kind, True, seed)
    for name, data in files.items():
        (folder / f"{name}.onnx").write_bytes(data)
    places = {"t5": {"n_positions": PLACES}, "bart": {"max_position_embeddings": PLACES},
              "whisper": {"max_target_positions": PLACES, "max_source_positions": FRAMES // 2, "num_mel_bins": MELS}}[kind]
    (folder / "config.json").write_text(json.dumps({"decoder_start_token_id": START, "d_model": WIDTH, **places}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": END, **generation}))
    return folder


class Reference:
    """The same by ONNX Runtime, which reads all tokens at each step."""

    def __init__(self, kind, seed=40):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1  # more would only wait for each other
        self.kind = kind
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(d, options, providers=["CPUExecutionProvider"]) for d in (encoder(kind, seed), decoder(kind, False, seed)))

    def states(self, source):
        if self.kind == "whisper":
            return self.encoder.run(None, {"input_features": source[None].astype(np.float32)})[0]
        return self.encoder.run(None, {"input_ids": np.array([source]), "attention_mask": np.ones((1, len(source)), np.int64)})[0]

    def logits(self, states, tokens):
        feed = {"input_ids": np.array([tokens]), "encoder_hidden_states": states}
        if self.kind != "whisper":
            feed["encoder_attention_mask"] = np.ones(states.shape[:2], np.int64)
        return self.decoder.run(["logits"], feed)[0][0, -1]

    def greedy(self, source, count, starts=(START,), ends=(END,), banned=(), at_first=()):
        states, tokens = self.states(source), list(starts)
        for i in range(count):
            row = self.logits(states, tokens)
            row[[*banned, *(at_first if not i else ())]] = -np.inf
            tokens.append(int(row.argmax()))
            if tokens[-1] in ends:
                break
        return tokens[len(starts):]


def source_of(kind, random, length=9):
    if kind == "whisper":
        return random.standard_normal((MELS, FRAMES)).astype(np.float32)
    return [int(t) for t in random.integers(4, VOCABULARY, length)]
