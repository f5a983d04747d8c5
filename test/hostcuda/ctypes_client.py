#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: ctypes_client.py libcudart.so.12

Python programs reach the stand-in through ctypes: memory, copies, streams, events, host functions, capture, and the
device's properties by the symbol that CUDA 12 headers name.
"""
import ctypes
import sys

SUCCESS, INVALID_VALUE, INVALID_HANDLE = 0, 1, 400
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class PointerAttributes(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("device", ctypes.c_int), ("devicePointer", ctypes.c_void_p), ("hostPointer", ctypes.c_void_p)]


def main():
    rt = ctypes.CDLL(sys.argv[1])
    rt.cudaGetErrorName.restype = ctypes.c_char_p

    def ok(error):
        assert error == SUCCESS, rt.cudaGetErrorName(error)

    count = ctypes.c_int()
    ok(rt.cudaGetDeviceCount(ctypes.byref(count)))
    assert count.value == 1
    properties = ctypes.create_string_buffer(1032 + 64)
    properties[1032:] = b"\xa5" * 64
    ok(rt.cudaGetDeviceProperties_v2(properties, 0))
    assert properties.value and properties.raw[1032:] == b"\xa5" * 64
    # The older symbol writes the 728 bytes of CUDA 11 and not one more.
    older = ctypes.create_string_buffer(728 + 64)
    older[728:] = b"\xa5" * 64
    ok(rt.cudaGetDeviceProperties(older, 0))
    assert older.raw[:728] == properties.raw[:728] and older.raw[728:] == b"\xa5" * 64

    stream, start, end, device = (ctypes.c_void_p() for _ in range(4))
    ok(rt.cudaStreamCreate(ctypes.byref(stream)))
    ok(rt.cudaEventCreate(ctypes.byref(start)))
    ok(rt.cudaEventCreate(ctypes.byref(end)))
    source = (ctypes.c_float * 1000)(*range(1000))
    result = (ctypes.c_float * 1000)()
    size = ctypes.c_size_t(ctypes.sizeof(source))
    ok(rt.cudaMalloc(ctypes.byref(device), size))
    ok(rt.cudaEventRecord(start, stream))
    ok(rt.cudaMemcpyAsync(device, source, size, HOST_TO_DEVICE, stream))
    ok(rt.cudaMemcpyAsync(result, device, size, DEVICE_TO_HOST, stream))
    ok(rt.cudaEventRecord(end, stream))
    ok(rt.cudaStreamSynchronize(stream))
    assert list(result) == list(source)
    ms = ctypes.c_float(-1)
    ok(rt.cudaEventElapsedTime(ctypes.byref(ms), start, end))
    assert ms.value >= 0
    attributes = PointerAttributes()
    ok(rt.cudaPointerGetAttributes(ctypes.byref(attributes), device))
    assert (attributes.type, attributes.device, attributes.devicePointer) == (2, 0, device.value)

    calls = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    ok(rt.cudaStreamBeginCapture(stream, 1))
    ok(rt.cudaLaunchHostFunc(stream, function, ctypes.c_void_p(77)))
    ok(rt.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    assert not calls
    ok(rt.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
    ok(rt.cudaGraphLaunch(executable, stream))
    ok(rt.cudaGraphLaunch(executable, stream))
    assert calls == [77, 77]
    ok(rt.cudaGraphExecDestroy(executable))
    ok(rt.cudaGraphDestroy(graph))
    ok(rt.cudaFree(device))
    assert rt.cudaFree(device) == INVALID_VALUE
    ok(rt.cudaEventDestroy(start))
    ok(rt.cudaEventDestroy(end))
    ok(rt.cudaStreamDestroy(stream))
    assert rt.cudaStreamDestroy(stream) == INVALID_HANDLE
    assert rt.cudaGetLastError() == INVALID_HANDLE and rt.cudaGetLastError() == SUCCESS
    print(f"ctypes: all as it should be on '{properties.value.decode()}'")
    return 0


sys.exit(main())
