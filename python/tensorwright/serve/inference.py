# SPDX-License-Identifier: Apache-2.0
"""A request for inference, whichever protocol it came by."""

import asyncio
import math
from dataclasses import dataclass, field

import numpy as np

from . import tensors
from .describe import parameter
from .metrics import Metrics
from .repository import Repository
from .shared_memory import Regions
from .tensors import RequestError, shown


# What a client hears of a failure that is the server's own.
INTERNAL = "an internal error; the server's log says more"


@dataclass
class Limits:
    """Bytes of a request, bytes of all requests that are held at a time, seconds to send a request's body."""

    request_bytes: int = 64 << 20
    held_bytes: int = 1 << 30
    body_seconds: float = 60.0


class Core:
    """What both protocols stand on."""

    def __init__(self, plans, options, limits, shared_memory=False, control=False):
        self.metrics = Metrics()
        self.repository = Repository(plans, options, self.metrics)
        self.regions, self.regions_enabled = Regions(shared_memory), shared_memory
        self.limits, self.control, self.held = limits, control, 0

    def hold(self, count):
        """Counts the bytes of a request while it is held; refuses those that would be too many."""
        if count > self.limits.request_bytes:
            raise RequestError(f"the request has {count} bytes (limit: {self.limits.request_bytes})", 413)
        if self.held + count > self.limits.held_bytes:
            raise RequestError(f"requests of {self.held} bytes are in work (limit: {self.limits.held_bytes})", 503)
        self.held += count

    def release(self, count):
        self.held -= count

    def check_control(self):
        if not self.control:
            raise RequestError("loading and unloading are off; start the server with --control", 403)

    @staticmethod
    def check_no_config(given):
        """Of a request that loads or unloads."""
        if given:
            raise RequestError("a configuration cannot be sent; it is in the file serve.json beside the versions")


@dataclass
class Wanted:
    """An output that a client asked for: in the answer, as bytes or as numbers, or in a region of shared memory."""

    name: str
    binary: bool = False
    region: str | None = None
    offset: int = 0
    byte_size: int = 0

    @classmethod
    def of(cls, name, parameters, binary):
        if not isinstance(name, str):
            raise RequestError(f"{shown(name)} is no name of an output")
        if parameters.get("classification"):
            raise RequestError(f"output {shown(name)}: the parameter 'classification' is not supported; sort the output instead")
        region = parameter(parameters, "shared_memory_region", str)
        offset = parameter(parameters, "shared_memory_offset", int, 0)
        return cls(name, binary, region, offset, parameter(parameters, "shared_memory_byte_size", int, 0) if region else 0)


@dataclass
class Request:
    """The inputs as arrays, the outputs that are wanted (None: all)."""

    arrays: dict = field(default_factory=dict)
    wanted: list | None = None
    binary: bool = False
    timeout: float | None = None

    def add(self, name, array):
        if name in self.arrays:
            raise RequestError(f"input {shown(name)} is given twice")
        self.arrays[name] = array

    def common(self, parameters):
        """The parameters of a request that are its own."""
        microseconds = parameter(parameters, "timeout", int, 0)
        if microseconds < 0:
            raise RequestError("parameter 'timeout' is a number of microseconds, not less than 0")
        self.timeout = microseconds / 1e6 or None
        if parameters.get("sequence_id"):
            raise RequestError("parameter 'sequence_id': models that remember requests are not supported")


def input_name(name):
    if not isinstance(name, str) or not name:
        raise RequestError(f"{shown(name)} is no name of an input")
    return name


def from_region(core, name, datatype, shape, parameters):
    """An input that lies in shared memory."""
    count = tensors.type_of(name, datatype).itemsize * math.prod(shape)
    given = parameter(parameters, "shared_memory_byte_size", int, count)
    if given != count:
        raise RequestError(f"input {shown(name)} has {given} bytes in shared memory, {datatype}{list(shape)} takes {count}")
    if count > core.limits.request_bytes:
        raise RequestError(f"input {shown(name)} has {count} bytes (limit: {core.limits.request_bytes})", 413)
    offset = parameter(parameters, "shared_memory_offset", int, 0)
    data = core.regions.read(parameter(parameters, "shared_memory_region", str), offset, count)
    return tensors.from_bytes(name, datatype, shape, data)


async def infer(core, name, version, request):
    """(what served it, [(Wanted, array)]); outputs for shared memory lie there already."""
    served, future = core.repository.submit(name, version, request.arrays, request.timeout)
    outputs = served.model.outputs
    wanted = request.wanted if request.wanted else [Wanted(n, request.binary) for n in outputs]
    try:
        for output in wanted:
            if output.name not in outputs:
                raise RequestError(f"model {name!r} has no output {shown(output.name)} (outputs: {', '.join(outputs)})")
        results = await asyncio.wrap_future(future)
    except BaseException:
        future.cancel()
        raise
    answer = []
    for output in wanted:
        array = np.ascontiguousarray(results[output.name]).reshape(results[output.name].shape)
        if output.region is not None:
            if array.nbytes > output.byte_size:
                raise RequestError(
                    f"output {output.name!r} has {array.nbytes} bytes, {output.byte_size} are its place in shared memory"
                )
            core.regions.write(output.region, output.offset, array.reshape(-1).view(np.uint8))
        answer.append((output, array))
    return served, answer
