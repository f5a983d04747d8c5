# SPDX-License-Identifier: Apache-2.0
"""One row of gpu_peers.py in a process of its own: torch.compile (TC), eager, the chain of library calls (LIB) and this engine on
one GPU, each in a CUDA graph, timed in turns.

The row's JSON is written after every step, so that a step that ends the process loses nothing that was measured before it. A step
that fails leaves its reason in `failed`, and the others go on.
"""
import contextlib
import fcntl
import json
import os
import random
import statistics
import sys
import time
import traceback

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpu_engine
import gpu_inductor_cache
import gpu_networks

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
SLOT_SECONDS = 0.02  # of one contender in one round
TOLERANCE = 1e-2     # of ||ours - reference|| / ||reference||, unless TC itself is off by more than half of that


class Contender:
    """Something that computes `outputs` from `inputs` each time it is replayed; on a GPU a captured graph."""

    def __init__(self, name, function, inputs, body, outputs=None):
        self.name, self.inputs, self.body = name, inputs, body
        self.function, self.graph = function, None
        if next(iter(inputs.values())).is_cuda:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    function()
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="relaxed"):
                result = function()
        else:
            result = function()
        self.outputs = list(outputs or result)

    def replay(self):
        if self.graph:
            self.graph.replay()
        else:
            for old, new in zip(self.outputs, self.function() or self.outputs):
                if old is not new:
                    old.copy_(new)

    def feed(self, values):
        for name, tensor in self.inputs.items():
            tensor.copy_(values[name])


def relative_error(outputs, expected):
    """The largest of ||output - expected|| / ||expected||; not a number when a value is not finite."""
    errors = []
    for output, wanted in zip(outputs, expected, strict=True):
        wanted = wanted.double()
        if tuple(output.shape) != tuple(wanted.shape):
            raise ValueError(f"the output has shape {tuple(output.shape)}, PyTorch's {tuple(wanted.shape)}")
        errors.append(((output.double() - wanted).norm() / wanted.norm()).item())
    return max(errors) if all(e == e for e in errors) else float("nan")


class Row:
    def __init__(self, network, options, path):
        self.network, self.options, self.path = network, options, path
        self.cuda = torch.cuda.is_available()  # makes no context yet
        self.device = "cuda" if self.cuda else "cpu"
        self.half = torch.float16 if self.cuda else torch.float32
        self.contenders, self.modules, self.models, self.engines = [], {}, {}, []
        self.full, self.body, self.errors = {}, {}, {}
        self.row = {"network": network.name, "batch": network.batch, "seq": network.seq, "checked": False, "failed": []}
        self.generator = torch.Generator().manual_seed(options["seed"])

    # --- steps ---

    @contextlib.contextmanager
    def step(self, name):
        start = time.time()
        print(f"--- {name}", flush=True)
        try:
            yield
        except Exception as error:  # a row goes on without what failed
            traceback.print_exc()
            self.row["failed"].append(f"{name}: {type(error).__name__}: {str(error).strip()[:600]}")
        print(f"    {time.time() - start:.2f} s", flush=True)
        self.save()

    def save(self):
        with open(self.path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.row, file)
        os.replace(self.path + ".part", self.path)

    def run(self):
        options, network = self.options, self.network
        if not self.row["failed"]:
            with self.step("inputs"):
                self.place()
        if not self.row["failed"]:
            self.peers()
            if not options["skip_ours"]:
                self.ours()
            with self.step("compare"):
                self.compare()
            with self.step("time"):
                self.time()
            with self.step("compare again"):
                self.compare()
            if self.engines:
                with self.step("host time"):
                    self.host_time()
                if network.kind == "resnet50" and network.batch == 1:
                    with self.step("cached build"):
                        self.cached_build()
        self.row["done"] = True
        self.save()

    def make_models(self):
        """On the CPU: ONNX files for the engine, modules in FP32."""
        for body in (False, True) if self.network.has_body else (False,):
            path, model = os.path.join(self.options["folder"], f"{self.network.row}{'_body' if body else ''}.onnx"), None
            if self.network.kind == "exported":
                self.network.onnx_file(path)
            else:
                model = self.network.onnx_model(body)
                with open(path, "wb") as file:
                    file.write(model.SerializeToString())
            self.models[body], self.modules[body] = path, (self.network.module(model, body), self.network.module(model, body))

    def place(self):
        """To the GPU: FP32 modules for the reference, FP16 ones for the peers, the peers' inputs."""
        for body, (exact, half) in self.modules.items():
            exact, half = exact.to(self.device), half.to(self.device, self.half)
            if self.network.channels_last:
                half = half.to(memory_format=torch.channels_last)
            self.modules[body] = exact, half
        self.make_inputs()

    def make_inputs(self):
        for body, tensors in ((False, self.full), (True, self.body)):
            if body not in self.modules:
                continue
            for name, value in self.network.inputs(self.generator, body).items():
                value = value.to(self.device)
                if value.is_floating_point():
                    value = value.to(self.half)
                if self.network.channels_last:
                    value = value.contiguous(memory_format=torch.channels_last)
                tensors[name] = value

    def add(self, name, function, body, inputs=None, outputs=None):
        inputs = inputs if inputs is not None else self.body if body else self.full
        contender = Contender(name, function, inputs, body, outputs)
        self.contenders.append(contender)
        return contender

    # --- the peers ---

    def attention(self, masked):
        """The fastest of torch's attention kernels for this shape, mask and all; a context that chooses it."""
        if self.network.kind in ("resnet50", "exported") or not self.cuda:
            return contextlib.nullcontext()
        batch, heads, length, head = self.network.attention_shape
        qkv = torch.randn((batch, length, 3, heads, head), device="cuda", dtype=torch.float16)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.zeros((batch, 1, 1, length), device="cuda", dtype=torch.float16).expand(-1, 1, length, -1) if masked else None
        times = {}
        for name, backend in BACKENDS.items():
            try:
                with sdpa_kernel(backend):
                    def attend():
                        for _ in range(10):
                            torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                        return ()
                    contender = Contender(name, attend, {"q": q}, False)
                times[name] = statistics.median(self.slot(contender, 10)[0] for _ in range(5)) * 100  # us for one
            except RuntimeError as error:
                print(f"attention by {name}: {str(error)[:200]}")
        if not times:
            return contextlib.nullcontext()
        best = min(times, key=times.get)
        self.row["attention_masked_us" if masked else "attention_us"] = {n: round(t, 2) for n, t in times.items()}
        print(f"attention{' with a mask' if masked else ''}: {times}")
        return sdpa_kernel(BACKENDS[best])

    def peers(self):
        network, full = self.network, self.modules[False][1]
        masked = network.kind == "bert"
        with self.step("eager"), self.attention(masked):
            self.add("eager", lambda: full(*self.full.values()), False)
        if network.kind != "exported":
            with self.step("library"), self.attention(False):
                module = self.modules[network.has_body][1]
                inputs = self.body if network.has_body else self.full
                self.add("library", lambda: module.library(*inputs.values()), network.has_body)
        if self.options["skip_tc"]:
            return
        with self.step("torch_compile"), self.attention(masked):
            artifacts = os.path.join(self.options["inductor"], network.row)
            self.row["tc_from_cache"] = gpu_inductor_cache.load(artifacts)
            start = time.time()
            try:
                compiled = self.compiled(full)
            except Exception:
                if not self.row["tc_from_cache"]:
                    raise
                traceback.print_exc()  # what was found before does not serve here: once more, without it
                self.row["tc_from_cache"] = False
                torch._dynamo.reset()
                os.environ["TRITON_CACHE_DIR"] += "_again"
                with torch._inductor.config.patch(force_disable_caches=True):
                    compiled = self.compiled(full)
            self.row["tc_compile_s"] = round(time.time() - start, 2)
            self.add("torch_compile", lambda: compiled(*self.full.values()), False)
            if not self.row["tc_from_cache"]:
                gpu_inductor_cache.save(artifacts)

    def compiled(self, module):
        function = torch.compile(module, mode="max-autotune-no-cudagraphs", fullgraph=True, dynamic=False)
        function(*self.full.values())
        self.synchronize()
        return function

    # --- ours ---

    def flags(self):
        return (gpu_engine.FP16 if self.options["precision"] == "fp16" else 0) | (
            gpu_engine.HALF_IO if self.options["io"] == "fp16" else 0) | (
            gpu_engine.NO_TF32 if self.options["precision"] == "fp32" else 0)

    def stream(self):
        return torch.cuda.current_stream().cuda_stream if self.cuda else 0

    def ours(self):
        if self.cuda:
            os.environ["TENSORWRIGHT_DEVICE"] = "cuda"  # never the CPU in its stead
        for body in self.modules:
            name = "ours_body" if body else "ours"
            engine = None
            with self.step("build " + name):
                library = gpu_engine.load(self.options["library"])
                cache = os.path.join(self.options["folder"], f"{self.network.row}.cache")
                engine = gpu_engine.Engine(library, self.models[body], self.flags(), self.device, cache_out=cache)
                self.engines.append(engine)
                self.row["body_build_s" if body else "build_s"] = round(engine.build_seconds, 3)
                self.row["body_plan_mib" if body else "plan_mib"] = round(engine.plan_bytes / 2**20, 1)
                if engine.messages:
                    print(engine.messages)
            if engine:
                with self.step("capture " + name):
                    self.add_ours(name, engine, body)

    def add_ours(self, name, engine, body):
        outputs = list(engine.outputs.values())

        def run():
            engine.enqueue(self.stream())

        if not self.network.channels_last:
            self.add(name, run, body, engine.inputs, outputs)
            return
        # The peers' input lies with channels last: ours is timed with the copy into its own order, and without.
        peers = self.full["input"].clone()

        def reformat_and_run():
            engine.inputs["input"].copy_(peers)
            engine.enqueue(self.stream())

        self.add(name, reformat_and_run, body, {"input": peers}, outputs)
        self.add(name + "_nchw", run, body, engine.inputs, outputs)

    def cached_build(self):
        cache = os.path.join(self.options["folder"], f"{self.network.row}.cache")
        engine = gpu_engine.Engine(self.engines[0].library, self.models[False], self.flags(), self.device, cache_in=cache)
        self.row["build_cached_s"] = round(engine.build_seconds, 3)
        engine.close()

    # --- measuring ---

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def compare(self):
        """On fresh inputs, every output spoilt before."""
        with torch.no_grad():
            references, values = {}, {}
            for body, (exact, _) in self.modules.items():
                values[body] = {n: v.to(self.device) for n, v in self.network.inputs(self.generator, body).items()}
                references[body] = [t.clone() for t in exact(*values[body].values())]
            errors = self.errors
            for contender in self.contenders:
                contender.feed(values[contender.body])
                for output in contender.outputs:
                    output.fill_(float("nan"))
                contender.replay()
                self.synchronize()
                error = relative_error(contender.outputs, references[contender.body])
                known = errors.get(contender.name, 0.0)
                errors[contender.name] = error if error != error or known != known else max(error, known)
        self.judge()

    def judge(self):
        row, errors = self.row, self.errors
        tolerance = max(TOLERANCE, 2 * errors["torch_compile"]) if errors.get("torch_compile", 0) > 0 else TOLERANCE
        wanted = ["ours"] + (["ours_body"] if self.network.has_body else [])
        row["tolerance"] = tolerance
        row["checked"] = all(name in errors and errors[name] <= tolerance for name in wanted)  # false for NaN
        row["errors"] = {name: error if error == error else None for name, error in errors.items()}  # JSON has no NaN
        row["rel_err"], row["body_rel_err"] = row["errors"].get("ours"), row["errors"].get("ours_body")
        for name, error in errors.items():
            begin = f"{name}: the outputs differ"
            if not error <= tolerance and not any(r.startswith(begin) for r in row["failed"]):
                row["failed"].append(f"{begin} from PyTorch's in FP32 by {error:.3g}, more than {tolerance:.3g}")

    def slot(self, contender, count):
        """Milliseconds of one replay, from `count` of them back to back, and of the host's clock around all."""
        if not self.cuda:
            start = time.perf_counter()
            for _ in range(count):
                contender.replay()
            seconds = time.perf_counter() - start
            return seconds / count * 1e3, seconds
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        contender.replay()
        start = time.perf_counter()
        begin.record()
        for _ in range(count):
            contender.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / count, time.perf_counter() - start

    def time(self):
        with torch.no_grad():
            counts = {}
            for contender in self.contenders:
                contender.replay()
                self.synchronize()
                once = self.slot(contender, 3)[0]
                counts[contender.name] = max(1, min(200, round(SLOT_SECONDS * 1e3 / max(once, 1e-3))))
            times = {c.name: [] for c in self.contenders}
            order, shuffled = list(self.contenders), random.Random(self.options["seed"])
            begin = time.perf_counter()
            for done in range(self.options["rounds"]):
                if done >= 3 and time.perf_counter() - begin > self.options["time_seconds"]:
                    break
                shuffled.shuffle(order)
                for contender in order:
                    times[contender.name].append(self.slot(contender, counts[contender.name])[0])
            self.row["rounds"] = len(next(iter(times.values()))) if times else 0
            spread = self.row["spread"] = {}
            for name, values in times.items():
                self.row[name + "_ms"] = round(statistics.median(values), 5)
                spread[name] = [round(min(values), 5), round(max(values), 5)]

    def host_time(self):
        engine = self.engines[0]
        stream = torch.cuda.Stream().cuda_stream if self.cuda else 0
        runs = max(10, min(200, int(2e3 / max(self.row.get("ours_ms", 100), 1e-3)))) if self.cuda else 5
        self.row["host_us"] = round(engine.host_seconds(stream, self.synchronize, runs) * 1e6, 1)
        self.row["host_graph_us"] = round(engine.host_seconds(stream, self.synchronize, runs, fresh_addresses=False) * 1e6, 1)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        options = json.load(file)
    sys.path.insert(0, options["models"])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the reference is FP32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(options["seed"])
    if options["networks"]:
        rows = gpu_networks.rows_of_file(options["networks"])
    else:
        rows = (gpu_networks.small_rows() if options["small"] else gpu_networks.rows()) + gpu_networks.exported_rows() + \
            gpu_networks.recurrent_rows()
    network = next(n for n in rows if n.row == sys.argv[2])
    with torch.no_grad(), open(sys.argv[4], "w", encoding="utf-8") as lock:
        row = Row(network, options, sys.argv[3])
        with row.step("models"):
            row.make_models()
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the process ends
        with open(sys.argv[3] + ".gpu", "wb"):
            pass  # tells that the row has its GPU now
        row.run()


if __name__ == "__main__":
    main()
