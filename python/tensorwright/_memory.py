# SPDX-License-Identifier: Apache-2.0
"""Where tensors of a run lie: in arrays of the host for engines on the CPU, in memory of the CUDA driver for those on a GPU."""

import contextlib
import ctypes
import os
import sys
import threading

import numpy as np
from tensorrt._machine import gpus


class Host:
    """An engine on the CPU reads and writes arrays where they are."""

    def take(self, array):
        """(address, what keeps it alive) of an input."""
        return array.ctypes.data, array

    def empty(self, shape, dtype, nbytes, kept):
        """(address, what fetch() takes) of an output whose shape is known. kept: a list for memory that may be used again, once nobody
        else refers to it: fresh memory costs more than small engines do, as the system clears each page of it."""
        for block, address, start in kept:
            if sys.getrefcount(block) == 3:  # by the list, by the name, by this call
                return address, np.ndarray(shape, dtype, block, start)
        block = np.empty(nbytes + 256, np.uint8)
        address = block.ctypes.data
        start = -address % 256
        kept.append((block, address + start, start))
        if len(kept) > 2:  # one that the caller has, and one for the next run
            del kept[0]
        return address + start, np.ndarray(shape, dtype, block, start)

    def fetch(self, held, shape, dtype, nbytes):
        """The array, when the run has ended."""
        return held

    def make(self, nbytes):
        """(address, what keeps it alive) of an output; aligned as the library asks of allocators."""
        block = np.empty(max(nbytes, 1) + 255, np.uint8)
        start = -block.ctypes.data % 256
        return block.ctypes.data + start, block[start : start + max(nbytes, 1)]

    def read(self, held, nbytes):
        """The bytes of an output, as an array that stays valid."""
        return held[:nbytes]

    def write(self, address, array):
        """Puts an array there."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)

    def clear(self, address, nbytes):
        ctypes.memset(address, 0, nbytes)

    def zeros(self, nbytes):
        """What make() gives, full of zeros. Pages that nobody writes to take no memory."""
        block = np.zeros(max(nbytes, 1) + 255, np.uint8)
        start = -block.ctypes.data % 256
        return block.ctypes.data + start, block

    def at(self, address, nbytes):
        """The bytes that are there, as an array that stays valid."""
        return np.frombuffer(ctypes.string_at(address, nbytes), np.uint8)

    def wait(self, stream):
        """Runs on the CPU have ended when the call returns."""

    def used(self):
        """Bytes of the device that are in use, by whomever. Those of the host are none."""
        return 0


class _Block:
    """Memory of the driver, given back with the object."""

    def __init__(self, driver, nbytes):
        self.driver, self.address = driver, ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(nbytes, 1)))

    def __del__(self):
        if self.address:
            with contextlib.suppress(RuntimeError):
                self.driver.call("cuMemFree_v2", self.address)


class Driver:
    """The driver's memory on one GPU, in its primary context, which the CUDA runtime of a program shares."""

    def __init__(self, index):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context, device = ctypes.c_void_p(), ctypes.c_int()
        self._checked("cuInit", ctypes.c_uint(0))
        self._checked("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._checked("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def _checked(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
            raise RuntimeError(f"CUDA driver: {name} failed: {(text.value or b'unknown error').decode()} ({status})")

    def call(self, name, *arguments):
        self._checked("cuCtxSetCurrent", self.context)
        self._checked(name, *arguments)

    def take(self, array):
        address, block = self.make(array.nbytes)
        if array.nbytes:
            self.call("cuMemcpyHtoD_v2", block.address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return address, block

    def empty(self, shape, dtype, nbytes, kept):
        return self.make(nbytes)

    def fetch(self, held, shape, dtype, nbytes):
        return self.read(held, nbytes).view(dtype).reshape(shape)

    def make(self, nbytes):
        block = _Block(self, nbytes)
        return block.address.value, block

    def read(self, held, nbytes):
        array = np.empty(nbytes, np.uint8)
        if nbytes:
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), held.address, ctypes.c_size_t(nbytes))
        return array

    def write(self, address, array):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def copy(self, target, source, nbytes):
        self.call("cuMemcpyDtoD_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(nbytes))

    def clear(self, address, nbytes):
        if nbytes:
            self.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))

    def zeros(self, nbytes):
        address, block = self.make(nbytes)
        self.clear(address, nbytes)
        return address, block

    def at(self, address, nbytes):
        array = np.empty(nbytes, np.uint8)
        if nbytes:
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(nbytes))
        return array

    def wait(self, stream):
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def used(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value


def resolve(device):
    """What `device` means here: "cpu" or "cuda:N". None: TENSORWRIGHT_DEVICE, else a GPU where there is one."""
    device = device or os.environ.get("TENSORWRIGHT_DEVICE")
    if device is None:
        return "cuda:0" if gpus() else "cpu"
    device = str(device).replace("gpu", "cuda")
    kind, _, index = device.partition(":")
    if kind == "cuda" and (not index or index.isdigit()):
        return f"cuda:{int(index or 0)}"
    if device != "cpu":
        raise ValueError(f"device: {device!r} is none (allowed: 'cpu', 'cuda', 'cuda:N')")
    return device


def memory_of(device):
    """The memory of a device that resolve() gave."""
    return Host() if device == "cpu" else Driver(int(device.partition(":")[2]))


_environment = threading.RLock()


@contextlib.contextmanager
def chosen(device, **more):
    """Builders, runtimes and parsers that are made inside are for this device, and for models with quantized operators: they read
    the environment when they are made. more: other variables."""
    wanted = {"TENSORWRIGHT_DEVICE": device, "TENSORWRIGHT_ONNX_QUANTIZED_OPS": "1", **more}
    with _environment:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
