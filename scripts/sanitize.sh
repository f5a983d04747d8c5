#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/sanitize.sh
# The tests again under AddressSanitizer and UBSan (the clang build that `make fuzz` uses too), and those with threads under
# ThreadSanitizer: a part of `make test-all`. The second runs too when the first found something; status 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

# Programs of ours; house rules, headers and packages do not depend on the build type.
programs=(test_ir test_ops test_passes test_runtime test_calibrate test_api test_engine test_plan test_tune test_bad_input
    trtexec_test hostcuda_test onnx_parser_test onnx_backend_cases fuzz_seeds fuzz_replay_plan fuzz_replay_onnx
    fuzz_replay_parse_and_build fuzz_replay_text fuzz_replay_timing_cache fuzz_replay_calibration_cache fuzz_replay_networks
    fuzz_replay_plugins fuzz_replay_uff test_uff test_plugin test_cuda_configs test_cuda_fake test_engine_fake_gpu)
tests='^(ir|ops|passes|runtime|calibrate|api|engine|plan|tune|bad_input|trtexec_test|hostcuda_test|onnx_parser|onnx_backend_cases|fuzz_seeds|fuzz_replay_(plan|onnx|parse_and_build|text|timing_cache|calibration_cache|networks|plugins|uff)|uff|plugin|cuda\.configs|cuda\.fake|engine\.fake_gpu)$'

status=0
cmake --preset fuzz
cmake --build --preset fuzz -j "$jobs" --target "${programs[@]}"
# Not ours: what NVIDIA's libraries keep.
leaks=$PWD/build/leaks.txt
printf 'leak:%s\n' tw::cuda::openLibraryOfDriver libcuda.so libnvrtc.so >"$leaks"
ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS="suppressions=$leaks" UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    ctest --test-dir build/fuzz -R "$tests" --output-on-failure --timeout 1800 -j "$jobs" </dev/null || status=1

cmake --preset tsan
cmake --build --preset tsan -j "$jobs" --target test_engine test_api test_calibrate hostcuda_test test_cuda_fake test_engine_fake_gpu
# A child of fork starts threads of its own: the tool would end it there.
TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
    ctest --test-dir build/tsan -R '^(engine|api|calibrate|hostcuda_test|cuda\.fake|engine\.fake_gpu)$' --output-on-failure --timeout 1800 -j "$jobs" </dev/null || status=1
exit $status
