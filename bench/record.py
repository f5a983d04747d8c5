#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records: what a benchmark measured, as JSON that reads as a table.

    {
     "date": "2026-11-22",                a key on each line: date, machine, commit and how (the command) always,
     "machine": "NVIDIA H200",            then what else there is to say: versions of peers and drivers, settings, a note;
     "commit": "661c91b0f8fd",            a list of objects has each of them on a line, as rows have
     "how": "gpu_peers.py",
     "rows": [
      {"network": "resnet50", ...},       last the rows, one line each: a network, a kernel, a layer
      {"network": "bert_base", ...}
     ]
    }

Numbers have six digits. Rows hold medians, spreads and counts, not samples; of tactics the losers, too. bench/results has the newest
record of each subject and machine; older ones are in git's history. The test house.records holds the files to this.

    record.py RAW.json --how "bench_cuda_tactics --filter x" [--machine M] [--commit C] [--note N] [--out FILE]

makes a record of what a C++ benchmark wrote: an object with "rows", or a list of rows.
"""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ("date", "machine", "commit", "how")
# A longer line holds what nobody reads.
LONGEST = 2000


def commit():
    """Of this tree, "-dirty" where files differ from it; in a folder that scripts/gpu/stage.sh made, the commit it was made of."""
    def git(*args):
        return subprocess.run(["git", "-C", HERE, *args], capture_output=True, text=True).stdout.strip()
    try:
        if head := git("rev-parse", "--short=12", "HEAD"):
            return head + ("-dirty" if git("status", "--porcelain", "--untracked-files=no") else "")
        with open(os.path.join(HERE, "..", "commit"), encoding="utf-8") as file:
            return file.read().strip()[:12]
    except OSError:
        return "unknown"


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown CPU")
    return f"{name}, {len(os.sched_getaffinity(0))} CPUs"


def device_of(text):
    """The machine as trtexec's output names it."""
    found = re.search(r"Selected Device: (.*)", text)
    return found.group(1).strip() if found else "unknown"


def header(machine, **more):
    """What every record begins with; `more` goes behind it, or in its place."""
    how = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
    return {"date": datetime.date.today().isoformat(), "machine": machine, "commit": commit(), "how": how, **more}


def _rounded(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {str(k): _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, (list, tuple)) else value


def _is_table(value):
    return isinstance(value, list) and value and all(isinstance(row, dict) for row in value)


def text_of(record):
    rows = {"rows": record["rows"]}
    entries = []
    for key, value in {**{k: v for k, v in record.items() if k != "rows"}, **rows}.items():
        value = _rounded(value)
        table = "[\n  " + ",\n  ".join(json.dumps(row) for row in value) + "\n ]" if _is_table(value) else json.dumps(value)
        entries.append(f" {json.dumps(key)}: {table}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def write_record(path, record):
    """By way of a file beside it: who is cut short leaves the former record."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text_of(record))
    os.replace(part, path)


def faults(text):
    """What keeps `text` from being a record, in words."""
    try:
        record = json.loads(text)
    except ValueError as error:
        return [f"is no JSON: {error}"]
    if not isinstance(record, dict) or not _is_table(record.get("rows")):
        return ['has no "rows": a list of objects']
    found = [f'does not say "{key}"' for key in HEADER if not record.get(key)]
    if text_of(record) != text:
        found.append("is not in the form that bench/record.py writes; write it again with record.py")
    return found + [f"line {number} has {len(line)} characters, at most {LONGEST}: keep medians and counts"
                    for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw")
    parser.add_argument("--how")
    parser.add_argument("--machine")
    parser.add_argument("--commit")
    parser.add_argument("--note")
    parser.add_argument("--out", help="the record; default: standard output")
    options = parser.parse_args()
    with open(options.raw, encoding="utf-8") as file:
        raw = json.load(file)
    raw = {"rows": raw} if isinstance(raw, list) else raw
    given = {key: getattr(options, key) for key in ("how", "machine", "commit", "note") if getattr(options, key)}
    machine = raw.pop("gpu", None) or cpu_name()
    record = {**header(raw.get("machine", machine), how=os.path.basename(options.raw)), **raw, **given}
    if options.out:
        write_record(options.out, record)
    else:
        print(text_of(record), end="")


if __name__ == "__main__":
    sys.exit(main())
