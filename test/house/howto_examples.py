#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Examples of the pages on number types and epilogue steps are code that compiles.

A cpp block that follows "`src/file`, in front of `line`:" is put there, and all files that a page changes are compiled so (syntax and
switches); other blocks of these pages are lines of src as they stand.

    howto_examples.py [--build build/release] [--cxx g++]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import house

PAGES = ("docs/howto/add-a-number-type.md", "docs/howto/add-an-epilogue-step.md")
BLOCK = re.compile(r"(?:`(src/[^`]+)`, in front of `([^`]+)`:\n\n)?```cpp\n(.*?)```", re.S)


def examples(text):
    """(file, line, code) of each block; the first two are None where it is code of the tree."""
    return [tuple(group or None for group in match.groups()) for match in BLOCK.finditer(text)]


def squeezed(code):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", code)).strip()


def changed(root, blocks):
    """The files with the blocks in them, and what is wrong."""
    files, wrong = {}, []
    for path, line, code in blocks:
        if not (root / path).is_file():
            wrong.append(f"{path} does not exist")
            continue
        text = files.get(path, None) or (root / path).read_text()
        at = text.find(line)
        if at < 0:
            wrong.append(f"{path} has no line {line}")
            continue
        begin = text.rfind("\n", 0, at) + 1
        files[path] = text[:begin] + code + text[begin:]
    return files, wrong


def compiled(root, files, build, cxx):
    with tempfile.TemporaryDirectory() as folder:
        over = pathlib.Path(folder)
        for path, text in files.items():
            target = over / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        for path in files:
            if path.endswith(".cpp"):
                done = subprocess.run([cxx, "-std=c++20", "-fsyntax-only", "-Werror=switch", f"-I{over / 'src'}", f"-I{root / 'src'}",
                                       f"-I{build / 'src/generated'}", str(over / path)], capture_output=True, text=True)
                if done.returncode != 0:
                    yield f"{path} with the example: " + "; ".join(re.findall(r"error: [^\n]*", done.stderr)[:3])


def findings(root, pages, build, cxx):
    found = []
    source = None
    for page in pages:
        blocks = examples((root / page).read_text())
        if not blocks:
            found.append(f"{page} has no example")
        for path, _, code in blocks:
            if path is None:
                source = source or squeezed("\n".join(house.text(root / p) for p in house.files(root) if p.parts[0] == "src"))
                if squeezed(code) not in source:
                    found.append(f"{page}: src has no such code: {squeezed(code)[:80]}")
        files, wrong = changed(root, [b for b in blocks if b[0]])
        found += [f"{page}: {w}" for w in wrong] + [f"{page}: {w}" for w in compiled(root, files, build, cxx)]
    return found


def check(root, options):
    return findings(root, PAGES, options.build, options.cxx)


def self_test(root, options):
    fence = "`" * 3
    house.plant(root, "src/a.cpp", "enum class E { kOne,\n};\nint f(E e)\n{\n    switch (e) {\n    case E::kOne:\n        return 1;\n    }\n    return 0;\n}\n")
    house.plant(root, "good.md", f"`src/a.cpp`, in front of `}};`:\n\n{fence}cpp\nkTwo,\n{fence}\n\n`src/a.cpp`, in front of `case E::kOne:`:\n\n{fence}cpp\ncase E::kTwo:\n    return 2;\n{fence}\n\n{fence}cpp\nreturn   1; // as it is\n{fence}\n")
    house.expect(findings(root, ["good.md"], options.build, options.cxx))
    house.plant(root, "bad.md", f"`src/a.cpp`, in front of `}};`:\n\n{fence}cpp\nkTwo,\n{fence}\n\n{fence}cpp\nreturn 3;\n{fence}\n")
    house.expect(findings(root, ["bad.md"], options.build, options.cxx), "src has no such code", "kTwo")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path, "default": house.ROOT / "build/release"}), ("--cxx", {"default": "c++"})))
