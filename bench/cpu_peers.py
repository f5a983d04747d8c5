#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares this engine with ONNX Runtime and OpenVINO (f32 forced) on the CPU: on the models of bench/models, on the networks of
bench/torch_networks.py (--models exported; making them needs PyTorch and its packages), or on any ONNX file of yours (--any FILE).

Every engine is a process and session of its own with bound inputs and outputs; all but the one whose turn it is are
stopped. A round gives each engine a turn, in changing order: a warm-up run, then runs for about --turn seconds, whose
median is the engine's time of the round. A program that does nothing but FMAs takes a turn too, so that what others
take from the machine shows. Outputs are compared with ONNX Runtime's first; an engine off by more than 1e-3 (relative
L2; quantized models: more than 1.25 times ONNX Runtime's
distance from the FP32 model) is not timed. A ratio is the median over rounds of best peer's time / our time, the best peer being the one with
the lower median. "Load" is plan or model load + context + first inference with the file in the page cache.

JSON (record.py; --out, default bench/results/cpu_peers-DATE-COMMIT.json); what its figures must reach, `report.py FILE` says:
  load_average, versions {peer: version}, options, interpreter_kib
  geometric_mean {threads: ratio over the models that have one}
  products [{m, n, k, isa, threads, fma_gflops, shares {tile: of the FMA loop of the same rounds}, best}]: bench_gemm's
  rows [{model, threads, macs (null where unknown, and the shares with it), bytes (weights, inputs and outputs), rounds, record (20 rounds or more),
         fma_gflops (median), copy_gbs, best_peer, ratio,
         share {engine: attainable time / its time, median}, attainable being 2 macs over the FMA rate of the round or
         bytes over the rate of a copy, whichever takes longer (above 1 where Winograd saves multiplications;
         tensors inside the network may stay in caches: account.py counts them, region by region),
         share_fma {engine: by macs alone}, bound ("work" or "bytes"),
         engines {name: {median_s, spread_s [least and most of the rounds], error_l2, ready {load_s, context_s, total_s, ...} (medians),
                         peak_kib (process start to tenth inference, median), inferences_at_peak, failure (why it was not timed)}},
         build {cold, cached: {parse_s, total_s, cpu_s, plan_bytes}}}]
Peers' peak_kib hold the Python interpreter and numpy; goals on memory take interpreter_kib off theirs.
"""
import argparse
import datetime
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import account
import engines
import report
from record import cpu_name, header, write_record

RECORD_ROUNDS = 20
LARGEST_ERROR = 1e-3
# Quantized models are held against the FP32 model: what ONNX Runtime loses by the same integers, and a little more. (Values at
# the border of two steps go to either; random weights make much of it.)
INT8 = "_int8"
MORE_ERROR_INT8 = 1.25
PRODUCTS = ((128, 768, 768), (1024, 1024, 1024))
MAKE = os.path.join(engines.ROOT, "bench", "models", "make.py")
EXPORT = os.path.join(engines.ROOT, "bench", "torch_networks.py")
QUANTIZE = os.path.join(engines.ROOT, "bench", "quantized_models.py")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="names of bench/models or bench/torch_networks.py, comma-separated; all: those of the former "
                        "(the default without --any), exported, recurrent, packages: those of the latter; int8: those of bench/quantized_models.py")
    parser.add_argument("--any", action="append", default=[], metavar="FILE", help="an ONNX file; may be given several times")
    parser.add_argument("--shapes", default="", help="for --any, as trtexec takes them: NAME:1x3x224x224,...; open extents are 1 without")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=RECORD_ROUNDS,
                        help="0: check the outputs, measure loads and memory, and time nothing")
    parser.add_argument("--peers", default=",".join(engines.PEERS),
                        help="comma-separated; without onnxruntime nothing is checked")
    parser.add_argument("--isa", choices=("avx2",), help="instructions that this engine and OpenVINO are held to; ONNX Runtime has no switch for "
                        "it, and is no peer then where the CPU has more: it checks the outputs")
    parser.add_argument("--models-dir", default=os.path.join(engines.ROOT, "build", "models"),
                        help="where the ONNX files are; missing ones are made there")
    parser.add_argument("--plan-dir", default=os.path.join(engines.ROOT, "build", "plans"),
                        help="built plans are kept here, and used again while model and libraries are the same")
    parser.add_argument("--rebuild", action="store_true", help="build plans again, for build times of this hour")
    parser.add_argument("--bin-dir", default=os.path.join(engines.ROOT, "build", "release", "bin"))
    parser.add_argument("--peers-only", action="store_true", help="without this engine: what there is to reach")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="what a run's time is: of the clock on the wall, or of the CPU, "
                        "as the process counts it: for one thread on a machine that does other work too")
    parser.add_argument("--undisturbed", action="store_true", help="an engine's turns come before all other work of the machine (the "
                        "scheduler's first-in, first-out class, which needs the right to it)")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds of an engine's turn")
    parser.add_argument("--budget", type=float, default=0,
                        help="seconds of rounds for a model and thread count, at least 3 rounds; 0: no limit")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a build, a load or a turn")
    parser.add_argument("--loads", type=int, default=3, help="process starts whose median is the load time")
    parser.add_argument("--out")
    options = parser.parse_args()
    options.threads = [int(t) for t in options.threads.split(",")]
    options.peers = [p for p in options.peers.split(",") if p]
    lists = {"all": (MAKE,), "exported": (EXPORT,), "recurrent": (EXPORT, "recurrent"), "packages": (EXPORT, "packages"), "int8": (QUANTIZE,)}
    groups = {group: subprocess.run([sys.executable, script, "--list", *name], capture_output=True, text=True, check=True).stdout.split()
              for group, (script, *name) in lists.items()}
    known = {name: lists[group][0] for group, names in groups.items() for name in names}
    options.models = options.models or ("" if options.any else "all")
    options.models = groups.get(options.models) or [m for m in options.models.split(",") if m]
    for name in options.models:
        if name not in known:
            parser.error(f"unknown model {name!r} (known: {', '.join(known)})")
    options.sources = known
    for path in options.any:
        if not os.path.exists(path):
            parser.error(f"{path} is not there")
    try:
        options.shapes = {name: [int(e) for e in dims.split("x") if e] for name, dims in
                          (spec.rsplit(":", 1) for spec in options.shapes.split(",") if spec)}
    except ValueError:
        parser.error(f"--shapes {options.shapes}: expected NAME:1x3x224x224,...")
    if options.isa:
        os.environ.update(engines.ISA_ENVIRONMENT[options.isa])
    if options.clock == "cpu" and options.threads != [1]:
        parser.error("--clock cpu: the time of the CPU is that of a run for --threads 1 alone")
    options.unheld = ["onnxruntime"] if options.isa and engines.has_avx512() else []
    for name in options.peers:
        if name not in engines.PEERS:
            parser.error(f"unknown peer {name!r} (known: {', '.join(engines.PEERS)})")
    return options


class Model:
    """An ONNX file and what there is to know of it."""

    def __init__(self, name, options):
        self.name, self.path = name, os.path.join(options.models_dir, name + ".onnx")
        if name in options.any:
            self.name, self.path = os.path.splitext(os.path.basename(name))[0], name
        elif not os.path.exists(self.path):
            subprocess.run([sys.executable, options.sources[name], name, "--out", options.models_dir], check=True)
        model = onnx.load(self.path)
        weights = {w.name for w in model.graph.initializer}
        self.metadata = {p.key: p.value for p in model.metadata_props}
        self.inputs, self.shapes = [], {}  # (name, numpy's type, shape) of each input; shapes of those that leave theirs open
        for value in model.graph.input:
            kind = value.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
            if value.name in weights:
                continue
            if -1 in shape:
                given = options.shapes.get(value.name, [max(extent, 1) if extent < 0 else extent for extent in shape])
                shape = self.shapes[value.name] = given
            self.inputs.append((value.name, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), shape))
        self.macs = int(self.metadata["macs"]) if "macs" in self.metadata else None
        # What no engine can do without; outputs of open shapes are not counted.
        self.bytes = sum(math.prod(w.dims) * onnx.helper.tensor_dtype_to_np_dtype(w.data_type).itemsize
                         for w in model.graph.initializer)
        self.bytes += sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in self.inputs)
        for value in model.graph.output:
            kind = value.type.tensor_type
            self.bytes += math.prod(d.dim_value for d in kind.shape.dim) * onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize

    def write_inputs(self, folder):
        """Seeded values for each input, in files; name -> path. Where the metadata says nothing: normal numbers, integers 0 and 1."""
        rng = np.random.Generator(np.random.PCG64(7))
        files = {}
        for index, (name, dtype, shape) in enumerate(self.inputs):
            kind, *limits = self.metadata.get("input:" + name, "normal" if dtype.kind == "f" else "int 0 2").split()
            if kind == "normal":
                values = rng.standard_normal(shape, np.float32)
            elif kind == "int":
                values = rng.integers(int(limits[0]), int(limits[1]), shape, np.int64)
            else:  # prefix_ones COUNT
                values = (np.arange(math.prod(shape)) < int(limits[0])).reshape(shape)
            files[name] = os.path.join(folder, f"input{index}")
            values.astype(dtype).tofile(files[name])
        return files


def outputs_of(worker, folder):
    prefix = os.path.join(folder, worker.name + "_output")
    names = worker.ask("outputs " + prefix, "outputs").split()
    return {name: np.fromfile(prefix + str(i), np.float32) for i, name in enumerate(names)}


def error_l2(got, want):
    """The largest over outputs of |got - want| / |want|; infinite when something is missing or not finite."""
    worst = 0.0
    for name, values in want.items():
        other = got.get(name)
        if other is None or other.shape != values.shape or not np.isfinite(other).all():
            return math.inf
        difference = np.linalg.norm(other.astype(np.float64) - values)
        worst = max(worst, float(difference / max(np.linalg.norm(values.astype(np.float64)), 1e-30)))
    return worst


def settle(worker, seconds):
    """Nine more inferences after the first, fewer if they would take longer than `seconds`; then the peak memory."""
    done, start, last = 1, time.monotonic(), 0.0
    while done < 10 and (done == 1 or time.monotonic() - start < seconds):
        last = worker.run(1)[0]
        done += 1
    return last, done, worker.memory_kib()


def start_engine(start, options, facts):
    """Starts the engine --loads times, one after the other, each for ten inferences, and keeps the last process. Times and
    memory are medians over the starts: allocators do not take the same each time."""
    ready, peaks, worker = [], [], None
    for _ in range(max(options.loads, 1)):
        if worker:
            worker.close()
        worker = start()
        try:
            ready.append(worker.ready())
        except engines.EngineError:
            worker.close()
            raise
        facts["last_s"], facts["inferences_at_peak"], peak = settle(worker, 20)
        peaks.append(peak)
        if ready[-1]["total_s"] > 5:
            break
    numbers = {k for k, v in ready[0].items() if isinstance(v, float)}
    facts["ready"] = {k: statistics.median(r[k] for r in ready) if k in numbers else v for k, v in ready[-1].items()}
    facts["peaks_kib"], facts["peak_kib"] = peaks, statistics.median_low(peaks)
    return worker


def measure(name, threads, options):
    model = Model(name, options)
    run = {"model": model.name, "threads": threads, "macs": model.macs, "bytes": model.bytes, "engines": {},
           "order_seed": 1, "copy_gbs": account.copy_rate() / 1e9}
    if model.shapes:
        run["shapes"] = model.shapes
    workers = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = model.write_inputs(folder)
        try:
            check_and_start(model, threads, inputs, folder, options, run, workers)
            play_rounds(workers, threads, options, run)
        finally:
            for worker in workers.values():
                worker.close()
    summarize(run, options)
    return run


def check_and_start(model, threads, inputs, folder, options, run, workers):
    def ours():
        return engines.start_ours(options.bin_dir, plan, threads, inputs, options.timeout)

    reference, allowed = None, LARGEST_ERROR
    if model.name.endswith(INT8) and "onnxruntime" in options.peers:
        source = engines.start_peer("onnxruntime", model.path.replace(INT8 + ".onnx", ".onnx"), threads, inputs, model.shapes,
                                    options.timeout)
        source.ready()
        reference, allowed = outputs_of(source, folder), None
        source.close()
    for name in [*options.peers, *([] if options.peers_only else ["ours"])]:
        facts = run["engines"][name] = {}
        try:
            if name == "ours":
                plan, run["build"] = engines.build_ours(options.bin_dir, model.path, model.shapes, threads,
                                                        options.plan_dir, options.timeout, options.rebuild)
                worker = start_engine(ours, options, facts)
            else:
                worker = start_engine(lambda: engines.start_peer(name, model.path, threads, inputs, model.shapes,
                                                                 options.timeout),
                                      options, facts)
            workers[name] = worker
            outputs = outputs_of(worker, folder)
            reference = outputs if reference is None and name == "onnxruntime" else reference
            if reference is not None:
                facts["error_l2"] = error_l2(outputs, reference)
                allowed = MORE_ERROR_INT8 * facts["error_l2"] if allowed is None else allowed
                if not facts["error_l2"] <= allowed:
                    raise engines.EngineError(f"{name}: outputs differ from ONNX Runtime's by {facts['error_l2']:.2e} "
                                              f"(relative L2; allowed {allowed})")
            worker.pause()
        except engines.EngineError as error:
            fail(run, name, error)
            if name in workers:
                workers.pop(name).close()


def fail(run, name, error):
    run["engines"][name]["failure"] = str(error)
    print(f"  {run['model']}, {run['threads']} threads: {error}", flush=True)


def play_rounds(workers, threads, options, run):
    peak = workers["fma_peak"] = engines.start_fma_peak(options.bin_dir, threads)
    run["fma_flops"] = peak.ready()["flops"]
    peak.pause()
    if options.undisturbed:
        for worker in workers.values():
            worker.go_first()
    if options.clock == "cpu":
        for worker in workers.values():
            worker.resume()
            worker.count_cpu_time()
            worker.pause()
    counts = {"fma_peak": (1, 3)}
    for name, worker in workers.items():
        if name != "fma_peak":
            last = run["engines"][name].pop("last_s")
            counts[name] = (1 if last < 0.5 else 0, max(1, min(200, round(options.turn / last))))
            run["engines"][name]["times_s"] = []
    run["fma_times_s"] = []
    order, shuffle = list(workers), random.Random(run["order_seed"])
    start = time.monotonic()
    for played in range(options.rounds):
        elapsed = time.monotonic() - start
        if options.budget and played >= 3 and elapsed * (played + 1) / played > options.budget:
            break
        shuffle.shuffle(order)
        for name in list(order):
            times = run["fma_times_s"] if name == "fma_peak" else run["engines"][name]["times_s"]
            try:
                times.append(statistics.median(workers[name].turn(*counts[name])))
            except engines.EngineError as error:
                if name == "fma_peak":
                    raise
                fail(run, name, error)
                run["engines"][name].pop("times_s")  # rounds of some engines only would not be comparable
                order.remove(name)
    run["rounds"] = len(run["fma_times_s"])
    run["record"] = run["rounds"] >= RECORD_ROUNDS


def summarize(run, options):
    rates = [run["fma_flops"] / t for t in run["fma_times_s"]]
    run["fma_gflops"] = statistics.median(rates) / 1e9 if rates else None
    run["share"], run["share_fma"] = {}, {}
    by_bytes = run["bytes"] / (run["copy_gbs"] * 1e9)
    known = rates and run["macs"] is not None
    run["bound"] = ("work" if 2 * run["macs"] / statistics.median(rates) >= by_bytes else "bytes") if known else None
    for name, facts in run["engines"].items():
        times = facts.get("times_s")
        if times:
            facts["median_s"] = statistics.median(times)
            if not known:
                continue
            pairs = [(2 * run["macs"] / rate, t) for t, rate in zip(times, rates)]
            run["share_fma"][name] = statistics.median(by_work / t for by_work, t in pairs)
            run["share"][name] = statistics.median(max(by_work, by_bytes) / t for by_work, t in pairs)
    peers = [n for n, facts in run["engines"].items() if n != "ours" and "median_s" in facts and n not in options.unheld]
    run["best_peer"] = min(peers, key=lambda n: run["engines"][n]["median_s"], default=None)
    run["ratio"] = None
    if peers and "median_s" in run["engines"].get("ours", {}):
        pairs = zip(run["engines"][run["best_peer"]]["times_s"], run["engines"]["ours"]["times_s"])
        run["ratio"] = statistics.median(theirs / ours for theirs, ours in pairs)


def measure_products(bin_dir):
    """What bench_gemm prints of PRODUCTS, for the widest instructions."""
    rows = []
    for shape in PRODUCTS:
        done = subprocess.run([os.path.join(bin_dir, "bench_gemm"), *map(str, shape)], capture_output=True, text=True,
                              check=True, timeout=600)
        for line in done.stdout.splitlines():
            head = re.match(r" *(\d+) x +(\d+) x +(\d+) +(.+?) +(\d+)T +peak +([\d.]+) GFLOP/s \|", line)
            if not head:
                continue
            m, n, k, threads = (int(head.group(i)) for i in (1, 2, 3, 5))
            if rows and rows[-1]["isa"] != head.group(4) and (rows[-1]["m"], rows[-1]["n"], rows[-1]["k"]) == (m, n, k):
                break
            shares = {tile: round(float(share) / 100, 4) for tile, share in re.findall(r"(\d+x\d+) +([\d.]+) %", line)}
            rows.append({"m": m, "n": n, "k": k, "isa": head.group(4), "threads": threads,
                         "fma_gflops": float(head.group(6)), "shares": shares, "best": max(shares.values())})
            print(f"product {m}x{n}x{k}, {head.group(4)}, {threads} threads: {100 * rows[-1]['best']:.1f} % of the FMA loop")
    return rows


def row_of(run):
    """What a record keeps of a run: no samples."""
    first = ("model", "threads", "rounds", "ratio", "best_peer")
    row = {k: run[k] for k in first} | {k: v for k, v in run.items() if k not in (*first, "engines", "fma_flops", "fma_times_s", "order_seed")}
    row["engines"] = {}
    for name, facts in run["engines"].items():
        row["engines"][name] = {k: v for k, v in facts.items() if k not in ("times_s", "peaks_kib")}
        if facts.get("times_s"):
            row["engines"][name]["spread_s"] = [min(facts["times_s"]), max(facts["times_s"])]
    return row


def versions(peers):
    found = {}
    for name in peers:
        code = f"import {name}; print({name}.__version__)"
        found[name] = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        if not found[name]:
            sys.exit(f"cpu_peers: {name} is not installed (make bench-peers installs it into .venv)")
    return found


def main():
    options = arguments()
    for program in ("engine_worker", "fma_peak", "bench_gemm"):
        if not os.path.exists(os.path.join(options.bin_dir, program)):
            sys.exit(f"cpu_peers: {options.bin_dir}/{program} is not there; make bench-peers builds it")
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    kept = ("models", "any", "shapes", "threads", "rounds", "peers", "isa", "clock", "undisturbed", "turn", "budget", "loads")
    record = header(cpu_name(), date=now, load_average=os.getloadavg(), versions=versions(options.peers),
                    options={k: getattr(options, k) for k in kept}, interpreter_kib=engines.interpreter_kib(), rows=[])
    path = options.out or os.path.join(engines.ROOT, "bench", "results", f"cpu_peers-{now[:10]}-{record['commit']}.json")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    print(f"{record['machine']}, load {record['load_average'][0]:.1f}; commit {record['commit']}; "
          + ", ".join(f"{n} {v}" for n, v in record["versions"].items()))
    record["products"] = [] if options.any or options.peers_only or not options.rounds else measure_products(options.bin_dir)
    report.print_header(options.peers)
    for name in [*options.models, *options.any]:
        for threads in options.threads:
            run = measure(name, threads, options)
            report.print_run(run, options.peers)
            record["rows"].append(row_of(run))
            record["geometric_mean"] = report.geometric_mean(record)
            write_record(path, record)  # after every run: a session may be cut short
    report.print_summary(record)
    print(path)
    return any("failure" in facts for run in record["rows"] for facts in run["engines"].values())


if __name__ == "__main__":
    sys.exit(main())
