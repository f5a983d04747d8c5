# SPDX-License-Identifier: Apache-2.0
"""Decoders in the forms that exporters write: a prompt, then tokens with the caches, beside ONNX Runtime."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
import decoders  # noqa: E402
import exported_decoders  # noqa: E402
import latent_decoders  # noqa: E402
import tensorrt as trt  # noqa: E402
from onnx_attention_models import engine_of, held  # noqa: E402
from onnx_microsoft_attention_test import todays  # noqa: E402
from small import run  # noqa: E402

STEPS, LONGEST = 12, 24
FORMS = {**decoders.FORMS, **exported_decoders.FORMS, **latent_decoders.FORMS}


def feed_of(spec, ids, mask, past, encoder):
    feed = {"input_ids": ids, **encoder}
    if spec.mask:
        feed["attention_mask"] = mask.astype(spec.mask_type)
    if spec.places:  # of what is no padding
        feed["position_ids"] = np.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1]:]
    if spec.capacity:
        feed["lengths"] = np.full(len(ids), mask.shape[1], np.int64)
        feed["write_indices"] = feed["lengths"] - ids.shape[1]
    if spec.branch:
        feed["use_cache_branch"] = np.array([mask.shape[1] > ids.shape[1]])
    feed.update({spec.names[0].format(n): a for n, a in past.items()})
    return feed


def empty(spec, batch, past):
    """Caches of this length; those of an encoder's keys have its own."""
    length = {n: spec.encoder if ".encoder." in n else spec.capacity or past for n in spec.past}
    return {n: np.zeros(spec.cache(n, batch, k), np.float32) for n, k in length.items()}


def generate(spec, step, ids, mask, encoder, past):
    """Tokens [batch, steps], and the logits that each was chosen by."""
    tokens, logits = [], []
    for _ in range(STEPS):
        out = step(feed_of(spec, ids, mask, past, encoder))
        logits.append(out["logits"][:, -1])
        ids = logits[-1].argmax(-1)[:, None]
        mask = np.concatenate([mask, np.ones((len(ids), 1), np.int64)], 1)
        past = {n: out.get(spec.names[1].format(n), past[n]) for n in past}
        tokens.append(ids)
    return np.concatenate(tokens, 1), np.stack(logits, 1)


def runtime(data):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # more would only wait for each other
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda feed: dict(zip(names, session.run(None, feed)))


def prompts(spec, batch, seed):
    """[batch, 5 to 9] tokens, those of shorter prompts behind padding."""
    r = np.random.default_rng(seed)
    longest = int(r.integers(5, 10))
    lengths = [longest] + [int(r.integers(3, longest + 1)) if spec.mask and spec.padded else longest for _ in range(batch - 1)]
    ids = r.integers(1, decoders.VOCABULARY, (batch, longest))
    mask = (np.arange(longest) >= longest - np.array(lengths)[:, None]).astype(np.int64)
    encoder, past = {}, empty(spec, batch, 0)
    for name in past:
        if ".encoder." in name and not spec.branch:
            past[name] = r.standard_normal(past[name].shape).astype(np.float32)
    if spec.branch:
        encoder["encoder_hidden_states"] = r.standard_normal((batch, spec.encoder, decoders.WIDTH)).astype(np.float32)
        encoder["encoder_attention_mask"] = (np.arange(spec.encoder) < spec.encoder - np.arange(batch)[:, None]).astype(np.int64)
    return ids, mask, encoder, past


def halves(feed):
    return {n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in feed.items()}


def engine_for(spec, change=dict):
    """For one or two sequences, prompts and single tokens, caches of any length."""
    feeds = []
    for b, s, past in ((2, 1, LONGEST - 1), (1, 1, 0), (1, 9, 0), (2, 9, 0)):
        encoder = prompts(spec, b, 0)[2]
        feeds.append(change(feed_of(spec, np.zeros((b, s), np.int64), np.ones((b, past + s), np.int64), empty(spec, b, past), encoder)))
    return engine_of(spec.data, feeds)


def kinds_of(engine):
    layers = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    return [layer["LayerType"] for layer in layers]


@pytest.mark.parametrize("form", FORMS)
def test_tokens(form):
    spec = FORMS[form]()
    engine, reference = engine_for(spec), runtime(getattr(spec, "standard", spec.data))
    if form not in ("t5", "gemma"):  # inside of a conditional, and capped scores
        assert "CudaSoftMax" not in kinds_of(engine), "each attention is one layer, whatever the lengths are"
    context = engine.create_execution_context()
    for batch in (1, 2):
        given = prompts(spec, batch, batch)
        want, want_logits = generate(spec, reference, *given)
        got, logits = generate(spec, lambda feed: run(engine, context, **held(feed)), *given)
        assert len({*want.reshape(-1).tolist()}) > 3, "tokens that do not change prove little"
        np.testing.assert_allclose(logits, want_logits, rtol=1e-4, atol=1e-4, err_msg=f"{form} {batch}")
        assert (got == want).all()


@pytest.mark.parametrize("form", todays(FORMS, 3))
def test_tokens_in_half(form):
    """Weights stay FLOAT16."""
    spec = FORMS[form]()
    reference = runtime(decoders.in_half(getattr(spec, "standard", spec.data)))
    spec.data = decoders.in_half(spec.data)
    engine = engine_for(spec, halves)
    context, given = engine.create_execution_context(), prompts(spec, 2, 2)
    _, want = generate(spec, lambda feed: reference(halves(feed)), *given)
    _, logits = generate(spec, lambda feed: run(engine, context, **held(halves(feed))), *given)
    assert logits.dtype == np.float16
    np.testing.assert_allclose(logits[:, 0].astype(np.float32), want[:, 0].astype(np.float32), atol=2e-2, err_msg=form)  # later ones may be of other tokens


def test_caches_as_short_as_a_window():
    """What slides out of them cannot be told from what is there."""
    spec = decoders.FORMS["genai_sliding"]()
    model = onnx.load_from_string(spec.data)
    for value in (*model.graph.input, *model.graph.output):
        if "past" in value.name or "present" in value.name:
            value.type.tensor_type.shape.dim[2].dim_value = 6
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    network = trt.Builder(logger).create_network(1)
    parser = trt.OnnxParser(network, logger)
    assert not parser.parse(model.SerializeToString())
    assert "sliding_window_cache with caches of 6 rows, no more than the window of 6, cannot be imported" in parser.get_error(0).desc()
