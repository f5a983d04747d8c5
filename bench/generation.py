#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: generation.py [SHAPE...] [options]      (PYTHONPATH with our Python module; numpy, onnx, on the CPU onnxruntime, on a GPU torch)

One token at batch 1 of decoders whose shapes users have (bench/models/decoder.py; seeded weights), and prompts. On the CPU beside other engines
(--peers; generation_peers.py), on a GPU (FP16) beside torch.compile with a static cache in a CUDA graph. Greedy tokens are compared first: all contenders continue one prompt; FP16 ones
and peers that round more than ours by logits. Then rounds in turns, those who wait being stopped (CPU) or idle (GPU). Medians of rounds.

  floor_ms   bytes of the weights that a token reads / the rate at which this many threads read memory; `over_floor`: ours over that, the median of
             rounds; copy_floor_ms, over_copy_floor: by the rate at which they copy (read and written)
  step_ms, prefill_ms {contender: median}, ratio: best peer / ours, median over rounds; ratio_rounded: likewise, of peers that round activations to 8 bits, over
             ours of the model that says that they may be (`ours_rounded`, with --rounded)

With --keep FOLDER models and engines stay there, and another run by the same library begins with them. --clock cpu counts the time that processes get, for
one thread on a machine that others use.

JSON by record.py: --json FILE.
"""
import argparse
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
import types

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models"), os.path.join(HERE, "bench_models")]
import decoder  # noqa: E402
from generation_peers import PACKAGES, PEERS, rounds_more, with_rounding  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def library_digest():
    """Of the libnvinfer that this process has."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split()[-1] for line in file if "libnvinfer.so" in line}
    with open(min(paths), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def imported(path, half):
    """The model as a network, with all that it needs until it is built; half: in FP16, also the caches and logits that it is given."""
    import tensorrt as trt
    logger = trt.Logger(trt.Logger.ERROR)
    trt.init_libnvinfer_plugins(logger, "")
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(path):
        sys.exit(str(parser.get_error(0)))
    config = builder.create_builder_config()
    if half:
        config.set_flag(trt.BuilderFlag.FP16)
        inputs = (network.get_input(i) for i in range(network.num_inputs))
        outputs = (network.get_output(i) for i in range(network.num_outputs))
        for tensor in (*(t for t in inputs if t.name.startswith("past")), *outputs):
            tensor.dtype = trt.float16
    return types.SimpleNamespace(logger=logger, builder=builder, network=network, parser=parser, config=config)


class Ours:
    """An engine of two profiles: steps of one token, and prompts of up to `prompt` tokens."""

    def __init__(self, path, shape, capacity, prompt, dtype, gpu):
        import tensorrt as trt
        made = imported(path, gpu)
        for least, best, most in ((1, 1, 1), (1, prompt, prompt)):
            profile = made.builder.create_optimization_profile()
            for name in ("input_ids", "position_ids"):
                profile.set_shape(name, (1, least), (1, best), (1, most))
            made.config.add_optimization_profile(profile)
        begin = time.time()
        kept = f"{os.path.splitext(path)[0]}-{prompt}-{os.environ.get('TENSORWRIGHT_NUM_THREADS', '')}-{library_digest()}.plan"
        if not os.path.exists(kept):
            plan = made.builder.build_serialized_network(made.network, made.config)
            with open(kept, "wb") as file:
                file.write(plan)
        self.build_s = time.time() - begin
        with open(kept, "rb") as file:
            self.engine = trt.Runtime(made.logger).deserialize_cuda_engine(file.read())
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

    def profile(self, number, tokens):
        """Layers of a step (number 0) or a prompt (1) by time."""
        import tensorrt as trt

        class Times(trt.IProfiler):
            def __init__(self):
                trt.IProfiler.__init__(self)
                self.of = {}

            def report_layer_time(self, layer, ms):
                self.of.setdefault(layer, []).append(ms)
        self._bind(number, tokens)
        times = self.contexts[number].profiler = Times()
        for _ in range(20):
            self.contexts[number].execute_async_v3(self.stream.cuda_stream)
        ordered = sorted(((statistics.median(t) * 1e3, layer) for layer, t in times.of.items()), reverse=True)
        print(f"{tokens} tokens: {len(ordered)} layers, {sum(t for t, _ in ordered):.0f} us one by one")
        for t, layer in ordered[:24]:
            print(f"{t:8.2f} us {layer[:120]}")


class Torch:
    """The same decoder in PyTorch with a static cache: one token compiled by torch.compile, max-autotune, and captured in a CUDA graph."""

    def load(self, path, shape):
        """Weights."""
        import onnx
        import torch
        self.torch, self.shape, self.past = torch, shape, 0
        model = onnx.load(path, load_external_data=False)
        data = np.memmap(os.path.join(os.path.dirname(path), "model.data"), np.uint8, "r")
        self.w = {}
        for t in model.graph.initializer:
            if t.external_data:
                where = {e.key: e.value for e in t.external_data}
                raw = data[int(where["offset"]):int(where["offset"]) + int(where["length"])]
                self.w[t.name] = torch.from_numpy(raw.view(np.float16 if t.data_type == 10 else np.float32).reshape(tuple(t.dims)).copy()).cuda().half()
            else:
                self.w[t.name] = torch.from_numpy(onnx.numpy_helper.to_array(t).copy()).cuda()
        names = ("qkv", "out", "widen", "gate", "up", "narrow", "head")
        self.w = {k: v.t().contiguous() if k.split(".")[-1] in names else v for k, v in self.w.items()}

    def __init__(self, path, shape, capacity):
        self.load(path, shape)
        torch = self.torch
        self.caches = [[torch.zeros(1, shape.groups, capacity, shape.size, dtype=torch.float16, device="cuda") for _ in range(2)] for _ in range(shape.layers)]
        self.ids, self.at = torch.zeros(1, 1, dtype=torch.int64, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
        self.columns = torch.arange(capacity, device="cuda")
        begin = time.time()
        with torch.no_grad():
            self.function = torch.compile(self.forward, mode="max-autotune-no-cudagraphs", fullgraph=True, dynamic=False)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self.function(self.ids, self.at)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream):
                self.logits = self.function(self.ids, self.at)
        self.build_s = time.time() - begin

    def forward(self, ids, at):
        torch, s, w = self.torch, self.shape, self.w
        f = torch.nn.functional
        x = f.embedding(ids, w["tokens"])
        if s.positions:
            x = x + f.embedding(at[None], w["positions"])
        else:
            c, sines = w["cosines"][at].half()[:, None], w["sines"][at].half()[:, None]

        def norm(name, x):
            if s.positions:
                return f.layer_norm(x, (s.width,), w[name], w[name + ".bias"], 1e-5)
            return f.rms_norm(x, (s.width,), w[name], 1e-5)

        def linear(name, x):
            return f.linear(x, w[name], w.get(name + ".bias"))

        def turned(x):
            a, b = x.chunk(2, -1)
            return torch.cat([a * c - b * sines, b * c + a * sines], -1)
        mask = (self.columns <= at)[None, None, None]
        for i in range(s.layers):
            qkv = linear(f"{i}.qkv", norm(f"{i}.before", x)).view(1, 1, -1, s.size).transpose(1, 2)
            q, k, v = qkv.split((s.heads, s.groups, s.groups), 1)
            if not s.positions:
                q, k = turned(q), turned(k)
            keys, values = self.caches[i]
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            y = f.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=s.heads != s.groups)
            x = x + linear(f"{i}.out", y.transpose(1, 2).reshape(1, 1, s.width))
            y = norm(f"{i}.between", x)
            y = f.gelu(linear(f"{i}.widen", y), approximate="tanh") if s.positions else f.silu(linear(f"{i}.gate", y)) * linear(f"{i}.up", y)
            x = x + linear(f"{i}.narrow", y)
        return f.linear(norm("last", x), w["tokens"] if s.tied else w["head"])

    def begin(self, ids):
        self.past = 0
        for token in ids:
            logits = self.step([token])
        return logits

    def step(self, ids):
        self.ids.fill_(ids[0])
        self.at.fill_(self.past)
        self.past += 1
        self.run()
        return self.logits.float().cpu().numpy().reshape(-1)

    def run(self):
        self.graph.replay()
        self.torch.cuda.synchronize()

    def prepare(self, past):
        self.past = past
        self.step([5])


def gpu_milliseconds(torch, graph, replays=50):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    begin.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / replays


def on_gpu(name, options, folder):
    import torch
    shape, path = decoder.SHAPES[name], os.path.join(folder, "model.onnx")
    ours = Ours(path, shape, options.capacity, options.prompt, np.float16, True)
    rng = np.random.default_rng(3)
    start = rng.integers(0, shape.vocabulary, 9).tolist()
    tokens, first = greedy(lambda call, *given: getattr(ours, call)(*given), start, options.tokens)
    row = {"model": name, "precision": "fp16", "past": options.past, "capacity": options.capacity, "build_s": {"ours": ours.build_s}, "step_ms": {}}
    models = {"ours": ours}
    if not options.skip_peers:
        peer = models["torch_compile"] = Torch(path, shape, options.capacity)
        row["build_s"]["torch_compile"] = peer.build_s
        right, wanted = greedy(lambda call, *given: getattr(peer, call)(*given), start, options.tokens)
        row["equal_tokens"] = sum(a == b for a, b in zip(tokens, right))
        row["logits_error"] = float(np.abs(first - wanted).max() / np.abs(wanted).max())
    times = {kind: [] for kind in models}
    for model in models.values():
        model.prepare(options.past)
    for _ in range(options.rounds):
        for kind, model in models.items():
            times[kind].append(gpu_milliseconds(torch, model.graphs[0] if kind == "ours" else model.graph))
    row["step_ms"] = {kind: statistics.median(t) for kind, t in times.items()}
    if "torch_compile" in times:
        row["step_ratio"] = statistics.median(b / a for a, b in zip(times["ours"], times["torch_compile"]))
    ours.prompt(rng.integers(0, shape.vocabulary, options.prompt).tolist())
    row["prefill_ms"] = {"ours": statistics.median(gpu_milliseconds(torch, ours.graphs[1], 5) for _ in range(3))}
    if options.profile:
        ours.profile(0, 1)
        ours.profile(1, options.prompt)
    return row


def seconds_of(run, least, clock, fewest=1):
    """Of one run, the median of as many as take `least` seconds, `fewest` at least. What `run.before` does is not counted."""
    before = getattr(run, "before", lambda: None)
    before()
    run()
    taken, begin = [], time.perf_counter()
    while len(taken) < fewest or time.perf_counter() - begin < least:
        before()
        start = clock()
        run()
        taken.append(clock() - start)
    return statistics.median(taken)


def serve(pipe, kind, arguments):
    """A contender in a process of its own: answers calls. What fails is an answer, too."""
    threads = arguments.pop("threads")
    os.environ["TENSORWRIGHT_NUM_THREADS"] = str(threads)
    os.environ["TENSORWRIGHT_DEVICE"] = "cpu"
    try:
        if kind == "ours_rounded":
            arguments["path"] = with_rounding(arguments["path"])
        model = Ours(**arguments, gpu=False) if kind.startswith("ours") else PEERS[kind](**arguments, threads=threads)
        pipe.send(model.build_s)
        while True:
            call, *given = pipe.recv()
            if call == "time":
                what, value, seconds, clock = given
                pipe.send(seconds_of(model.prepare(value) if what == "step" else model.prompt(value), seconds, CLOCKS[clock]))
            else:
                pipe.send(getattr(model, call)(*given))
    except BaseException as error:
        pipe.send(RuntimeError(f"{kind}: {error!r}"))
        raise


class Remote:
    def __init__(self, kind, arguments):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=serve, args=(theirs, kind, dict(arguments)), daemon=True)
        self.process.start()
        theirs.close()
        self.build_s = self._answer()
        os.kill(self.process.pid, signal.SIGSTOP)

    def _answer(self):
        answer = self.pipe.recv()
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    def call(self, *what):
        os.kill(self.process.pid, signal.SIGCONT)
        self.pipe.send(what)
        answer = self._answer()
        os.kill(self.process.pid, signal.SIGSTOP)
        return answer

    def end(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def memory_rates(threads, clock, seconds=0.3):
    """Bytes a second that so many processes read from memory together, and copy (what is read and what is written)."""
    def one(pipe):
        x, y = np.ones(16 << 20, np.uint64), np.ones(16 << 20, np.uint64)
        # The fastest reader that NumPy has.
        for work, size in ((lambda: np.bitwise_or.reduce(x), x.nbytes), (lambda: np.copyto(y, x), 2 * x.nbytes)):
            work()
            pipe.send(0)
            pipe.recv()
            count, begin, start = 0, time.perf_counter(), clock()
            while time.perf_counter() - begin < seconds:
                work()
                count += 1
            pipe.send(count * size / (clock() - start))
    pipes = []
    for _ in range(threads):
        mine, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("fork").Process(target=one, args=(theirs,), daemon=True).start()
        pipes.append(mine)
    rates = []
    for _ in range(2):
        for pipe in pipes:
            pipe.recv()
        for pipe in pipes:
            pipe.send(0)
        rates.append(sum(pipe.recv() for pipe in pipes))
    return rates


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
    models = {kind: Remote(kind, arguments) for kind in ("ours", *(["ours_rounded"] if options.rounded else []), *options.peers)}
    rng = np.random.default_rng(3)
    start = rng.integers(0, shape.vocabulary, 9).tolist()
    said = {kind: greedy(m.call, start, options.tokens) for kind, m in models.items()}
    tokens, first = said.pop("ours")
    row = {"model": name, "bits": options.bits or 32, "threads": threads, "past": options.past, "prompt": options.prompt,
           "equal": {kind: tokens == right for kind, (right, _) in said.items()},
           "logits_error": {kind: float(np.abs(first - wanted).max() / np.abs(wanted).max()) for kind, (_, wanted) in said.items()},
           "build_s": {k: m.build_s for k, m in models.items()}}
    for kind, (right, _) in said.items():
        if tokens != right and not rounds_more(kind, options.bits) and kind != "ours_rounded":
            print(f"{name}: {kind} has other tokens: {tokens} {right}, logits by {row['logits_error'][kind]:.2e}")
    times = {(what, kind): [] for what in ("step", "prefill") for kind in models}
    rates, prompt = [], rng.integers(0, shape.vocabulary, options.prompt).tolist()
    for number in range(options.rounds):
        rates.append(memory_rates(threads, CLOCKS[options.clock]))
        for what, value in (("step", options.past), ("prefill", prompt))[:1 if options.skip_prefill else 2]:
            for kind in (list(models) if number % 2 else list(models)[::-1]):
                times[what, kind].append(models[kind].call("time", what, value, options.seconds, options.clock))
    for m in models.values():
        m.end()
    bytes_read = shape.weights * (options.bits / 8 + 4 / options.block if options.bits else 4) + (0 if not options.bits or not shape.tied else shape.width * shape.vocabulary * 4)
    read, copied = (statistics.median(r) for r in zip(*rates))
    row["floor_ms"], row["copy_floor_ms"] = bytes_read / read * 1e3, bytes_read / copied * 1e3
    for what in ("step", "prefill")[:1 if options.skip_prefill else 2]:
        row[what + "_ms"] = {k: statistics.median(times[what, k]) * 1e3 for k in models}
        # Over the best of them in each round, of those that round no more than ours and of the others.
        for name, rounds in (("_ratio", False), ("_ratio_rounded", True)):
            if kinds := [k for k in options.peers if rounds_more(k, options.bits) == rounds]:
                own = "ours_rounded" if rounds and options.rounded else "ours"
                row[what + name] = statistics.median(min(others) / a for a, *others in zip(*(times[what, k] for k in (own, *kinds))))
    # Others on the machine change all of a round together.
    for name, which in (("over_floor", 0), ("over_copy_floor", 1)):
        row[name] = statistics.median(t * r[which] / bytes_read for t, r in zip(times["step", "ours"], rates))
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
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--peers", default="onnxruntime", help=f"on the CPU: of {', '.join(PEERS)}; several with commas")
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--keep", help="a folder for models and engines")
    parser.add_argument("--rounded", action="store_true", help="with --bits, also ours with activations of 8 bits (CPU)")
    parser.add_argument("--skip-prefill", action="store_true", help="tokens alone (CPU)")
    parser.add_argument("--skip-peers", action="store_true", help="ours alone (GPU)")
    parser.add_argument("--profile", action="store_true", help="our layers by time (GPU)")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    unknown = [p for p in options.peers if p not in PEERS]
    if unknown:
        parser.error(f"--peers: {unknown[0]} is none (known: {', '.join(PEERS)})")
    if options.clock == "cpu" and options.threads != "1":
        parser.error("--clock cpu is for one thread (--threads 1): the time of several is no time that a token takes")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.shapes:
            at = os.path.join(options.keep or folder, f"{name}-{options.bits}-{options.block}-{options.capacity}")
            if not os.path.exists(os.path.join(at, "model.onnx")):
                decoder.write(decoder.SHAPES[name], at, options.capacity, np.float16 if options.gpu else np.float32, options.bits, options.block)
            if options.gpu:
                rows.append(on_gpu(name, options, at))
                print(json.dumps(rows[-1]), flush=True)
                continue
            if "onnxruntime_genai" in options.peers and not os.path.exists(os.path.join(at, "open", "model.onnx")):
                decoder.write(decoder.SHAPES[name], os.path.join(at, "open"), options.capacity, np.float32, options.bits, options.block, "batch")
            for threads in map(int, options.threads.split(",")):
                rows.append(on_cpu(name, options, threads, at))
                print(json.dumps(rows[-1]), flush=True)
    if options.json:
        if options.gpu:
            import torch
            facts = header(torch.cuda.get_device_name(0), versions={"torch": torch.__version__})
        else:
            versions = {p: importlib.metadata.version(PACKAGES.get(p, p)) for p in options.peers}
            facts = header(cpu_name(), versions=versions)
        write_record(options.json, {**facts, "rows": rows})


if __name__ == "__main__":
    main()
