# SPDX-License-Identifier: Apache-2.0
"""BERT with a head for questions, put together as the programs of demoBERT do it: plugins for embeddings, attention and layer norms,
fully connected layers, a GELU of elementwise layers, everything sequence first. Fixed lengths with a mask; rows of sequences of several
lengths; those in INT8 with channels in the place of width, with Megatron's second sums. The same network through layers, batch first; and
the same in NumPy, one sequence after another, in double. Weights are seeded and random; they are made once and serve all forms.
"""

import dataclasses
import math

import numpy as np
import tensorrt as trt

F, I = trt.PluginFieldType.FLOAT32, trt.PluginFieldType.INT32


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 2
    hidden: int = 64
    heads: int = 2
    vocabulary: int = 50
    positions: int = 128
    kinds: int = 2

    @property
    def size(self):
        return self.hidden // self.heads


BASE, LARGE = Config(12, 768, 12, 30522, 512), Config(24, 1024, 16, 30522, 512)


def weights(config, seed=1):
    """By name. Products are [N, K]; the rows of qkv are those of each head in turn: q, k and v. Scores vary by about 2, so that attention
    is neither flat nor one-hot."""
    rng, e = np.random.Generator(np.random.PCG64(seed)), config.hidden

    def normal(*shape, std=1.0, mean=0.0):
        return (rng.standard_normal(shape, np.float32) * np.float32(std) + np.float32(mean)).astype(np.float32)

    w = {}

    def norm(name):
        w[name + ".gamma"], w[name + ".beta"] = normal(e, std=0.1, mean=1), normal(e, std=0.1)

    def product(name, n, k, std=1.0):
        w[name + ".w"], w[name + ".b"] = normal(n, k, std=std / math.sqrt(k)), normal(n, std=0.1)

    for name, rows in (("words", config.vocabulary), ("kinds", config.kinds), ("positions", config.positions)):
        w[name] = normal(rows, e, std=0.5)
    norm("embedding")
    for i in range(config.layers):
        product(f"{i}.qkv", 3 * e, e)
        w[f"{i}.qkv.w"].reshape(config.heads, 3, config.size, e)[:, :2] *= np.float32(math.sqrt(2))
        product(f"{i}.out", e, e)
        norm(f"{i}.norm1")
        product(f"{i}.up", 4 * e, e)
        product(f"{i}.down", e, 4 * e)
        norm(f"{i}.norm2")
    product("head", 2, e)
    return w


def reference(config, w, ids, kinds, keep=None, ranges=None, megatron=False):
    """Logits [S, 2] of one sequence; `keep`: bool [S], the keys that count. `ranges`: of each tensor by name its largest magnitude so far.
    `megatron`: sums go on to the next sum as they are, and not normalized."""
    def tensor(name, x):
        if ranges is not None:
            ranges[name] = max(ranges.get(name, 0.0), float(np.abs(x).max(initial=0)))
        return x

    def product(name, x):
        return tensor(name, x @ w[name + ".w"].T.astype(np.float64) + w[name + ".b"])

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        return tensor(name, x / np.sqrt((x * x).mean(-1, keepdims=True)) * w[name + ".gamma"] + w[name + ".beta"])

    s = len(ids)
    total = tensor("embedding.sum", w["words"][ids].astype(np.float64) + w["kinds"][kinds] + w["positions"][:s])
    x = norm("embedding", total)
    for i in range(config.layers):
        q, k, v = product(f"{i}.qkv", x).reshape(s, config.heads, 3, config.size).transpose(2, 1, 0, 3)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(config.size)
        if keep is not None:
            scores[..., ~keep] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        context = scores / scores.sum(-1, keepdims=True) @ v
        context = tensor(f"{i}.context", context.transpose(1, 0, 2).reshape(s, config.hidden))
        total = tensor(f"{i}.norm1.sum", product(f"{i}.out", context) + (total if megatron else x))
        x = norm(f"{i}.norm1", total)
        up = product(f"{i}.up", x)
        up = 0.5 * up * (1 + np.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
        total = tensor(f"{i}.norm2.sum", product(f"{i}.down", up) + (total if megatron else x))
        x = norm(f"{i}.norm2", total)
    return product("head", x)


def field(name, value):
    array = np.atleast_1d(np.asarray(value))
    array = np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else np.int32)
    return trt.PluginField(name, array, trt.PluginFieldType.FLOAT32 if array.dtype.kind == "f" else trt.PluginFieldType.INT32)


def plugin(name, version, fields):
    name = f"Custom{name}PluginDynamic"
    creator = trt.get_plugin_registry().get_plugin_creator(name, version, "")
    made = creator.create_plugin(name, trt.PluginFieldCollection(fields))
    assert made is not None, f"{name} {version}"
    return made


class Client:
    """What the builders have in common. `precision`: fp32, fp16 or int8; `ranges`: for INT8, by the names of `reference`. `custom`: products
    in front of norms and GELU through plugins, their bias in the one behind them."""

    def __init__(self, network, config, w, precision="fp32", ranges=None, custom=False):
        self.network, self.config, self.w, self.ranges, self.custom = network, config, w, ranges, custom
        self.kind = ("fp32", "fp16", "int8").index(precision)
        self.floating = min(self.kind, 1)  # of parts that INT8 does not reach
        self.is_quantized = self.kind == 2

    def named(self, tensor, name):
        tensor.name = name
        if self.is_quantized and name in self.ranges:
            tensor.dynamic_range = (-self.ranges[name], self.ranges[name])
        return tensor

    def added(self, inputs, made, *names):
        """The outputs of a plugin."""
        layer = self.network.add_plugin_v2(inputs, made)
        assert layer is not None
        return [self.named(layer.get_output(i), name) for i, name in enumerate(names)]

    def product(self, name, x, convolution=None):
        w, b = self.w[name + ".w"], self.w[name + ".b"]
        if self.is_quantized if convolution is None else convolution:
            layer = self.network.add_convolution_nd(x, w.shape[0], (1, 1), w[..., None, None], b)
        else:
            layer = self.network.add_fully_connected(x, w.shape[0], w, b)
        layer.name = name
        return layer, self.named(layer.get_output(0), name)

    def product_in_front_of_norm(self, name, x):
        """Without its bias where it is a plugin: then the norm has it."""
        if self.custom:
            w = np.ascontiguousarray(self.w[name + ".w"].T)
            return self.added([x], plugin("FC", "1", [field("out_dims", w.shape[1]), field("type_id", self.floating), field("W", w)]), name)[0]
        layer, y = self.product(name, x)
        if self.kind:
            layer.set_output_type(0, trt.int8 if self.is_quantized else trt.float16)
        return y

    def gelu(self, name, x):
        op, ones = trt.ElementWiseOperation, (1,) * len(x.shape)

        def apply(a, b, kind):
            return self.network.add_elementwise(a, b, kind).get_output(0)

        def number(value):
            return self.network.add_constant(ones, np.array([value], np.float32)).get_output(0)

        inner = apply(apply(x, number(3), op.POW), number(0.044715), op.PROD)
        inner = apply(apply(x, inner, op.SUM), number(0.79788456), op.PROD)
        tanh = self.network.add_activation(inner, trt.ActivationType.TANH).get_output(0)
        y = apply(apply(apply(tanh, number(1), op.SUM), number(0.5), op.PROD), x, op.PROD)
        y.name = name
        if self.is_quantized:
            y.dynamic_range = (-10, 10)
        return y

    def up(self, i, x):
        if not self.custom:
            return self.gelu(f"{i}.gelu", self.product(f"{i}.up", x)[1])
        fields = [field("type_id", self.floating), field("bias", self.w[f"{i}.up.b"])]
        y = self.network.add_fully_connected(x, 4 * self.config.hidden, self.w[f"{i}.up.w"], trt.Weights(trt.float32)).get_output(0)
        return self.added([y], plugin("Gelu", "1", fields), f"{i}.gelu")[0]

    def shuffled(self, x, first=(), second=()):
        layer = self.network.add_shuffle(x)
        if first:
            layer.first_transpose = first
        if second:
            layer.second_transpose = second
        return layer.get_output(0)

    def embeddings(self, version, inputs):
        w = self.w
        fields = [field("bert_embeddings_layernorm_beta", w["embedding.beta"]), field("bert_embeddings_layernorm_gamma", w["embedding.gamma"]),
                  field("bert_embeddings_word_embeddings", w["words"]), field("bert_embeddings_token_type_embeddings", w["kinds"]),
                  field("bert_embeddings_position_embeddings", w["positions"]), field("output_fp16", self.floating)]
        if version == "1":
            fields += [field("full_mask", 0), field("mha_type_id", self.kind)]
        return self.added(inputs, plugin("EmbLayerNorm", version, fields), "embedding", "embedding.sum" if version == "3" else "mask")

    def attention(self, version, name, inputs):
        fields = [field("hidden_size", self.config.hidden), field("num_heads", self.config.heads)]
        if version != "3":
            fields += [field("type_id", self.kind), field("has_mask", 1)]
        if version == "2":  # the bits of an integer under the type of a float, as they are given there
            fields.append(trt.PluginField("var_seqlen", np.array([1], np.int32), trt.PluginFieldType.FLOAT32))
        if self.is_quantized:
            fields.append(field("dq_probs", 1 / 127))
        return self.added(inputs, plugin("QKVToContext", version, fields), name)[0]

    def norm(self, version, name, x, skip, bias=None):
        fields = [field("beta", self.w[name + ".beta"]), field("gamma", self.w[name + ".gamma"])]
        if version in "12":
            fields += [field("type_id", self.kind), field("ld", self.config.hidden)]
            if self.custom:
                fields.append(field("bias", self.w[bias + ".b"]))
        return self.added([x, skip], plugin("SkipLayerNorm", version, fields), *[name, name + ".sum"][: 2 if version == "4" else 1])

    def layers(self, version, x, rest):
        """`rest`: what attention takes behind qkv."""
        for i in range(self.config.layers):
            context = self.attention(version, f"{i}.context", [self.product(f"{i}.qkv", x)[1], *rest])
            x = self.norm(version, f"{i}.norm1", self.product_in_front_of_norm(f"{i}.out", context), x, f"{i}.out")[0]
            x = self.norm(version, f"{i}.norm2", self.product_in_front_of_norm(f"{i}.down", self.up(i, x)), x, f"{i}.down")[0]
        return x

    def mark(self, logits):
        logits.name = "logits"
        self.network.mark_output(logits)


def fixed(network, config, w, batch, length, **more):
    """Inputs input_ids, segment_ids, input_mask [batch, length], -1 where they are open; the output is [batch, length, 2, 1, 1]."""
    c = Client(network, config, w, **more)
    inputs = [network.add_input(n, trt.int32, (batch, length)) for n in ("input_ids", "segment_ids", "input_mask")]
    x, mask = c.embeddings("1", [c.shuffled(i, first=(1, 0)) for i in inputs])
    if c.is_quantized:
        mask.dynamic_range = (-1, 1)
    x = c.layers("1", x, [mask])
    c.mark(c.shuffled(c.product("head", x, False)[1], second=(1, 0, 2, 3, 4)))


def _inputs_of_rows(network):
    """The ids of all tokens, their kinds, the row where each sequence begins and behind the last, a tensor as long as the longest."""
    return [network.add_input(n, trt.int32, (-1,)) for n in ("input_ids", "segment_ids", "cu_seqlens", "max_seqlen")]


def variable(network, config, w, **more):
    """The output is [T, 2, 1, 1] for T tokens."""
    c = Client(network, config, w, **more)
    inputs = _inputs_of_rows(network)
    x, mask = c.embeddings("2", inputs)
    x = c.layers("2", x, [mask, *inputs[2:]])
    c.mark(c.product("head", x, False)[1])


def interleaved(network, config, w, megatron=False, **more):
    """In INT8, channels in front of tokens: [1, E, T, 1]. The output is [2, T, 1, 1]."""
    c = Client(network, config, w, precision="int8", **more)
    inputs = _inputs_of_rows(network)
    x, residual = c.embeddings("3" if megatron else "2", inputs)
    x = c.named(c.shuffled(x, first=(2, 1, 0, 3)), "embedding.turned")
    if megatron:
        residual = c.named(c.shuffled(residual, first=(2, 1, 0, 3)), "embedding.sum.turned")
        for i in range(config.layers):
            context = c.attention("3", f"{i}.context", [c.product(f"{i}.qkv", x)[1], *inputs[2:]])
            x, residual = c.norm("4", f"{i}.norm1", c.product_in_front_of_norm(f"{i}.out", context), residual)
            y = c.product_in_front_of_norm(f"{i}.down", c.up(i, x))
            x, residual = [*c.norm("4" if i + 1 < config.layers else "3", f"{i}.norm2", y, residual), None][:2]
    else:
        x = c.layers("3", x, inputs[2:])
    c.mark(c.shuffled(c.product("head", x)[1], second=(1, 2, 0, 3)))


def through_layers(network, config, w, batch, length, precision="fp32"):
    """What `fixed` computes, batch first and without plugins; the output is [batch, length, 2]."""
    op, e = trt.ElementWiseOperation, config.hidden

    def apply(a, b, kind):
        return network.add_elementwise(a, b, kind).get_output(0)

    def constant(value, *shape):
        return network.add_constant(shape, np.ascontiguousarray(value, np.float32)).get_output(0)

    def number(value, rank=3):
        return constant([value], *(1,) * rank)

    def mean(x):
        return network.add_reduce(x, trt.ReduceOperation.AVG, 1 << 2, True).get_output(0)

    def norm(name, x):
        centred = apply(x, mean(x), op.SUB)
        variance = apply(mean(apply(centred, centred, op.PROD)), number(1e-6), op.SUM)
        y = apply(centred, network.add_unary(variance, trt.UnaryOperation.SQRT).get_output(0), op.DIV)
        return apply(apply(y, constant(w[name + ".gamma"], 1, 1, e), op.PROD), constant(w[name + ".beta"], 1, 1, e), op.SUM)

    def matmul(a, b, transposed=False):
        how = trt.MatrixOperation.TRANSPOSE if transposed else trt.MatrixOperation.NONE
        return network.add_matrix_multiply(a, trt.MatrixOperation.NONE, b, how).get_output(0)

    def product(x, weight, bias):
        n, k = weight.shape
        return apply(matmul(x, constant(weight.T, 1, k, n)), constant(bias, 1, 1, n), op.SUM)

    def shuffle(x, dims=None, second=None, first=None):
        layer = network.add_shuffle(x)
        if first:
            layer.first_transpose = first
        if dims:
            layer.reshape_dims = dims
        if second:
            layer.second_transpose = second
        return layer.get_output(0)

    inputs = [network.add_input(n, trt.int32, (batch, length)) for n in ("input_ids", "segment_ids", "input_mask")]
    cast = network.add_identity(inputs[2])
    cast.set_output_type(0, trt.float32)
    bias = apply(apply(shuffle(cast.get_output(0), (0, 1, 1, -1)), number(1, 4), op.SUB), number(10000, 4), op.PROD)
    words, kinds = (network.add_gather(constant(w[n], *w[n].shape), i, 0).get_output(0) for n, i in (("words", inputs[0]), ("kinds", inputs[1])))
    x = norm("embedding", apply(apply(words, kinds, op.SUM), constant(w["positions"][:length], 1, length, e), op.SUM))
    for i in range(config.layers):
        # [heads, 3, size] as three products
        qw, qb = w[f"{i}.qkv.w"].reshape(config.heads, 3, config.size, e), w[f"{i}.qkv.b"].reshape(config.heads, 3, config.size)
        q, k, v = (shuffle(product(x, qw[:, p].reshape(e, e), qb[:, p].reshape(e)), (0, 0, config.heads, config.size), (0, 2, 1, 3)) for p in range(3))
        scores = apply(apply(matmul(q, k, True), number(1 / math.sqrt(config.size), 4), op.PROD), bias, op.SUM)
        softmax = network.add_softmax(scores)
        softmax.axes = 1 << 3
        context = shuffle(matmul(softmax.get_output(0), v), (0, 0, e), first=(0, 2, 1, 3))
        x = norm(f"{i}.norm1", apply(product(context, w[f"{i}.out.w"], w[f"{i}.out.b"]), x, op.SUM))
        up = product(x, w[f"{i}.up.w"], w[f"{i}.up.b"])
        inner = apply(apply(apply(up, number(3), op.POW), number(0.044715), op.PROD), up, op.SUM)
        tanh = network.add_activation(apply(inner, number(0.79788456), op.PROD), trt.ActivationType.TANH).get_output(0)
        up = apply(apply(apply(tanh, number(1), op.SUM), number(0.5), op.PROD), up, op.PROD)
        x = norm(f"{i}.norm2", apply(product(up, w[f"{i}.down.w"], w[f"{i}.down.b"]), x, op.SUM))
    logits = product(x, w["head.w"], w["head.b"])
    logits.name = "logits"
    network.mark_output(logits)


def settings(builder, precision):
    """The configuration that demoBERT's programs make for it."""
    config = builder.create_builder_config()
    config.max_workspace_size = 5000 << 20
    config.set_tactic_sources(config.get_tactic_sources() & ~(1 << int(trt.TacticSource.CUDNN)))
    if precision != "fp32":
        config.set_flag(trt.BuilderFlag.FP16)
        config.set_flag(trt.BuilderFlag.STRICT_TYPES)
    if precision == "int8":
        config.set_flag(trt.BuilderFlag.INT8)
        config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    return config


def profile_of_rows(builder, config, tokens, sequences, longest):
    """An optimization profile for up to so many."""
    profile = builder.create_optimization_profile()
    for name, most in (("input_ids", tokens), ("segment_ids", tokens), ("cu_seqlens", sequences + 1), ("max_seqlen", longest)):
        profile.set_shape(name, (min(most, 2),), (most,), (most,))
    config.add_optimization_profile(profile)


def rows_of(lengths, vocabulary, seed=1):
    """Inputs of `variable` and `interleaved` for sequences of these lengths."""
    rng, total = np.random.default_rng(seed), int(sum(lengths))
    return {"input_ids": rng.integers(0, vocabulary, total).astype(np.int32), "segment_ids": rng.integers(0, 2, total).astype(np.int32),
            "cu_seqlens": np.cumsum([0, *lengths]).astype(np.int32), "max_seqlen": np.zeros(max(lengths), np.int32)}
