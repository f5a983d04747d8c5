#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records of benchmarks (bench/results) are in the form that bench/record.py writes, one to a subject and machine, and there where a
page names one; and src/tactic/estimates.def is what bench/estimates.py writes of the record of tactics."""
import re
import sys

import house
from readme_state import RECORD

sys.path.append(str(house.ROOT / "bench"))
import estimates  # noqa: E402
from record import faults, text_of  # noqa: E402

FOLDER = "bench/results/"
NAMED = re.compile(r"results/([\w.-]*\d{4}-\d\d-\d\d[\w.-]*\.json)")


def estimates_faults(root):
    records = sorted(root.glob(FOLDER + "*-h200-tactics.json"))
    table = root / "src/tactic/estimates.def"
    if not records or house.text(table) == estimates.table_from(records[-1]):
        return []
    return [f"{table.relative_to(root)} is not what bench/estimates.py --write makes of {records[-1].name}"]


def check(root, options):
    found, newest = estimates_faults(root), {}
    files = house.files(root)
    for path in (path for path in files if str(path).startswith(FOLDER)):
        found += [f"{path} {fault}" for fault in faults(house.text(root / path))]
        match = RECORD.fullmatch(path.name)
        if not match:
            found.append(f"{path}: its name does not say of what and when, as test/house/readme_state.py reads it")
            continue
        subject = (match["peers"], match["kind"], match["machine"], re.sub(r"-\d+$", "", match["subject"]))
        newest.setdefault(subject, []).append((match["date"], path))
    for records in newest.values():
        found += [f"{path}: {max(records)[1].name} is newer and of the same; former records are in git's history" for _, path in records
                  if path != max(records)[1]]
    there = {path.name for path in files if str(path).startswith(FOLDER)}
    for path in (path for path in files if path.suffix == ".md"):
        found += [f"{path} names results/{name}, which is not there" for name in NAMED.findall(house.text(root / path)) if name not in there]
    return found


def self_test(root, options):
    rows = [{"network": "a", "ms": 0.1}, {"network": "b", "ms": 2}]
    record = {"date": "2026-01-02", "machine": "a machine", "commit": "1234567", "how": "a command", "rows": rows}
    good = text_of(record)
    house.plant(root, FOLDER + "2026-01-02-h200-loops.json", good)
    house.plant(root, FOLDER + "cpu_peers-2026-01-02-zen4-loops.json", good)
    house.plant(root, "bench/README.md", "`results/2026-01-02-h200-loops.json`\n")
    house.expect(check(root, options))
    house.plant(root, "bench/README.md", "`results/2026-01-01-h200-loops.json`\n")
    house.plant(root, FOLDER + "2026-01-01-h200-loops-2.json", good)
    house.plant(root, FOLDER + "2026-01-02-h200-spread.json", good.replace('"network"', '\n   "network"'))
    house.plant(root, FOLDER + "2026-01-02-h200-digits.json", good.replace("0.1", "0.123456789"))
    house.plant(root, FOLDER + "2026-01-02-h200-nameless.json", good.replace('"a machine"', '""'))
    house.plant(root, FOLDER + "2026-01-02-h200-list.json", "[1, 2]\n")
    house.plant(root, FOLDER + "2026-01-02-h200-broken.json", good[:-2])
    house.plant(root, FOLDER + "2026-01-02-h200-samples.json", text_of({**record, "rows": [{"times": [0.25] * 999}]}))
    house.plant(root, FOLDER + "notes.json", good)
    of_tactics = [{"row": "r", "formats": "f", "tactic": "t", "configs": ["1"], "us": [2.0], "expected_us": [1.0]}]
    house.plant(root, FOLDER + "2026-01-02-h200-tactics.json", text_of({**record, "rows": of_tactics}))
    house.plant(root, "src/tactic/estimates.def", "TW_ESTIMATE(t, 0, 3)\n")
    house.expect(
        check(root, options),
        "README.md names results/2026-01-01-h200-loops.json",
        "2026-01-01-h200-loops-2.json: 2026-01-02-h200-loops.json is newer",
        "h200-spread.json is not in the form",
        "h200-digits.json is not in the form",
        'h200-nameless.json does not say "machine"',
        'h200-list.json has no "rows"',
        "h200-broken.json is no JSON",
        "h200-samples.json line 7 has",
        "notes.json: its name",
        "estimates.def is not what",
    )


if __name__ == "__main__":
    sys.exit(house.run(check, self_test))
