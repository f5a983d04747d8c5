#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: bench/estimates.py FILE...    (JSON of bench_cuda_tactics: every tactic and config of its rows, losers too)

How well tactics foresee their time, and which never win. For each tactic that estimates: by how much its estimates have to be multiplied
(the median of measured / expected), how far from that a tenth of them lies (a factor), and a + b * estimate, fitted to the least relative
error; what it costs to trust it: the config that it expects to be the fastest, beside the fastest one, over the rows (median and worst).
Then the tactics that are the fastest in no row, in their formats, with the least by which they lose."""

import collections
import json
import math
import statistics
import sys


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


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    rows = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            rows += json.load(file)["rows"]
    print(f"{'tactic':44} rows configs scale  spread   fitted, us           cost of trust: median, worst")
    for (tactic,), group in sorted(by(rows, "tactic").items()):
        if all(r["estimate_us"] > 0 for r in group):
            print(f"{tactic:44} {of_tactic(group)}")
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
