#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a program of the CUDA 11 days with include/cuda13compat in front of CUDA headers.

With a toolkit from CUDA 13 on it must compile with the folder and must not without it (else the folder is of no use any
more); with older headers it must compile either way. Exit status 77: no toolkit is there.
"""
import argparse
import pathlib
import re
import subprocess
import sys

STANDARDS = ("11", "14", "17", "20")
HEADERS = ("cuda_runtime_api.h", "cuda_runtime.h")
# What OpenCV's headers do: a half from and to an integer without a cast.
CONVERTS = "#include <cuda_runtime_api.h>\n#include <cuda_fp16.h>\nint f(int i) { __half h = i; return h; }\n"


def compiles(options, standard, folders, text, macros=()):
    command = [options.compiler, f"-std=c++{standard}", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations",
               "-fsyntax-only", *(f"-D{m}" for m in macros), *folders, "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True, help="the public headers")
    parser.add_argument("--hostcuda", type=pathlib.Path, required=True, help="the CUDA headers of the stand-in")
    parser.add_argument("--toolkit", type=pathlib.Path, help="the CUDA headers of a toolkit")
    options = parser.parse_args()
    client = (pathlib.Path(__file__).parent / "client.cpp").read_text(encoding="utf-8")
    compat, public = f"-I{options.include}/cuda13compat", f"-I{options.include}"
    findings, count = [], 0

    def expect(good, what, standard, folders, text, macros=()):
        nonlocal count
        count += 1
        done, errors = compiles(options, standard, folders, text, macros)
        if done != good:
            findings.append(f"{what}, C++{standard}: {'does not compile: ' + errors[:500] if good else 'compiles'}")

    def client_with(cuda, good, what, front):
        for standard in STANDARDS:
            for header in HEADERS:
                expect(good, f"{what}, {header}", standard, [*front, public, f"-isystem{cuda}"], client,
                       [f"TW_RUNTIME_HEADER=<{header}>"])

    client_with(options.hostcuda, True, "stand-in with cuda13compat", [compat])
    if options.toolkit is None:
        print(f"{count} compilations, {len(findings)} failures")
        print("\n".join(findings + ["SKIP: no CUDA toolkit's headers ($CUDA_PATH/include, /usr/local/cuda/include): only the "
                                    "stand-in's were tried"]))
        return 1 if findings else 77
    version = int(re.search(r"#define CUDART_VERSION +(\d+)",
                            (options.toolkit / "cuda_runtime_api.h").read_text(encoding="utf-8")).group(1))
    client_with(options.toolkit, True, "toolkit with cuda13compat", [compat])
    client_with(options.toolkit, version < 13000, "toolkit without cuda13compat", [])
    folders = [compat, public, f"-isystem{options.toolkit}"]
    if version >= 12020:  # since then halves convert
        expect(False, "conversions with cuda13compat", "17", folders, CONVERTS)
        expect(True, "conversions that are kept", "17", folders, CONVERTS, ["TENSORWRIGHT_KEEP_HALF_CONVERSIONS"])
    print("\n".join(findings + [f"CUDA {version // 1000}.{version % 1000 // 10}: {count} compilations, "
                                f"{len(findings)} failures"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
