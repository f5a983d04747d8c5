#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: scripts/slowest.py [FOLDER] [-n COUNT]

The slowest objects and tests of a build folder (build/release), in seconds of the clock: from ninja's log and, after `make test`, from
report/ctest.xml. What runs beside a job makes it slower: compare within a run."""
import argparse
import pathlib
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]


def objects(folder):
    """(seconds, name) of what ninja made last of each output."""
    times = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, name, _ = line.split("\t")
        times[name] = (int(end) - int(start)) / 1000
    return [(seconds, name.replace("CMakeFiles/", "").replace(".dir/Unity", "")) for name, seconds in times.items()]


def tests(folder):
    report = folder / "report" / "ctest.xml"
    if not report.is_file():
        return []
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return [(float(case.get("time", 0)), case.get("name")) for case in cases]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("-n", dest="count", type=int, default=10)
    options = parser.parse_args()
    for what, rows in (("objects", objects(options.folder)), ("tests", tests(options.folder))):
        print(f"{len(rows)} {what}, {sum(seconds for seconds, _ in rows):.0f} s")
        for seconds, name in sorted(rows, reverse=True)[: options.count]:
            print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    main()
