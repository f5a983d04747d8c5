# SPDX-License-Identifier: Apache-2.0
"""tensorwright.Generator on decoders in the forms of exporters (decoders.py), beside ONNX Runtime, which reads all tokens at each step."""

import json

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")
decoders = pytest.importorskip("decoders", reason="SKIP: there is no decoders.py, which writes the forms of exporters")

import tensorwright  # noqa: E402

import alibi_decoders  # noqa: E402
import decoding  # noqa: E402
import exported_decoders  # noqa: E402
import latent_decoders  # noqa: E402

# Places that those models have at most, prompt and new tokens.
LONGEST, NEW = 24, 12


def reference(spec):
    """logits(tokens), of the last one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # more would only wait for each other
    session = onnxruntime.InferenceSession(getattr(spec, "standard", spec.data), options, providers=["CPUExecutionProvider"])

    def logits(tokens):
        feed = {"input_ids": np.array([tokens])}
        if spec.mask:
            feed["attention_mask"] = np.ones((1, len(tokens)), spec.mask_type)
        if spec.places:
            feed["position_ids"] = np.arange(len(tokens))[None]
        if spec.capacity:
            feed |= {"lengths": np.array([len(tokens)]), "write_indices": np.array([0])}
        for name in spec.past:
            feed[spec.names[0].format(name)] = np.zeros(spec.cache(name, 1, spec.capacity), np.float32)
        return session.run(["logits"], feed)[0][0, -1]

    return logits


def greedy(logits, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(logits(tokens).argmax()))
    return tokens[len(prompt):]


def prompts_of(seed, *lengths):
    random = np.random.default_rng(seed)
    return [[int(t) for t in random.integers(1, decoders.VOCABULARY, n)] for n in lengths]


@pytest.mark.parametrize("form", decoders.FORMS)
def test_tokens(form, tmp_path):
    spec = decoders.FORMS[form]()
    (tmp_path / "model.onnx").write_bytes(spec.data)

    def make():
        return tensorwright.Generator(tmp_path / "model.onnx", slots=3, capacity=LONGEST, chunk=5, cache=False)

    if spec.encoder:
        with pytest.raises(ValueError, match="is of an encoder; encoder_model.onnx is expected beside"):
            make()
        return
    generator, logits = make(), reference(spec)
    prompts = prompts_of(1, 5, 12, 1, 9, 2)
    wanted = [greedy(logits, p, NEW) for p in prompts]
    assert len({t for w in wanted for t in w}) > 3
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=NEW)] == wanted


TODAY = {**exported_decoders.FORMS, **alibi_decoders.FORMS}
LATENT = latent_decoders.FORMS


@pytest.mark.parametrize("form", TODAY)
def test_tokens_of_todays_exporters(form, tmp_path):
    spec = TODAY[form]()
    (tmp_path / "model.onnx").write_bytes(spec.data)
    generator, logits = tensorwright.Generator(tmp_path / "model.onnx", slots=3, capacity=32, chunk=5, cache=False), reference(spec)
    assert ("caches paged" in repr(generator)) == decoding.PAGED_BY_ITSELF
    prompts = prompts_of(1, 5, 12, 1, 9, 2)
    wanted = [greedy(logits, p, NEW) for p in prompts]
    assert len({t for w in wanted for t in w}) > 3
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=NEW)] == wanted


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("form", LATENT)
def test_latent_attention(form, masked, tmp_path):
    """In pages where keys and values are kept, else each row in its place; also without a mask, which Transformers' exporter leaves out."""
    spec = LATENT[form](masked=masked)
    (tmp_path / "model.onnx").write_bytes(spec.data)
    generator, logits = tensorwright.Generator(tmp_path / "model.onnx", slots=3, capacity=32, chunk=5, cache=False), reference(spec)
    if decoding.PAGED_BY_ITSELF:
        assert generator.runs.kind == ("paged" if form == "kept" else "slots") and generator.interface.index == "kv_lengths"
    prompts = prompts_of(1, 5, 12, 1, 9, 2)
    wanted = [greedy(logits, p, NEW) for p in prompts]
    assert len({t for w in wanted for t in w}) > 3
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=NEW)] == wanted


@pytest.mark.parametrize("window", [0, 6])
def test_files_of_transformers(window, tmp_path):
    """Its folders have decode.onnx beside prefill.onnx, which is not needed where the first one takes any number of tokens."""
    spec = exported_decoders.sdpa(56, "tuples", window, masked=False)
    (tmp_path / "decode.onnx").write_bytes(exported_decoders.as_transformers_writes(spec, window))
    (tmp_path / "prefill.onnx").write_bytes(b"")
    if window:
        with pytest.raises(ValueError, match="config.json beside the model has to say sliding_window"):
            tensorwright.Generator(tmp_path, slots=3, capacity=32, cache=False)
        (tmp_path / "config.json").write_text(json.dumps({"sliding_window": window}))
    generator, logits = tensorwright.Generator(tmp_path, slots=3, capacity=32, chunk=5, cache=False), reference(spec)
    assert ("caches paged" in repr(generator)) == decoding.PAGED_BY_ITSELF and generator.name == tmp_path.name
    prompts = prompts_of(2, 5, 12, 1)
    wanted = [greedy(logits, p, NEW) for p in prompts]
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=NEW)] == wanted


@pytest.fixture
def long(monkeypatch):
    """Models for 256 tokens and more."""
    monkeypatch.setattr(decoders, "PLACES", 272)
    monkeypatch.setattr(decoders, "ROOM", 256)


ALONE = [f for f in decoders.FORMS if f not in ("t5", "whisper")]


@pytest.mark.parametrize("form", ALONE)
def test_128_behind_128(form, long, tmp_path):
    spec = decoders.FORMS[form]()
    (tmp_path / "model.onnx").write_bytes(spec.data)
    generator = tensorwright.Generator(tmp_path / "model.onnx", slots=2, capacity=256, chunk=50, cache=False)
    prompts, logits = prompts_of(3, 128, 128), reference(spec)
    wanted = [greedy(logits, p, 128) for p in prompts]
    assert len({t for w in wanted for t in w}) > 5
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=128)] == wanted


@pytest.mark.parametrize("form", ALONE)
def test_beams(form, long, tmp_path):
    """Four of them, and their scores; an end token that comes now and then."""
    spec = decoders.FORMS[form]()
    (tmp_path / "model.onnx").write_bytes(spec.data)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 5}))
    generator = tensorwright.Generator(tmp_path / "model.onnx", slots=4, capacity=256, chunk=50, cache=False)
    logits = reference(spec)
    for prompt, penalty, least in zip(prompts_of(4, 128, 9), (1.0, 0.3), (0, 14)):
        floats, ints = decoding.settings(1, length_penalty=penalty, max_length=len(prompt) + 24, min_length=len(prompt) + least)
        tokens, score = decoding.beam_search(logits, prompt, 4, 256, floats[0], ints[0], [5])[0]
        got = generator.generate(prompt, max_new_tokens=24, min_new_tokens=least, num_beams=4, length_penalty=penalty)
        assert got.tokens == tokens[len(prompt):] and abs(got.score - score) < 1e-4
