# SPDX-License-Identifier: Apache-2.0
"""tensorwright.generate(): tokens of tiny decoders as exporters write them, beside NumPy, which computes each token from all before it."""

import logging
import threading

import numpy as np
import onnx
import pytest
import tensorwright
from tensorwright import _memory
from tensorwright.generation import pace, runs

import decoding
from tiny_decoders import Decoder, folder, halved, merged

FORMS = {
    "positions as an input": {},
    "positions of the mask": {"places": False},
    "positions of the cache's size": {"places": None},
    "no mask": {"mask": False, "places": False},
    "no cache": {"caches": None},
    "no cache, no mask": {"caches": None, "mask": False, "places": False},
    "TensorScatter": {"caches": "scatter"},
    "two in one": {"made": merged},
    "two in one, no mask": {"made": merged, "mask": False, "places": False},
    "other names": {"names": ("past_{1}_{0}", "present_{1}_{0}"), "logits": "scores"},
}
KINDS = {"TensorScatter": "Slots", "no cache": "Whole", "no cache, no mask": "Whole"}
WITHOUT_PAGES = {"positions as an input": "Slots", "positions of the mask": "Slots", "two in one": "Slots", "two in one, no mask": "Growing", "positions of the cache's size": "Growing", "no mask": "Growing", "other names": "Slots"}


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    """Engines of one test serve others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", seed=3)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return folder(tmp_path_factory.mktemp("models") / "tiny", model, tokenizer=None)


@pytest.fixture(params=[None, 0], ids=["pages", "slots"])
def generator(path, request):
    return tensorwright.Generator(path, slots=4, capacity=80, chunk=16, pages=request.param)


def prompts_of(seed, *lengths, tokens=40):
    random = np.random.default_rng(seed)
    return [[int(t) for t in random.integers(0, tokens, n)] for n in lengths]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("form, pages", [*((f, None) for f in FORMS), *((f, 0) for f in WITHOUT_PAGES)])
def test_greedy(kind, form, pages, tmp_path):
    """More prompts than slots, shorter and longer than a piece, and past the first size of the caches."""
    model = Decoder(kind, seed=len(form))
    options = dict(FORMS[form])
    path = folder(tmp_path / "m", model, data=options.pop("made", Decoder.onnx)(model, **options), tokenizer=None)
    generator = tensorwright.Generator(path, slots=3, capacity=90, chunk=16, pages=pages)
    kind_of_runs = KINDS.get(form) or ("Paged" if pages is None and decoding.PAGED_BY_ITSELF else WITHOUT_PAGES[form])
    assert type(generator.runs).__name__ == kind_of_runs and "llama" not in repr(generator)
    prompts = prompts_of(1, 3, 40, 1, 17, 70, 16)
    results = generator.generate(prompts, max_new_tokens=24)
    for prompt, result in zip(prompts, results):
        count = min(24, 90 - len(prompt))
        assert result.tokens == model.greedy(prompt, count)
        assert result.reason == "length" and result.text is None and result.prompt_tokens == len(prompt)
    assert generator.generate(prompts[0], max_new_tokens=5).tokens == model.greedy(prompts[0], 5)


@pytest.mark.parametrize("form", ["positions as an input", "no mask", "TensorScatter"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("pages", [None, 0])
def test_half(form, precision, pages, tmp_path):
    """Models in FP16: each token is the best one but for rounding."""
    model = Decoder("llama", seed=21)
    path = folder(tmp_path / "m", model, data=halved(model, **FORMS[form]), tokenizer=None)
    generator = tensorwright.Generator(path, slots=3, capacity=90, chunk=16, precision=precision, pages=pages)
    assert type(generator.runs).__name__ == (KINDS.get(form) or ("Paged" if pages is None else WITHOUT_PAGES[form]))
    prompts = prompts_of(22, 5, 30, 2, 20)
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=16)):
        logits = model.logits(prompt + result.tokens)
        chosen = logits[len(prompt) - 1 : -1]
        assert len(result.tokens) == 16 and all(x.max() - x[t] < 0.1 for x, t in zip(chosen, result.tokens))


def test_caches_of_one_size(tmp_path):
    """A file that says how many tokens there were is good for one step."""
    model = Decoder("gpt2")
    made = onnx.load_model_from_string(model.onnx())
    for value in made.graph.input:
        if value.name.startswith("past"):
            value.type.tensor_type.shape.dim[2].dim_value = 16
    path = folder(tmp_path / "m", model, data=made.SerializeToString(), tokenizer=None)
    generator = tensorwright.Generator(path, slots=3)
    prompt = prompts_of(23, 9)[0]
    assert generator.capacity == 16 and generator.generate(prompt, max_new_tokens=20).tokens == model.greedy(prompt, 7)
    path = folder(tmp_path / "m", model, data=made.SerializeToString().replace(b"attention_mask", b"attention_musk"), tokenizer=None)
    with pytest.raises(ValueError, match="what is input 'attention_musk' of the model"):
        tensorwright.Generator(path)


@pytest.mark.parametrize("window", [4, 40])
@pytest.mark.parametrize("pages, kind", [(None, "Paged" if decoding.PAGED_BY_ITSELF else "Growing"), (0, "Growing")])
def test_windows(window, pages, kind, tmp_path):
    """Over places of a cache, which are not those of its tokens where it has room for more."""
    model = Decoder("llama", seed=24)
    path = folder(tmp_path / "m", model, data=model.onnx(window=window), tokenizer=None)
    generator = tensorwright.Generator(path, slots=3, capacity=90, pages=pages)
    assert type(generator.runs).__name__ == kind
    for prompt in prompts_of(25, 3, 50):
        tokens = list(prompt)
        for _ in range(12):
            tokens.append(int(model.logits(tokens, window)[-1].argmax()))
        assert generator.generate(prompt, max_new_tokens=12).tokens == tokens[len(prompt) :]


@pytest.mark.parametrize("form", [{"triangle": True}, {"triangle": True, "mask": False, "places": False}])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_all_that_a_model_was_made_for(kind, form, tmp_path):
    """Up to its last place, by prompts and by steps, also where past and new tokens together must not be more."""
    model = Decoder(kind, seed=26, positions=70)
    generator = tensorwright.Generator(folder(tmp_path / "m", model, data=model.onnx(**form), tokenizer=None), slots=3)
    assert generator.capacity == 70 and generator.runs.chunk == 8
    prompts = prompts_of(27, 3, 69, 64, 40, 66)
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=100)):
        assert result.tokens == model.greedy(prompt, 70 - len(prompt))


def test_a_file_that_says_no_limit(tmp_path):
    """Without config.json: the caller says it."""
    model = Decoder("gpt2", seed=28, positions=70)
    (tmp_path / "m.onnx").write_bytes(model.onnx(triangle=True))
    with pytest.raises(RuntimeError, match="nothing says how many tokens the model was made for: capacity may"):
        tensorwright.Generator(tmp_path / "m.onnx")
    prompt = prompts_of(29, 60)[0]
    generator = tensorwright.Generator(tmp_path / "m.onnx", capacity=70)
    assert generator.name == "m" and generator.generate(prompt, max_new_tokens=20).tokens == model.greedy(prompt, 10)


def test_one_call(path, model):
    prompts = prompts_of(2, 4, 9)
    alone = tensorwright.generate(path, prompts[0], 6)
    assert alone.tokens == model.greedy(prompts[0], 6) and str(alone) == str(alone.tokens)
    both = tensorwright.generate(str(path / "model.onnx"), np.array([p[:4] for p in prompts]), max_new_tokens=6)
    assert [b.tokens for b in both] == [model.greedy(p[:4], 6) for p in prompts]


SETTINGS = [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 5}, {"temperature": 1.3, "top_p": 0.8, "repetition_penalty": 1.2},
            {"temperature": 1.0, "min_p": 0.1, "presence_penalty": 0.5, "frequency_penalty": 0.2}, {"no_repeat_ngram_size": 2}]


@pytest.mark.parametrize("settings", SETTINGS)
def test_draws(generator, model, settings):
    """By the rules of docs/plugins.md, whatever else is generated at the time."""
    names = {"repetition_penalty": "repetition", "presence_penalty": "presence", "frequency_penalty": "frequency", "no_repeat_ngram_size": "ngram"}
    wanted = {names.get(n, n): v for n, v in {"temperature": 0.0, **settings}.items()}
    prompts = prompts_of(5, 3, 20, 8)
    seed = 2**40 + 7
    other = generator.stream(prompts_of(6, 30)[0], max_new_tokens=40, temperature=1.0)
    next(other)
    results = generator.generate(prompts, max_new_tokens=12, seed=seed, **settings)
    for number, (prompt, result) in enumerate(zip(prompts, results)):
        expected = model.sampled(prompt, 12, **wanted, seed_low=seed & 0xFFFFFFFF, seed_high=seed >> 32, stream=number)
        assert result.tokens == expected
    assert generator.generate(prompts[0], max_new_tokens=12, seed=seed, **settings).tokens == results[0].tokens
    if settings.get("temperature"):
        assert generator.generate(prompts[0], max_new_tokens=12, seed=seed + 1, **settings).tokens != results[0].tokens


def test_ends(path, model, tmp_path):
    prompt = prompts_of(7, 6)[0]
    tokens = model.greedy(prompt, 20)
    third = tokens[3]
    until = tokens.index(third) + 1
    ending = tensorwright.Generator(folder(tmp_path / "m", model, end=[third, 39], tokenizer=None), slots=2, capacity=80)
    result = ending.generate(prompt, max_new_tokens=20)
    assert result.tokens == tokens[:until] and result.reason == "stop"
    least = ending.generate(prompt, max_new_tokens=20, min_new_tokens=10)
    assert len(least.tokens) >= 10 and third not in least.tokens[:9]
    plain = tensorwright.Generator(path, slots=2, capacity=80)
    assert plain.generate(prompt, max_new_tokens=20, stop_token_ids=[third]).tokens == tokens[:until]
    assert plain.generate(prompt, max_new_tokens=20).tokens == tokens


def test_log_probabilities(generator, model):
    prompt = prompts_of(8, 5)[0]
    result = generator.generate(prompt, max_new_tokens=6, logprobs=3)
    plain = generator.generate(prompt, max_new_tokens=6, logprobs=0)
    assert plain.top == [[]] * 6
    for i, token in enumerate(result.tokens):
        expected = decoding.log_softmax(model.logits(prompt + result.tokens[:i])[-1])
        assert abs(result.logprobs[i] - expected[token]) < 1e-4 and abs(plain.logprobs[i] - expected[token]) < 1e-4
        assert [t for t, _ in result.top[i]] == [int(t) for t in np.argsort(-expected)[:3]]
        assert all(abs(v - expected[t]) < 1e-4 for t, v in result.top[i])


@pytest.mark.parametrize("form, pages", [("positions as an input", None), ("positions as an input", 0), ("no mask", 0), ("no cache", None)])
def test_beams(form, pages, tmp_path):
    model = Decoder("gpt2", seed=11, tokens=17)
    path = folder(tmp_path / "m", model, end=4, data=model.onnx(**FORMS[form]), tokenizer=None)
    generator = tensorwright.Generator(path, slots=4, capacity=64, chunk=8, pages=pages)
    for seed, (early, penalty) in enumerate([(False, 1.0), (True, 0.5), ("never", 2.0)]):
        prompt = prompts_of(seed, 11, tokens=17)[0]
        got = generator.generate(prompt, max_new_tokens=9, num_beams=4, early_stopping=early, length_penalty=penalty)
        floats, ints = decoding.settings(1, length_penalty=penalty, early={False: 0, True: 1, "never": 2}[early], max_length=20)
        tokens, score = decoding.beam_search(lambda t: model.logits(t)[-1], prompt, 4, 64, floats[0], ints[0], [4])[0]
        assert got.tokens == tokens[11:] and abs(got.score - score) < 1e-4
        assert got.reason == ("stop" if tokens[-1] == 4 else "length")
    assert generator.generate(prompt, max_new_tokens=9).tokens == model.greedy(prompt, 9, [4])


def test_streams(generator, model):
    """Two at a time, one that is left early, and threads that share a generator."""
    prompts = prompts_of(9, 4, 25, 7, 12, 33)
    a, b = generator.stream(prompts[0], max_new_tokens=12), generator.stream(prompts[1], max_new_tokens=12)
    got = [[], []]
    for pair in zip(a, b):
        for tokens, piece in zip(got, pair):
            tokens.append(piece.token)
    assert got == [model.greedy(p, 12) for p in prompts[:2]]
    with generator.stream(prompts[2], max_new_tokens=40) as left:
        assert next(left).token == model.greedy(prompts[2], 1)[0]
        assert generator.scheduler.running == 1
    assert generator.generate(prompts[3], max_new_tokens=3).tokens == model.greedy(prompts[3], 3)
    assert generator.scheduler.running == 0 and list(left) == []
    results = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: generator.generate(prompts[i], max_new_tokens=20).tokens})) for i in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: model.greedy(prompts[i], 20) for i in range(5)}


@pytest.mark.parametrize("pages", [None, 0])
def test_beginnings_are_read_once(pages, path, model):
    generator = tensorwright.Generator(path, slots=3, capacity=80, chunk=16, pages=pages)
    common = prompts_of(10, 30)[0]
    first = generator.generate(common + [1, 2], max_new_tokens=6)
    assert generator.scheduler.reused == 0
    for tail in ([3], [1, 2], [1, 2, *first.tokens, 9], [5, 6, 7]):
        before = generator.scheduler.reused
        assert generator.generate(common + tail, max_new_tokens=6).tokens == model.greedy(common + tail, 6)
        assert generator.scheduler.reused - before >= 30
    assert generator.generate(common[:1], max_new_tokens=4).tokens == model.greedy(common[:1], 4)
    without = tensorwright.Generator(path, slots=3, capacity=80, chunk=16, reuse=False)
    for _ in range(2):
        assert without.generate(common, max_new_tokens=6).tokens == model.greedy(common, 6)
    assert without.scheduler.reused == 0


def test_many_at_random(generator, model):
    """Sequences that come, go and are cancelled at any time; all that end are right."""
    random = np.random.default_rng(12)
    common = prompts_of(12, 20)[0]
    streams, want, got = [], [], []
    for _ in range(60):
        if random.random() < 0.4:
            prompt = (common[: random.integers(1, 21)] if random.random() < 0.5 else []) + prompts_of(int(random.integers(1e6)), random.integers(1, 30))[0]
            count = int(random.integers(1, 25))
            streams.append(generator.stream(prompt, max_new_tokens=count))
            want.append(model.greedy(prompt, count))
            got.append([])
        for i in random.permutation(len(streams)):
            if streams[i] is None:
                continue
            if random.random() < 0.03:
                streams[i].close()
                streams[i] = got[i] = None
                continue
            piece = next(streams[i], None)
            if piece is None:
                streams[i] = None
            else:
                got[i].append(piece.token)
    for i, stream in enumerate(streams):
        if stream is not None:
            got[i] += [p.token for p in stream]
    ended = [i for i, g in enumerate(got) if g is not None]
    assert len(ended) > 10 and all(got[i] == want[i] for i in ended)


def test_kept_engines(path, model, tmp_path, caplog):
    kept = tmp_path / "kept"
    prompt = prompts_of(13, 4)[0]

    def ask(**more):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tensorwright"):
            result = tensorwright.Generator(path, slots=2, capacity=80, cache=str(kept), **more).generate(prompt, max_new_tokens=4)
        assert result.tokens == model.greedy(prompt, 4)
        return [r.getMessage() for r in caplog.records]

    assert ask() == []
    files = {f: f.read_bytes() for f in kept.glob("*.plan")}
    assert len(files) == 2
    assert ask() == [] and {f: f.read_bytes() for f in kept.glob("*.plan")} == files
    for file, data in files.items():
        file.unlink()  # engines may have it mapped
        file.write_bytes(data[: len(data) // 2])
    lines = ask()
    assert len(lines) == 2 and all("cannot be used and is built again" in line for line in lines)
    assert ask() == []
    for file in files:
        file.unlink()
        file.write_bytes(b"")
    assert len(ask()) == 2
    ask(chunk=8)
    assert len(list(kept.glob("*.plan"))) > 2
    kept = tmp_path / "a file"
    kept.write_text("")
    lines = ask()
    assert len(lines) == 2 and all("the engine is not kept" in line for line in lines)


def test_numbers_that_are_none(tmp_path):
    """A prompt whose numbers are none fails, and what stands beside it or comes after it in its slot does not."""
    model = Decoder("gpt2", seed=14)
    good = [3, 4, 5]
    expected = model.greedy(good, 12)
    none = next(t for t in range(40) if t not in good + expected)
    model.w["table"][none] = np.nan
    path = folder(tmp_path / "m", model, tokenizer=None)
    generator = tensorwright.Generator(path, slots=2, capacity=80)
    beside = generator.stream(good, max_new_tokens=12)
    next(beside)
    with pytest.raises(RuntimeError, match="no number"):
        generator.generate([3, none, 5], max_new_tokens=12)
    assert [p.token for p in beside] == expected[1:]
    for _ in range(3):
        assert [r.tokens for r in generator.generate([good, good], max_new_tokens=12)] == [expected] * 2
    chunked = tensorwright.Generator(path, slots=2, capacity=80, chunk=4)
    for _ in range(4):  # left before it is known that there are no numbers
        left = chunked.stream([3, none] * 20, max_new_tokens=12)
        chunked.scheduler.step()
        left.close()
        assert [r.tokens for r in chunked.generate([good, good], max_new_tokens=12)] == [expected] * 2


BAD = [
    ({"temperature": -1}, "temperature: -1 is out of range"), ({"temperature": float("nan")}, "temperature: nan"), ({"temperature": "warm"}, "no number"),
    ({"top_p": 0}, "top_p: 0 is out of range .allowed: above 0, at most 1"), ({"top_p": 1.5}, "top_p"), ({"top_k": -1}, "top_k"), ({"top_k": 2.5}, "no whole number"),
    ({"max_new_tokens": 0}, "max_new_tokens"), ({"repetition_penalty": 0}, "repetition_penalty"), ({"seed": 2**64}, "seed"), ({"stop": [""]}, "stop: ''"),
    ({"stop": ["a"]}, "need a tokenizer"), ({"stop_token_ids": [99]}, "99 is no token"), ({"num_beams": 5}, "5 beams, the generator has 4 slots"),
    ({"num_beams": 2, "temperature": 1.0}, "beams know neither"), ({"early_stopping": "later"}, "early_stopping"), ({"logprobs": -1}, "logprobs"),
]


@pytest.mark.parametrize("settings, says", BAD)
def test_settings_that_are_refused(generator, settings, says):
    with pytest.raises(ValueError, match=says):
        generator.generate([1, 2], **settings)
    assert generator.scheduler.running == generator.scheduler.waiting == 0


@pytest.mark.parametrize("prompt, says", [([], "no token"), ([40], "token 40 .allowed: 0 to 39"), ([-1], "token -1"), ([1] * 80, "80 tokens, 79 are possible"), ("text", "needs a tokenizer"),
                                          ([{"role": "user", "content": "hi"}], "needs a tokenizer")])
def test_prompts_that_are_refused(generator, model, prompt, says):
    with pytest.raises(ValueError, match=says):
        generator.generate(prompt)
    with pytest.raises(ValueError, match=says):
        generator.generate([[1, 2], prompt] if prompt else [[1, 2], []])
    longest = [1] * 79
    assert generator.generate(longest, max_new_tokens=9).tokens == model.greedy(longest, 1)


def test_what_is_no_prompt(generator):
    assert generator.generate([np.int64(1), np.int32(2)], max_new_tokens=2).tokens == generator.generate(np.array([1, 2]), max_new_tokens=2).tokens
    for prompt in (None, 3, [1.5], [None], [[1, True]]):
        with pytest.raises(TypeError):
            generator.generate(prompt)
    with pytest.raises(TypeError, match="'tempratur' is no setting"):
        generator.generate([1], tempratur=1)


def test_rows_of_a_step(generator, model):
    """Steps are for the rows between the first and the last sequence, wherever these are; sequences one after the other take one row's time."""
    prompts = prompts_of(30, 5, 9, 20, 3, 14, 8)
    taken, step = [], generator.runs.step
    generator.runs.step = lambda begin, tokens, lengths: (taken.append((begin, len(tokens))), step(begin, tokens, lengths))
    for prompt in prompts:
        assert generator.generate(prompt, max_new_tokens=4).tokens == model.greedy(prompt, 4)
    assert {count for _, count in taken} == {1} and {begin for begin, _ in taken} == {0, 1, 2, 3}
    taken.clear()
    streams = [generator.stream(p, max_new_tokens=n) for p, n in zip(prompts, (30, 4, 12, 20))]
    got = [[] for _ in streams]
    while any(streams):
        for i, stream in enumerate(streams):
            piece = next(stream, None) if stream else None
            if piece:
                got[i].append(piece.token)
            else:
                streams[i] = None
    assert got == [model.greedy(p, n) for p, n in zip(prompts, (30, 4, 12, 20))]
    assert {1, 4} <= {count for _, count in taken} <= {1, 2, 3, 4}  # two prompts may be read between two steps


def test_prompts_take_turns(path, model):
    """A short one is not held up by a long one that came before it, nor are those that go on."""
    generator = tensorwright.Generator(path, slots=3, capacity=96, chunk=4)
    going = generator.stream([1, 2], max_new_tokens=90)
    next(going)
    long, short = prompts_of(31, 60, 7)
    first = generator.stream(long, max_new_tokens=2)
    next(going)
    second = generator.stream(short, max_new_tokens=2)
    ended = []
    for stream in (first, second):
        emit = stream._sequence.emit
        stream._sequence.emit = lambda piece, stream=stream, emit=emit: (ended.append(stream), emit(piece))
    while not (first._pieces and second._pieces):
        next(going)
    assert ended[0] is second
    assert [p.token for p in second] == model.greedy(short, 2) and [p.token for p in first] == model.greedy(long, 2)


def test_runs_that_fail(generator, model, monkeypatch):
    """End what was in them with the engine's reason; what waited, and what comes then, goes on."""
    prompts = prompts_of(32, 4, 5, 6, 7, 8, 9)
    streams = [generator.stream(p, max_new_tokens=9) for p in prompts]
    for stream in streams[:4]:
        next(stream)

    def failing(*_):
        raise RuntimeError("the run failed: no memory")

    with monkeypatch.context() as patch:
        patch.setattr(generator.runs, "step", failing)
        generator.scheduler.step()
    for stream in streams[:4]:
        with pytest.raises(RuntimeError, match="no memory"):
            list(stream)
    for prompt, stream in zip(prompts[4:], streams[4:]):
        assert [p.token for p in stream] == model.greedy(prompt, 9)
    assert generator.generate(prompts[0], max_new_tokens=9).tokens == model.greedy(prompts[0], 9)


def test_more_than_there_is_memory(model, tmp_path):
    (tmp_path / "m.onnx").write_bytes(model.onnx())
    with pytest.raises(ValueError, match="1024 slots of 16777216 tokens: their product"):
        tensorwright.Generator(tmp_path / "m.onnx", slots=1024, capacity=2**24)
    with pytest.raises(RuntimeError, match="there is no memory of 16777216.0 GiB .* fewer slots, or a smaller capacity, take less"):
        runs.Buffer(_memory.memory_of("cpu"), (2**20, 2**32), np.float32)


def test_graphs_that_cannot_be_changed(path, model, monkeypatch):
    """Where an engine with caches in place cannot be built, one with those that get longer is."""

    def failing(*_):
        raise RuntimeError("no way")

    monkeypatch.setattr("tensorwright.generation.build._graft", failing)
    generator = tensorwright.Generator(path, slots=2, cache=False, pages=0)
    prompt = prompts_of(33, 9)[0]
    assert type(generator.runs).__name__ == "Growing" and generator.generate(prompt, max_new_tokens=9).tokens == model.greedy(prompt, 9)
    monkeypatch.setattr("tensorwright.generation.build._serialized", failing)
    with pytest.raises(RuntimeError, match="model.onnx: no way"):
        tensorwright.Generator(path, slots=2, cache=False)


@pytest.mark.parametrize("cost, step, usual, least", [(lambda n: 0.001 * n, 0.04, 32, 16), (lambda n: 0.05, 0.05, 128, 128), (lambda n: 0.05, 0.01, 128, 128), (lambda n: 0.01 + 0.01 * n, 0.01, 16, 16)])
def test_pace(cost, step, usual, least):
    """Pieces that take no longer than 1.5 steps do, where the shortest does not already; long ones where all take the same."""
    found, sizes = pace.Pace(128), []
    assert found.sizes == [16, 32, 64, 128]
    for _ in range(200):
        found.stepped(step)
        left, first = found.room(), True
        while size := found.piece(left) or (found.shortest() if first else 0):
            found.read(size, size, cost(size))
            sizes.append(size)
            left, first = left - cost(size), False
    assert np.mean([s == usual for s in sizes[20:]]) > 0.4 and found.shortest() == least
    assert usual == 128 or sum(cost(s) > 1.25 * max(1.5 * step, cost(16)) for s in sizes[20:]) <= 3


def test_pace_forgets(path):
    """What took long by chance is tried again."""
    found = pace.Pace(64)
    found.stepped(0.01)
    found.read(64, 64, 5.0)
    assert found.piece(found.room()) == 32
    for _ in range(10000):
        if found.piece(found.room()) == 64:
            break
    assert found.piece(found.room()) == 64
    found.read(64, 10, 0.001)  # a prompt's end says nothing of whole pieces
    assert found._seconds[64] > 0.001


def test_pace_of_what_sequences_are_used_to():
    """Prompts that come all at once are read little by little; steps that took long by chance give them no more room."""
    found = pace.Pace(64)
    for _ in range(20):
        found.stepped(0.004)
    assert found.room() == pytest.approx(0.006) and found.room(0.01) == pytest.approx(0.006)
    assert found.room(0.002) == pytest.approx(0.002) and found.room(0.001) == 0.0
    found.stepped(10.0)
    assert found.room() < 0.009
    gap = 0.0
    for seconds in [0.001] * 5 + [1.0] + [0.003] * 100:
        gap = pace.usual_gap(gap, seconds)
        assert 0.001 <= gap <= 0.003
    assert gap > 0.0028


@pytest.mark.parametrize("pages", [None, 0])
def test_rehearsal(pages, path, model):
    """Makes ready every shape of a step, chooses nothing and leaves nothing behind, also behind sequences."""
    generator = tensorwright.Generator(path, slots=5, capacity=64, chunk=24, pages=pages)
    prompts, counts = prompts_of(37, 9, 30, 4), []
    for _ in range(2):
        used = generator.runs.blocks.used if generator.runs.shares else 0
        assert pages is not None or used == 0
        generator.rehearse()
        assert not generator.runs.shares or generator.runs.blocks.used == 0
        counts.append(generator.scheduler.running)
        assert [g.tokens for g in generator.generate(prompts, max_new_tokens=9)] == [model.greedy(p, 9) for p in prompts]
        generator.scheduler.idle()
    assert counts == [0, 0]
