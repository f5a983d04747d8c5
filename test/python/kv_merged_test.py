# SPDX-License-Identifier: Apache-2.0
"""Two decoders in one file (an If over use_cache_branch), built for caches of a capacity: the first run, without a past, and steps behind it are
runs of one engine over caches in place, each sequence as long as it is."""

import json

import numpy as np
import onnx
import pytest
import tensorrt as trt

pytest.importorskip("onnxruntime")
decoders = pytest.importorskip("decoders", reason="SKIP: there is no decoders.py, which writes the forms of exporters")
import kv_capacity_test as fixed  # noqa: E402
import seq2seq_models as pairs  # noqa: E402
import tiny_decoders  # noqa: E402

CAPACITY, SOURCE = fixed.CAPACITY, pairs.FRAMES // 2


class Engine(fixed.Engine):
    @staticmethod
    def shape(tensor, rows, new):
        if tensor.name.startswith("encoder") or ".encoder." in tensor.name:
            return [rows if d == 0 else SOURCE if n < 0 else n for d, n in enumerate(tensor.shape)]
        return fixed.Engine.shape(tensor, rows, new)


def caches_of(engine, rows, source):
    """Arrays of all inputs that are caches, and which output each is one buffer with."""
    made = {}
    for name in engine.names:
        if name.startswith("past_"):
            shape = list(engine.engine.get_tensor_shape(name))
            shape[0], shape[2] = rows, source if shape[2] < 0 else shape[2]
            made[name] = np.full(shape, 7, np.float32)  # what nothing was written to is no zero
    return made, {n: n.replace("past_key_values", "present") for n in made}


@pytest.mark.parametrize("kind", ["t5", "bart", "whisper"])
@pytest.mark.parametrize("rows", [1, 3])
def test_with_an_encoder(kind, rows, monkeypatch):
    engine, reference, random = Engine(pairs.merged(kind), monkeypatch), pairs.Reference(kind), np.random.default_rng(len(kind) + rows)
    sources = [pairs.source_of(kind, random, SOURCE) for _ in range(rows)]
    states = np.concatenate([reference.states(s) for s in sources])
    caches, in_place = caches_of(engine, rows, states.shape[1])
    assert {tuple(engine.engine.get_tensor_shape(n))[2] for n in caches if ".decoder." in n} == {CAPACITY}
    tokens = random.integers(4, decoders.VOCABULARY, (rows, 14))
    before = np.zeros(rows, int)  # all begin at once; then each goes on from where it likes
    for new, branch, lengths in ((5, False, [0] * rows), (1, True, [5, 3, 4]), (1, True, [6, 4, 5]), (4, True, [7, 5, 6]), (1, True, [11, 9, 10])):
        before = np.array(lengths[:rows])
        ids = np.stack([t[n : n + new] for t, n in zip(tokens, before)])
        feed = {"input_ids": ids, "use_cache_branch": np.array([branch]), "encoder_hidden_states": states, fixed.LENGTHS: before, **caches}
        if kind != "whisper":
            feed["encoder_attention_mask"] = np.ones(states.shape[:2])
        feed = {n: x for n, x in feed.items() if n in engine.names}
        logits = engine(feed, in_place)["logits"]
        for b, n in enumerate(before):
            wanted = reference.logits(states[b : b + 1], tokens[b, : n + new])
            np.testing.assert_allclose(logits[b, -1], wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
            assert np.ptp(wanted) > 0.1


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("places", [True, False, None])
def test_alone(places, turned, monkeypatch):
    """turned: the other branch is the one with a past. What is said of the branch says nothing behind no rows."""
    model = tiny_decoders.Decoder("llama", seed=5)
    data = tiny_decoders.merged(model, places=places)
    data = turned_round(data) if turned else data
    engine, random = Engine(data, monkeypatch), np.random.default_rng(3)
    caches, in_place = caches_of(engine, 2, 0)
    tokens = random.integers(0, model.tokens, (2, 12))
    for new, branch, lengths in ((6, False, [0, 0]), (1, True, [6, 2]), (3, True, [7, 3]), (2, False, [0, 0]), (1, True, [2, 1])):
        before = np.array(lengths)
        feed = {"input_ids": np.stack([t[n : n + new] for t, n in zip(tokens, before)]), "use_cache_branch": np.array([branch]),
                "attention_mask": np.ones((2, CAPACITY)), fixed.LENGTHS: before, **caches}
        if places:
            feed["position_ids"] = before[:, None] + np.arange(new)
        found = engine({n: x for n, x in feed.items() if n in engine.names}, in_place)
        for b, n in enumerate(before):
            wanted = model.logits(list(tokens[b, : n + new]))[n:]
            np.testing.assert_allclose(found["logits"][b], wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


def turned_round(data):
    model = onnx.load_model_from_string(data)
    choice = model.graph.node[0]
    for a, name in zip(choice.attribute, ("else_branch", "then_branch") if choice.attribute[0].name == "then_branch" else ("then_branch", "else_branch")):
        a.name = name
    return model.SerializeToString()


def test_attention_is_one_layer(monkeypatch):
    """Of both attentions of a layer, as in a file of one decoder."""
    engine = Engine(pairs.merged("bart"), monkeypatch).engine
    found = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    kinds = [layer["Op"] for layer in found["Layers"]]
    assert kinds.count("attention") == 2 * decoders.LAYERS and "softmax" not in kinds and len(found["Caches"]) == 2 * decoders.LAYERS


def test_refused(monkeypatch):
    """What is chosen by numbers that the network computes is no choice between two decoders."""
    model = onnx.load_model_from_string(tiny_decoders.merged(tiny_decoders.Decoder("llama", seed=5)))
    graph = model.graph
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(2, np.int64), "two"))
    made = [onnx.helper.make_node("ReduceMax", ["input_ids"], ["most"], keepdims=0), onnx.helper.make_node("Greater", ["most", "two"], ["chosen"])]
    choice = graph.node[0]
    choice.input[0] = "chosen"
    del graph.node[:]
    graph.node.extend([*made, choice])
    del graph.input[0]
    with pytest.raises(RuntimeError, match=r"none that get longer .*'past_key_values.0.key' is read by layer '.*' \(conditional\)"):
        Engine(model.SerializeToString(), monkeypatch)
