# SPDX-License-Identifier: Apache-2.0
"""Engines of cpu_peers.py as processes (python/tensorwright/_worker.py): plans are built, workers started."""
import hashlib
import json
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "python", "tensorwright"))

from _worker import PEER_WORKER, PEERS, EngineError, Worker, pairs, shape_pairs, start_peer  # noqa: E402


# What holds engines to instructions: this one, oneDNN inside OpenVINO.
ISA_ENVIRONMENT = {"avx2": {"TENSORWRIGHT_CPU_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"}}


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "avx512f" in file.read()


def our_environment(threads):
    # What quantizers of exporters write, 8.5 does not import.
    return {"TENSORWRIGHT_DEVICE": "cpu", "TENSORWRIGHT_NUM_THREADS": str(threads), "TENSORWRIGHT_ONNX_QUANTIZED_OPS": "1"}


def start_ours(binaries, plan, threads, inputs, timeout):
    command = [os.path.join(binaries, "engine_worker"), "run", plan, *pairs(inputs)]
    return Worker("ours", command, our_environment(threads), timeout)


def start_fma_peak(binaries, threads):
    return Worker("fma_peak", [os.path.join(binaries, "fma_peak"), str(threads)])


def interpreter_kib():
    """What a Python process with numpy takes, which the peers' figures hold and ours does not."""
    worker = Worker("none", [sys.executable, PEER_WORKER, "none", "-", "1"])
    try:
        worker.ready()
        return worker.memory_kib()
    finally:
        worker.close()


def _digest(paths, text):
    total = hashlib.sha256(text.encode())
    for path in paths:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                total.update(block)
    return total.hexdigest()[:16]


def build_ours(binaries, model, shapes, threads, folder, timeout, again):
    """Builds a plan without a timing cache, then again with it. `shapes`: of inputs that the model leaves open. Plans are kept in
    `folder` under a name that holds what they depend on: model, shapes, libraries, threads. Returns the plan and the two builds' facts."""
    libraries = [os.path.join(binaries, "..", "lib", f"lib{n}.so.8") for n in ("nvinfer", "nvonnxparser")]
    key = _digest([model, *libraries], " ".join([*shape_pairs(shapes), os.environ.get("TENSORWRIGHT_CPU_ISA", "")]))
    stem = os.path.join(folder, f"{os.path.splitext(os.path.basename(model))[0]}-{threads}t-{key}")
    plan, facts = stem + ".plan", stem + ".json"
    if not again and os.path.exists(plan) and os.path.exists(facts):
        with open(facts, encoding="utf-8") as file:
            return plan, json.load(file)
    os.makedirs(folder, exist_ok=True)
    cache, result = stem + ".cache", {}
    if os.path.exists(cache):
        os.remove(cache)
    for kind in ("cold", "cached"):
        command = [os.path.join(binaries, "engine_worker"), "build", model, plan, cache, *shape_pairs(shapes)]
        worker = Worker("ours", command, our_environment(threads), timeout)
        try:
            result[kind] = json.loads(worker.reply("built"))
        finally:
            worker.close()
    with open(facts, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return plan, result


def times_in_turns(workers, seconds, rounds, first, repeats):
    """Seconds of a run, a median for each turn: [worker][round]. Turns last about `seconds`, and the order changes with each
    round; `first` is what turn() takes for the runs that say how many fit, `repeats` its first argument later."""
    for worker in workers:
        worker.pause()
    counts = [max(3, int(seconds / max(statistics.median(w.turn(*first)), 1e-6))) for w in workers]
    times = [[] for _ in workers]
    for r in range(rounds):
        for i in range(len(workers)) if r % 2 else reversed(range(len(workers))):
            times[i].append(statistics.median(workers[i].turn(repeats, counts[i])))
    return times
