# SPDX-License-Identifier: Apache-2.0
"""Decoders of bench/models/decoder.py as GGUF files (package gguf): FP32 weights as they are, those of 4 bits in blocks of 32 as Q4_0, whose scales are
FP16. The file says no tokens' texts."""
import gguf
import numpy as np


def _q4_0(packed, scales):
    """[n, blocks, 16] bytes of neighbours -> [n, blocks * 18] bytes: FP16 scales, halves of blocks beside each other."""
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:2], 32)
    halves = numbers[..., :16] | numbers[..., 16:] << 4
    return np.concatenate([scales.astype(np.float16)[..., None].view(np.uint8), halves], -1).reshape(len(packed), -1)


def _interleaved(rows, heads):
    """llama.cpp turns neighbours in the place of halves."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write(path, shape, weights, capacity):
    s = shape
    arch = "gpt2" if s.positions else "qwen2" if s.bias else "llama"
    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(capacity)
    w.add_embedding_length(s.width)
    w.add_block_count(s.layers)
    w.add_feed_forward_length(s.inner)
    w.add_head_count(s.heads)
    w.add_vocab_size(s.vocabulary)
    w.add_tokenizer_model("none")
    if s.positions:
        w.add_layer_norm_eps(1e-5)
    else:
        w.add_head_count_kv(s.groups)
        w.add_layer_norm_rms_eps(1e-5)
        w.add_rope_dimension_count(s.size)
        w.add_rope_freq_base(10000.0)

    def rows_of(name):
        """[n, k] of a product, or its Q4_0."""
        if name + ".scales" in weights:
            return _q4_0(weights[name], weights[name + ".scales"])
        return np.ascontiguousarray(weights[name].T)

    def add(name, array):
        w.add_tensor(name, np.ascontiguousarray(array), raw_dtype=gguf.GGMLQuantizationType.Q4_0 if array.dtype == np.uint8 else None)

    def product(to, name):
        add(to + ".weight", rows_of(name))
        if name + ".bias" in weights:
            add(to + ".bias", weights[name + ".bias"])

    def norm(to, name):
        add(to + ".weight", weights[name])
        if name + ".bias" in weights:
            add(to + ".bias", weights[name + ".bias"])

    add("token_embd.weight", weights["tokens"])
    if s.positions:
        add("position_embd.weight", weights["positions"])
    norm("output_norm", "last")
    if not s.tied:
        product("output", "head")
    for i in range(s.layers):
        at = f"blk.{i}."
        norm(at + "attn_norm", f"{i}.before")
        norm(at + "ffn_norm", f"{i}.between")
        if s.positions:
            product(at + "attn_qkv", f"{i}.qkv")
        else:
            parts = np.cumsum([s.heads * s.size, s.groups * s.size])
            biases = np.split(weights[f"{i}.qkv.bias"], parts) if s.bias else [None] * 3
            for to, rows, bias, heads in zip(("q", "k", "v"), np.split(rows_of(f"{i}.qkv"), parts), biases, (s.heads, s.groups, 0)):
                turns = heads and arch == "llama"  # qwen2's halves are as ours
                add(f"{at}attn_{to}.weight", _interleaved(rows, heads) if turns else rows)
                if bias is not None:
                    add(f"{at}attn_{to}.bias", bias)
        product(at + "attn_output", f"{i}.out")
        for to, name in (("up", "widen"), ("down", "narrow")) if s.positions else (("gate", "gate"), ("up", "up"), ("down", "narrow")):
            product(at + "ffn_" + to, f"{i}.{name}")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
