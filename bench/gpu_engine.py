# SPDX-License-Identifier: Apache-2.0
"""This engine on torch's tensors and streams, by gpu_engine.cpp's functions."""
import ctypes
import statistics

import torch

FP16, HALF_IO, NO_TF32 = 1, 2, 4  # gpu_engine.cpp's flags
TYPES = {0: torch.float32, 1: torch.float16, 3: torch.int32}  # nvinfer1::DataType
MESSAGE_BYTES = 1 << 14


class EngineError(Exception):
    pass


def load(path):
    library = ctypes.CDLL(path)
    text, size, handle = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
    for name, result, arguments in (
            ("twBuild", handle, [text, text, text, ctypes.c_uint32, text, size]),
            ("twFree", None, [handle]),
            ("twBuildSeconds", ctypes.c_double, [handle]),
            ("twPlanBytes", size, [handle]),
            ("twTensors", ctypes.c_int32, [handle]),
            ("twName", text, [handle, ctypes.c_int32]),
            ("twIsInput", ctypes.c_int32, [handle, text]),
            ("twType", ctypes.c_int32, [handle, text]),
            ("twShape", ctypes.c_int32, [handle, text, ctypes.POINTER(ctypes.c_int64)]),
            ("twBind", ctypes.c_int32, [handle, text, handle]),
            ("twEnqueue", ctypes.c_int32, [handle, handle, text, size]),
            ("twEnqueueSeconds", ctypes.c_double, [handle, handle])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _path(name):
    return name.encode() if name else None


class Engine:
    """An engine, its context, and tensors for its inputs and outputs on `device`."""

    def __init__(self, library, model, flags, device, cache_in=None, cache_out=None):
        self.library = library
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        self.handle = library.twBuild(_path(model), _path(cache_in), _path(cache_out), flags, message, MESSAGE_BYTES)
        self.messages = message.value.decode(errors="replace").strip()
        if not self.handle:
            raise EngineError("build: " + self.messages)
        self.build_seconds = library.twBuildSeconds(self.handle)
        self.plan_bytes = library.twPlanBytes(self.handle)
        self.inputs, self.outputs = {}, {}
        for i in range(library.twTensors(self.handle)):
            name = library.twName(self.handle, i)
            dims = (ctypes.c_int64 * 8)()
            rank = library.twShape(self.handle, name, dims)
            dtype = TYPES[library.twType(self.handle, name)]
            tensor = torch.empty(tuple(dims[:rank]), dtype=dtype, device=device)
            place = self.inputs if library.twIsInput(self.handle, name) else self.outputs
            place[name.decode()] = tensor
        self.bind()

    def close(self):
        if self.handle:
            self.library.twFree(self.handle)
        self.handle = None

    def bind(self, outputs=None):
        """The engine's own tensors; `outputs` in place of its own ones."""
        for name, tensor in {**self.inputs, **(outputs or self.outputs)}.items():
            if not self.library.twBind(self.handle, name.encode(), tensor.data_ptr()):
                raise EngineError(f"setTensorAddress({name}) failed")

    def enqueue(self, stream):
        """stream: the number of a CUDA stream; 0 on the CPU."""
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        if not self.library.twEnqueue(self.handle, stream, message, MESSAGE_BYTES):
            raise EngineError(message.value.decode(errors="replace").strip())

    def host_seconds(self, stream, synchronize, runs=200, fresh_addresses=True):
        """The median host time of one enqueue on an idle stream. fresh_addresses: outputs rotate through more places than the
        engine keeps graphs for, so that each run launches kernel by kernel; without, it replays its own graph."""
        sets = [{n: torch.empty_like(t) for n, t in self.outputs.items()} for _ in range(8)] if fresh_addresses else [None]
        times = []
        for i in range(runs + 20):
            if fresh_addresses:
                self.bind(sets[i % len(sets)])
            synchronize()
            times.append(self.library.twEnqueueSeconds(self.handle, stream))
        synchronize()
        self.bind()
        if min(times) < 0:
            raise EngineError("enqueueV3 failed")
        return statistics.median(times[20:])
