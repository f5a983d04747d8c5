#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client's program runs with a libnvinfer that has the ABI marker and does not load with one that lacks it.

The client also uses stderr and std::cerr in the same object file: position-dependent code reaches them by copy
relocations, which the declaration of the marker must not forbid.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MARKER = "tensorwright_abi_8_5"
LIBRARY = f"""#include "NvInferRuntime.h"
#ifdef WITH_MARKER
int32_t const {MARKER} = 0;
#endif
extern "C" void* createInferRuntime_INTERNAL(void*, int32_t version) noexcept
{{
    static int32_t seen;
    seen = version;
    return &seen;
}}
"""
CLIENT = """#include "NvInferRuntime.h"
#include <cstdio>
#include <iostream>
struct Logger : nvinfer1::ILogger
{
    void log(Severity, const char* text) noexcept override { std::fprintf(stderr, "%s\\n", text); }
};
int main()
{
    Logger logger;
    logger.log(nvinfer1::ILogger::Severity::kINFO, "started");
    std::cerr << "runs" << std::endl;
    void* seen = nvinfer1::createInferRuntime(logger);
    return *static_cast<int32_t*>(seen) == 8503 ? 0 : 3;
}
"""
MODES = (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"])


def build(command, text, out):
    subprocess.run([*command, "-x", "c++", "-", "-x", "none", "-o", str(out)], input=text, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True, type=pathlib.Path, action="append")
    options = parser.parse_args()
    compiler = [options.compiler, "-std=c++11", "-O2", "-w", *(f"-I{folder}" for folder in options.include)]
    failures = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for name, flags in (("with", ["-DWITH_MARKER"]), ("without", [])):
            (folder / name).mkdir()
            shared = ["-fPIC", "-shared", "-DTENSORRT_BUILD_LIB", "-fvisibility=hidden", "-Wl,-soname,libmarked.so"]
            # The factory is exported by its declaration, so hidden visibility also checks that TENSORRTAPI works.
            build([*compiler, *shared, *flags], LIBRARY, folder / name / "libmarked.so")
        for mode in MODES:
            client = folder / "client"
            link = [*compiler, *mode, f"-L{folder / 'with'}", "-Wl,--no-as-needed"]
            subprocess.run([*link, "-x", "c++", "-", "-x", "none", "-lmarked", "-o", str(client)], input=CLIENT, text=True,
                           check=True)
            for name, wanted in (("with", True), ("without", False)):
                environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / name)}
                done = subprocess.run([client], env=environment, capture_output=True, text=True)
                started = "started" in done.stderr
                good = done.returncode == 0 if wanted else done.returncode != 0 and not started and MARKER in done.stderr
                if not good:
                    failures.append(f"{' '.join(mode)}, library {name} the marker: status {done.returncode}, "
                                    f"stderr: {done.stderr.strip()}")
    print("\n".join(failures + [f"{2 * len(MODES) - len(failures)} of {2 * len(MODES)} runs as they must be"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
