#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/gpu/stage.sh [FOLDER]        (build/gpu when not given; ignored by git)
# Builds what a GPU machine needs and puts it into one folder of at most 48 MiB: stripped programs and libraries (those
# that such a machine may lack too), the trained models, and run.sh. Carry the folder there and start its run.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

. scripts/gpu/libraries.sh
folder=${1:-build/gpu}
build=build/release
programs=(test_cuda_cases test_runtime_cuda test_engine_gpu test_engine_gpu_random test_engine_real_cuda test_cuda13compat test_engine_nvtx_gpu bench_cuda_tactics
    bench_gpu_kernels trtexec)
cmake --preset release >/dev/null
ninja -C "$build" -j "${JOBS:-$(nproc)}" "${programs[@]}" tensorwright_gpu_engine nvtx_profiler

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"
for program in "${programs[@]}"; do
    strip -o "$folder/bin/$program" "$build/bin/$program"
    carry_libraries "$folder/lib" "$build/bin/$program"
done
strip -o "$folder/lib/libtensorwright_gpu_engine.so" "$build/lib/libtensorwright_gpu_engine.so"
strip -o "$folder/lib/libnvtx_profiler.so" "$build/lib/libnvtx_profiler.so"
mkdir "$folder/peers"
cp bench/record.py bench/gpu_fp32.py bench/gpu_loops.py bench/gpu_peers.py bench/gpu_row.py bench/gpu_engine.py bench/gpu_networks.py bench/torch_networks.py bench/package_networks.py bench/gpu_inductor_cache.py "$folder/peers/"
cp scripts/gpu/run.sh scripts/gpu/networks.py scripts/gpu/int8_beside_fp16.py scripts/gpu/profile_networks.py test/models/run_models.py test/models/streams.py "$folder/"
cp -r bench/models "$folder/bench_models"
models=${TENSORWRIGHT_MODELS_DIR:-../shared/models}
if [ -d "$models" ]; then
    # Those that run today: what is refused is refused before a device is asked.
    mkdir "$folder/models"
    awk '!/^#/ && $2 == "run"' test/models/models.txt >"$folder/models.txt"
    while read -r model _; do
        cp -r "$models/$model" "$folder/models/"
    done <"$folder/models.txt"
    cp -r "$models/data" "$folder/models/"
fi
git rev-parse HEAD >"$folder/commit"
# Programs that hold the whole core travel compressed; run.sh unpacks them.
find "$folder/bin" -size +4M -exec gzip -n {} +

kib=$(du -sk "$folder" | cut -f1)
echo "$folder: $((kib / 1024)) MiB"
if [ "$kib" -gt 49152 ]; then
    echo "$folder is larger than 48 MiB" >&2
    exit 1
fi
