#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No source file over 500 lines: past that, look for the second idea. EXCEPTIONS names those that are, with the lines that
they may have: it only gets shorter."""
import sys

import house

LIMIT = 500
PLACES = {"src", "include", "tools", "python"}
EXCEPTIONS = {
    # The published headers, whose names and contents are given.
    "include/NvInfer.h": 2300,
    "include/NvInferRuntime.h": 900,
    "include/NvInferRuntimeCommon.h": 650,
}


def sizes(root):
    return {
        str(path): len((root / path).read_bytes().splitlines())
        for path in house.files(root)
        if path.parts[0] in PLACES and path.suffix in house.CPP
    }


def findings(lines, exceptions):
    found = [
        f"{name}: {count} lines, the limit is {exceptions.get(name, LIMIT)}"
        for name, count in lines.items()
        if count > exceptions.get(name, LIMIT)
    ]
    return found + [
        f"{name} needs no exception: it has {lines.get(name, 0)} lines"
        for name in exceptions
        if lines.get(name, 0) <= LIMIT
    ]


def check(root, options):
    return findings(sizes(root), EXCEPTIONS)


def self_test(root, options):
    house.plant(root, "src/short.cpp", "\n" * LIMIT)
    house.plant(root, "src/long.cpp", "\n" * (LIMIT + 1))
    house.plant(root, "src/longer.cuh", "\n" * (LIMIT + 9))
    house.plant(root, "src/grown.h", "\n" * (LIMIT + 10))
    house.plant(root, "docs/long.cpp", "\n" * (LIMIT + 1))
    exceptions = {"src/longer.cuh": LIMIT + 9, "src/grown.h": LIMIT + 9, "src/short.cpp": LIMIT + 1, "src/gone.cpp": LIMIT + 1}
    house.expect(
        findings(sizes(root), exceptions),
        "src/long.cpp: 501 lines",
        "src/grown.h: 510 lines",
        "src/short.cpp needs no exception",
        "src/gone.cpp needs no exception",
    )


if __name__ == "__main__":
    sys.exit(house.run(check, self_test))
