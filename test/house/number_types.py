#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a number type is, base/types.h says: src asks it (isFloating(), isNarrowFloat(), isQuantized(), ...) or says a tactic's type once,
and compares types only in base and kernels. LIMIT lines are left that do; it only gets lower."""
import re
import sys

import house

LIMIT = 12
MAY = ("src/base/", "src/kernels/")
COMPARES = re.compile(r"(?:==|!=) *(?:DataType::)?k(?:Half|Float|Int8)\b")


def comparisons(root):
    return [
        f"{path}:{number}"
        for path in house.files(root)
        if path.parts[0] == "src" and path.suffix in house.CPP and not str(path).startswith(MAY)
        for number, line in enumerate(house.text(root / path).splitlines(), 1)
        if COMPARES.search(line)
    ]


def findings(places, limit):
    if len(places) > limit:
        return [f"{len(places)} comparisons of number types, the limit is {limit}: " + ", ".join(places)]
    return [f"{len(places)} comparisons of number types are left: LIMIT may be lower"] if len(places) < limit else []


def check(root, options):
    return findings(comparisons(root), LIMIT)


def self_test(root, options):
    house.plant(root, "src/base/good.h", "bool f() { return t == DataType::kHalf; }\n")
    house.plant(root, "src/passes/good.cpp", "bool f() { return isFloating(t) && t == DataType::kHalfway; }\n")
    house.expect(findings(comparisons(root), 0))
    house.plant(root, "src/ops/bad.cpp", "int x;\nbool f() { return t != kInt8; }\n")
    house.plant(root, "src/api/bad.h", "bool f() { return v->type==DataType::kFloat; }\n")
    house.expect(findings(comparisons(root), 2))
    house.expect(findings(comparisons(root), 1), "2 comparisons of number types, the limit is 1")
    house.expect(findings(comparisons(root), 3), "LIMIT may be lower")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test))
