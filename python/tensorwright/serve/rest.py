# SPDX-License-Identifier: Apache-2.0
"""The protocol over HTTP, with tensors as numbers or, behind the JSON, as bytes."""

import asyncio
import json
import logging
from functools import partial

import numpy as np
from aiohttp import web

from . import describe, tensors
from .describe import parameter
from .inference import INTERNAL, Request, Wanted, from_region, infer, input_name
from .tensors import RequestError, name_of, shown

log = logging.getLogger("tensorwright.serve")
HEADER = "Inference-Header-Content-Length"


def application(core):
    """The paths of the protocol as an application of aiohttp."""
    # The limit of a body counts what it unpacks to, too, where a client compresses.
    app = web.Application(middlewares=[_errors], client_max_size=core.limits.request_bytes)
    routes = _Routes(core)
    model, region = "/v2/models/{model}", "/v2/systemsharedmemory/region/{region}"
    one = (model, model + "/versions/{version}")
    get = [("/metrics", routes.metrics), ("/v2", routes.server), ("/v2/health/live", routes.live)]
    get += [("/v2/health/ready", routes.ready), ("/v2/models/stats", routes.statistics)]
    get += [("/v2/systemsharedmemory/status", routes.regions), (region + "/status", routes.regions)]
    post = [("/v2/repository/index", routes.index), ("/v2/systemsharedmemory/unregister", routes.unregister)]
    post += [("/v2/repository/models/{model}/load", routes.load), ("/v2/repository/models/{model}/unload", routes.unload)]
    post += [(region + "/register", routes.register), (region + "/unregister", routes.unregister)]
    for path in one:
        get += [(path, routes.model), (path + "/ready", routes.model_ready), (path + "/config", routes.config)]
        get += [(path + "/stats", routes.statistics)]
        post += [(path + "/infer", routes.infer)]
    app.add_routes([web.get(path, handler) for path, handler in get])
    app.add_routes([web.post(path, handler) for path, handler in post])
    return app


@web.middleware
async def _errors(request, handler):
    """Every failure is JSON with a sentence, as the protocol has it."""
    try:
        return await handler(request)
    except RequestError as error:
        return _failure(str(error), error.status)
    except web.HTTPException as error:
        return _failure(error.text or error.reason, error.status, error.headers.get("Allow"))
    except (asyncio.TimeoutError, TimeoutError):
        return _failure("the request's body did not come in time", 408)
    except (ConnectionError, asyncio.CancelledError):
        raise
    except web.RequestPayloadError as error:  # a body that is not what its headers say
        return _failure(f"the request's body cannot be read: {error}", 400)
    except Exception:
        log.exception("%s %s", request.method, request.path)
        return _failure(INTERNAL, 500)


def _failure(text, status, allow=None):
    headers = {"Allow": allow} if allow else {}
    if status == 503:
        headers["Retry-After"] = "1"
    return web.json_response({"error": text}, status=status, headers=headers)


def _object(text):
    """A JSON object."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RequestError("the request is a JSON object")
    return value


def _parameters(value):
    found = value.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RequestError(f"parameters are an object, not {shown(found)}")
    return found


def _list(value, name, what):
    found = value.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise RequestError(f"{name} is a list of {what}")
    return found


def header_length(given, body):
    """How many bytes of a body are JSON, of what the header says."""
    if given is None:
        return len(body)
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= len(body)):
        raise RequestError(f"{HEADER} is {shown(given)}, the body has {len(body)} bytes")
    return int(given)


def parse(core, header, rest):
    """A Request of the JSON and the bytes behind it."""
    value, request, at = _object(header), Request(), 0
    parameters = _parameters(value)
    request.common(parameters)
    request.binary = parameter(parameters, "binary_data_output", bool, False)
    for tensor in _list(value, "inputs", "tensors"):
        name, given = input_name(tensor.get("name")), _parameters(tensor)
        shape, datatype = tensors.shape_of(name, tensor.get("shape")), tensor.get("datatype")
        size = parameter(given, "binary_data_size", int)
        if "shared_memory_region" in given:
            array = from_region(core, name, datatype, shape, given)
        elif size is not None:
            if size < 0 or size > len(rest) - at:
                raise RequestError(f"input {shown(name)}: binary_data_size is {size}, {len(rest) - at} bytes are left")
            array = tensors.from_bytes(name, datatype, shape, rest[at : at + size])
            at += size
        else:
            array = tensors.from_values(name, datatype, shape, tensor.get("data"))
        request.add(name, array)
    if at != len(rest):
        raise RequestError(f"{len(rest) - at} bytes behind the JSON belong to no input")
    if value.get("outputs") is not None:
        request.wanted = []
        for output in _list(value, "outputs", "outputs"):
            given = _parameters(output)
            binary = parameter(given, "binary_data", bool, request.binary)
            request.wanted.append(Wanted.of(output.get("name"), given, binary))
    return request, parameter(value, "id", str, "")


def answer(served, name, identity, outputs):
    """(bytes, length of the JSON in front or None) of outputs."""
    tensors_of, parts = [], []
    for wanted, array in outputs:
        tensor = {"name": wanted.name, "datatype": name_of(array.dtype), "shape": list(array.shape)}
        if wanted.region is not None:
            tensor["parameters"] = {
                "shared_memory_region": wanted.region,
                "shared_memory_offset": wanted.offset,
                "shared_memory_byte_size": array.nbytes,
            }
        elif wanted.binary:
            tensor["parameters"] = {"binary_data_size": array.nbytes}
            parts.append(array.reshape(-1).view(np.uint8))
        else:
            tensor["data"] = array.reshape(-1).tolist()
        tensors_of.append(tensor)
    value = {"model_name": name, "model_version": served.version, "outputs": tensors_of}
    if identity:
        value["id"] = identity
    header = json.dumps(value, separators=(",", ":")).encode()
    return b"".join([header, *parts]), len(header) if parts else None


class _Routes:
    """The handlers."""

    def __init__(self, core):
        self.core, self.repository = core, core.repository

    @staticmethod
    def _of(request):
        return request.match_info["model"], request.match_info.get("version", "")

    async def _body(self, request):
        return await asyncio.wait_for(request.read(), self.core.limits.body_seconds)

    async def live(self, request):
        return web.Response()

    async def ready(self, request):
        return web.Response(status=200 if self.repository.ready() else 503)

    async def model_ready(self, request):
        self.repository.get(*self._of(request))
        return web.Response()

    async def server(self, request):
        return web.json_response(describe.server(self.core.regions_enabled))

    async def model(self, request):
        return web.json_response(describe.model(self.repository, *self._of(request)))

    async def config(self, request):
        return web.json_response(describe.config(self.repository, *self._of(request)))

    async def statistics(self, request):
        found = request.match_info
        return web.json_response(describe.statistics(self.repository, found.get("model", ""), found.get("version", "")))

    async def metrics(self, request):
        waiting = [(name, version, served.waiting()) for name, version, served, _ in self.repository.all() if served]
        kind, text = self.core.metrics.text(waiting)
        return web.Response(body=text, headers={"Content-Type": kind})

    async def index(self, request):
        only = parameter(_object(await self._body(request)), "ready", bool, False)
        return web.json_response(describe.index(self.repository, only))

    async def load(self, request):
        return await self._change(request, self.repository.load)

    async def unload(self, request):
        return await self._change(request, self.repository.unload)

    async def _change(self, request, change):
        self.core.check_control()
        self.core.check_no_config(_parameters(_object(await self._body(request))).get("config"))
        await asyncio.get_running_loop().run_in_executor(None, partial(change, request.match_info["model"]))
        return web.Response()

    async def regions(self, request):
        rows = self.core.regions.status(request.match_info.get("region"))
        return web.json_response(
            [{"name": r.name, "key": r.key, "offset": r.offset, "byte_size": r.byte_size} for r in rows]
        )

    async def register(self, request):
        value = _object(await self._body(request))
        self.core.regions.register(request.match_info["region"], value.get("key"), value.get("offset", 0), value.get("byte_size"))
        return web.Response()

    async def unregister(self, request):
        self.core.regions.unregister(request.match_info.get("region"))
        return web.Response()

    async def infer(self, request):
        core, (name, version) = self.core, self._of(request)
        # Before the body is read: those that would be refused cost little then.
        self.repository.get(name, version).check_queue()
        size = request.content_length
        held = core.limits.request_bytes if size is None or request.headers.get("Content-Encoding") else size
        core.hold(held)
        try:
            body = await self._body(request)
            end = header_length(request.headers.get(HEADER), body)
            parsed, identity = parse(core, body[:end], memoryview(body)[end:])
            served, outputs = await infer(core, name, version, parsed)
            data, length = answer(served, name, identity, outputs)
        finally:
            core.release(held)
        if length is None:
            return web.Response(body=data, content_type="application/json")
        return web.Response(body=data, content_type="application/octet-stream", headers={HEADER: str(length)})
