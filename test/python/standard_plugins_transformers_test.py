# SPDX-License-Identifier: Apache-2.0
"""Standard plugins of transformers beside NumPy: parts alone, and pairs of them that exchange a mask."""

import numpy as np
import pytest
import tensorrt as trt

from small import QUIET, run
from standard_plugins import check, engine_of, make, outputs_of, refusal, close

random = np.random.default_rng(9)


def data(*shape):
    return random.standard_normal(shape).astype(np.float32)


def norm(x, gamma, beta, axis):
    y = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True))
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return y * gamma.reshape(shape) + beta.reshape(shape)


def attention(q, k, v, keep):
    """[..., S, H] each; keep: broadcast to [..., S, S]."""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    s = np.where(keep, s, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("version, shape, axis", [("1", (5, 2, 8), 2), ("1", (5, 2, 8, 1, 1), 2), ("2", (9, 8, 1, 1), 1), ("3", (1, 8, 9, 1), 1), ("4", (1, 8, 9, 1), 1)])
@pytest.mark.parametrize("biased", [False, True])
def test_skip_layer_norm(version, shape, axis, biased):
    gamma, beta, bias = data(8), data(8), data(8)
    fields = dict(beta=beta, gamma=gamma)
    if version in "12":
        fields.update(type_id=0)
        if biased:
            fields["bias"] = bias
    if version == "1":
        fields["ld"] = 8
    biased = biased and version in "12"

    def wanted(x, skip):
        y = x + skip
        out = [norm(y + bias.reshape([-1 if i == axis else 1 for i in range(y.ndim)]) if biased else y, gamma, beta, axis)]
        return out + [y] if version == "4" else out

    check(make("CustomSkipLayerNormPluginDynamic", version, **fields), [data(*shape), data(*shape)], wanted, open_shapes=shape[0] != 1, half_tolerance=1e-2)


def test_fully_connected():
    w = data(6, 4)
    check(make("CustomFCPluginDynamic", out_dims=4, type_id=0, W=w), [data(3, 2, 6, 1, 1)], lambda x: [(x[..., 0, 0] @ w)[..., None, None]])


def weights(e=8, words=20, types=2, places=16):
    return dict(
        bert_embeddings_layernorm_beta=data(e),
        bert_embeddings_layernorm_gamma=data(e),
        bert_embeddings_word_embeddings=data(words, e),
        bert_embeddings_token_type_embeddings=data(types, e),
        bert_embeddings_position_embeddings=data(places, e),
    )


def embedded(w, ids, types, positions):
    words, kinds = w["bert_embeddings_word_embeddings"], w["bert_embeddings_token_type_embeddings"]
    known = (ids >= 0) & (ids < len(words)) & (types >= 0) & (types < len(kinds))
    x = words[np.clip(ids, 0, len(words) - 1)] + kinds[np.clip(types, 0, len(kinds) - 1)] + w["bert_embeddings_position_embeddings"][positions]
    x = np.where(known[..., None], x, 0).astype(np.float64)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return x, y * w["bert_embeddings_layernorm_gamma"] + w["bert_embeddings_layernorm_beta"]


@pytest.mark.parametrize("half", [0, 1])
def test_embeddings(half):
    w = weights()
    ids, types = random.integers(0, 20, (7, 3)).astype(np.int32), random.integers(0, 2, (7, 3)).astype(np.int32)
    ids[2, 1], ids[3, 0], types[4, 2] = 20, -1, 2
    mask = np.ones((7, 3), np.int32)
    mask[5:, 1] = 0
    plugin = make("CustomEmbLayerNormPluginDynamic", "1", output_fp16=half, full_mask=0, mha_type_id=half, **w)
    engine = engine_of(plugin, [ids, types, mask])
    y, m = outputs_of(engine, [ids, types, mask])
    assert y.dtype == (np.float16 if half else np.float32) and m.dtype == np.float32
    close([y, m], [embedded(w, ids, types, np.arange(7)[:, None])[1][..., None, None], mask.T], 4e-3 if half else 2e-5)


@pytest.mark.parametrize("version", "23")
def test_embeddings_of_rows(version):
    w = weights()
    lengths = [4, 1, 6]
    begins = np.cumsum([0, *lengths]).astype(np.int32)
    ids, types = random.integers(0, 20, 11).astype(np.int32), random.integers(0, 2, 11).astype(np.int32)
    positions = np.concatenate([np.arange(n) for n in lengths])
    plugin = make("CustomEmbLayerNormPluginDynamic", version, output_fp16=0, **w)
    arrays = [ids, types, begins, np.zeros(6, np.int32)]
    got = outputs_of(engine_of(plugin, arrays), arrays)
    x, y = embedded(w, ids, types, positions)
    close(got[:1], [y[..., None, None]], 2e-5)
    if version == "3":
        close(got[1:], [x[..., None, None]], 2e-5)
    else:
        assert got[1].dtype == np.float16


def of_heads(x, heads, size):
    """[S, B, 3E] as q, k, v [B, heads, S, size]."""
    s, b = x.shape[:2]
    return x.reshape(s, b, heads, 3, size).transpose(3, 1, 2, 0, 4)


@pytest.mark.parametrize("masked", ["no", "counts", "mask"])
def test_attention(masked):
    s, b, heads, size = 7, 3, 2, 4
    counts = np.array([7, 3, 1], np.int32)
    mask = (np.arange(s) < counts[:, None]).astype(np.float32)
    mask[0, 2] = 0
    arrays = [data(s, b, 3 * heads * size, 1, 1)]
    if masked != "no":
        arrays.append(counts if masked == "counts" else mask)

    def wanted(x, m=None):
        keep = True if m is None else (np.arange(s) < m[:, None] if m.ndim == 1 else m > 0.5)[:, None, None]
        y = attention(*of_heads(x[..., 0, 0], heads, size), keep)
        return [y.transpose(2, 0, 1, 3).reshape(s, b, heads * size, 1, 1)]

    for version, more in (("1", {}), ("2", {"var_seqlen": np.array([0], np.int32).view(np.float32)})):
        plugin = make("CustomQKVToContextPluginDynamic", version, type_id=0, hidden_size=heads * size, num_heads=heads, has_mask=int(masked != "no"), **more)
        check(plugin, arrays, wanted, half=masked != "mask", open_shapes=False)
        if masked != "mask":
            close(outputs_of(engine_of(plugin, arrays, open_shapes=True), arrays), wanted(*arrays), 2e-5)


def test_attention_of_rows():
    heads, size, lengths = 2, 4, [4, 1, 6]
    begins = np.cumsum([0, *lengths]).astype(np.int32)
    x, longest = data(11, 3 * heads * size, 1, 1), np.zeros(6, np.int32)

    def right(x):
        y = [attention(*of_heads(x[a:e, None, :, 0, 0], heads, size), True)[0].transpose(1, 0, 2).reshape(e - a, -1) for a, e in zip(begins, begins[1:])]
        return np.concatenate(y)[..., None, None]

    flag = np.array([1], np.int32).view(np.float32)  # demoBERT gives the integer under the type of a float
    plugin = make("CustomQKVToContextPluginDynamic", "2", type_id=0, hidden_size=heads * size, num_heads=heads, has_mask=1, var_seqlen=flag)
    check(plugin, [x, np.zeros((4, 1), np.float32), begins, longest], lambda x, *_: [right(x)], half=False, open_shapes=False)
    plugin = make("CustomQKVToContextPluginDynamic", "3", hidden_size=heads * size, num_heads=heads, dq_probs=1 / 127)
    check(plugin, [np.ascontiguousarray(x[..., 0, 0].T[None, ..., None]), begins, longest],
          lambda x, *_: [right(x[0, :, :, 0].T[..., None, None])[..., 0, 0].T[None, ..., None]], half=False, open_shapes=False)


@pytest.mark.parametrize("begins, rows", [([0, 5, 21, 21, 90], 90), ([0, 64, 300], 300), ([10, 3, -5, 40, 40, 2**31 - 1, -(2**31)], 50), ([], 7), ([3], 7)])
def test_attention_of_rows_with_any_begins(begins, rows):
    """Rows lie in one sequence where no begin stands between them; a begin counts if it is larger than all in front of it."""
    heads, size = 3, 16
    x = data(rows, 3 * heads * size, 1, 1)
    cuts, top = [0], 0
    for b in begins:
        top = max(top, min(b, rows))
        cuts.append(top)
    cuts.append(rows)
    wanted = [attention(*of_heads(x[a:e, None, :, 0, 0], heads, size), True)[0].transpose(1, 0, 2).reshape(e - a, -1) for a, e in zip(cuts, cuts[1:]) if e > a]
    flag = np.array([1], np.int32).view(np.float32)
    plugin = make("CustomQKVToContextPluginDynamic", "2", type_id=0, hidden_size=heads * size, num_heads=heads, has_mask=1, var_seqlen=flag)
    arrays = [x, np.zeros((4, 1), np.float32), np.array(begins, np.int32), np.zeros(6, np.int32)]
    close(outputs_of(engine_of(plugin, arrays), arrays), [np.concatenate(wanted)[..., None, None]], 2e-5)


def test_attention_of_images():
    def wanted(x):
        return [attention(*x.transpose(3, 0, 2, 1, 4), True).transpose(0, 2, 1, 3)]

    check(make("fMHA_V2"), [data(2, 9, 3, 3, 8)], wanted)

    def crossed(q, kv):
        k, v = kv.transpose(3, 0, 2, 1, 4)
        return [attention(q.transpose(0, 2, 1, 3), k, v, True).transpose(0, 2, 1, 3)]

    check(make("fMHCA"), [data(2, 9, 3, 8), data(2, 5, 3, 2, 8)], crossed)


def test_mask_goes_from_embeddings_to_attention():
    """The way of demoBERT's fixed lengths: what counts is what stands in front of the first 0 of the mask."""
    heads, size, s, b = 2, 4, 6, 2
    e = heads * size
    w, qkv = weights(e), data(e, 3 * e)
    ids, types = random.integers(0, 20, (s, b)).astype(np.int32), np.zeros((s, b), np.int32)
    mask = np.ones((s, b), np.int32)
    mask[4:, 1] = 0
    mask[2, 0] = 0
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    inputs = [network.add_input(n, trt.int32, (s, b)) for n in ("ids", "types", "mask")]
    embed = network.add_plugin_v2(inputs, make("CustomEmbLayerNormPluginDynamic", "1", output_fp16=0, full_mask=0, mha_type_id=0, **w))
    fc = network.add_plugin_v2([embed.get_output(0)], make("CustomFCPluginDynamic", out_dims=3 * e, type_id=0, W=qkv))
    context = network.add_plugin_v2([fc.get_output(0), embed.get_output(1)],
                                    make("CustomQKVToContextPluginDynamic", "1", type_id=0, hidden_size=e, num_heads=heads, has_mask=1))
    context.get_output(0).name = "y"
    network.mark_output(context.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
    got = run(engine, ids=ids, types=types, mask=mask)["y"]
    x = embedded(w, ids, types, np.arange(s)[:, None])[1] @ qkv
    keep = np.cumsum(mask == 0, 0).T == 0
    y = attention(*of_heads(x, heads, size), keep[:, None, None])
    close([got], [y.transpose(2, 0, 1, 3).reshape(s, b, e, 1, 1)], 5e-5)


def test_refusals():
    assert "missing required fields: {has_mask, hidden_size, num_heads, type_id}" in refusal("CustomQKVToContextPluginDynamic")
    assert "num_heads is 3" in refusal("CustomQKVToContextPluginDynamic", "3", hidden_size=8, num_heads=3)
    assert "out_dims is 3" in refusal("CustomFCPluginDynamic", out_dims=3, type_id=0, W=data(8))
    assert "beta has 4 elements, gamma 5" in refusal("CustomSkipLayerNormPluginDynamic", "3", beta=data(4), gamma=data(5))
    assert "rows have 8" in refusal("CustomEmbLayerNormPluginDynamic", "2", **{**weights(), "bert_embeddings_word_embeddings": data(9)})
