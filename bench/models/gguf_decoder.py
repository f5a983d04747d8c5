# SPDX-License-Identifier: Apache-2.0
"""The decoders of decoder.py as GGUF files for llama.cpp, with the same weights (package gguf). Those of 4 bits keep them as Q4_0, whose scales are FP16."""
import os

import gguf
import numpy as np
import onnx


def _weights(folder):
    """{name: array} of a model's constants; those that are outside are mapped."""
    graph = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False).graph
    data, result = np.memmap(os.path.join(folder, "model.data"), np.uint8, "r"), {}
    for tensor in graph.initializer:
        if tensor.external_data:
            where = {e.key: e.value for e in tensor.external_data}
            raw = data[int(where["offset"]) : int(where["offset"]) + int(where["length"])]
            result[tensor.name] = raw.view(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).reshape(tuple(tensor.dims))
        else:
            result[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return result


def _turned_pairs(rows, heads):
    """Rows of queries or keys for rotations of neighbours, where ours are of halves."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _blocks(packed, scales):
    """Q4_0 of MatMulNBits: an FP16 scale and 16 bytes a block, the first 16 of its numbers in low halves."""
    low, high = packed & 15, packed >> 4
    numbers = np.stack([low, high], -1).reshape(*packed.shape[:2], 32)
    return np.concatenate([scales.astype(np.float16)[..., None].view(np.uint8), numbers[..., :16] | numbers[..., 16:] << 4], -1).reshape(packed.shape[0], -1)


def write(shape, folder, path, capacity, bits=0):
    """folder: of decoder.write(); path: the file."""
    s, w = shape, _weights(folder)
    kind = "gpt2" if s.positions else "qwen2" if s.bias else "llama"
    writer = gguf.GGUFWriter(path, kind)
    writer.add_context_length(capacity)
    writer.add_embedding_length(s.width)
    writer.add_block_count(s.layers)
    writer.add_feed_forward_length(s.inner)
    writer.add_head_count(s.heads)
    writer.add_head_count_kv(s.groups)
    writer.add_vocab_size(s.vocabulary)
    writer.add_tokenizer_model("none")
    if s.positions:
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(s.size)
        writer.add_rope_freq_base(10000.0)

    def linear(name, to, rows=slice(None), heads=0):
        arranged = (lambda x: _turned_pairs(x[rows], heads)) if heads else (lambda x: x[rows])
        if bits:
            blocks = _blocks(w[name], w[name + ".scales"].reshape(w[name].shape[:2]))
            writer.add_tensor(to + ".weight", np.ascontiguousarray(arranged(blocks)), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
        else:
            writer.add_tensor(to + ".weight", np.ascontiguousarray(arranged(w[name].T)))
        if name + ".bias" in w:
            writer.add_tensor(to + ".bias", np.ascontiguousarray(arranged(w[name + ".bias"])))

    def norm(name, to):
        for end in ("", ".bias"):
            if name + end in w:
                writer.add_tensor(to + (end or ".weight"), np.ascontiguousarray(w[name + end]))

    writer.add_tensor("token_embd.weight", np.ascontiguousarray(w["tokens"]))
    if s.positions:
        writer.add_tensor("position_embd.weight", np.ascontiguousarray(w["positions"]))
    q, kv = s.width, s.groups * s.size
    for i in range(s.layers):
        norm(f"{i}.before", f"blk.{i}.attn_norm")
        if s.positions:
            linear(f"{i}.qkv", f"blk.{i}.attn_qkv")
        else:
            pairs = kind == "llama"
            linear(f"{i}.qkv", f"blk.{i}.attn_q", slice(0, q), s.heads * pairs)
            linear(f"{i}.qkv", f"blk.{i}.attn_k", slice(q, q + kv), s.groups * pairs)
            linear(f"{i}.qkv", f"blk.{i}.attn_v", slice(q + kv, None))
        linear(f"{i}.out", f"blk.{i}.attn_output")
        norm(f"{i}.between", f"blk.{i}.ffn_norm")
        for name, to in (("widen", "ffn_up"), ("gate", "ffn_gate"), ("up", "ffn_up"), ("narrow", "ffn_down")):
            if f"{i}.{name}" in w:
                linear(f"{i}.{name}", f"blk.{i}.{to}")
    norm("last", "output_norm")
    if not s.tied:
        linear("head", "output")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
