# SPDX-License-Identifier: Apache-2.0
"""Decoder models behind tensorwright serve, asked by OpenAI's client and by curl: answers, streams, limits, clients that leave."""

import asyncio
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

for module in ("aiohttp", "prometheus_client", "tokenizers", "jinja2", "openai"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed")

import aiohttp  # noqa: E402
import openai  # noqa: E402
import tensorwright  # noqa: E402
from tensorwright.serve import Limits, Options  # noqa: E402

import decoding  # noqa: E402
from tiny_decoders import Decoder, folder  # noqa: E402
from generation_text_test import END, TEMPLATE, ids, written  # noqa: E402
from serving import affine, ask, get, infer, served, X  # noqa: E402


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", seed=3)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    config = {"chat_template": TEMPLATE}
    return folder(tmp_path_factory.mktemp("models") / "tiny", model, end=END, tokenizer_config=config)


@pytest.fixture(scope="module")
def server(path, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        plan = tmp_path_factory.mktemp("plans") / "m.plan"
        plan.write_bytes(affine(2, 1))
        generators = {"tiny": tensorwright.Generator(path, slots=4, chunk=16), "plain": tensorwright.Generator(path, tokenizer=False, slots=2)}
        with served(plan, generators=generators, options=Options(queue=40), limits=Limits(json_bytes=1 << 20)) as server:
            yield server


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.http}/v1", api_key="none", max_retries=0) as made:
        yield made


def greedy(model, prompt, count):
    return written(model.greedy(ids(prompt), count, [END]))


def quiet(server, name="tiny", seconds=30):
    """Waits until nobody has a slot."""
    deadline = time.monotonic() + seconds
    while server.engines[name].open or server.engines[name].generator.scheduler.running:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_models(client, server):
    assert [m.id for m in client.models.list()] == ["tiny", "plain"] and client.models.retrieve("tiny").owned_by == "tensorwright"
    with pytest.raises(openai.NotFoundError, match="there is no model 'm' that generates"):
        client.models.retrieve("m")
    assert infer(server, "m", {"inputs": [X]})[0] == 200


def test_completions(client, model):
    answer = client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=12)
    tokens = model.greedy(ids("hello "), 12, [END])
    assert answer.choices[0].text == written(tokens) and answer.object == "text_completion" and answer.id.startswith("cmpl-")
    assert answer.usage.prompt_tokens == 6 and answer.usage.completion_tokens == len(tokens) and answer.usage.total_tokens == 6 + len(tokens)
    assert answer.choices[0].finish_reason == ("stop" if tokens[-1] == END else "length")
    several = client.completions.create(model="tiny", prompt=["a", "what is"], temperature=0, n=2, echo=True, extra_body={"return_token_ids": True})
    assert [c.index for c in several.choices] == [0, 1, 2, 3]
    for choice, prompt in zip(several.choices, ["a", "a", "what is", "what is"]):
        assert choice.text == prompt + greedy(model, prompt, 16) and choice.token_ids == model.greedy(ids(prompt), 16, [END])
    by_ids = client.completions.create(model="tiny", prompt=ids("hello "), temperature=0, max_tokens=12)
    assert by_ids.choices[0].text == answer.choices[0].text
    stop = answer.choices[0].text[4:7]
    assert client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=12, stop=[stop]).choices[0].text == answer.choices[0].text.split(stop)[0]
    drawn = client.completions.create(model="tiny", prompt="hello ", temperature=0.9, top_p=0.8, seed=5, n=2, max_tokens=9, extra_body={"return_token_ids": True})
    for number, choice in enumerate(drawn.choices):
        assert choice.token_ids == model.sampled(ids("hello "), 9, [END], temperature=0.9, top_p=0.8, seed_low=5, stream=number)
    plain = client.completions.create(model="plain", prompt=[1, 2, 3], temperature=0, max_tokens=5)
    assert plain.choices[0].token_ids == model.greedy([1, 2, 3], 5, [END])


def test_seeds_that_are_not_given_differ(client):
    texts = {client.completions.create(model="tiny", prompt="hello ", temperature=1.5, max_tokens=16).choices[0].text for _ in range(4)}
    assert len(texts) > 1


def test_log_probabilities(client, model):
    choice = client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=4, logprobs=2).choices[0]
    expected = decoding.log_softmax(model.logits(ids("hello "))[-1])
    best = [int(i) for i in np.argsort(-expected)[:2]]
    assert abs(choice.logprobs.token_logprobs[0] - expected[best[0]]) < 1e-4 and choice.logprobs.tokens[0] == written(best[:1])
    assert list(choice.logprobs.top_logprobs[0]) == [written([b]) for b in best] and choice.logprobs.text_offset == [0, 1, 2, 3]
    # The token itself is told of where it is none of the best.
    drawn = client.completions.create(model="tiny", prompt="hello ", temperature=3, seed=2, max_tokens=30, logprobs=1, echo=False).choices[0].logprobs
    assert all(t in top and len(top) <= 2 for t, top in zip(drawn.tokens, drawn.top_logprobs)) and any(len(top) == 2 for top in drawn.top_logprobs)
    chat = client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "hi"}], temperature=0, max_tokens=3, logprobs=True, top_logprobs=2)
    content = chat.choices[0].logprobs.content
    assert len(content) == 3 and all(len(c.top_logprobs) == 2 and c.top_logprobs[0].logprob == pytest.approx(c.logprob, abs=1e-4) for c in content)
    assert bytes(content[0].bytes).decode() == content[0].token


def test_biases(client, model):
    """What is added to logits before a token is chosen: enough to forbid it, or to have no other."""
    first = model.greedy(ids("hello "), 1, [])[0]
    other = client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=20, logit_bias={str(first): -100}, extra_body={"return_token_ids": True})
    logits = model.logits(ids("hello "))[-1]
    logits[first] = -np.inf
    assert other.choices[0].token_ids[0] == int(logits.argmax()) and first not in other.choices[0].token_ids
    only = client.completions.create(model="tiny", prompt="hello ", temperature=1, max_tokens=5, logit_bias={"7": 100}, extra_body={"return_token_ids": True})
    assert only.choices[0].token_ids == [7] * 5
    chat = client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], temperature=1, max_tokens=5, logit_bias={"7": 100})
    assert chat.choices[0].message.content == written([7] * 5)


def test_best_of(client):
    """The likeliest by token of those that are tried; all of them are paid for."""
    options = {"model": "tiny", "temperature": 1.2, "max_tokens": 8, "logprobs": 0, "seed": 4}
    every = client.completions.create(prompt=["hello ", "go "], n=5, **options).choices
    best = client.completions.create(prompt=["hello ", "go "], n=2, best_of=5, **options)
    scores = [sum(c.logprobs.token_logprobs) / len(c.logprobs.tokens) for c in every]
    for i in range(2):
        order = sorted(range(5 * i, 5 * i + 5), key=lambda k: -scores[k])
        assert [c.text for c in best.choices[2 * i : 2 * i + 2]] == [every[k].text for k in order[:2]]
    assert [c.index for c in best.choices] == [0, 1, 2, 3] and best.usage.completion_tokens == sum(len(c.logprobs.tokens) for c in every)


def test_chats(client, model):
    messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    prompt = "s  be good\nu  hi\na "
    answer = client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=10)
    assert answer.choices[0].message.content == greedy(model, prompt, 10) and answer.choices[0].message.role == "assistant"
    assert answer.usage.prompt_tokens == len(prompt)
    longest = client.chat.completions.create(model="tiny", messages=messages, temperature=0)
    assert longest.choices[0].message.content == greedy(model, prompt, 96 - len(prompt))
    stream = client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_completion_tokens=10, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].choices == [] and chunks[-1].usage.total_tokens == answer.usage.total_tokens
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == answer.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks[:-2]] == [None] * (len(chunks) - 2) and chunks[-2].choices[0].finish_reason
    assert len({c.id for c in chunks}) == 1


def test_streams(client, model):
    texts = [""] * 4
    for chunk in client.completions.create(model="tiny", prompt=["hello ", "go "], n=2, temperature=0, max_tokens=20, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [greedy(model, p, 20) for p in ("hello ", "hello ", "go ", "go ")]


def test_many_at_a_time(client, model):
    """More than there are slots, of other lengths; each answer is what it is alone."""
    prompts = ["hello ", "a", "what is this", "go", "the cat sat on the mat, and then it ", "x y z", "no", "yes, yes"] * 3
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as threads:
        answers = list(threads.map(lambda p: client.completions.create(model="tiny", prompt=p, temperature=0, max_tokens=30).choices[0].text, prompts))
    assert answers == [greedy(model, p, 30) for p in prompts]


BAD = [
    ({"prompt": ""}, "the prompt has no token"), ({"prompt": []}, "prompt: "), ({"prompt": [[]]}, "no token"), ({"prompt": [1000]}, "token 1000 .allowed: 0 to 39"), ({"prompt": [-1]}, "token -1"),
    ({"prompt": [{}]}, "neither a text"), ({"prompt": [["a"]]}, "neither a text"), ({"prompt": 5}, "prompt: "), ({"prompt": "x" * 96}, "96 tokens, 95 are possible"),
    ({"prompt": "x" * 90, "max_tokens": 7}, "longer than the 96"), ({"max_tokens": 0}, "max_tokens: 0 is out of range"), ({"max_tokens": "9"}, "max_tokens: '9' is no whole number"),
    ({"temperature": -0.5}, "temperature: -0.5"), ({"temperature": float("nan")}, "temperature: nan"), ({"top_p": 0}, "top_p: 0 is out of range"), ({"n": 0}, "n: 0"), ({"n": 1000}, "n: 1000"), ({"n": True}, "n: "),
    ({"stop": [""]}, "stop: ''"), ({"stop": "x" * 5000}, "stop: "), ({"logprobs": 99}, "logprobs: 99"), ({"seed": "x"}, "seed: 'x'"), ({"stream": "yes"}, "stream: true or false"),
    ({"suffix": "x"}, "suffix: 'x' is not supported"), ({"logit_bias": {"1": 500}}, "logit_bias: 500 is out of range"), ({"logit_bias": {"77": 5}}, "logit_bias: 77 is no token"), ({"logit_bias": {"x": 5}}, "logit_bias: 'x'"), ({"logit_bias": [1]}, "logit_bias"),
    ({"best_of": 3, "n": 4}, "best_of: 3 is out of range"), ({"best_of": 3, "stream": True}, "best_of: .*stream"), ({"echo": True, "logprobs": 1}, "echo: "), ({"stream_options": {"include_usage": True}}, "stream_options: "),
    ({"guided_regex": "a+"}, "guided_regex: 'a.' is not supported"), ({"ignore_eos": True}, "ignore_eos: True"), ({"response_format": {"type": "json_object"}}, "response_format"), ({"stop_token_ids": [77]}, "77 is no token"), ({"n": 45}, "asks for 45 sequences"),
    ({"prompt": "\ud800"}, "surrogates"),
]


@pytest.mark.parametrize("more, says", BAD)
def test_requests_that_are_refused(client, server, model, more, says):
    request = {"model": "tiny", "prompt": "x", **more}
    status, _, body = ask(server, "POST", "/v1/completions", json.dumps(request).encode())
    error = json.loads(body)["error"]
    assert status == 400 and error["type"] == "invalid_request_error"
    import re
    assert re.search(says, error["message"]), error["message"]


def test_other_failures(client, server):
    with pytest.raises(openai.NotFoundError, match="no model 'none' that generates .there are: tiny, plain"):
        client.completions.create(model="none", prompt="x")
    with pytest.raises(openai.BadRequestError, match="needs a tokenizer"):
        client.completions.create(model="plain", prompt="x")
    for messages, says in (([], "at least one"), ([{"role": "user"}], "content is text"), ("hi", "messages: "), ([{"role": "user", "content": [{"type": "image_url"}]}], "images")):
        with pytest.raises(openai.BadRequestError, match=says):
            client.chat.completions.create(model="tiny", messages=messages)
    with pytest.raises(openai.BadRequestError, match="tools"):
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], tools=[{"type": "function", "function": {"name": "f"}}])
    status, _, body = ask(server, "POST", "/v1/completions", b"{" + b" " * (1 << 20))
    assert status == 413 and "bytes of JSON (limit: 1048576" in json.loads(body)["error"]["message"]
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 100000):
        status, _, answer = ask(server, "POST", "/v1/chat/completions", body)
        assert status in (400, 404) and json.loads(answer)["error"]["message"]
    with pytest.raises(openai.BadRequestError, match="top_logprobs: "):
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], top_logprobs=2)
    assert ask(server, "GET", "/health")[0] == 200
    assert ask(server, "GET", "/v1/completions")[0] == 405 and ask(server, "GET", "/v1/none")[0] == 404


def test_clients_that_leave(client, server, model):
    """A slot is free as soon as its client has gone, in a stream or waiting for all of it; others go on."""
    quiet(server)
    scheduler = server.engines["tiny"].generator.scheduler
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        other = thread.submit(lambda: client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=80).choices[0].text)
        for stream in (True, False):
            for _ in range(5):
                body = json.dumps({"model": "tiny", "prompt": "go ", "temperature": 1.0, "max_tokens": 90, "n": 8, "stream": stream}).encode()
                with socket.create_connection(("127.0.0.1", server.http)) as connection:
                    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                    if stream:
                        assert connection.recv(100).startswith(b"HTTP/1.1 200")
                    else:
                        time.sleep(0.01)
        assert other.result(30) == greedy(model, "hello ", 80)
    quiet(server, seconds=5)
    assert scheduler.waiting == 0
    assert client.completions.create(model="tiny", prompt="a", temperature=0, max_tokens=5).choices[0].text == greedy(model, "a", 5)


def test_who_waits_gets_a_turn(server, client, model):
    """A client that asks for much does not keep another waiting for all of it."""
    quiet(server)
    ends = {}

    def asked(name, prompt, n):
        with openai.OpenAI(base_url=client.base_url, api_key=name, max_retries=0) as mine:
            mine.completions.create(model="tiny", prompt=prompt, temperature=0, max_tokens=60, n=n)
            ends[name] = time.monotonic()

    greedy_one = threading.Thread(target=asked, args=("much", "hello ", 40))
    greedy_one.start()
    while server.engines["tiny"].open < 40:
        time.sleep(0.001)
    small = threading.Thread(target=asked, args=("little", "a", 1))
    small.start()
    small.join()
    greedy_one.join()
    assert ends["little"] < ends["much"]


def test_ten_thousand_at_once(server, client, model):
    """What has no place is told so; what has is answered right."""
    expected = {p: greedy(model, p, 6) for p in ("a", "go ", "hello ")}

    async def one(session, prompt):
        async with session.post(f"http://127.0.0.1:{server.http}/v1/completions", json={"model": "tiny", "prompt": prompt, "temperature": 0, "max_tokens": 6}) as response:
            return prompt, response.status, await response.json()

    async def all_of_them():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as session:
            return await asyncio.gather(*(one(session, list(expected)[i % 3]) for i in range(10000)), return_exceptions=True)

    results = asyncio.run(all_of_them())
    assert not [r for r in results if isinstance(r, BaseException)]
    statuses = {status for _, status, _ in results}
    assert statuses == {200, 429}
    for prompt, status, answer in results:
        if status == 200:
            assert answer["choices"][0]["text"] == expected[prompt]
        else:
            assert "the queue of model 'tiny' is full" in answer["error"]["message"] and answer["error"]["type"] == "rate_limit_error"
    assert sum(status == 200 for _, status, _ in results) > 100
    quiet(server)
    text = ask(server, "GET", "/metrics")[2].decode()
    assert 'tensorwright_generations_total{model="tiny",outcome="refused"}' in text and 'tensorwright_open_sequences{model="tiny"} 0.0' in text


def memory():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_load_with_cancellations(server, client, model):
    """Answers stay right, nothing is left behind, and memory does not grow."""
    expected = greedy(model, "hello ", 40)

    async def one(session, number):
        request = {"model": "tiny", "prompt": "hello ", "temperature": 0, "max_tokens": 40, "stream": number % 2 == 0}
        async with session.post(f"http://127.0.0.1:{server.http}/v1/completions", json=request) as response:
            if number % 3 == 0:  # leaves in the middle
                if number % 2 == 0:
                    await response.content.readany()
                return None
            if number % 2:
                return (await response.json())["choices"][0]["text"]
            text = ""
            async for line in response.content:
                if line.startswith(b"data: {"):
                    text += json.loads(line[6:])["choices"][0]["text"]
            return text

    async def rounds(count):
        async with aiohttp.ClientSession() as session:
            for i in range(count):
                answers = await asyncio.gather(*(one(session, 20 * i + n) for n in range(20)))
                assert all(a in (None, expected) for a in answers)

    asyncio.run(rounds(5))
    quiet(server)
    before = memory()
    asyncio.run(rounds(25))
    quiet(server)
    assert memory() - before < 16 << 20
    assert server.core.budget.held == 0


def test_runs_that_fail(server, client, model, monkeypatch):
    """A failure of the engine's is the server's, at once or in a stream that has begun; what comes then is answered."""
    quiet(server)
    runs, calls = server.engines["tiny"].generator.runs, []

    def failing(*arguments, step=server.engines["tiny"].generator.runs.step):
        calls.append(0)
        if len(calls) % 4 == 3:
            raise RuntimeError("no memory")
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "step", failing)
        with pytest.raises(openai.InternalServerError, match="model 'tiny': no memory"):
            client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=20)
        calls.clear()
        with pytest.raises(openai.APIError, match="no memory"):
            for chunk in client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=20, stream=True):
                assert chunk.choices[0].finish_reason is None
    assert client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=20).choices[0].text == greedy(model, "hello ", 20)


def test_streams_that_nobody_reads(path):
    """Hold no slot, and end when the connection has stalled; what would take too much memory is refused."""
    generators = {"tiny": tensorwright.Generator(path, slots=1)}
    with served(generators=generators, grpc_port=None, limits=Limits(stall_seconds=1.0, held_bytes=64 << 20)) as server:
        body = json.dumps({"prompt": "go ", "max_tokens": 90, "n": 100, "stream": True, "logprobs": 20, "temperature": 1.0}).encode()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.http))
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            while not server.engines["tiny"].open:
                time.sleep(0.001)
            status, _, answer = ask(server, "POST", "/v1/completions", body)
            assert status == 503 and "bytes are in work" in json.loads(answer)["error"]["message"]
            quiet(server)
            deadline = time.monotonic() + 20
            while len(server.core.connections) or server.core.budget.held:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        status, _, answer = ask(server, "POST", "/v1/completions", json.dumps({"prompt": "a", "temperature": 0}).encode())
        assert status == 200


def test_an_end_with_work(path, model):
    """Requests that were taken are answered."""
    generators = {"tiny": tensorwright.Generator(path, slots=2)}
    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        with served(generators=generators, grpc_port=None) as server:
            body = json.dumps({"prompt": "hello ", "temperature": 0, "max_tokens": 80}).encode()
            answers = [threads.submit(ask, server, "POST", "/v1/completions", body) for _ in range(6)]
            while server.engines["tiny"].open < 6:
                time.sleep(0.001)
        for answer in answers:
            status, _, text = answer.result()
            assert status == 200 and json.loads(text)["choices"][0]["text"] == greedy(model, "hello ", 80)


@pytest.mark.skipif(not shutil.which("curl"), reason="SKIP: there is no curl")
def test_the_program_and_curl(path, model):
    command = [sys.executable, "-m", "tensorwright", "serve", "--generate", f"small={path}", "--slots", "2", "--port", "0", "--no-grpc"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            said = program.stdout.readline()
            assert said.startswith("serving small on http://127.0.0.1:")
            address = said.split()[-1]

            def curl(*arguments):
                return subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout

            assert json.loads(curl(address + "/v1/models"))["data"][0]["id"] == "small"
            body = {"prompt": "hello ", "max_tokens": 8, "temperature": 0}
            assert json.loads(curl(address + "/v1/completions", "-d", json.dumps(body)))["choices"][0]["text"] == greedy(model, "hello ", 8)
            lines = curl("-N", address + "/v1/completions", "-d", json.dumps({**body, "stream": True})).split("\n\n")
            assert lines[-2:] == ["data: [DONE]", ""]
            assert "".join(json.loads(x[6:])["choices"][0]["text"] for x in lines[:-2]) == greedy(model, "hello ", 8)
        finally:
            os.kill(program.pid, signal.SIGTERM)
            assert program.wait(30) == 0
    refused = subprocess.run([*command[:4], "--port", "0"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and "there is nothing to serve" in refused.stderr
