# SPDX-License-Identifier: Apache-2.0
"""Files of models and requests for texts that nobody meant: each is refused with a sentence or does what it says, and nothing else happens.
TW_SEED chooses them, TW_COUNT says how many."""

import copy
import json
import os

import numpy as np
import pytest

for module in ("tokenizers", "jinja2", "aiohttp", "prometheus_client"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed")

import tensorrt as trt  # noqa: E402
import tensorwright  # noqa: E402
from tensorwright.generation import chat, interface, text  # noqa: E402

import seq2seq_models as models  # noqa: E402
from tiny_decoders import CHARACTERS, Decoder, folder, tokenizer  # noqa: E402
from generation_text_test import HOSTILE, TEMPLATE, bytes_tokenizer, metaspace_tokenizer  # noqa: E402
from serving import ask, served  # noqa: E402

SEED, COUNT = int(os.environ.get("TW_SEED", 1)), int(os.environ.get("TW_COUNT", 150))
VALUES = [None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 1e308, -0.5, float("nan"), float("inf"), "", "x", "é\ud800", "\0", "a" * 5000, [], {}, [[]], {"type": "x"}, [1] * 300, ["a", 1]]


def places(value, at=()):
    """Paths to everything in a value of JSON."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*at, key))


def mutated(random, value):
    """A value of JSON with some of it changed, gone, doubled or somewhere else."""
    value = copy.deepcopy(value)
    for _ in range(int(random.integers(1, 4))):
        paths = [p for p in places(value) if p]
        if not paths:
            break
        path = paths[random.integers(len(paths))]
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        kind = random.integers(5)
        if kind == 0:
            del holder[path[-1]]
        elif kind == 1 and isinstance(holder, dict):
            holder[["x", "type", "vocab", "content", "model"][random.integers(5)]] = holder[path[-1]]
        elif kind == 2:
            other = value
            for key in paths[random.integers(len(paths))]:
                other = other[key]
            holder[path[-1]] = copy.deepcopy(other)
        elif kind == 3 and isinstance(holder[path[-1]], (int, float)) and not isinstance(holder[path[-1]], bool):
            holder[path[-1]] = holder[path[-1]] * int(random.choice([-1, 2, 1000])) + int(random.integers(-2, 3))
        else:
            holder[path[-1]] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    return value


def damaged(random, data):
    """Bytes with some of them changed, gone or doubled."""
    data = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        at = int(random.integers(len(data) + 1))
        kind = random.integers(3)
        if kind == 0:
            data[at : at + 1] = bytes([random.integers(256)])
        elif kind == 1:
            del data[at : at + int(random.integers(1, 20))]
        else:
            data[at:at] = data[at : at + int(random.integers(1, 50))]
    return bytes(data)


@pytest.mark.parametrize("kind", ["characters", "bytes", "words"])
def test_tokenizers(kind, tmp_path):
    random = np.random.default_rng([SEED, len(kind)])
    source = {"characters": lambda: tokenizer(CHARACTERS), "bytes": lambda: bytes_tokenizer().to_str(), "words": lambda: metaspace_tokenizer().to_str()}[kind]()
    path, good = tmp_path / "tokenizer.json", 0
    for i in range(COUNT):
        value = mutated(random, json.loads(source))
        data = json.dumps(value).encode() if i % 3 else damaged(random, source.encode())
        path.write_bytes(data)
        try:
            made = text.Tokenizer(str(path), 300)
        except ValueError as error:
            assert str(path) in str(error)
            continue
        good += 1
        for prompt in ("hello", "", "naïve 東京 🎉", "a" * 200):
            try:
                ids = made.encode(prompt)
                assert all(isinstance(t, int) for t in ids)
                growing = text.Growing(made)
                pieces = [growing.add(t) for t in [*ids, 0, 299, 5]]
                assert isinstance("".join(pieces) + growing.end(), str)
            except ValueError as error:
                assert str(path) in str(error)
    assert good > COUNT // 20


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", layers=1, seed=3)


CONFIGS = {
    "config": {"model_type": "llama", "vocab_size": 40, "max_position_embeddings": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "eos_token_id": 2},
    "generation_config": {"eos_token_id": [39, 5], "pad_token_id": 0, "do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.1, "max_new_tokens": 9, "num_beams": 1},
    "tokenizer_config": {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [{"name": "default", "template": TEMPLATE}]},
    "genai_config": {"model": {"context_length": 90, "eos_token_id": 39, "decoder": {"filename": "model.onnx", "head_size": 8, "num_attention_heads": 4}}, "search": {"top_k": 3, "max_length": 20}},
}


def test_configs(model, tmp_path):
    """A folder whose JSON files are not what they should be: a ValueError that names the file or what is wrong, or texts."""
    random, good = np.random.default_rng([SEED, 4]), 0
    path = folder(tmp_path / "m", model, **CONFIGS)
    cache = str(tmp_path / "plans")
    for i in range(COUNT // 2):
        for name, value in CONFIGS.items():
            data = json.dumps(mutated(random, value)).encode() if i % 4 else damaged(random, json.dumps(value).encode())
            (path / f"{name}.json").write_bytes(data if random.random() < 0.5 else json.dumps(value).encode())
        try:
            generator = tensorwright.Generator(path, slots=1, capacity=None if i % 2 else 24, cache=cache)
        except (ValueError, FileNotFoundError) as error:
            assert str(error)
            continue
        try:
            result = generator.generate("hello", max_new_tokens=3)
            assert 1 <= len(result.tokens) <= 3 and isinstance(result.text, str)
            generator.generate([{"role": "user", "content": "hi"}], max_new_tokens=2)
            good += 1
        except ValueError as error:
            assert str(error)
    assert good > COUNT // 20


@pytest.mark.parametrize("kind", ["t5", "whisper"])
def test_configs_of_an_encoder(kind, tmp_path):
    random, good = np.random.default_rng([SEED, 6]), 0
    said = {"decoder_start_token_id": 3, "forced_decoder_ids": [[1, 20], [2, 21]], "forced_bos_token_id": 5, "suppress_tokens": [7, 8], "begin_suppress_tokens": [9], "bad_words_ids": [[4, 5], [6]]}
    path = models.write(tmp_path / "m", kind, **said)
    right = {n: json.loads((path / f"{n}.json").read_text()) for n in ("config", "generation_config")}
    source = models.source_of(kind, random)
    for _ in range(COUNT // 4):
        for name, value in right.items():
            (path / f"{name}.json").write_text(json.dumps(mutated(random, value) if random.random() < 0.6 else value))
        try:
            generator = tensorwright.Generator(path, slots=1, capacity=24, source_capacity=9, cache=str(tmp_path / "plans"))
            result = generator.generate(source, max_new_tokens=3, num_beams=1)
            assert 1 <= len(result.tokens) <= 3
            good += 1
        except (ValueError, RuntimeError) as error:
            assert str(error)
    assert good > COUNT // 40


def test_templates():
    random, good = np.random.default_rng([SEED, 5]), 0
    sources = [TEMPLATE, "{% set ns = namespace(x=1) %}{% for m in messages if m.role != 'x' %}{{ m | tojson(indent=2) }}{% else %}{{ raise_exception('no') }}{% endfor %}",
               "{% macro f(a) %}{{ a.content[:3] | upper ~ bos_token }}{% endmacro %}{{ f(messages[-1]) }}", HOSTILE["classes"], HOSTILE["changes"]]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "<b>\n"}]
    for i in range(COUNT):
        source = damaged(random, sources[i % len(sources)].encode()).decode(errors="replace")
        template = chat.Template(source, "test", {"bos_token": "<s>"})
        template._process, template._lines = getattr(test_templates, "process", (None, None))  # one process for all
        try:
            assert isinstance(template.render(messages), str)
            good += 1
        except ValueError as error:
            assert str(error).startswith("the chat template of test cannot be used: ")
        test_templates.process, template._process = (template._process, template._lines), None
    template._process = test_templates.process[0]
    template.close()
    assert good > COUNT // 20


def test_tensors():
    """Names and shapes of any kind: an Interface or a sentence."""
    random, good = np.random.default_rng([SEED, 6]), 0
    right = [("input_ids", True, (-1, -1)), ("attention_mask", True, (-1, -1)), ("past_key_values.0.key", True, (-1, 2, -1, 8)), ("past_key_values.0.value", True, (-1, 2, -1, 8)),
             ("logits", False, (-1, -1, 40)), ("present.0.key", False, (-1, 2, -1, 8)), ("present.0.value", False, (-1, 2, -1, 8))]
    names = [n for n, _, _ in right] + ["encoder_hidden_states", "x", "past", "position_ids", "write_indices", "use_cache_branch", "present"]
    for _ in range(COUNT * 3):
        tensors = []
        for name, is_input, shape in right:
            if random.random() < 0.08:
                continue
            name = names[random.integers(len(names))] if random.random() < 0.1 else name
            shape = tuple(int(n) for n in random.integers(-1, 9, random.integers(0, 6))) if random.random() < 0.1 else shape
            tensors.append(interface.Tensor(name, bool(is_input ^ (random.random() < 0.03)), shape, trt.float32))
        try:
            found = interface.interface_of(tensors, {"num_attention_heads": 4})
            found.shapes(2, 3, 7, True)
            good += 1
        except ValueError as error:
            assert str(error)
    assert good > COUNT // 20


REQUESTS = [
    ("/v1/completions", {"model": "tiny", "prompt": "hello", "max_tokens": 4, "temperature": 0.5, "top_p": 0.9, "n": 2, "stop": ["x", "yz"], "logprobs": 2, "seed": 5, "stream": False, "echo": True,
                         "presence_penalty": 0.1, "stream_options": {"include_usage": True}, "logit_bias": None, "stop_token_ids": [3], "min_tokens": 1}),
    ("/v1/chat/completions", {"model": "tiny", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "a"}], "max_tokens": 3, "logprobs": True,
                              "top_logprobs": 3, "stream": True, "top_k": 4, "min_p": 0.1, "chat_template_kwargs": {"x": 1}}),
    ("/v1/completions", {"prompt": [[1, 2, 3], "go", [4]], "model": "tiny", "max_tokens": 2, "return_token_ids": True}),
]


def test_requests(model, tmp_path):
    """Never a failure of the server's own, and who asks rightly meanwhile is answered rightly."""
    random, statuses = np.random.default_rng([SEED, 7]), {}
    generator = tensorwright.Generator(folder(tmp_path / "tiny", model, tokenizer_config={"chat_template": TEMPLATE}), slots=2, cache=str(tmp_path / "plans"))
    good = json.dumps({"model": "tiny", "prompt": "hello ", "temperature": 0, "max_tokens": 6}).encode()
    with served(generators={"tiny": generator}, grpc_port=None) as server:
        expected = json.loads(ask(server, "POST", "/v1/completions", good)[2])["choices"][0]["text"]
        for i in range(COUNT * 3):
            path, value = REQUESTS[i % len(REQUESTS)]
            body = json.dumps(mutated(random, value)).encode() if i % 4 else damaged(random, json.dumps(value).encode())
            status, headers, answer = ask(server, "POST", path, body)
            assert status in (200, 400, 404), (status, body, answer)
            statuses[status] = statuses.get(status, 0) + 1
            if headers["Content-Type"].startswith("text/event-stream"):
                assert answer.endswith(b"data: [DONE]\n\n"), answer
            else:
                assert json.loads(answer).keys() >= ({"choices"} if status == 200 else {"error"})
            if i % 50 == 0:
                assert json.loads(ask(server, "POST", "/v1/completions", good)[2])["choices"][0]["text"] == expected
        assert server.engines["tiny"].open == 0
    assert statuses[200] > COUNT // 3 and statuses[400] > COUNT // 3
