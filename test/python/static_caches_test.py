# SPDX-License-Identifier: Apache-2.0
"""Static caches as exporters write them: in place as they are, and by the lengths of sequences at a capacity, also in pages; tokens of
tensorwright.generate() for sequences of different lengths."""

import json

import numpy as np
import pytest
import tensorrt as trt
import tensorwright

pytest.importorskip("onnxruntime")
import decoding  # noqa: E402
import static_decoders as static  # noqa: E402
from decoders import GROUPS, LAYERS, SIZE, VOCABULARY  # noqa: E402
from kv_capacity_test import LENGTHS, TYPES  # noqa: E402

from tensorwright._model import Logger  # noqa: E402

ROWS, BLOCKS = 32, 5


@pytest.fixture(scope="module")
def reference():
    return static.Reference()


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


class Engine:
    def __init__(self, data, monkeypatch, capacity=None, pages=None):
        monkeypatch.setenv("TENSORWRIGHT_DEVICE", "cpu")
        for name, value in (("CAPACITY", capacity), ("PAGES", pages)):
            if value:
                monkeypatch.setenv("TENSORWRIGHT_KV_" + name, str(value))
        self.logger = Logger()
        builder = trt.Builder(self.logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        parser = trt.OnnxParser(network, self.logger)
        assert parser.parse(data), parser.get_error(0).desc()
        config, profile = builder.create_builder_config(), builder.create_optimization_profile()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for i in range(network.num_inputs):
            tensor = network.get_input(i)
            if tensor.is_shape_tensor:
                profile.set_shape_input(tensor.name, [0], [4], [ROWS])
            elif -1 in tuple(tensor.shape):
                profile.set_shape(tensor.name, *(self._shape(tensor, b, s) for b, s in ((1, 1), (2, 1), (2, 6))))
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise self.logger.failure("no engine")
        self.engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
        self.context = self.engine.create_execution_context()
        self.names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        self.inputs = [n for n in self.names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        found = json.loads(self.engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
        self.caches, self.kinds = found.get("Caches", []), [layer["Op"] for layer in found["Layers"]]
        self.held = {n: np.full([2 if d < 0 else d for d in self.engine.get_tensor_shape(n)], 3, np.float32) for n in self.inputs if ".layers." in n and not n.endswith("length") or "past" in n}

    @staticmethod
    def _shape(tensor, rows, new):
        shape, is_cache = list(tensor.shape), "cache.layers" in tensor.name or "past" in tensor.name
        return [n if n >= 0 else new if tensor.name == "cache_position" else rows if d == 0 else ROWS if is_cache or d == 3 else new for d, n in enumerate(shape)]

    def __call__(self, ids, before):
        """Logits; caches stay where they are."""
        new = ids.shape[1]
        places = np.asarray(before)[:, None] + np.arange(new)
        seen = np.arange(ROWS) <= places[:, :, None]
        sees = {"full": seen, "sliding": seen & (np.arange(ROWS) > places[:, :, None] - static.WINDOW)}
        arrays = {}
        for name in self.inputs:
            kind = TYPES[self.engine.get_tensor_dtype(name)]
            mask = next((m for k, m in sees.items() if k in name), seen)[:, None]
            x = (self.held[name] if name in self.held else ids if name == "input_ids" else places if name == "position_ids" else before if name == LENGTHS
                 else np.arange(2 * ROWS // 16).reshape(2, -1)[::-1] if name == "kv_pages" else places[0] if name == "cache_position"
                 else np.array(before[0]) if name.endswith("length") else np.where(mask, 0, -1e9) if kind == np.float32 else mask)
            arrays[name] = np.require(x, kind, "C").reshape(np.shape(x))
            assert self.context.set_input_shape(name, arrays[name].shape), self.logger.errors
            assert self.context.set_tensor_address(name, arrays[name].ctypes.data)
        made = {}
        for name in (n for n in self.names if n not in self.inputs):
            past = name.replace("output.", "input.").replace("present", "past_key_values")
            made[name] = arrays[past] if past in self.held else np.empty(tuple(self.context.get_tensor_shape(name)), TYPES[self.engine.get_tensor_dtype(name)])
            assert self.context.set_tensor_address(name, made[name].ctypes.data)
        assert self.context.execute_async_v3(0), self.logger.errors
        for name, x in made.items():
            assert not name.endswith("length") or int(x) == before[0] + new
        return made["logits"]


def check(engine, reference, runs, seed=3):
    tokens = np.random.default_rng(seed).integers(0, VOCABULARY, (2, ROWS))
    for new, before in runs:
        logits = engine(np.stack([t[n : n + new] for t, n in zip(tokens, before)]), np.array(before))
        for b, n in enumerate(before):
            wanted = reference.logits(tokens[b, : n + new].tolist())[n:]
            np.testing.assert_allclose(logits[b], wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
            assert np.ptp(wanted) > 0.1


TOGETHER = ((5, [0, 0]), (6, [5, 5]), (1, [11, 11]), (1, [12, 12]))
APART = (*TOGETHER, (1, [13, 4]), (3, [14, 5]), (1, [0, 8]))


@pytest.mark.parametrize("length", ["length", ROWS])
@pytest.mark.parametrize("how", ["as it is", "capacity", "pages"])
@pytest.mark.parametrize("floats", [False, True])
def test_counted(length, how, floats, reference, monkeypatch):
    engine = Engine(static.counted(length=length, floats=floats), monkeypatch, None if how == "as it is" else ROWS, BLOCKS if how == "pages" else None)
    assert engine.kinds.count("cache_update") == 2 * LAYERS and engine.kinds.count("attention") == LAYERS and "scatter" not in engine.kinds
    assert len(engine.caches) == 2 * LAYERS and (LENGTHS in engine.inputs) == (how != "as it is")
    assert not [k for k in engine.kinds if k == "softmax"]
    check(engine, reference, TOGETHER if how == "as it is" else APART)


@pytest.mark.parametrize("elements", [True, False])
@pytest.mark.parametrize("capacity", [None, ROWS])
def test_placed(elements, capacity, reference, monkeypatch):
    """Places that are an input: they may be any, so that nothing but their scatter is in place; at a capacity they are those of lengths."""
    engine = Engine(static.placed(elements=elements, length=ROWS, mask_by_places=False), monkeypatch, capacity)
    assert engine.kinds.count("scatter" if capacity is None else "cache_update") == 2 * LAYERS
    check(engine, reference, TOGETHER if capacity is None else APART)


@pytest.mark.parametrize("elements", [True, False])
def test_places_of_all(elements, reference, monkeypatch):
    """What is computed of one place for all sequences would be wrong for some."""
    data = static.placed(elements=elements, length=ROWS)
    check(Engine(data, monkeypatch), reference, TOGETHER)
    with pytest.raises(RuntimeError, match=r"layer '.*' \(.*\) reads where all sequences write to their caches \('cache_position'\)"):
        Engine(data, monkeypatch, ROWS)


@pytest.mark.parametrize("kinds, pages", [(None, None), (None, 0), (["full", "full"], None), (["sliding", "sliding"], None), (["sliding", "sliding"], 0)])
def test_generate(kinds, pages, tmp_path):
    """Greedy tokens of sequences of different lengths at a time, longer than the window."""
    slides = bool(kinds) and kinds[0] == "sliding"
    path = static.folder(tmp_path / "m", static.counted(kinds=kinds), "decode.onnx", **({"sliding_window": static.WINDOW} if slides else {}))
    reference = static.Reference(window=static.WINDOW if slides else 0)
    generator = tensorwright.Generator(path, slots=3, capacity=48, chunk=8, pages=pages)
    assert type(generator.runs).__name__ == ("Paged" if pages is None and decoding.PAGED_BY_ITSELF else "Slots")
    random = np.random.default_rng(5)
    prompts = [[int(t) for t in random.integers(0, VOCABULARY, n)] for n in (3, 19, 8, 1)]
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=14)):
        assert result.tokens == reference.greedy(prompt, 14)
    beams = [generator.generate(prompts[0], max_new_tokens=6, num_beams=n).tokens for n in (1, 3)]
    assert beams[0] == reference.greedy(prompts[0], 6) and len(beams[1]) == 6


def test_generate_by_place(tmp_path, reference):
    """One place for all sequences: each takes its steps alone."""
    path = static.folder(tmp_path / "m", static.placed(length=ROWS))
    generator = tensorwright.Generator(path, slots=3)
    prompts = [[1, 2, 3], [4, 5, 6, 7, 8, 9]]
    assert [r.tokens for r in generator.generate(prompts, max_new_tokens=10)] == [reference.greedy(p, 10) for p in prompts]


def test_window_is_not_said(tmp_path):
    path = static.folder(tmp_path / "m", static.counted(kinds=["sliding", "full"]), "decode.onnx")
    with pytest.raises(ValueError, match="is a mask of windows; a config.json beside the model has to say sliding_window"):
        tensorwright.Generator(path)
