#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What decoding takes on the device, beside the model: GenerateSample and BeamStep over large vocabularies, attention to a cache that beams
share by a table beside one of their own, and a token of a small decoder that generates in a loop of the network, 100 tokens in one enqueue.

Engines of the one layer, on the GPU that TENSORWRIGHT_DEVICE=cuda chooses, else on the CPU. A time is that of one run among many that
are put on the stream together, the median of the rounds; next to it how long reading the logits (the cache) alone would take, where
--bandwidth says how fast memory is, in GB/s. --out FILE: a record (record.py).
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, folder) for folder in ("../test/python", "test/python")]

import numpy as np  # noqa: E402
import record  # noqa: E402
import tensorrt as trt  # noqa: E402
from decoding import settings  # noqa: E402
from generation_loop_test import PROMPT, caches_of, greedy_engine  # noqa: E402
from loop_decoders import Decoder  # noqa: E402
from small import Tensors  # noqa: E402
from standard_plugins import engine_of, make  # noqa: E402

I32 = np.int32
MANNERS = {"greedy": {"temperature": 0}, "draw": {}, "top_k 50": {"top_k": 50}, "top_p 0.9": {"top_p": 0.9},
           "all": {"temperature": 0.8, "top_k": 50, "top_p": 0.9, "min_p": 0.05, "repetition": 1.1, "ngram": 3}}


class Runs:
    """An engine with its tensors in place."""

    def __init__(self, engine, given):
        self.context, self.tensors = engine.create_execution_context(), Tensors()
        for i in range(engine.num_io_tensors):
            name = engine.get_tensor_name(i)
            address = (self.tensors.given(name, given[name]) if name in given else
                       self.tensors.room(name, self.context.get_tensor_shape(name), trt.nptype(engine.get_tensor_dtype(name))))
            assert self.context.set_tensor_address(name, address)

    def time(self, count, rounds):
        """Seconds of a run."""
        times = []
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            for _ in range(count):
                assert self.context.execute_async_v3(0)
            self.tensors.memory.wait(0)
            times.append((time.perf_counter() - begin) / count)
        return statistics.median(times[1:])


def layer(name, arrays, fp16, **fields):
    engine = engine_of(make(name, **fields), arrays, flags=[trt.BuilderFlag.FP16] if fp16 else [])
    return Runs(engine, {f"x{i}": a for i, a in enumerate(arrays)})


def samples(args, random):
    for vocabulary in args.vocabularies:
        for rows in args.batches:
            logits = (3 * random.standard_normal((rows, vocabulary))).astype(args.type)
            sequences, lengths = random.integers(0, vocabulary, (rows, 512)).astype(I32), np.full(rows, 300, I32)
            for manner, values in MANNERS.items():
                arrays = [logits, sequences, lengths, np.full(rows, 20, I32), *settings(rows, stream=range(rows), **values)]
                yield {"what": "GenerateSample", "vocabulary": vocabulary, "rows": rows, "manner": manner}, layer("GenerateSample", arrays, args.fp16), logits.nbytes, 1


def searches(args, random, beams=4, capacity=512):
    for vocabulary in args.vocabularies:
        for rows in args.batches:
            logits = (3 * random.standard_normal((rows * beams, vocabulary))).astype(args.type)
            state = [random.integers(0, vocabulary, (rows, beams, capacity)).astype(I32), np.full(rows, 300, I32), np.full(rows, 20, I32), np.zeros((rows, beams), np.float32),
                     np.zeros(rows, I32), np.zeros((rows, beams, capacity), I32), np.zeros((rows, beams), I32), np.zeros((rows, beams), np.float32)]
            yield {"what": "BeamStep", "vocabulary": vocabulary, "rows": rows, "beams": beams}, layer("BeamStep", [logits, *state, *settings(rows)], args.fp16), logits.nbytes, 1


def caches(args, random, beams=4, groups=8, heads=32, size=64, capacity=2048):
    for rows in args.batches:
        rows = min(rows, 16)
        images = rows * beams
        shape = (images, groups, capacity, size)
        arrays = [random.standard_normal((images, heads, 1, size)).astype(args.type), *(random.standard_normal(shape, np.float32).astype(args.type) for _ in range(2)),
                  np.full(images, capacity, I32)]
        table = np.zeros((rows, beams, capacity), I32)
        for at in range(capacity // 2, capacity):  # behind the prompt, as a search leaves it
            table = np.take_along_axis(table, random.integers(0, beams, (rows, beams, 1)), 1)
            table[..., at] = np.arange(beams)
        for name, more, fields in (("own cache", [], {}), ("shared by a table", [table], {"cache_indirection": 1})):
            yield {"what": "CachedAttention", "rows": rows, "beams": beams, "manner": name}, layer("CachedAttention", arrays + more, args.fp16, **fields), 2 * arrays[1].nbytes, 1


def loops(args, _random, new=100):
    """Small layers, so that what stands between them is seen; with the time of a token the size of the caches should not count."""
    for capacity in (512, 4096):
        decoder = Decoder(1, vocabulary=32000, width=256, heads=8, groups=8, size=64, capacity=capacity, layers=4)
        for rows in args.batches:
            floats, ints = settings(rows, temperature=0, max_length=PROMPT + new)
            lengths = np.full(rows, PROMPT, I32)
            given = {"sequences": np.zeros((rows, capacity), I32), "lengths": lengths, "prompts": lengths, "floats": floats, "ints": ints, **caches_of(decoder, rows)}
            yield {"what": "a token in a loop", "rows": rows, "capacity": capacity}, Runs(greedy_engine(decoder, rows), given), 0, new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["samples", "searches", "caches", "loops"], action="append")
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[32000, 151936])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--fp32", action="store_true", help="logits and caches; else FP16")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--machine", help="for the record, where it is a GPU")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.fp16, args.type = not args.fp32, np.float32 if args.fp32 else np.float16
    rows = []
    for part in (samples, searches, caches, loops):
        if args.only and part.__name__ not in args.only:
            continue
        for row, runs, size, tokens in part(args, np.random.default_rng(1)):
            row["us"] = 1e6 * runs.time(max(args.count // tokens, 1), args.rounds) / tokens
            if args.bandwidth and size:
                row["floor_us"] = size / args.bandwidth / 1e3
            rows.append(row)
            print("  ".join(f"{k} {v:.1f}" if isinstance(v, float) else f"{v}" if k in ("what", "manner") else f"{k} {v}" for k, v in row.items()), flush=True)
    if args.out:
        record.write_record(args.out, {**record.header(args.machine or record.cpu_name()), "rows": rows})


if __name__ == "__main__":
    main()
