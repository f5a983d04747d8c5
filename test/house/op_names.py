#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engine asks what an op does (ir::OpDef), never what it is called: no comparison of an op's name outside src/ops."""
import re
import sys

import house

# The names of ops mean something where graphs are read, written and shown.
MAY = ("src/ops/", "src/plan/", "src/tactic/registry", "src/ir/text", "src/onnx/")
ASKS = re.compile(r'op->name\)?\s*(?:==|!=)|(?:==|!=)\s*[\w.>-]*op->name|ops::find\("|strcmp\([^)]*op->name')


def check(root, options):
    return [
        f"{path}:{number}: asks an op for its name; say what it needs to know in ir::OpDef"
        for path in house.files(root)
        if path.parts[0] == "src" and path.suffix in house.CPP and not str(path).startswith(MAY)
        for number, line in enumerate(house.text(root / path).splitlines(), 1)
        if ASKS.search(line)
    ]


def self_test(root, options):
    house.plant(root, "src/passes/good.cpp", "bool f() { return n.op->isCheap && n.op == &ops::shape::def(); }\n")
    house.plant(root, "src/ops/shape/op.cpp", 'bool f() { return n.op->name == g; }\n')
    house.expect(check(root, options))
    house.plant(root, "src/runtime/bad.cpp", 'int x;\nbool f() { return std::string_view(n.op->name) == "shape"; }\n')
    house.plant(root, "src/builder/find.cpp", 'auto* op = ops::find("reformat");\n')
    house.expect(check(root, options), "src/runtime/bad.cpp:2", "src/builder/find.cpp:1")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test))
