#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: replay_models.sh <bin folder> <models folder> <work folder>
# Replays the ONNX targets over trained models, and the plan target over plans made of them. Without the models: 77 (skipped).
set -euo pipefail
bin=$1 models=$2 work=$3
if [ ! -d "$models" ]; then
    echo "there is no folder of trained models ($models); set TW_MODELS_DIR or TENSORWRIGHT_MODELS_DIR"
    exit 77
fi
mapfile -t files < <(find "$models" -name '*.onnx' | sort)
"$bin/fuzz_replay_onnx" --min-files=1 "${files[@]}"
rm -rf "$work" && mkdir -p "$work"
"$bin/fuzz_model_plans" "$work" "${files[@]}"
"$bin/fuzz_replay_plan" --min-files=1 "$work"
rm -rf "$work"
