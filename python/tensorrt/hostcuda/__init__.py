# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime for machines without a GPU, by the names of cuda-python's module cudart.

    from tensorrt import hostcuda as cudart

There are also the driver's names (`from tensorrt.hostcuda import cuda, cudart`) and PyCUDA's (`import tensorrt.hostcuda.pycuda.driver as
cuda`, `import tensorrt.hostcuda.pycuda.autoinit`), those that programs of TensorRT use.

Device memory is host memory and streams run in the caller's thread. Each function gives a tuple: a cudaError_t, then its
results. The machine's own CUDA runtime, where there is one, is not touched.
"""

import ctypes
import enum

from .. import _machine

_library = ctypes.CDLL(_machine.stand_in())
_library.cudaGetErrorName.restype = ctypes.c_char_p
_library.cudaGetErrorString.restype = ctypes.c_char_p


class _Number(enum.IntEnum):
    """An enumeration that takes any number: those without a name are shown as numbers."""

    @classmethod
    def _missing_(cls, value):
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"unknown({value})"
        member._value_ = value
        return member


cudaError_t = _Number(
    "cudaError_t",
    {
        "cudaSuccess": 0,
        "cudaErrorInvalidValue": 1,
        "cudaErrorMemoryAllocation": 2,
        "cudaErrorInitializationError": 3,
        "cudaErrorInsufficientDriver": 35,
        "cudaErrorInvalidMemcpyDirection": 21,
        "cudaErrorNoDevice": 100,
        "cudaErrorInvalidDevice": 101,
        "cudaErrorInvalidResourceHandle": 400,
        "cudaErrorNotReady": 600,
        "cudaErrorNotSupported": 801,
        "cudaErrorStreamCaptureUnsupported": 900,
        "cudaErrorUnknown": 999,
    },
)
cudaMemcpyKind = _Number(
    "cudaMemcpyKind",
    {
        "cudaMemcpyHostToHost": 0,
        "cudaMemcpyHostToDevice": 1,
        "cudaMemcpyDeviceToHost": 2,
        "cudaMemcpyDeviceToDevice": 3,
        "cudaMemcpyDefault": 4,
    },
)

cudaStreamDefault, cudaStreamNonBlocking = 0, 1
cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming = 0, 1, 2
cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped, cudaHostAllocWriteCombined = 0, 1, 2, 4
cudaMemAttachGlobal, cudaMemAttachHost = 1, 2


class _Handle:
    """A handle of the runtime; int() gives its number."""

    def __init__(self, init_value=0):
        self._value = int(init_value)

    def __int__(self):
        return self._value

    __index__ = __int__

    def getPtr(self):
        """The number of the handle."""
        return self._value

    def __eq__(self, other):
        return isinstance(other, (_Handle, int)) and int(self) == int(other)

    def __hash__(self):
        return hash(self._value)

    def __repr__(self):
        return f"<{type(self).__name__} {self._value:#x}>"


class cudaStream_t(_Handle):
    """A stream."""


class cudaEvent_t(_Handle):
    """An event."""


def _address(value):
    """The number of an address: an int, a handle, or an object with the buffer protocol, whose memory is meant."""
    if value is None or isinstance(value, (int, _Handle)):
        return ctypes.c_void_p(int(value or 0))
    if hasattr(value, "__array_interface__"):
        return ctypes.c_void_p(value.__array_interface__["data"][0])
    try:
        view = memoryview(value)
    except TypeError:
        return ctypes.c_void_p(int(value))
    # The caller holds the object during the call.
    if view.readonly:
        return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p)
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(view)))


def _call(name, *arguments):
    return cudaError_t(getattr(_library, name)(*arguments))


def _allocate(name, *arguments):
    pointer = ctypes.c_void_p()
    error = _call(name, ctypes.byref(pointer), *arguments)
    return error, pointer.value or 0


def _size(number):
    return ctypes.c_size_t(int(number))


def cudaMalloc(size):
    """(error, address) of new memory."""
    return _allocate("cudaMalloc", _size(size))


def cudaMallocHost(size):
    """(error, address) of new host memory."""
    return _allocate("cudaMallocHost", _size(size))


def cudaHostAlloc(size, flags=cudaHostAllocDefault):
    """(error, address) of new host memory."""
    return _allocate("cudaHostAlloc", _size(size), ctypes.c_uint(flags))


def cudaMallocManaged(size, flags=cudaMemAttachGlobal):
    """(error, address) of new memory that host and device see."""
    return _allocate("cudaMallocManaged", _size(size), ctypes.c_uint(flags))


def cudaMallocAsync(size, hStream):
    """(error, address) of new memory, in the order of the stream."""
    return _allocate("cudaMallocAsync", _size(size), _address(hStream))


def cudaFree(devPtr):
    """(error,): gives memory back."""
    return (_call("cudaFree", _address(devPtr)),)


def cudaFreeHost(ptr):
    """(error,): gives host memory back."""
    return (_call("cudaFreeHost", _address(ptr)),)


def cudaFreeAsync(devPtr, hStream):
    """(error,): gives memory back, in the order of the stream."""
    return (_call("cudaFreeAsync", _address(devPtr), _address(hStream)),)


def cudaMemcpy(dst, src, count, kind):
    """(error,): copies count bytes."""
    return (_call("cudaMemcpy", _address(dst), _address(src), _size(count), ctypes.c_int(kind)),)


def cudaMemcpyAsync(dst, src, count, kind, stream):
    """(error,): copies count bytes, in the order of the stream."""
    return (_call("cudaMemcpyAsync", _address(dst), _address(src), _size(count), ctypes.c_int(kind), _address(stream)),)


def cudaMemset(devPtr, value, count):
    """(error,): sets count bytes."""
    return (_call("cudaMemset", _address(devPtr), ctypes.c_int(value), _size(count)),)


def cudaMemsetAsync(devPtr, value, count, stream):
    """(error,): sets count bytes, in the order of the stream."""
    return (_call("cudaMemsetAsync", _address(devPtr), ctypes.c_int(value), _size(count), _address(stream)),)


def cudaMemGetInfo():
    """(error, free bytes, all bytes)."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    return _call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total)), free.value, total.value


def _make(kind, name, *arguments):
    handle = ctypes.c_void_p()
    error = _call(name, ctypes.byref(handle), *arguments)
    return error, kind(handle.value or 0)


def cudaStreamCreate():
    """(error, stream)."""
    return _make(cudaStream_t, "cudaStreamCreate")


def cudaStreamCreateWithFlags(flags):
    """(error, stream)."""
    return _make(cudaStream_t, "cudaStreamCreateWithFlags", ctypes.c_uint(flags))


def cudaStreamCreateWithPriority(flags, priority):
    """(error, stream)."""
    return _make(cudaStream_t, "cudaStreamCreateWithPriority", ctypes.c_uint(flags), ctypes.c_int(priority))


def cudaStreamDestroy(stream):
    """(error,)."""
    return (_call("cudaStreamDestroy", _address(stream)),)


def cudaStreamSynchronize(stream):
    """(error,): waits for the stream."""
    return (_call("cudaStreamSynchronize", _address(stream)),)


def cudaStreamQuery(stream):
    """(error,): cudaErrorNotReady while there is work."""
    return (_call("cudaStreamQuery", _address(stream)),)


def cudaStreamWaitEvent(stream, event, flags=0):
    """(error,): the stream goes on after the event."""
    return (_call("cudaStreamWaitEvent", _address(stream), _address(event), ctypes.c_uint(flags)),)


def cudaEventCreate():
    """(error, event)."""
    return _make(cudaEvent_t, "cudaEventCreate")


def cudaEventCreateWithFlags(flags):
    """(error, event)."""
    return _make(cudaEvent_t, "cudaEventCreateWithFlags", ctypes.c_uint(flags))


def cudaEventDestroy(event):
    """(error,)."""
    return (_call("cudaEventDestroy", _address(event)),)


def cudaEventRecord(event, stream):
    """(error,): the event stands for what the stream has been given so far."""
    return (_call("cudaEventRecord", _address(event), _address(stream)),)


def cudaEventQuery(event):
    """(error,): cudaErrorNotReady until the event has come."""
    return (_call("cudaEventQuery", _address(event)),)


def cudaEventSynchronize(event):
    """(error,): waits for the event."""
    return (_call("cudaEventSynchronize", _address(event)),)


def cudaEventElapsedTime(start, end):
    """(error, milliseconds) between two events."""
    ms = ctypes.c_float()
    return _call("cudaEventElapsedTime", ctypes.byref(ms), _address(start), _address(end)), ms.value


def cudaDeviceSynchronize():
    """(error,): waits for all streams."""
    return (_call("cudaDeviceSynchronize"),)


def cudaDeviceReset():
    """(error,)."""
    return (_call("cudaDeviceReset"),)


def _number(name):
    value = ctypes.c_int()
    return _call(name, ctypes.byref(value)), value.value


def cudaGetDeviceCount():
    """(error, number of devices)."""
    return _number("cudaGetDeviceCount")


def cudaGetDevice():
    """(error, device)."""
    return _number("cudaGetDevice")


def cudaSetDevice(device):
    """(error,)."""
    return (_call("cudaSetDevice", ctypes.c_int(device)),)


def cudaRuntimeGetVersion():
    """(error, version)."""
    return _number("cudaRuntimeGetVersion")


def cudaDriverGetVersion():
    """(error, version)."""
    return _number("cudaDriverGetVersion")


def cudaGetLastError():
    """(error,): the last one of this thread, which is forgotten."""
    return (_call("cudaGetLastError"),)


def cudaPeekAtLastError():
    """(error,): the last one of this thread."""
    return (_call("cudaPeekAtLastError"),)


def cudaGetErrorName(error):
    """(cudaSuccess, name as bytes)."""
    return cudaError_t.cudaSuccess, _library.cudaGetErrorName(ctypes.c_int(error))


def cudaGetErrorString(error):
    """(cudaSuccess, text as bytes)."""
    return cudaError_t.cudaSuccess, _library.cudaGetErrorString(ctypes.c_int(error))
