# SPDX-License-Identifier: Apache-2.0
"""usage: report.py RECORD...

Tables of cpu_peers.py, and what its figures must reach: prints that of its records."""
import json
import math
import sys

# Median of best peer's time / our time: must, aim. Any network, and those of which more is asked.
RATIO = (1.0, 1.1)
RATIOS = {
    "unet": (1.5, 1.7), "resnet18": (1.35, 1.45),
    "yolov8n": (1.2, 1.3), "densenet121": (1.12, 1.2), "resnet50": (1.1, 1.18), "inception_v3": (1.08, 1.15),
    "efficientnet_b0": (1.2, 1.35), "mobilenet_v2": (1.1, 1.2),
    "bert_large_s128": (1.05, 1.12), "bert_base_s128": (1.04, 1.1), "vit_b16": (1.03, 1.1), "gpt2_s128": (1.02, 1.1),
}
# What a ratio may lack for the clock's sake.
NOISE = 0.02
GEOMETRIC_MEAN, GEOMETRIC_MEAN_INT8 = (1.3, 1.45), (1.1, 1.2)
# Seconds that a build takes of the CPU, of any network: what two cores give in 12 and in 6.
BUILD = (24.0, 12.0)
# ResNet-50: seconds of a build on two threads, cold and with the cache; seconds of a load, and as a share of the best
# peer's.
BUILD_COLD, BUILD_CACHED, LOAD, LOAD_SHARE = (15.0, 8.0), (1.0, 0.5), (0.150, 0.060), (0.5, 0.5)
# Products on one core, of the FMA loop timed in the same rounds.
PRODUCT = (0.92, 0.95)
# Peak resident memory as a share of the leaner peer's.
MEMORY = (0.85, 0.7)


def _ratios(record):
    """threads -> the models' ratios."""
    found = {}
    for row in record["rows"]:
        if row["ratio"] is not None:
            found.setdefault(str(row["threads"]), []).append(row["ratio"])
    return found


def geometric_mean(record):
    return {threads: math.exp(sum(map(math.log, ratios)) / len(ratios)) for threads, ratios in _ratios(record).items()}


def goals_of(record):
    """[{name, threads, value, must, aim, unit, verdict: aim|pass|miss}] by the rows and products."""
    goals = []

    def goal(name, run_threads, value, limits, unit, more_is_better):
        must, aim = limits
        sign = 1 if more_is_better else -1
        reached = lambda limit: limit is not None and sign * value >= sign * limit
        verdict = "aim" if reached(aim) or (aim is None and reached(must)) else "pass" if reached(must) else "miss"
        goals.append({"name": name, "threads": run_threads, "value": value, "must": must, "aim": aim, "unit": unit,
                      "verdict": verdict})

    for row in record.get("products", []):
        if row["threads"] == 1:
            goal(f"{row['m']}x{row['n']}x{row['k']}: of the FMA loop", 1, row["best"], PRODUCT, "x", True)
    for run in record["rows"]:
        model, threads, ours = run["model"], run["threads"], run["engines"].get("ours", {})
        peers = {n: f for n, f in run["engines"].items() if n != "ours" and "ready" in f}
        if run["ratio"] is not None:
            must, aim = RATIOS.get(model, RATIO)
            goal(f"{model}: best peer / ours", threads, run["ratio"], (must - NOISE, aim), "x", True)
        if "cpu_s" in run.get("build", {}).get("cold", {}):
            goal(f"{model}: cold build, of the CPU", threads, run["build"]["cold"]["cpu_s"], BUILD, "s", False)
        if peers and "peak_kib" in ours:
            leaner = min(f["peak_kib"] for f in peers.values() if "peak_kib" in f) - record["interpreter_kib"]
            goal(f"{model}: peak memory / leaner peer's", threads, ours["peak_kib"] / leaner, MEMORY, "x", False)
        if model == "resnet50":
            if threads == 2 and "build" in run:
                goal("resnet50: cold build", threads, run["build"]["cold"]["total_s"], BUILD_COLD, "s", False)
                goal("resnet50: build with cache", threads, run["build"]["cached"]["total_s"], BUILD_CACHED, "s", False)
            if "ready" in ours:
                seconds = ours["ready"]["total_s"]
                goal("resnet50: load to first inference", threads, seconds, LOAD, "s", False)
                if peers:
                    best = min(f["ready"]["total_s"] for f in peers.values())
                    goal("resnet50: load / best peer's", threads, seconds / best, LOAD_SHARE, "x", False)
    for threads, value in geometric_mean(record).items():
        quantized = all(run["model"].endswith("_int8") for run in record["rows"])
        goal(f"geometric mean over {len(_ratios(record)[threads])} models", int(threads), value,
             GEOMETRIC_MEAN_INT8 if quantized else GEOMETRIC_MEAN, "x", True)
    return goals


def _cell(value, scale=1.0, digits=2, width=9):
    return f"{'-':>{width}}" if value is None else f"{value * scale:{width}.{digits}f}"


def print_header(peers):
    names = "".join(f"{n:>12}" for n in ("ours", *peers))
    print(f"\n{'model':<17}{'T':>2}{'rounds':>7}{names} ms {'ratio':>7}{'share o/p %':>12}{'FMA':>6}"
          f"{'build s':>8}{'cached':>7}{'plan MB':>8}  load ms (ours, peers)  peak MB (ours, peers)  error (ours)")


def print_run(run, peers):
    order = ["ours", *peers]
    facts = [run["engines"].get(n, {}) for n in order]
    times = "".join(_cell(f.get("median_s"), 1e3, 2, 12) for f in facts)
    shares = (run["share"].get(n) for n in ("ours", run["best_peer"]))
    share = "/".join("-" if s is None else f"{s * 100:.0f}" for s in shares)
    build = run.get("build", {})
    cold, cached = build.get("cold", {}), build.get("cached", {})
    loads = " ".join(_cell(f.get("ready", {}).get("total_s"), 1e3, 0, 6) for f in facts)
    peaks = " ".join(_cell(f.get("peak_kib"), 1 / 1024, 0, 6) for f in facts)
    print(f"{run['model']:<17}{run['threads']:>2}{run['rounds']:>7}{times}    {_cell(run['ratio'], 1, 3, 7)}{share:>12}"
          f"{_cell(run['fma_gflops'], 1, 0, 6)}{_cell(cold.get('total_s'), 1, 1, 8)}"
          f"{_cell(cached.get('total_s'), 1, 1, 7)}{_cell(cold.get('plan_bytes'), 1e-6, 1, 8)}"
          f"  {loads}  {peaks}", end="")
    error = facts[0].get("error_l2")
    print("" if error is None else f"  error {error:.1e}", flush=True)


def print_summary(record):
    goals = goals_of(record)
    print(f"\n{'goal':<44}{'T':>3}{'value':>10}{'must':>8}{'aim':>8}  verdict")
    for g in goals:
        aim = "-" if g["aim"] is None else f"{g['aim']:g}"
        print(f"{g['name']:<44}{g['threads']:>3}{g['value']:>9.3f}{g['unit']}{g['must']:>8g}{aim:>8}  {g['verdict']}")
    counts = {v: sum(g["verdict"] == v for g in goals) for v in ("aim", "pass", "miss")}
    means = ", ".join(f"{v:.3f}x with {t} threads" for t, v in geometric_mean(record).items())
    print(f"{counts['aim']} at the aim, {counts['pass']} at the must, {counts['miss']} missed; "
          f"geometric mean {means or '-'}")
    if any(not run["record"] for run in record["rows"]):
        print("Not a record: fewer than 20 rounds for some models.")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as opened:
            print_summary(json.load(opened))
