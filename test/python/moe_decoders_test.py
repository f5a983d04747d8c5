# SPDX-License-Identifier: Apache-2.0
"""Decoders with mixtures of experts, and attention with sinks as torch exports it: caches of a capacity and in pages, sequences of different lengths beside
ONNX Runtime; greedy tokens of tensorwright.generate()."""

import json

import numpy as np
import pytest
import tensorrt as trt
import tensorwright

pytest.importorskip("onnxruntime")
import decoders  # noqa: E402
import decoding  # noqa: E402
import kv_capacity_test as fixed  # noqa: E402
import kv_pages_test as paged  # noqa: E402
import moe_decoders  # noqa: E402


def kinds_of(engine):
    found = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    return [layer["Op"] for layer in found["Layers"]], found["Layers"]


@pytest.mark.parametrize("form", moe_decoders.FORMS)
def test_at_a_capacity(form, monkeypatch):
    spec = moe_decoders.FORMS[form]()
    engine, random = fixed.Engine(spec.data, monkeypatch), np.random.default_rng(len(form))
    kinds, layers = kinds_of(engine.engine)
    assert kinds.count("attention") == decoders.LAYERS and kinds.count("cache_update") == 2 * decoders.LAYERS
    if form == "gpt_oss":
        assert [layer["Attributes"]["sinks"] for layer in layers if layer["Op"] == "attention"] == [1] * decoders.LAYERS
    for lengths, new in (((0, 0, 0), 5), ((3, 9, 0), 1), ((7,), 1), ((18, 2), 6), ((5, 17), 3)):
        fixed.check(spec, engine, random, lengths, new, padded=False)


@pytest.mark.parametrize("form", moe_decoders.FORMS)
def test_in_pages(form, monkeypatch):
    spec = moe_decoders.FORMS[form]()
    engine, random = paged.engine_of(spec.data, monkeypatch), np.random.default_rng(len(form))
    for lengths, new in (((3, 9, 0), 1), ((40,), 1), ((18, 2), 6)):
        paged.check(spec, engine, random, lengths, new, padded=False)


@pytest.mark.parametrize("form", moe_decoders.FORMS)
def test_tokens(form, tmp_path):
    spec = moe_decoders.FORMS[form]()
    (tmp_path / "model.onnx").write_bytes(spec.data)
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 64}')
    session = fixed.session_of(spec.data)
    past = {i.name: np.zeros((1, spec.heads, 0, spec.size), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    generator = tensorwright.Generator(tmp_path, slots=3, capacity=48, chunk=8, cache=False)
    assert type(generator.runs).__name__ == ("Paged" if decoding.PAGED_BY_ITSELF else "Slots")
    random = np.random.default_rng(2)
    prompts = [[int(t) for t in random.integers(0, decoders.VOCABULARY, n)] for n in (4, 17, 1)]
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=12)):
        tokens = list(prompt)
        for _ in range(12):
            count = len(tokens)
            feed = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, count), np.int64), "position_ids": np.arange(count)[None], **past}
            tokens.append(int(session.run(["logits"], feed)[0][0, -1].argmax()))
        assert result.tokens == tokens[len(prompt):]
