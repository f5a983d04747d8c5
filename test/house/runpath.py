#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program or library that the build made looks for its libraries in the current folder: its run path has no empty entry, and none
that is relative. `--build` has them in bin, lib, loading and python."""
import pathlib
import re
import subprocess
import sys

import house

FOLDERS = ("bin", "lib", "loading", "python")


def check(root, options):
    findings = []
    for path in house.built(options.build, FOLDERS, findings):
        said = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True).stdout
        for entries in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", said):
            wrong = [entry for entry in entries.split(":") if not entry.startswith(("/", "$ORIGIN"))]
            if wrong:
                findings.append(f"{path.relative_to(options.build)}: run path [{entries}] leads into the current folder")
    return findings


def self_test(root, options):
    options.build = root / "build"
    source = root / "x.cpp"
    house.plant(root, "x.cpp", "int x() { return 1; }\n")
    (options.build / "lib").mkdir(parents=True)
    house.expect(check(root, options), "has no program and no library")
    for name, run_path in (("none", None), ("good", "$ORIGIN:/opt/lib"), ("empty", "$ORIGIN:"), ("relative", "lib")):
        flags = [f"-Wl,-rpath,{run_path}"] if run_path else []
        house.build_library(source, options.build / "lib" / f"lib{name}.so", *flags)
    house.expect(check(root, options), "libempty.so: run path", "librelative.so: run path")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/release"})))
