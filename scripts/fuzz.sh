#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/fuzz.sh [target...]
# Runs the fuzz targets of build/fuzz/bin for FUZZ_SECONDS (600) each. Seeds: test/fuzz/corpus/<target>, what fuzz_seeds
# makes, the ONNX project's backend cases where they are installed, and the trained models and their plans where
# TENSORWRIGHT_MODELS_DIR (../shared/models) is. What it finds on the way goes to build/fuzz/corpus/<target>. Prints the
# edges reached; a finding (its file is named) or fewer edges than test/fuzz/floors.txt says is a failure. Short runs
# (FUZZ_SECONDS below 180) are not compared with the floors.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-600}
models=${TENSORWRIGHT_MODELS_DIR:-../shared/models}
cases=/usr/share/libonnx-testdata/data
bin=build/fuzz/bin
work=build/fuzz
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for program in "$bin"/fuzz_replay_*; do
        [ ! -e "$program" ] || targets+=("fuzz_${program##*/fuzz_replay_}")
    done
fi
if [ ${#targets[@]} -eq 0 ]; then
    echo "fuzz: there is no fuzz target in $bin; build the preset fuzz" >&2
    exit 1
fi

mkdir -p "$work/findings" "$work/corpus"
rm -rf "$work/seeds"
"$bin/fuzz_seeds" "$work/seeds"
found=()
if [ -d "$models" ]; then
    mapfile -t found < <(find "$models" -name '*.onnx' | sort)
    "$bin/fuzz_model_plans" "$work/seeds/model_plans" "${found[@]}" >"$work/model_plans.log" 2>&1 || true
else
    echo "fuzz: without trained models ($models is not there)"
fi
for target in fuzz_onnx fuzz_parse_and_build; do
    mkdir -p "$work/seeds/$target"
    for file in ${found[@]+"${found[@]}"}; do
        cp "$file" "$work/seeds/$target/$(basename "$(dirname "$file")").onnx"
    done
    cp examples/digits/digits.onnx "$work/seeds/$target/"
    [ ! -d "$cases" ] || find "$cases" -name model.onnx -size -64k | while read -r file; do
        cp "$file" "$work/seeds/$target/$(basename "$(dirname "$file")").onnx"
    done
done
[ ! -d "$work/seeds/model_plans" ] || mv "$work/seeds/model_plans"/*.plan "$work/seeds/fuzz_plan/"
chmod -R u+w "$work/seeds"

failed=0
for name in "${targets[@]}"; do
    mkdir -p "$work/corpus/$name"
    folders=("$work/corpus/$name")
    for seeds in "test/fuzz/corpus/$name" "$work/seeds/$name"; do
        [ ! -d "$seeds" ] || folders+=("$seeds")
    done
    echo "--- $name"
    log=$work/$name.log
    status=0
    "$bin/$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$work/findings/$name-" "${folders[@]}" >"$log" 2>&1 || status=$?
    edges=$(grep -oE 'cov: [0-9]+' "$log" | tail -1 | cut -d' ' -f2 || true)
    runs=$(grep -oE 'number_of_executed_units: [0-9]+' "$log" | cut -d' ' -f2 || true)
    floor=$(sed -n "s/^$name \([0-9]*\).*/\1/p" test/fuzz/floors.txt)
    echo "$name: ${edges:-0} edges (floor ${floor:-none}), ${runs:-0} runs, $seconds s"
    if [ "$status" -ne 0 ]; then
        tail -60 "$log"
        echo "fuzz: $name has a finding (above; the whole log is $log)" >&2
        failed=1
    elif [ "$seconds" -ge 180 ] && [ -n "$floor" ] && [ "${edges:-0}" -lt "$floor" ]; then
        echo "fuzz: $name reached ${edges:-0} edges, fewer than its floor $floor" >&2
        failed=1
    fi
done
exit "$failed"
