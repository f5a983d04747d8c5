# SPDX-License-Identifier: Apache-2.0
"""A request for inference, whichever protocol it came by, and what the JSON of one says. The process of JSON uses this file, too, so
it imports nothing of the package but tensors.py."""

import json
from dataclasses import dataclass, field

from . import tensors
from .tensors import RequestError, parameter, shown

# Inputs, and outputs, that a request may name.
_MOST_TENSORS = 1024


@dataclass
class Place:
    """Where an input lies in shared memory; byte_size None: as many as it takes."""

    region: str | None
    offset: int
    byte_size: int | None

    @classmethod
    def of(cls, parameters):
        region = parameter(parameters, "shared_memory_region", str)
        return cls(
            region, parameter(parameters, "shared_memory_offset", int, 0), parameter(parameters, "shared_memory_byte_size", int)
        )


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
    """The inputs as arrays, the outputs that are wanted (None: all); `copied`: bytes that were read from shared memory for it."""

    arrays: dict = field(default_factory=dict)
    wanted: list | None = None
    binary: bool = False
    timeout: float | None = None
    copied: int = 0

    def add(self, name, array):
        if name in self.arrays:
            raise RequestError(f"input {shown(name)} is given twice")
        self.arrays[name] = array

    def want(self, outputs):
        """The outputs of a request that names them. One alone: an answer would else be as long as a client likes."""
        self.wanted, names = [], set()
        check_count(outputs, "outputs")
        for name, parameters, binary in outputs:
            wanted = Wanted.of(name, parameters, binary)
            if name in names:
                raise RequestError(f"output {shown(name)} is asked for twice")
            names.add(name)
            self.wanted.append(wanted)

    def common(self, parameters):
        """The parameters of a request that are its own."""
        microseconds = parameter(parameters, "timeout", int, 0)
        if not 0 <= microseconds < 2**63:
            raise RequestError("parameter 'timeout' is a number of microseconds, not less than 0")
        self.timeout = microseconds / 1e6 or None
        if parameters.get("sequence_id"):
            raise RequestError("parameter 'sequence_id': models that remember requests are not supported")


def check_count(tensors_of, what):
    if len(tensors_of) > _MOST_TENSORS:
        raise RequestError(f"the request names {len(tensors_of)} {what} (limit: {_MOST_TENSORS})")


def input_name(name):
    if not isinstance(name, str) or not name:
        raise RequestError(f"{shown(name)} is no name of an input")
    return name


@dataclass
class Outline:
    """What the JSON of a request says: a Request without arrays; the inputs as (name, datatype, shape, source), where the source is an
    array, the number of bytes behind the JSON, or a Place; the request's id."""

    request: Request
    inputs: list
    identity: str


def json_object(text):
    """A JSON object."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RequestError("the request is a JSON object")
    return value


def parameters_of(value):
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
    check_count(found, name)
    return found


def outline(text):
    """The Outline of a request's JSON."""
    value, request, inputs = json_object(text), Request(), []
    parameters = parameters_of(value)
    request.common(parameters)
    request.binary = parameter(parameters, "binary_data_output", bool, False)
    for tensor in _list(value, "inputs", "tensors"):
        name, given = input_name(tensor.get("name")), parameters_of(tensor)
        shape, datatype = tensors.shape_of(name, tensor.get("shape")), tensor.get("datatype")
        source = parameter(given, "binary_data_size", int)
        if "shared_memory_region" in given:
            source = Place.of(given)
        elif source is None:
            source = tensors.from_values(name, datatype, shape, tensor.get("data"))
        elif source < 0:
            raise RequestError(f"input {shown(name)}: binary_data_size is {source}")
        tensors.type_of(name, datatype)
        inputs.append((name, datatype, shape, source))
    if value.get("outputs") is not None:
        outputs = []
        for output in _list(value, "outputs", "outputs"):
            given = parameters_of(output)
            outputs.append((output.get("name"), given, parameter(given, "binary_data", bool, request.binary)))
        request.want(outputs)
    return Outline(request, inputs, parameter(value, "id", str, ""))


def numbers(array):
    """The JSON of an output's numbers."""
    return json.dumps(array.reshape(-1).tolist(), separators=(",", ":")).encode()
