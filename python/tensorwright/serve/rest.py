# SPDX-License-Identifier: Apache-2.0
"""The protocol over HTTP, with tensors as numbers or, behind the JSON, as bytes."""

import asyncio
import contextlib
import json
import logging
import time
import zlib
from functools import partial

import numpy as np
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from . import describe, requests, tensors
from .budget import READ, Arrival, GivenUp
from .buffer import Buffer
from .inference import INTERNAL, check_unpacked, from_region, infer, unpack
from .requests import Place, json_object, parameters_of
from .tensors import RequestError, name_of, parameter, shown

log = logging.getLogger("tensorwright.serve")
HEADER = "Inference-Header-Content-Length"
# Bytes of a request that is no inference, whose JSON is read on the event loop.
_SMALL_REQUEST = 65536
# Bytes that are written at a time, and of an answer that goes as a whole.
_PIECE, _SMALL_ANSWER = 1 << 16, 1 << 16
# Seconds that the writing of a piece takes at most.
_WRITTEN = 0.001
# Bytes that are read at a time where headers come: some tens of them, whose reading holds others up for about a millisecond.
_HEADERS = 16384
# Seconds until a request is looked at that came before the one in front of it was answered, so that who sends hundreds at once has no more
# of the server than others.
_EARLY = 0.01
# Seconds that a connection is kept for a client's next request, and that the rest of a refused one is read for.
_KEPT, _LINGER = 75.0, 0.5


class Connection(RequestHandler):
    """aiohttp's connection, which tells what it waits for. Requests that come before the one in work has been answered count as those
    behind it."""

    def __init__(self, server, connections, **options):
        super().__init__(server, keepalive_timeout=_KEPT, lingering_time=_LINGER, max_headers=64, auto_decompress=False, **options)
        self._open, self._since, self._header = connections, time.monotonic(), True
        self._in_work, self.asked, self.arrival, self.wrote, self._heard = False, False, None, None, False
        self.gone = set()  # called when the client has gone

    def connection_made(self, transport):
        transport.max_size = _HEADERS
        super().connection_made(transport)
        self._open.add(self)

    def connection_lost(self, error):
        self._open.remove(self)
        for each in list(self.gone):
            each()
        super().connection_lost(error)

    @property
    def early(self):
        """Whether the request in work came before the one in front of it was answered."""
        return not self._heard

    def data_received(self, data):
        self._heard = True
        if not self._header and self.arrival is None:
            self._header, self._since = True, time.monotonic()
        super().data_received(data)

    def read_at_once(self, count):
        if self.transport is not None:
            self.transport.max_size = count

    @contextlib.contextmanager
    def asking(self):
        """While a request is in work whose header has come."""
        self._in_work, self._header = True, False
        try:
            yield
        finally:
            self._in_work, self.asked, self._heard = False, True, False
            if not self._header:
                self._since = time.monotonic()

    @property
    def waits_since(self):
        if self.wrote is not None:
            return self.wrote
        if self._in_work:
            return self.arrival.heard if self.arrival else None
        return self._since

    def check(self, now):
        """Ends what stalls. A header has to be there as a whole after the time in which anything else has to make progress."""
        if self.arrival:
            if now - self.arrival.heard > self._open.stall_seconds:
                self.arrival.give_up(GivenUp("the request's body did not come in time", 408))
            return
        since = self.waits_since
        if since is not None and now - since > (self._open.stall_seconds if self._in_work or self._header else _KEPT):
            self.abort()

    def finish(self):
        if not self._in_work:
            self.abort()

    def abort(self):
        if self.arrival:
            self.arrival.give_up(GivenUp("the connection is needed for others", 503))
        elif self.transport is not None:
            self.transport.abort()


class _Silent(asyncio.Protocol):
    """A connection whose client has sent nothing yet: aiohttp's costs several times as much, and crowds come and go without a word."""

    asked = False

    def __init__(self, connections, make):
        self._open, self._make, self.waits_since, self._transport = connections, make, time.monotonic(), None

    def connection_made(self, transport):
        self._transport = transport
        self._open.add(self)

    def data_received(self, data):
        self._open.remove(self)
        connection = self._make()
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        connection.data_received(data)

    def connection_lost(self, error):
        self._open.remove(self)

    def check(self, now):
        if now - self.waits_since > self._open.stall_seconds:
            self.abort()

    def finish(self):
        self.abort()

    def abort(self):
        self._transport.abort()


def listener(server, connections, loop):
    """What makes the connections of aiohttp's `server`."""
    return partial(_Silent, connections, partial(Connection, server, connections, loop=loop, access_log=None))


class Body:
    """A request's body: read() until it is there, with its bytes counted as they arrive; close() when they are no longer needed."""

    def __init__(self, core, request, most, too_large):
        self.core, self.request, self.most, self.too_large = core, request, most, too_large
        self.data, self.arrival = Buffer(), None

    async def read(self):
        request, connection, turns = self.request, self.request.protocol, self.core.turns
        unpacker = _unpacker(request.headers.get("Content-Encoding", ""))
        if request.content_length is not None and not unpacker:
            self._check(request.content_length)
        self.arrival = connection.arrival = Arrival(self.core.budget, request.content.set_exception)
        connection.read_at_once(READ)
        try:
            while not request.content.at_eof():
                chunk = await request.content.readany()
                if unpacker:
                    await unpack(turns, unpacker, chunk, self._add)
                    continue
                if len(self.data) > READ:
                    await turns.next()
                begin = time.monotonic()
                self._add(chunk)
                turns.spent(begin)
            if unpacker:
                check_unpacked(unpacker)
            self.arrival.complete()
        finally:
            connection.arrival = None
            connection.read_at_once(_HEADERS)
        return self.data.view()

    def _check(self, count):
        if count > self.most:
            self.too_large(count)

    def _add(self, chunk):
        self._check(len(self.data) + len(chunk))
        self.arrival.add(len(chunk))
        self.data.add(chunk)

    def close(self):
        self.data.close()
        if self.arrival:
            self.arrival.close()


def _unpacker(encoding):
    """What unpacks a body; None where it is plain."""
    if encoding.lower() in ("", "identity"):
        return None
    if encoding.lower() not in ("gzip", "deflate"):
        raise RequestError(f"Content-Encoding {shown(encoding)} is not supported (allowed: gzip, deflate)", 415)
    return zlib.decompressobj(zlib.MAX_WBITS + (16 if encoding.lower() == "gzip" else 0))


def application(core):
    """The paths of the protocol as an application of aiohttp."""
    app = web.Application(middlewares=[_errors])
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
    with request.protocol.asking():
        try:
            if request.protocol.early:
                await asyncio.sleep(_EARLY)
            return await handler(request)
        except RequestError as error:
            return _failure(str(error), error.status, last=isinstance(error, GivenUp))
        except web.HTTPException as error:
            return _failure(error.text or error.reason, error.status, error.headers.get("Allow"))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except web.RequestPayloadError as error:  # a body that is not what its headers say
            return _failure(f"the request's body cannot be read: {error}", 400)
        except Exception:
            log.exception("%s %s", request.method, request.path)
            return _failure(INTERNAL, 500)


def _failure(text, status, allow=None, last=False):
    headers = {"Allow": allow} if allow else {}
    if status == 503:
        headers["Retry-After"] = "1"
    response = web.json_response({"error": text}, status=status, headers=headers)
    if last:
        response.force_close()
    return response


def header_length(given, body):
    """How many bytes of a body are JSON, of what the header says."""
    if given is None:
        return len(body)
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= len(body)):
        raise RequestError(f"{HEADER} is {shown(given)}, the body has {len(body)} bytes")
    return int(given)


def parse(core, header, rest):
    """A Request of the JSON and the bytes behind it."""
    outline = requests.outline(header)
    return filled(core, outline, rest), outline.identity


def filled(core, outline, rest):
    """The Request of an Outline, with the bytes behind the JSON. Gives back outline.request.copied where it fails."""
    request, at = outline.request, 0
    try:
        for name, datatype, shape, source in outline.inputs:
            if isinstance(source, Place):
                source = from_region(core, request, name, datatype, shape, source)
            elif isinstance(source, int):
                if source > len(rest) - at:
                    raise RequestError(f"input {shown(name)}: binary_data_size is {source}, {len(rest) - at} bytes are left")
                at += source
                source = tensors.from_bytes(name, datatype, shape, rest[at - source : at])
            request.add(name, source)
        if at != len(rest):
            raise RequestError(f"{len(rest) - at} bytes behind the JSON belong to no input")
    except BaseException:
        core.release(request.copied)
        raise
    return request


def _described(wanted, array, written):
    """The JSON of an output, in pieces; `written` is that of its numbers where they go there."""
    tensor = {"name": wanted.name, "datatype": name_of(array.dtype), "shape": list(array.shape)}
    if wanted.region is not None:
        place = {"shared_memory_region": wanted.region, "shared_memory_offset": wanted.offset}
        tensor["parameters"] = {**place, "shared_memory_byte_size": array.nbytes}
    elif wanted.binary:
        tensor["parameters"] = {"binary_data_size": array.nbytes}
    text = json.dumps(tensor, separators=(",", ":")).encode()
    return [text] if written is None else [text[:-1] + b',"data":', written, b"}"]


def answer(served, name, identity, outputs, written=None):
    """([bytes and arrays of them], length of the JSON in front or None) of outputs. written: the JSON of numbers by output's name, where
    they have been written already."""
    value = {"model_name": name, "model_version": served.version}
    if identity:
        value["id"] = identity
    header, parts = [json.dumps(value, separators=(",", ":")).encode()[:-1], b',"outputs":['], []
    for wanted, array in outputs:
        as_numbers = wanted.region is None and not wanted.binary
        text = (written or {}).get(wanted.name) or requests.numbers(array) if as_numbers else None
        header += [b","] * (len(header) > 2) + _described(wanted, array, text)
        if wanted.region is None and wanted.binary:
            parts.append(array.reshape(-1).view(np.uint8).data)
    header = _joined([*header, b"]}"])
    return [*header, *parts], sum(map(len, header)) if parts else None


def _joined(texts):
    """The same, with the small ones together; a copy of a large one would hold others up."""
    result = [b""]
    for text in texts:
        if len(text) > _SMALL_ANSWER:
            result += [text, b""]
        else:
            result[-1] += text
    return result


class _Routes:
    """The handlers."""

    def __init__(self, core):
        self.core, self.repository = core, core.repository

    @staticmethod
    def _of(request):
        return request.match_info["model"], request.match_info.get("version", "")

    async def _object(self, request):
        """The JSON of a request that is no inference."""

        def too_large(count):
            raise RequestError(f"the request has {count} bytes (limit: {_SMALL_REQUEST})", 413)

        body = Body(self.core, request, _SMALL_REQUEST, too_large)
        with contextlib.closing(body):
            return json_object(bytes(await body.read()))

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
        only = parameter(await self._object(request), "ready", bool, False)
        return web.json_response(describe.index(self.repository, only))

    async def load(self, request):
        return await self._change(request, self.repository.load)

    async def unload(self, request):
        return await self._change(request, self.repository.unload)

    async def _change(self, request, change):
        self.core.check_control()
        self.core.check_no_config(parameters_of(await self._object(request)).get("config"))
        await asyncio.get_running_loop().run_in_executor(None, partial(change, request.match_info["model"]))
        return web.Response()

    async def regions(self, request):
        rows = self.core.regions.status(request.match_info.get("region"))
        return web.json_response(
            [{"name": r.name, "key": r.key, "offset": r.offset, "byte_size": r.byte_size} for r in rows]
        )

    async def register(self, request):
        value = await self._object(request)
        self.core.regions.register(request.match_info["region"], value.get("key"), value.get("offset", 0), value.get("byte_size"))
        return web.Response()

    async def unregister(self, request):
        self.core.regions.unregister(request.match_info.get("region"))
        return web.Response()

    async def infer(self, request):
        core, (name, version) = self.core, self._of(request)
        # Before the body is read: those that would be refused cost little then.
        self.repository.get(name, version).check_queue()
        given = request.headers.get(HEADER)
        limits = core.limits
        most, too_large = limits.request_bytes, core.check_size
        if given is None and limits.json_bytes < most:
            most, too_large = limits.json_bytes, core.check_json_size
        with contextlib.closing(Body(core, request, most, too_large)) as body:
            data = await body.read()
            end = header_length(given, data)
            core.check_json_size(end)
            outline = await core.json.outline(data[:end])
            parsed = filled(core, outline, data[end:])
            try:
                served, outputs = await infer(core, name, version, parsed)
            finally:
                core.release(parsed.copied)
            del data, parsed.arrays
        parts, length = await self._encoded(served, name, outline.identity, outputs)
        return await self._send(request, parts, length)

    async def _encoded(self, served, name, identity, outputs):
        """What answer() gives, with large JSON off the loop."""
        written, most = {}, self.core.limits.json_bytes // 8  # of about so many bytes a number
        for wanted, array in outputs:
            if wanted.region is None and not wanted.binary:
                if array.size > most:
                    text = f"output {wanted.name!r} has {array.size} elements (limit of numbers in JSON: {most})"
                    raise RequestError(text + "; ask for bytes by the parameter 'binary_data'")
                written[wanted.name] = await self.core.json.numbers(array)
        return answer(served, name, identity, outputs, written)

    async def _send(self, request, parts, length):
        """The answer. A large one is counted until it has gone, and goes in pieces, as fast as the client reads."""
        headers = {} if length is None else {HEADER: str(length)}
        kind = "application/json" if length is None else "application/octet-stream"
        size = sum(map(len, parts))
        if size <= _SMALL_ANSWER:
            return web.Response(body=b"".join(parts), content_type=kind, headers=headers)
        self.core.budget.take(size)
        connection = request.protocol
        try:
            response = web.StreamResponse(headers=headers)
            response.content_type, response.content_length = kind, size
            connection.wrote = time.monotonic()
            await response.prepare(request)
            for part in map(memoryview, parts):
                for at in range(0, len(part), _PIECE):
                    await self.core.turns.next()
                    begin = time.monotonic()
                    await response.write(part[at : at + _PIECE])
                    self.core.turns.spent(max(begin, time.monotonic() - _WRITTEN))  # the rest was waiting for the client
                    connection.wrote = time.monotonic()
            await response.write_eof()
        finally:
            connection.wrote = None
            self.core.release(size)
        return response
