#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo: trtexec turns the digit reader's ONNX file into a plan, a program written for the 8.5 API reads pictures with
# that plan, then trtexec measures it. Everything runs on what `make demo` built; nothing else is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

digits=examples/digits
bin=build/release/bin
out=build/release/demo
mkdir -p "$out"

# Runs trtexec with its output in a file; shows the file only when it fails.
trtexec() {
    local log=$out/$1.log
    shift
    "$bin/trtexec" "$@" >"$log" 2>&1 </dev/null || { cat "$log"; echo "demo: trtexec failed" >&2; exit 1; }
}

echo "== Build: $digits/digits.onnx -> $out/digits.plan"
trtexec build --onnx="$digits/digits.onnx" --saveEngine="$out/digits.plan" --buildOnly \
    --minShapes=image:1x1x8x8 --optShapes=image:1x1x8x8 --maxShapes=image:360x1x8x8
grep -h 'Engine built in' "$out/build.log" || true
ls -l "$out/digits.plan" | awk '{ print $5 " bytes" }'

echo
echo "== Read: $bin/digits $digits $out/digits.plan"
"$bin/digits" "$digits" "$out/digits.plan" </dev/null

echo
echo "== Measure: trtexec --loadEngine=$out/digits.plan --shapes=image:1x1x8x8"
trtexec measure --loadEngine="$out/digits.plan" --shapes=image:1x1x8x8
sed -n '/=== Performance summary ===/,$p' "$out/measure.log"

echo
echo "== Your own model:"
echo "$bin/trtexec --onnx=your_model.onnx"
