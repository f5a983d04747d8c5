#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: test_summary.py ctest.xml

Names the failed and the skipped tests of a ctest JUnit file, and closes with one line: N passed, N failed, N skipped. Beside a failed test stand the cases that GoogleTest or
pytest name as failed, each with what it printed; beside a skipped one its last line. A test whose program is missing has failed. Status 1 when a test failed, when none passed, or when the file is not there.
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


def printed(case):
    return (case.findtext("system-out") or "").strip().splitlines()


def reason(case):
    lines = printed(case)
    return f": {lines[-1].strip()}" if lines else ": it gave no reason"


# What a failed test says of its failures; the rest of its output may be thousands of lines.
def failures(case, limit=60):
    lines = printed(case)
    kept = []
    inside = []  # what the case of GoogleTest that is running printed
    for line in lines:
        if line.startswith("[ RUN      ]"):
            inside = [line]
        elif line.startswith("[  FAILED  ]"):
            kept += [*inside, line] if inside else []
            inside = []
        elif line.startswith("[       OK ]"):
            inside = []
        elif line.startswith(("FAILED ", "ERROR ", "E  ")):
            kept.append(line)
        elif inside:
            inside.append(line)
    if inside:  # the program ended in the middle of it
        kept += inside
    kept = kept or lines[-10:]
    return "".join(f"\n    {line}" for line in kept[:limit])


DETAILS = {"passed": lambda case: "", "failed": failures, "skipped": reason}


def main():
    try:
        cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}")
        return 1
    names = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        kind = verdict(case)
        names[kind].append(case.get("name") + DETAILS[kind](case))
    for kind in ("skipped", "failed"):
        for name in names[kind]:
            print(f"{kind}: {name}")
    print(", ".join(f"{len(names[kind])} {kind}" for kind in names))
    return 1 if names["failed"] or not names["passed"] else 0


sys.exit(main())
