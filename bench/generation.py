#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: generation.py [SHAPE...] [options]      (PYTHONPATH with our Python module; numpy, onnx, on the CPU onnxruntime, on a GPU torch)

One token at batch 1 of decoders whose shapes users have (bench/models/decoder.py; seeded weights), and prompts. On the CPU beside ONNX Runtime with caches
that stay where they are, on a GPU (FP16) beside torch.compile with a static cache in a CUDA graph. Greedy tokens are compared first: all contenders continue one prompt; FP16 ones
by logits. Then rounds in turns, those who wait being stopped (CPU) or idle (GPU). Medians of rounds.

  floor_ms   bytes of the weights that a token reads / the rate at which this many threads read memory; `over_floor`: ours over that
  step_ms, prefill_ms {contender: median}, ratio: best peer / ours, median over rounds

JSON by record.py: --json FILE.
"""
import argparse
import json
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models"), os.path.join(HERE, "bench_models")]
import decoder  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402


class Ours:
    """An engine of two profiles: steps of one token, and prompts of up to `prompt` tokens."""

    def __init__(self, path, shape, capacity, prompt, dtype, gpu):
        import tensorrt as trt
        logger = trt.Logger(trt.Logger.ERROR)
        trt.init_libnvinfer_plugins(logger, "")
        builder = trt.Builder(logger)
        network = builder.create_network(1)
        parser = trt.OnnxParser(network, logger)
        if not parser.parse_from_file(path):
            sys.exit(str(parser.get_error(0)))
        config = builder.create_builder_config()
        if gpu:
            config.set_flag(trt.BuilderFlag.FP16)
        for least, best, most in ((1, 1, 1), (1, prompt, prompt)):
            profile = builder.create_optimization_profile()
            for name in ("input_ids", "position_ids"):
                profile.set_shape(name, (1, least), (1, best), (1, most))
            config.add_optimization_profile(profile)
        if gpu:
            for i in range(network.num_inputs):
                if network.get_input(i).name.startswith("past"):
                    network.get_input(i).dtype = trt.float16
            for i in range(network.num_outputs):
                network.get_output(i).dtype = trt.float16
        begin = time.time()
        plan = builder.build_serialized_network(network, config)
        self.build_s = time.time() - begin
        if os.environ.get("PLAN"):
            open(os.environ["PLAN"], "wb").write(plan)
        self.engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
        del plan
        self.gpu, self.capacity, self.logits = gpu, capacity, None
        self.room = {}
        if gpu:
            import torch
            self.torch, self.stream = torch, torch.cuda.Stream()
        cache = (1, shape.groups, capacity, shape.size)
        for i in range(shape.layers):
            for kind in ("key", "value"):
                self._give(f"past_key_values.{i}.{kind}", np.zeros(cache, np.float16 if gpu else dtype))
        self._give("logits", np.zeros((1, 1, shape.vocabulary), np.float16 if gpu else dtype))
        self._give("attention_mask", np.zeros((1, capacity), np.int32))
        self.contexts, self.graphs = [], [None, None]
        for number in range(2):
            context = self.engine.create_execution_context()
            context.set_optimization_profile_async(number, self.stream.cuda_stream if gpu else 0)
            self.contexts.append(context)
        self.past = 0

    def _give(self, name, array):
        if self.gpu:
            array = self.torch.from_numpy(array).cuda()
        self.room[name] = array

    def _set(self, name, array):
        if self.gpu:
            self.room[name].copy_(self.torch.from_numpy(array))
        else:
            self.room[name][...] = array

    def _address(self, name):
        x = self.room[name]
        return x.data_ptr() if self.gpu else x.ctypes.data

    def _bind(self, number, s):
        context = self.contexts[number]
        for name in ("input_ids", "position_ids"):
            if name not in self.room or self.room[name].shape[1] != s:
                self._give(name, np.zeros((1, s), np.int32))
            context.set_input_shape(name, (1, s))
        for i in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(i)
            if self.engine.get_tensor_location(name).name == "HOST":
                sys.exit(f"{name} is read on the host")
            context.set_tensor_address(name, self._address(name.replace("present.", "past_key_values.")))

    def begin(self, ids):
        """Caches are empty but for these tokens; the last logits."""
        self.past = 0
        number = 0 if len(ids) == 1 else 1
        self._bind(number, len(ids))
        self.graphs[number] = None
        return self.step(ids, number)

    def step(self, ids, number=0):
        s = len(ids)
        if number == 0 and self.graphs[0] is None:
            self._bind(0, 1)
        self._set("input_ids", np.array([ids], np.int32))
        self._set("position_ids", np.arange(self.past, self.past + s, dtype=np.int32)[None])
        mask = np.zeros((1, self.capacity), np.int32)
        mask[:, :self.past + s] = 1
        self._set("attention_mask", mask)
        self.past += s
        self.run(number)
        return self.last()

    def last(self):
        y = self.room["logits"]
        return (y.float().cpu().numpy() if self.gpu else y).reshape(-1)

    def run(self, number=0):
        if not self.gpu:
            if not self.contexts[number].execute_async_v3(0):
                sys.exit("the run failed")
            return
        torch = self.torch
        torch.cuda.synchronize()
        if self.graphs[number] is None:
            self.contexts[number].execute_async_v3(self.stream.cuda_stream)
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self.contexts[number].execute_async_v3(torch.cuda.current_stream().cuda_stream)
            self.graphs[number] = graph
        self.graphs[number].replay()
        torch.cuda.synchronize()

    def prepare(self, past):
        """For timing of one token behind `past` others."""
        self.past = past
        self.step([5])
        return lambda: self.run(0)

    def prompt(self, ids):
        self.begin(ids)
        return lambda: self.run(1)


class OnnxRuntime:
    def __init__(self, path, shape, capacity, prompt, dtype, threads):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        begin = time.time()
        self.session = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.build_s, self.capacity, self.past = time.time() - begin, capacity, 0
        cache = (1, shape.groups, capacity, shape.size)
        self.caches = {f"{i}.{k}": ort.OrtValue.ortvalue_from_numpy(np.zeros(cache, dtype)) for i in range(shape.layers) for k in ("key", "value")}
        self.logits = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 1, shape.vocabulary), dtype))

    def bound(self, ids):
        binding, s = self.session.io_binding(), len(ids)
        binding.bind_cpu_input("input_ids", np.array([ids], np.int64))
        binding.bind_cpu_input("position_ids", np.arange(self.past, self.past + s, dtype=np.int64)[None])
        mask = np.zeros((1, self.capacity), np.int64)
        mask[:, :self.past + s] = 1
        binding.bind_cpu_input("attention_mask", mask)
        for name, value in self.caches.items():
            binding.bind_ortvalue_input("past_key_values." + name, value)
            binding.bind_ortvalue_output("present." + name, value)
        binding.bind_ortvalue_output("logits", self.logits)
        return binding

    def begin(self, ids):
        self.past = 0
        return self.step(ids)

    def step(self, ids):
        binding = self.bound(ids)
        self.past += len(ids)
        self.session.run_with_iobinding(binding)
        return self.logits.numpy().reshape(-1)

    def prepare(self, past):
        self.past = past
        binding = self.bound([5])
        return lambda: self.session.run_with_iobinding(binding)

    def prompt(self, ids):
        self.past = 0
        binding = self.bound(ids)
        return lambda: self.session.run_with_iobinding(binding)


def seconds_of(run, least):
    """Of one run, the median of as many as take `least` seconds."""
    run()
    taken, begin = [], time.perf_counter()
    while not taken or time.perf_counter() - begin < least:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def serve(pipe, kind, arguments):
    """A contender in a process of its own: answers calls."""
    threads = arguments.pop("threads")
    os.environ["TENSORWRIGHT_NUM_THREADS"] = str(threads)
    os.environ["TENSORWRIGHT_DEVICE"] = "cpu"
    model = Ours(**arguments, gpu=False) if kind == "ours" else OnnxRuntime(**arguments, threads=threads)
    pipe.send(model.build_s)
    while True:
        call, *given = pipe.recv()
        if call == "time":
            what, value, seconds = given
            pipe.send(seconds_of(model.prepare(value) if what == "step" else model.prompt(value), seconds))
        else:
            pipe.send(getattr(model, call)(*given))


class Remote:
    def __init__(self, kind, arguments):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=serve, args=(theirs, kind, dict(arguments)), daemon=True)
        self.process.start()
        theirs.close()
        self.build_s = self.pipe.recv()
        os.kill(self.process.pid, signal.SIGSTOP)

    def call(self, *what):
        os.kill(self.process.pid, signal.SIGCONT)
        self.pipe.send(what)
        answer = self.pipe.recv()
        os.kill(self.process.pid, signal.SIGSTOP)
        return answer

    def end(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def read_rate(threads, seconds=0.6):
    """Bytes a second that so many processes read from memory together."""
    def one(pipe):
        x = np.ones(32 << 20, np.float32)
        x.sum()
        pipe.send(0)
        pipe.recv()
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            x.max()
            count += 1
        pipe.send(count * x.nbytes / (time.perf_counter() - begin))
    pipes = []
    for _ in range(threads):
        mine, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("fork").Process(target=one, args=(theirs,), daemon=True).start()
        pipes.append(mine)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send(0)
    return sum(pipe.recv() for pipe in pipes)


def greedy(call, prompt, count):
    tokens, logits = [], call("begin", prompt)
    first = logits
    for _ in range(count):
        tokens.append(int(np.argmax(logits)))
        logits = call("step", tokens[-1:])
    return tokens, first


def on_cpu(name, options, threads, folder):
    shape, dtype = decoder.SHAPES[name], np.float32
    arguments = {"path": os.path.join(folder, "model.onnx"), "shape": shape, "capacity": options.capacity, "prompt": options.prompt, "dtype": dtype, "threads": threads}
    models = {kind: Remote(kind, arguments) for kind in ("ours", "onnxruntime")}
    rng = np.random.default_rng(3)
    start = rng.integers(0, shape.vocabulary, 9).tolist()
    (tokens, first), (right, wanted) = (greedy(m.call, start, options.tokens) for m in models.values())
    row = {"model": name, "bits": options.bits or 32, "threads": threads, "past": options.past, "prompt": options.prompt, "equal": tokens == right,
           "logits_error": float(np.abs(first - wanted).max() / np.abs(wanted).max()), "build_s": {k: m.build_s for k, m in models.items()}}
    if not row["equal"]:
        print(f"{name}: tokens differ: {tokens} {right}, logits by {row['logits_error']:.2e}")
    times = {(what, kind): [] for what in ("step", "prefill") for kind in models}
    rates, prompt = [], rng.integers(0, shape.vocabulary, options.prompt).tolist()
    for number in range(options.rounds):
        rates.append(read_rate(threads))
        for what, value in (("step", options.past), ("prefill", prompt)):
            for kind in (list(models) if number % 2 else list(models)[::-1]):
                times[what, kind].append(models[kind].call("time", what, value, options.seconds))
    for m in models.values():
        m.end()
    bytes_read = shape.weights * (options.bits / 8 + 4 / options.block if options.bits else 4) + (0 if not options.bits or not shape.tied else shape.width * shape.vocabulary * 4)
    row["floor_ms"] = bytes_read / statistics.median(rates) * 1e3
    for what in ("step", "prefill"):
        row[what + "_ms"] = {k: statistics.median(times[what, k]) * 1e3 for k in models}
        row[what + "_ratio"] = statistics.median(b / a for a, b in zip(times[what, "ours"], times[what, "onnxruntime"]))
    row["over_floor"] = row["step_ms"]["ours"] / row["floor_ms"]
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shapes", nargs="*", default=["gpt2", "qwen2.5_0.5b"])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--capacity", type=int, default=1024)
    parser.add_argument("--past", type=int, default=256)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--bits", type=int, default=0)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.shapes:
            at = os.path.join(folder, name)
            decoder.write(decoder.SHAPES[name], at, options.capacity, np.float32, options.bits, options.block)
            for threads in map(int, options.threads.split(",")):
                rows.append(on_cpu(name, options, threads, at))
                print(json.dumps(rows[-1]), flush=True)
    if options.json:
        import onnxruntime
        facts = header(cpu_name(), versions={"onnxruntime": onnxruntime.__version__})
        write_record(options.json, {**facts, "rows": rows})


if __name__ == "__main__":
    main()
