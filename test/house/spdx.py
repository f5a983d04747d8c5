#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file names the licence in its first three lines, and no file carries a copyright notice of NVIDIA."""
import re
import sys

import house

LINE = "SPDX-License-Identifier: Apache-2.0"
KINDS = house.CPP | {".py", ".sh", ".cmake", ".proto", ".fbs", ".def", ".map", ".in"}
NAMES = {"CMakeLists.txt", "Makefile"}
NOTICE = re.compile(rb"nvidia\s+corporation|copyright[^\n]{0,40}nvidia", re.IGNORECASE)


def check(root, options):
    findings = []
    for path in house.files(root):
        content = (root / path).read_bytes()
        source = path.suffix in KINDS or path.name in NAMES or content.startswith(b"#!")
        if source and LINE.encode() not in b"\n".join(content.split(b"\n", 3)[:3]):
            findings.append(f"{path}: the line '{LINE}' is missing from its first three lines")
        # This file has to spell what it looks for.
        if path.name != "spdx.py" and NOTICE.search(content):
            findings.append(f"{path}: carries a copyright notice of NVIDIA; everything here is written by us")
    return findings


def self_test(root, options):
    house.plant(root, "src/good.cpp", f"// {LINE}\nint x;\n")
    house.plant(root, "scripts/good", f"#!/bin/sh\n# {LINE}\n")
    house.expect(check(root, options))
    house.plant(root, "src/bare.cpp", "int x;\n")
    house.plant(root, "src/CMakeLists.txt", "project(x)\n")
    house.plant(root, "scripts/bare", "#!/bin/sh\nexit 0\n")
    house.plant(root, "include/taken.h", f"// {LINE}\n// Copyright (c) 2022, " + "NVIDIA " + "CORPORATION.\n")
    house.plant(root, "docs/taken.md", "Copyright 2022 " + "NVIDIA. All rights reserved.\n")
    house.expect(check(root, options), "src/bare.cpp", "src/CMakeLists.txt", "scripts/bare", "include/taken.h", "docs/taken.md")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test))
