#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark program of build/release/bin, one after the other, with the arguments given. Those that are for a GPU
# (bench_gpu_*, bench_cuda_*) run there by scripts/gpu/run.sh bench.
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
programs=(build/release/bin/bench_*)
if [ ${#programs[@]} -eq 0 ]; then
    echo "bench: there is no benchmark program yet (build/release/bin/bench_*)"
    exit 0
fi
skipped=()
for program in "${programs[@]}"; do
    name=$(basename "$program")
    case $name in
    bench_gpu_* | bench_cuda_*) skipped+=("$name") ;;
    *)
        echo "--- $name"
        "$program" "$@"
        ;;
    esac
done
[ ${#skipped[@]} -eq 0 ] || echo "skipped, for a GPU: ${skipped[*]} (scripts/gpu/stage.sh, then run.sh bench there)"
