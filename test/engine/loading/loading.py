#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: loading.py FOLDER with lib/libnvinfer.so.8, lib/hostcuda/libcudart.so.*, loading/engine_client.so

A Python program on a machine without a GPU: ctypes loads everything RTLD_LOCAL, and engines run on its streams.
"""
import ctypes
import subprocess
import sys

SUCCESS, TO_DEVICE, TO_HOST = 0, 1, 2


def run(folder, order):
    loaded = {name: ctypes.CDLL(f"{folder}/{name}") for name in order}
    client = loaded["loading/engine_client.so"]
    client.clientLastError.restype = ctypes.c_char_p
    runtimes = [library for name, library in loaded.items() if "libcudart" in name]
    first, last = runtimes[0], runtimes[-1]
    x, y, stream = (ctypes.c_void_p() for _ in range(3))
    size = ctypes.c_size_t(16)
    source, result = (ctypes.c_float * 4)(-1, 2, -3, 4), (ctypes.c_float * 4)()
    assert first.cudaStreamCreate(ctypes.byref(stream)) == SUCCESS
    assert first.cudaMalloc(ctypes.byref(x), size) == SUCCESS and last.cudaMalloc(ctypes.byref(y), size) == SUCCESS
    assert last.cudaMemcpyAsync(x, source, size, TO_DEVICE, stream) == SUCCESS
    status = client.clientRelu(x, y, stream, None)
    assert status == 0, client.clientLastError()
    assert last.cudaMemcpyAsync(result, y, size, TO_HOST, stream) == SUCCESS
    assert last.cudaStreamSynchronize(stream) == SUCCESS
    assert list(result) == [0, 2, 0, 4], list(result)
    assert last.cudaStreamDestroy(stream) == SUCCESS


def main():
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        run(folder, sys.argv[2:])
        return 0
    client, nvinfer = "loading/engine_client.so", "lib/libnvinfer.so.8"
    runtimes = [f"lib/hostcuda/libcudart.so.{major}" for major in ("11.0", "12", "13")]
    orders = [order for r in runtimes for order in ([r, nvinfer, client], [nvinfer, r, client], [nvinfer, client, r])]
    orders += [[runtimes[0], client, runtimes[2]], [client, *runtimes]]
    broken = 0
    for order in orders:
        child = subprocess.run([sys.executable, __file__, folder, *order], capture_output=True, text=True, check=False)
        if child.returncode != 0:
            broken += 1
            print(f"{' '.join(order)}: {child.returncode}\n{child.stdout}{child.stderr}")
    print(f"{len(orders)} ways of loading, {broken} broken")
    return 1 if broken else 0


sys.exit(main())
