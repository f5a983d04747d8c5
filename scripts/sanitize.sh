#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/sanitize.sh
# The tests again under AddressSanitizer and UBSan, and those with threads under ThreadSanitizer: a part of `make test-all`.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

# Tests of built programs only: house rules, headers and packages do not depend on the build type.
unit='^(ir|ops|api|engine|passes|runtime|plan|bad_input|trtexec_test|hostcuda_test|onnx_parser|onnx_backend_cases|fuzz_replay.*)$'

cmake --preset asan
cmake --build --preset asan -j "$jobs"
ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    ctest --test-dir build/asan -R "$unit" --output-on-failure --timeout 1800 -j "$jobs" </dev/null

cmake --preset tsan
cmake --build --preset tsan -j "$jobs" --target test_engine test_api hostcuda_test
TSAN_OPTIONS=halt_on_error=1 \
    ctest --test-dir build/tsan -R '^(engine|api|hostcuda_test)$' --output-on-failure --timeout 1800 -j "$jobs" </dev/null
