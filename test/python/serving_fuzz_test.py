# SPDX-License-Identifier: Apache-2.0
"""The server's parsers on requests that are changed at random: TW_SEED chooses them, TW_COUNT says how many."""

import json
import os
import random
import socket
import threading
import time

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason="SKIP: aiohttp is not installed (tensorwright[serve])")
pytest.importorskip("prometheus_client", reason="SKIP: prometheus_client is not installed (tensorwright[serve])")

from serving import X, affine, ask, binary, infer, served  # noqa: E402
from tensorwright.serve import Limits, Options, rest  # noqa: E402
from tensorwright.serve.tensors import RequestError  # noqa: E402

SEED, COUNT = int(os.environ.get("TW_SEED", 1)), int(os.environ.get("TW_COUNT", 3000))
PIECES = [b"", b"\0", b'"', b"[", b"{", b"-", b"1e999", b"\xff", b"null", b"9" * 20]
STRANGE = [None, True, -1, 0, 1.5, 2**31, 2**63, 10**30, "", "x", "FP32", "\ud800", [], [[]], {}, {"a": 1}, float("nan"), [1] * 20]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "scale.plan"
    path.write_bytes(affine(2, 1))
    with served(path, shared_memory=True) as server:
        yield server


def mutated(random, body):
    """A request with a few of its bytes, or of its values, changed."""
    if random.random() < 0.5:
        body = bytearray(body)
        for _ in range(random.randint(1, 6)):
            at = random.randrange(len(body) + 1)
            body[at : at + random.randint(0, 4)] = random.choice(PIECES)
        return bytes(body)
    def changed(value):
        if random.random() < 0.12:
            return random.choice(STRANGE)
        if isinstance(value, dict):
            return {k: changed(v) for k, v in value.items() if random.random() > 0.05}
        if isinstance(value, list):
            return [changed(v) for v in value]
        return value

    return json.dumps(changed(json.loads(body))).encode()


def test_fuzz_of_the_parser(server):
    """Whatever comes is a request or a sentence of what is wrong with it."""
    rng, core, taken = random.Random(SEED), server.core, 0
    whole = {"id": "q", "parameters": {"timeout": 5, "binary_data_output": True}}
    whole["outputs"] = [{"name": "y", "parameters": {"binary_data": True}}]
    region = {**X, "parameters": {"shared_memory_region": "r", "shared_memory_offset": 3, "shared_memory_byte_size": 20}}
    sized = {**X, "parameters": {"binary_data_size": 20}}
    seeds = [json.dumps({**whole, "inputs": inputs}).encode() for inputs in ([X], [region], [sized], [X, sized])]
    for i in range(COUNT):
        body = mutated(rng, rng.choice(seeds))
        rest_bytes = memoryview(rng.randbytes(rng.choice([0, 19, 20, 21])))
        try:
            request, _ = rest.parse(core, body, rest_bytes)
            taken += 1
            if i % 10 == 0:
                core.repository.get("scale")._checked(request.arrays)
        except RequestError as error:
            assert 400 <= error.status < 504 and len(str(error)) < 500
        except Exception as error:
            raise AssertionError(f"TW_SEED={SEED}: request {i} {body!r} {bytes(rest_bytes)!r}: {error!r}") from error
    assert 20 < taken < COUNT - 20


def test_fuzz_of_the_port(server):
    """Bytes that are no HTTP, and HTTP that is none of ours, leave the server as it was."""
    rng = random.Random(SEED)
    body, headers = binary({"x": ("FP32", np.ones((1, 5), np.float32))})
    length = headers["Inference-Header-Content-Length"]
    text = "POST /v2/models/scale/infer HTTP/1.1\r\nHost: a\r\n"
    text += f"Inference-Header-Content-Length: {length}\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(150):
        data = bytearray(text.encode() + body)
        for _ in range(rng.randint(0, 5)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 4))
        with socket.create_connection(("127.0.0.1", server.http), timeout=5) as port:
            try:
                port.sendall(data)
                port.shutdown(socket.SHUT_WR)
                assert b" 500 " not in port.recv(200)
            except OSError:
                pass
    status, value = infer(server, "scale", {"inputs": [X]})
    assert status == 200 and value["outputs"][0]["data"] == [3, 5, 7, 9, 11]
    assert server.core.held == 0


def grpc_seeds(rpc):
    """{method: messages that its call takes}."""
    from google.protobuf import json_format, message_factory

    whole = {"model_name": "scale", "id": "q", "parameters": {"timeout": {"int64_param": 5}}, "outputs": [{"name": "y"}]}
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 5]}
    region = {"shared_memory_region": {"string_param": "r"}, "shared_memory_byte_size": {"int64_param": 20}}
    inputs = [{**tensor, "contents": {"fp32_contents": [1, 2, 3, 4, 5]}}, {**tensor, "parameters": region}]
    raw = {**whole, "inputs": [tensor], "raw_input_contents": ["AACAPwAAgD8AAIA/AACAPwAAgD8="]}
    infer_seeds = [{**whole, "inputs": [each]} for each in inputs] + [raw]
    named, result = {"name": "scale", "version": "1"}, {}
    for method in rpc._service().methods:
        kind, seeds = message_factory.GetMessageClass(method.input_type), [{}]
        if "Infer" in method.name:
            seeds = infer_seeds
        elif "SharedMemory" in method.name:
            seeds = [{"name": "r", "key": "/nobody", "offset": 3, "byte_size": 20}]
        elif "name" in kind.DESCRIPTOR.fields_by_name:
            seeds = [named]
        result[method.name] = [
            json_format.ParseDict(seed, kind(), ignore_unknown_fields=True).SerializeToString() for seed in seeds
        ]
    return kind.DESCRIPTOR.file.services_by_name["GRPCInferenceService"].full_name, result


def test_fuzz_of_messages(server):
    """Messages that are none, or say what no client would: an answer or a status of the client's fault."""
    grpc = pytest.importorskip("grpc", reason="SKIP: grpcio is not installed (tensorwright[serve])")
    from tensorwright.serve import rpc

    rng = random.Random(SEED)
    service, seeds = grpc_seeds(rpc)
    faults = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}
    answered = refused = 0
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc}") as channel:
        calls = {name: channel.unary_unary(f"/{service}/{name}") for name in seeds if "Stream" not in name}
        stream = channel.stream_stream(f"/{service}/ModelStreamInfer")
        for i in range(COUNT // 4):
            name = rng.choice(["ModelInfer"] * 5 + sorted(seeds))
            data = bytearray(rng.choice(seeds[name]))
            for _ in range(rng.randint(0, 4)):
                at = rng.randrange(len(data) + 1)
                data[at : at + rng.randint(0, 3)] = rng.choice([rng.randbytes(rng.randint(0, 3)), b"\xff" * 10, b""])
            try:
                if name in calls:
                    calls[name](bytes(data), timeout=30)
                else:
                    assert len(list(stream(iter([bytes(data)] * 3), timeout=30))) == 3
                answered += 1
            except grpc.RpcError as error:
                refused += 1
                assert error.code() not in faults, f"TW_SEED={SEED}: message {i} of {name} {bytes(data)!r}: {error}"
    assert answered > COUNT // 100 and refused > COUNT // 100
    status, value = infer(server, "scale", {"inputs": [X]})
    assert status == 200 and value["outputs"][0]["data"] == [3, 5, 7, 9, 11]
    deadline = time.monotonic() + 20
    while server.core.held:
        assert time.monotonic() < deadline, server.core.held
        time.sleep(0.01)


def test_clients_at_random(tmp_path):
    """Threads that send right, wrong and unfinished requests of any size, while plans change: every answer is right, nothing stays held."""
    (tmp_path / "a.plan").write_bytes(affine(2, 1))
    (tmp_path / "b.plan").write_bytes(affine(3, -1, rows=(1, 2, 5)))
    limits, failures, done = Limits(request_bytes=1 << 16), [], threading.Event()
    counts = {}

    def client(seed):
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        while not done.is_set():
            name = rng.choice(["a", "a", "b", "none"])
            rows = rng.choice([1, 2, 3, 5, 6, 16, 17, 2000])
            x = numbers.standard_normal((rows, 5)).astype(np.float32)
            body, headers = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True, "timeout": rng.choice([0, 0, 500])})
            if rng.random() < 0.1:  # one that goes before its answer, or before its end
                with socket.create_connection(("127.0.0.1", server.http)) as port:
                    length = headers["Inference-Header-Content-Length"]
                    head = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: {length}\r\n"
                    port.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[: rng.randrange(len(body) + 1)])
                continue
            status, headers, data = ask(server, "POST", f"/v2/models/{name}/infer", body, headers)
            counts[status] = counts.get(status, 0) + 1
            right = {200, 503, 504} if rows <= (16 if name == "a" else 5) else {400, 503}
            right = {404} if name == "none" else right | {413} if rows == 2000 else right
            if status not in right:
                failures.append((name, rows, status, data[:200]))
            if status == 200:
                y = np.frombuffer(data[int(headers["Inference-Header-Content-Length"]) :], np.float32).reshape(x.shape)
                if not any(np.allclose(y, s * x + t, atol=1e-5) for s, t in ((2, 1), (3, -1))):
                    failures.append((name, rows, "wrong numbers"))

    options = Options(batch=4, batch_delay=0.001, instances=2, queue=3)
    with served(tmp_path, options=options, limits=limits, poll=0.05) as server:
        threads = [threading.Thread(target=client, args=(SEED + i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for i in range(6):
            time.sleep(0.4)
            (tmp_path / "next").write_bytes(affine(*((3, -1) if i % 2 else (2, 1))))
            os.replace(tmp_path / "next", tmp_path / "a.plan")
        done.set()
        for thread in threads:
            thread.join()
        assert not failures, failures[:5]
        assert counts.get(200, 0) > 20 and counts.get(404) and counts.get(400), counts
        deadline = time.monotonic() + 20
        while server.core.held or any(s.waiting() for _, _, s, _ in server.core.repository.all()):
            assert time.monotonic() < deadline, server.core.held
            time.sleep(0.02)
