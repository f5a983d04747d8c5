#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header of the stand-in compiles alone, twice in one file, as C++11 to C++20 without RTTI; those for C clients as
C99 and C11 too. Programs of the CUDA 11 days find their forms in cuda_runtime_api.h alone, whatever the major. Warnings are errors."""
import argparse
import pathlib
import subprocess
import sys

C_HEADERS = {"cuda.h", "cuda_profiler_api.h", "cuda_runtime_api.h", "driver_types.h", "vector_types.h", "library_types.h"}

# Around the header, as some clients include it, too.
OLD_FORM = """
cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph);
cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph) { return cudaGraphInstantiate(exec, graph, nullptr, nullptr, 0); }
"""
INCLUDES = ['#include "cuda_runtime_api.h"\n', 'extern "C" {\n#include "cuda_runtime_api.h"\n}\n', '#include "cuda_runtime.h"\n']


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    options = parser.parse_args()
    common = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{options.include}"]
    runs = failures = 0
    for header in sorted(path.name for path in options.include.glob("*.h")):
        kinds = [[options.cxx, f"-std=c++{std}", "-fno-rtti", "-x", "c++"] for std in (11, 14, 17, 20)]
        kinds += [[options.cc, f"-std=c{std}", "-x", "c"] for std in (99, 11)] if header in C_HEADERS else []
        for kind in kinds:
            runs += 1
            done = subprocess.run([*kind, *common, "-"], input=f'#include "{header}"\n#include "{header}"\n', text=True, capture_output=True)
            if done.returncode != 0:
                failures += 1
                print(f"{header} {kind[1]}:\n{done.stderr[:600]}")
    for major in (11, 12, 13):
        for include in INCLUDES:
            runs += 1
            command = [options.cxx, "-std=c++11", "-x", "c++", f"-DTW_CUDART_MAJOR={major}", *common, "-"]
            done = subprocess.run(command, input=include + OLD_FORM, text=True, capture_output=True)
            if done.returncode != 0:
                failures += 1
                print(f"the five-argument cudaGraphInstantiate, CUDA {major}, by {include.strip()!r}:\n{done.stderr[:600]}")
    print(f"{runs} compilations, {failures} failures")
    return 1 if failures or runs == 0 else 0


sys.exit(main())
