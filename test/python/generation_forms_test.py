# SPDX-License-Identifier: Apache-2.0
"""tensorwright.Generator on decoders in the forms of exporters (decoders.py), beside ONNX Runtime, which reads all tokens at each step."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")
decoders = pytest.importorskip("decoders", reason="SKIP: there is no decoders.py, which writes the forms of exporters")

import tensorwright  # noqa: E402

# Places that those models have at most, prompt and new tokens.
LONGEST, NEW = 24, 12


def reference(spec):
    """greedy(prompt, count)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(spec.data, options, providers=["CPUExecutionProvider"])

    def logits(tokens):
        feed = {"input_ids": np.array([tokens])}
        if spec.mask:
            feed["attention_mask"] = np.ones((1, len(tokens)), spec.mask_type)
        if spec.places:
            feed["position_ids"] = np.arange(len(tokens))[None]
        if spec.capacity:
            feed |= {"lengths": np.array([len(tokens)]), "write_indices": np.array([0])}
        for name in spec.past:
            feed[spec.names[0].format(name)] = np.zeros((1, spec.heads, spec.capacity, spec.size), np.float32)
        return session.run(["logits"], feed)[0][0, -1]

    def greedy(prompt, count):
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(logits(tokens).argmax()))
        return tokens[len(prompt):]

    return greedy


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
    generator, greedy = make(), reference(spec)
    random = np.random.default_rng(1)
    prompts = [[int(t) for t in random.integers(1, decoders.VOCABULARY, n)] for n in (5, 12, 1, 9, 2)]
    wanted = [greedy(p, NEW) for p in prompts]
    assert len({t for w in wanted for t in w}) > 3
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=NEW)] == wanted
