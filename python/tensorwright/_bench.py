# SPDX-License-Identifier: Apache-2.0
"""A model in this engine and in others on the same machine: every engine is a process of its own, in a round each has a turn, in
changing order, while the others are stopped. An engine's time of a round is the median of its turn."""

import html
import importlib.util
import json
import math
import os
import platform
import random
import statistics
import tempfile

import numpy as np

from . import _memory, _power, _worker
from ._model import write

OURS = "tensorwright"
TIMEOUT = 900.0  # seconds for a load or a turn
# Relative L2 against the first peer; lower precisions are shown and not judged.
LARGEST_ERROR = 1e-3
TURN, TURN_WITH_POWER = 0.1, 0.5  # seconds; counters of GPUs move ten times a second


def shapes_of(text):
    """trtexec's NAME:1x3x224x224,... as {name: shape}; a name may hold colons."""
    shapes = {}
    for part in filter(None, text.split(",")):
        name, colon, extents = part.rpartition(":")
        try:
            shapes[name] = tuple(int(n) for n in extents.split("x")) if extents else ()
        except ValueError:
            colon = ""
        if not colon or not name or any(n < 0 for n in shapes[name]):
            raise ValueError(f"--shapes: {part!r} is no NAME:1x3x224x224")
    return shapes


def interval(values, confidence=0.95):
    """(median, low, high): the median and its confidence interval by order statistics, which asks nothing of the distribution. With
    fewer than 6 values there is none of 95 %, and low and high are the extremes."""
    values = sorted(values)
    n, below, k = len(values), 0.0, 0
    while k < n // 2:
        below += math.comb(n, k) / 2.0**n
        if 2 * below > 1 - confidence:
            break
        k += 1
    return statistics.median(values), values[max(k - 1, 0)], values[n - max(k, 1)]


def error_l2(got, want):
    """Relative L2 distance; infinite where shapes or finiteness differ."""
    if got.shape != want.shape or not np.isfinite(got).all():
        return math.inf
    norm = float(np.linalg.norm(want.astype(np.float64)))
    gap = float(np.linalg.norm(got.astype(np.float64) - want))
    return gap / norm if norm else (0.0 if gap == 0 else math.inf)


def installed(model=""):
    """The peers that can run the model: torch runs programs that torch.export wrote, the others ONNX."""
    peers = [*_worker.PEERS, "torch"] if is_program(model) else _worker.PEERS
    return [name for name in peers if importlib.util.find_spec(name)]


def is_program(model):
    return os.fspath(model).endswith(".pt2")


def _outputs(worker, folder):
    prefix = os.path.join(folder, worker.name + ".out")
    names = worker.ask(f"outputs {prefix}", "outputs").split(" ")
    return {name: np.fromfile(prefix + str(i), np.float32) for i, name in enumerate(names)}


def measure(options):
    """The result as a dict; what could not be measured has a `failure`."""
    if options.turn is None:
        options.turn = TURN_WITH_POWER if options.power else TURN
    for name, least in (("threads", 1), ("rounds", 1)):
        if getattr(options, name) < least:
            raise ValueError(f"--{name}: {getattr(options, name)} is too small (at least {least})")
    if not 0 < options.turn < 60:
        raise ValueError(f"--turn: {options.turn} seconds are not between 0 and 60")
    peers = installed(options.model) if options.peers is None else [p for p in options.peers.split(",") if p]
    for name in peers:
        if name not in (*_worker.PEERS, "torch"):
            raise ValueError(f"--peers: {name!r} is none (allowed: {', '.join(_worker.PEERS)}, torch)")
        if name == "torch" and not is_program(options.model):
            raise ValueError("--peers: torch runs programs of torch.export.save() (NAME.pt2), which the others get as ONNX")
        if name not in installed(options.model):
            raise ValueError(f"--peers: {name} is not installed")
    # The pool of a process is made at its first use, which the build below is.
    os.environ["TENSORWRIGHT_NUM_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        return _measured(options, peers, folder)


def _measured(options, peers, folder):
    from ._compile import compile
    from ._torch import export_program

    device, onnx = _memory.resolve(options.device), options.model
    if is_program(options.model):
        onnx = os.path.join(folder, "model.onnx")
        export_program(options.model, onnx)
    model = compile(onnx, shapes_of(options.shapes), options.precision, device=device)
    inputs = model.random_inputs(options.seed)
    result = {
        "model": os.path.basename(options.model),
        "machine": platform.processor() or platform.machine(),
        "device": device,
        "precision": options.precision,
        "threads": options.threads,
        "load_average": os.getloadavg()[0],
        "shapes": {name: list(a.shape) for name, a in inputs.items()},
        "engines": {},
    }
    workers = {}
    try:
        _start(workers, result, peers, model, inputs, options, onnx, folder)
        _rounds(workers, result, options)
    finally:
        for worker in workers.values():
            worker.close()
    return result


def _start(workers, result, peers, model, inputs, options, onnx, folder):
    """Starts the engines and compares their outputs with the first peer's."""
    plan = os.path.join(folder, "engine.plan")
    model.save(plan)
    files = {name: os.path.join(folder, f"input{i}.npy") for i, name in enumerate(inputs)}
    for name, path in files.items():
        np.save(path, inputs[name])
    shapes = {name: array.shape for name, array in inputs.items()}
    ours = {"TENSORWRIGHT_DEVICE": result["device"], "TENSORWRIGHT_NUM_THREADS": str(options.threads)}
    expected = None
    for name in [*peers, OURS]:
        facts = result["engines"][name] = {}
        source, environment = (plan, ours) if name == OURS else (options.model if name == "torch" else onnx, None)
        worker = _worker.start_peer(name, source, options.threads, files, shapes, TIMEOUT, environment)
        try:
            facts["ready"] = worker.ready()
            outputs = _outputs(worker, folder)
            if expected is None:
                expected, facts["reference"] = outputs, True
            else:
                facts["error_l2"] = max((error_l2(outputs[n], y) for n, y in expected.items() if n in outputs), default=math.inf)
                if options.precision == "fp32" and not facts["error_l2"] <= LARGEST_ERROR:
                    raise _worker.EngineError(f"its outputs differ from {next(iter(result['engines']))}'s by {facts['error_l2']:.1e}")
            worker.pause()
            workers[name] = worker
        except _worker.EngineError as error:
            facts["failure"] = str(error)
            worker.close()


def _rounds(workers, result, options):
    meters = {}
    if options.power:
        # Peers run on the CPU.
        meters = {name: _power.Meter(result["device"] if name == OURS else "cpu") for name in workers}
        _power.look_at_idle(meters.values())
    order, chance = list(workers), random.Random(options.seed)
    counts, warm_up, times = {}, {}, {name: [] for name in workers}
    for turn in range(options.rounds + 1):
        chance.shuffle(order)
        for name in [n for n in order if n in workers]:
            try:
                if turn and options.power:
                    seconds = workers[name].turn(warm_up[name], counts[name], meters[name])
                else:
                    seconds = workers[name].turn(1, counts.get(name, 1))
                if turn == options.rounds:
                    workers[name].resume()
                    result["engines"][name]["peak_memory_mib"] = workers[name].memory_kib() / 1024
                    workers[name].pause()
            except _worker.EngineError as error:
                result["engines"][name]["failure"] = str(error)
                workers.pop(name).close()
                continue
            median = statistics.median(seconds)
            counts[name] = max(1, min(10000, round(options.turn / max(median, 1e-7))))
            warm_up[name] = math.ceil(_power.LAG / max(median, 1e-7))
            if turn:  # the first finds out how many runs a turn has
                times[name].append(median)
    for name in workers:
        median, low, high = interval(times[name])
        facts = result["engines"][name]
        facts.update(median_s=median, interval_s=[low, high], times_s=times[name])
        if name in meters:
            facts["power"] = meters[name].facts()
    peers = [n for n in workers if n != OURS]
    if OURS in workers and peers:
        best = min(peers, key=lambda n: result["engines"][n]["median_s"])
        median, low, high = interval([theirs / ours for theirs, ours in zip(times[best], times[OURS])])
        result.update(best_peer=best, ratio=median, ratio_interval=[low, high])


def _used(facts):
    """What an engine took beside time, in lines."""
    on_gpu = facts["ready"].get("device_memory_mib", 0)
    memory = f"peak memory {facts['peak_memory_mib']:.1f} MiB" + (f", on the GPU {on_gpu:.1f} MiB" if on_gpu else "")
    power = facts.get("power")
    if not power:
        return [memory]
    if "not_readable" in power:
        return [memory, f"power is not readable here: {power['not_readable']}"]
    return [
        memory,
        f"{power['mean_w']:.4g} W (idle: {power['idle_w']:.4g} W), {power['energy_per_inference_j']:.4g} J per inference, "
        f"{power['inferences_per_joule']:.4g} inferences per joule ({power['source']})",
    ]


def text(result):
    """The result in lines."""
    lines = [f"{result['model']}: {result['precision']}, {result['device']}, {result['threads']} threads"]
    for name, facts in result["engines"].items():
        if "failure" in facts:
            lines.append(f"  {name:12} not measured: {facts['failure']}")
            continue
        low, high = facts["interval_s"]
        error = f", differs by {facts['error_l2']:.1e}" if "error_l2" in facts else ""
        lines.append(f"  {name:12} {1000 * facts['median_s']:9.3f} ms  [{1000 * low:.3f}, {1000 * high:.3f}]{error}")
        lines += [f"  {'':12} {line}" for line in _used(facts)]
    if "ratio" in result:
        low, high = result["ratio_interval"]
        lines.append(f"  {result['best_peer']} takes {result['ratio']:.2f} [{low:.2f}, {high:.2f}] times as long")
    if result["load_average"] > 1:
        lines.append(f"  the machine was busy (load average {result['load_average']:.1f}): times of engines are comparable, not good")
    return "\n".join(lines)


def page(result):
    """A page with a plot: each round a dot, the median and its interval."""
    rows = [(n, f) for n, f in result["engines"].items() if "median_s" in f]
    most = max((max(f["times_s"]) for _, f in rows), default=1.0) * 1000
    width, left, height = 720, 130, 46
    parts = []

    def x(seconds):
        return left + 1000 * seconds / most * (width - left - 20)

    for i, (name, facts) in enumerate(rows):
        y = 20 + height * i
        low, high = facts["interval_s"]
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>')
        parts += [f'<circle cx="{x(t):.1f}" cy="{y}" r="3" class="dot"/>' for t in facts["times_s"]]
        parts.append(f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + 12}" y2="{y + 12}" class="interval"/>')
        parts.append(f'<circle cx="{x(facts["median_s"]):.1f}" cy="{y + 12}" r="4" class="median"/>')
        parts.append(f'<text x="{x(high) + 8:.1f}" y="{y + 16}">{1000 * facts["median_s"]:.3f} ms</text>')
    title = html.escape(result["model"])
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
:root {{ color-scheme: light dark; }} body {{ font: 14px system-ui, sans-serif; margin: 24px; }}
text {{ fill: currentColor; font-size: 13px; }} .dot {{ fill: #3b7dd8; opacity: .35; }}
.median {{ fill: #d8572a; }} .interval {{ stroke: #d8572a; stroke-width: 3; }}
</style></head><body><h1>{title}</h1><pre>{html.escape(text(result))}</pre>
<svg viewBox="0 0 {width} {20 + height * max(1, len(rows))}" width="{width}" role="img" aria-label="times of rounds">{"".join(parts)}</svg>
<p>A dot is a round, its x the median time of a run; below it the median of all rounds with its interval of 95 % confidence.</p></body></html>
"""


def picture(result, path):
    """The plot as PNG."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("--png needs matplotlib (pip install matplotlib); --html needs nothing") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [(n, f) for n, f in result["engines"].items() if "median_s" in f]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.6 * max(1, len(rows))), layout="constrained")
    for i, (_, facts) in enumerate(rows):
        low, high = facts["interval_s"]
        axes.plot([1000 * t for t in facts["times_s"]], [i] * len(facts["times_s"]), "o", alpha=0.35, color="tab:blue")
        axes.plot([1000 * low, 1000 * high], [i - 0.2] * 2, linewidth=3, color="tab:red")
        axes.plot([1000 * facts["median_s"]], [i - 0.2], "o", color="tab:red")
    axes.set_yticks(range(len(rows)), [n for n, _ in rows])
    axes.set_xlim(left=0)
    axes.set_xlabel("ms")
    axes.set_title(result["model"])
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(options):
    result = measure(options)
    print(text(result))
    for path, data in ((options.json, json.dumps(result, indent=1)), (options.html, page(result))):
        if path:
            write(path, data.encode())
    if options.png:
        picture(result, options.png)
    return 0 if "median_s" in result["engines"][OURS] else 1
