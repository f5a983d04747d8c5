#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python files of bench/ and scripts/ compile. usage: scripts_test.py"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    files, bad = sorted([*ROOT.glob("bench/**/*.py"), *ROOT.glob("scripts/**/*.py")]), 0
    for file in files:
        try:
            compile(file.read_text(encoding="utf-8"), str(file), "exec")
        except SyntaxError as error:
            bad += 1
            print(f"{file}: {error}")
    print(f"{len(files) - bad} passed, {bad} failed")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
