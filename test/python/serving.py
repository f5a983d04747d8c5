# SPDX-License-Identifier: Apache-2.0
"""A server of plans for the tests, in a thread of its own, and plain HTTP to ask it."""

import asyncio
import contextlib
import http.client
import json
import threading

import numpy as np
import tensorrt as trt
from tensorwright.serve import Server

from small import LOUD


@contextlib.contextmanager
def served(*plans, **options):
    """The Server, running; it has ended when the block has."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(120)

    server = Server([str(p) for p in plans], **{"port": 0, "grpc_port": 0, "poll": 0, **options})
    server.run = wait_for
    try:
        wait_for(server.start())
        yield server
    finally:
        wait_for(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def ask(server, method, path, body=None, headers=None, timeout=60):
    """(status, headers, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def get(server, path):
    """The JSON of a GET that succeeds."""
    status, _, body = ask(server, "GET", path)
    assert status == 200, body
    return json.loads(body) if body else None


def infer(server, model, value, version=""):
    """(status, JSON) of an inference without binary tensors."""
    path = f"/v2/models/{model}{'/versions/' + version if version else ''}/infer"
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    status, _, body = ask(server, "POST", path, body)
    return status, json.loads(body)


# An input of the models of affine().
X = {"name": "x", "datatype": "FP32", "shape": [1, 5], "data": [1, 2, 3, 4, 5]}


def tensor(name, array, datatype="FP32"):
    """An input as JSON."""
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": array.tolist()}


def binary(inputs, **more):
    """(body, headers) of a request whose tensors, {name: (datatype, array)}, lie behind the JSON."""
    value = {"inputs": [], **more}
    for name, (datatype, array) in inputs.items():
        parameters = {"binary_data_size": array.nbytes}
        value["inputs"].append({"name": name, "datatype": datatype, "shape": list(array.shape), "parameters": parameters})
    header = json.dumps(value).encode()
    return header + b"".join(a.tobytes() for _, a in inputs.values()), {"Inference-Header-Content-Length": str(len(header))}


def network(add, inputs, profile=None):
    """The plan of a network: inputs are {name: (type, shape)}, add(network, *tensors) gives {name: tensor} of outputs."""
    builder = trt.Builder(LOUD)
    net = builder.create_network(1)
    tensors = [net.add_input(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    for name, y in add(net, *tensors).items():
        y.name = name
        net.mark_output(y)
    config = builder.create_builder_config()
    if profile:
        shapes = builder.create_optimization_profile()
        for name, three in profile.items():
            shapes.set_shape(name, *three)
        config.add_optimization_profile(shapes)
    plan = builder.build_serialized_network(net, config)
    assert plan is not None
    return bytes(plan)


def affine(scale, shift, rows=(1, 4, 16), width=5):
    """A plan: y = scale * x + shift, x [rows, width], FP32."""

    def add(net, x):
        constants = [net.add_constant((1, width), np.full((1, width), v, np.float32)).get_output(0) for v in (scale, shift)]
        y = net.add_elementwise(x, constants[0], trt.ElementWiseOperation.PROD).get_output(0)
        return {"y": net.add_elementwise(y, constants[1], trt.ElementWiseOperation.SUM).get_output(0)}

    return network(add, {"x": (trt.float32, (-1, width))}, {"x": [(n, width) for n in rows]})
