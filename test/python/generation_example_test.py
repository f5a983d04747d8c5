# SPDX-License-Identifier: Apache-2.0
"""examples/generation: a model is trained, written and generated with, and its tokens are ONNX Runtime's."""

import importlib.util
import os
import pathlib

import numpy as np
import pytest

for module in ("onnxruntime", "tokenizers"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed")

import onnxruntime  # noqa: E402
import tensorwright  # noqa: E402

EXAMPLE = pathlib.Path(os.path.realpath(__file__)).parents[2] / "examples" / "generation" / "train.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("generation_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients(example):
    """Beside differences of the loss."""
    random = np.random.default_rng(0)
    w = {n: x.astype(np.float64) for n, x in example.weights(random).items()}
    tokens = random.integers(0, example.TOKENS, (2, 9))
    _, gradients = example.loss_and_gradients(w, tokens)
    for name, x in w.items():
        for _ in range(3):
            at = tuple(random.integers(0, n) for n in x.shape) if name != "places" else (int(random.integers(0, 8)), int(random.integers(0, x.shape[1])))
            kept, losses = x[at], []
            for step in (1e-5, -1e-5):
                x[at] = kept + step
                losses.append(example.loss_and_gradients(w, tokens)[0])
            x[at] = kept
            assert abs((losses[0] - losses[1]) / 2e-5 - gradients[name][at]) < 1e-6, (name, at)


def greedy(path, prompt, count):
    """By ONNX Runtime, without a cache but that of each run."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    tokens = list(prompt)
    empty = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    for _ in range(count):
        feed = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64), "position_ids": np.arange(len(tokens))[None]}
        tokens.append(int(session.run(["logits"], feed | empty)[0][0, -1].argmax()))
    return tokens[len(prompt):]


def test_counting(example, tmp_path):
    w, loss = example.train(steps=150, batch=8)
    assert loss < 0.3
    example.files(tmp_path / "counting", w)
    generator = tensorwright.Generator(tmp_path / "counting", cache=str(tmp_path / "plans"), slots=2)
    for prompt in ("seven, ", "one, two, three", "t"):
        result = generator.generate(prompt)
        tokens = [example.CHARACTERS.index(c) for c in prompt]
        assert result.tokens == greedy(tmp_path / "counting" / "model.onnx", tokens, 40)
        assert result.text == "".join(example.CHARACTERS[t] for t in result.tokens)
    assert generator.generate("seven, ").text.startswith("eight, nine, ten. one, ")
