# SPDX-License-Identifier: Apache-2.0
"""The way of 8.5's samples with cuda-python, on a machine without a GPU: one import line differs."""

import gc

import numpy as np
import pytest
import tensorrt as trt
from tensorrt import hostcuda as cudart

from models import close, conv2d
from small import B, W, convolution, engine_of


def ok(call):
    error, results = call[0], call[1:]
    assert error == cudart.cudaError_t.cudaSuccess, cudart.cudaGetErrorName(error)
    return results[0] if len(results) == 1 else results


class HostDeviceMem:
    """As in the samples: pinned memory of the host and its counterpart on the device."""

    def __init__(self, shape, dtype):
        self.nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.host_address = ok(cudart.cudaMallocHost(self.nbytes))
        import ctypes

        self.host = (
            np.ctypeslib.as_array(ctypes.cast(self.host_address, ctypes.POINTER(ctypes.c_byte)), (self.nbytes,))
            .view(dtype)
            .reshape(shape)
        )
        self.device = ok(cudart.cudaMalloc(self.nbytes))

    def free(self):
        ok(cudart.cudaFree(self.device))
        ok(cudart.cudaFreeHost(self.host_address))


def test_sample():
    engine = engine_of(*convolution())
    context = engine.create_execution_context()
    stream = ok(cudart.cudaStreamCreate())
    memory = {
        name: HostDeviceMem(tuple(engine.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name))) for name in engine
    }
    bindings = [memory[name].device for name in engine]
    x = memory["x"]
    x.host[:] = np.random.default_rng(9).standard_normal(x.host.shape)
    expected = np.maximum(conv2d(x.host, W, B, padding=1), 0)
    for run in (
        lambda: context.execute_async_v2(bindings=bindings, stream_handle=stream),
        lambda: [context.set_tensor_address(name, memory[name].device) for name in engine]
        and context.execute_async_v3(stream_handle=stream),
        lambda: context.execute_v2(bindings=bindings),
    ):
        memory["y"].host[:] = 0
        ok(cudart.cudaMemcpyAsync(x.device, x.host, x.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream))
        assert run()
        ok(
            cudart.cudaMemcpyAsync(
                memory["y"].host, memory["y"].device, memory["y"].nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream
            )
        )
        ok(cudart.cudaStreamSynchronize(stream))
        close(memory["y"].host, expected)
    for m in memory.values():
        m.free()
    ok(cudart.cudaStreamDestroy(stream))


def test_input_consumed_event():
    engine = engine_of(*convolution())
    context = engine.create_execution_context()
    event, stream = ok(cudart.cudaEventCreate()), ok(cudart.cudaStreamCreate())
    x, y = np.ones((1, 3, 8, 8), np.float32), np.zeros((1, 4, 8, 8), np.float32)
    assert context.set_input_consumed_event(event) and context.get_input_consumed_event() == int(event)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(stream)
    ok(cudart.cudaEventSynchronize(event))
    close(y, np.maximum(conv2d(x, W, B, padding=1), 0))
    assert context.set_input_consumed_event(0) and context.get_input_consumed_event() == 0
    assert context.execute_async_v2([x.ctypes.data, y.ctypes.data], stream, int(event))


def test_memory_and_errors():
    source = np.arange(100, dtype=np.int16)
    result = np.zeros_like(source)
    device = ok(cudart.cudaMalloc(source.nbytes))
    kinds = cudart.cudaMemcpyKind
    ok(cudart.cudaMemcpy(device, source, source.nbytes, kinds.cudaMemcpyHostToDevice))
    ok(cudart.cudaMemcpy(result, device, source.nbytes, kinds.cudaMemcpyDeviceToHost))
    np.testing.assert_array_equal(result, source)
    ok(cudart.cudaMemset(device, 255, source.nbytes))
    ok(cudart.cudaMemcpy(result.ctypes.data, device, source.nbytes, kinds.cudaMemcpyDefault))
    assert (result == -1).all()
    target = bytearray(4)
    ok(cudart.cudaMemcpy(device, b"text", 4, kinds.cudaMemcpyHostToDevice))
    ok(cudart.cudaMemcpy(target, device, 4, kinds.cudaMemcpyDeviceToHost))
    assert target == b"text"
    ok(cudart.cudaFree(device))
    (error,) = cudart.cudaFree(device)
    assert error == cudart.cudaError_t.cudaErrorInvalidValue and cudart.cudaGetErrorName(error)[1] == b"cudaErrorInvalidValue"
    assert cudart.cudaGetLastError() == (error,) and cudart.cudaGetLastError() == (0,)
    free, total = ok(cudart.cudaMemGetInfo())
    assert 0 < free <= total
    start, end, stream = ok(cudart.cudaEventCreate()), ok(cudart.cudaEventCreate()), ok(cudart.cudaStreamCreate())
    ok(cudart.cudaEventRecord(start, stream))
    ok(cudart.cudaEventRecord(end, stream))
    assert ok(cudart.cudaEventElapsedTime(start, end)) >= 0
    assert ok(cudart.cudaGetDeviceCount()) == 1 and ok(cudart.cudaGetDevice()) == 0
    ok(cudart.cudaStreamDestroy(stream))
    assert cudart.cudaStreamDestroy(stream)[0] == cudart.cudaError_t.cudaErrorInvalidResourceHandle
    assert cudart.cudaError_t(12345).value == 12345


def test_sample_with_pycuda():
    """The way of 8.5's samples with PyCUDA."""
    import tensorrt.hostcuda.pycuda.autoinit  # noqa: F401
    import tensorrt.hostcuda.pycuda.driver as cuda

    engine = engine_of(*convolution())
    context, stream = engine.create_execution_context(), cuda.Stream()
    host, device = {}, {}
    for binding in engine:
        size = trt.volume(engine.get_tensor_shape(binding))
        host[binding] = cuda.pagelocked_empty(size, trt.nptype(engine.get_tensor_dtype(binding)))
        device[binding] = cuda.mem_alloc(host[binding].nbytes)
    x = np.random.default_rng(9).standard_normal(tuple(engine.get_tensor_shape("x"))).astype(np.float32)
    np.copyto(host["x"], x.ravel())
    start, end = cuda.Event(), cuda.Event()
    start.record(stream)
    cuda.memcpy_htod_async(device["x"], host["x"], stream)
    assert context.execute_async_v2(bindings=[int(device[name]) for name in engine], stream_handle=stream.handle)
    cuda.memcpy_dtoh_async(host["y"], device["y"], stream)
    end.record(stream)
    stream.synchronize()
    assert end.time_since(start) >= 0 and stream.is_done()
    expected = np.maximum(conv2d(x, W, B, padding=1), 0)
    close(host["y"].reshape(expected.shape), expected)
    host["y"][:] = 0
    context.set_tensor_address("x", device["x"]), context.set_tensor_address("y", int(device["y"]))
    assert context.execute_async_v3(stream.handle)
    cuda.memcpy_dtoh(host["y"], device["y"])
    close(host["y"].reshape(expected.shape), expected)
    copy = cuda.to_device(x)
    cuda.memcpy_dtod(device["x"], copy, x.nbytes)
    copy.free()
    for use in (copy.free, lambda: cuda.memcpy_dtoh(host["x"], copy)):
        with pytest.raises(cuda.LogicError, match="was given back"):
            use()
    with pytest.raises(ValueError, match="gaps"):
        cuda.memcpy_htod(device["x"], x[:, :, ::2])
    kept = cuda.pagelocked_zeros((2, 3), np.int32)[1]
    gc.collect()
    assert kept.tolist() == [0, 0, 0]  # the memory lives as long as views of it
    cuda.Context.synchronize()
    context_of = cuda.Device(0).make_context()
    context_of.push(), context_of.pop()
    with pytest.raises(cuda.LogicError, match="no device 3"):
        cuda.Device(3)


def test_names_of_the_driver():
    from tensorrt.hostcuda import cuda, cudart as runtime

    assert runtime.cudaMalloc is cudart.cudaMalloc and runtime.cudaError_t is cudart.cudaError_t

    def call(result):
        assert isinstance(result[0], cuda.CUresult) and result[0] == cuda.CUresult.CUDA_SUCCESS, cuda.cuGetErrorName(result[0])
        return result[1] if len(result) == 2 else None

    call(cuda.cuInit(0))
    call(cuda.cuCtxCreate(0, call(cuda.cuDeviceGet(0))))
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    memory, stream = call(cuda.cuMemAlloc(x.nbytes)), call(cuda.cuStreamCreate(0))
    call(cuda.cuMemcpyHtoD(memory, x.ctypes.data, x.nbytes))
    call(cuda.cuMemcpyDtoHAsync(y, memory, x.nbytes, stream))
    call(cuda.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(x, y)
    call(cuda.cuStreamDestroy(stream)), call(cuda.cuMemFree(memory))
    assert cuda.cuDeviceGet(4)[0] == cuda.CUresult.CUDA_ERROR_INVALID_DEVICE
    assert cuda.cuGetErrorName(cuda.CUresult(1)) == (cuda.CUresult.CUDA_SUCCESS, b"CUDA_ERROR_INVALID_VALUE")
