#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the files over 500 lines, longest first: past that, look for the second idea. A report; it never fails."""
import pathlib
import sys

import house

LIMIT = 500
PLACES = {"src", "include", "tools"}


def long_files(root):
    sizes = [
        (len((root / path).read_bytes().splitlines()), str(path))
        for path in house.files(root)
        if path.parts[0] in PLACES and path.suffix in house.CPP
    ]
    return sorted(((lines, name) for lines, name in sizes if lines > LIMIT), key=lambda entry: (-entry[0], entry[1]))


def check(root, options):
    found = long_files(root)
    report = [f"{len(found)} files over {LIMIT} lines"] + [f"{lines:6} {name}" for lines, name in found]
    print("\n".join(report))
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text("\n".join(report) + "\n", encoding="utf-8")
    return []


def self_test(root, options):
    house.plant(root, "src/short.cpp", "\n" * LIMIT)
    house.plant(root, "src/long.cpp", "\n" * (LIMIT + 1))
    house.plant(root, "docs/long.cpp", "\n" * (LIMIT + 1))
    house.expect([name for _, name in long_files(root)], "src/long.cpp")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--report", {"type": pathlib.Path})))
