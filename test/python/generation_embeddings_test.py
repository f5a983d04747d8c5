# SPDX-License-Identifier: Apache-2.0
"""Decoders that read embeddings, with the file that makes them of tokens beside them, as models of pictures and texts are exported."""

import numpy as np
import onnx
import pytest

import tensorwright

import decoding
from tiny_decoders import Decoder, apart, folder, merged
from generation_test import prompts_of


def split(path, model, name="decoder_model_merged.onnx", embeddings="embed_tokens.onnx", three=False, data=None, **options):
    """A folder with both files in its part `onnx`."""
    folder(path, model, tokenizer=None)
    (path / "model.onnx").unlink()
    (path / "onnx").mkdir()
    embedding, decoder = apart(model.onnx(**options), three)
    (path / "onnx" / embeddings).write_bytes(embedding)
    (path / "onnx" / name).write_bytes(data or decoder)
    return path


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("pages", [None, 0])
def test_tokens(kind, three, pages, tmp_path):
    model = Decoder(kind, seed=31)
    generator = tensorwright.Generator(split(tmp_path / "m", model, three=three), slots=3, capacity=90, chunk=16, pages=pages)
    assert type(generator.runs).__name__ == ("Paged" if pages is None and decoding.PAGED_BY_ITSELF else "Slots")
    prompts = prompts_of(32, 3, 40, 1, 17)
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=24)):
        assert result.tokens == model.greedy(prompt, 24)
    best = generator.generate(prompts[0], max_new_tokens=9, num_beams=3)
    floats, ints = decoding.settings(1, max_length=12)
    tokens, score = decoding.beam_search(lambda t: model.logits(t)[-1], prompts[0], 3, 90, floats[0], ints[0], [])[0]
    assert best.tokens == tokens[3:] and abs(best.score - score) < 1e-4


def test_two_in_one(tmp_path):
    """Quantized ones have a suffix, each file its own or none."""
    model = Decoder("llama", seed=33)
    data = merged(model, lambda data: apart(data)[1])
    path = split(tmp_path / "m", model, "decoder_model_merged_q4.onnx", "embed_tokens_q4.onnx", data=data)
    generator = tensorwright.Generator(path / "onnx" / "decoder_model_merged_q4.onnx", slots=2, capacity=60, chunk=8)
    assert generator.generate([1, 2, 3], max_new_tokens=16).tokens == model.greedy([1, 2, 3], 16)


def test_what_is_missing(tmp_path):
    model = Decoder("llama", seed=34)
    path = split(tmp_path / "m", model)
    (path / "onnx" / "embed_tokens.onnx").unlink()
    with pytest.raises(ValueError, match="reads inputs_embeds; embed_tokens.onnx, which makes them of tokens, is expected beside it"):
        tensorwright.Generator(path, slots=1, capacity=60)
    (path / "onnx" / "embed_tokens.onnx").write_bytes(model.onnx())
    with pytest.raises(ValueError, match="input_ids alone, and one output, are expected"):
        tensorwright.Generator(path, slots=1, capacity=60)
    embedding, _ = apart(model.onnx())
    (path / "onnx" / "embed_tokens.onnx").write_bytes(embedding)
    (path / "onnx" / "decoder_model_merged.onnx").write_bytes(model.onnx())
    reads_tokens = tensorwright.Generator(path, slots=1, capacity=60)  # and needs no other file
    assert reads_tokens.generate([1, 2, 3], max_new_tokens=9).tokens == model.greedy([1, 2, 3], 9)


def test_encoder_and_decoder_in_one(tmp_path):
    ids, more = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64, ["batch", n]) for n in ("input_ids", "decoder_input_ids"))
    nodes = [onnx.helper.make_node("ReduceSum", ["input_ids"], ["sum"]), onnx.helper.make_node("Add", ["decoder_input_ids", "sum"], ["all"]),
             onnx.helper.make_node("Gather", ["table", "all"], ["logits"])]
    table = onnx.numpy_helper.from_array(np.eye(9, dtype=np.float32), "table")
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", "decoder_input_ids", 9])
    graph = onnx.helper.make_graph(nodes, "both", [ids, more], [logits], [table])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="an encoder and a decoder in one"):
        tensorwright.Generator(tmp_path, slots=1, capacity=60)
