#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/test.sh [ctest arguments]
# Runs the tests of build/release, then prints the counts that they wrote to build/release/report and, as the last line,
# how many passed, failed and were skipped. Ends with ctest's status.
set -uo pipefail
cd "$(dirname "$0")/.."

build=build/release
rm -rf "$build/report"
mkdir -p "$build/report"
ctest --test-dir "$build" --output-on-failure --timeout 900 -j "${JOBS:-$(nproc)}" \
    --output-junit "$PWD/$build/report/ctest.xml" "$@" </dev/null
status=$?

for file in "$build"/report/*.txt; do
    [ -e "$file" ] || continue
    echo
    echo "--- $(basename "$file" .txt)"
    cat "$file"
done

echo
python3 scripts/test_summary.py "$build/report/ctest.xml" || status=1
exit $status
