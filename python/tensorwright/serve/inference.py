# SPDX-License-Identifier: Apache-2.0
"""What both protocols stand on, and a request's way through it."""

import asyncio
import concurrent.futures
import math
import time
import zlib
from dataclasses import dataclass

import numpy as np

from . import tensors
from .budget import Budget, Connections
from .json_process import Json
from .metrics import Metrics
from .repository import Repository
from .requests import Wanted
from .shared_memory import Regions
from .tensors import RequestError, shown
from .turns import Turns

# What a client hears of a failure that is the server's own.
INTERNAL = "an internal error; the server's log says more"
# Bytes of a request that are checked and converted on the event loop, where all others wait for it: some tenths of a millisecond.
_SMALL = 1 << 20
# Bytes that are unpacked at a time.
_PIECE = 1 << 16


@dataclass
class Limits:
    """Bytes of a request, bytes of all requests and answers that are held at a time, bytes of a request's JSON, seconds without progress
    of what a client sends or reads, connections."""

    request_bytes: int = 64 << 20
    held_bytes: int = 1 << 30
    json_bytes: int = 8 << 20
    stall_seconds: float = 10.0
    connections: int = 256


class Core:
    """What both protocols stand on."""

    def __init__(self, plans, options, limits, shared_memory=False, control=False):
        self.metrics = Metrics()
        self.repository = Repository(plans, options, self.metrics)
        self.regions, self.regions_enabled = Regions(shared_memory), shared_memory
        self.limits, self.control = limits, control
        self.budget, self.json, self.turns = Budget(limits.held_bytes), Json(), Turns()
        self.connections = Connections(limits.connections, limits.stall_seconds)

    @property
    def held(self):
        """Bytes of requests and answers that are held."""
        return self.budget.held

    def check_size(self, count):
        if count > self.limits.request_bytes:
            raise RequestError(f"the request has {count} bytes (limit: {self.limits.request_bytes})", 413)

    def check_json_size(self, count):
        if count > self.limits.json_bytes:
            raise RequestError(
                f"the request has {count} bytes of JSON (limit: {self.limits.json_bytes}; tensors may be sent as bytes)", 413
            )

    def hold(self, count):
        """Counts the bytes of a request that is there as a whole; refuses those that would be too many."""
        self.check_size(count)
        self.budget.take(count)

    def release(self, count):
        self.budget.give_back(count)

    def check_control(self):
        if not self.control:
            raise RequestError("loading and unloading are off; start the server with --control", 403)

    @staticmethod
    def check_no_config(given):
        """Of a request that loads or unloads."""
        if given:
            raise RequestError("a configuration cannot be sent; it is in the file serve.json beside the versions")


def from_region(core, request, name, datatype, shape, place):
    """An input of the request that lies in shared memory. Who parses it gives the bytes back that are counted here."""
    count = tensors.type_of(name, datatype).itemsize * math.prod(shape)
    given = count if place.byte_size is None else place.byte_size
    if given != count:
        raise RequestError(f"input {shown(name)} has {given} bytes in shared memory, {datatype}{list(shape)} takes {count}")
    if count > core.limits.request_bytes:
        raise RequestError(f"input {shown(name)} has {count} bytes (limit: {core.limits.request_bytes})", 413)
    core.budget.take(count)
    request.copied += count
    data = core.regions.read(place.region, place.offset, count)
    return tensors.from_bytes(name, datatype, shape, data)


async def off_loop(count, function, *arguments):
    """function(*arguments), in a thread where `count` bytes are too many for the event loop."""
    if count <= _SMALL:
        return function(*arguments)
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


# One thread: of a core that runs have to share with it, what clients compressed takes no more than a part.
_unpacking = concurrent.futures.ThreadPoolExecutor(1, "unpacking")


async def unpack(turns, unpacker, data, add):
    """Unpacks what a client compressed, by a zlib.decompressobj(), a piece a turn; add(piece) takes each."""
    loop = asyncio.get_running_loop()
    data = memoryview(data)
    for at in range(0, len(data), _PIECE):
        rest = data[at : at + _PIECE]  # zlib copies what it leaves of it
        while rest and not unpacker.eof:
            await turns.next()
            begin = time.monotonic()
            try:
                add(await loop.run_in_executor(_unpacking, unpacker.decompress, rest, _PIECE))
            except zlib.error as error:
                raise RequestError(f"the request's compressed bytes cannot be read: {error}") from None
            finally:
                turns.spent(begin)
            rest = unpacker.unconsumed_tail


def check_unpacked(unpacker):
    if not unpacker.eof:
        raise RequestError("the request's compressed bytes cannot be read: they end too early")


async def infer(core, name, version, request):
    """(what served it, [(Wanted, array)]); outputs for shared memory lie there already."""
    core.turns.asked()
    outputs = core.repository.get(name, version).model.outputs
    wanted = request.wanted if request.wanted else [Wanted(n, request.binary) for n in outputs]
    for output in wanted:
        if output.name not in outputs:
            raise RequestError(f"model {name!r} has no output {shown(output.name)} (outputs: {', '.join(outputs)})")
    count = sum(array.nbytes for array in request.arrays.values())
    served, future = await off_loop(count, core.repository.submit, name, version, request.arrays, request.timeout)
    try:
        results = await asyncio.wrap_future(future)
    except BaseException:
        future.cancel()
        raise
    answer = []
    for output in wanted:
        if output.name not in results:  # another plan took the place of the one that was asked
            raise RequestError(f"model {name!r} has no output {shown(output.name)} any more", 503)
        array = np.ascontiguousarray(results[output.name]).reshape(results[output.name].shape)
        if output.region is not None:
            if array.nbytes > output.byte_size:
                raise RequestError(
                    f"output {output.name!r} has {array.nbytes} bytes, {output.byte_size} are its place in shared memory"
                )
            core.regions.write(output.region, output.offset, array.reshape(-1).view(np.uint8))
        answer.append((output, array))
    return served, answer


