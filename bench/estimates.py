#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well tactics foresee their time, and which never win, by what bench_cuda_tactics wrote or a record of it: every tactic and config of its
rows, losers too.

For each tactic that estimates: by how much its estimates have to be multiplied (the median of measured / expected), how far from that a tenth
of them lies (a factor), and a + b * estimate, fitted to the least relative error; what it costs to trust it: the config that it expects to be
the fastest, beside the fastest one, over the rows (median and worst). Then what it costs to trust the estimates of all tactics of a row, as
they are and as fitted. Then the tactics that are the fastest in no row, in their formats, with the least by which they lose.

--write puts a and b into src/tactic/estimates.def, by which the library corrects what tactics estimate. --record FILE makes a record of the
files (bench/record.py)."""

import argparse

import collections
import json
import math
import os
import statistics
import sys

import record

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "tactic", "estimates.def")
# The least share of b * estimate that is expected: a line through large kernels may begin below 0. Also in expected_time.cpp.
FLOOR = 0.5
LEAST_ROWS = 4


def fitted(points):
    """(a, b) of the least sum of ((a + b * x - y) / y) ** 2 over points (x, y)."""
    sxx = sx = s1 = sxy = sy = 0.0
    for x, y in points:
        w = 1 / (y * y)
        sxx, sx, s1, sxy, sy = sxx + w * x * x, sx + w * x, s1 + w, sxy + w * x * y, sy + w * y
    determinant = sxx * s1 - sx * sx
    if abs(determinant) < 1e-12 * sxx * s1:
        return 0.0, sxy / sxx
    return (sxx * sy - sx * sxy) / determinant, (s1 * sxy - sx * sy) / determinant


def line_of(rows):
    """(a, b) of a tactic; few rows say nothing of small kernels."""
    points = [(r["estimate_us"], r["us"]) for r in rows]
    if len({r["row"] for r in rows}) < LEAST_ROWS:
        return 0.0, statistics.median(y / x for x, y in points)
    return fitted(points)


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def of_tactic(rows):
    """The line of a tactic that estimates."""
    points = [(r["estimate_us"], r["us"]) for r in rows]
    ratios = [y / x for x, y in points]
    scale = statistics.median(ratios)
    spread = math.exp(quantile([abs(math.log(r / scale)) for r in ratios], 0.9))
    costs = []
    for group in by(rows, "row", "formats").values():
        trusted = min(group, key=lambda r: r["estimate_us"])
        costs.append(trusted["us"] / min(r["us"] for r in group))
    a, b = fitted(points)
    return (
        f"{len(costs):4} {len(rows):5}  {scale:6.2f}  {spread:6.2f}  {a:7.2f} + {b:5.2f} x  "
        f"{statistics.median(costs):6.3f} {max(costs):6.3f}"
    )


def by(rows, *keys):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def rows_of(path):
    """(rows as bench_cuda_tactics writes them, one a config; the file's other keys)"""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    rows = []
    for row in content.pop("rows"):
        if "expected_us" not in row:  # not a record
            rows.append(row)
            continue
        same = {key: row[key] for key in ("row", "formats", "tactic")}
        rows += [
            {**same, "config": config, "us": us, "estimate_us": expected}
            for config, us, expected in zip(row["configs"], row["us"], row["expected_us"])
        ]
    return rows, content


def estimated(rows):
    """{tactic: its rows}, of those that estimate."""
    return {tactic: group for (tactic,), group in sorted(by(rows, "tactic").items()) if all(r["estimate_us"] > 0 for r in group)}


def expected(lines, row):
    """What the library expects of a row, by {tactic: (a, b)}."""
    a, b = lines.get(row["tactic"], (0, 1))
    return max(a + b * row["estimate_us"], FLOOR * b * row["estimate_us"])


def cost_of_trust(rows, lines):
    """Over rows where several tactics estimate: the time of what is expected to be the fastest / the least time."""
    costs = []
    for group in by(rows, "row", "formats").values():
        group = [r for r in group if r["estimate_us"] > 0]
        if len({r["tactic"] for r in group}) > 1:
            costs.append(min(group, key=lambda r: expected(lines, r))["us"] / min(r["us"] for r in group))
    return f"{len(costs)} rows, median {statistics.median(costs):.3f}, mean {statistics.mean(costs):.3f}, worst {max(costs):.3f}"


def table_of(lines, header):
    """The text of src/tactic/estimates.def."""
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// TW_ESTIMATE(tactic, a, b): measured to take a + b * what it estimates, microseconds. Written by bench/estimates.py --write, of\n"
        f"// bench_cuda_tactics on {header.get('machine') or header['gpu']}, {header.get('date', 'not recorded')}.\n"
        + "".join(f"TW_ESTIMATE({tactic}, {a:.3g}, {b:.3g})\n" for tactic, (a, b) in lines.items())
    )


def lines_of(rows):
    return {tactic: line_of(group) for tactic, group in estimated(rows).items()}


def table_from(path):
    rows, header = rows_of(path)
    return table_of(lines_of(rows), header)


def recorded(rows, header):
    """Rows of a record: a line for a row, formats and tactic."""
    lines = []
    for (row, formats, tactic), group in by(rows, "row", "formats", "tactic").items():
        lines.append({
            "row": row, "formats": formats, "tactic": tactic,
            "configs": [",".join(map(str, r["config"])) for r in group],
            "us": [float(f"{r['us']:.4g}") for r in group],
            "expected_us": [float(f"{r['estimate_us']:.4g}") for r in group],
        })
    return {**header, "rows": lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--record", metavar="FILE")
    options = parser.parse_args()
    rows, header = [], {}
    for path in options.files:
        more, header = rows_of(path)
        rows += more
    lines = lines_of(rows)
    print(f"{'tactic':44} rows configs scale  spread   fitted, us           cost of trust: median, worst")
    for tactic, group in estimated(rows).items():
        print(f"{tactic:44} {of_tactic(group)}")
    print(f"\nto trust all tactics of a row, as they estimate: {cost_of_trust(rows, {})}\n{'as fitted:':>47} {cost_of_trust(rows, lines)}")
    if options.write:
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write(table_of(lines, header))
    if options.record:
        about = {
            "date": record.datetime.date.today().isoformat(), "machine": header["gpu"], "commit": record.commit(),
            "how": "bench_cuda_tactics --json FILE; bench/estimates.py FILE --record THIS",
            "note": "Every tactic and config of each row; expected_us: what the tactic estimates, 0: it does not.",
            "copy_tb_s": header["copy_tb_s"],
        }
        with open(options.record, "w", encoding="utf-8") as file:
            file.write(record.text_of(recorded(rows, about)))
    print("\nnever the fastest (the least time / the fastest's):")
    least = {}
    for group in by(rows, "row", "formats").values():
        best = {t: min(r["us"] for r in one) for (t,), one in by(group, "tactic").items()}
        for tactic, us in best.items():
            others = [other for name, other in best.items() if name != tactic]
            if others:
                least[tactic] = min(least.get(tactic, math.inf), us / min(others))
            else:
                least[tactic] = 0.0
    for tactic, ratio in sorted(least.items(), key=lambda item: -item[1]):
        if ratio >= 1:
            print(f"{tactic:44} {ratio:6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
