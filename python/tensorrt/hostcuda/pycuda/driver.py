# SPDX-License-Identifier: Apache-2.0
"""Of PyCUDA's module driver, what programs of TensorRT use: memory, copies, streams, events, and contexts, which do nothing here."""

import ctypes

import numpy as np

from tensorrt import hostcuda as _runtime


class Error(Exception):
    """What a call of the runtime failed with."""


class LogicError(Error):
    """A call that is wrong."""


class MemoryError(Error, MemoryError):
    """No memory."""


def _ok(result):
    error = result[0]
    if error:
        kind = MemoryError if error == _runtime.cudaError_t.cudaErrorMemoryAllocation else LogicError
        raise kind(f"{error.name}: {_runtime.cudaGetErrorString(error)[1].decode()}")
    return result[1] if len(result) > 1 else None


class _Memory:
    """An address that is given back with the object, or by free()."""

    def __init__(self, address, free):
        self._address, self._free = address, free

    def __int__(self):
        if self._address is None:
            raise LogicError("the memory was given back")
        return self._address

    __index__ = __int__

    def free(self):
        """Gives the memory back."""
        address, self._address = int(self), None
        _ok(self._free(address))

    def __del__(self):
        if getattr(self, "_address", None) is not None:
            self._free(self._address)


class DeviceAllocation(_Memory):
    """Memory of the device; int() gives its address."""

    def as_buffer(self, size, offset=0):
        """The memory with the buffer protocol, which is the host's here."""
        return (ctypes.c_char * size).from_address(int(self) + offset)


class PagelockedHostAllocation(_Memory):
    """Memory of the host behind an array."""

    def __init__(self, shape, dtype):
        self.nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        super().__init__(_ok(_runtime.cudaMallocHost(max(1, self.nbytes))), _runtime.cudaFreeHost)
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "data": (int(self), False), "version": 3}


def mem_alloc(bytes):
    """New memory of the device."""
    return DeviceAllocation(_ok(_runtime.cudaMalloc(int(bytes))), _runtime.cudaFree)


def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    """An array in host memory from which copies to a device are fast."""
    shape = tuple(map(int, shape)) if np.iterable(shape) else (int(shape),)
    array = np.asarray(PagelockedHostAllocation(shape, np.dtype(dtype)))
    return array.reshape(shape[::-1]).T if order == "F" else array


def pagelocked_zeros(shape, dtype, order="C", mem_flags=0):
    """The same, of zeros."""
    array = pagelocked_empty(shape, dtype, order, mem_flags)
    array.fill(0)
    return array


def pagelocked_empty_like(array, mem_flags=0):
    """An array of the same shape and type."""
    return pagelocked_empty(array.shape, array.dtype, "C", mem_flags)


def mem_get_info():
    """(free bytes, all bytes)."""
    error, free, total = _runtime.cudaMemGetInfo()
    _ok((error,))
    return free, total


def to_device(array):
    """Memory of the device with a copy of the array."""
    array = np.ascontiguousarray(array)
    memory = mem_alloc(max(1, array.nbytes))
    memcpy_htod(memory, array)
    return memory


class Stream:
    """A stream; `handle` is its number."""

    def __init__(self, flags=0):
        self._stream = _ok(_runtime.cudaStreamCreateWithFlags(flags))

    @property
    def handle(self):
        return int(self._stream)

    __int__ = __index__ = lambda self: self.handle

    def synchronize(self):
        """Waits for the stream."""
        _ok(_runtime.cudaStreamSynchronize(self._stream))

    def is_done(self):
        """Whether there is no work left."""
        return _runtime.cudaStreamQuery(self._stream)[0] == _runtime.cudaError_t.cudaSuccess

    def wait_for_event(self, event):
        """Goes on after the event."""
        _ok(_runtime.cudaStreamWaitEvent(self._stream, event._event))

    def __del__(self):
        if hasattr(self, "_stream"):
            _runtime.cudaStreamDestroy(self._stream)


class Event:
    """An event of a stream."""

    def __init__(self, flags=0):
        self._event = _ok(_runtime.cudaEventCreateWithFlags(flags))

    def record(self, stream=None):
        """Stands for what the stream has been given so far."""
        _ok(_runtime.cudaEventRecord(self._event, _handle(stream)))
        return self

    def synchronize(self):
        """Waits for the event."""
        _ok(_runtime.cudaEventSynchronize(self._event))
        return self

    def query(self):
        """Whether the event has come."""
        return _runtime.cudaEventQuery(self._event)[0] == _runtime.cudaError_t.cudaSuccess

    def time_since(self, event):
        """Milliseconds from another event to this one."""
        return _ok(_runtime.cudaEventElapsedTime(event._event, self._event))

    def time_till(self, event):
        """Milliseconds from this event to another."""
        return event.time_since(self)

    def __del__(self):
        if hasattr(self, "_event"):
            _runtime.cudaEventDestroy(self._event)


def _handle(stream):
    return 0 if stream is None else stream.handle if isinstance(stream, Stream) else int(stream)


def _host(array):
    """(array, its bytes), which copies read and write as they lie in memory."""
    if not hasattr(array, "nbytes"):
        array = np.frombuffer(array, np.uint8)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the array has gaps; copies are of memory as it lies")
    return array, array.nbytes


def _copy(dest, src, nbytes, kind, stream=None, asynchronous=False):
    if asynchronous:
        _ok(_runtime.cudaMemcpyAsync(dest, src, nbytes, kind, _handle(stream)))
    else:
        _ok(_runtime.cudaMemcpy(dest, src, nbytes, kind))


def memcpy_htod(dest, src):
    """Copies an array to the device."""
    src, nbytes = _host(src)
    _copy(int(dest), src, nbytes, _runtime.cudaMemcpyKind.cudaMemcpyHostToDevice)


def memcpy_htod_async(dest, src, stream=None):
    """Copies an array to the device, in the order of the stream."""
    src, nbytes = _host(src)
    _copy(int(dest), src, nbytes, _runtime.cudaMemcpyKind.cudaMemcpyHostToDevice, stream, True)


def memcpy_dtoh(dest, src):
    """Fills an array from the device."""
    dest, nbytes = _host(dest)
    _copy(dest, int(src), nbytes, _runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost)


def memcpy_dtoh_async(dest, src, stream=None):
    """Fills an array from the device, in the order of the stream."""
    dest, nbytes = _host(dest)
    _copy(dest, int(src), nbytes, _runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream, True)


def memcpy_dtod(dest, src, size):
    """Copies from device to device."""
    _copy(int(dest), int(src), size, _runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice)


def memcpy_dtod_async(dest, src, size, stream=None):
    """Copies from device to device, in the order of the stream."""
    _copy(int(dest), int(src), size, _runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice, stream, True)


def memset_d8(dest, data, count):
    """Sets bytes."""
    _ok(_runtime.cudaMemset(int(dest), data, count))


class Device:
    """The device, of which there is one."""

    def __init__(self, number):
        if number != 0:
            raise LogicError(f"there is no device {number}")

    @staticmethod
    def count():
        """Devices that there are."""
        return 1

    def name(self):
        """What it is."""
        return "the host"

    def compute_capability(self):
        """(0, 0): it is no GPU."""
        return 0, 0

    def total_memory(self):
        """Bytes."""
        return mem_get_info()[1]

    def make_context(self, flags=0):
        """The context, which needs nothing."""
        return Context()

    retain_primary_context = make_context


class Context:
    """A context: there is one, which every thread has."""

    def push(self):
        """Does nothing."""

    def detach(self):
        """Does nothing."""

    @staticmethod
    def pop():
        """Does nothing."""

    @staticmethod
    def synchronize():
        """Waits for all streams."""
        _ok(_runtime.cudaDeviceSynchronize())

    @staticmethod
    def get_device():
        """The device."""
        return Device(0)


def init(flags=0):
    """Does nothing: there is nothing to begin."""
