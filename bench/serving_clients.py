# SPDX-License-Identifier: Apache-2.0
"""Clients of serving.py: the same requests by HTTP with bytes, by HTTP with tensors in shared memory, and by gRPC."""
import http.client
import json
import mmap
import os
import threading
import time

import numpy as np

HEADER = "Inference-Header-Content-Length"
LARGEST_ERROR = 1e-4  # of an answer's largest number, against the engine asked without a server


class Wrong(Exception):
    """An answer that is not what the engine says of this input."""


class Questions:
    """Inputs that take turns, with the outputs that the engine has for them: an answer to another's request does not pass."""

    def __init__(self, model, count=4):
        (self.input,), (self.output,) = model.inputs, model.outputs
        arrays = [model.random_inputs(seed)[self.input] for seed in range(count)]
        self.inputs, self.outputs = arrays, [model.run({self.input: x})[self.output] for x in arrays]
        for i, y in enumerate(self.outputs):
            for other in self.outputs[:i]:
                if self._error(y, other) < 10 * LARGEST_ERROR:
                    raise ValueError("this model's outputs are nearly the same for different inputs: a mixed-up answer would pass")

    @staticmethod
    def _error(y, expected):
        return float(np.abs(y - expected).max() / np.abs(expected).max())

    def check(self, i, y):
        expected = self.outputs[i % len(self.outputs)]
        if y.shape != expected.shape or not self._error(y, expected) < LARGEST_ERROR:
            raise Wrong(f"request {i}: the answer is not the engine's")


class Http:
    """Tensors as bytes behind the JSON; a connection that is kept."""

    def __init__(self, questions, ports, model):
        self.questions, self.path = questions, f"/v2/models/{model}/infer"
        self.port, self.connection = ports["http"], None
        self.requests = [self._request(i, x) for i, x in enumerate(questions.inputs)]

    def _request(self, i, x):
        tensor = {"name": self.questions.input, "datatype": "FP32", "shape": list(x.shape)}
        tensor["parameters"] = {"binary_data_size": x.nbytes}
        text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        return text + x.tobytes(), {HEADER: str(len(text))}

    def ask(self, i):
        """The status of request i; of 200 the answer has been checked."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        body, headers = self.requests[i % len(self.requests)]
        try:
            try:
                self.connection.request("POST", self.path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server may refuse before it has read all; its answer is there then
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.will_close:
            self.close()
        if response.status == 200:
            self.questions.check(i, self._output(i, response, data))
        return response.status

    def _output(self, i, response, data):
        at = int(response.headers[HEADER])
        (tensor,) = json.loads(data[:at])["outputs"]
        return np.frombuffer(data, np.float32, offset=at).reshape(tensor["shape"])

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class SharedMemory(Http):
    """Tensors in a region of this client's own, JSON over HTTP. The input is written there and the output read for each request."""

    _made, _lock = 0, threading.Lock()

    def __init__(self, questions, ports, model):
        with self._lock:
            SharedMemory._made += 1
            self.name = f"tensorwright-bench-{os.getpid()}-{SharedMemory._made}"
        x, y = questions.inputs[0], questions.outputs[0]
        self.at = -(-x.nbytes // 4096) * 4096  # of the output
        size = self.at + y.nbytes
        with open(f"/dev/shm/{self.name}", "wb+") as file:
            file.truncate(size)
            self.memory = mmap.mmap(file.fileno(), size)
        self.size, self.place, self.registered = y.nbytes, np.frombuffer(self.memory, np.uint8), False
        super().__init__(questions, ports, model)

    def _request(self, i, x):
        def where(offset, count):
            return {"shared_memory_region": self.name, "shared_memory_offset": offset, "shared_memory_byte_size": count}

        tensor = {"name": self.questions.input, "datatype": "FP32", "shape": list(x.shape), "parameters": where(0, x.nbytes)}
        output = {"name": self.questions.output, "parameters": where(self.at, self.size)}
        return json.dumps({"inputs": [tensor], "outputs": [output]}).encode(), {}

    def _region(self, verb, value):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", f"/v2/systemsharedmemory/region/{self.name}/{verb}", json.dumps(value))
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(response.read().decode())
        connection.close()

    def ask(self, i):
        if not self.registered:
            self._region("register", {"key": "/" + self.name, "offset": 0, "byte_size": len(self.memory)})
            self.registered = True
        x = self.questions.inputs[i % len(self.questions.inputs)]
        self.place[: x.nbytes] = x.reshape(-1).view(np.uint8)
        self.place[self.at :] = 0
        return super().ask(i)

    def _output(self, i, response, data):
        (tensor,) = json.loads(data)["outputs"]
        return self.place[self.at :].view(np.float32).reshape(tensor["shape"])

    def close(self, ends=False):
        super().close()
        if ends:
            if self.registered:
                self._region("unregister", {})
            os.unlink(f"/dev/shm/{self.name}")


class Grpc:
    """Triton's own client, tensors in raw_input_contents."""

    def __init__(self, questions, ports, model):
        import tritonclient.grpc as triton

        self.triton, self.questions, self.model = triton, questions, model
        self.client = triton.InferenceServerClient(f"127.0.0.1:{ports['grpc']}")
        self.inputs = []
        for x in questions.inputs:
            self.inputs.append(triton.InferInput(questions.input, list(x.shape), "FP32"))
            self.inputs[-1].set_data_from_numpy(x)

    def ask(self, i):
        try:
            result = self.client.infer(self.model, [self.inputs[i % len(self.inputs)]])
        except self.triton.InferenceServerException as error:
            if error.status() == "StatusCode.UNAVAILABLE":
                return 503
            raise
        self.questions.check(i, result.as_numpy(self.questions.output))
        return 200

    def close(self):
        self.client.close()


WAYS = {"shared_memory": SharedMemory, "http": Http, "grpc": Grpc}


class Clients:
    """Threads with a client each. Kept between phases: connections and regions are set up once."""

    def __init__(self, way, count, *arguments):
        self.clients = [WAYS[way](*arguments) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close(*[True] * isinstance(client, SharedMemory))

    def _run(self, work):
        """work(client) in every thread; gives what each appended, or raises the first failure."""
        rows, failures = [], []

        def one(client):
            try:
                work(client, rows.append)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=one, args=(client,)) for client in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return rows

    def saturate(self, seconds, warm=0.5):
        """Answers per second while every client has a request on its way, and this process's share of its core."""
        begin = time.monotonic()
        first, last = begin + warm, begin + warm + seconds

        def work(client, add):
            i = 0
            while time.monotonic() < last:
                status = client.ask(i)
                if status != 200:
                    raise Wrong(f"status {status} at saturation; the queue is too short for the clients")
                add(time.monotonic())
                i += 1

        cpu = time.process_time()
        ends = sorted(t for t in self._run(work) if t >= first)
        busy = (time.process_time() - cpu) / (time.monotonic() - begin)
        if len(ends) < 3:
            raise Wrong("fewer than 3 answers; more seconds are needed")
        return (len(ends) - 1) / (ends[-1] - ends[0]), busy

    def arrive(self, times):
        """Requests that are sent at `times`, whatever became of those before: [(status or None, seconds from that time to the
        answer, seconds that it was sent late)]. None: no answer came."""
        begin, turn, at = time.monotonic() + 0.1, threading.Lock(), iter(enumerate(times))

        def work(client, add):
            while True:
                with turn:
                    i, due = next(at, (None, None))
                if i is None:
                    return
                due += begin
                time.sleep(max(0.0, due - time.monotonic()))
                late = time.monotonic() - due
                try:
                    status = client.ask(i)
                except (OSError, http.client.HTTPException):
                    status = None
                add((status, time.monotonic() - due, late))

        return self._run(work)
