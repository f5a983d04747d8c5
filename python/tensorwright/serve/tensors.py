# SPDX-License-Identifier: Apache-2.0
"""Tensors as the protocol names and carries them, and what may be wrong with them. The process of JSON uses this file, too, so it
imports nothing of the package."""

import itertools
import math

import numpy as np


class RequestError(Exception):
    """What a client did wrong, or what keeps the server from answering; `status` is HTTP's number for it."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


_NAMES = {
    np.dtype(np.float32): "FP32",
    np.dtype(np.float16): "FP16",
    np.dtype(np.int8): "INT8",
    np.dtype(np.uint8): "UINT8",
    np.dtype(np.int32): "INT32",
    np.dtype(np.bool_): "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
# ONNX models declare 64-bit integers where an engine of 8.5 has 32-bit ones.
_TYPES["INT64"] = np.dtype(np.int64)
# All that the protocol names; those that no engine takes are refused by name.
_KNOWN = {*_TYPES, "INT16", "UINT16", "UINT32", "UINT64", "FP64", "BF16", "BYTES"}
_MAX_RANK = 8
_MAX_ELEMENTS = 2**60  # of 8 bytes: an array's bytes are counted in 63 bits, with extents of 0 left out


def name_of(dtype):
    """The protocol's name of an engine's type."""
    return _NAMES[np.dtype(dtype)]


def type_of(name, datatype):
    """The NumPy type behind `datatype` of the input `name`."""
    if isinstance(datatype, str) and datatype in _TYPES:
        return _TYPES[datatype]
    known = isinstance(datatype, str) and datatype in _KNOWN
    what = f"datatype {datatype} is taken by no engine" if known else f"datatype {shown(datatype)} is none"
    raise RequestError(f"input {shown(name)}: {what} (allowed: {', '.join(_TYPES)})")


def shown(value):
    """A client's text in a message: quoted, and not longer than a message should be."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def shape_of(name, shape):
    """A checked shape, as a tuple."""
    if not isinstance(shape, (list, tuple)) or len(shape) > _MAX_RANK:
        raise RequestError(f"input {shown(name)}: shape is a list of at most {_MAX_RANK} numbers, not {shown(shape)}")
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 2**31:
            raise RequestError(f"input {shown(name)}: {shown(n)} is no dimension (allowed: 0 to 2147483647)")
    if math.prod(n or 1 for n in shape) >= _MAX_ELEMENTS:
        raise RequestError(f"input {shown(name)}: no array can have the shape {list(shape)}")
    return tuple(shape)


def parameter(values, name, kind, default=None):
    """A request's parameter of one type, or the default where there is none."""
    value = values.get(name, default)
    if value is default:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        what = {bool: "true or false", int: "a whole number", str: "text"}[kind]
        raise RequestError(f"parameter {name!r} is {what}")
    return value


def from_bytes(name, datatype, shape, data):
    """The array that lies in `data`, which it refers to."""
    dtype = type_of(name, datatype)
    expected = dtype.itemsize * math.prod(shape)
    if len(data) != expected:
        raise RequestError(f"input {shown(name)} has {len(data)} bytes, {datatype}{list(shape)} takes {expected}")
    array = np.frombuffer(data, dtype)
    if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise RequestError(f"input {shown(name)}: a BOOL is a byte of 0 or 1")
    return array.reshape(shape)


def _flat(name, values):
    """(elements, shape) of a list, flat or nested. NumPy is given numbers alone: of texts it would make an array as wide as the longest."""
    shape = [len(values)]
    while values and isinstance(values[0], list):
        width = len(values[0])
        if not all(isinstance(row, list) and len(row) == width for row in values):
            raise RequestError(f"input {shown(name)}: data is no tensor: its lists are not of one length")
        values = list(itertools.chain.from_iterable(values))
        shape.append(width)
    return values, shape


def from_values(name, datatype, shape, values):
    """An array of the numbers of a JSON list, flat or nested as the shape is."""
    dtype = type_of(name, datatype)
    if not isinstance(values, list):
        raise RequestError(f"input {shown(name)}: data is a list, not {shown(values)}")
    values, found = _flat(name, values)
    if len(values) != math.prod(shape) or (len(found) != 1 and found != list(shape)):
        raise RequestError(f"input {shown(name)}: data of shape {found[:_MAX_RANK]} does not fill the shape {list(shape)}")
    if not values:
        return np.empty(shape, dtype)
    kinds, what = {"b": ({bool}, "true and false"), "f": ({int, float}, "numbers")}.get(dtype.kind, ({int}, "whole numbers"))
    if not set(map(type, values)) <= kinds:
        raise RequestError(f"input {shown(name)}: data of {datatype} is {what}")
    try:
        array = np.array(values, {"b": np.bool_, "f": np.float64}.get(dtype.kind, np.int64))
    except OverflowError:
        if dtype.kind == "f":
            raise RequestError(f"input {shown(name)}: data of {datatype} is numbers, none beyond 1e308") from None
        array = None  # beyond 64 bits
    return _converted(name, datatype, dtype, shape, array)


def from_array(name, datatype, shape, array):
    """The same of numbers that are in an array already, of the datatype's kind."""
    if array.size != math.prod(shape):
        raise RequestError(f"input {shown(name)}: data of shape {list(array.shape)} does not fill the shape {list(shape)}")
    return _converted(name, datatype, type_of(name, datatype), shape, array)


def _converted(name, datatype, dtype, shape, array):
    """array: None for integers that do not even fit into 64 bits."""
    if dtype.kind in "iu" and (array is None or array.size):
        limits = np.iinfo(dtype)
        if array is None or array.max() > limits.max or array.min() < limits.min:
            raise RequestError(f"input {shown(name)}: data beyond {datatype} (allowed: {limits.min} to {limits.max})")
    with np.errstate(over="ignore"):  # to infinity, as a client's own conversion would
        return array.astype(dtype).reshape(shape)


def narrowed(name, array, dtype):
    """The array in the engine's type: 64-bit integers where they fit into 32 bits, else as it is."""
    if array.dtype == dtype:
        return array
    if array.dtype != np.int64 or dtype != np.int32:
        raise RequestError(f"input {shown(name)} is {name_of_any(array.dtype)}, the model takes {name_of(dtype)}")
    limits = np.iinfo(np.int32)
    if array.size and (array.max() > limits.max or array.min() < limits.min):
        raise RequestError(f"input {shown(name)}: INT64 numbers that do not fit into INT32, which the model takes")
    return array.astype(np.int32)


def name_of_any(dtype):
    return "INT64" if dtype == np.int64 else name_of(dtype)
