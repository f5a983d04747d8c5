#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: test_summary.py ctest.xml

Names the failed and the skipped tests of a ctest JUnit file, the skipped ones with the last line they printed, and closes with one line: N passed, N failed, N skipped. A
test whose program is missing has failed. Status 1 when a test failed, when none passed, or when the file is not there.
"""
import sys
import xml.etree.ElementTree as ElementTree


def verdict(case):
    if case.get("status") == "run":
        return "passed"
    if case.get("status") == "disabled":
        return "skipped"
    # ctest writes "notrun" both for a test that asked to be skipped and for one that it could not start.
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def reason(case):
    lines = (case.findtext("system-out") or "").strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ": it gave no reason"


def main():
    try:
        cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}")
        return 1
    names = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        kind = verdict(case)
        names[kind].append(case.get("name") + (reason(case) if kind == "skipped" else ""))
    for kind in ("skipped", "failed"):
        for name in names[kind]:
            print(f"{kind}: {name}")
    print(", ".join(f"{len(names[kind])} {kind}" for kind in names))
    return 1 if names["failed"] or not names["passed"] else 0


sys.exit(main())
