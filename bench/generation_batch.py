#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: generation_batch.py [SHAPE] [options]      (on a GPU; PYTHONPATH with our Python module; numpy, onnx, torch)

Many sequences of one length at a time, FP16, greedy: prompts of --prompt tokens, then --answer tokens of each, by an engine of ours and by torch.compile with a static cache
(max-autotune, the step in a CUDA graph). Both choose the next tokens on the device; a step and the choice are one graph. Prompts are read --together at a time.

  prefill_s, decode_s   {contender: seconds}, medians of rounds in turns
  tokens_s              output tokens over the sum of both
  ratio                 ours / torch_compile in tokens_s; step_ms and step_ratio at the lengths of --at likewise
  equal                 share of the first tokens of the answers (--compared of each) that both have; sequences part for good where two logits are within FP16's rounding

JSON by record.py: --json FILE.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models"), os.path.join(HERE, "bench_models")]
import decoder  # noqa: E402
from generation import Torch, gpu_milliseconds, imported  # noqa: E402
from record import header, write_record  # noqa: E402


def captured(run, stream):
    """A CUDA graph of `run`."""
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    return graph


class Ours:
    """An engine of two profiles: a step of all sequences, and prompts of some of them, whose caches are parts of those of all."""

    def __init__(self, path, shape, options):
        import tensorrt as trt
        made = imported(path, True)
        self.shape, self.options, cache = shape, options, (shape.groups, options.capacity, shape.size)
        for count, tokens in ((options.batch, 1), (options.together, options.prompt)):
            profile = made.builder.create_optimization_profile()
            for i in range(made.network.num_inputs):
                name = made.network.get_input(i).name
                dims = (count, *cache) if name.startswith("past") else (count, options.capacity if name == "attention_mask" else tokens)
                profile.set_shape(name, dims, dims, dims)
            made.config.add_optimization_profile(profile)
        begin = time.time()
        plan = made.builder.build_serialized_network(made.network, made.config)
        self.build_s = time.time() - begin
        self.engine, self.stream = trt.Runtime(made.logger).deserialize_cuda_engine(plan), torch.cuda.Stream()

        def zeros(*dims, dtype=torch.int32):
            return torch.zeros(dims, dtype=dtype, device="cuda")
        self.caches = {f"{i}.{kind}": zeros(options.batch, *cache, dtype=torch.float16) for i in range(shape.layers) for kind in ("key", "value")}
        self.step_inputs = {"input_ids": zeros(options.batch, 1), "position_ids": zeros(options.batch, 1), "attention_mask": zeros(options.batch, options.capacity),
                            "logits": zeros(options.batch, 1, shape.vocabulary, dtype=torch.float16)}
        self.prompt_inputs = {"input_ids": zeros(options.together, options.prompt), "attention_mask": zeros(options.together, options.capacity),
                              "position_ids": torch.arange(options.prompt, dtype=torch.int32, device="cuda").repeat(options.together, 1),
                              "logits": zeros(options.together, 1, shape.vocabulary, dtype=torch.float16)}
        self.prompt_inputs["attention_mask"][:, :options.prompt] = 1
        self.contexts = [self._context(0, self.step_inputs), self._context(1, self.prompt_inputs)]
        self.graph = captured(self._step, self.stream)

    def _context(self, number, given):
        context = self.engine.create_execution_context()
        context.set_optimization_profile_async(number, self.stream.cuda_stream)
        for i in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(i)
            tensor = given[name] if name in given else self.caches[name.split(".", 1)[1]]
            if name in given and name != "logits":
                context.set_input_shape(name, tuple(tensor.shape))
            if name.startswith("past"):
                context.set_input_shape(name, (len(given["input_ids"]), *tensor.shape[1:]))
            context.set_tensor_address(name, tensor.data_ptr())
        return context

    def _step(self):
        """Reads the last tokens, and chooses the next."""
        g = self.step_inputs
        g["attention_mask"].scatter_(1, g["position_ids"].long(), 1)
        if not self.contexts[0].execute_async_v3(torch.cuda.current_stream().cuda_stream):
            sys.exit("the step failed")
        g["input_ids"].copy_(g["logits"][:, 0].argmax(-1, keepdim=True))
        g["position_ids"].add_(1)

    def prefill(self, prompts):
        g, first = self.prompt_inputs, []
        for at in range(0, len(prompts), len(g["input_ids"])):
            g["input_ids"].copy_(prompts[at:at + len(g["input_ids"])])
            for name, tensor in self.caches.items():
                for side in ("past_key_values.", "present."):
                    self.contexts[1].set_tensor_address(side + name, tensor[at].data_ptr())
            if not self.contexts[1].execute_async_v3(torch.cuda.current_stream().cuda_stream):
                sys.exit("the prompt failed")
            first.append(g["logits"][:, 0].argmax(-1, keepdim=True))
        self.place(prompts.shape[1])
        self.step_inputs["input_ids"].copy_(torch.cat(first))

    def place(self, past):
        self.step_inputs["position_ids"].fill_(past)
        self.step_inputs["attention_mask"].zero_()
        self.step_inputs["attention_mask"][:, :past] = 1

    def tokens(self):
        return self.step_inputs["input_ids"]


class Peer(Torch):
    """The decoder of generation.py for many sequences. Prompts by torch.compile's default, whose products are cuBLAS's."""

    def __init__(self, path, shape, options):
        self.options = options
        self.load(path, shape)
        self.caches = [[torch.zeros(options.batch, shape.groups, options.capacity, shape.size, dtype=torch.float16, device="cuda") for _ in range(2)] for _ in range(shape.layers)]
        self.ids, self.at = torch.zeros(options.batch, 1, dtype=torch.int64, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
        self.columns = torch.arange(options.capacity, device="cuda")
        begin = time.time()
        with torch.no_grad():
            self.function = torch.compile(self.many, mode="max-autotune-no-cudagraphs", fullgraph=True, dynamic=False)
            self.prompts = torch.compile(self.many, fullgraph=True, dynamic=False)
            self.graph = captured(self._step, torch.cuda.Stream())
        self.build_s = time.time() - begin

    def many(self, ids, at, caches):
        f, s, w = torch.nn.functional, self.shape, self.w
        batch, count = ids.shape
        x, whole = f.embedding(ids, w["tokens"]), count > 1
        c, sines = (w[n][:count] if whole else w[n][at] for n in ("cosines", "sines"))
        c, sines = c.half(), sines.half()

        def turned(x):
            a, b = x.chunk(2, -1)
            return torch.cat([a * c - b * sines, b * c + a * sines], -1)
        mask = None if whole else (self.columns <= at)[None, None, None]
        for i in range(s.layers):
            qkv = f.linear(f.rms_norm(x, (s.width,), w[f"{i}.before"], 1e-5), w[f"{i}.qkv"]).view(batch, count, -1, s.size).transpose(1, 2)
            q, k, v = qkv.split((s.heads, s.groups, s.groups), 1)
            q, k = turned(q), turned(k)
            keys, values = caches[i]
            if whole:
                keys[:, :, :count] = k
                values[:, :, :count] = v
                y = f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            else:
                keys.index_copy_(2, at, k)
                values.index_copy_(2, at, v)
                y = f.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
            x = x + f.linear(y.transpose(1, 2).reshape(batch, count, s.width), w[f"{i}.out"])
            y = f.rms_norm(x, (s.width,), w[f"{i}.between"], 1e-5)
            x = x + f.linear(f.silu(f.linear(y, w[f"{i}.gate"])) * f.linear(y, w[f"{i}.up"]), w[f"{i}.narrow"])
        return f.linear(f.rms_norm(x[:, -1], (s.width,), w["last"], 1e-5), w["head"]).argmax(-1, keepdim=True)

    def _step(self):
        self.ids.copy_(self.function(self.ids, self.at, self.caches))
        self.at.add_(1)

    @torch.no_grad()
    def prefill(self, prompts):
        first = []
        for at in range(0, len(prompts), self.options.together):
            part = slice(at, at + self.options.together)
            first.append(self.prompts(prompts[part].long(), self.at, [[c[part] for c in pair] for pair in self.caches]))
        self.place(prompts.shape[1])
        self.ids.copy_(torch.cat(first))

    def place(self, past):
        self.at.fill_(past)

    def tokens(self):
        return self.ids


def generate(model, prompts, count, kept=0):
    """(seconds of the prompts, seconds of the answers, the first `kept` tokens of each)"""
    said = []
    torch.cuda.synchronize()
    begin = time.perf_counter()
    model.prefill(prompts)
    torch.cuda.synchronize()
    middle = time.perf_counter()
    for i in range(count - 1):
        if i < kept:
            said.append(model.tokens().int().clone())
        model.graph.replay()
    torch.cuda.synchronize()
    return middle - begin, time.perf_counter() - middle, torch.cat(said, 1) if said else None


def measure(options, folder):
    shape, path = decoder.SHAPES[options.shape], os.path.join(folder, "model.onnx")
    decoder.write(shape, folder, options.capacity, np.float16, batch="batch")
    begin = time.time()

    def say(what):
        print(f"{time.time() - begin:6.1f} s: {what}", file=sys.stderr, flush=True)
    prompts = torch.randint(0, shape.vocabulary, (options.batch, options.prompt), dtype=torch.int32, generator=torch.Generator().manual_seed(5)).cuda()
    models = {"ours": Ours(path, shape, options)}
    say(f"our engine is there, built in {models['ours'].build_s:.1f} s")
    if not options.skip_peers:
        models["torch_compile"] = Peer(path, shape, options)
        say("torch's step is compiled")
    row = {"model": options.shape, "precision": "fp16", **{n: getattr(options, n) for n in ("batch", "prompt", "answer", "capacity", "together")},
           "build_s": {k: m.build_s for k, m in models.items()}}
    said = {k: generate(m, prompts, options.compared + 1, options.compared)[2] for k, m in models.items()}
    if len(said) > 1:
        row["equal"] = float((said["ours"] == said["torch_compile"]).float().mean())
        row["equal_first"] = float((said["ours"][:, 0] == said["torch_compile"][:, 0]).float().mean())
        say(f"tokens are compared: {row['equal']:.3f} equal, {row['equal_first']:.3f} of the first")
    taken = {k: [] for k in models}
    for _ in range(options.rounds):
        for kind, model in models.items():
            taken[kind].append(generate(model, prompts, options.answer)[:2])
    for number, name in enumerate(("prefill_s", "decode_s")):
        row[name] = {k: statistics.median(t[number] for t in times) for k, times in taken.items()}
    row["tokens_s"] = {k: statistics.median(options.batch * options.answer / sum(t) for t in times) for k, times in taken.items()}
    row["step_ms"] = {}
    for past in options.at:
        times = {k: [] for k in models}
        for _ in range(3):
            for kind, model in models.items():
                model.place(past)
                times[kind].append(gpu_milliseconds(torch, model.graph, 20))
        row["step_ms"][past] = {k: statistics.median(t) for k, t in times.items()}
    if len(models) > 1:
        row["ratio"] = row["tokens_s"]["ours"] / row["tokens_s"]["torch_compile"]
        row["step_ratio"] = {past: t["torch_compile"] / t["ours"] for past, t in row["step_ms"].items()}
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shape", nargs="?", default="tinyllama_1.1b", choices=sorted(n for n, s in decoder.SHAPES.items() if not s.positions and not s.bias and not s.tied))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=1000)
    parser.add_argument("--answer", type=int, default=1000)
    parser.add_argument("--capacity", type=int, default=2048)
    parser.add_argument("--together", type=int, default=4, help="prompts that are read at a time")
    parser.add_argument("--compared", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=lambda text: [int(t) for t in text.split(",")], default=[1000, 1500, 1950], help="tokens before a step that is timed alone")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.batch % options.together:
        parser.error(f"--together {options.together} does not divide --batch {options.batch}")
    with tempfile.TemporaryDirectory() as folder:
        row = measure(options, folder)
    print(row)
    if options.json:
        write_record(options.json, {**header(torch.cuda.get_device_name(0)), "versions": {"torch": torch.__version__}, "rows": [row]})


if __name__ == "__main__":
    main()
