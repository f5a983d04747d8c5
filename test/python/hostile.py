#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: PYTHONPATH=build/release/python .venv/bin/python test/python/hostile.py [--seconds 600] [--seed 1] [--judge] [--json FILE] [--only ATTACK,...]
       [--at-once]

`tensorwright serve` between a client that misbehaves in all the ways below, one after the other, and clients that do not: a process asks
right questions at half of what the server can answer, first alone, then beside the process that misbehaves. --at-once: each of the ways that
mostly wait has a client of its own, ten in all. Everything goes to 127.0.0.1, in amounts that are bounded, and ends by itself. Strangers have cores of their own: the process of those that misbehave runs in SCHED_IDLE, where
what it computes takes nothing from the server and the good clients; with --nice it has their class, at nice 19.

Fails when the server ends or answers wrongly, when its memory grows (the medians of the middle and the last third of the time), when it
takes more than its limits say, or when it does not end at once at the end. With --judge also when the 99th percentile of the good
clients' latency is beyond three times the median that they have alone: that needs two cores that nobody else uses (the load average is in the result).
"""

import argparse
import contextlib
import http.client
import importlib.util
import json
import os
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
import zlib

import numpy as np

MIB = 1 << 20
HELD, REQUEST, BEYOND, GROWTH, TAIL = 256, 64, 400, 48, 3.0  # MiB, MiB, MiB beyond what is held, MiB, medians
LENGTH = "Inference-Header-Content-Length"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INFER = b"/inference.GRPCInferenceService/ModelInfer"


def frame(kind, flags, stream, payload=b""):
    """Of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def call_headers(more=()):
    pairs = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", INFER), (b":authority", b"a")]
    pairs += [(b"content-type", b"application/grpc"), (b"te", b"trailers"), *more]
    return b"".join(b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in pairs)


def proto(number, value):
    """A field of bytes."""
    size, prefix = len(value), b""
    while size > 127:
        prefix += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + prefix + bytes([size]) + value


def question(model, x, more=b""):
    """A ModelInferRequest."""
    shape = b""
    for n in x.shape:
        shape += bytes([3 << 3]) + (bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7]))
    return proto(1, model.encode()) + proto(5, proto(1, b"x") + proto(2, b"FP32") + shape) + more + proto(7, x.tobytes())


def rest(x):
    """(body, headers) with the tensor behind the JSON."""
    tensor = {"name": "x", "datatype": "FP32", "shape": list(x.shape), "parameters": {"binary_data_size": x.nbytes}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return text + x.tobytes(), {LENGTH: str(len(text))}


def packed(value, count):
    """A number of MiB of equal bytes by zlib, made in pieces."""
    work, piece = zlib.compressobj(1), value * MIB
    return b"".join(work.compress(piece) for _ in range(count)) + work.flush()


class Attacks:
    """Each method is one way to misbehave, for some seconds at most. What is sent is made once, so that the attack costs the server more
    than the attacker, who has the core of the good clients."""

    NUMBERS = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 5], "data": [' + b"1.25," * 800000 + b"1]}]}"
    ZEROS = SPACES = b""

    def __init__(self, ports, seed, end):
        self.http, self.grpc, self.random, self.end = *ports, random.Random(seed), end
        self.one = np.ones((1, 5), np.float32)

    @staticmethod
    def names():
        return [name[3:] for name in dir(Attacks) if name.startswith("do_")]

    def connect(self, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=5)
        return connection

    @contextlib.contextmanager
    def many(self, port, count):
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.connect(port)) for _ in range(count)]

    def wait(self, seconds):
        self.end.wait(seconds)

    def head(self, length, more="", path="/v2/models/scale/infer"):
        return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{more}\r\n".encode()

    def post(self, body, headers=None, model="scale"):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
        try:
            connection.request("POST", f"/v2/models/{model}/infer", body, headers or {})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def refused(self, body, headers=None, statuses=(400, 413, 415, 503)):
        status = self.post(body, headers)
        if status not in statuses:
            raise AssertionError(f"status {status}")

    # Over HTTP.

    def do_promises(self):
        with self.many(self.http, 16) as all_of:
            for each in all_of:
                each.sendall(self.head(REQUEST * MIB, f"{LENGTH}: 9\r\n") + b"x")
            self.wait(12)

    def do_half_bodies(self):
        with self.many(self.http, 8) as all_of:
            for each in all_of:
                each.sendall(self.head(40 * MIB, f"{LENGTH}: 9\r\n") + b" " * (4 * MIB))
            self.wait(3)

    def do_half_headers(self):
        with self.many(self.http, 8) as all_of:
            for each in all_of:
                each.sendall(self.head(10)[: self.random.randrange(30)])
            self.wait(11)

    def do_drips(self):
        with self.many(self.http, 4) as (a, b, c, d):
            b.sendall(self.head(1000))
            c.sendall(self.head(MIB, "Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 1048576\r\n", b""))
            for _ in range(40):
                a.sendall(b"G")
                b.sendall(b" ")
                c.sendall(b"1\r\n \r\n" * 50)
                d.sendall(b"\r\n")
                self.wait(0.3)

    def do_silence(self):
        with self.many(self.http, 20), self.many(self.grpc, 20):
            self.wait(5)

    def do_flood(self):
        for _ in range(60):
            self.connect(self.random.choice([self.http, self.grpc])).close()
            self.wait(0.02)

    def do_crowd(self):
        with self.many(self.http, 100), self.many(self.grpc, 60):
            self.wait(2)

    def do_outputs_again_and_again(self):
        x = {"name": "x", "datatype": "FP32", "shape": [1, 5], "data": [1, 2, 3, 4, 5]}
        for count in (2, 1000, 4000):
            self.refused(json.dumps({"inputs": [x], "outputs": [{"name": "y"}] * count}).encode())

    def do_large_json(self):
        self.refused(self.NUMBERS)

    def do_larger_json(self):
        with contextlib.suppress(ConnectionError):
            self.refused(self.NUMBERS * 10)

    def do_deep_json(self):
        for depth in (1000, 1000000):
            self.refused(b'{"inputs": ' + b"[" * depth + b"]" * depth + b"}")
        self.refused(
            json.dumps(
                {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 5], "data": ["a" * MIB] + ["b"] * 100000}]}
            ).encode()
        )

    def do_shapes(self):
        most = 2**31 - 1
        for shape in ([0, most, most, most], [most] * 8, [1] * 9, [-1, 5], [2**40], ["5"], None, {}):
            x = {"name": "x", "datatype": "FP32", "shape": shape, "data": []}
            self.refused(json.dumps({"inputs": [x]}).encode())

    def do_packed_zeros(self):
        self.refused(self.SPACES, {"Content-Encoding": "deflate", LENGTH: "9"})
        self.refused(self.SPACES[:1000], {"Content-Encoding": "gzip"})

    def do_deaf(self):
        body, headers = rest(np.ones((200000, 5), np.float32))
        with self.many(self.http, 4) as all_of:
            for each in all_of:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                each.sendall(self.head(len(body), f"{LENGTH}: {headers[LENGTH]}\r\n") + body)
            self.wait(11)

    def do_pipelines(self):
        body, headers = rest(self.one)
        one = self.head(len(body), f"{LENGTH}: {headers[LENGTH]}\r\n") + body
        with self.many(self.http, 2) as all_of:
            for each in all_of:
                each.settimeout(1)
                with contextlib.suppress(OSError):
                    each.sendall(one * 200)
            self.wait(3)

    def do_noise(self):
        for port in (self.http, self.grpc):
            with self.connect(port) as connection:
                connection.sendall(
                    (PREFACE if port == self.grpc and self.random.random() < 0.5 else b"") + self.random.randbytes(3000)
                )
                connection.settimeout(0.2)
                connection.recv(100)

    def do_leaving(self):
        body, headers = rest(np.ones((20000, 5), np.float32))
        whole = self.head(len(body), f"{LENGTH}: {headers[LENGTH]}\r\n") + body
        for _ in range(5):
            connection = self.connect(self.http)
            connection.sendall(whole[: self.random.randrange(len(whole) + 1)])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    def do_lies(self):
        body, _ = rest(self.one)
        for length in ("-1", "9" * 30, "5", "x", str(len(body) + 1)):
            self.refused(body, {LENGTH: length})
        with self.connect(self.http) as connection:
            connection.sendall(b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n")
            connection.recv(100)

    # Over gRPC.

    def do_half_messages(self):
        with self.many(self.grpc, 8) as all_of:
            for each in all_of:
                each.sendall(PREFACE + frame(4, 0, 0))
                for stream in range(1, 41, 2):
                    part = b"\0" + struct.pack(">I", REQUEST * MIB) + b"x" * 2000
                    each.sendall(frame(1, 4, stream, call_headers()) + frame(0, 0, stream, part))
            self.wait(12)

    def do_calls_without_message(self):
        with self.many(self.grpc, 8) as all_of:
            for each in all_of:
                each.sendall(PREFACE + frame(4, 0, 0) + b"".join(frame(1, 4, 2 * i + 1, call_headers()) for i in range(90)))
            self.wait(3)

    def do_resets(self):
        with self.connect(self.grpc) as connection:
            connection.sendall(PREFACE + frame(4, 0, 0))
            for i in range(200):
                connection.sendall(frame(1, 4, 2 * i + 1, call_headers()) + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)))
            self.wait(0.5)

    def ask_by_hand(self, data, more=(), settings=b"", flag=b"\0", wait=0.5):
        with self.connect(self.grpc) as connection:
            data = flag + struct.pack(">I", len(data)) + data
            connection.sendall(PREFACE + frame(4, 0, 0, settings) + frame(1, 4, 1, call_headers(more)))
            for at in range(0, len(data), 16384):
                connection.sendall(frame(0, at + 16384 >= len(data), 1, data[at : at + 16384]))
                if at > 32768:
                    self.wait(0.02)
            self.wait(wait)

    def do_packed_messages(self):
        self.ask_by_hand(self.ZEROS, [(b"grpc-encoding", b"deflate")], flag=b"\1")

    def do_messages_that_grow(self):
        self.ask_by_hand(question("scale", self.one) + b"\x2a\0" * 25000)
        self.ask_by_hand(question("scale", self.one, proto(6, proto(1, b"y")) * 2000))

    def do_closed_windows(self):
        for _ in range(4):
            self.ask_by_hand(question("scale", np.ones((3000, 5), np.float32)), settings=struct.pack(">HI", 4, 0), wait=1)


# What mostly waits: with --at-once each of these has a thread of its own. The others take turns.
WAITING = {
    "promises",
    "half_headers",
    "drips",
    "silence",
    "deaf",
    "half_messages",
    "calls_without_message",
    "crowd",
    "closed_windows",
}


def attack(ports, seed, seconds, names, options):
    """All of them; prints how often each was done."""
    end, counts, failures = threading.Event(), dict.fromkeys(names, 0), []
    Attacks.ZEROS, Attacks.SPACES = packed(b"\0", 60), packed(b" ", 200)
    os.nice(19)  # what the attacker computes is no attack
    if not options.nice:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print("ready", flush=True)
    threading.Timer(seconds, end.set).start()

    def work(seed, names):
        each = Attacks(ports, seed, end)
        while names and not end.is_set():
            each.random.shuffle(names)
            for name in names:
                if end.is_set():
                    break
                try:
                    getattr(each, "do_" + name)()
                except (OSError, http.client.HTTPException):  # the server's way to end a connection
                    pass
                except AssertionError as error:
                    failures.append(f"{name}: {error}")
                counts[name] += 1
                end.wait(each.random.uniform(0.1, 0.3))

    alone = WAITING if options.at_once else ()
    groups = [[name] for name in names if name in alone] + [[name for name in names if name not in alone]]
    threads = [threading.Thread(target=work, args=(seed * 1000 + i, group)) for i, group in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"counts": counts, "failures": failures[:20]}))


class Good:
    """A client that keeps its connection and checks its answers; gRPC where it is installed."""

    def __init__(self, ports, by_grpc):
        self.port, self.x = ports[by_grpc], np.random.default_rng(0).standard_normal((16, 256)).astype(np.float32)
        self.expected, self.connection, self.call = None, None, None
        if by_grpc:
            import grpc

            channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", [("grpc.use_local_subchannel_pool", 1)])
            self.call = channel.unary_unary(INFER.decode())
            self.data = question("net", self.x)
        else:
            self.data, self.headers = rest(self.x)

    def ask(self):
        if self.call:
            answer = self.call(self.data, timeout=30)[-self.x.nbytes :]
        else:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            self.connection.request("POST", "/v2/models/net/infer", self.data, self.headers)
            response = self.connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise AssertionError(f"status {response.status}: {answer[:200]}")
            answer = answer[-self.x.nbytes :]
        if self.expected is None:
            self.expected = answer
        if answer != self.expected:
            raise AssertionError("an answer is not what the same question had before")


def good(ports, seconds, by_grpc, rate=None):
    """Asks at even distances, or without pauses; prints {answered, latencies in ms from the time that a request is due, failures}."""
    clients = [Good(ports, by_grpc and i % 2 == 1) for i in range(4)]
    for client in clients:
        client.ask()
    rows, failures, begin, turn, at = [], [], time.monotonic() + 0.1, threading.Lock(), iter(range(10**9))

    def work(client):
        while True:
            with turn:
                i = next(at)
            due = begin + i / rate if rate else time.monotonic()
            if due > begin + seconds:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                client.ask()
                rows.append((time.monotonic() - due) * 1000)
            except Exception as error:  # whatever it is, a good client has to get its answer
                failures.append(repr(error)[:300])
                client.connection = None

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows.sort()
    result = {"answered": len(rows), "failures": failures[:10], "failed": len(failures)}
    if rows:
        result |= {
            "median_ms": round(statistics.median(rows), 3),
            "p99_ms": round(rows[int(0.99 * (len(rows) - 1))], 3),
            "most_ms": round(rows[-1], 3),
        }
    print(json.dumps(result))


def plans(folder):
    """net.plan, which takes about a millisecond, and scale.plan, whose answers may be large."""
    import tensorrt as trt

    from serving import affine, network

    random_of = np.random.default_rng(1)

    def add(net, x):
        for n, k in ((256, 1024), (1024, 1024), (1024, 256)):
            w = net.add_constant((n, k), (random_of.standard_normal((n, k)) / n**0.5).astype(np.float32)).get_output(0)
            x = net.add_matrix_multiply(x, trt.MatrixOperation.NONE, w, trt.MatrixOperation.NONE).get_output(0)
        return {"y": x}

    for name, plan in (("net", network(add, {"x": (trt.float32, (16, 256))})), ("scale", affine(2, 1, rows=(1, 4, 400000)))):
        with open(os.path.join(folder, name + ".plan"), "wb") as file:
            file.write(plan)


def started(command, **options):
    """A process whose library uses one thread."""
    environment = {**os.environ, "TENSORWRIGHT_NUM_THREADS": "1"}
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment, **options)


def resident(pid):
    """MiB of a process and its children."""
    total, pids = 0, [pid]
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            pids += file.read().split()
    for each in pids:
        with contextlib.suppress(OSError), open(f"/proc/{each}/statm", encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / MIB


def cpu_seconds(pid):
    """What a process has used, without its children."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def run(options):
    by_grpc = True
    try:
        import grpc  # noqa: F401
    except ImportError:
        by_grpc = False
    only = [*(["--only", options.only] if options.only else []), *(["--nice"] if options.nice else [])]
    only += ["--at-once"] if options.at_once else []
    me = [sys.executable, os.path.abspath(__file__)]
    with tempfile.TemporaryDirectory() as folder:
        plans(folder)
        command = [
            sys.executable,
            "-m",
            "tensorwright",
            "serve",
            folder,
            "--port=0",
            "--max-held",
            str(HELD),
            "--max-request",
            str(REQUEST),
        ]
        log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        server = started([*command, "--grpc-port=0"] if by_grpc else [*command, "--no-grpc"], stderr=log)
        others = []
        try:
            line = server.stdout.readline()
            if not line:
                log.seek(0)
                raise SystemExit("the server did not start: " + log.read())
            ports = [line.split("127.0.0.1:")[1].split()[0], line.rpartition(" ")[2].strip() if by_grpc else "0"]

            def clients(seconds, rate):
                arguments = ["--good", str(seconds), "--ports", ",".join(ports), "--rate", str(rate), "--grpc", str(int(by_grpc))]
                others.append(started([*me, *arguments]))
                return others[-1]

            quiet = min(30.0, max(2.0, options.seconds / 4))
            most = json.loads(clients(quiet / 2, 0).communicate()[0])
            rate = most["answered"] / (quiet / 2) / 2
            alone = json.loads(clients(quiet, rate).communicate()[0])
            attacker = started(
                [*me, "--attack", str(options.seconds), "--ports", ",".join(ports), "--seed", str(options.seed), *only]
            )
            others.append(attacker)
            attacker.stdout.readline()  # it is ready
            asking, samples, begin, used = clients(options.seconds, rate), [], time.monotonic(), cpu_seconds(server.pid)
            while time.monotonic() - begin < options.seconds and server.poll() is None:
                samples.append(resident(server.pid))
                time.sleep(0.1)
            used = cpu_seconds(server.pid) - used
            beside = json.loads(asking.communicate(timeout=120)[0])
            attacks = json.loads(attacker.communicate(timeout=120)[0])
            alive = server.poll() is None
            start = time.monotonic()
            server.send_signal(signal.SIGTERM)
            status = server.wait(30) if alive else server.returncode
            ended = time.monotonic() - start
        finally:
            for each in (server, *others):
                each.kill()
                each.wait()
        log.seek(0)
        text = log.read()
    third = len(samples) // 3
    middle, last = statistics.median(samples[third : 2 * third]), statistics.median(samples[2 * third :])
    tail = beside.get("p99_ms", float("inf")) / alone["median_ms"]
    failed = [
        message
        for bad, message in (
            (not alive or status, f"the server ended with {status}: {text[-2000:]}"),
            ("Traceback" in text, "the server's log has a traceback: " + text[text.find("Traceback") :][:3000]),
            (alone["failed"] or beside["failed"], f"good clients failed: {alone['failures'] + beside['failures']}\n{text[-2000:]}"),
            (attacks["failures"], f"attacks were answered wrongly: {attacks['failures']}"),
            (options.seconds >= 60 and last - middle > GROWTH, f"memory grew from {middle:.0f} to {last:.0f} MiB"),
            (max(samples) - samples[0] > HELD + BEYOND, f"memory was {samples[0]:.0f} MiB, and {max(samples):.0f} at most"),
            (ended > 15, f"the end took {ended:.1f} s"),
            (options.judge and tail > TAIL, f"the 99th percentile is {tail:.2f} medians"),
        )
        if bad
    ]
    result = {
        "seconds": options.seconds,
        "seed": options.seed,
        "at_once": options.at_once,
        "load_average": os.getloadavg(),
        "rate": round(rate, 1),
        "alone": alone,
        "beside": beside,
        "p99_in_medians": round(tail, 2),
        "server_cpu": round(used / options.seconds, 2),
        "memory_mib": {"first": round(samples[0]), "middle": round(middle), "last": round(last), "most": round(max(samples))},
        "end_seconds": round(ended, 2),
        "attacks": attacks["counts"],
        "failed": failed,
    }
    print(json.dumps(result, indent=1))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 1 if failed else 0


def main():
    for name in ("aiohttp", "prometheus_client"):
        if importlib.util.find_spec(name) is None:
            print(f"SKIP: {name} is not installed (tensorwright[serve])")
            return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="of misbehaviour")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", action="store_true", help="fail when good clients wait too long")
    parser.add_argument("--at-once", action="store_true", help="ten clients misbehave at a time, not one")
    parser.add_argument("--nice", action="store_true", help="the process that attacks is at nice 19, not in SCHED_IDLE")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", help="these attacks: " + ",".join(Attacks.names()))
    for own in ("--attack", "--good", "--rate"):
        parser.add_argument(own, type=float, help=argparse.SUPPRESS)
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("--grpc", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    ports = [int(port) for port in (options.ports or "").split(",") if port]
    if options.attack:
        names = options.only.split(",") if options.only else Attacks.names()
        return attack(ports, options.seed, options.attack, names, options)
    if options.good:
        return good(ports, options.good, bool(options.grpc), options.rate or None)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
