#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what the README says: writes its client, runs its lines in order, with a prefix of its own instead of /opt/tensorwright; then
the lines of CONTRIBUTING.

    readme.py --build build/release --model model.onnx

The lines are taken from the files, so that they cannot drift. Some differ, since a test runs in what is built already: the build
line builds what is installed and no more; pip's lines are those of the test python.wheel; `make test` and what ctest is to run, this test among it, are only looked up; the client
takes the stand-in for the CUDA runtime, which every machine has. Every make target that README.md and CONTRIBUTING.md name must be
one that `make help` lists.
Ends with 77 where the build is not the one of the release preset, which is the one that the README makes.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = "/opt/tensorwright"
PRESET_BUILD = "cmake --build --preset release"
INSTALLED = "nvinfer nvonnxparser nvinfer_plugin nvparsers nvinfer_safe nvinfer_checker trtexec hostcuda_cudart11 hostcuda_cudart12 hostcuda_cudart13 hostcuda_cudart_static"
PROGRAMS = ("make", "cmake", "trtexec", "g++")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def run(line, folder, environment, **keywords):
    print("+", line, flush=True)
    return subprocess.run(["bash", "-euc", line], cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL, **keywords)


def check_targets(environment):
    listed = set(re.findall(r"^make ([a-z-]+)", run("make help", ROOT, environment, capture_output=True, text=True).stdout, re.M))
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
    if listed != set(declared):
        sys.exit(f"make help and .PHONY differ in {sorted(listed ^ set(declared))}")
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", (ROOT / name).read_text(), re.M):
            if target not in listed:
                sys.exit(f"{name} names `make {target}`, which `make help` does not list")


def translated(line, prefix):
    """The line as the test runs it, and whether it runs in the tree (else in the client's folder)."""
    if line.startswith("make test"):
        return "make -n test >/dev/null", True
    if line.startswith(("pip ", "trtexec ")):  # the wheel, which the test python.wheel builds, installs and calls
        return "true", True
    if line.startswith("ctest"):
        return line.partition("#")[0] + " -N | grep 'Total Tests: [1-9]'", True
    line = line.replace(PREFIX, str(prefix))
    if line.startswith("make"):
        return line, True
    if PRESET_BUILD in line:
        return line.replace(PRESET_BUILD, f"{PRESET_BUILD} --target {INSTALLED}") + " >/dev/null", True
    return line.replace("cmake -S .", "cmake -S . -DTENSORWRIGHT_HOSTCUDA=ON"), False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    options = parser.parse_args()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (client,), (project,) = blocks(text, "cpp"), blocks(text, "cmake")
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    work = [line for block in blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "sh") for line in block.splitlines()]
    if not work:
        sys.exit("CONTRIBUTING shows no lines")
    for program in PROGRAMS:
        if not any(re.search(rf"(^|/|\s){re.escape(program)}\s", line) for line in lines):
            sys.exit(f"the README shows no line with {program}")
    # What this machine's environment has must not help the client to find anything.
    foreign = ("LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH", "CMAKE_PREFIX_PATH", "MAKEFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    check_targets(environment)
    if options.build.resolve() != ROOT / "build" / "release":
        print("skipped: the README builds build/release")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        app = root / "app"
        app.mkdir()
        (app / "app.cpp").write_text(client, encoding="utf-8")
        (app / "CMakeLists.txt").write_text(project, encoding="utf-8")
        shutil.copy(options.model, app / "model.onnx")
        for line in lines:
            command, isInTree = translated(line, root / "prefix")
            run(command, ROOT if isInTree else app, environment)
        # What the compiler's line makes runs, too.
        run("./a.out", app, environment)
        for line in work:
            tests = run(translated(line, root)[0], ROOT, environment, stdout=subprocess.PIPE, text=True).stdout
            if "--gtest_filter" in line and not re.search(r"^\[  PASSED  \] [1-9]", tests, re.M):
                sys.exit("no test ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
