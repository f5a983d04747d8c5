#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README says of the state is what records say: the lines between its two marks are made of the names of
bench/results (the newest record of each subject and machine).

    readme_state.py --fix   writes them
"""
import re
import sys

import house

BEGIN, END = "<!-- made by test/house/readme_state.py --fix -->", "<!-- end -->"
# DATE-MACHINE-SUBJECT.json, SUBJECT-DATE-MACHINE.json or cpu_peers-DATE-[MACHINE-]SUBJECT.json
RECORD = re.compile(r"(?:(?P<peers>cpu_peers)-|(?P<kind>[a-z_]+)-)?(?P<date>\d{4}-\d\d-\d\d)-(?:(?P<machine>h[12]00|zen\d|xeon)-?)?(?P<subject>.*)\.json")
MACHINES = {"h100": "NVIDIA H100", "h200": "NVIDIA H200", "zen3": "AMD Zen 3", "zen4": "AMD Zen 4", "zen5": "AMD Zen 5", "xeon": "Intel Xeon with AMX"}


def subjects(names):
    """By machine: subject -> date of its newest record."""
    found = {}
    for name in sorted(names):
        match = RECORD.fullmatch(name)
        if not match:
            raise SystemExit(f"bench/results/{name}: the name is not DATE-MACHINE-SUBJECT.json, SUBJECT-DATE-MACHINE.json or cpu_peers-DATE-[MACHINE-]SUBJECT.json")
        of = found.setdefault(MACHINES.get(match["machine"], "other CPUs"), {})
        subject = match["subject"] or match["kind"]
        subject = re.sub(r"-\d+$", "", subject.replace("_", " ")) + (" beside peers" if match["peers"] else "")
        of[subject] = max(of.get(subject, ""), match["date"])
    return found


def lines(root):
    names = [path.name for path in house.files(root) if str(path).startswith("bench/results/") and path.suffix == ".json"]
    out = ["| measured on | subject (newest record in [bench/results](bench/results)) |", "| --- | --- |"]
    for machine, of in sorted(subjects(names).items()):
        out.append(f"| {machine} | " + "; ".join(f"{subject} ({date})" for subject, date in sorted(of.items())) + " |")
    return out


def check(root, options):
    readme = house.text(root / "README.md")
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        return [f"README.md: wants one '{BEGIN}' and one '{END}'"]
    before, rest = readme.split(BEGIN)
    old, behind = rest.split(END)
    new = "\n" + "\n".join(lines(root)) + "\n"
    if old == new:
        return []
    if getattr(options, "fix", False):
        (root / "README.md").write_text(before + BEGIN + new + END + behind, encoding="utf-8")
        return []
    return ["README.md: its state is not what bench/results say; run test/house/readme_state.py --fix"]


def self_test(root, options):
    house.plant(root, "bench/results/2026-01-02-h200-loops.json", "{}")
    house.plant(root, "bench/results/2026-02-02-h200-loops-2.json", "{}")
    house.plant(root, "bench/results/cpu_peers-2026-01-03-zen4-int8.json", "{}")
    house.plant(root, "bench/results/refit-2026-01-03-zen3.json", "{}")
    house.plant(root, "README.md", f"# x\n{BEGIN}\nold\n{END}\n")
    house.expect(check(root, options), "its state is not")
    options.fix = True
    house.expect(check(root, options))
    options.fix = False
    house.expect(check(root, options))
    state = house.text(root / "README.md")
    for wanted in ("| NVIDIA H200 | loops (2026-02-02) |", "int8 beside peers (2026-01-03)", "| AMD Zen 3 | refit (2026-01-03) |"):
        assert wanted in state, (wanted, state)
    house.plant(root, "bench/results/2026-03-02-h200-loops.json", "{}")
    house.expect(check(root, options), "its state is not")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--fix", {"action": "store_true"})))
