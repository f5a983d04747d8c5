# SPDX-License-Identifier: Apache-2.0
"""tensorwright.generate() with models of an encoder and a decoder in optimum's files, beside ONNX Runtime, which reads all tokens at each step
with the decoder that has no past."""

import json
import threading

import numpy as np
import pytest

for module in ("onnxruntime", "tokenizers", "jinja2"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed")

import onnx  # noqa: E402
import tensorwright  # noqa: E402

import decoders  # noqa: E402
import decoding  # noqa: E402
import seq2seq_models as models  # noqa: E402
from seq2seq_models import END, KINDS, PLACES, START, Reference, source_of  # noqa: E402
from tiny_decoders import CHARACTERS, tokenizer  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def references():
    return {kind: Reference(kind) for kind in KINDS}


def generator_of(folder, kind, form="merged", slots=3, chunk=5, seed=40, options=None, **generation):
    return tensorwright.Generator(models.write(folder / "m", kind, form, seed, **generation), slots=slots, chunk=chunk, **options or {})


def sources_of(kind, seed, *lengths):
    random = np.random.default_rng(seed)
    return [source_of(kind, random, n) for n in lengths]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form,pages", [("merged", None), ("merged", 0), ("two", None), ("two", 0), ("none", None)])
def test_greedy(kind, form, pages, references, tmp_path):
    """More sources than slots, of several lengths; again in the same slots."""
    generator = generator_of(tmp_path, kind, form, options={"pages": pages})
    assert generator.runs.kind == ("whole" if form == "none" else "paged" if pages is None and decoding.PAGED_BY_ITSELF else "growing")
    sources = sources_of(kind, 2, 9, 30, 1, 17, 4)
    wanted = [references[kind].greedy(s, 24) for s in sources]
    assert len({t for w in wanted for t in w}) > 8
    results = generator.generate(sources, max_new_tokens=24)
    assert [r.tokens for r in results] == wanted
    assert [r.reason for r in results] == ["stop" if w[-1] == END else "length" for w in wanted]
    assert generator.generate(sources[1], max_new_tokens=24).tokens == wanted[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["merged", "two"])
def test_up_to_the_last_place(kind, form, references, tmp_path):
    """And from a beginning that is read in pieces."""
    generator = generator_of(tmp_path, kind, form, eos_token_id=None)
    source = sources_of(kind, 3, 12)[0]
    begin = [int(t) for t in np.random.default_rng(4).integers(4, 70, 12)]
    wanted = references[kind].greedy(source, PLACES - 13, [START, *begin], [])
    assert generator.generate(source, max_new_tokens=1000, decoder_tokens=begin).tokens == wanted
    assert generator.capacity == PLACES and generator.room(99) == PLACES - 1


CONFIGURATIONS = {
    "first of a language": ({"forced_bos_token_id": 9}, [START, 9], (), ()),
    "forced places": ({"forced_decoder_ids": [[1, 20], [2, 21], [3, 22]]}, [START, 20, 21, 22], (), ()),
    "forced but the first": ({"forced_decoder_ids": [[1, None], [2, 21]]}, [START], (), ()),
    "suppressed": ({"suppress_tokens": [29, 38, 44, 10]}, [START], [29, 38, 44, 10], ()),
    "suppressed at first": ({"begin_suppress_tokens": [29, 63, 1], "suppress_tokens": [38]}, [START], [38], [29, 63, 1]),
    "bad words": ({"bad_words_ids": [[29], [38]]}, [START], [29, 38], ()),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(name, references, tmp_path):
    said, starts, banned, at_first = CONFIGURATIONS[name]
    generator = generator_of(tmp_path, "bart", **said)
    sources = sources_of("bart", 1, 9, 4, 17)
    wanted = [references["bart"].greedy(s, 16, starts, [END], banned, at_first) for s in sources]
    assert [r.tokens for r in generator.generate(sources, max_new_tokens=16)] == wanted
    plain = [references["bart"].greedy(s, 16) for s in sources]
    assert (wanted == plain) == (name == "forced but the first")


def test_the_start_token(references, tmp_path):
    """By a call; and where config.json alone says it, or another name."""
    generator = generator_of(tmp_path, "t5", forced_bos_token_id=9)
    source = sources_of("t5", 5, 7)[0]
    for given, starts in (((), [START]), ((11, 12), [START, 11, 12]), ((START, 13), [START, 13]), (None, [START, 9])):
        assert generator.generate(source, max_new_tokens=8, decoder_tokens=given).tokens == references["t5"].greedy(source, 8, starts)
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps({"bos_token_id": 6}))
    generator = tensorwright.Generator(tmp_path / "m")
    assert generator.generate(source, max_new_tokens=8).tokens == references["t5"].greedy(source, 8, [6, 9])
    path.write_text("{}")
    with pytest.raises(ValueError, match="neither generation_config.json nor config.json says decoder_start_token_id"):
        tensorwright.Generator(tmp_path / "m")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["merged", "two", "none"])
def test_beams(kind, form, references, tmp_path):
    generator = generator_of(tmp_path, kind, form, slots=4, suppress_tokens=[30], begin_suppress_tokens=[END, 56])
    reference = references[kind]
    for seed, (early, penalty) in enumerate([(False, 1.0), (True, 0.5), ("never", 2.0)]):
        source = sources_of(kind, seed + 10, 8)[0]
        states = reference.states(source)
        got = generator.generate(source, max_new_tokens=9, num_beams=4, early_stopping=early, length_penalty=penalty)
        floats, ints = decoding.settings(1, length_penalty=penalty, early={False: 0, True: 1, "never": 2}[early], max_length=10)

        def logits(tokens):
            return reference.logits(states, tokens).astype(np.float64)

        def banned(tokens):
            return [[30]] + ([[END], [56]] if len(tokens) == 1 else [])

        tokens, score = _beam_search(logits, banned, floats[0], ints[0])
        assert got.tokens == tokens[1:] and abs(got.score - score) < 1e-4
        assert got.reason == ("stop" if tokens[-1] == END else "length")
    source = sources_of(kind, 20, 5)[0]
    assert generator.generate(source, max_new_tokens=5).tokens == reference.greedy(source, 5, banned=[30], at_first=[END, 56])


def _beam_search(logits, banned, floats, ints):
    """decoding.beam_search() with words that are banned by place: log probabilities are of all tokens, so words go from what they choose of."""
    plain = decoding.processed

    def processed(row, tokens, prompt, f, i, eos=(), bad=()):
        return plain(row, tokens, prompt, f, i, eos, banned(tokens))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "processed", processed)
        return decoding.beam_search(logits, [START], 4, PLACES, floats, ints, [END])[0]


def test_draws(references, tmp_path):
    generator = generator_of(tmp_path, "bart")
    reference, sources = references["bart"], sources_of("bart", 6, 3, 20, 8)
    results = generator.generate(sources, max_new_tokens=12, seed=77, temperature=0.9, top_k=6, repetition_penalty=1.3)
    floats, ints = decoding.settings(1, temperature=0.9, top_k=6, repetition=1.3, seed_low=77)
    for number, (source, result) in enumerate(zip(sources, results)):
        states, tokens = reference.states(source), [START]
        ints[0][decoding.STREAM] = number
        while len(tokens) < 13 and tokens[-1] != END:
            y = decoding.processed(reference.logits(states, tokens), tokens, 1, floats[0], ints[0], [END])
            tokens.append(decoding.sampled(y, len(tokens), floats[0], ints[0]))
        assert result.tokens == tokens[1:]


def test_streams(references, tmp_path):
    """One that is left in the middle, before it has begun, and threads that share a generator."""
    generator = generator_of(tmp_path, "whisper", eos_token_id=None)
    sources = sources_of("whisper", 7, 0, 0, 0, 0, 0)
    wanted = [references["whisper"].greedy(s, 15, ends=[]) for s in sources]
    with generator.stream(sources[0], max_new_tokens=15) as left:
        assert next(left).token == wanted[0][0]
    never = generator.stream(sources[1], max_new_tokens=15)
    never.close()
    results = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: [p.token for p in generator.stream(sources[i], max_new_tokens=15)]})) for i in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == dict(enumerate(wanted)) and generator.scheduler.running == 0


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_half(precision, references, tmp_path):
    """Models in FP16: each token is the best one but for rounding."""
    path = models.write(tmp_path / "m", "bart", "two")
    for file in path.glob("*.onnx"):
        file.write_bytes(decoders.in_half(file.read_bytes()))
    generator = tensorwright.Generator(path, slots=2, precision=precision)
    for source in sources_of("bart", 8, 6, 13):
        states, tokens = references["bart"].states(source), [START]
        for token in generator.generate(source, max_new_tokens=12).tokens:
            row = references["bart"].logits(states, tokens)
            assert row.max() - row[token] < 0.05
            tokens.append(token)


def test_texts(references, tmp_path):
    """A tokenizer, and a stop string over several tokens."""
    path = models.write(tmp_path / "m", "t5")
    (path / "tokenizer.json").write_text(tokenizer(CHARACTERS))
    prompt = "hello, you there"
    tokens = references["t5"].greedy([CHARACTERS.index(c) for c in prompt], 24)
    known = [t if t < len(CHARACTERS) else None for t in tokens]
    generator = tensorwright.Generator(path)
    result = generator.generate(prompt, max_new_tokens=24)
    expected = "".join(CHARACTERS[t] for t in known if t is not None and t != END)
    assert result.tokens == tokens and result.text == expected and result.prompt_tokens == len(prompt)
    stop = expected[2:4]
    stopped = generator.generate(prompt, max_new_tokens=24, stop=stop)
    assert stopped.text == expected[: expected.index(stop)] and stopped.reason == "stop"


def test_files_by_name(references, tmp_path):
    """A decoder is named; what lies beside it is found, of the same quantization first."""
    path = models.write(tmp_path / "m", "t5")
    for name in ("encoder_model", "decoder_model_merged"):
        (path / f"{name}.onnx").rename(path / f"{name}_int8.onnx")
    (path / "encoder_model.onnx").write_bytes(b"another one")
    source = sources_of("t5", 9, 6)[0]
    generator = tensorwright.Generator(path / "decoder_model_merged_int8.onnx")
    assert generator.generate(source, max_new_tokens=6).tokens == references["t5"].greedy(source, 6)


def without(path, name):
    (path / name).unlink()
    return path


REFUSED = {
    "no encoder": (lambda p: without(models.write(p, "t5"), "encoder_model.onnx"), "input 'encoder_hidden_states' is of an encoder; encoder_model.onnx is expected"),
    "no first decoder": (lambda p: without(models.write(p, "bart", "two"), "decoder_model.onnx"), "needs decoder_model.onnx beside it"),
    "forced to nothing": (lambda p: models.write(p, "t5", forced_decoder_ids=[3, 4]), "pairs of a place and an id"),
    "suppressed beyond": (lambda p: models.write(p, "t5", suppress_tokens=[71]), "71 is no token"),
    "suppressed below": (lambda p: models.write(p, "t5", begin_suppress_tokens=[-1]), "begin_suppress_tokens: -1"),
    "no words": (lambda p: models.write(p, "t5", bad_words_ids={"a": 1}), "bad_words_ids: a list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_folders_that_are_refused(name, tmp_path):
    make, says = REFUSED[name]
    with pytest.raises(ValueError, match=says):
        tensorwright.Generator(make(tmp_path / "m"))


def test_what_is_no_encoder(tmp_path):
    path = models.write(tmp_path / "m", "t5")
    (path / "encoder_model.onnx").write_bytes((path / "decoder_model_merged.onnx").read_bytes())
    with pytest.raises(ValueError, match="an encoder has one input beside attention_mask"):
        tensorwright.Generator(path)
    g = decoders.Graph(1)
    g.op("Identity", g.input("input_ids", decoders.INT64, "b", "s"), outputs=["y"])
    g.outputs.append(onnx.helper.make_tensor_value_info("y", decoders.INT64, ["b", "s"]))
    (path / "encoder_model.onnx").write_bytes(g.bytes())
    with pytest.raises(ValueError, match="no output of the encoder has states"):
        tensorwright.Generator(path)
    (path / "encoder_model.onnx").write_bytes(models.encoder("whisper"))
    with pytest.raises(ValueError, match="config.json beside the model has to say what is open"):
        tensorwright.Generator(path)


def test_requests_that_are_refused(references, tmp_path):
    generator = generator_of(tmp_path, "t5", options={"source_capacity": 20})
    for prompt, says in (([], "no token"), ([71], "token 71 .allowed: 0 to 70"), ([4] * 21, "21 tokens, 20 are possible .source_capacity"), ("text", "needs a tokenizer")):
        with pytest.raises(ValueError, match=says):
            generator.generate(prompt)
    for settings, says in (({"decoder_tokens": [71]}, "decoder_tokens has the token 71"), ({"decoder_tokens": [4] * PLACES}, "leave no room"),
                           ({"decoder_tokens": ["x"]}, "decoder_tokens: 'x'")):
        with pytest.raises(ValueError, match=says):
            generator.generate([4, 5], **settings)
    with pytest.raises(ValueError, match="source_capacity: 161 tokens, the model was made for 160"):
        tensorwright.Generator(tmp_path / "m", source_capacity=161)
    assert generator.generate([4] * 20, max_new_tokens=4).tokens == references["t5"].greedy([4] * 20, 4)


def test_features_that_are_refused(references, tmp_path):
    generator = generator_of(tmp_path, "whisper")
    good = sources_of("whisper", 11, 0)[0]
    for prompt, says in ((good[:, :-1], r"shape \[12, 19\], \[12, 20\] is expected"), (good * np.nan, "finite"), (good[None, None], "shape")):
        with pytest.raises(ValueError, match=says):
            generator.generate([prompt])
    for prompt in ("text", [1, 2], [{"role": "user", "content": "hi"}]):
        with pytest.raises(TypeError, match=r"features of the shape \[12, 20\] are expected"):
            generator.generate(prompt)
    wanted = references["whisper"].greedy(good, 6)
    assert generator.generate(good, max_new_tokens=6).tokens == wanted
    assert [r.tokens for r in generator.generate(np.stack([good, good]), max_new_tokens=6)] == [wanted] * 2


def test_the_program(references, tmp_path, capsys):
    from tensorwright._programs import main

    path = models.write(tmp_path / "m", "whisper")
    source = sources_of("whisper", 12, 0)[0]
    np.save(tmp_path / "x.npy", source)
    arguments = ["generate", str(path), "--features", str(tmp_path / "x.npy"), "--decoder-tokens", "20,21", "--max-new-tokens", "7", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == references["whisper"].greedy(source, 7, [START, 20, 21])
    (tmp_path / "x.npy").write_bytes(b"no array")
    assert main(arguments) != 0 and "is no array of NumPy" in capsys.readouterr().err


def test_serving(references, tmp_path):
    """Texts that go in are read by the encoder; what takes features is refused."""
    pytest.importorskip("aiohttp", reason="SKIP: aiohttp is not installed")
    from serving import ask, served

    path = models.write(tmp_path / "t5", "t5")
    (path / "tokenizer.json").write_text(tokenizer(CHARACTERS))
    generators = {"t5": tensorwright.Generator(path, slots=2), "whisper": generator_of(tmp_path, "whisper")}
    prompts = ["abc", "how are you", "x" * PLACES]

    def completion(server, **value):
        status, _, body = ask(server, "POST", "/v1/completions", json.dumps(value))
        return status, json.loads(body)

    with served(generators=generators) as server:
        status, answer = completion(server, model="t5", prompt=prompts, max_tokens=9, temperature=0, return_token_ids=True)
        wanted = [references["t5"].greedy([CHARACTERS.index(c) for c in p], 9) for p in prompts]
        assert status == 200 and [c["token_ids"] for c in answer["choices"]] == wanted
        assert answer["usage"]["prompt_tokens"] == sum(map(len, prompts))
        status, answer = completion(server, model="t5", prompt="x" * (PLACES + 1))
        assert status == 400 and "160 are possible" in answer["error"]["message"]
        status, answer = completion(server, model="t5", prompt="x", max_tokens=PLACES)
        assert status == 400 and answer["error"]["message"] == "max_tokens: 160 are more than the 159 that an answer has room for"
        status, answer = completion(server, model="whisper", prompt="abc")
        assert status == 400 and "features of the shape [12, 20] are expected" in answer["error"]["message"]


def test_a_decoder_alone_has_no_decoder_tokens(tmp_path):
    spec = decoders.FORMS["gpt2"]()
    (tmp_path / "model.onnx").write_bytes(spec.data)
    generator = tensorwright.Generator(tmp_path / "model.onnx", capacity=20, chunk=4)
    with pytest.raises(ValueError, match="decoder_tokens: the model has no encoder"):
        generator.generate([1, 2], decoder_tokens=[3])
