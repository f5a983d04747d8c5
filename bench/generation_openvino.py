# SPDX-License-Identifier: Apache-2.0
"""Decoders of bench/models/decoder.py as models of OpenVINO with states, in the form that its converter of Hugging Face's models writes:
inputs 0 to 3 are input_ids, attention_mask, position_ids [1, s], beam_idx [1], output 0 logits of the last token. Weights are read from the ONNX file's own."""
import os

import numpy as np
import onnx
from openvino import Model, PartialShape, Shape, Tensor, Type, op
from openvino import opset13 as ops
from openvino.op import util


def weights_of(path):
    """Name -> array, of files mapped as they are."""
    model = onnx.load(path, load_external_data=False)
    data = np.memmap(os.path.join(os.path.dirname(path), "model.data"), np.uint8, "r")
    made = {}
    for t in model.graph.initializer:
        if t.external_data:
            where = {e.key: e.value for e in t.external_data}
            raw = data[int(where["offset"]):int(where["offset"]) + int(where["length"])]
            made[t.name] = raw.view(onnx.helper.tensor_dtype_to_np_dtype(t.data_type)).reshape(tuple(t.dims))
        else:
            made[t.name] = onnx.numpy_helper.to_array(t)
    return made


class _Builder:
    def __init__(self, shape, weights):
        self.s, self.w, self.sinks = shape, weights, []
        self.kept = []  # what tensors share with NumPy

    def constant(self, name):
        return ops.constant(np.ascontiguousarray(self.w[name]))

    def integers(self, *values):
        return ops.constant(np.array(values, np.int64))

    def linear(self, name, x):
        scales = self.w.get(name + ".scales")
        if scales is None:
            y = ops.matmul(x, self.constant(name), False, False)
        else:
            n, blocks, half = self.w[name].shape
            # q - 8 and scales in FP16, as its converter writes symmetric weights.
            self.kept.append(self.w[name] ^ 0x88)
            weights = ops.convert(op.Constant(Tensor(self.kept[-1], Shape([n, blocks, 2 * half]), Type.i4)), "f16")
            self.kept.append(scales.astype(np.float16)[:, :, None])
            weights = ops.multiply(weights, ops.constant(self.kept[-1]))
            weights = ops.convert(ops.reshape(weights, self.integers(n, blocks * half * 2), False), "f32")
            y = ops.matmul(x, weights, False, True)
        return ops.add(y, self.constant(name + ".bias")) if name + ".bias" in self.w else y

    def norm(self, name, x):
        last = self.integers(-1)
        if self.s.positions:
            y = ops.mvn(x, last, True, 1e-5, "INSIDE_SQRT")
            return ops.add(ops.multiply(y, self.constant(name)), self.constant(name + ".bias"))
        squares = ops.reduce_mean(ops.power(x, ops.constant(np.float32(2))), last, True)
        scale = ops.divide(ops.constant(np.float32(1)), ops.sqrt(ops.add(squares, ops.constant(np.float32(1e-5)))))
        return ops.multiply(ops.multiply(x, scale), self.constant(name))

    def turned(self, x, cosines, sines):
        half = self.s.size // 2
        low, high = (ops.slice(x, self.integers(b), self.integers(e), self.integers(1), self.integers(3)) for b, e in ((0, half), (half, 2 * half)))
        other = ops.concat([ops.multiply(high, ops.constant(np.float32(-1))), low], 3)
        return ops.add(ops.multiply(x, cosines), ops.multiply(other, sines))

    def cached(self, name, x, beams):
        s = self.s
        info = util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = PartialShape([-1, s.groups, -1, s.size]), Type.f32, name
        variable = util.Variable(info)
        empty = ops.broadcast(ops.constant(np.float32(0)), self.integers(1, s.groups, 0, s.size))
        past = ops.gather(ops.read_value(empty, variable), beams, ops.constant(np.int64(0)))
        together = ops.concat([past, x], 2)
        self.sinks.append(ops.assign(together, variable))
        times = s.heads // s.groups
        if times == 1:
            return together
        wide = ops.broadcast(ops.unsqueeze(together, self.integers(2)), self.integers(1, 1, times, 1, 1), broadcast_spec="BIDIRECTIONAL")
        return ops.reshape(wide, self.integers(0, s.heads, -1, s.size), True)

    def build(self):
        s, number = self.s, ops.constant(np.int64(0))
        ids, mask, places = (ops.parameter([1, -1], np.int64, name) for name in ("input_ids", "attention_mask", "position_ids"))
        beams = ops.parameter([-1], np.int32, "beam_idx")
        x = ops.gather(self.constant("tokens"), ids, number)
        cosines = sines = None
        if s.positions:
            x = ops.add(x, ops.gather(self.constant("positions"), places, number))
        else:
            both = [ops.constant(np.concatenate([self.w[n]] * 2, 1)) for n in ("cosines", "sines")]
            cosines, sines = (ops.unsqueeze(ops.gather(t, places, number), self.integers(1)) for t in both)
        # Causal: row i of s sees the keys in front of past + i; said as a mask of booleans.
        count, all_keys = (ops.gather(ops.shape_of(t), self.integers(1), number) for t in (ids, mask))
        columns = ops.range(number, ops.squeeze(all_keys, number), ops.constant(np.int64(1)), "i64")
        rows = ops.unsqueeze(ops.add(ops.range(number, ops.squeeze(count, number), ops.constant(np.int64(1)), "i64"), ops.subtract(all_keys, count)), self.integers(1))
        sees = ops.unsqueeze(ops.less_equal(columns, rows), self.integers(0, 1))
        for i in range(s.layers):
            qkv = ops.reshape(self.linear(f"{i}.qkv", self.norm(f"{i}.before", x)), self.integers(0, 0, -1, s.size), True)
            qkv = ops.transpose(qkv, self.integers(0, 2, 1, 3))
            q, k, v = ops.variadic_split(qkv, ops.constant(np.int64(1)), self.integers(s.heads, s.groups, s.groups)).outputs()
            if not s.positions:
                q, k = self.turned(q, cosines, sines), self.turned(k, cosines, sines)
            y = ops.scaled_dot_product_attention(q, self.cached(f"key{i}", k, beams), self.cached(f"value{i}", v, beams), sees)
            y = ops.reshape(ops.transpose(y, self.integers(0, 2, 1, 3)), self.integers(0, 0, s.width), True)
            x = ops.add(x, self.linear(f"{i}.out", y))
            y = self.norm(f"{i}.between", x)
            if s.positions:
                y = ops.gelu(self.linear(f"{i}.widen", y), "tanh")
            else:
                y = ops.multiply(ops.swish(self.linear(f"{i}.gate", y)), self.linear(f"{i}.up", y))
            x = ops.add(x, self.linear(f"{i}.narrow", y))
        x = ops.slice(self.norm("last", x), self.integers(-1), self.integers(1 << 40), self.integers(1), self.integers(1))
        logits = ops.matmul(x, self.constant("tokens"), False, True) if s.tied else self.linear("head", x)
        return Model([ops.result(logits)], self.sinks, [ids, mask, places, beams], "decoder")


def model_of(path, shape):
    """The model, and what must live as long as its engine."""
    builder = _Builder(shape, weights_of(path))
    return builder.build(), builder.kept
