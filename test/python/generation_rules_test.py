# SPDX-License-Identifier: Apache-2.0
"""What a model's generation_config.json says of how tokens are chosen, beside the same rules in NumPy: those of Transformers' processors that GenerateSample does not
have, limits of whole sequences, and what is refused."""

import json

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="SKIP: onnxruntime is not installed")

import decoding  # noqa: E402
import tensorwright  # noqa: E402
from tiny_decoders import CHARACTERS, Decoder, tokenizer  # noqa: E402

ENDS, VOCABULARY = [4], 23


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", seed=18, tokens=VOCABULARY)


# With what this model says by itself, too.
PROMPTS = [[int(t) for t in np.random.default_rng(8).integers(5, VOCABULARY, n)] + more for n, more in ((7, [13, 7, 14, 0]), (1, [8, 13]), (5, [3, 13]))]


def generator_of(tmp_path, model, said, slots=4, **more):
    path = tmp_path / "m"
    path.mkdir(exist_ok=True)
    (path / "model.onnx").write_bytes(model.onnx())
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS, **said}))
    return tensorwright.Generator(path, slots=slots, capacity=64, chunk=8, **more)


def followed(model, prompt, limit=0, penalty=1.0, size=0, forced=None, least=0):
    """Greedy tokens. limit, least: of the sequence; size: of n-grams of the prompt."""
    def choose(row, tokens):
        row = row.astype(np.float32)
        for t in set(prompt):
            row[t] = row[t] / np.float32(penalty) if row[t] < 0 else row[t] * np.float32(penalty)
        for i in range(len(prompt) - size + 1 if size else 0):
            if tokens[len(tokens) - size + 1 :] == prompt[i : i + size - 1]:
                row[prompt[i + size - 1]] = -np.inf
        if len(tokens) < least:
            row[ENDS] = -np.inf
        return forced if forced is not None and len(tokens) == limit - 1 else int(row.argmax())

    return model.follow(prompt, (limit or len(prompt) + 12) - len(prompt), ENDS, choose)


RULES = {
    "none": {},
    "prefers the prompt": {"encoder_repetition_penalty": 2.5},
    "not the prompt": {"encoder_repetition_penalty": 0.3},
    "none of its tokens": {"encoder_no_repeat_ngram_size": 1},
    "none of its pairs": {"encoder_no_repeat_ngram_size": 2},
    "an end at last": {"forced_eos_token_id": [4, 9], "max_length": 14},
    "as long as": {"max_length": 16},
    "at least": {"min_length": 18, "max_length": 20},
}
NAMES = {"encoder_repetition_penalty": "penalty", "encoder_no_repeat_ngram_size": "size", "max_length": "limit", "min_length": "least"}


@pytest.mark.parametrize("name", RULES)
def test_greedy(name, model, tmp_path):
    said = RULES[name]
    generator = generator_of(tmp_path, model, said)
    options = {NAMES[n]: v for n, v in said.items() if n in NAMES}
    wanted = [followed(model, p, forced=4 if "forced_eos_token_id" in said else None, **options) for p in PROMPTS]
    given = {} if "max_length" in said else {"max_new_tokens": 12}
    results = generator.generate(PROMPTS, **given)
    assert [r.tokens for r in results] == wanted
    assert [r.reason for r in results] == ["stop" if w[-1] in ENDS else "length" for w in wanted]
    assert name == "none" or wanted != [followed(model, p) for p in PROMPTS]
    # Of a caller alone, over a model that says nothing; beside a sequence that asks for nothing.
    plain = generator_of(tmp_path, model, {})
    assert [r.tokens for r in plain.generate(PROMPTS, **given, **said)] == wanted
    streams = plain.stream(PROMPTS[0], max_new_tokens=12), plain.stream(PROMPTS[1], **given, **said)
    pairs = [[p.token for p in s] for s in streams]
    assert pairs == [followed(model, PROMPTS[0]), wanted[1]]


def test_which_limit_counts(model, tmp_path):
    """What a caller says before what the model says; of both the number of new tokens."""
    generator = generator_of(tmp_path, model, {"max_length": 15, "min_length": 15, "eos_token_id": None})
    count = lambda **given: len(generator.generate(PROMPTS[0], **given).tokens)  # noqa: E731
    assert count() == 4 and count(max_new_tokens=6) == 6 and count(max_length=20) == 9 and count(max_length=20, max_new_tokens=3) == 3
    generator = generator_of(tmp_path, model, {"max_length": 15, "max_new_tokens": 2, "eos_token_id": None})
    assert count() == 2 and count(max_length=20) == 9
    with pytest.raises(ValueError, match="the prompt has 11 tokens, and max_length is 11; say max_new_tokens, or a larger max_length"):
        generator.generate(PROMPTS[0], max_length=11)
    with pytest.raises(ValueError, match="max_length is 5"):
        generator.stream(PROMPTS[0], max_length=5)


def test_beams(model, tmp_path):
    """A forced end, and pairs of the prompt that do not come."""
    def search(prompt, limit, size=0, forced=None):
        pairs = [prompt[i : i + size] for i in range(len(prompt) - size + 1)] if size else []
        floats, ints = decoding.settings(1, max_length=limit)

        def logits(tokens):
            if forced is not None and len(tokens) == limit - 1:
                return np.where(np.arange(VOCABULARY) == forced, 0, -np.inf)
            return model.logits(tokens)[-1]

        tokens, score = decoding.beam_search(logits, prompt, 4, 64, floats[0], ints[0], ENDS, pairs)[0]
        return tokens[len(prompt) :], score

    generator = generator_of(tmp_path, model, {"num_beams": 4, "max_length": 19})
    for prompt in PROMPTS:
        for given, wanted in (({}, search(prompt, 19)), ({"forced_eos_token_id": 4}, search(prompt, 19, forced=4)),
                              ({"encoder_no_repeat_ngram_size": 2}, search(prompt, 19, 2)), ({"forced_eos_token_id": 4, "encoder_no_repeat_ngram_size": 1}, search(prompt, 19, 1, 4))):
            got = generator.generate(prompt, **given)
            assert got.tokens == wanted[0] and abs(got.score - wanted[1]) < 1e-4
        # What is forced comes, whatever else is said of it.
        assert generator.generate(prompt, forced_eos_token_id=prompt[0], encoder_no_repeat_ngram_size=1, min_length=19, no_repeat_ngram_size=1).tokens[-1] in (prompt[0], 4)
    with pytest.raises(ValueError, match="beams know no encoder_repetition_penalty"):
        generator.generate(PROMPTS[0], encoder_repetition_penalty=2)


def test_ends_that_are_bad_words(model, tmp_path):
    """An end by itself is none of them, as in Transformers; suppressed it does not come."""
    plain = followed(model, PROMPTS[0])
    end = plain[3]
    wanted = plain[: plain.index(end) + 1]
    assert generator_of(tmp_path, model, {"eos_token_id": end, "bad_words_ids": [[end]]}).generate(PROMPTS[0], max_new_tokens=12).tokens == wanted
    assert end not in generator_of(tmp_path, model, {"eos_token_id": end, "suppress_tokens": [end]}).generate(PROMPTS[0], max_new_tokens=12).tokens


def test_strings_that_stop(model, tmp_path):
    tiny = Decoder("gpt2", seed=3, tokens=len(CHARACTERS))
    generator = generator_of(tmp_path, tiny, {"eos_token_id": None})
    (tmp_path / "m" / "tokenizer.json").write_text(tokenizer(CHARACTERS))
    generator = tensorwright.Generator(tmp_path / "m", capacity=64)
    text = generator.generate("hello", max_new_tokens=20).text
    stop = text[4:6]
    (tmp_path / "m" / "generation_config.json").write_text(json.dumps({"stop_strings": [stop]}))
    generator = tensorwright.Generator(tmp_path / "m", capacity=64)
    assert generator.generate("hello", max_new_tokens=20).text == text[: text.index(stop)]
    assert generator.generate("hello", max_new_tokens=20, stop=()).text == text


REFUSED = [
    ({"guidance_scale": 1.5}, {}, "guidance_scale is 1.5, which would change the tokens that are chosen and is not supported; take it out of the file"),
    ({"sequence_bias": [[[1], 2.0]]}, {}, "sequence_bias is"),
    ({"penalty_alpha": 0.6, "top_k": 4}, {}, "penalty_alpha is 0.6"),
    ({"exponential_decay_length_penalty": [5, 1.1]}, {}, "exponential_decay_length_penalty"),
    ({"force_words_ids": [[5]]}, {}, "force_words_ids"),
    ({"typical_p": 0.9}, {"do_sample": True}, "typical_p is 0.9"),
    ({"typical_p": 0.9, "do_sample": True}, {}, "typical_p is 0.9"),
    ({"epsilon_cutoff": 3e-4}, {"temperature": 0.5}, "epsilon_cutoff"),
    ({"num_beam_groups": 2, "diversity_penalty": 0.4}, {"num_beams": 4}, "num_beam_groups is 2"),
    ({"max_length": -1}, None, "generation_config.json: max_length: -1 is out of range"),
    ({"forced_eos_token_id": "x"}, None, "generation_config.json: forced_eos_token_id: 'x'"),
    ({"forced_eos_token_id": VOCABULARY}, {}, f"forced_eos_token_id: {VOCABULARY} is no token"),
    ({"encoder_no_repeat_ngram_size": 1.5}, None, "generation_config.json: encoder_no_repeat_ngram_size: 1.5 is no whole number"),
]


@pytest.mark.parametrize("said,given,what", REFUSED)
def test_refused(said, given, what, model, tmp_path):
    """given None: the folder is refused, else what is generated so."""
    with pytest.raises(ValueError, match=what):
        generator_of(tmp_path, model, said).generate(PROMPTS[0], max_new_tokens=3, **given)


def test_what_changes_nothing(model, tmp_path):
    """Neutral values, what is of draws where none are, and what is no rule."""
    said = {"typical_p": 0.9, "top_k": 50, "penalty_alpha": 0.0, "guidance_scale": 1.0, "num_beam_groups": 1, "diversity_penalty": 0.0, "sequence_bias": None,
            "renormalize_logits": True, "cache_implementation": "static", "return_dict_in_generate": True, "transformers_version": "5", "watermarking_config": None,
            "use_cache": False, "forced_bos_token_id": 7, "num_return_sequences": 1, "pad_token_id": [0], "encoder_repetition_penalty": 1.0, "dola_layers": None}
    assert [r.tokens for r in generator_of(tmp_path, model, said).generate(PROMPTS, max_new_tokens=12)] == [followed(model, p) for p in PROMPTS]


def test_the_program(model, tmp_path, capsys):
    """Beams that the model asks for need as many slots."""
    from tensorwright._programs import main

    generator = generator_of(tmp_path, model, {"num_beams": 4, "max_length": 19})
    wanted = generator.generate(PROMPTS[0]).tokens
    ids = ",".join(map(str, PROMPTS[0]))
    assert main(["generate", str(tmp_path / "m"), "--tokens", ids, "--capacity", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == wanted
    assert main(["generate", str(tmp_path / "m"), "--tokens", ids, "--capacity", "64", "--json", "--num-beams", "1", "--max-length", "15"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == followed(model, PROMPTS[0], 15)
    assert tensorwright.generate(tmp_path / "m", PROMPTS[0], capacity=64).tokens == wanted
