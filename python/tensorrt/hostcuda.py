# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime for machines without a GPU, by the names of cuda-python's module cudart.

    from tensorrt import hostcuda as cudart

Device memory is host memory and streams run in the caller's thread. Each function gives a tuple: a cudaError_t, then its
results. The machine's own CUDA runtime, where there is one, is not touched.
"""
import ctypes
import enum
import os


def _load():
    here = os.path.dirname(os.path.realpath(__file__))
    package = os.path.dirname(os.path.abspath(__file__))
    tried = []
    for folder in (os.path.join(package, "..", "tensorwright", "lib"), os.path.join(package, "..", "..", "lib"), os.path.join(here, "..", "..", "lib")):
        path = os.path.normpath(os.path.join(folder, "hostcuda", "libcudart.so.12"))
        if os.path.exists(path):
            return ctypes.CDLL(path)
        tried.append(path)
    raise ImportError("tensorrt.hostcuda: the CUDA runtime for machines without a GPU is not installed; it was looked for at " + ", ".join(tried))


_library = _load()
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
cudaMemcpyKind = _Number("cudaMemcpyKind", {"cudaMemcpyHostToHost": 0, "cudaMemcpyHostToDevice": 1, "cudaMemcpyDeviceToHost": 2, "cudaMemcpyDeviceToDevice": 3, "cudaMemcpyDefault": 4})

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
    """The number of an address: an int, a handle, an object with __index__ or the buffer protocol (its memory), or None."""
    if value is None:
        return None
    try:
        return ctypes.c_void_p(value.__index__() if hasattr(value, "__index__") and not hasattr(value, "__array_interface__") else int(value.__array_interface__["data"][0]))
    except AttributeError:
        view = memoryview(value)
        if view.readonly:
            return ctypes.cast(ctypes.c_char_p(bytes(view)), ctypes.c_void_p)
        return ctypes.cast((ctypes.c_char * view.nbytes).from_buffer(view.cast("B")), ctypes.c_void_p)


def _call(name, *arguments):
    return cudaError_t(getattr(_library, name)(*arguments))


def _allocate(name, *arguments):
    pointer = ctypes.c_void_p()
    error = _call(name, ctypes.byref(pointer), *arguments)
    return error, pointer.value or 0
