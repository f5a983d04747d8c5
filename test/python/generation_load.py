#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: PYTHONPATH=build/release/python .venv/bin/python test/python/generation_load.py [--seconds 600] [--clients 24] [--seed 1]

`tensorwright serve --generate` with a decoder, one of an encoder's states and more clients than slots, each of which does at random what clients do: asks and
reads, in one piece or as it comes; leaves in the middle, before the answer or without a word; sends half a request, nonsense, or more than is allowed. Answers are known
beforehand. Fails when one is wrong, when a refusal has not the status that it should have, when the server ends, when slots are not given back, or when
its memory grows (the medians of the middle and the last third of the time).
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

for module in ("aiohttp", "prometheus_client", "onnxruntime", "tokenizers"):
    try:
        __import__(module)
    except ImportError:
        print(f"SKIP: {module} is not installed")
        sys.exit(0)

import numpy as np  # noqa: E402

import seq2seq_models as models  # noqa: E402
from tiny_decoders import CHARACTERS, Decoder, folder, tokenizer  # noqa: E402

GROWTH, MOST = 32, 40  # MiB; tokens of an answer


def known_answers(path):
    """Folders of both models, and {name: [(prompt, tokens of the best answer)]}."""
    rng, answers = np.random.default_rng(5), {"decoder": [], "t5": []}
    model = Decoder("llama", seed=3)
    folder(path / "decoder", model, tokenizer=None)
    common = [int(t) for t in rng.integers(0, 40, 30)]
    for i in range(24):
        prompt = (common[: int(rng.integers(1, 31))] if i % 3 == 0 else []) + [int(t) for t in rng.integers(0, 40, rng.integers(1, 40))]
        prompt = prompt[: 95 - MOST]
        answers["decoder"].append((prompt, model.greedy(prompt, MOST)))
    models.write(path / "t5", "t5")
    (path / "t5" / "tokenizer.json").write_text(tokenizer(CHARACTERS))
    reference = models.Reference("t5")
    for _ in range(8):
        prompt = [int(t) for t in rng.integers(4, 39, rng.integers(1, 60))]
        answers["t5"].append((prompt, reference.greedy(prompt, MOST)))
    return answers


class Client(threading.Thread):
    def __init__(self, number, port, answers, until, seed):
        super().__init__(daemon=True)
        self.random, self.port, self.answers, self.until = random.Random(f"{seed} {number}"), port, answers, until
        self.done, self.failure = collections.Counter(), None

    def run(self):
        ways = [self.ask] * 6 + [self.read] * 6 + [self.leave] * 4 + [self.abandon, self.half, self.refused, self.several]
        while time.monotonic() < self.until and not self.failure:
            way = self.random.choice(ways)
            try:
                way()
                self.done[way.__name__] += 1
            except OSError as error:  # the server cannot be reached
                self.failure = f"{way.__name__}: {error!r}"
            except AssertionError as error:
                self.failure = f"{way.__name__}: {error}"

    def request(self, **more):
        """(bytes of JSON, the tokens that are right)."""
        name = self.random.choice(list(self.answers))
        prompt, answer = self.random.choice(self.answers[name])
        count = self.random.randint(1, MOST)
        value = {"model": name, "prompt": prompt, "max_tokens": count, "temperature": 0, "return_token_ids": True, **more}
        return json.dumps(value).encode(), answer[:count]

    def opened(self, body, length=None):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: %d\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % (self.random.randint(0, 5), len(body) if length is None else length) + body)
        return connection

    def answered(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/completions", body)
            response = connection.getresponse()
            return response.status, response.read()

    def ask(self):
        body, wanted = self.request()
        status, data = self.answered(body)
        if status != 429:
            assert status == 200, data[:300]
            got = json.loads(data)["choices"][0]["token_ids"]
            assert got == wanted, f"{got} for {wanted} of {body}"

    def read(self):
        body, wanted = self.request(stream=True)
        status, data = self.answered(body)
        if status != 429:
            events = [json.loads(line[6:]) for line in data.decode().split("\n\n") if line.startswith("data: {")]
            got = [t for e in events for c in e["choices"] for t in c.get("token_ids") or []]
            assert status == 200 and got == wanted, f"{got} for {wanted} of {body}"

    def several(self):
        """Draws, of which nothing is known but how many there are."""
        body, _ = self.request(temperature=1.0, n=self.random.randint(2, 6))
        status, data = self.answered(body)
        assert status in (200, 429), data[:300]

    def leave(self):
        """In the middle of an answer, or before it."""
        body, _ = self.request(stream=self.random.random() < 0.7, n=self.random.randint(1, 4))
        with self.opened(body) as connection:
            time.sleep(self.random.random() * 0.05)
            if self.random.random() < 0.5:
                connection.recv(self.random.randint(1, 4000))

    def abandon(self):
        """Without a word, by a reset."""
        body, _ = self.request(stream=True)
        with self.opened(body) as connection:
            connection.recv(100)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def half(self):
        body, _ = self.request()
        with self.opened(body[: self.random.randint(0, len(body) - 1)], len(body)):
            time.sleep(self.random.random() * 0.02)

    def refused(self):
        body = self.random.choice([
            b"", b"{", b"[]", b"\xff" * 100, b'{"model": "none", "prompt": "x"}', b'{"model": "decoder"}', b'{"model": "decoder", "prompt": [40]}', b'{"model": "t5", "prompt": [-1]}',
            b'{"model": "decoder", "prompt": [1], "max_tokens": 0}', b'{"model": "decoder", "prompt": [1], "top_p": 0}', b'{"model": "t5", "prompt": "abc", "temperature": -1}',
            b'{"model": "decoder", "prompt": [1], "max_tokens": 1000000}', b'{"model": "t5", "prompt": "%s"}' % (b"x" * 1000), b"[" * 10000])
        status, data = self.answered(body)
        assert status in (400, 404, 429), (body[:100], status)
        assert json.loads(data)["error"]["message"]


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def open_sequences(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tensorwright_open_sequences{"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place)
        answers = known_answers(path)
        command = [sys.executable, "-m", "tensorwright", "serve", "--slots", "8", "--queue", "12", "--port", "0", "--no-grpc"]
        command += [a for name in answers for a in ("--generate", f"{name}={path / name}")]
        environment = {**os.environ, "TENSORWRIGHT_CACHE_DIR": str(path / "plans"), "TENSORWRIGHT_NUM_THREADS": "1"}
        with open(path / "log", "wb") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as server:
            try:
                failures = load(server, answers, options)
            finally:
                server.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.wait(30)
                if server.poll() is None:
                    server.kill()
                    failures = ["the server did not end"]
        if server.returncode:
            failures.append(f"the server ended with {server.returncode}")
        if failures:
            print("\n".join(failures), (path / "log").read_text(errors="replace")[-3000:], sep="\n")
        sys.exit(bool(failures))


def load(server, answers, options):
    said = server.stdout.readline()
    if "http://127.0.0.1:" not in said:
        return [f"the server did not start: {said}"]
    port, samples = int(said.split()[-1].rpartition(":")[2]), []
    begin = time.monotonic()
    clients = [Client(i, port, answers, begin + options.seconds, options.seed) for i in range(options.clients)]
    for client in clients:
        client.start()
    while any(c.is_alive() for c in clients) and server.poll() is None:
        samples.append(resident(server.pid))
        time.sleep(0.5)
    failures = [c.failure for c in clients if c.failure]
    done = sum((c.done for c in clients), collections.Counter())
    if server.poll() is not None:
        return [*failures, "the server ended"]
    deadline = time.monotonic() + 30
    while left := open_sequences(port):
        if time.monotonic() > deadline:
            failures.append(f"{left:.0f} sequences are open, and nobody waits for them")
            break
        time.sleep(0.1)
    third = len(samples) // 3
    middle, last = (statistics.median(samples[a:b] or [0]) for a, b in ((third, 2 * third), (2 * third, None)))
    print(json.dumps({"seconds": options.seconds, "clients": options.clients, "done": done, "MiB": {"first": samples[0], "middle": middle, "last": last, "most": max(samples)}}))
    if options.seconds >= 60 and last - middle > GROWTH:
        failures.append(f"memory grew from {middle:.0f} to {last:.0f} MiB")
    if min(done.values(), default=0) < 1 or len(done) < 7:
        failures.append(f"not everything was done: {dict(done)}")
    return failures


if __name__ == "__main__":
    main()
