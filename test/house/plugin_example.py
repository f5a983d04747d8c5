#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples/plugin beside an installed copy, as users do, and runs it: by its own program and by trtexec --plugins.

    plugin_example.py --build build/release --source . [--cxx g++]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*command, **keywords):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, **keywords)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH", "CMAKE_PREFIX_PATH")}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        prefix, built = root / "prefix", root / "built"
        run("cmake", "--install", options.build, "--prefix", prefix, stdout=subprocess.DEVNULL)
        run("cmake", "-S", options.source / "examples/plugin", "-B", built, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.cxx}", "-DTENSORWRIGHT_HOSTCUDA=ON", env=plain, stdout=subprocess.DEVNULL)
        run("cmake", "--build", built, env=plain)
        library, plan = built / "libroll_plugin.so", root / "roll.plan"
        rows = run(built / "roll", library, plan, env=plain, capture_output=True, text=True).stdout
        assert rows == "6 8 0 2 4\n16 18 10 12 14\n26 28 20 22 24\n", rows

        trtexec = prefix / "bin/trtexec"
        run(trtexec, f"--loadEngine={plan}", f"--plugins={library}", "--shapes=x:4x5", "--iterations=2", "--duration=0", env=plain)
        without = subprocess.run([trtexec, f"--loadEngine={plan}"], env=plain, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert without.returncode != 0
        assert "could not find Plugin Roll version 1" in without.stdout + without.stderr, without.stdout + without.stderr
    return 0


sys.exit(main())
