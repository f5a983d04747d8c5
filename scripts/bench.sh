#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark program of build/release/bin, one after the other, with the arguments given.
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
programs=(build/release/bin/bench_*)
if [ ${#programs[@]} -eq 0 ]; then
    echo "bench: there is no benchmark program yet (build/release/bin/bench_*)"
    exit 0
fi
for program in "${programs[@]}"; do
    echo "--- $(basename "$program")"
    "$program" "$@"
done
