# SPDX-License-Identifier: Apache-2.0
"""An engine as one process of `tensorwright bench` and of bench/cpu_peers.py.

usage: _peer_worker.py onnxruntime|openvino|none MODEL.onnx THREADS [NAME=FILE...] [--shape NAME=1x3x224x224...]
       _peer_worker.py torch PROGRAM.pt2 THREADS [NAME=FILE...] [--shape NAME=1x3x224x224...]
       _peer_worker.py tensorwright ENGINE.plan THREADS [NAME=FILE...] [--shape NAME=1x3x224x224...]

Speaks the lines of bench/engine_worker.cpp: "ready {json}" after the first inference, then "run N", "clock cpu", "memory",
"outputs PREFIX", "quit". Inputs and outputs are bound once; a run neither copies nor allocates them. `none` imports
numpy and loads nothing: what the interpreter itself takes. Inputs whose shape the model leaves open need a --shape.
Outputs are written as FP32 numbers, whatever their type.
"""
import json
import sys
import time

import numpy as np


class OnnxRuntime:
    def __init__(self):
        import onnxruntime
        self.api = onnxruntime

    TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
             "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}

    def load(self, model, threads, files, shapes):
        options = self.api.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = self.api.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.loaded = time.perf_counter()
        self.binding = self.session.io_binding()
        self.values = []
        for tensor in self.session.get_inputs():
            array = read(files[tensor.name], self.TYPES[tensor.type])
            self._bind(self.binding.bind_ortvalue_input, tensor.name, array.reshape(shapes.get(tensor.name, tensor.shape)))
        self.names = [t.name for t in self.session.get_outputs()]
        for tensor in self.session.get_outputs():
            if all(isinstance(extent, int) for extent in tensor.shape):
                self._bind(self.binding.bind_ortvalue_output, tensor.name, np.zeros(tensor.shape, self.TYPES[tensor.type]))
            else:
                self.binding.bind_output(tensor.name)

    def _bind(self, bind, name, array):
        value = self.api.OrtValue.ortvalue_from_numpy(array)
        bind(name, value)
        self.values.append(value)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return zip(self.names, self.binding.copy_outputs_to_cpu())

    def facts(self):
        return {}


class OpenVino:
    def __init__(self):
        import openvino
        self.api = openvino

    def load(self, model, threads, files, shapes):
        core = self.api.Core()
        if shapes:
            model = core.read_model(model)
            model.reshape(shapes)
        # f32: on CPUs with BF16 dot products the default computes in bf16.
        self.compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads)})
        self.loaded = time.perf_counter()
        self.request = self.compiled.create_infer_request()
        self.outputs = []
        for port in self.compiled.inputs:
            dtype = port.get_element_type().to_dtype()
            array = read(files[port.any_name], dtype).reshape(tuple(port.get_shape()))
            self.request.set_tensor(port, self.api.Tensor(array, shared_memory=False))
        for port in self.compiled.outputs:
            if port.get_partial_shape().is_static:
                self.request.set_tensor(port, self.api.Tensor(port.get_element_type(), port.get_shape()))
            self.outputs.append((port.any_name, port))

    def run(self):
        self.request.start_async()
        self.request.wait()

    def results(self):
        return ((name, self.request.get_tensor(port).data) for name, port in self.outputs)

    def facts(self):
        return {"precision": str(self.compiled.get_property("INFERENCE_PRECISION_HINT")),
                "threads": int(self.compiled.get_property("INFERENCE_NUM_THREADS"))}


class Torch:
    """A program that torch.export wrote, as its graph says, on the CPU."""

    def __init__(self):
        import torch
        self.api = torch

    def load(self, program, threads, files, shapes):
        torch = self.api
        torch.set_num_threads(threads)
        program = torch.export.load(program)
        self.module, self.names = program.module(), list(program.graph_signature.user_outputs)
        self.loaded = time.perf_counter()
        kinds = {node.name: node.meta["val"].dtype for node in program.graph.nodes if node.op == "placeholder"}
        self.inputs = []
        for name in program.graph_signature.user_inputs:
            array = read(files[name], torch.empty(0, dtype=kinds[name]).numpy().dtype).reshape(shapes[name])
            self.inputs.append(torch.from_numpy(array))

    def run(self):
        with self.api.inference_mode():
            self.outputs = self.module(*self.inputs)

    def results(self):
        outputs = self.outputs if isinstance(self.outputs, (tuple, list)) else [self.outputs]
        return zip(self.names, (y.numpy() for y in outputs))

    def facts(self):
        return {"threads": self.api.get_num_threads()}


class Tensorwright:
    """This engine through the module tensorrt; the device is TENSORWRIGHT_DEVICE's, the threads are TENSORWRIGHT_NUM_THREADS's."""

    def __init__(self):
        import os

        import tensorrt

        # The file beside this one, without the package round it: its import would count as this engine's.
        from _memory import memory_of, resolve
        self.api, self.device = tensorrt, resolve(None)
        os.environ["TENSORWRIGHT_DEVICE"] = self.device
        self.memory_of = memory_of

    def load(self, plan, threads, files, shapes):
        self.memory, host = self.memory_of(self.device), self.memory_of("cpu")
        self.used_before = self.memory.used()
        self.runtime = self.api.Runtime(self.api.Logger(self.api.Logger.ERROR))
        with open(plan, "rb") as file:
            self.engine = self.runtime.deserialize_cuda_engine(file.read())
        if self.engine is None:
            sys.exit("the plan was refused")
        self.loaded = time.perf_counter()
        self.context, self.held, self.outputs = self.engine.create_execution_context(), [], []
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        for name in files:
            array = read(files[name], self.api.nptype(self.engine.get_tensor_dtype(name))).reshape(shapes[name])
            self.context.set_input_shape(name, array.shape)
            address, held = (host if self.engine.is_shape_inference_io(name) else self.memory).take(array)
            self.held.append(held)
            self.context.set_tensor_address(name, address)
        for name in names:
            if name in files:
                continue
            dtype = np.dtype(self.api.nptype(self.engine.get_tensor_dtype(name)))
            shape = tuple(self.context.get_tensor_shape(name))
            if -1 in shape:
                sys.exit(f"output {name!r} has a size that depends on data, which cannot be bound once")
            address, held = self.memory.make(dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
            self.outputs.append((name, dtype, shape, held))
            self.context.set_tensor_address(name, address)

    def run(self):
        if not self.context.execute_async_v3(0):
            sys.exit("the run failed")
        self.memory.wait(0)

    def results(self):
        for name, dtype, shape, held in self.outputs:
            yield name, self.memory.read(held, dtype.itemsize * int(np.prod(shape, dtype=np.int64))).view(dtype).reshape(shape)

    def facts(self):
        return {"device": self.device, "device_memory_mib": max(self.memory.used() - self.used_before, 0) / 2**20}


def read(path, dtype):
    """The numbers of a file, as this type: of an .npy file, whatever their type is there, else plain bytes of it."""
    return np.load(path).astype(dtype).ravel() if path.endswith(".npy") else np.fromfile(path, dtype)


def peak_memory_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main():
    name, model, threads, *pairs = sys.argv[1:]
    if name == "none":
        say("ready {}")
        sys.stdin.readline()
        say(f"memory {peak_memory_kib()}")
        return
    files, shapes, given_shape = {}, {}, False
    for pair in pairs:
        if pair == "--shape":
            given_shape = True
            continue
        tensor, value = pair.rsplit("=", 1)
        if given_shape:
            shapes[tensor] = [int(extent) for extent in value.split("x") if extent]
        else:
            files[tensor] = value
        given_shape = False
    start = time.perf_counter()
    engine = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "torch": Torch, "tensorwright": Tensorwright}[name]()
    imported = time.perf_counter()
    engine.load(model, int(threads), files, shapes)
    bound = time.perf_counter()
    engine.run()
    done = time.perf_counter()
    say("ready " + json.dumps({"import_s": imported - start, "load_s": engine.loaded - imported,
                               "context_s": bound - engine.loaded, "total_s": done - imported, **engine.facts()}))
    clock = time.perf_counter
    for line in sys.stdin:
        words = line.split()
        if words[0] == "run":
            times = []
            for _ in range(int(words[1])):
                start = clock()
                engine.run()
                times.append(clock() - start)
            say("times " + " ".join(f"{t:.9f}" for t in times))
        elif words == ["clock", "cpu"]:
            clock = time.process_time
            say("clock cpu")
        elif words[0] == "memory":
            say(f"memory {peak_memory_kib()}")
        elif words[0] == "outputs":
            names = []
            for i, (output, array) in enumerate(engine.results()):
                np.ascontiguousarray(array, np.float32).tofile(words[1] + str(i))
                names.append(output)
            say("outputs " + " ".join(names))
        else:
            break


if __name__ == "__main__":
    main()
