#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/sanitize.sh builds and runs what it names: each of its test names is a test of `--build`, whose program it builds."""
import json
import pathlib
import re
import subprocess
import sys

import house

SCRIPT = "scripts/sanitize.sh"


def alternatives(pattern):
    """The parts of ^(a|b_(c|d))$ between the outer bars."""
    parts, depth = [""], 0
    for letter in pattern.removeprefix("^(").removesuffix(")$"):
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def listed(build):
    """Name and program of each test; no program where it is not built yet."""
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, check=True)
    return {t["name"]: pathlib.Path(t.get("command", [""])[0]).name for t in json.loads(shown.stdout)["tests"]}


def check(root, options, tests=None):
    tests = tests or listed(options.build or root / "build" / "release")
    script = house.text(root / SCRIPT)
    built = {"", *" ".join(a + b for a, b in re.findall(r"programs=\((.*?)\)|--target ([^\n]*)", script, re.S)).split()}
    findings = []
    for pattern in re.findall(r"'(\^\(.*\)\$)'", script):
        for part in alternatives(pattern):
            names = [name for name in tests if re.fullmatch(part, name)]
            findings += [f"{SCRIPT}: '{part}' is no test"] if not names else []
            findings += [f"{SCRIPT}: {tests[n]} of test {n} is not built" for n in names if tests[n] not in built]
    return findings


def self_test(root, options):
    script = "programs=(test_ir fuzz_a fuzz_b\n    test_ops)\ntests='^(ir|fuzz_(a|b)%s)$'\nctest -R '^(ir)$'\n"
    tests = {"ir": "test_ir", "fuzz_a": "fuzz_a", "fuzz_b": "fuzz_b", "ops": "test_ops", "cuda.fake": "test_cuda_fake"}
    house.plant(root, SCRIPT, script % "|ops")
    house.expect(check(root, options, tests))
    house.plant(root, SCRIPT, script % r"|cuda\.double|cuda\.fake")
    house.expect(check(root, options, tests), r"'cuda\.double' is no test", "test_cuda_fake of test cuda.fake is not built")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--build", {"type": pathlib.Path})))
