# SPDX-License-Identifier: Apache-2.0
"""Decoders of texts in the form of ONNX Runtime GenAI's builder: GroupQueryAttention of com.microsoft over caches of a fixed capacity, which
a client gives as input and output. Seeded random weights in a file of their own beside the model.

    inputs   input_ids, position_ids [1, s] INT64; attention_mask [1, capacity] INT64, 1 for tokens that count;
             past_key_values.N.key, .value [1, groups, capacity, size]
    outputs  logits [1, 1, vocabulary] of the last token; present.N.key, .value, as they came in
"""
import dataclasses
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    groups: int
    inner: int
    vocabulary: int
    positions: int = 0  # learned ones; 0: rotary
    bias: bool = False  # of queries, keys and values
    tied: bool = True   # the head's weights are those of the tokens

    @property
    def size(self):
        return self.width // self.heads

    @property
    def weights(self):
        """Elements that one token reads."""
        layer = self.width * (self.width + 2 * self.groups * self.size) + self.width * self.width
        layer += self.width * self.inner * (2 if self.positions else 3)
        return self.layers * layer + self.width * self.vocabulary


SHAPES = {
    "gpt2": Shape(12, 768, 12, 12, 3072, 50257, positions=1024, bias=True),
    "qwen2.5_0.5b": Shape(24, 896, 14, 2, 4864, 151936, bias=True),
    "tinyllama_1.1b": Shape(22, 2048, 32, 4, 5632, 32000, tied=False),
    "llama3.2_1b": Shape(16, 2048, 32, 8, 8192, 128256),
    "smollm2_135m": Shape(30, 576, 9, 3, 1536, 49152),
    "gemma_like": Shape(6, 1024, 4, 1, 4096, 256000),  # heads of 256, one of keys, many tokens
    # A few layers of others.
    "qwen_few": Shape(6, 896, 14, 2, 4864, 151936, bias=True),
    "phi_few": Shape(4, 2048, 32, 32, 8192, 51200, bias=True),
    "gemma_few": Shape(3, 1024, 4, 1, 4096, 256000),
    "small": Shape(4, 256, 8, 4, 768, 8192),
    "tiny": Shape(2, 64, 4, 2, 96, 211, bias=True),
    "tiny_gpt2": Shape(2, 64, 4, 4, 128, 97, positions=256, bias=True),
}


PERIOD = 1048583  # a prime


class _Writer:
    def __init__(self, folder, dtype, bits, block):
        self.data = open(os.path.join(folder, "model.data"), "wb")
        self.dtype, self.bits, self.block = np.dtype(dtype), bits, block
        self.type = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(7)
        # Weights are runs of it, for drawing billions takes minutes; a prime length, so that no two rows of a matrix are alike.
        self.noise = self.random.standard_normal(PERIOD).astype(np.float32)

    def node(self, op, *inputs, outputs=None, domain="", **attributes):
        names = outputs or [f"t{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0]

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _external(self, name, array, kind):
        at = (self.data.tell() + 63) // 64 * 64
        self.data.seek(at)
        array.tofile(self.data)
        tensor = TensorProto(name=name, data_type=kind, dims=array.shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "model.data"), ("offset", at), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        return name

    def _drawn(self, shape, scale):
        count, begin = int(np.prod(shape)), int(self.random.integers(PERIOD))
        values = np.tile(np.roll(self.noise, -begin), -(-count // PERIOD))[:count]
        return (values * np.float32(scale)).reshape(shape)

    def weight(self, name, *shape, scale, about=0.0):
        return self._external(name, (self._drawn(shape, scale) + np.float32(about)).astype(self.dtype), self.type)

    def linear(self, name, x, k, n, bias=False):
        if self.bits:
            blocks = -(-k // self.block)
            packed = np.frombuffer(self.random.bytes(1 << 20), np.uint8)
            count = n * blocks * self.block * self.bits // 8
            packed = np.tile(packed, -(-count // len(packed)))[:count].reshape(n, blocks, -1)
            scales = np.abs(self._drawn((n, blocks), 0.2 * k ** -0.5 / 2 ** (self.bits - 4))).astype(self.dtype)
            y = self.node("MatMulNBits", x, self._external(name, packed, TensorProto.UINT8), self._external(name + ".scales", scales, self.type),
                          domain="com.microsoft", K=k, N=n, bits=self.bits, block_size=self.block)
        else:
            y = self.node("MatMul", x, self.weight(name, k, n, scale=k ** -0.5))
        return self.node("Add", y, self.weight(name + ".bias", n, scale=0.02)) if bias else y


def write(shape, folder, capacity, dtype=np.float32, bits=0, block=32, batch=1):
    """folder/model.onnx; bits 4 or 8: linear layers as MatMulNBits. batch "batch": of any number of rows, with caches of any size up to capacity."""
    os.makedirs(folder, exist_ok=True)
    s, w = shape, _Writer(folder, dtype, bits, block)
    inputs, outputs, positions = [], [], capacity
    capacity = capacity if batch == 1 else "room"

    def given(name, kind, *dims):
        inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    ids, places = given("input_ids", TensorProto.INT64, batch, "s"), given("position_ids", TensorProto.INT64, batch, "s")
    mask = given("attention_mask", TensorProto.INT64, batch, capacity)
    one, axis = w.constant("one", np.array([1], np.int64)), w.constant("axis", np.array([1], np.int64))
    lengths = w.node("Cast", w.node("Sub", w.node("ReduceSum", mask, axis, keepdims=0), one), to=TensorProto.INT32)
    total = w.node("Cast", w.node("Gather", w.node("Shape", mask), w.constant("second", np.array(1, np.int64))), to=TensorProto.INT32)
    tokens = w.weight("tokens", s.vocabulary, s.width, scale=0.3 if s.tied else 1)
    x = w.node("Gather", tokens, ids)
    cosines, sines = "", ""
    if s.positions:
        x = w.node("Add", x, w.node("Gather", w.weight("positions", s.positions, s.width, scale=0.1), places))
    else:
        angles = np.outer(np.arange(positions), 10000.0 ** (-np.arange(0, s.size, 2) / s.size))
        cosines, sines = (w.constant(n, f(angles).astype(dtype)) for n, f in (("cosines", np.cos), ("sines", np.sin)))

    def norm(name, x):
        scale = w.weight(name, s.width, scale=0.1, about=1)
        if s.positions:
            return w.node("LayerNormalization", x, scale, w.weight(name + ".bias", s.width, scale=0.02), epsilon=1e-5)
        return w.node("SimplifiedLayerNormalization", x, scale, epsilon=1e-5, axis=-1)

    for i in range(s.layers):
        y = w.linear(f"{i}.qkv", norm(f"{i}.before", x), s.width, s.width + 2 * s.groups * s.size, s.bias)
        past = [given(f"past_key_values.{i}.{n}", w.type, batch, s.groups, capacity, s.size) for n in ("key", "value")]
        present = [f"present.{i}.{n}" for n in ("key", "value")]
        outputs += [helper.make_tensor_value_info(n, w.type, (batch, s.groups, capacity, s.size)) for n in present]
        y = w.node("GroupQueryAttention", y, "", "", *past, lengths, total, cosines, sines, outputs=[f"attended{i}", *present], domain="com.microsoft",
                   num_heads=s.heads, kv_num_heads=s.groups, do_rotary=int(not s.positions))
        x = w.node("Add", x, w.linear(f"{i}.out", y, s.width, s.width, bool(s.positions)))
        y = norm(f"{i}.between", x)
        if s.positions:
            y = w.node("Gelu", w.linear(f"{i}.widen", y, s.width, s.inner, True), approximate="tanh")
        else:
            gate = w.linear(f"{i}.gate", y, s.width, s.inner)
            y = w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), w.linear(f"{i}.up", y, s.width, s.inner))
        x = w.node("Add", x, w.linear(f"{i}.narrow", y, s.inner, s.width, bool(s.positions)))
    x = w.node("Slice", norm("last", x), w.constant("begin", np.array([-1], np.int64)), w.constant("end", np.array([1 << 40], np.int64)), axis)
    if s.tied:
        w.node("MatMul", x, w.node("Transpose", tokens, perm=[1, 0]), outputs=["logits"])
    else:
        w.node("Identity", w.linear("head", x, s.width, s.vocabulary), outputs=["logits"])
    outputs.insert(0, helper.make_tensor_value_info("logits", w.type, (batch, 1, s.vocabulary)))
    w.data.close()
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)], ir_version=10),
         os.path.join(folder, "model.onnx"))
