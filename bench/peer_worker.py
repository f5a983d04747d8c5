# SPDX-License-Identifier: Apache-2.0
"""A peer as one process of cpu_peers.py.

usage: peer_worker.py onnxruntime|openvino|none MODEL.onnx THREADS [NAME=FILE...]

Speaks the lines of engine_worker.cpp: "ready {json}" after the first inference, then "run N", "memory",
"outputs PREFIX", "quit". Inputs and outputs are bound once; a run neither copies nor allocates them. `none` imports
numpy and loads nothing: what the interpreter itself takes.
"""
import json
import sys
import time

import numpy as np


class OnnxRuntime:
    def __init__(self):
        import onnxruntime
        self.api = onnxruntime

    def load(self, model, threads, files):
        options = self.api.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = self.api.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.loaded = time.perf_counter()
        self.binding = self.session.io_binding()
        self.values = []
        for tensor in self.session.get_inputs():
            dtype = {"tensor(float)": np.float32, "tensor(int64)": np.int64}[tensor.type]
            self._bind(self.binding.bind_ortvalue_input, tensor, np.fromfile(files[tensor.name], dtype))
        self.names = [t.name for t in self.session.get_outputs()]
        self.outputs = [self._bind(self.binding.bind_ortvalue_output, t, np.zeros(t.shape, np.float32))
                        for t in self.session.get_outputs()]

    def _bind(self, bind, tensor, array):
        value = self.api.OrtValue.ortvalue_from_numpy(array.reshape(tensor.shape))
        bind(tensor.name, value)
        self.values.append(value)
        return value

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return zip(self.names, (v.numpy() for v in self.outputs))

    def facts(self):
        return {}


class OpenVino:
    def __init__(self):
        import openvino
        self.api = openvino

    def load(self, model, threads, files):
        core = self.api.Core()
        # f32: on CPUs with BF16 dot products the default computes in bf16.
        self.compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads)})
        self.loaded = time.perf_counter()
        self.request = self.compiled.create_infer_request()
        self.outputs = []
        for port in self.compiled.inputs:
            dtype = port.get_element_type().to_dtype()
            array = np.fromfile(files[port.any_name], dtype).reshape(tuple(port.get_shape()))
            self.request.set_tensor(port, self.api.Tensor(array, shared_memory=False))
        for port in self.compiled.outputs:
            tensor = self.api.Tensor(port.get_element_type(), port.get_shape())
            self.request.set_tensor(port, tensor)
            self.outputs.append((port.any_name, tensor))

    def run(self):
        self.request.start_async()
        self.request.wait()

    def results(self):
        return ((name, tensor.data) for name, tensor in self.outputs)

    def facts(self):
        return {"precision": str(self.compiled.get_property("INFERENCE_PRECISION_HINT")),
                "threads": int(self.compiled.get_property("INFERENCE_NUM_THREADS"))}


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
    files = dict(pair.rsplit("=", 1) for pair in pairs)
    start = time.perf_counter()
    engine = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[name]()
    imported = time.perf_counter()
    engine.load(model, int(threads), files)
    bound = time.perf_counter()
    engine.run()
    done = time.perf_counter()
    say("ready " + json.dumps({"import_s": imported - start, "load_s": engine.loaded - imported,
                               "context_s": bound - engine.loaded, "total_s": done - imported, **engine.facts()}))
    for line in sys.stdin:
        words = line.split()
        if words[0] == "run":
            times = []
            for _ in range(int(words[1])):
                start = time.perf_counter()
                engine.run()
                times.append(time.perf_counter() - start)
            say("times " + " ".join(f"{t:.9f}" for t in times))
        elif words[0] == "memory":
            say(f"memory {peak_memory_kib()}")
        elif words[0] == "outputs":
            names = []
            for i, (output, array) in enumerate(engine.results()):
                np.ascontiguousarray(array).tofile(words[1] + str(i))
                names.append(output)
            say("outputs " + " ".join(names))
        else:
            break


if __name__ == "__main__":
    main()
