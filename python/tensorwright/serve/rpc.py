# SPDX-License-Identifier: Apache-2.0
"""The protocol over gRPC."""

import asyncio
import logging
import os
from functools import partial

import grpc
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from . import describe, tensors
from .inference import INTERNAL, Request, Wanted, from_region, infer, input_name
from .tensors import RequestError, name_of, shown

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
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "FP32": "fp32_contents",
}
# Requests of one stream that are in work at a time.
_STREAM_DEPTH = 64


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


async def start(core, host, port):
    """(server, port) that answers the calls of the protocol."""
    service, calls, handlers = _service(), _Calls(core), {}
    for method in service.methods:
        request, response = (message_factory.GetMessageClass(m) for m in (method.input_type, method.output_type))
        call = getattr(calls, method.name)
        both = {"request_deserializer": partial(_message, request), "response_serializer": response.SerializeToString}
        if method.name == "ModelStreamInfer":
            handlers[method.name] = grpc.stream_stream_rpc_method_handler(partial(call, response), **both)
        else:
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(partial(_guarded, call, response), **both)
    # A little above the limit of a request, so that one at the limit gets the sentence that names it.
    sizes = [("grpc.max_receive_message_length", core.limits.request_bytes + (1 << 20)), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=[*sizes, ("grpc.so_reuseport", 0)], maximum_concurrent_rpcs=4096)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    try:
        port = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen at {host}:{port}: {error}") from None
    await server.start()
    return server, port


def _message(kind, data):
    """The message, or the failure, which the call then answers with: grpc would log each with its trace."""
    try:
        return kind.FromString(data)
    except DecodeError:
        return RequestError(f"these {len(data)} bytes are no {kind.DESCRIPTOR.name}")


async def _guarded(call, response, request, context):
    """The answer of a call, or its failure as a status with a sentence."""
    try:
        if isinstance(request, RequestError):
            raise request
        return await call(request, response())
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


def parse(core, message):
    """A Request of a message."""
    request, raw, at = Request(binary=True), message.raw_input_contents, 0
    request.common(_plain(message.parameters))
    for tensor in message.inputs:
        name, given = input_name(tensor.name), _plain(tensor.parameters)
        shape, datatype = tensors.shape_of(name, list(tensor.shape)), tensor.datatype
        if "shared_memory_region" in given:
            array = from_region(core, name, datatype, shape, given)
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
            array = tensors.from_values(name, datatype, shape, list(getattr(tensor.contents, _CONTENTS[datatype])))
        request.add(name, array)
    if at != len(raw):
        raise RequestError(f"raw_input_contents has {len(raw)} entries, inputs take {at}")
    if message.outputs:
        request.wanted = [Wanted.of(output.name, _plain(output.parameters), True) for output in message.outputs]
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

    async def ModelInfer(self, request, response):
        held = request.ByteSize()
        self.core.hold(held)
        try:
            served, outputs = await infer(self.core, request.model_name, request.model_version, parse(self.core, request))
        finally:
            self.core.release(held)
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

    async def ModelStreamInfer(self, kind, requests, context):
        """Answers come in the order of their requests, which run together where they can."""
        tasks = asyncio.Queue(_STREAM_DEPTH)

        async def one(request):
            if isinstance(request, RequestError):
                return kind(error_message=str(request))
            response = kind()
            try:
                await self.ModelInfer(request, response.infer_response)
            except RequestError as error:
                response = kind(error_message=str(error))
            except Exception:
                log.exception("gRPC")
                response = kind(error_message=INTERNAL)
            # Who waits for several answers to one request hears that this is the last.
            response.infer_response.id = request.id
            response.infer_response.parameters["triton_final_response"].bool_param = True
            return response

        async def read():
            try:
                async for request in requests:
                    await tasks.put(asyncio.ensure_future(one(request)))
            except Exception as error:  # a client that is gone; what it sent is answered to nobody
                log.info("gRPC: a stream broke: %s", error)
            await tasks.put(None)

        reader = asyncio.ensure_future(read())
        try:
            while task := await tasks.get():
                yield await task
        finally:
            reader.cancel()
            while not tasks.empty():
                if task := tasks.get_nowait():
                    task.cancel()
