#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of build/fuzz/bin for FUZZ_SECONDS (600) each, on the seeds of test/fuzz/corpus/<target>; what
# it finds on the way goes to build/fuzz/corpus/<target>. A finding ends the run with its file named.
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
programs=(build/fuzz/bin/fuzz_*)
if [ ${#programs[@]} -eq 0 ]; then
    echo "fuzz: there is no fuzz target (build/fuzz/bin/fuzz_*)" >&2
    exit 1
fi
for program in "${programs[@]}"; do
    name=$(basename "$program")
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus" build/fuzz/findings
    seeds=()
    [ ! -d "test/fuzz/corpus/$name" ] || seeds=("test/fuzz/corpus/$name")
    echo "--- $name"
    "$program" -max_total_time="${FUZZ_SECONDS:-600}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/findings/$name-" "$corpus" "${seeds[@]}"
done
