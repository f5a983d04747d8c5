# SPDX-License-Identifier: Apache-2.0
"""The way of 8.5's samples with cuda-python, on a machine without a GPU: one import line differs."""

import numpy as np
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
