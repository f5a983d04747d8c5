#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: PYTHONPATH=build/release/python .venv/bin/python bench/serving.py [--model resnet50] [--rounds 7] [--json FILE]

What `tensorwright serve` holds under load, on the CPU: the server is pinned to one core, the clients (threads of this process,
serving_clients.py) to another. Every answer is compared with the engine's own.

saturation  rounds in turns: trtexec --loadEngine on the server's core (the server is stopped meanwhile), then four clients that always
            have a request on its way, by shared memory, by HTTP with bytes and by gRPC. The ratio is the median of the rounds'.
half load   requests at even distances, half as many as at saturation; latency from the time that a request is due. Also with
            exponential distances ("poisson"), where requests queue whatever serves them: with equal service times the 99th percentile
            is 4.3 of them by the theory of queues.
burst       ten times saturation for --burst seconds against a queue of --queue: what does not fit gets 503, what was taken is answered.

Goals (exit status 1 when one is missed): shared memory at least 0.9 of trtexec; p99 at half load at most 3 medians; in the burst
only 200 and 503, every request answered, and as many answers as the server counts.

JSON (record.py): cores, load_average, versions, options, trtexec_qps and `rows` [{way, qps, ratio, ratios [least and most of the rounds],
client_busy (share of its core), server_ms and engine_ms (CPU and engine's time of a request at saturation; medians), half, poisson {rate,
median_ms, p90_ms, p99_ms, late_ms (the worst delay of the client itself)}, burst {rate, statuses, lost, counted, refusal_ms, p99_ms, late_ms}}].
"""
import argparse
import collections
import datetime
import importlib.metadata
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import engines
from cpu_peers import MAKE
from record import cpu_name, header, write_record

RATIO, TAIL = 0.9, 3.0
PACKAGES = ("tensorwright", "numpy", "aiohttp", "grpcio", "protobuf", "tritonclient")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50", help="a name of bench/models or an ONNX file: one input, one output, FP32, static shapes")
    parser.add_argument("--trtexec", default=os.path.join(engines.ROOT, "build", "release", "bin", "trtexec"))
    parser.add_argument("--build-flags", default="", help="more for trtexec's build: --int8 --fp16")
    parser.add_argument("--ways", default="shared_memory,http,grpc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a turn in a round")
    parser.add_argument("--requests", type=int, default=400, help="at half load")
    parser.add_argument("--burst", type=float, default=5.0, help="seconds")
    parser.add_argument("--queue", type=int, default=32, help="the server's")
    parser.add_argument("--cores", default="0,1", help="of the clients, of the server and trtexec")
    parser.add_argument("--json", help="default: bench/results/serving-DATE-COMMIT.json")
    return parser.parse_args()


def pinned(core, command, **options):
    environment = {**os.environ, **engines.our_environment(1)}
    return subprocess.Popen(command, env=environment, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}), **options)


def trtexec(options, core, *more):
    with pinned(core, [options.trtexec, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        text = process.communicate()[0]
    if process.returncode:
        sys.exit(f"trtexec {' '.join(more)} ended with {process.returncode}:\n" + "\n".join(text.splitlines()[-12:]))
    return text


class Server:
    """`tensorwright serve` as a process."""

    def __init__(self, plan, core, queue):
        command = [sys.executable, "-m", "tensorwright", "serve", f"model={plan}", "--port=0", "--grpc-port=0", "--shared-memory"]
        self.process = pinned(core, [*command, f"--queue={queue}"], stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        found = re.search(r"http://[^ ]+:(\d+) and gRPC on port (\d+)", line)
        if not found:
            sys.exit(f"the server did not start: {line!r}")
        self.ports = {"http": int(found[1]), "grpc": int(found[2])}

    def stopped(self, stops):
        os.kill(self.process.pid, signal.SIGSTOP if stops else signal.SIGCONT)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        """{name with labels: number}."""
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/metrics", timeout=60).read().decode()
        return {k: float(v) for k, _, v in (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))}

    def outcome(self, name):
        return self.metrics().get(f'tensorwright_requests_total{{model="model",outcome="{name}",version="1"}}', 0.0)

    def ran(self):
        """(runs, their seconds)."""
        found, labels = self.metrics(), '{model="model",version="1"}'
        return tuple(found.get(f"tensorwright_run_seconds_{what}{labels}", 0.0) for what in ("count", "sum"))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(120)


def milliseconds(rows):
    """Latencies of rows of Clients.arrive()."""
    times = sorted(1000 * seconds for _, seconds, _ in rows)
    at = {p: times[min(len(times) - 1, int(len(times) * p / 100))] for p in (90, 99)}
    return {"median_ms": statistics.median(times), "p90_ms": at[90], "p99_ms": at[99], "late_ms": 1000 * max(late for _, _, late in rows)}


def saturation(options, plan, server, ways):
    """Rounds in turns; fills `ways`, gives trtexec's rates."""
    rates = []
    for r in range(options.rounds):
        server.stopped(True)
        flags = [f"--loadEngine={plan}", "--warmUp=500", f"--duration={options.seconds}", "--iterations=3"]
        rates.append(float(re.search(r"Throughput: ([\d.]+) qps", trtexec(options, options.cores[1], *flags))[1]))
        server.stopped(False)
        for name in random.Random(r).sample(sorted(ways), len(ways)):
            clients, facts = ways[name]["clients"], ways[name]["facts"]
            before, cpu = server.ran(), server.cpu_seconds()
            qps, busy = clients.saturate(options.seconds)
            runs, seconds = (b - a for a, b in zip(before, server.ran()))
            facts["rates"].append(qps)
            facts["ratios"].append(qps / rates[-1])
            facts["client_busy"].append(busy)
            facts["server_ms"].append(1000 * (server.cpu_seconds() - cpu) / runs)
            facts["engine_ms"].append(1000 * seconds / runs)
        print(f"round {r + 1}: trtexec {rates[-1]:.2f}/s, "
              + ", ".join(f"{n} {w['facts']['rates'][-1]:.2f} ({w['facts']['ratios'][-1]:.3f})" for n, w in ways.items()), flush=True)
    return rates


def loaded(options, server, clients, facts):
    """Half load and the burst."""
    rate = facts["qps"] / 2
    even = [i / rate for i in range(options.requests)]
    chance, at, apart = random.Random(0), 0.0, []
    for _ in range(options.requests):
        at += chance.expovariate(rate)
        apart.append(at)
    for kind, times in (("half", even), ("poisson", apart)):
        rows = clients.arrive(times)
        strange = [status for status, *_ in rows if status != 200]
        if strange and kind == "half":
            raise RuntimeError(f"{len(strange)} requests were not answered at half load: {strange[:5]}")
        facts[kind] = {"rate": rate, "not_answered": len(strange), **milliseconds(rows)}
    rate, before = 10 * facts["qps"], server.outcome("ok")
    rows = clients.arrive([i / rate for i in range(int(rate * options.burst))])
    taken, refused = ([row for row in rows if row[0] == status] for status in (200, 503))
    statuses = collections.Counter(str(status) for status, *_ in rows)
    facts["burst"] = {"rate": rate, "statuses": statuses, "lost": statuses.get("None", 0), "counted": server.outcome("ok") - before,
                      "refusal_ms": statistics.median(1000 * (s - late) for _, s, late in refused) if refused else None,
                      **milliseconds(taken)}


def judged(name, facts):
    """What a way misses."""
    burst, half = facts["burst"], facts["half"]
    missed = []
    if name == "shared_memory" and facts["ratio"] < RATIO:
        missed.append(f"{facts['ratio']:.3f} of trtexec (goal: {RATIO})")
    if half["p99_ms"] > TAIL * half["median_ms"]:
        missed.append(f"p99 {half['p99_ms'] / half['median_ms']:.2f} medians at half load (goal: {TAIL})")
    if set(burst["statuses"]) != {"200", "503"} or burst["counted"] != burst["statuses"]["200"]:
        missed.append(f"a burst answered {dict(burst['statuses'])}, the server counts {burst['counted']:.0f}")
    return missed


def row_of(way, facts):
    """What a record keeps: of samples the medians, of the ratio the spread, too."""
    medians = {key: statistics.median(facts[key]) for key in ("client_busy", "server_ms", "engine_ms")}
    rest = {key: facts[key] for key in ("half", "poisson", "burst")}
    return {"way": way, "qps": facts["qps"], "ratio": facts["ratio"], "ratios": [min(facts["ratios"]), max(facts["ratios"])], **medians, **rest}


def main():
    options = arguments()
    options.cores = [int(core) for core in options.cores.split(",")]
    os.environ.update(engines.our_environment(1))
    machine = cpu_name()  # with all its CPUs
    os.sched_setaffinity(0, {options.cores[0]})
    from serving_clients import Clients, Questions
    import tensorwright

    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    versions = {"python": sys.version.split()[0], "tensorwright": tensorwright.__version__}
    versions.update({name: importlib.metadata.version(name) for name in PACKAGES if name not in versions})
    record = header(machine, date=now, cores=options.cores, load_average=os.getloadavg(), versions=versions,
                    options={k: v for k, v in vars(options).items() if k not in ("trtexec", "json")}, rows=[])
    print(f"{record['machine']}, load {record['load_average'][0]:.1f}; commit {record['commit']}")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        model, plan = options.model, os.path.join(folder, "model.plan")
        if not os.path.exists(model):
            subprocess.run([sys.executable, MAKE, model, "--out", folder], check=True)
            model = os.path.join(folder, model + ".onnx")
        trtexec(options, options.cores[1], f"--onnx={model}", f"--saveEngine={plan}", "--buildOnly", *options.build_flags.split())
        questions, server, ways = Questions(tensorwright.load(plan)), Server(plan, options.cores[1], options.queue), {}
        try:
            for name in options.ways.split(","):
                facts = {key: [] for key in ("rates", "ratios", "client_busy", "server_ms", "engine_ms")}
                ways[name] = {"clients": Clients(name, 4, questions, server.ports, "model"), "facts": facts}
            record["trtexec_qps"] = statistics.median(saturation(options, plan, server, ways))
            for name, way in ways.items():
                facts = way["facts"]
                facts["qps"], facts["ratio"] = statistics.median(facts["rates"]), statistics.median(facts["ratios"])
                with way["clients"]:
                    pass
                # So many that a request which is due finds one that is free.
                with Clients(name, options.queue + 64, questions, server.ports, "model") as clients:
                    loaded(options, server, clients, facts)
                half, burst = facts["half"], facts["burst"]
                print(f"{name}: {facts['qps']:.2f}/s, {facts['ratio']:.3f} of trtexec ({min(facts['ratios']):.3f} to {max(facts['ratios']):.3f}); "
                      f"server {statistics.median(facts['server_ms']):.2f} ms a request, engine {statistics.median(facts['engine_ms']):.2f}; "
                      f"half load {half['median_ms']:.1f} ms, p99 {half['p99_ms']:.1f}; poisson {facts['poisson']['median_ms']:.1f}, "
                      f"{facts['poisson']['p99_ms']:.1f}; burst {dict(burst['statuses'])}, p99 {burst['p99_ms']:.0f}, 503 in {burst['refusal_ms'] or 0:.1f}",
                      flush=True)
                missed += [f"{name}: {text}" for text in judged(name, facts)]
                record["rows"].append(row_of(name, facts))
        finally:
            server.stopped(False)
            status = server.end()
    if status:
        missed.append(f"the server ended with {status}")
    record["missed"] = missed
    path = options.json or os.path.join(engines.ROOT, "bench", "results", f"serving-{now[:10]}-{record['commit']}.json")
    write_record(path, record)
    print("\n".join(f"missed: {text}" for text in missed) or "goals reached", path, sep="\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
