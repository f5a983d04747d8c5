#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program or library that the build made defines or asks for a name of google::protobuf, by which another protobuf in the process
could answer for ours or ours for it. `--build` has them in bin, lib and python. cmake/own_protobuf.cmake makes it so."""
import os
import pathlib
import shlex
import subprocess
import sys

import house

FOLDERS = ("bin", "lib", "python")


def check(root, options):
    findings = []
    counted = 0
    for path in sorted(path for folder in FOLDERS for path in (options.build / folder).rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        counted += 1
        names = subprocess.run(["nm", "-D", str(path)], capture_output=True, text=True).stdout.split()
        foreign = sorted({name for name in names if "google8protobuf" in name})
        if foreign:
            findings.append(f"{path.relative_to(options.build)}: {len(foreign)} names of google::protobuf, such as {foreign[0]}")
    if not counted:
        findings.append(f"{options.build}: has no program and no library; build first")
    print(f"{counted} programs and libraries")
    return findings


def self_test(root, options):
    options.build = root / "build"
    (options.build / "lib").mkdir(parents=True)
    house.expect(check(root, options), "has no program and no library")
    sources = {
        "defines": "namespace google::protobuf { int x() { return 1; } }\n",
        "unique": "namespace google::protobuf { inline int& x() { static int once; return once; } } int y() { return google::protobuf::x(); }\n",
        "asks": "namespace google::protobuf { int x(); } int y() { return google::protobuf::x(); }\n",
        "own": "namespace google::tw_proto { int x() { return 1; } }\n",
        "hidden": "namespace google::protobuf { [[gnu::visibility(\"hidden\")]] int x() { return 1; } }\n",
    }
    for name, source in sources.items():
        house.plant(root, f"{name}.cpp", source)
        command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", str(options.build / "lib" / f"lib{name}.so"), str(root / f"{name}.cpp")], check=True)
    house.expect(check(root, options), "libdefines.so: 1 names", "libunique.so:", "libasks.so: 1 names")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/release"})))
