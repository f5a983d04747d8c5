#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: serving_generation.py [SHAPE] [options]      (PYTHONPATH with our Python modules; numpy, onnx)

Many sequences at a time by tensorwright.Generator: a decoder of bench/models/decoder.py, prompts and answers of mixed lengths. First all requests at once, the offline
peak; then as they come by chance (Poisson), as a server has them, all of them together a share of what the peak does in that time (`chance`); then by as many clients as are that share of the slots, each of
which asks again when it has its answer (`clients`).

  peak, served      output tokens/s; `over_offered`: served over what was offered, `over_peak`: served over the peak
  gap               of a sequence the longest time between two of its tokens over the median of these times: median, 99th percentile and worst of sequences
  first             of a sequence the time to its first token over that of its prompt alone on an idle generator: likewise
  outside_ms        of a step, what is spent outside of engines (scheduler, copies)
  idle              a prompt of 128 tokens (less where the capacity is) on the idle generator: `first_ms` to its first token, `prefill_ms` of the runs alone
  memory            MiB: `anonymous`, what the process took beyond that of Python and this file, at the end; `file`: of the plan, in the page cache; `over`: anonymous over weights and caches, less 1
  waste             of the caches' memory in rows that are in use, what holds no token: `of_room` as it is kept (in slots it doubles, in pages it is blocks), `of_capacity` were rows as
                    long as they may get; tokens that sequences have together count once

--own-time: by the CPU time of this process, at one thread, so that what others do on the machine does not count (what it does to caches and frequencies does).

JSON by record.py: --json FILE.
"""
import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import types

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models"), os.path.join(HERE, "bench_models")]
import decoder  # noqa: E402
import tensorwright  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402
from tensorwright.generation import runs, scheduler  # noqa: E402
from tensorwright.generation.scheduler import Sequence  # noqa: E402


class Clock:
    """Seconds, of the process alone with own_time, and those inside of engines. What is slept passes in both."""

    def __init__(self, own_time):
        self.inside, self._now, self._slept, plain = 0.0, time.process_time if own_time else time.perf_counter, 0.0, runs.Context.run
        self._own_time = own_time

        def run(context):
            begin = self()
            plain(context)
            self.inside += self() - begin

        runs.Context.run = run
        scheduler.time = types.SimpleNamespace(perf_counter=self, monotonic=self)

    def __call__(self):
        return self._now() + self._slept

    def sleep(self, seconds):
        if self._own_time:
            self._slept += seconds
        else:
            time.sleep(seconds)


class Request:
    """A sequence and when its pieces came. at: when it comes, in seconds from the beginning."""

    def __init__(self, generator, clock, prompt, count, at=0.0):
        self.at, self.clock, self.prompt, self.came, self.error = at, clock, prompt, [], None
        settings = generator.settings({"max_new_tokens": count, "do_sample": False})
        self.sequence = Sequence(list(prompt), settings, self.emit)

    def emit(self, piece):
        self.came.append(self.clock())
        self.error = piece.error or self.error


def mixture(random, vocabulary, count, capacity):
    """[(prompt, tokens of the answer)]: log-normal lengths, as those of chats are, within the capacity."""
    lengths = np.exp(random.normal(np.log(capacity / 8), 0.8, (count, 2)))
    prompts, answers = np.clip(lengths, (4, 8), (capacity // 2, capacity // 2 - 1)).astype(int).T
    return [([int(t) for t in random.integers(0, vocabulary, p)], int(a)) for p, a in zip(prompts, answers)]


def play(generator, requests, clock, most=None):
    """Submits requests when they come, and no more than `most` at a time; steps, and says how it went."""
    queue, begin, left = generator.scheduler, clock(), list(requests)[::-1]
    waste, steps = [], []
    while left or queue.running or queue.waiting:
        now = clock() - begin
        while left and left[-1].at <= now and (most is None or queue.running + queue.waiting < most):
            left[-1].at = left[-1].at if most is None else now
            generator.submit(left.pop().sequence)
        if not queue.running and not queue.waiting:
            clock.sleep(max(0.0, left[-1].at - now))
            continue
        inside, start = clock.inside, clock()
        generator.scheduler_step()
        took = clock() - start
        steps.append((took, took - (clock.inside - inside)))
        held = [s.read for s in queue._slots if s.sequence]
        if held:
            room = generator.runs.blocks.used * 16 / len(held) if generator.runs.shares else getattr(generator.runs, "room", 0)
            waste.append([1 - np.mean(held) / room if room else 0, 1 - np.mean(held) / generator.capacity])
    failed = [r.error for r in requests if r.error]
    if failed:
        sys.exit(failed[0])
    seconds = max(r.came[-1] for r in requests) - begin
    return {"begin": begin, "seconds": seconds, "steps": np.array(steps), "waste": np.mean(waste, 0) if waste else [0, 0]}


def resident():
    """MiB of the process: anonymous, of files."""
    with open("/proc/self/status", encoding="ascii") as file:
        found = dict(line.split(":", 1) for line in file)
    return [int(found[n].split()[0]) / 1024 for n in ("RssAnon", "RssFile")]


def idle(generator, clock, vocabulary):
    """A prompt of 128 tokens that nobody else holds up."""
    random, taken = np.random.default_rng(2), {"first_ms": [], "prefill_ms": []}
    engine, length = generator.runs, min(128, generator.capacity - 2)
    for _ in range(21):
        prompt = [int(t) for t in random.integers(0, vocabulary, length)]
        begin = clock()
        next(generator.stream(prompt, max_new_tokens=1))
        taken["first_ms"].append(1e3 * (clock() - begin))
        begin = clock()
        for at in range(0, length, engine.chunk):
            engine.prefill(0, prompt[at : at + engine.chunk], at)
        taken["prefill_ms"].append(1e3 * (clock() - begin))
    result = {n: float(np.median(t)) for n, t in taken.items()}
    return {**result, "ratio": result["first_ms"] / result["prefill_ms"]}


def spread(values):
    return {"median": float(np.median(values)), "p99": float(np.percentile(values, 99)), "worst": float(np.max(values))}


def alone(generator, requests, clock):
    """Seconds to the first token of prompts of several lengths on an idle generator: [(length, seconds)], the medians of five."""
    lengths = sorted({len(r.prompt) for r in requests})
    points = sorted({lengths[0], *lengths[:: max(1, len(lengths) // 12)], lengths[-1]})
    longest, result = max((r.prompt for r in requests), key=len), []
    for length in points:
        taken = []
        for i in range(5):
            begin = clock()
            generator.generate([(t + i) % 97 for t in longest[:length]], max_new_tokens=1)
            taken.append(clock() - begin)
        result.append((length, float(np.median(taken))))
    return np.array(result).T


def loaded(requests, played, peak, firsts):
    """What it was like for requests that came one after the other."""
    begin, last = played["begin"], max(r.at for r in requests)
    # What came while requests did: the end, when there are fewer and fewer, is no load.
    served = sum(t <= begin + last for r in requests for t in r.came) / last
    gaps = [np.diff(r.came) for r in requests if len(r.came) > 8]
    waits = [r.came[0] - begin - r.at for r in requests]
    took, outside = played["steps"].T
    return {
        "served": served, "over_offered": served * last / sum(len(r.came) for r in requests), "over_peak": served / peak,
        "gap_ms": 1e3 * float(np.median(np.concatenate(gaps))), "gap": spread([g.max() / np.median(g) for g in gaps]),
        "first_ms": {n: 1e3 * v for n, v in spread(waits).items()}, "first": spread([w / np.interp(len(r.prompt), *firsts) for w, r in zip(waits, requests)]),
        "step_ms": 1e3 * float(took.mean()), "outside_ms": 1e3 * float(outside.mean()),
    }


def made(options, folder):
    """The generator, and the memory before it, of an engine that another process has built: what builds leave behind is no memory that an engine takes."""
    path = os.path.join(folder, "model")
    if not options.build:
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--build", folder]
        if subprocess.run(command, check=False).returncode:
            sys.exit("the engine was not built")
    else:
        decoder.write(decoder.SHAPES[options.shape], path, options.capacity, np.float16 if options.half else np.float32, options.bits, batch="batch")
        with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"max_position_embeddings": options.capacity}, file)
    before = resident()
    precision, plans = "fp16" if options.half else "fp32", os.path.join(folder, "plans")
    return tensorwright.Generator(path, slots=options.slots, chunk=options.chunk, reuse=False, pages=options.pages, cache=plans, precision=precision), before


def memory(generator, before, folder):
    weights = os.path.getsize(os.path.join(folder, "model", "model.data")) / 2**20
    caches = sum(b.nbytes for b in generator.runs._caches) / 2**20
    anonymous, file = (now - then for now, then in zip(resident(), before))
    return {"weights": weights, "caches": caches, "anonymous": anonymous, "file": file, "over": anonymous / (weights + caches) - 1}


def measure(options, folder):
    shape = decoder.SHAPES[options.shape]
    generator, before = made(options, folder)
    clock, random = Clock(options.own_time), np.random.default_rng(options.seed)

    def requests(count, rate=None):
        """rate: of tokens, exactly, so that what chance makes of few requests is no other load."""
        asked, times = mixture(random, shape.vocabulary, count, options.capacity), np.zeros(count)
        if rate is not None:
            times = np.cumsum(random.exponential(1, count))
            times *= sum(a for _, a in asked) / rate / times[-1]
        return [Request(generator, clock, p, a, at) for (p, a), at in zip(asked, times)]

    generator.rehearse()
    play(generator, requests(2 * options.slots), clock)  # caches as large as they get
    gc.collect()  # as the server does: looking for garbage among all objects holds everybody up
    gc.freeze()
    whole = requests(options.requests)
    played = play(generator, whole, clock)
    tokens = sum(len(r.came) for r in whole)
    peak = tokens / played["seconds"]
    row = {"model": options.shape, "device": generator.model.device, "slots": options.slots, "capacity": options.capacity, "chunk": options.chunk, "requests": options.requests, "arrivals": options.arrivals,
           "caches": generator.runs.kind, "load": options.load, "own_time": options.own_time, "mean_prompt": float(np.mean([len(r.prompt) for r in whole])), "mean_answer": tokens / len(whole), "peak": peak}
    row["waste"] = {"of_room": float(played["waste"][0]), "of_capacity": float(played["waste"][1])}
    row |= {"peak_step_ms": 1e3 * float(played["steps"][:, 0].mean()), "peak_outside_ms": 1e3 * float(played["steps"][:, 1].mean())}
    firsts = alone(generator, whole, clock)
    offered = requests(options.arrivals, options.load * peak)
    row["chance"] = loaded(offered, play(generator, offered, clock), peak, firsts)
    offered = requests(options.requests)
    row["idle"] = idle(generator, clock, shape.vocabulary)
    row["clients"] = loaded(offered, play(generator, offered, clock, max(1, round(options.load * options.slots))), peak, firsts)
    row["memory"] = memory(generator, before, folder)
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shape", nargs="?", default="small", choices=sorted(decoder.SHAPES))
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--capacity", type=int, default=512)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--arrivals", type=int, default=1024, help="requests that come by chance")
    parser.add_argument("--load", type=float, default=0.8, help="share of the peak that is asked for")
    parser.add_argument("--pages", type=int, help="blocks of 16 tokens; 0: slots; when not given, what all slots may take")
    parser.add_argument("--bits", type=int, default=0)
    parser.add_argument("--half", action="store_true", help="FP16, for GPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own-time", action="store_true")
    parser.add_argument("--profile", action="store_true", help="functions of Python by time, of all runs")
    parser.add_argument("--json")
    parser.add_argument("--build", metavar="FOLDER", help="makes the model and its engine there, and ends")
    options = parser.parse_args()
    if options.own_time:
        os.environ["TENSORWRIGHT_NUM_THREADS"] = "1"
    if options.build:
        made(options, options.build)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.profile:
            import cProfile
            with cProfile.Profile() as profile:
                row = measure(options, folder)
            import pstats
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        else:
            row = measure(options, folder)
    print(json.dumps(row))
    if options.json:
        machine = cpu_name()
        if row["device"] != "cpu":
            import torch
            machine = torch.cuda.get_device_name(0)
        write_record(options.json, {**header(machine), "rows": [row]})


if __name__ == "__main__":
    main()
