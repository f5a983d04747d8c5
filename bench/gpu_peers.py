#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gpu_peers.py [options]          (on a machine with a GPU, PyTorch, numpy and onnx; scripts/gpu/run.sh peers)

This engine beside PyTorch on whole networks, FP16, seeded random weights, each in a CUDA graph:
  torch_compile  torch.compile, mode max-autotune (its own graphs off: everything here is captured by the same code)
  eager          PyTorch's eager kernels
  library        the network by hand as a chain of library calls; transformers without embeddings and heads
  ours           this engine; ours_body: the transformers without embeddings and heads
A row is one network at one batch, in one process on one GPU: all are built, compared on fresh inputs with PyTorch in FP32 (TF32
off, FP16-rounded inputs, spoilt outputs), timed in rounds of random order with CUDA events around back-to-back replays, and
compared again. Times are medians over the rounds in milliseconds. Where the peers take channels-last images, `ours` copies them
into its own order within its graph, and `ours_nchw` is without that copy. torch's attention is the fastest of cuDNN's, flash and
the memory-efficient one, measured at each shape.

JSON (record.py): the GPU, versions, settings, and `rows`:
  network batch seq                    the row
  ours_ms ours_body_ms                 to be set against torch_compile_ms (whole network) and library_ms (body; ResNet: whole)
  ours_nchw_ms eager_ms                for information
  build_s body_build_s build_cached_s  of ours: without a timing cache; ResNet-50 batch 1 also with one
  host_us host_graph_us                host time of one enqueue, kernel by kernel and by the engine's own graph
  rel_err body_rel_err errors          largest ||y - PyTorch FP32|| / ||PyTorch FP32|| of ours; of all. tolerance: 1e-2, or twice TC's
  checked                              whether every output of ours was compared with PyTorch's in this run and is within tolerance
  failed                               what went wrong, in words; the rest of the row stands
"""
import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gpu_inductor_cache
from record import header, write_record

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds that a row takes when torch.compile has no cache, about: long ones begin first.
EXPECTED = {"resnet50_b256": 240, "resnet50_b32": 210, "resnet50_b1": 200, "bert_large_b32": 110, "bert_large_b1": 100,
            "vit_b16_b64": 75, "vit_b16_b1": 70, "bert_base_b32": 55, "bert_base_b1": 50}
FIELDS = ["ours_ms", "ours_body_ms", "torch_compile_ms", "library_ms", "build_s", "rel_err"]


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", default=os.environ.get("OUT", "."), help="folder of the JSON, logs and caches")
    parser.add_argument("--json", default="peers.json", help="name of the JSON in --out")
    parser.add_argument("--library", default=os.path.join(HERE, "..", "build", "release", "lib", "libtensorwright_gpu_engine.so"))
    parser.add_argument("--models", default=os.path.join(HERE, "models"), help="folder of bench/models")
    parser.add_argument("--commit", help="file with the commit, where there is no git")
    parser.add_argument("--gpus", type=int, default=0, help="rows at a time, one to a GPU (0: as many as there are GPUs)")
    parser.add_argument("--rows", help="NAME_bBATCH,...: these alone (the record needs all nine); names of "
                        "torch_networks.py, which needs torchvision, timm and transformers; exported, recurrent: all of those")
    parser.add_argument("--networks", help="a Python file with networks (gpu_networks.py, FromFile, says what it holds): rows of it, all where "
                        "--rows names none")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--time-seconds", type=float, default=12, help="most seconds of rounds for a row, behind the third")
    parser.add_argument("--row-seconds", type=float, default=400, help="a row is ended after that")
    parser.add_argument("--seconds", type=float, default=560, help="all rows are ended after that")
    parser.add_argument("--precision", choices=["fp16", "fp32"], default="fp16", help="what our builder may use")
    parser.add_argument("--io", choices=["fp16", "fp32"], default="fp16", help="our inputs and outputs")
    parser.add_argument("--skip-tc", action="store_true", help="no torch.compile: no record")
    parser.add_argument("--skip-ours", action="store_true", help="the peers alone: no record")
    parser.add_argument("--inductor-cache", nargs="*", default=[], help="pieces that --save-inductor wrote, in order")
    parser.add_argument("--save-inductor", action="store_true", help="what torch.compile found, to --out in pieces of 14 MiB")
    parser.add_argument("--small", action="store_true", help="small networks: for a machine without a GPU")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


# --- the machine ---


def output_of(*command, stderr=subprocess.DEVNULL):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=True).stdout.decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(options):
    gpu, gpus, versions = json.loads(output_of(sys.executable, "-c", """
import json, platform, torch
versions = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version()}
try:
    import triton
    versions["triton"] = triton.__version__
except ImportError:
    pass
gpus = torch.cuda.device_count()
print(json.dumps([torch.cuda.get_device_name(0) if gpus else "no GPU", gpus, versions]))"""))
    versions["driver"] = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0]
    facts = header(gpu, versions=versions, gpus=gpus)
    if options.commit:
        with open(options.commit, encoding="utf-8") as file:
            facts["commit"] = file.read().strip()[:12]
    return facts


# --- rows ---


class Runner:
    """Runs rows, one process each. Lane i has GPU i and its share of the processors, and two rows: while one has the GPU, the
    other makes its models and waits for the GPU's lock."""

    def __init__(self, options, rows, folder, lanes):
        self.options, self.folder, self.lanes = options, folder, lanes
        self.deadline = time.monotonic() + options.seconds
        self.left = queue.SimpleQueue()
        for row in sorted(rows, key=lambda r: -EXPECTED.get(r, 0)):
            self.left.put(row)
        self.lock, self.results = threading.Lock(), {}
        inductor = os.path.join(folder, "inductor")
        os.makedirs(inductor)
        gpu_inductor_cache.unpack(options.inductor_cache, inductor)
        self.settings = os.path.join(folder, "options.json")
        with open(self.settings, "w", encoding="utf-8") as file:
            json.dump({"models": os.path.abspath(options.models), "library": os.path.abspath(options.library), "folder": folder,
                       "inductor": inductor, "seed": options.seed, "skip_tc": options.skip_tc, "skip_ours": options.skip_ours,
                       "precision": options.precision, "io": options.io, "rounds": options.rounds,
                       "time_seconds": options.time_seconds, "small": options.small,
                       "networks": options.networks and os.path.abspath(options.networks)}, file)

    def all(self, changed):
        """changed(results) is called after each row."""
        threads = [threading.Thread(target=self._lane, args=(i // 2, changed)) for i in range(2 * self.lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _lane(self, lane, changed):
        while True:
            try:
                row = self.left.get_nowait()
            except queue.Empty:
                return
            result = self._row(row, lane)
            with self.lock:
                self.results[row] = result
                changed(self.results)

    def _row(self, row, lane):
        cpus = sorted(os.sched_getaffinity(0))
        share = cpus[lane * len(cpus) // self.lanes:(lane + 1) * len(cpus) // self.lanes] or cpus
        own = os.path.join(self.folder, row + "_caches")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": own, "TRITON_CACHE_DIR": os.path.join(own, "triton"),
                       "TORCHINDUCTOR_COMPILE_THREADS": str(len(share)), "OMP_NUM_THREADS": str(len(share)),
                       "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        visible = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        environment["CUDA_VISIBLE_DEVICES"] = visible[lane] if lane < len(visible) else str(lane)
        path = os.path.join(self.folder, row + ".json")
        begin, reason = time.monotonic(), None
        with open(os.path.join(self.options.out, f"peers_{row}.log"), "wb") as log:
            command = [sys.executable, os.path.join(HERE, "gpu_row.py"), self.settings, row, path,
                       os.path.join(self.folder, f"gpu{lane}.lock")]
            child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                     start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, share))
            status, got_gpu = self._wait(child, path)
            if status is None:
                reason = f"ended after {time.monotonic() - (got_gpu or begin):.0f} s" + ("" if got_gpu else " of waiting for the GPU")
            elif status:
                reason = f"the process ended with status {status}"
            try:
                os.killpg(child.pid, signal.SIGKILL)  # whatever it started
            except ProcessLookupError:
                pass
            child.wait()
        try:
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError):
            name, _, batch = row.rpartition("_b")
            result = {"network": name, "batch": int(batch), "seq": None, "checked": False, "failed": []}
        if reason or not result.pop("done", False):
            result["failed"].append(reason or "the process ended early")
        result["row_s"] = round(time.monotonic() - (got_gpu or begin), 1)
        for field in FIELDS:
            result.setdefault(field, None)
        return result


    def _wait(self, child, path):
        """The status, nothing for one that took too long; when the row got its GPU."""
        got_gpu = None
        while True:
            try:
                return child.wait(0.2), got_gpu
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if got_gpu is None and os.path.exists(path + ".gpu"):
                    got_gpu = now
                if now > self.deadline or got_gpu and now > got_gpu + self.options.row_seconds:
                    return None, got_gpu


# --- the table ---


def number(value, text="{:.3f}"):
    return "-" if value is None else text.format(value)


def print_table(results):
    print(f"{'row':<16}{'ours':>9}{'body':>9}{'TC':>9}{'LIB':>9}{'eager':>9}{'TC/ours':>9}{'LIB/ours':>9}{'build s':>9}"
          f"{'rel err':>9}{'TC err':>9}  checked")
    for row in results.values():
        ours, tc, library = row["ours_ms"], row["torch_compile_ms"], row["library_ms"]
        body = row["ours_body_ms"] if row["network"] != "resnet50" else ours
        ratio = lambda peer, own: peer / own if peer and own else None
        error = lambda name: row.get("errors", {}).get(name)
        print(f"{row['network'] + '_b' + str(row['batch']):<16}{number(ours):>9}{number(row['ours_body_ms']):>9}{number(tc):>9}"
              f"{number(library):>9}{number(row.get('eager_ms')):>9}{number(ratio(tc, ours), '{:.2f}'):>9}"
              f"{number(ratio(library, body), '{:.2f}'):>9}{number(row['build_s'], '{:.1f}'):>9}"
              f"{number(row['rel_err'], '{:.1e}'):>9}{number(error('torch_compile'), '{:.1e}'):>9}  "
              f"{'yes' if row['checked'] else 'NO'}")
        for key in ("build_cached_s", "host_us", "host_graph_us"):
            if row["network"] == "resnet50" and row["batch"] == 1 and key in row:
                print(f"    {key} {row[key]}")
        for reason in row["failed"]:
            print(f"    {reason.splitlines()[0][:200] if reason else ''}")
    print(flush=True)


def main():
    options = arguments()
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    facts = machine(options)
    own, exported, recurrent = (output_of(sys.executable, "-c", f"import sys; sys.path.insert(0, {HERE!r}); import gpu_networks; "
                               f"print(*[n.row for n in gpu_networks.{rows}()])", stderr=None).split()
                     for rows in ("small_rows" if options.small else "rows", "exported_rows", "recurrent_rows"))
    of_file = output_of(sys.executable, "-c", f"import sys; sys.path.insert(0, {HERE!r}); import gpu_networks; "
                        f"print(*[n.row for n in gpu_networks.rows_of_file({options.networks!r})])", stderr=None).split() if options.networks else []
    names = of_file or own + exported + recurrent
    groups = {"exported": exported, "recurrent": recurrent}
    wanted = groups.get(options.rows) or (options.rows.split(",") if options.rows else of_file or own)
    unknown = [name for name in wanted if name not in names]
    if unknown or not names:
        sys.exit(f"gpu_peers.py: unknown row {unknown[0]!r}; there are {', '.join(names)}" if unknown else "gpu_peers.py: no networks (what failed is above)")
    lanes = max(1, options.gpus or facts["gpus"])
    facts["rows_at_a_time"] = lanes
    facts["settings"] = {"precision": options.precision, "io": options.io, "rounds": options.rounds, "seed": options.seed}

    def save(results):
        ordered = {name: results[name] for name in wanted if name in results}
        write_record(os.path.join(options.out, options.json), {**facts, "rows": list(ordered.values())})
        return ordered

    def changed(results):
        save(results)
        row = list(results.values())[-1]
        print(f"{row['network']}_b{row['batch']}: {row['row_s']} s, checked: {row['checked']}, TC in {row.get('tc_compile_s')} s; "
              f"ours {row['ours_ms']}, TC {row['torch_compile_ms']}, LIB {row['library_ms']}, body {row['ours_body_ms']}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, wanted, folder, min(lanes, len(wanted)))
        runner.all(changed)
        if options.save_inductor:
            gpu_inductor_cache.pack(os.path.join(folder, "inductor"), options.out)
    results = save(runner.results)
    print_table(results)
    bad = [name for name in wanted if name not in results or results[name]["failed"] or not results[name]["checked"]]
    print(f"{len(wanted)} rows, {len(bad)} with something missing" + (": " + " ".join(bad) if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
