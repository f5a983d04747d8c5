#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: plugin_onnx.py FOLDER [--layers 12] [--hidden 768] [--heads 12] [--batch 32] [--seq 128] [--words 500]

Writes one BERT three times as ONNX, with the same seeded random weights (weights.bin), and its inputs, for machines that have trtexec alone:
  plugins.onnx  through standard plugins, sequence first, as demoBERT puts them together
  rows.onnx     the same for rows of sequences of several lengths (input begins), without padding
  layers.onnx   through layers, batch first
FOLDER/times.sh TRTEXEC [FLAG...] builds all three, runs them in turns and prints the lines of times. Sequences have lengths uniform in 16 to
--seq. plugin_networks.py has the same networks through the API."""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TIMES = """#!/bin/bash
cd "$(dirname "$0")"
inputs() { case $1 in rows) echo ids:ids_rows.bin,types:types_rows.bin,begins:begins.bin;; *) echo ids:ids.bin,types:types.bin,mask:mask.bin;; esac; }
for n in plugins layers rows; do "$@" --onnx=$n.onnx --buildOnly --saveEngine=$n.plan > $n.build.log 2>&1 || exit 1; done
for turn in 1 2 3 4 5; do for n in plugins layers rows; do
    echo "$n $("$@" --loadEngine=$n.plan --loadInputs="$(inputs $n)" --useCudaGraph --noDataTransfers --duration=1 | grep -o 'GPU Compute Time: min.*')"
done; done
"""


class Net:
    def __init__(self, folder):
        self.file = open(os.path.join(folder, "weights.bin"), "wb")
        self.folder, self.rng, self.places, self.shared = folder, np.random.default_rng(9), {}, {}
        self.begin()

    def begin(self):
        self.nodes, self.weights, self.inputs = [], [], []

    def shared_weights(self, name, *dims):
        """Of the name, drawn once: all layers of all three networks have them."""
        if name not in self.shared:
            scale = 0.1 if len(dims) == 1 else dims[0] ** -0.5
            self.shared[name] = (self.rng.standard_normal(dims) * scale).astype(np.float16).astype(np.float32)
        return self.shared[name]

    def constant(self, array):
        array = np.asarray(array)
        tensor = numpy_helper.from_array(array, f"c{len(self.weights)}")
        if array.nbytes >= 4096:
            data = array.tobytes()
            if data not in self.places:
                self.places[data] = self.file.tell()
                self.file.write(data)
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in ("location", "weights.bin"), ("offset", self.places[data]), ("length", len(data)):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, str(value)
        self.weights.append(tensor)
        return tensor.name

    def input(self, name, dims):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT32, dims))
        return name

    def op(self, kind, inputs, outputs=1, **attributes):
        names = [f"{kind}{len(self.nodes)}.{i}" for i in range(outputs)]
        node = helper.make_node(kind, inputs, names, name=names[0])
        for key, value in attributes.items():
            node.attribute.append(helper.make_attribute(key, numpy_helper.from_array(value, key) if isinstance(value, np.ndarray) else value))
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def scalar(self, kind, x, number):
        return self.op(kind, [x, self.constant(np.float32(number))])

    def reshape(self, x, *dims):
        return self.op("Reshape", [x, self.constant(np.array(dims, np.int64))])

    def save(self, name, x, dims):
        output = self.op("Identity", [x])
        graph = helper.make_graph(self.nodes, name, self.inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, dims)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with open(os.path.join(self.folder, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
        self.begin()


def linear(net, x, name, k, n, bias=True):
    y = net.op("MatMul", [x, net.constant(net.shared_weights(name, k, n))])
    return net.op("Add", [y, net.constant(net.shared_weights("bias of " + name, n))]) if bias else y


def gelu(net, x):
    inner = net.op("Add", [x, net.scalar("Mul", net.scalar("Pow", x, 3), 0.044715)])
    inner = net.scalar("Add", net.op("Tanh", [net.scalar("Mul", inner, 0.79788456)]), 1)
    return net.scalar("Mul", net.op("Mul", [x, inner]), 0.5)


def norm_weights(net, width):
    return {"beta": net.shared_weights("beta", width), "gamma": 1 + net.shared_weights("gamma", width)}


def tables(net, a):
    return net.shared_weights("words", a.words, a.hidden), net.shared_weights("types", 2, a.hidden), net.shared_weights("places", 512, a.hidden)


def through_plugins(net, a, tokens):
    """`tokens`: of rows; None: padded sequences."""
    e, norm = a.hidden, norm_weights(net, a.hidden)
    words, types, places = tables(net, a)
    fields = {"bert_embeddings_layernorm_" + key: value for key, value in norm.items()}
    fields.update({f"bert_embeddings_{key}_embeddings": value for key, value in
                   (("word", words), ("token_type", types), ("position", places))})
    if tokens is None:
        ids = [net.op("Transpose", [net.input(n, [a.batch, a.seq])], perm=[1, 0]) for n in ("ids", "types", "mask")]
        dims, version = (a.seq, a.batch), "1"
    else:
        longest = net.constant(np.zeros(a.seq, np.int32))
        ids = [net.input("ids", [tokens]), net.input("types", [tokens]), net.input("begins", [a.batch + 1]), longest]
        dims, version = (1, tokens), "2"
    x, mask = net.op("CustomEmbLayerNormPluginDynamic", ids, 2, plugin_version=version, output_fp16=1, mha_type_id=1, **fields)
    x = net.reshape(x, *dims, e)
    for _ in range(a.layers):
        qkv = net.reshape(linear(net, x, "qkv", e, 3 * e), *dims[tokens is not None :], 3 * e, 1, 1)
        more = {} if tokens is None else {"var_seqlen": 1}
        y = net.op("CustomQKVToContextPluginDynamic", [qkv, mask] + ids[2:] * (tokens is not None), plugin_version=version, type_id=1,
                   hidden_size=e, num_heads=a.heads, has_mask=1, **more)
        for name, y, k in ("out", net.reshape(y, *dims, e), e), ("down", None, 4 * e):
            y = gelu(net, linear(net, x, "up", e, 4 * e)) if y is None else y
            bias = net.shared_weights("bias of " + name, e)
            x = net.op("CustomSkipLayerNormPluginDynamic", [linear(net, y, name, k, e, bias=False), x], plugin_version=version, type_id=1, ld=e,
                       bias=bias, **norm)
    net.save("plugins" if tokens is None else "rows", x, [*dims, e])


def through_layers(net, a):
    e, size, norm = a.hidden, a.hidden // a.heads, norm_weights(net, a.hidden)
    ids, types, mask = (net.input(n, [a.batch, a.seq]) for n in ("ids", "types", "mask"))
    normalized = lambda x: net.op("LayerNormalization", [x, net.constant(norm["gamma"]), net.constant(norm["beta"])], axis=-1, epsilon=1e-6)
    words, kinds, places = tables(net, a)
    x = net.op("Add", [net.op("Gather", [net.constant(words), ids]), net.op("Gather", [net.constant(kinds), types])])
    x = normalized(net.op("Add", [x, net.constant(places[: a.seq])]))
    hidden = net.op("Sub", [net.constant(np.float32(1)), net.reshape(net.op("Cast", [mask], to=TensorProto.FLOAT), a.batch, 1, 1, a.seq)])
    hidden = net.scalar("Mul", hidden, -10000)
    for _ in range(a.layers):
        qkv = net.op("Transpose", [net.reshape(linear(net, x, "qkv", e, 3 * e), a.batch, a.seq, a.heads, 3, size)], perm=[3, 0, 2, 1, 4])
        q, k, v = (net.op("Gather", [qkv, net.constant(np.int64(i))], axis=0) for i in range(3))
        scores = net.scalar("Mul", net.op("MatMul", [q, net.op("Transpose", [k], perm=[0, 1, 3, 2])]), size**-0.5)
        y = net.op("MatMul", [net.op("Softmax", [net.op("Add", [scores, hidden])], axis=-1), v])
        y = net.reshape(net.op("Transpose", [y], perm=[0, 2, 1, 3]), a.batch, a.seq, e)
        x = normalized(net.op("Add", [x, linear(net, y, "out", e, e)]))
        x = normalized(net.op("Add", [x, linear(net, gelu(net, linear(net, x, "up", e, 4 * e)), "down", 4 * e, e)]))
    net.save("layers", x, [a.batch, a.seq, e])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    for name, default in ("layers", 12), ("hidden", 768), ("heads", 12), ("batch", 32), ("seq", 128), ("words", 500):
        parser.add_argument("--" + name, type=int, default=default)
    a = parser.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    rng = np.random.default_rng(1)
    lengths = rng.integers(16, a.seq + 1, a.batch)
    mask = np.arange(a.seq) < lengths[:, None]
    ids, types = rng.integers(0, a.words, mask.shape), rng.integers(0, 2, mask.shape)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    for name, array in {"ids": ids, "types": types, "mask": mask, "ids_rows": ids[mask], "types_rows": types[mask], "begins": begins}.items():
        array.astype(np.int32).tofile(os.path.join(a.folder, name + ".bin"))
    net = Net(a.folder)
    through_plugins(net, a, None)
    through_plugins(net, a, int(lengths.sum()))
    through_layers(net, a)
    net.file.close()
    with open(os.path.join(a.folder, "times.sh"), "w", encoding="utf-8") as file:
        file.write(TIMES)
    print(f"{lengths.sum()} of {mask.size} tokens")


if __name__ == "__main__":
    main()
