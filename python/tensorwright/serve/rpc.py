# SPDX-License-Identifier: Apache-2.0
"""The protocol over gRPC."""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import zlib
from functools import partial

import grpc
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from . import describe, tensors
from .buffer import Buffer
from .inference import INTERNAL, check_unpacked, from_region, infer, off_loop, unpack
from .requests import Place, Request, check_count, input_name
from .tensors import RequestError, name_of, shown
from .wire import Wire

log = logging.getLogger("tensorwright.serve")
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_CONTENTS = {
    "BOOL": ("bool_contents", np.bool_),
    "INT8": ("int_contents", np.int32),
    "INT32": ("int_contents", np.int32),
    "INT64": ("int64_contents", np.int64),
    "UINT8": ("uint_contents", np.uint32),
    "FP32": ("fp32_contents", np.float32),
}
# Requests of one stream that are in work at a time; calls of one connection.
_STREAM_DEPTH, _CALLS = 64, 100
# Bytes of a message that is no inference.
_SMALL_MESSAGE = 65536
# Fields of one message of any depth: a field of two bytes can become a message of a hundred.
_MOST_FIELDS = 16384
# Numbers of typed contents that are converted, and fields that are looked over, before others have their turn on the event loop.
_TURN, _FIELDS_TURN = 16384, 1024


def _service():
    """The service and its message classes, of kserve.proto as the build compiled it. They are in a pool of their own: a client in
    the same process has messages of the same names."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kserve.desc")
    try:
        with open(path, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    except FileNotFoundError:
        text = f"there is no {path}, which the build makes of kserve.proto with protoc; --no-grpc serves without"
        raise ImportError(text) from None
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    return pool.FindServiceByName("inference.GRPCInferenceService")


class _Handlers(grpc.GenericRpcHandler):
    """The methods of the service; tells the wire of each call that grpcio looks at."""

    def __init__(self, server, name, handlers):
        self._server, self._inner = server, grpc.method_handlers_generic_handler(name, handlers)

    def service(self, handler_call_details):
        self._server.seen()
        return self._inner.service(handler_call_details)


class Server:
    """grpcio's server behind a Wire."""

    def __init__(self, core):
        self._core, self._server, self._wire, self._folder = core, None, None, None

    async def start(self, host, port):
        """Answers the calls of the protocol; gives the port."""
        core, service, handlers = self._core, _service(), {}
        calls = _Calls(core)
        for method in service.methods:
            request, response = (message_factory.GetMessageClass(m) for m in (method.input_type, method.output_type))
            call = getattr(calls, method.name)
            write = {"response_serializer": response.SerializeToString}
            if method.name == "ModelStreamInfer":
                handlers[method.name] = grpc.stream_stream_rpc_method_handler(partial(call, request, response), **write)
            else:
                handlers[method.name] = grpc.unary_unary_rpc_method_handler(
                    partial(_guarded, core, call, request, response), **write
                )
        options = [
            # A little above the limit of a request, so that one at the limit gets the sentence that names it.
            ("grpc.max_receive_message_length", core.limits.request_bytes + (1 << 20)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", _CALLS),
            # Beyond a thousand calls that nobody has looked at yet grpcio drops some at random, of right clients, too; there are no more
            # than all connections may have.
            ("grpc.server.max_pending_requests", _CALLS * core.limits.connections),
            ("grpc.server.max_pending_requests_hard_limit", _CALLS * core.limits.connections + 1),
            ("grpc.so_reuseport", 0),
            # grpcio would unpack a small message to gigabytes before anything of ours sees it; _read() does it.
            ("grpc.per_message_decompression", 0),
        ]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((_Handlers(self, service.full_name, handlers),))
        self._folder = tempfile.mkdtemp(prefix="tensorwright-")  # for this user alone
        path = os.path.join(self._folder, "grpc")
        self._server.add_insecure_port(f"unix:{path}")
        await self._server.start()
        self._wire = Wire(core, path)
        try:
            return await self._wire.start(host, port)
        except OSError as error:
            await self.stop(0)
            raise OSError(f"gRPC cannot listen at {host}:{port}: {error}") from None

    def seen(self):
        """A call has been looked at."""
        if self._wire:
            self._wire.seen()

    def refuse(self):
        """Takes no more connections."""
        self._wire.refuse()

    async def stop(self, grace):
        """Ends when the calls that were taken have been answered, after `grace` seconds at the latest."""
        await self._server.stop(grace)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def _read(core, kind, data):
    """(the message of these bytes, without its raw contents; views of those). What a client compressed is counted while it is used."""
    unpacked, raw = Buffer(), []

    def add(piece):
        core.check_size(len(unpacked) + len(piece))
        core.budget.take(len(piece))
        unpacked.add(piece)

    try:
        if data[:1] in (b"\x1f", b"\x78"):  # what gzip and zlib begin with, and no message of ours
            unpacker = zlib.decompressobj(zlib.MAX_WBITS + 32)
            await unpack(core.turns, unpacker, data, add)
            check_unpacked(unpacker)
            data = unpacked.view()
        core.check_size(len(data))
        if kind.DESCRIPTOR.name == "ModelInferRequest":
            data = await _without_raw(core, memoryview(data), raw)
        elif len(data) > _SMALL_MESSAGE:
            raise RequestError(f"the request has {len(data)} bytes (limit: {_SMALL_MESSAGE})", 413)
        message = await off_loop(len(data), kind.FromString, bytes(data))
        del data
        yield message, raw
    except DecodeError:
        raise RequestError(f"these bytes are no {kind.DESCRIPTOR.name}") from None
    finally:
        raw.clear()
        core.release(len(unpacked))
        unpacked.close()


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise DecodeError


# Of ModelInferRequest, the fields that are messages: a map's entry has its value there, too.
_ENTRY = {2: {}}
_FIELDS = {4: _ENTRY, 5: {4: _ENTRY, 5: {}}, 6: {2: _ENTRY}}
_RAW = 7  # raw_input_contents


async def _without_raw(core, data, raw):
    """The bytes of a ModelInferRequest without its raw contents, views of which go into `raw`: protobuf would copy them, and nobody is
    answered meanwhile. Refuses a message that would be far larger than its bytes."""
    parts, count, kept = [], 0, 0
    work = [(0, len(data), _FIELDS)]
    try:
        while work:
            at, end, known = work.pop()
            while at < end:
                begin = at
                key, at = _varint(data, at)
                count += 1
                if count % _FIELDS_TURN == 0:
                    await asyncio.sleep(0)
                if count > _MOST_FIELDS:
                    raise RequestError(f"the message has more than {_MOST_FIELDS} fields")
                kind, number = key & 7, key >> 3
                if kind == 2:
                    length, at = _varint(data, at)
                    if number in known:
                        work.append((at, min(at + length, end), known[number]))
                    elif known is _FIELDS and number == _RAW:
                        if length > len(data) - at:
                            raise DecodeError
                        raw.append(data[at : at + length])
                        parts.append(data[kept:begin])
                        kept = at + length
                    at += length
                elif kind == 0:
                    _, at = _varint(data, at)
                elif kind in (1, 5):
                    at += 8 if kind == 1 else 4
                else:  # groups, which no message of ours has
                    raise DecodeError
                if not number:
                    raise DecodeError
    except IndexError:
        raise DecodeError from None
    parts.append(data[kept:])
    core.check_json_size(sum(map(len, parts)))
    return b"".join(parts)


async def _guarded(core, call, kind, response, data, context):
    """The answer of a call, or its failure as a status with a sentence."""
    try:
        async with _read(core, kind, data) as (message, raw):
            answer = await (call(message, response(), raw) if raw else call(message, response()))
        size = answer.ByteSize()
        core.budget.take(size)
        # grpcio calls back when the client has it all, or is gone.
        context.add_done_callback(lambda _: core.release(size))
        return answer
    except RequestError as error:
        code, text = _CODES.get(error.status, grpc.StatusCode.UNKNOWN), str(error)
    except Exception:
        log.exception("gRPC")
        code, text = grpc.StatusCode.INTERNAL, INTERNAL
    await context.abort(code, text)


def _plain(parameters):
    """A map of parameters as a dict."""
    result = {}
    for name, value in parameters.items():
        kind = value.WhichOneof("parameter_choice")
        if kind:
            result[name] = getattr(value, kind)
    return result


async def typed_contents(message):
    """Arrays of the inputs' typed contents, by their place; of many numbers in turns with all else."""
    arrays = []
    for tensor in message.inputs:
        array = None
        if tensor.datatype in _CONTENTS and tensor.HasField("contents"):
            name, dtype = _CONTENTS[tensor.datatype]
            values = getattr(tensor.contents, name)
            array = np.empty(len(values), dtype)
            for at in range(0, len(values), _TURN):
                if at:
                    await asyncio.sleep(0)
                array[at : at + _TURN] = values[at : at + _TURN]
        arrays.append(array)
    return arrays


def parse(core, message, arrays, raw=()):
    """A Request of a message, its typed and its raw contents. What it read from shared memory is given back where it fails."""
    request, at = Request(binary=True), 0
    request.common(_plain(message.parameters))
    check_count(message.inputs, "inputs")
    try:
        for tensor, array in zip(message.inputs, arrays):
            name, given = input_name(tensor.name), _plain(tensor.parameters)
            shape, datatype = tensors.shape_of(name, list(tensor.shape)), tensor.datatype
            if "shared_memory_region" in given:
                array = from_region(core, request, name, datatype, shape, Place.of(given))
            elif raw:
                if tensor.HasField("contents"):
                    raise RequestError(f"input {shown(name)} has contents beside raw_input_contents")
                if at == len(raw):
                    raise RequestError(f"input {shown(name)} has no raw_input_contents; there are {len(raw)}")
                array = tensors.from_bytes(name, datatype, shape, raw[at])
                at += 1
            else:
                tensors.type_of(name, datatype)
                if datatype not in _CONTENTS:
                    raise RequestError(f"input {shown(name)}: {datatype} is sent in raw_input_contents")
                array = tensors.from_array(name, datatype, shape, np.empty(0) if array is None else array)
            request.add(name, array)
        if at != len(raw):
            raise RequestError(f"raw_input_contents has {len(raw)} entries, inputs take {at}")
        check_count(message.outputs, "outputs")
        if message.outputs:
            request.want([(output.name, _plain(output.parameters), True) for output in message.outputs])
    except BaseException:
        core.release(request.copied)
        raise
    return request


class _Calls:
    """The calls, by their names in the service: of a request and an empty response, which they fill."""

    def __init__(self, core):
        self.core, self.repository = core, core.repository

    async def ServerLive(self, request, response):
        response.live = True
        return response

    async def ServerReady(self, request, response):
        response.ready = self.repository.ready()
        return response

    async def ModelReady(self, request, response):
        try:
            self.repository.get(request.name, request.version)
            response.ready = True
        except RequestError:
            response.ready = False
        return response

    async def ServerMetadata(self, request, response):
        return json_format.ParseDict(describe.server(self.core.regions_enabled), response)

    async def ModelMetadata(self, request, response):
        return json_format.ParseDict(describe.model(self.repository, request.name, request.version), response)

    async def ModelConfig(self, request, response):
        json_format.ParseDict(describe.config(self.repository, request.name, request.version), response.config)
        return response

    async def ModelStatistics(self, request, response):
        return json_format.ParseDict(describe.statistics(self.repository, request.name, request.version), response)

    async def RepositoryIndex(self, request, response):
        return json_format.ParseDict({"models": describe.index(self.repository, request.ready)}, response)

    async def RepositoryModelLoad(self, request, response):
        self.core.check_control()
        self.core.check_no_config("config" in request.parameters)
        await asyncio.get_running_loop().run_in_executor(None, self.repository.load, request.model_name)
        return response

    async def RepositoryModelUnload(self, request, response):
        self.core.check_control()
        await asyncio.get_running_loop().run_in_executor(None, self.repository.unload, request.model_name)
        return response

    async def SystemSharedMemoryStatus(self, request, response):
        for region in self.core.regions.status(request.name):
            row = response.regions[region.name]
            row.name, row.key, row.offset, row.byte_size = region.name, region.key, region.offset, region.byte_size
        return response

    async def SystemSharedMemoryRegister(self, request, response):
        self.core.regions.register(request.name, request.key, request.offset, request.byte_size)
        return response

    async def SystemSharedMemoryUnregister(self, request, response):
        self.core.regions.unregister(request.name)
        return response

    async def ModelInfer(self, request, response, raw=()):
        check_count(request.inputs, "inputs")
        parsed = parse(self.core, request, await typed_contents(request), raw)
        try:
            served, outputs = await infer(self.core, request.model_name, request.model_version, parsed)
        finally:
            self.core.release(parsed.copied)
        response.model_name, response.model_version, response.id = request.model_name, served.version, request.id
        for wanted, array in outputs:
            tensor = response.outputs.add(name=wanted.name, datatype=name_of(array.dtype), shape=array.shape)
            if wanted.region is None:
                response.raw_output_contents.append(array.tobytes())
                continue
            response.raw_output_contents.append(b"")
            tensor.parameters["shared_memory_region"].string_param = wanted.region
            tensor.parameters["shared_memory_offset"].int64_param = wanted.offset
            tensor.parameters["shared_memory_byte_size"].int64_param = array.nbytes
        return response

    async def ModelStreamInfer(self, question, kind, requests, context):
        """Answers come in the order of their requests, which run together where they can."""
        tasks = asyncio.Queue(_STREAM_DEPTH)

        async def one(data):
            """(the answer, its bytes, which are counted until it has gone)."""
            response, identity, size = kind(), "", 0
            try:
                async with _read(self.core, question, data) as (message, raw):
                    identity = message.id
                    await self.ModelInfer(message, response.infer_response, raw)
                count = response.ByteSize()
                self.core.budget.take(count)
                size = count
            except RequestError as error:
                response = kind(error_message=str(error))
            except Exception:
                log.exception("gRPC")
                response = kind(error_message=INTERNAL)
            # Who waits for several answers to one request hears that this is the last.
            response.infer_response.id = identity
            response.infer_response.parameters["triton_final_response"].bool_param = True
            return response, size

        async def read():
            try:
                async for request in requests:
                    await tasks.put(asyncio.ensure_future(one(request)))
            except Exception as error:  # a client that is gone; what it sent is answered to nobody
                log.info("gRPC: a stream broke: %s", error)
            await tasks.put(None)

        def drop(task):
            """Of an answer that nobody waits for any more."""
            if not task.cancelled() and not task.exception():
                self.core.release(task.result()[1])

        reader = asyncio.ensure_future(read())
        try:
            while task := await tasks.get():
                try:
                    response, _ = await task
                    yield response
                finally:
                    task.cancel()
                    task.add_done_callback(drop)
        finally:
            reader.cancel()
            while not tasks.empty():
                if task := tasks.get_nowait():
                    task.cancel()
                    task.add_done_callback(drop)
