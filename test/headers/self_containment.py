#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every public header by itself, in C++11, 14, 17 and 20 without RTTI, warnings being errors.

Each is compiled with the stand-in's CUDA headers and, when there is one, with a toolkit's. Beside that, a client that
calls the factories must need the ABI marker: without it, it would load with a libnvinfer of another layout.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

STANDARDS = ("11", "14", "17", "20")
PUBLIC = 18  # the 14 headers of the API, onnx/NvOnnxParser.h, cudla.h and the two of cuda13compat
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations")
MARKER = "tensorwright_abi_8_5"
CLIENTS = {
    "createInferBuilder": '#include "NvInfer.h"\nvoid* f(nvinfer1::ILogger& l) { return nvinfer1::createInferBuilder(l); }\n',
    "createInferRuntime": '#include "NvInfer.h"\nvoid* f(nvinfer1::ILogger& l) { return nvinfer1::createInferRuntime(l); }\n',
    "createInferRefitter": '#include "NvInfer.h"\nvoid* f(nvinfer1::ICudaEngine& e, nvinfer1::ILogger& l)'
    " { return nvinfer1::createInferRefitter(e, l); }\n",
    "createParser": '#include "NvOnnxParser.h"\nvoid* f(nvinfer1::INetworkDefinition& n, nvinfer1::ILogger& l)'
    " { return nvonnxparser::createParser(n, l); }\n",
}


def compile_text(command, text):
    """None, or the first error."""
    done = subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return errors[0] if errors else f"exit status {done.returncode}: {done.stderr[-300:]}"


def alone(compiler, include, cuda, jobs):
    """(number of compilations, findings) for the headers under include with one set of CUDA headers."""
    names = sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))
    # Twice, so that a missing include guard shows.
    work = [(name, std) for name in names for std in STANDARDS]

    def one(item):
        name, std = item
        command = [compiler, f"-std=c++{std}", "-fno-rtti", "-fsyntax-only", *WARNINGS, f"-I{include}", *cuda]
        error = compile_text(command, f'#include "{name}"\n#include "{name}"\n')
        return None if error is None else f"{name}, C++{std}: {error}"

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return len(work), [found for found in pool.map(one, work) if found]


def needs_marker(compiler, include, cuda, name):
    """None, or why the object of a client that calls the factory does not need the marker."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "client.o"
        command = [compiler, "-std=c++11", "-O2", "-w", "-c", f"-I{include}", *cuda, "-o", str(out)]
        error = compile_text(command, CLIENTS[name])
        if error:
            return f"client of {name}: {error}"
        undefined = subprocess.run(["nm", "-u", str(out)], capture_output=True, text=True, check=True).stdout.split()
    return None if MARKER in undefined else f"client of {name}: does not need the symbol {MARKER}"


def self_test(compiler, jobs):
    """A header that is not self-contained, one without a guard, one with C++17 in it and one with a warning are caught."""
    planted = {
        "good.h": "#ifndef GOOD_H\n#define GOOD_H\n#include <cstdint>\nint32_t f();\n#endif\n",
        "needs.h": "#ifndef NEEDS_H\n#define NEEDS_H\nstd::size_t f();\n#endif\n",
        "guard.h": "struct A {};\n",
        "modern.h": "#ifndef MODERN_H\n#define MODERN_H\nnamespace a::b { }\n#endif\n",
        "warns.h": "#ifndef WARNS_H\n#define WARNS_H\ninline int f(int x) { int y; return x; }\n#endif\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        for name, text in planted.items():
            (include / name).write_text(text, encoding="utf-8")
        _, findings = alone(compiler, include, ["-pedantic-errors"], jobs)
    caught = {(m.group(1), m.group(2)) for m in (re.match(r"(\w+\.h), C\+\+(\d+)", found) for found in findings) if m}
    expected = {(name, std) for name in ("needs.h", "guard.h", "warns.h") for std in STANDARDS}
    expected |= {("modern.h", "11"), ("modern.h", "14")}
    for name, std in sorted(caught ^ expected):
        print(f"self-test: {name} in C++{std} was {'' if (name, std) in caught else 'not '}reported")
    return 0 if caught == expected else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", type=pathlib.Path, help="the public headers")
    parser.add_argument("--hostcuda", type=pathlib.Path, help="the CUDA headers of the stand-in")
    parser.add_argument("--toolkit", type=pathlib.Path, help="the CUDA headers of a toolkit")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.self_test:
        return self_test(options.compiler, options.jobs)

    count = len(list(options.include.rglob("*.h")))
    findings = [] if count == PUBLIC else [f"{options.include} holds {count} headers, not {PUBLIC}"]
    skipped = 0
    # The toolkit's headers are system headers to us: their own warnings are not ours to fix.
    kinds = {"stand-in": (options.hostcuda, "-I"), "toolkit": (options.toolkit, "-isystem")}
    for kind, (folder, flag) in kinds.items():
        if folder is None:
            skipped += 1
            print(f"SKIPPED: {kind}: no cuda_runtime_api.h in $CUDA_PATH/include or /usr/local/cuda/include")
            continue
        if not (folder / "cuda_runtime_api.h").is_file():
            findings.append(f"{kind}: {folder}/cuda_runtime_api.h is missing")
            continue
        compiled, found = alone(options.compiler, options.include, [f"{flag}{folder}"], options.jobs)
        markers = [needs_marker(options.compiler, options.include, [f"{flag}{folder}"], name) for name in CLIENTS]
        found += [marker for marker in markers if marker]
        print(f"{kind}: {compiled} compilations, {len(CLIENTS)} clients, {len(found)} failures")
        findings += [f"{kind}: {line}" for line in found]
    print("\n".join(findings + [f"{len(findings)} failures, {skipped} skipped"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
