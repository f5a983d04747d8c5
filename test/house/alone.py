#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source compiles alone, though the build compiles those of a folder as one unit (cmake/units.cmake) and beside precompiled
headers: each includes what it needs. Syntax only. `--build` is a build configured with TW_UNITY=OFF; `--only PART` takes the files
with PART in their path."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import house


def commands(root, options):
    """(name, folder, arguments) of each source of the tree, without its output and its precompiled header."""
    found = {}
    for entry in json.loads(house.text(options.build / "compile_commands.json")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root.resolve()):
            continue
        name = path.relative_to(root.resolve()).as_posix()
        if name.startswith("build/") or (options.only or "") not in name:
            continue
        arguments = entry.get("arguments") or shlex.split(entry["command"])
        arguments = [a for i, a in enumerate(arguments) if a != "-o" and arguments[i - 1] != "-o"]
        arguments = [
            a
            for i, a in enumerate(arguments)
            if "cmake_pch" not in a and not (a == "-include" and "cmake_pch" in arguments[i + 1]) and a != "-Winvalid-pch"
        ]
        found.setdefault(name, (name, entry["directory"], [*arguments, "-fsyntax-only"]))
    return [found[name] for name in sorted(found)]


def check(root, options):
    if not (options.build / "compile_commands.json").is_file():
        return [f"{options.build}/compile_commands.json: not there; configure with TW_UNITY=OFF first"]
    entries = commands(root, options)
    if not entries:
        return [f"{options.build}: compiles no source of the tree by itself; configure with TW_UNITY=OFF"]

    def run(entry):
        name, folder, arguments = entry
        return name, subprocess.run(arguments, cwd=folder, capture_output=True, text=True)

    findings = []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for name, result in pool.map(run, entries):
            if result.returncode != 0:
                first = re.search(r"^.*error: .*$", result.stderr, re.M)
                findings.append(f"{name}: does not compile alone: {first.group(0) if first else result.stderr.strip()[-300:]}")
    print(f"{len(entries)} sources")
    return findings


def self_test(root, options):
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    files = {
        "src/good.cpp": "#include <vector>\nstd::vector<int> good() { return {}; }\n",
        "src/bad.cpp": "std::vector<int> bad() { return {}; }\n",
        "src/by_pch.cpp": "std::string by() { return {}; }\n",
    }
    for name, content in files.items():
        house.plant(root, name, content)
    house.plant(root, "build/cmake_pch.hxx", "#include <string>\n#include <vector>\n")
    pch = ["-Winvalid-pch", "-include", str(root / "build/cmake_pch.hxx")]
    entries = [
        {"directory": str(root), "file": name, "arguments": [*compiler, *pch, "-o", "x.o", "-c", name]} for name in files
    ]
    house.plant(root, "build/compile_commands.json", json.dumps(entries))
    options.build, options.only = root / "build", None
    house.expect(check(root, options), "src/bad.cpp: does not compile alone", "src/by_pch.cpp: does not compile alone")
    options.only = "good"
    house.expect(check(root, options))
    options.only = "nothing"
    house.expect(check(root, options), "compiles no source of the tree by itself")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/alone"}), ("--only", {})))
