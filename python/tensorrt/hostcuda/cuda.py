# SPDX-License-Identifier: Apache-2.0
"""Of cuda-python's module cuda, the driver's, what programs of TensorRT use: one device, memory, copies and streams. Each function gives
a tuple: a CUresult, then its results."""

from tensorrt import hostcuda as _runtime

CUresult = _runtime._Number(
    "CUresult",
    {
        "CUDA_SUCCESS": 0,
        "CUDA_ERROR_INVALID_VALUE": 1,
        "CUDA_ERROR_OUT_OF_MEMORY": 2,
        "CUDA_ERROR_NOT_INITIALIZED": 3,
        "CUDA_ERROR_NO_DEVICE": 100,
        "CUDA_ERROR_INVALID_DEVICE": 101,
        "CUDA_ERROR_INVALID_HANDLE": 400,
        "CUDA_ERROR_NOT_READY": 600,
        "CUDA_ERROR_NOT_SUPPORTED": 801,
        "CUDA_ERROR_UNKNOWN": 999,
    },
)


class CUstream(_runtime.cudaStream_t):
    """A stream."""


class CUcontext(_runtime._Handle):
    """A context, of which there is one."""


def _driver(result):
    """A result of the runtime: the numbers of its errors are the driver's."""
    return (CUresult(int(result[0])), *result[1:])


def cuInit(Flags):
    """(result,)."""
    return (CUresult.CUDA_SUCCESS if Flags == 0 else CUresult.CUDA_ERROR_INVALID_VALUE,)


def cuDeviceGetCount():
    """(result, number of devices)."""
    return CUresult.CUDA_SUCCESS, 1


def cuDeviceGet(ordinal):
    """(result, device)."""
    return (CUresult.CUDA_SUCCESS, 0) if ordinal == 0 else (CUresult.CUDA_ERROR_INVALID_DEVICE, None)


def cuCtxCreate(flags, dev):
    """(result, context)."""
    return (CUresult.CUDA_SUCCESS, CUcontext(1)) if int(dev) == 0 else (CUresult.CUDA_ERROR_INVALID_DEVICE, None)


def cuDevicePrimaryCtxRetain(dev):
    """(result, context)."""
    return cuCtxCreate(0, dev)


def cuCtxSetCurrent(ctx):
    """(result,)."""
    return (CUresult.CUDA_SUCCESS,)


def cuCtxSynchronize():
    """(result,): waits for all streams."""
    return _driver(_runtime.cudaDeviceSynchronize())


def cuCtxDestroy(ctx):
    """(result,)."""
    return (CUresult.CUDA_SUCCESS,)


def cuMemAlloc(bytesize):
    """(result, address) of new memory."""
    return _driver(_runtime.cudaMalloc(bytesize))


def cuMemFree(dptr):
    """(result,): gives memory back."""
    return _driver(_runtime.cudaFree(dptr))


def cuMemAllocHost(bytesize):
    """(result, address) of new host memory."""
    return _driver(_runtime.cudaMallocHost(bytesize))


def cuMemFreeHost(p):
    """(result,): gives host memory back."""
    return _driver(_runtime.cudaFreeHost(p))


def cuMemcpyHtoD(dstDevice, srcHost, ByteCount):
    """(result,): copies to the device."""
    return _driver(_runtime.cudaMemcpy(dstDevice, srcHost, ByteCount, _runtime.cudaMemcpyKind.cudaMemcpyHostToDevice))


def cuMemcpyDtoH(dstHost, srcDevice, ByteCount):
    """(result,): copies from the device."""
    return _driver(_runtime.cudaMemcpy(dstHost, srcDevice, ByteCount, _runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))


def cuMemcpyHtoDAsync(dstDevice, srcHost, ByteCount, hStream):
    """(result,): copies to the device, in the order of the stream."""
    kind = _runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    return _driver(_runtime.cudaMemcpyAsync(dstDevice, srcHost, ByteCount, kind, hStream))


def cuMemcpyDtoHAsync(dstHost, srcDevice, ByteCount, hStream):
    """(result,): copies from the device, in the order of the stream."""
    kind = _runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    return _driver(_runtime.cudaMemcpyAsync(dstHost, srcDevice, ByteCount, kind, hStream))


def cuStreamCreate(Flags):
    """(result, stream)."""
    result, stream = _driver(_runtime.cudaStreamCreateWithFlags(Flags))
    return result, CUstream(int(stream))


def cuStreamSynchronize(hStream):
    """(result,): waits for the stream."""
    return _driver(_runtime.cudaStreamSynchronize(hStream))


def cuStreamDestroy(hStream):
    """(result,)."""
    return _driver(_runtime.cudaStreamDestroy(hStream))


def cuGetErrorName(error):
    """(result, name as bytes)."""
    return CUresult.CUDA_SUCCESS, CUresult(int(error)).name.encode()
