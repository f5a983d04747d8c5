#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every #include goes down: layers.txt says which layer may include which. Also: no header pulls in a heavy standard one."""
import fnmatch
import pathlib
import re
import sys

import house

TABLE = pathlib.Path(__file__).resolve().parent / "layers.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# Where the compiler looks for a project header, after the folder of the file itself.
SEARCH = ("src", "include", "src/hostcuda/include", "")
HEAVY = {"iostream", "regex", "filesystem"}


class Layer:
    def __init__(self, line):
        name, patterns, allowed = (field.strip() for field in line.split("|"))
        self.name = name
        self.patterns = patterns.split()
        self.allowed = set(allowed.split()) - {"private"}
        self.private = "private" in allowed.split()


def read_table(path):
    lines = (line.strip() for line in house.text(path).splitlines())
    return [Layer(line) for line in lines if line and not line.startswith("#")]


def layer_of(table, path):
    return next((layer for layer in table if any(fnmatch.fnmatchcase(path, pattern) for pattern in layer.patterns)), None)


def resolve(known, path, quoted, target):
    """The project file that an include means, or None when it is not one of ours."""
    places = ([str(path.parent)] if quoted else []) + list(SEARCH)
    for place in places:
        parts = []
        for part in pathlib.PurePosixPath(place, target).parts:
            if part == ".." and parts:
                parts.pop()
            else:
                parts.append(part)
        name = "/".join(parts)
        if name in known:
            return pathlib.PurePosixPath(name)
    return None


def own_folder(path):
    """The folder that a private file belongs to: that of an op, a tool or an example; else the one it lies in."""
    depth = 3 if path.parts[:2] == ("src", "ops") else 2 if path.parts[0] in ("tools", "examples") else len(path.parts) - 1
    return path.parts[:depth]


def allowed(layer, path, other, other_path):
    if "*" in layer.allowed:
        return True
    if other.private and own_folder(path) != own_folder(other_path):
        return False
    return other.name in layer.allowed | {layer.name}


def check(root, options):
    table = read_table(options.table)
    known_layers = {layer.name for layer in table}
    findings = [
        f"{options.table.name}: layer '{layer.name}' may include '{name}', which is no layer"
        for layer in table
        for name in sorted(layer.allowed - known_layers - {"*"})
    ]
    sources = [path for path in house.files(root) if path.suffix in house.CPP]
    known = {str(path) for path in sources}
    for path in sources:
        layer = layer_of(table, str(path))
        if layer is None:
            findings.append(f"{path}: belongs to no layer of {options.table.name}")
            continue
        content = house.text(root / path)
        for match in INCLUDE.finditer(content):
            line = content.count("\n", 0, match.start(2)) + 1
            if path.suffix == ".h" and path.parts[0] in ("src", "include") and match[2] in HEAVY:
                findings.append(f"{path}:{line}: <{match[2]}> is too heavy for a header; include it in a .cpp")
            other_path = resolve(known, path, match[1] == '"', match[2])
            if other_path is None:
                continue
            other = layer_of(table, str(other_path))
            if other is None:
                continue  # reported with that file
            if allowed(layer, path, other, other_path):
                continue
            findings.append(
                f"{path}:{line}: layer '{layer.name}' may not include '{other_path}' of layer '{other.name}'"
                f"{', whose files are private to their folder' if other.private else ''}"
                f" (allowed: itself {' '.join(sorted(layer.allowed))})"
            )
    return findings


def self_test(root, options):
    good = {
        "include/NvInfer.h": "#include <cstdint>\n",
        "src/base/result.h": "#include <cstdint>\n",
        "src/ir/graph.h": '#include "base/result.h"\n',
        "src/tactic/tactic.h": '#include "ir/graph.h"\n',
        "src/kernels/cpu/rows.h": "",
        "src/families/copy/rows.h": '#include "ops/scale/op.h"\n#include "kernels/cpu/rows.h"\n',
        "src/ops/scale/op.h": '#include "tactic/tactic.h"\n',
        "src/ops/scale/cpu.cpp": '#include "ops/scale/op.h"\n#include "kernel.h"\n',
        "src/ops/scale/kernel.h": "",
        "src/ops/pool/op.cpp": '#include "ops/scale/op.h"\n',
        "src/ops/scale/onnx.cpp": '#include "onnx/importer.h"\n#include <NvInfer.h>\n',
        "src/onnx/importer.h": "#include <NvInfer.h>\n",
        "src/runtime/engine.cpp": '#include "../plan/plan.h"\n',
        "src/plan/plan.h": "",
        "test/runtime/test.cpp": '#include "runtime/engine.h"\n#include "ops/scale/kernel.h"\n',
    }
    for name, content in good.items():
        house.plant(root, name, content)
    house.expect(check(root, options))
    bad = {
        "src/base/up.cpp": '#include "ir/graph.h"\n',
        "src/ir/public.cpp": "#include <NvInfer.h>\n",
        "src/passes/up.cpp": '\n#include "plan/plan.h"\n',
        "src/onnx/inside.cpp": '#include "base/result.h"\n',
        "src/ops/pool/steal.cpp": '#include "ops/scale/kernel.h"\n',
        "src/ops/pool/onnx.cpp": '#include <NvInfer.h>\n#include "base/result.h"\n',
        "tools/trtexec/inside.cpp": '#  include "../../src/ir/graph.h"\n',
        "src/base/heavy.h": "#include <regex>\n",
        "src/misc/lost.cpp": "",
        "src/ops/pool/op.h": '#include "kernels/cpu/rows.h"\n',
        "src/tactic/up.cpp": '#include "families/copy/rows.h"\n',
        "src/ops/loose.cpp": "",
    }
    for name, content in bad.items():
        house.plant(root, name, content)
    house.expect(
        check(root, options),
        "src/base/up.cpp:1",
        "src/ir/public.cpp:1",
        "src/passes/up.cpp:2",
        "src/onnx/inside.cpp:1",
        "src/ops/pool/steal.cpp:1",
        "src/ops/pool/onnx.cpp:2",
        "tools/trtexec/inside.cpp:1",
        "src/base/heavy.h:1: <regex>",
        "src/misc/lost.cpp: belongs to no layer",
        "src/ops/pool/op.h:1",
        "src/tactic/up.cpp:1",
        "src/ops/loose.cpp: belongs to no layer",
    )


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--table", {"type": pathlib.Path, "default": TABLE})))
