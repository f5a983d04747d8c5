#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as clang-format writes it, and const stands behind its type, in front of which clang-format leaves
it where the type is a template's. `--fix` formats instead of checking: that is `make format`."""
import pathlib
import re
import shutil
import subprocess
import sys

import house


def sources(root):
    return [str(path) for path in house.files(root) if pathlib.Path(path).suffix in house.CPP]


# Comments and literals, which are skipped, or a const that begins a declaration.
CONST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|(?P<const>(?:(?<=[;{}(,<=])|^|\b(?:static|inline|extern|constexpr|return)) *"""
    r"""\bconst (?!__|noexcept|override|final)[A-Za-z_:][\w:]*(?=[ <&*]))""",
    re.DOTALL | re.MULTILINE,
)


def const_in_front(text):
    """The lines in which it stands there."""
    return [text.count("\n", 0, m.end()) + 1 for m in CONST.finditer(text) if m["const"]]


def check(root, options):
    tool = shutil.which("clang-format")
    if tool is None:
        return ["clang-format is not installed (Debian package clang-format)"]
    names = sources(root)
    if not names:
        return []
    if options.fix:
        subprocess.run([tool, "-i", *names], cwd=root, check=True)
        return []
    front = [
        f"{name}:{n}: const stands in front of its type"
        for name in names
        for n in const_in_front(house.text(pathlib.Path(root) / name))
    ]
    result = subprocess.run([tool, "--dry-run", "-Werror", *names], cwd=root, capture_output=True, text=True)
    bad = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "-Wclang-format-violations" in line})
    if result.returncode != 0 and not bad:
        return [f"clang-format failed: {result.stderr.strip()}"]
    return front + [f"{name}: not formatted; `make format` does it" for name in bad]


def self_test(root, options):
    house.plant(root, ".clang-format", house.text(house.ROOT / ".clang-format"))
    house.plant(root, "src/base/good.cpp", "int add(int x, int y)\n{\n    return x + y;\n}\n")
    house.expect(check(root, options))
    house.plant(root, "src/base/bad.cpp", "int add(int x,int y){ return x+y; }\n")
    house.plant(root, "include/bad.h", "int   twice(int x);\n")
    house.expect(check(root, options), "src/base/bad.cpp", "include/bad.h")
    options.fix = True
    check(root, options)
    options.fix = False
    house.expect(check(root, options))
    house.plant(root, "src/base/front.h", "// const int here\nvoid f(char const* text = \"(const int)\")\n{\n"
                "    const std::lock_guard lock(mutex);\n}\n")
    house.expect(check(root, options), "src/base/front.h:4")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--fix", {"action": "store_true"})))
