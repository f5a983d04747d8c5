#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every method that 8.5 publishes and that is not inline is defined by libnvinfer.

The linker cannot see this: nothing inside the library calls most of them, and a client would be the first to find out.
"""
import collections
import pathlib
import re
import subprocess
import sys

FACTS = pathlib.Path(__file__).resolve().parents[1] / "surface/cpp-8.5.txt"
METHOD = re.compile(r"method (nvinfer1::\w+)::(\w+)\((.*?)\)( const)? noexcept -> [^|]*(?:\| (.*))?$")


def published():
    """(class::method) -> number of overloads that the library must define"""
    lines = FACTS.read_text().splitlines()
    inline = set()
    for line in lines:
        if line.startswith("inline "):
            what = line[len("inline ") :].split(" : ")[0]
            for name in re.findall(r"nvinfer1::(\w+::\w+)", what):
                inline.add(name)
            if what.startswith("destroy()"):
                inline.update(f"{name}::destroy" for name in re.findall(r"\bI\w+", what))
    needed = collections.Counter()
    for line in lines:
        match = METHOD.match(line)
        if not match:
            continue
        owner, name, _, _, tags = match.groups()
        key = f"{owner.removeprefix('nvinfer1::')}::{name}"
        if "pure" in (tags or "").split("; args")[0] or key in inline:
            continue
        needed[key] += 1
    return needed


def defined(library):
    """(class::method) -> number of overloads in the dynamic symbols"""
    text = subprocess.run(["nm", "-DC", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\S+ \w nvinfer1::(\w+::\w+)\(", line)
        if match:
            found[match[1]] += 1
    return found


def main():
    needed, found = published(), defined(sys.argv[1])
    missing = [f"{name} ({found[name]} of {count})" for name, count in needed.items() if found[name] < count]
    print(f"published methods: {sum(needed.values())} needed, {len(missing)} not defined")
    for name in missing:
        print(f"  nvinfer1::{name}")
    return 1 if missing or not needed else 0


if __name__ == "__main__":
    sys.exit(main())
