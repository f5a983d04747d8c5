#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: plugin_networks.py [--model base|large] [--layers N] [--batch 32] [--seq 128] [--precision fp32|fp16|int8] [--device cpu|gpu] [--threads N]
                          [--variable] [--rounds 5] [--json FILE]

BERT through the standard plugins, as demoBERT's programs put it together (test/python/demobert.py), beside the same network through layers, batch
first, with the same seeded random weights. With --variable: rows of sequences of lengths uniform in 16..seq through the plugins beside the same
sequences padded to seq, through the plugins too. Outputs are compared first: cosine and the largest difference. Then both run in turns; printed are
the median times and the median of the ratios of turns. Times on a GPU are of a stream from its first to its last work, in a CUDA graph where
the engine makes one, with inputs that lie there (needs torch).
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "test", "python"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("base", "large"), default="base")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--precision", choices=("fp32", "fp16", "int8"), default="fp32")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--variable", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    return parser.parse_args()


args = arguments()
os.environ["TENSORWRIGHT_DEVICE"] = "cuda" if args.device == "gpu" else "cpu"
os.environ["TENSORWRIGHT_NUM_THREADS"] = str(args.threads)

import numpy as np  # noqa: E402
import tensorrt as trt  # noqa: E402

import demobert  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402

LOGGER = trt.Logger(trt.Logger.WARNING)


class Side:
    """One of the two engines with its inputs."""

    def __init__(self, name, make, given, profile=None):
        self.name, self.given = name, given
        builder = trt.Builder(LOGGER)
        network = builder.create_network(1)
        make(network)
        config = demobert.settings(builder, args.precision)
        if profile:
            profile(builder, config)
        begin = time.perf_counter()
        plan = builder.build_serialized_network(network, config)
        self.build_s = time.perf_counter() - begin
        self.engine = trt.Runtime(LOGGER).deserialize_cuda_engine(plan)
        self.context = self.engine.create_execution_context()
        self.prepare()

    def prepare(self):
        on_gpu = args.device == "gpu"
        if on_gpu:
            import torch
            self.torch, self.stream = torch, torch.cuda.Stream()
        self.kept, self.address = {}, {}
        for name, value in self.given.items():
            self.context.set_input_shape(name, value.shape)
            self.kept[name] = torch.from_numpy(np.ascontiguousarray(value)).cuda() if on_gpu else np.ascontiguousarray(value)
        shape = tuple(self.context.get_tensor_shape("logits"))
        self.kept["logits"] = torch.zeros(shape, dtype=torch.float32, device="cuda") if on_gpu else np.zeros(shape, np.float32)
        for name, value in self.kept.items():
            self.context.set_tensor_address(name, value.data_ptr() if on_gpu else value.ctypes.data)
        if on_gpu:
            torch.cuda.synchronize()

    def run(self):
        """Milliseconds."""
        if args.device == "cpu":
            begin = time.perf_counter()
            assert self.context.execute_async_v3(0)
            return 1000 * (time.perf_counter() - begin)
        repeats = 20
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.torch.cuda.stream(self.stream):
            first.record()
            for _ in range(repeats):
                assert self.context.execute_async_v3(self.stream.cuda_stream)
            last.record()
        last.synchronize()
        return first.elapsed_time(last) / repeats

    def logits(self):
        """[tokens, 2]"""
        y = self.kept["logits"]
        y = y.cpu().numpy() if args.device == "gpu" else y
        return y.reshape(-1, 2).astype(np.float64)


def ranges_of(config, weights, given):
    """For INT8: what a few sequences show."""
    ranges = {}
    for ids, kinds in list(zip(given["input_ids"], given["segment_ids"]))[:2]:
        demobert.reference(config, weights, ids, kinds, None, ranges)
    return ranges


def main():
    base = demobert.BASE if args.model == "base" else demobert.LARGE
    hidden = args.hidden or base.hidden
    config = demobert.Config(args.layers or base.layers, hidden, hidden // 64, base.vocabulary, base.positions)
    weights = demobert.weights(config)
    rng = np.random.default_rng(1)
    b, s = args.batch, args.seq
    lengths = rng.integers(16, s + 1, b) if args.variable else np.full(b, s)
    keep = np.arange(s) < lengths[:, None]
    padded = {"input_ids": rng.integers(0, config.vocabulary, (b, s)).astype(np.int32),
              "segment_ids": rng.integers(0, 2, (b, s)).astype(np.int32), "input_mask": keep.astype(np.int32)}
    more = {"precision": args.precision}
    if args.precision == "int8":
        more["ranges"] = ranges_of(config, weights, padded)
    fixed = Side("plugins", lambda n: demobert.fixed(n, config, weights, b, s, **more), padded)
    if args.variable:
        rows = {"input_ids": padded["input_ids"][keep], "segment_ids": padded["segment_ids"][keep],
                "cu_seqlens": np.cumsum([0, *lengths]).astype(np.int32), "max_seqlen": np.zeros(s, np.int32)}
        ours = Side("variable", lambda n: demobert.variable(n, config, weights, **more), rows, lambda builder, c: demobert.profile_of_rows(builder, c, b * s, b, s))
        peer = fixed
    else:
        ours = fixed
        peer = Side("layers", lambda n: demobert.through_layers(n, config, weights, b, s, "fp16" if args.precision == "int8" else args.precision), padded)
    sides = [ours, peer]
    for side in sides:
        side.run()
    y, right = ours.logits(), peer.logits()
    if args.variable:
        right = right[keep.reshape(-1)]
    cosine = float((y * right).sum() / np.sqrt((y * y).sum() * (right * right).sum()))
    error = float(np.abs(y - right).max())
    times = [[], []]
    for r in range(args.rounds):
        for i in (0, 1) if r % 2 else (1, 0):
            times[i].append(sides[i].run())
    ms = [statistics.median(t) for t in times]
    ratio = statistics.median(a / c for a, c in zip(*times))
    row = {"network": f"bert_{args.model}" + (f", {config.layers} layers" if config.layers != base.layers else ""), "batch": b, "seq": s,
           "precision": args.precision, "threads": args.threads, "tokens": int(lengths.sum()), ours.name + "_ms": ms[0], peer.name + "_ms": ms[1],
           "ratio": ratio, "cosine": cosine, "largest_difference": error, "rounds": args.rounds,
           "build_s": [round(side.build_s, 1) for side in sides]}
    if args.device == "gpu":
        del row["threads"]
    print(", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    if args.json:
        machine = ours.torch.cuda.get_device_name() if args.device == "gpu" else cpu_name()
        rows = []
        if os.path.exists(args.json):
            import json
            with open(args.json, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
        write_record(args.json, header(machine, load_average=list(os.getloadavg()), rows=[*rows, row]))


if __name__ == "__main__":
    main()
