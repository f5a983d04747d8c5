#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy finds nothing in src and tools with the checks of .clang-tidy. `--build` has compile_commands.json; `--only PART` takes
the files with PART in their path."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import house

FOLDERS = ("src/", "tools/")


def sources(root, options):
    """What the build compiles of ours, as paths below root."""
    commands = json.loads((options.build or root / "build" / "release").joinpath("compile_commands.json").read_text())
    names = set()
    for command in commands:
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        if path.is_relative_to(root.resolve()):
            names.add(path.relative_to(root.resolve()).as_posix())
    return sorted(n for n in names if n.startswith(FOLDERS) and (options.only or "") in n)


def check(root, options):
    tool = shutil.which("clang-tidy")
    if tool is None:
        return ["clang-tidy is not installed (Debian package clang-tidy)"]
    names = sources(root, options)
    if not names:
        return ["no file of src or tools is in compile_commands.json"]

    def run(name):
        command = [tool, "--quiet", "-p", str(options.build or root / "build" / "release"), name]
        return name, subprocess.run(command, cwd=root, capture_output=True, text=True)

    findings = set()  # a header's is seen from several files
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for name, result in pool.map(run, names):
            found = re.findall(r"^(\S+:\d+:\d+): (?:error|warning): (.*)$", result.stdout + result.stderr, re.M)
            for place, what in found:
                findings.add(f"{os.path.relpath(root.resolve() / place, root.resolve())}: {what}")
            if result.returncode != 0 and not found:
                findings.add(f"{name}: clang-tidy failed: {result.stderr.strip()[-300:]}")
    return sorted(findings)


def self_test(root, options):
    house.plant(root, ".clang-tidy", house.text(house.ROOT / ".clang-tidy"))
    files = {
        "src/base/good.cpp": "#include <vector>\nint* none() { return nullptr; }\n",
        "src/base/bad.cpp": "int* none() { return 0; }\n",
        "tools/bad.cpp": "struct A { virtual ~A(); virtual void f(); };\nstruct B : A { virtual void f(); };\n",
        "src/base/wrong.cpp": "int f() { int g = 1; return g.h; }\n",
        "test/other.cpp": "int* none() { return 0; }\n",
    }
    for name, content in files.items():
        house.plant(root, name, content)
    commands = [{"directory": str(root), "file": name, "arguments": ["c++", "-c", name]} for name in files]
    house.plant(root, "build/release/compile_commands.json", json.dumps(commands))
    options.build = None
    house.expect(check(root, options), "src/base/bad.cpp:1", "tools/bad.cpp:2", "src/base/wrong.cpp:1")
    options.only = "good"
    house.expect(check(root, options))


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path}), ("--only", {})))
