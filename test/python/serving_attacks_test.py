# SPDX-License-Identifier: Apache-2.0
"""What strangers may do to a server: each attack by itself, with what it must not cost others. hostile.py does them all together."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason="SKIP: aiohttp is not installed (tensorwright[serve])")
pytest.importorskip("prometheus_client", reason="SKIP: prometheus_client is not installed (tensorwright[serve])")

from serving import X, affine, ask, binary, infer, served  # noqa: E402
from tensorwright.serve import Limits  # noqa: E402

MIB = 1 << 20
PATH = "/v2/models/scale/infer"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "scale.plan"
    path.write_bytes(affine(2, 1, rows=(1, 4, 400000)))
    return path


def post(length, body=b"", path=PATH, more=""):
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body


@contextlib.contextmanager
def connections(port, count):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(count)]


def rest_of(connection):
    """All that comes until the server ends the connection."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            data += piece
    return data


def right(server):
    status, value = infer(server, "scale", {"inputs": [X]})
    return status == 200 and value["outputs"][0]["data"] == [3, 5, 7, 9, 11]


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_is_promised_counts_nothing(plan):
    """Sixteen clients that promise all of the memory and send a byte of it."""
    with served(plan) as server, connections(server.http, 16) as promises:
        for each in promises:
            each.sendall(post(64 * MIB, b"x", more="Inference-Header-Content-Length: 9\r\n"))
        until(lambda: server.core.held == 16)
        assert right(server)


def test_what_stalls_makes_room_for_others(plan):
    """Clients that have sent nearly all of the memory: the one that has been silent for the longest goes."""
    limits = Limits(request_bytes=MIB, held_bytes=4 * MIB + 4096, stall_seconds=60)
    with served(plan, limits=limits) as server, connections(server.http, 4) as slow:
        for i, each in enumerate(slow):
            each.sendall(post(MIB, b" " * (MIB - 1), more="Inference-Header-Content-Length: 9\r\n"))
            until(lambda: server.core.held == (i + 1) * (MIB - 1))
        x = np.ones((2000, 5), np.float32)
        body, headers = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True})
        assert ask(server, "POST", PATH, body, headers)[0] == 200
        first = rest_of(slow[0])
        assert b" 503 " in first and b"slower than others, which needed its memory" in first
        slow[3].sendall(b" ")  # the others are read on
        assert b" 400 " in slow[3].recv(4096)
        until(lambda: server.core.held == 2 * (MIB - 1))
    assert server.core.held == 0


@pytest.mark.parametrize("sent", [b"", b"POST /v2", post(10)[:-4] + b"\r\nX: "], ids=["nothing", "half a line", "half a header"])
@pytest.mark.parametrize("drip", [False, True])
def test_a_header_has_its_time(plan, sent, drip):
    with served(plan, limits=Limits(stall_seconds=0.8)) as server, connections(server.http, 1) as (slow,):
        start = time.monotonic()
        slow.sendall(sent)
        slow.settimeout(0.1)
        while True:
            try:
                if not slow.recv(100):
                    break
            except TimeoutError:
                assert time.monotonic() - start < 10
                with contextlib.suppress(ConnectionError):
                    slow.sendall(b"G" if drip and sent else b"")
            except ConnectionError:
                break
        assert 0.7 < time.monotonic() - start < 3
        assert right(server)


@pytest.mark.parametrize("drip", [False, True])
def test_a_body_makes_progress(plan, drip):
    with served(plan, limits=Limits(stall_seconds=0.8)) as server, connections(server.http, 1) as (slow,):
        start, end = time.monotonic(), threading.Event()
        slow.sendall(post(2 * MIB, b"{"))

        def send():
            while drip and not end.wait(0.05):
                with contextlib.suppress(OSError):
                    slow.sendall(b" ")

        thread = threading.Thread(target=send)
        thread.start()
        answer = slow.recv(4096)
        end.set()
        thread.join()
        assert b" 408 " in answer and b"did not come in time" in answer and 0.7 < time.monotonic() - start < 3
        until(lambda: server.core.held == 0)
        # One that is slow and goes on has all the time it needs.
        x = np.ones((2000, 5), np.float32)
        body, headers = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True})
        with connections(server.http, 1) as (steady,):
            head = f"Inference-Header-Content-Length: {headers['Inference-Header-Content-Length']}\r\n"
            steady.sendall(post(len(body), more=head))
            for at in range(0, len(body), 4100):
                steady.sendall(body[at : at + 4100])
                time.sleep(0.2)
            assert b" 200 " in steady.recv(4096)


def test_an_answer_is_read(plan):
    """A client that does not read its answers keeps neither memory nor its connection."""
    x = np.ones((400000, 5), np.float32)
    body, headers = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True})
    head = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    with served(plan, limits=Limits(stall_seconds=0.8)) as server, connections(server.http, 1) as (deaf,):
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(post(len(body), body, more=head))
        until(lambda: server.core.held)
        until(lambda: server.core.held == 0 and not len(server.core.connections), 10)
        assert right(server)


def test_large_json_stops_nobody(plan):
    """While JSON at the limit is read and refused, and written, others get their answers."""
    with served(plan) as server:
        assert right(server)
        data = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 5], "data": [' + b"1.25," * 1600000 + b"1]}]}"
        assert infer(server, "scale", data + b" " * MIB)[0] == 413
        rows = np.ones((100000, 5), np.float32)
        body, headers = binary({"x": ("FP32", rows)})
        statuses, ends = [], threading.Event()

        def attack():
            statuses.append(infer(server, "scale", data)[0])
            statuses.append(ask(server, "POST", PATH, body, headers)[0])
            ends.set()

        thread = threading.Thread(target=attack)
        thread.start()
        slowest = 0.0
        while not ends.is_set():
            start = time.monotonic()
            assert ask(server, "GET", "/v2/health/live")[0] == 200
            slowest = max(slowest, time.monotonic() - start)
        thread.join()
        assert statuses == [400, 200] and slowest < 0.5, slowest
        large = binary({"x": ("FP32", np.ones((400000, 5), np.float32))})
        status, _, answer = ask(server, "POST", PATH, *large)
        assert status == 400 and b"has 2000000 elements (limit of numbers in JSON: 1048576)" in answer
        nested = b'{"inputs": ' + b"[" * 1000000 + b"]" * 1000000 + b"}"
        assert infer(server, "scale", nested)[0] == 400 and right(server)
        # The process that reads may end; there is another one then.
        server.core.json._processes[1]._process.kill()
        assert infer(server, "scale", data)[0] in (400, 500) and infer(server, "scale", data)[0] == 400
        until(lambda: server.core.held == 0)


def test_connections_have_a_limit(plan):
    """Beyond it those go that have asked nothing; who has asked stays."""
    with served(plan, limits=Limits(connections=8)) as server:
        with connections(server.http, 1) as (good,):
            good.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " in good.recv(4096)
            with connections(server.http, 40) as flood:
                until(lambda: len(server.core.connections) == 8)
                good.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
                assert b" 200 " in good.recv(4096)
                assert sum(each.fileno() >= 0 for each in flood) == 40
        assert right(server)


def started(plan, *more):
    """(process, HTTP's port, gRPC's) of the program."""
    command = [sys.executable, "-m", "tensorwright", "serve", str(plan), "--port", "0", "--grpc-port", "0", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        raise AssertionError(process.communicate()[1])
    return process, int(line.split("127.0.0.1:")[1].split()[0]), int(line.rpartition(" ")[2])


def test_the_program_ends_at_once_what_has_not_arrived(plan):
    pytest.importorskip("grpc", reason="SKIP: grpcio is not installed (tensorwright[serve])")
    process, http, rpc = started(plan)
    try:
        with connections(http, 4) as halves, connections(rpc, 2) as calls:
            halves[0].sendall(b"POST /v2/mod")
            halves[1].sendall(post(1000, b"{" * 500))
            halves[2].sendall(post(64 * MIB, b"{" * 500, more="Inference-Header-Content-Length: 9\r\n"))
            for each in calls:
                each.sendall(half_a_call())
            time.sleep(0.5)
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert time.monotonic() - start < 5
            assert b"the server is ending" in rest_of(halves[1])
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


# gRPC, frame by frame.


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    return bytes([len(value)]) + value


def headers(path=b"/inference.GRPCInferenceService/ModelInfer", more=()):
    """A block of headers, none of which is indexed."""
    pairs = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"a")]
    pairs += [(b"content-type", b"application/grpc"), (b"te", b"trailers"), *more]
    return b"".join(b"\0" + text(k) + text(v) for k, v in pairs)


BEGIN = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)


def half_a_call(stream=1, length=64 * MIB, sent=b"x" * 1000, first=True):
    """A call whose message is not whole."""
    data = frame(0, 0, stream, b"\0" + struct.pack(">I", length) + sent)
    return (BEGIN if first else b"") + frame(1, 4, stream, headers()) + data


def next_frame(connection):
    """(kind, flags) of a frame of the server's."""

    def exactly(count):
        data = b""
        while len(data) < count:
            piece = connection.recv(count - len(data))
            assert piece
            data += piece
        return data

    head = exactly(9)
    exactly(int.from_bytes(head[:3], "big"))
    return head[3], head[4]


def message(model="scale", x=None, outputs=()):
    """A ModelInferRequest, written by hand."""

    def field(number, value):
        length, prefix = len(value), b""
        while length > 127:
            prefix += bytes([length & 127 | 128])
            length >>= 7
        return bytes([number << 3 | 2]) + prefix + bytes([length]) + value

    x = np.ones((1, 5), np.float32) if x is None else x
    shape = b"".join(bytes([3 << 3, n & 127 | 128, n >> 7 & 127 | 128, n >> 14]) for n in x.shape)
    tensor = field(1, b"x") + field(2, b"FP32") + shape
    named = b"".join(field(6, field(1, name)) for name in outputs)
    return field(1, model.encode()) + field(5, tensor) + named + field(7, x.tobytes())


def called(server, data, compressed=False, timeout=30):
    """(code, details) or the bytes of the answer, of grpc's own client."""
    grpc = pytest.importorskip("grpc", reason="SKIP: grpcio is not installed (tensorwright[serve])")
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc}", options=options) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        try:
            return call(data, timeout=timeout, compression=grpc.Compression.Gzip if compressed else None)
        except grpc.RpcError as error:
            return error.code().name, error.details()


def resident(pid="self"):
    """MiB of a process."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def test_grpc_counts_in_the_same_budget(plan):
    limits = Limits(request_bytes=MIB, held_bytes=4 * MIB, stall_seconds=60)
    with served(plan, limits=limits) as server, connections(server.grpc, 6) as calls:
        assert not isinstance(called(server, message()), tuple)
        for each in calls:  # six megabytes into four
            each.sendall(half_a_call(length=MIB, sent=b""))
            for _ in range(60):
                each.sendall(frame(0, 0, 1, b"x" * 1000))
            time.sleep(0.02)
        until(lambda: server.core.held == 6 * 60005)
        with connections(server.http, 1) as (rest,):
            size = 4 * MIB - 5 * 60005
            assert size > MIB
            rest.sendall(post(MIB, b" " * MIB, more="Inference-Header-Content-Length: 9\r\n"))
            assert b" 400 " in rest.recv(4096)
        assert server.core.held == 6 * 60005
        assert not isinstance(called(server, message()), tuple) and right(server)
    assert server.core.held == 0


def test_grpc_gives_up_what_stalls(plan):
    with served(plan, limits=Limits(stall_seconds=0.8)) as server, connections(server.grpc, 4) as calls:
        begun, nothing, part, both = calls
        begun.sendall(BEGIN[:10])
        part.sendall(BEGIN + frame(1, 4, 1, headers())[:-5])
        both.sendall(half_a_call() + half_a_call(3, first=False))
        until(lambda: server.core.held == 2 * 1005)
        start = time.monotonic()
        assert rest_of(begun) is not None and rest_of(nothing) is not None and rest_of(part) is not None
        assert time.monotonic() - start < 3
        until(lambda: server.core.held == 0, 5)
        data = b""
        both.settimeout(5)
        while data.count(frame(3, 0, 1, struct.pack(">I", 8))) + data.count(frame(3, 0, 3, struct.pack(">I", 8))) < 2:
            data += both.recv(4096)
        # The connection lives on.
        body = message()
        both.sendall(frame(1, 4, 5, headers()) + frame(0, 1, 5, b"\0" + struct.pack(">I", len(body)) + body))
        answer = np.full(5, 3, np.float32).tobytes()
        data = b""
        while answer not in data:
            data += both.recv(4096)
        assert not isinstance(called(server, message()), tuple)


def test_a_stream_waits_for_its_own_answers(plan, monkeypatch):
    """Messages that grpcio does not read yet, as those before wait for the engine, are no client's fault."""
    grpc = pytest.importorskip("grpc", reason="SKIP: grpcio is not installed (tensorwright[serve])")
    from tensorwright.serve import rpc, served as queue

    run = queue._Instance.run
    monkeypatch.setattr(queue._Instance, "run", lambda self, jobs: time.sleep(0.7) or run(self, jobs))
    monkeypatch.setattr(rpc, "_STREAM_DEPTH", 1)
    data = message(x=np.ones((100000, 5), np.float32))
    with served(plan, limits=Limits(stall_seconds=0.4)) as server:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc}", options) as channel:
            stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
            answers = stream(iter([data] * 40), timeout=60)  # more than its windows take
            assert all(len(next(answers)) > 2000000 for _ in range(4))
            assert server.core.held > 4 * MIB
            answers.cancel()
        until(lambda: server.core.held == 0)


def test_grpc_messages_that_grow(plan):
    """Compressed zeros, and fields of two bytes that become messages of a hundred."""
    with served(plan, limits=Limits(request_bytes=20 * MIB)) as server:
        assert not isinstance(called(server, message(), compressed=True), tuple)
        before = resident()
        packed = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS + 16)
        bomb = packed.compress(b"\0" * (60 * MIB)) + packed.flush()
        data = b"\1" + struct.pack(">I", len(bomb)) + bomb
        with connections(server.grpc, 20) as calls:
            for each in calls:
                each.sendall(BEGIN + frame(1, 4, 1, headers(more=[(b"grpc-encoding", b"gzip")])))
                for at in range(0, len(data), 16384):
                    each.sendall(frame(0, at + 16384 >= len(data), 1, data[at : at + 16384]))
            for each in calls:
                while next_frame(each) != (1, 5):  # the status, with which the call ends
                    pass
        code, text_of = called(server, message() + b"\x2a\0" * 4000000)
        assert code == "INVALID_ARGUMENT" and "more than 16384 fields" in text_of
        code, text_of = called(server, message() + b"\x1a\x80\x80\x80\x08" + b"a" * (16 * MIB))
        assert code == "RESOURCE_EXHAUSTED" and "bytes of JSON" in text_of
        assert resident() - before < 400, resident() - before
        assert right(server)
        until(lambda: server.core.held == 0)


def test_grpc_outputs_are_named_once(plan):
    with served(plan) as server:
        for names, said in ([b"y"] * 2, "asked for twice"), ([b"y"] * 4000, "limit: 1024"), ([b"z"], "no output 'z'"):
            code, details = called(server, message(outputs=names))
            assert code == "INVALID_ARGUMENT" and said in details
        status, value = infer(server, "scale", {"inputs": [X], "outputs": [{"name": "y"}, {"name": "y"}]})
        assert status == 400 and value["error"] == "output 'y' is asked for twice"


def test_grpc_answers_are_read(plan):
    """Clients that give no window for their answers hold memory that counts, and are reset."""
    x = np.ones((3000, 5), np.float32)
    body = message(x=x)
    with served(plan, limits=Limits(stall_seconds=0.4)) as server, connections(server.grpc, 2) as calls:
        for each in calls:
            settings = struct.pack(">HI", 4, 0)  # SETTINGS_INITIAL_WINDOW_SIZE: 0
            each.sendall(BEGIN[:24] + frame(4, 0, 0, settings) + frame(1, 4, 1, headers()))
            data = b"\0" + struct.pack(">I", len(body)) + body
            time.sleep(0.2)
            for at in range(0, len(data), 16384):
                each.sendall(frame(0, at + 16384 >= len(data), 1, data[at : at + 16384]))
        until(lambda: server.core.held > len(calls) * x.nbytes)
        until(lambda: server.core.held == 0, 15)
        assert not isinstance(called(server, message()), tuple)


def test_grpc_calls_begin_by_and_by(plan):
    """Hundreds of calls without a message, and hundreds that are reset, are before nobody else's; what waits is begun, and ended."""
    with served(plan) as server:
        assert not isinstance(called(server, message()), tuple)
        with connections(server.grpc, 6) as calls:
            for each in calls[:5]:
                each.sendall(BEGIN + b"".join(frame(1, 4, 2 * i + 1, headers()) for i in range(60)))
            reset = [frame(1, 4, 2 * i + 1, headers()) + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)) for i in range(200)]
            calls[5].sendall(BEGIN + b"".join(reset))
            wire, begin = server.core.connections, time.monotonic()
            assert not isinstance(called(server, message()), tuple) and time.monotonic() - begin < 2
            known = lambda: sum(len(each.streams) for each in list(wire._open))  # noqa: E731
            until(lambda: known() == 5 * 60)
            body = message()
            calls[0].sendall(frame(0, 1, 119, b"\0" + struct.pack(">I", len(body)) + body))  # the last one's message
            data, answer = b"", np.full(5, 3, np.float32).tobytes()
            while answer not in data:
                data += calls[0].recv(4096)
        until(lambda: len(wire) == 0)
        assert not isinstance(called(server, message()), tuple)


def test_grpc_streams_of_the_server(plan):
    """A client that begins streams with the server's numbers, which grpcio would pass over, is gone."""
    with served(plan) as server, connections(server.grpc, 1) as (wrong,):
        wrong.sendall(BEGIN + frame(1, 4, 2, headers()))
        rest_of(wrong)
        assert not isinstance(called(server, message()), tuple)


def test_large_bodies_in_pieces(plan):
    """Beyond the size from which on a body lies in pages of its own, plain and compressed, over both protocols."""
    x = np.random.default_rng(1).standard_normal((200000, 5)).astype(np.float32)
    body, headers_of = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True})
    with served(plan) as server:
        packed = zlib.compress(body, 1)
        for data, more in ((body, {}), (packed, {"Content-Encoding": "deflate"})):
            status, found, answer = ask(server, "POST", PATH, data, {**headers_of, **more})
            y = np.frombuffer(answer[int(found["Inference-Header-Content-Length"]) :], np.float32)
            assert status == 200 and np.array_equal(y, (2 * x + 1).reshape(-1))
        for compressed in (False, True):
            answer = called(server, message(x=x), compressed)
            assert np.array_equal(np.frombuffer(answer[-x.nbytes :], np.float32), (2 * x + 1).reshape(-1))
        until(lambda: server.core.held == 0)


def test_shapes_beyond_all_arrays(plan):
    with served(plan) as server:
        most = 2**31 - 1
        for shape in ([0, most, most, most], [most] * 3, [most, most, 0], [2**20] * 4):
            status, value = infer(server, "scale", {"inputs": [{**X, "shape": shape}]})
            assert status == 400 and value["error"].startswith("input 'x': no array can have the shape"), value
            for parameters in ({"binary_data_size": 0}, {"shared_memory_region": "r"}):
                status, value = infer(server, "scale", {"inputs": [{**X, "shape": shape, "parameters": parameters}]})
                assert status == 400 and value["error"].startswith("input 'x': no array can have the shape"), value
        status, value = infer(server, "scale", {"inputs": [{**X, "shape": [0, most, 2**20]}]})
        assert status == 400 and "input 'x'" in value["error"]


def test_json_that_would_be_wide(plan):
    """NumPy would give each of these elements as many bytes as the longest text has."""
    with served(plan) as server:
        before = resident()
        data = json.dumps({"inputs": [{**X, "data": ["a" * 4000000] + ["b"] * 500000}]}).encode()
        assert infer(server, "scale", data)[0] == 400 and resident() - before < 200


def test_all_of_them_beside_good_clients():
    """hostile.py for some seconds: no good client fails, the server stays within its limits and ends at once."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", script, "--seconds", "6", "--at-once"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(run.stdout)
    assert sum(result["attacks"].values()) > 10 and result["beside"]["answered"] > 5  # how many a busy machine allows
    if "TW_REPORT_DIR" in os.environ:
        beside, alone = result["beside"], result["alone"]
        text = f"beside {len(result['attacks'])} attacks, at {result['rate']} requests/s: median {beside['median_ms']} ms, p99 {beside['p99_ms']} ms"
        text += f" (alone {alone['median_ms']} and {alone['p99_ms']}; load average {result['load_average'][0]:.1f})\n"
        with open(os.path.join(os.environ["TW_REPORT_DIR"], "serving_hostile.txt"), "w", encoding="utf-8") as file:
            file.write(text)


def test_turns():
    """Large work moves one piece a round of the loop, pauses where others ask, and a turn whose client has gone is nobody's."""
    from tensorwright.serve.turns import Turns

    async def run():
        turns, rounds, seen = Turns(), 0, []

        async def count():
            nonlocal rounds
            while len(seen) < 30:
                rounds += 1
                await asyncio.sleep(0)

        async def large(name):
            for _ in range(10):
                await turns.next()
                seen.append((rounds, name))

        gone = turns.next()
        gone.cancel()
        await asyncio.gather(count(), *(large(name) for name in "abc"))
        assert len({at for at, _ in seen}) == 30  # never two in one round
        assert [name for _, name in seen[:6]] == list("abcabc")

        async def seconds(asked):
            begin = time.monotonic()
            for _ in range(10):
                if asked:
                    turns.asked()
                await turns.next()
                turns.spent(time.monotonic() - 0.001)
            return time.monotonic() - begin

        assert await seconds(False) < await seconds(True) > 0.03  # ten pieces of a millisecond, of which four are owed for each

    asyncio.run(run())


def test_requests_ahead_of_answers(plan):
    """Who sends hundreds of requests at once gets their answers one after the other, in their order, and others do not wait behind them."""
    with served(plan) as server, connections(server.http, 1) as (many,):
        body = json.dumps({"inputs": [X]}).encode()
        many.sendall(post(len(body), body) * 50)
        begin = time.monotonic()
        assert right(server)
        alone = time.monotonic() - begin
        many.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answers = rest_of(many)
        assert answers.count(b"HTTP/1.1 200") == 51 and alone < (time.monotonic() - begin) / 2


def test_time_held_back_is_not_the_clients(monkeypatch):
    """Where the server reads no more for a while, that while alone is no stall: a call that stalls does so beside others that move."""
    pytest.importorskip("grpc", reason="SKIP: grpcio is not installed (tensorwright[serve])")
    from types import SimpleNamespace

    from tensorwright.serve import budget, wire

    now = 0.0
    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=lambda: now))
    core = SimpleNamespace(budget=budget.Budget(MIB), connections=None)
    client = wire._Client(SimpleNamespace(core=core))
    client.transport = SimpleNamespace(pause_reading=lambda: None, resume_reading=lambda: None)
    stalled = client.streams[1] = wire._Stream()
    stalled.arrival = budget.Arrival(core.budget, None)
    stalled.arrival.heard = 0.0
    for begin in range(1, 6):
        for now, reason, held in ((begin, "turns", True), (begin + 0.1, "calls", True), (begin + 0.2, "turns", False)):
            client.hold_back(reason, held)
        now = begin + 0.3
        client.hold_back("calls", False)
        client.hold_back("calls", False)
    assert stalled.arrival.heard == pytest.approx(5 * 0.3)
