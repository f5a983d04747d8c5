#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code of an instruction set stays in the files that are named after it.

Of every compiled file: only avx2*.cpp, avx512*.cpp and their like carry ISA flags, and only flags of their own set; a unit of several files
has one set, that of each of its files. What
such an object file defines for others lies in tw::avx2, tw::avx512, ...; it defines no weak symbol, because the linker
may keep the AVX copy of a shared inline function and hand it to code that must run on any machine.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import house

# File name prefix (up to the first _ or .) -> flags that it may carry. Its namespace is tw::<prefix>.
AVX2 = {"-mavx", "-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"}
AVX512 = AVX2 | {"-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl"}
SETS = {
    "avx2": AVX2,
    "avxvnni": AVX2 | {"-mavxvnni"},
    "avx512": AVX512 | {"-mavx512vnni", "-mavx512bf16", "-mavx512fp16"},
}
ISA_FLAG = re.compile(
    r"-m(?:avx|sse|ssse|fma|f16c|bmi|lzcnt|popcnt|amx|aes|sha|vaes|gfni|xsave|movbe|adx|arch=|cpu=|tune=)"
)
ISA_PRAGMA = re.compile(r"^\s*#\s*pragma\s+(?:GCC|clang)\s+(?:target|attribute)|__attribute__\s*\(\(\s*target\b|\[\[gnu::target\b", re.M)


def isa_of(name):
    return next((isa for isa in SETS if re.match(rf"{isa}(?:[_.]|$)", name)), None)


def sources_of(path):
    """The files that a compiled one stands for: itself, or those that a unit of CMake includes."""
    if not path.name.startswith("unity_"):
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', house.text(path), re.M)]


def check_symbols(source, isa, built):
    result = subprocess.run(["nm", "--defined-only", "--extern-only", "--demangle", str(built)], capture_output=True, text=True)
    if result.returncode != 0:
        return [f"{source}: nm cannot read {built}: {result.stderr.strip()}"]
    findings = []
    for line in result.stdout.splitlines():
        _, kind, symbol = line.split(maxsplit=2)
        if kind in "WVu":
            findings.append(f"{source}: defines '{symbol}' as a weak symbol, which other code may be given; use no shared inline code")
        elif not symbol.startswith(f"tw::{isa}::"):
            findings.append(f"{source}: defines '{symbol}' outside tw::{isa}")
    return findings


def check(root, options):
    commands = options.build / "compile_commands.json"
    rules = options.build / "build.ninja"
    if not commands.is_file() and not (rules.is_file() and "CXX_COMPILER__" not in house.text(rules)):
        return [f"{commands}: not there; configure first"]
    findings = []
    counted = 0
    # CMake writes no list for a project that compiles nothing.
    for entry in json.loads(house.text(commands)) if commands.is_file() else []:
        compiled = pathlib.Path(entry["directory"], entry["file"])
        sources = sources_of(compiled)
        name = " ".join(os.path.relpath(source, root) for source in sources)
        arguments = entry.get("arguments") or shlex.split(entry["command"])
        flags = {argument for argument in arguments if ISA_FLAG.match(argument)}
        sets = {isa_of(source.name) for source in sources}
        if len(sets) != 1:
            findings.append(f"{name}: one unit of several instruction sets")
            continue
        isa = sets.pop()
        for flag in sorted(flags - SETS.get(isa, set())):
            findings.append(f"{name}: is compiled with {flag}; " + (f"'{isa}' does not have that" if isa else "only ISA files (avx2*.cpp, avx512*.cpp) carry ISA flags"))
        if isa is None:
            continue
        counted += len(sources)
        built = pathlib.Path(entry["directory"], arguments[arguments.index("-o") + 1])
        if not built.is_file():
            findings.append(f"{name}: {built} is not built, so it cannot be checked")
            continue
        findings += check_symbols(name, isa, built)
    for path in house.files(root):
        if path.suffix in house.CPP and path.parts[0] in ("src", "tools", "include") and isa_of(path.name) is None:
            if ISA_PRAGMA.search(house.text(root / path)):
                findings.append(f"{path}: chooses an instruction set in the source; that belongs into an ISA file")
    print(f"{counted} ISA files")
    return findings


def self_test(root, options):
    options.build = root / "build"
    options.build.mkdir()
    entries = []

    def compiled(name, content, *flags):
        house.plant(root, name, content)
        built = root / "build" / (name.replace("/", "_") + ".o")
        command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O0", *flags, "-o", str(built), "-c", str(root / name)]
        subprocess.run(command, check=True)
        entries.append({"directory": str(root), "file": str(root / name), "command": shlex.join(command)})
        (options.build / "compile_commands.json").write_text(json.dumps(entries))

    compiled("src/plain.cpp", "int f() { return 1; }\n", "-O1")
    compiled("src/kernels/cpu/avx2_gemm.cpp", "namespace tw::avx2 { static int g() { return 1; } int f() { return g(); } }\n", "-mavx2", "-mfma")
    compiled("src/kernels/cpu/avx512.cpp", "namespace tw::avx512 { int f() { return 1; } }\n", "-mavx512f")
    house.expect(check(root, options))
    compiled("src/flagged.cpp", "int h() { return 1; }\n", "-mavx2")
    compiled("src/native.cpp", "int i() { return 1; }\n", "-march=native")
    compiled("src/kernels/cpu/avx2_wide.cpp", "namespace tw::avx2 { int wide() { return 1; } }\n", "-mavx512f")
    compiled("src/kernels/cpu/avx2_outside.cpp", "namespace tw { int outside() { return 1; } }\n", "-mavx2")
    compiled("src/kernels/cpu/avx2_inline.cpp", "namespace tw::avx2 { inline int shared(int x) { return x; } int use(int x) { return shared(x); } }\n", "-mavx2")
    unit = "".join(f'#include "{root / file}"\n' for file in ("src/kernels/cpu/avx2_gemm.cpp", "src/plain.cpp"))
    compiled("build/unity_mixed_cxx.cxx", unit, "-mavx2", "-mfma")
    compiled("build/unity_avx512_cxx.cxx", f'#include "{root / "src/kernels/cpu/avx512.cpp"}"\n', "-mavx512f", "-march=native")
    house.plant(root, "src/pragma.cpp", '#pragma GCC target("avx2")\n')
    house.expect(
        check(root, options),
        "src/flagged.cpp: is compiled with -mavx2",
        "src/native.cpp: is compiled with -march=native",
        "src/kernels/cpu/avx2_wide.cpp: is compiled with -mavx512f",
        "src/kernels/cpu/avx2_outside.cpp: defines 'tw::outside()' outside tw::avx2",
        "src/kernels/cpu/avx2_inline.cpp: defines 'tw::avx2::shared(int)' as a weak symbol",
        "src/kernels/cpu/avx2_gemm.cpp src/plain.cpp: one unit of several instruction sets",
        "src/kernels/cpu/avx512.cpp: is compiled with -march=native",
        "src/pragma.cpp: chooses an instruction set",
    )


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/release"})))
