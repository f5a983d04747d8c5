#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program or library that the build made defines or asks for a name of google::protobuf, by which another protobuf in the process
could answer for ours or ours for it. `--build` has them in bin, lib and python. cmake/own_protobuf.cmake makes it so."""
import pathlib
import subprocess
import sys

import house

FOLDERS = ("bin", "lib", "python")


def check(root, options):
    findings = []
    for path in house.built(options.build, FOLDERS, findings):
        names = subprocess.run(["nm", "-D", str(path)], capture_output=True, text=True).stdout.split()
        foreign = sorted({name for name in names if "google8protobuf" in name or "google_2fprotobuf" in name})
        if foreign:
            findings.append(f"{path.relative_to(options.build)}: {len(foreign)} names of google::protobuf, such as {foreign[0]}")
    return findings


def self_test(root, options):
    options.build = root / "build"
    (options.build / "lib").mkdir(parents=True)
    house.expect(check(root, options), "has no program and no library")
    sources = {
        "defines": "namespace google::protobuf { int x() { return 1; } }\n",
        "unique": "namespace google::protobuf { inline int& x() { static int once; return once; } } int y() { return google::protobuf::x(); }\n",
        "asks": "namespace google::protobuf { int x(); } int y() { return google::protobuf::x(); }\n",
        "table": "int descriptor_table_google_2fprotobuf_2fany_2eproto;\n",
        "own": "namespace google::tw_proto { int x() { return 1; } }\n",
        "hidden": "namespace google::protobuf { [[gnu::visibility(\"hidden\")]] int x() { return 1; } }\n",
    }
    for name, source in sources.items():
        house.plant(root, f"{name}.cpp", source)
        house.build_library(root / f"{name}.cpp", options.build / "lib" / f"lib{name}.so")
    house.expect(check(root, options), "libdefines.so: 1 names", "libunique.so:", "libasks.so: 1 names", "libtable.so: 1 names")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/release"})))
