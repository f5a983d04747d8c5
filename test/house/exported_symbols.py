#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library exports what 8.5 publishes and nothing else.

Allowed: the functions that the facts tag with `lib=<this library>`, the version and ABI markers, and members, vtables and
typeinfo of public classes. Required: those functions, and in libnvinfer both markers. No symbol has an ELF version.
cmake/exports.cmake makes a library so.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

import house

FACTS = house.ROOT / "test/surface/cpp-8.5.txt"
MARKERS = {"tensorrt_version_8_5_3_1", "tensorwright_abi_8_5"}
# Published constructors, which the facts list with their class.
ALSO_REQUIRED = {"libnvparsers": {"nvuffparser::FieldMap::FieldMap"}}
OF_CLASS = re.compile(r"^(?:vtable for |typeinfo for |typeinfo name for |VTT for |(?:non-)?virtual thunk to )")


def read_facts(path):
    """(library -> names of its functions, public classes)"""
    functions = {}
    classes = set()
    for line in house.text(path).splitlines():
        kind, _, rest = line.partition(" ")
        library = re.search(r"\blib=(\w+)", rest)
        if kind == "function" and library:
            name = rest.split("(")[0]
            functions.setdefault(library[1], set()).add(name.split("::")[-1] if "extern-C" in rest else name)
        elif kind == "class":
            classes.add(rest.split()[0])
    return functions, classes


def exported(library):
    """(mangled, demangled without arguments) of each defined dynamic symbol"""
    plain, readable = (
        subprocess.run(["nm", "-D", "--defined-only", *more, str(library)], capture_output=True, text=True, check=True).stdout.splitlines()
        for more in ([], ["--demangle"])
    )
    for one, other in zip(plain, readable):
        yield one.split()[-1], other.split(maxsplit=2)[2]


def without_arguments(name):
    return name.split("(")[0]


def of_public_class(name, classes):
    of = without_arguments(OF_CLASS.sub("", name))
    return of in classes or any(of.startswith(f"{public}::") for public in classes)


def check(root, options):
    if not options.facts.is_file():
        return [f"{options.facts}: the facts of the public surface are not there"]
    functions, classes = read_facts(options.facts)
    published = functions.get(options.name, set())
    if not published:
        return [f"{options.facts}: publishes no function of {options.name}"]
    required = published | ALSO_REQUIRED.get(options.name, set()) | (MARKERS if options.name == "libnvinfer" else set())
    findings = []
    for mangled, name in exported(options.library):
        if "@" in mangled:
            findings.append(f"{options.library.name}: '{mangled}' has an ELF symbol version")
            mangled, name = mangled.split("@")[0], name.split("@")[0]
        required.discard(without_arguments(name))
        if mangled in published | MARKERS or without_arguments(name) in published or of_public_class(name, classes):
            continue
        findings.append(f"{options.library.name}: exports '{name}', which 8.5 does not publish")
    findings += [f"{options.library.name}: does not export '{name}'" for name in sorted(required)]
    sections = subprocess.run(["readelf", "-SW", str(options.library)], capture_output=True, text=True, check=True).stdout
    if ".gnu.version_d" in sections:
        findings.append(f"{options.library.name}: defines ELF symbol versions")
    return findings


def self_test(root, options):
    options.facts = root / "facts.txt"
    options.name = "libnvparsers"
    house.plant(
        root,
        "facts.txt",
        "class nvuffparser::FieldMap\n"
        "function createIt() noexcept -> void* | extern-C lib=libnvparsers; args: x\n"
        "function nvuffparser::make(int) noexcept -> void* | lib=libnvparsers\n"
        "function getElsewhere() -> int | extern-C lib=libnvinfer\n",
    )
    good = """
        namespace nvuffparser {
        class FieldMap { public: FieldMap(const char*); virtual ~FieldMap(); };
        FieldMap::FieldMap(const char*) {} FieldMap::~FieldMap() {}
        void* make(int) { return nullptr; } }
        extern "C" void* createIt() { return nullptr; }
        extern "C" { int tensorrt_version_8_5_3_1 = 0; }
    """

    def library(name, content, *flags):
        house.plant(root, f"{name}.cpp", content)
        options.library = root / f"{name}.so"
        command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-shared", "-fPIC", *flags]
        subprocess.run([*command, "-o", str(options.library), str(root / f"{name}.cpp")], check=True)
        return check(root, options)

    house.expect(library("good", good))
    house.expect(
        library("wide", good + 'extern "C" int getElsewhere() { return 1; } namespace tw { int inside() { return 1; } }'),
        "exports 'getElsewhere'",
        "exports 'tw::inside()'",
    )
    house.expect(library("narrow", good.replace("createIt", "createThat")), "exports 'createThat'", "does not export 'createIt'")
    (root / "versions.map").write_text("V_1 { global: *; };\n")
    versioned = library("versioned", good, f"-Wl,--version-script={root}/versions.map")
    assert any("createIt@" in finding for finding in versioned), versioned
    house.expect(versioned[-1:], "defines ELF symbol versions")


if __name__ == "__main__":
    sys.exit(
        house.run(
            check,
            self_test,
            ("--library", {"type": pathlib.Path}),
            ("--name", {"help": "libnvinfer, libnvonnxparser, ..."}),
            ("--facts", {"type": pathlib.Path, "default": FACTS}),
        )
    )
