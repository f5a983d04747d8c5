# SPDX-License-Identifier: Apache-2.0
"""Texts in and out of tensorwright.generate(): tokenizers, stop strings, chat templates, the files of a folder, the program."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

for module in ("tokenizers", "jinja2"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed (tensorwright[generate])")

import tokenizers  # noqa: E402
import tensorwright  # noqa: E402
from tensorwright.generation import text  # noqa: E402
from tensorwright.generation.chat import Template, messages_of  # noqa: E402
from tensorwright.generation.files import files_of  # noqa: E402

from tiny_decoders import CHARACTERS, Decoder, folder  # noqa: E402

END = 39


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", seed=3)


TEMPLATE = "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a:{% endif %}"


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    config = {"chat_template": TEMPLATE, "eos_token": {"content": "</s>"}}
    return folder(tmp_path_factory.mktemp("models") / "tiny", model, end=END, tokenizer_config=config)


@pytest.fixture(scope="module")
def generator(path):
    return tensorwright.Generator(path, slots=3, capacity=96)


def ids(prompt):
    return [CHARACTERS.index(c) for c in prompt]


def written(tokens):
    return "".join(CHARACTERS[t] for t in tokens if t != END)


def test_texts(generator, model):
    prompts = ["hello ", "a", "what is this?"]
    for prompt, result in zip(prompts, generator.generate(prompts, max_new_tokens=20)):
        tokens = model.greedy(ids(prompt), 20, [END])
        assert result.tokens == tokens and result.text == str(result) == written(tokens)
        assert result.reason == ("stop" if tokens[-1] == END else "length") and result.prompt_tokens == len(prompt)
    pieces = list(generator.stream("hello ", max_new_tokens=20))
    assert "".join(p.text for p in pieces) == generator.generate("hello ", max_new_tokens=20).text
    assert [p.reason for p in pieces[:-1]] == [None] * (len(pieces) - 1) and pieces[-1].reason


def test_stop_strings(generator, model):
    """Of several tokens, at any place; one that begins and does not end is shown after all."""
    tokens = model.greedy(ids("hello "), 30, [])
    shown = written(tokens)
    for begin, end in ((3, 5), (0, 1), (10, 17), (25, 30)):
        stop = shown[begin:end]
        result = generator.generate("hello ", max_new_tokens=30, stop=["never here", stop])
        at = shown.find(stop)
        if END not in tokens[: at + len(stop)]:
            assert result.text == shown[:at] and result.reason == "stop" and len(result.tokens) == at + len(stop)
        pieces = list(generator.stream("hello ", max_new_tokens=30, stop=stop))
        assert "".join(p.text for p in pieces) == result.text
    half = shown[4:8] + "#"
    assert generator.generate("hello ", max_new_tokens=8, stop=half).text == written(tokens[:8])


@pytest.mark.parametrize("seed", range(5))
def test_stops_at_random(seed):
    """Whatever pieces a text comes in, what is shown is what stands in front of the first stop string that is complete."""
    random = np.random.default_rng(seed)
    for _ in range(300):
        whole = "".join(random.choice(list("abc"), random.integers(0, 30)))
        stops = tuple("".join(random.choice(list("abc"), random.integers(1, 5))) for _ in range(random.integers(0, 4)))
        finder, shown, seen = text.Stops(stops), "", 0
        while seen < len(whole) and not finder.found:
            step = int(random.integers(1, 4))
            shown += finder.add(whole[seen : seen + step])
            seen += step
            assert not any(s in shown for s in stops)
        found = finder.found
        shown += finder.end()
        taken = whole[:seen]
        assert found == any(s in taken for s in stops)
        assert shown == (taken[: min(taken.find(s) for s in stops if s in taken)] if found else whole)


def bytes_tokenizer():
    """Tokens are bytes, so that characters come in pieces."""
    model = tokenizers.models.BPE({c: i for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}, [])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer, made.decoder = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    return made


def metaspace_tokenizer():
    """A word's first space is written by its token, and left out at the beginning of a text."""
    words = ["▁the", "▁cat", "s", "▁sat", "▁", "<unk>"]
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, "<unk>"))
    made.decoder = tokenizers.decoders.Metaspace()
    return made


def test_characters_of_several_tokens(tmp_path):
    (tmp_path / "t.json").write_text(bytes_tokenizer().to_str())
    tokenizer = text.Tokenizer(str(tmp_path / "t.json"), 256)
    whole = "naïve – 東京 🎉🏳️‍🌈 end"
    tokens = tokenizer.encode(whole)
    assert len(tokens) == len(whole.encode())
    growing = text.Growing(tokenizer)
    pieces = [growing.add(t) for t in tokens]
    assert "".join(pieces) + growing.end() == whole
    assert all("\ufffd" not in p for p in pieces) and "" in pieces
    broken = text.Growing(tokenizer)
    cut = "".join(broken.add(t) for t in tokens[:3])  # na and half of ï
    assert cut == "na" and broken.end() == "\ufffd"
    growing = text.Growing(tokenizer)
    lone = tokenizer.encode("é")[0]
    assert "\ufffd" in "".join(growing.add(lone) for _ in range(40))  # what never becomes a character is not held back for ever
    assert b"".join(tokenizer.bytes_of(t, tokenizer.token(t)) for t in tokens) == whole.encode()


def test_spaces_that_tokens_begin_with(tmp_path):
    (tmp_path / "t.json").write_text(metaspace_tokenizer().to_str())
    tokenizer = text.Tokenizer(str(tmp_path / "t.json"), 6)
    assert tokenizer.token(1) == "cat" and tokenizer.token(1, 0) == " cat" and tokenizer.token(2, 1) == "s"
    growing = text.Growing(tokenizer)
    assert [growing.add(t) for t in (0, 1, 2, 3, 0)] == ["the", " cat", "s", " sat", " the"]


def test_tokenizers_that_do_not_fit(path, model, tmp_path):
    for content, says in (("{", "is no tokenizer"), ("[]", "is no tokenizer"), ("\0" * 100, "is no tokenizer")):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(ValueError, match=says):
            tensorwright.Generator(path, tokenizer=tmp_path / "bad.json")
    (tmp_path / "other.json").write_text(bytes_tokenizer().to_str())
    with pytest.raises(ValueError, match="tokens up to 255, the model has 40: it is the tokenizer of another model"):
        tensorwright.Generator(path, tokenizer=tmp_path / "other.json")
    plain = tensorwright.Generator(path, tokenizer=False, slots=3, capacity=96)
    assert plain.tokenizer is None and plain.generate([1, 2], max_new_tokens=3).tokens == model.greedy([1, 2], 3, [END])
    with pytest.raises(ValueError, match="surrogates"):
        tensorwright.generate(path, "\ud800", 3)


def test_conversations(generator, model):
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": [{"type": "text", "text": "go"}]}]
    prompt = "u: hi\na: yes\nu: go\na:".replace(":", " ")  # ':' is no character of the tokenizer, and ' ' stands for it
    result = generator.generate(messages, max_new_tokens=8)
    assert result.tokens == model.greedy(ids(prompt), 8, [END])
    both = generator.generate([messages, messages[:1]], max_new_tokens=8)
    assert both[0].tokens == result.tokens and both[1].prompt_tokens == len("u: hi\na:")
    for wrong, says in (([{"role": 3, "content": ""}], "role"), ([{"role": "user", "content": 5}], "content is text"), ([{"role": "user", "content": [{"type": "image_url"}]}], "images")):
        with pytest.raises(ValueError, match=says):
            generator.generate(wrong)


def template(source, **tokens):
    return Template(source, "test", tokens)


def test_templates():
    """What templates of models use."""
    user = messages_of([{"role": "user", "content": "hi"}])
    assert template("{{ bos_token }}{{ messages[0]['content'] | trim }}", bos_token={"content": "<s>"}).render(user) == "<s>hi"
    assert template("{%- for m in messages %}\n  {{- loop.index0 }}\n{%- endfor %}").render(user) == "0"
    assert template("{{ {'a': 'é<'} | tojson }}").render(user) == '{"a": "é<"}'
    assert template("{% set ns = namespace(n=0) %}{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}").render(user) == "2"
    assert template("{{ tools | length }}").render(user, tools=[1, 2]) == "2" and len(template("{{ strftime_now('%Y') }}").render(user)) == 4
    with pytest.raises(ValueError, match="roles must alternate"):
        template("{{ raise_exception('roles must alternate') }}").render(user)


HOSTILE = {
    "no template": "{% for %}",
    "endless": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "much text": "{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}",
    "much memory": "{% set x = 'x' * 9999999999 %}{{ x }}",
    "doubled": "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__['json'] }}",
    "files": "{% include '/etc/passwd' %}",
    "changes": "{{ messages.append(1) }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "deep": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "long": "x" * (2 << 20),
    "power": "{{ 9 ** (9 ** 9) }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates(name, monkeypatch):
    monkeypatch.setattr("tensorwright.generation.chat._SECONDS", 2.0)
    hostile = template(HOSTILE[name])
    with pytest.raises(ValueError, match="the chat template of test cannot be used: "):
        hostile.render([{"role": "user", "content": "hi"}])
    with pytest.raises(ValueError):
        hostile.render([{"role": "user", "content": "hi"}])
    hostile.close()


def test_files(path, model, tmp_path):
    """Where exporters put things."""
    assert files_of(path).name == "tiny" and files_of(path / "model.onnx").name == "tiny"
    inner = tmp_path / "optimum"
    (inner / "onnx").mkdir(parents=True)
    (inner / "onnx" / "decoder_model_merged.onnx").write_bytes(b"x")
    assert files_of(inner).onnx.endswith("onnx/decoder_model_merged.onnx")
    genai = tmp_path / "genai"
    genai.mkdir()
    (genai / "phi.onnx").write_bytes(b"x")
    (genai / "other.onnx").write_bytes(b"x")
    with pytest.raises(FileNotFoundError, match="several ONNX files: other.onnx, phi.onnx"):
        files_of(genai)
    config = {"model": {"context_length": 77, "eos_token_id": [5, 6], "decoder": {"filename": "phi.onnx", "head_size": 8, "num_key_value_heads": 2}}, "search": {"top_k": 9, "do_sample": True}}
    (genai / "genai_config.json").write_text(json.dumps(config))
    found = files_of(genai)
    assert found.onnx.endswith("phi.onnx") and found.name == "phi" and found.most_positions() == 77 and found.ends() == [5, 6]
    assert found.generation["top_k"] == 9 and found.config["head_dim"] == 8
    config["model"]["decoder"]["filename"] = "../optimum/onnx/decoder_model_merged.onnx"
    (genai / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(FileNotFoundError):
        files_of(genai)
    config["model"]["decoder"] = {"pipeline": [{"embeds": {"filename": "a.onnx"}}]}
    (genai / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="the decoder is a pipeline of several files; one, model.decoder.filename, is expected"):
        files_of(genai)
    with pytest.raises(FileNotFoundError, match="there is no model"):
        files_of(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no ONNX file"):
        files_of(tmp_path)


def test_files_in_parts_of_folders(tmp_path):
    """A quantized one alone in `onnx`, by the folder and by itself; Olive's `model`."""
    web, olive = tmp_path / "web", tmp_path / "olive"
    (web / "onnx").mkdir(parents=True)
    (web / "onnx" / "model_q4.onnx").write_bytes(b"x")
    (web / "generation_config.json").write_text('{"top_k": 3}')
    for given in (web, web / "onnx" / "model_q4.onnx"):
        found = files_of(given)
        assert found.onnx == str(web / "onnx" / "model_q4.onnx") and found.folder == str(web) and found.generation == {"top_k": 3}
    (web / "onnx" / "model_fp16.onnx").write_bytes(b"x")
    with pytest.raises(FileNotFoundError, match="several ONNX files: onnx/model_fp16.onnx, onnx/model_q4.onnx"):
        files_of(web)
    (web / "onnx" / "config.json").write_text("{}")
    assert files_of(web / "onnx" / "model_q4.onnx").folder == str(web / "onnx")
    (olive / "model").mkdir(parents=True)
    (olive / "model" / "model.onnx").write_bytes(b"x")
    (olive / "model" / "genai_config.json").write_text('{"model": {"eos_token_id": 9, "decoder": {"filename": "model.onnx"}}}')
    assert files_of(olive).ends() == 9 and files_of(olive).onnx == str(olive / "model" / "model.onnx")


def test_tokens_that_were_added(model, tmp_path):
    """Some that the model does not have, as a padding that somebody needed: texts with them are refused, others are not."""
    path = folder(tmp_path / "m", model)
    said = json.loads((path / "tokenizer.json").read_text())
    said["added_tokens"] = [{"id": 40 + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, t in enumerate(("<pad>", "<more>"))]
    (path / "tokenizer.json").write_text(json.dumps(said))
    generator = tensorwright.Generator(path, slots=3, capacity=96)
    assert generator.generate("hello", max_new_tokens=9).tokens == model.greedy(ids("hello"), 9, generator.ends)
    with pytest.raises(ValueError, match="the prompt has the token 4. .allowed: 0 to 39"):
        generator.generate("hello<more>")
    said["model"]["vocab"]["wrong"] = 42
    (path / "tokenizer.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match="it is the tokenizer of another model"):
        tensorwright.Generator(path, slots=3, capacity=96)


@pytest.mark.parametrize("name, content, says", [
    ("config", "{", "config.json is no JSON"), ("config", "[1]", "no object of JSON"), ("generation_config", '{"temperature": -3}', "generation_config.json: temperature: -3 is out of range"),
    ("generation_config", '{"eos_token_id": "x"}', "eos_token_id: 'x'"), ("generation_config", '{"eos_token_id": [1, -1]}', "eos_token_id: -1"), ("config", "[" * 100000, "no JSON"),
    ("tokenizer_config", "\udcff".encode("utf8", "surrogatepass").decode("latin1"), "no JSON"),
])
def test_files_that_are_refused(model, tmp_path, name, content, says):
    with pytest.raises(ValueError, match=says):
        tensorwright.Generator(folder(tmp_path / "m", model, **{name: content}), slots=3, capacity=96)


def test_what_the_model_says_of_choosing(model, tmp_path):
    path = folder(tmp_path / "m", model, generation_config={"do_sample": True, "temperature": 0.8, "top_k": 7, "eos_token_id": None, "unknown": {}})
    generator = tensorwright.Generator(path, slots=3, capacity=96)
    first = generator.generate("hello", max_new_tokens=9, seed=4)
    assert first.tokens == model.sampled(ids("hello"), 9, temperature=0.8, top_k=7, seed_low=4)
    assert generator.generate("hello", max_new_tokens=9, do_sample=False).tokens == model.greedy(ids("hello"), 9)
    assert generator.generate("hello", max_new_tokens=9, temperature=0).tokens == model.greedy(ids("hello"), 9)
    assert generator.generate("hello", max_new_tokens=5, num_beams=2).score is not None
    with pytest.raises(ValueError, match="capacity: 97 tokens, the model was made for 96"):
        tensorwright.Generator(path, capacity=97)


def test_ends_of_the_tokenizer(model, tmp_path):
    """Where no configuration has an id, the tokenizer's end is the model's; sizes may stand a level below."""
    config = {"text_config": {"max_position_embeddings": 80}, "vocab_size": 40}
    for token in ("</s>", {"content": "</s>"}):
        path = folder(tmp_path / "m", model, tokenizer_config={"eos_token": token}, config=config)
        generator = tensorwright.Generator(path, slots=1)
        assert generator.ends == (END,) and generator.capacity == 80
    for token in ("no token", 5, None, {"content": 5}):
        path = folder(tmp_path / "m", model, tokenizer_config={"eos_token": token})
        assert tensorwright.Generator(path, slots=1).ends == ()


def test_without_the_packages(path, monkeypatch):
    for name, says in (("tokenizers", "needs the package tokenizers"), ("jinja2", "needs the package jinja2")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(ImportError, match=says):
                tensorwright.Generator(path, slots=3, capacity=96)


def program(*arguments, status=0):
    done = subprocess.run([sys.executable, "-m", "tensorwright", "generate", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def test_the_program(path, model):
    expected = written(model.greedy(ids("hello "), 12, [END]))
    options = [path, "--capacity", 96, "--max-new-tokens", 12]
    out, err = program(*options, "--prompt", "hello ")
    assert out == expected + "\n"
    assert "12 tokens" in err and "tokens/s" in err and "first token after" in err
    tokens, _ = program(*options, "--tokens", ",".join(map(str, ids("hello "))))
    assert [int(t) for t in tokens.split()] == model.greedy(ids("hello "), 12, [END])
    beams, _ = program(*options, "--prompt", "hello ", "--num-beams", 2)
    assert beams == tensorwright.generate(path, "hello ", 12, num_beams=2, capacity=96).text + "\n"
    chat, _ = program(*options, "--chat", "hi")
    assert chat == written(model.greedy(ids("u  hi\na "), 12, [END])) + "\n"
    out, err = program(*options, "--prompt", "hello ", "--temperature", 1, "--seed", 3, "--json")
    assert json.loads(out)["tokens"] == model.sampled(ids("hello "), 12, [END], temperature=1.0, seed_low=3) and not err


@pytest.mark.parametrize("arguments, says", [
    (["none", "--prompt", "x"], "there is no model"), ([None, "--prompt", ""], "the prompt has no token"), ([None, "--prompt", "x", "--temperature", "-1"], "temperature: -1.0 is out of range"),
    ([None, "--tokens", "1,x"], "--tokens: '1,x' is no list of ids"), ([None, "--prompt", "x", "--top-p", "nan"], "top_p: nan"),
])
def test_what_the_program_refuses(path, arguments, says):
    out, err = program(*(path if a is None else a for a in arguments), status=1)
    assert out == "" and err.startswith("tensorwright generate: ") and says in err and "Traceback" not in err


def test_files_that_are_no_models(path, tmp_path):
    """Whatever lies where a model is expected."""
    for i, data in enumerate((b"", b"not ONNX", (path / "model.onnx").read_bytes()[:3000], np.random.default_rng(0).bytes(5000))):
        (tmp_path / "model.onnx").write_bytes(data)
        out, err = program(tmp_path, "--tokens", "1", "--no-cache", status=1)
        assert out == "" and "Traceback" not in err and "tensorwright generate: " in err
    (tmp_path / "model.onnx").unlink()
    out, err = program(tmp_path, "--tokens", "1", status=1)
    assert "has no ONNX file" in err


def test_a_program_that_is_interrupted(path):
    command = [sys.executable, "-m", "tensorwright", "generate", str(path), "--prompt", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130 and out == "" and "Traceback" not in err
