#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: generation_shapes.py [SHAPE...] [options]      (PYTHONPATH with our Python module; numpy, onnx, onnxruntime)

A step of one token of several sequences, and a prompt, of decoders of seeded weights (bench/models/decoder.py), on one thread of a CPU beside ONNX Runtime
with I/O binding, in FP32, FP16 and by weights of 4 bits. Both read caches where they are. Each engine is built and loaded in processes of its own; times are
those that the thread got on the CPU, so that others may use the machine. A row for each: medians of rounds in turns.

  ours_ms, onnxruntime_ms, ratio   of a step of `batch` sequences behind `past` tokens, or of a prompt of `prompt` tokens; ratio: ONNX Runtime's over ours
  error                            of the logits, largest difference over the largest logit
  over_floor                       of steps: our time over that in which the thread reads as many bytes from memory as a step reads weights
  memory_over                      what the process has more of its own with an engine that has run all its batches, whose plan is in a mapped file, over weights, caches
                                   and logits, less 1

JSON by record.py: --json FILE.
"""
import argparse
import importlib.metadata
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models")]
import decoder  # noqa: E402
from generation import imported, memory_rates, seconds_of  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402

PRECISIONS = {"fp32": (np.float32, 0), "fp16": (np.float16, 0), "int4": (np.float32, 4)}
BLOCK = 32
TYPES = {"INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "HALF": np.float16, "BOOL": bool}


class Case:
    def __init__(self, options):
        self.name, self.precision, self.capacity, self.past = options.shapes[0], options.precisions, options.capacity, options.past
        self.shape = decoder.SHAPES[self.name]
        self.dtype, self.bits = PRECISIONS[self.precision]
        self.folder = os.path.join(options.keep, f"{self.name}-{self.precision}-{self.capacity}")
        self.model = os.path.join(self.folder, "model.onnx")
        self.plan = os.path.join(self.folder, f"{options.isa}.plan")
        self.runs = [(int(b), 1) for b in options.batches.split(",")] + ([(1, options.prompt)] if options.prompt else [])  # sequences, tokens of each

    def weight_bytes(self):
        tied = self.shape.width * self.shape.vocabulary * 4 if self.bits and self.shape.tied else 0  # rows of tokens are not read in 4 bits
        return self.shape.weights * (self.bits / 8 + 4 / BLOCK if self.bits else self.dtype().nbytes) + tied

    def cache_bytes(self, sequences):
        return 2 * self.shape.layers * sequences * self.shape.groups * self.capacity * self.shape.size * self.dtype().nbytes

    def dims(self, name, sequences, tokens):
        if name in ("input_ids", "position_ids"):
            return (sequences, tokens)
        return (sequences, self.capacity) if name == "attention_mask" else (sequences, self.shape.groups, self.capacity, self.shape.size)

    def values(self, name, sequences, tokens):
        past, dims, random = self.past if tokens == 1 else 0, self.dims(name, sequences, tokens), np.random.default_rng(0)
        if name == "input_ids":
            return random.integers(0, self.shape.vocabulary, dims)
        if name == "position_ids":
            return np.broadcast_to(past + np.arange(tokens), dims)
        if name == "attention_mask":
            return np.broadcast_to(np.arange(self.capacity) < past + tokens, dims)
        return random.standard_normal(dims) * 0.1


def build(case):
    if not os.path.exists(case.model):
        decoder.write(case.shape, case.folder, case.capacity, case.dtype, case.bits, BLOCK, batch="batch")
    made = imported(case.model, False)
    for sequences, tokens in case.runs:
        profile = made.builder.create_optimization_profile()
        for i in range(made.network.num_inputs):
            tensor = made.network.get_input(i)
            if -1 in tuple(tensor.shape):
                profile.set_shape(tensor.name, *[case.dims(tensor.name, sequences, tokens)] * 3)
        made.config.add_optimization_profile(profile)
    with open(case.plan, "wb") as file:
        file.write(made.builder.build_serialized_network(made.network, made.config))


def anonymous():
    """Bytes that this process has in memory, but what is in files."""
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))


class Ours:
    def __init__(self, case):
        import tensorrt as trt
        self.trt, self.case = trt, case
        self.logger = trt.Logger(trt.Logger.ERROR)
        trt.init_libnvinfer_plugins(self.logger, "")
        self.runtime, before = trt.Runtime(self.logger), anonymous()
        with open(case.plan, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.engine = self.runtime.deserialize_cuda_engine(self.data)
        self.bound = [self._bound(number, *run) for number, run in enumerate(case.runs)]
        for run, _ in self.bound:
            run()
        wanted = case.weight_bytes() + sum(case.cache_bytes(sequences) for sequences, _ in case.runs)
        wanted += sum(outputs["logits"].nbytes for _, outputs in self.bound)
        self.memory_over = (anonymous() - before) / wanted - 1

    def _bound(self, number, sequences, tokens):
        context, held = self.engine.create_execution_context(), {}
        context.set_optimization_profile_async(number, 0)
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        inputs = [n for n in names if self.engine.get_tensor_mode(n) == self.trt.TensorIOMode.INPUT]
        for name in inputs:
            context.set_input_shape(name, self.case.dims(name, sequences, tokens))
        for name in [*inputs, *(n for n in names if n not in inputs)]:
            cache, dtype = name.replace("present.", "past_key_values."), TYPES[self.engine.get_tensor_dtype(name).name]
            if cache not in held:
                values = self.case.values(name, sequences, tokens) if name in inputs else np.zeros(tuple(context.get_tensor_shape(name)))
                held[cache] = np.ascontiguousarray(values, dtype)
            context.set_tensor_address(name, held[cache].ctypes.data)

        def run():
            if not context.execute_async_v3(0):
                sys.exit("the run failed")
        return run, held


def peers(case):
    """Runs of ONNX Runtime, with what gives their logits."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session, made = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"]), []
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(bool)": bool}
    for sequences, tokens in case.runs:
        binding, values = session.io_binding(), {}
        for given in session.get_inputs():
            array = np.ascontiguousarray(case.values(given.name, sequences, tokens), types[given.type])
            values[given.name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(given.name, values[given.name])
        names = [o.name for o in session.get_outputs()]
        for name in names:
            if cache := values.get(name.replace("present.", "past_key_values.")):
                binding.bind_ortvalue_output(name, cache)
            else:
                binding.bind_output(name, "cpu")
        made.append((lambda b=binding: session.run_with_iobinding(b), lambda b=binding, i=names.index("logits"): b.get_outputs()[i].numpy()))
    return made


def measure(case, options):
    rows, ours = [], Ours(case)
    for (sequences, tokens), (run, held), (peer, logits) in zip(case.runs, ours.bound, peers(case)):
        peer()
        run()
        wanted, rounds = logits().astype(np.float64), []
        # Ours gives the last token's alone where it is asked for no more.
        error = np.abs(held["logits"] - wanted[:, -held["logits"].shape[1]:]).max() / np.abs(wanted).max()
        for _ in range(options.rounds):
            read = memory_rates(1, time.process_time)[0]
            rounds.append((*(seconds_of(r, options.seconds, time.process_time, 3) for r in (run, peer)), read))
        row = {"model": case.name, "precision": case.precision, "isa": options.isa, "batch": sequences}
        row |= {"past": case.past} if tokens == 1 else {"prompt": tokens}
        row |= {"ours_ms": statistics.median(a for a, _, _ in rounds) * 1e3, "onnxruntime_ms": statistics.median(b for _, b, _ in rounds) * 1e3,
                "ratio": statistics.median(b / a for a, b, _ in rounds), "error": float(error)}
        if tokens == 1:
            row["over_floor"] = statistics.median(a * read / case.weight_bytes() for a, _, read in rounds)
        rows.append(row | {"memory_over": ours.memory_over})
    return rows


def child(options, *arguments):
    environment = {**os.environ, "TENSORWRIGHT_NUM_THREADS": "1", "TENSORWRIGHT_DEVICE": "cpu"}
    if options.isa != "native":
        environment["TENSORWRIGHT_CPU_ISA"] = options.isa
    same = [f"--{name}={getattr(options, name)}" for name in ("isa", "keep", "batches", "prompt", "past", "capacity", "rounds", "seconds")]
    return subprocess.run([sys.executable, os.path.abspath(__file__), *arguments, *same], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shapes", nargs="*", default=["smollm2_135m", "qwen_few", "phi_few", "gemma_few"])
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--isa", default="native", help="native, avx2; several with commas. ONNX Runtime takes what the CPU has")
    parser.add_argument("--batches", default="1,4,8")
    parser.add_argument("--prompt", type=int, default=0, help="tokens; 0: no prompts")
    parser.add_argument("--past", type=int, default=256)
    parser.add_argument("--capacity", type=int, default=288)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--keep", help="a folder for models and engines")
    parser.add_argument("--json")
    parser.add_argument("--step", choices=("build", "measure"), help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.past >= options.capacity or options.prompt > options.capacity:
        parser.error("--capacity is too small for --past or --prompt")
    if options.step:
        case = Case(options)
        if options.step == "build":
            build(case)
        else:
            print(json.dumps(measure(case, options)))
        return
    rows = []
    kept, isas = options.keep, options.isa.split(",")
    for name in options.shapes:
        for precision in options.precisions.split(","):
            with tempfile.TemporaryDirectory() as folder:  # of one at a time: they are large
                options.keep = kept or folder
                for options.isa in isas:
                    child(options, name, f"--precisions={precision}", "--step=build")
                    for row in json.loads(child(options, name, f"--precisions={precision}", "--step=measure")):
                        rows.append(row)
                        print(json.dumps(row), flush=True)
    if options.json:
        write_record(options.json, {**header(cpu_name(), versions={"onnxruntime": importlib.metadata.version("onnxruntime")}), "rows": rows})


if __name__ == "__main__":
    main()
