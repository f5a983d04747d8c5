#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/gpu/python.sh stage [FOLDER]     (build/gpu-python when not given; ignored by git)
#        FOLDER/python.sh run [PYTEST OPTIONS]
#        FOLDER/python.sh tests FILE... [PYTEST OPTIONS]
#        FOLDER/python.sh bench FILE [OPTIONS]
#        FOLDER/python.sh refit [SECONDS [SEED]]  on a machine with a GPU, CMake, g++ and Python with nanobind and pytest
# stage puts the built libraries and the sources of the Python module into one folder; run builds the module alone there, for the
# Python at hand, against the carried libraries, and runs gpu_test.py: all calls on the GPU beside the CPU's numbers, by whatever there is of
# torch, CuPy and cuda-bindings. tests runs files of test/python with their engines on the GPU. bench runs generation.py, generation_batch.py,
# serving_generation.py (these need onnx) or decoding_steps.py of bench. refit runs refit_random_test.py instead, a process for each CPU (400 s, seed 1; needs torch and onnx). The log goes to the folder that OUT names (./out when unset). Status: pytest's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

stage() {
    cd "$here/../.."
    . scripts/gpu/libraries.sh
    local folder=${1:-build/gpu-python} build=${BUILD:-build/release} library
    local libraries=(nvinfer nvonnxparser nvinfer_plugin nvparsers)
    if [ -z "${BUILD:-}" ]; then
        cmake --preset release >/dev/null
        ninja -C "$build" -j "${JOBS:-$(nproc)}" "${libraries[@]}"
    fi
    rm -rf "$folder"
    mkdir -p "$folder/lib" "$folder/test/python" "$folder/examples/digits"
    for library in "${libraries[@]}"; do
        strip -o "$folder/lib/lib$library.so.8" "$build/lib/lib$library.so.8"
        carry_libraries "$folder/lib" "$build/lib/lib$library.so.8"
    done
    cp -r python include cmake "$folder/"
    cp -r src/hostcuda/include "$folder/include/hostcuda"
    protoc -Ipython/tensorwright/serve --descriptor_set_out="$folder/python/tensorwright/serve/kserve.desc" kserve.proto
    cp test/python/*.py "$folder/test/python/"
    cp examples/digits/*.{bin,onnx} "$folder/examples/digits/"
    cp bench/{plugin_networks,record,generation,generation_batch,generation_peers,serving_generation,decoding_steps}.py "$folder/"
    cp -r bench/models "$folder/bench_models"
    cp scripts/gpu/python.sh "$folder/"
    git rev-parse HEAD >"$folder/commit"
    find "$folder" -name __pycache__ -exec rm -rf {} +
    du -sh "$folder"
}

run() {
    local out=${OUT:-$here/out} build=$here/build
    mkdir -p "$out"
    # cuBLASLt, cuDNN and NVRTC lie in the packages of the environment that holds PyTorch.
    VIRTUAL_ENV=${VIRTUAL_ENV:-$(python3 -c 'import sys; print(sys.prefix)')}
    export VIRTUAL_ENV
    export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    python3 -VV
    local begin=$SECONDS
    cmake -S "$here/python" -B "$build" -DPython_EXECUTABLE="$(command -v python3)" -DTW_LIBRARY_DIR="$here/lib" \
        -DTW_INCLUDE_DIR="$here/include;$here/include/hostcuda" >"$out/build.log" 2>&1 &&
        cmake --build "$build" -j "$(nproc)" >>"$out/build.log" 2>&1 || { tail -40 "$out/build.log"; exit 1; }
    echo "the module was built in $((SECONDS - begin)) s"
    [ -e "$build/python/tensorwright/serve/kserve.desc" ] ||
        cp "$here/python/tensorwright/serve/kserve.desc" "$build/python/tensorwright/serve/"
    export PYTHONPATH=$build/python:$here/test/python PYTHONDONTWRITEBYTECODE=1
    case ${1:-} in
    refit) refit "${@:2}"; return ;;
    bench) cd "$here" && TENSORWRIGHT_DEVICE=cuda python3 "${@:2}" 2>&1 | tee "$out/bench.log"; return ;;
    tests) export TENSORWRIGHT_DEVICE=cuda; shift; cd "$here/test/python" ;;
    *) set -- "$here/test/python/gpu_test.py" "$@" ;;
    esac
    timeout --kill-after=10 "${LIMIT:-480}" \
        python3 -m pytest -p no:cacheprovider -rs --durations=8 -W ignore::DeprecationWarning "$@" 2>&1 |
        tee "$out/pytest.log"
}

refit() {
    local i cpus seconds=${1:-400} seed=${2:-1}
    cpus=$(nproc)
    for ((i = 0; i < cpus; i++)); do
        TENSORWRIGHT_DEVICE=cuda python3 -W ignore "$here/test/python/refit_random_test.py" "$([ $((i % 3)) = 2 ] && echo layers || echo onnx)" \
            --seed $((seed + i * 1000)) --count 1000 --seconds "$seconds" >"$out/refit.$i.log" 2>&1 &
    done
    wait
    grep -h "^onnx [0-9]\|^layers [0-9]\|Error" "$out"/refit.*.log | cut -c1-300 || true
    grep -h "seeds from" "$out"/refit.*.log | awk '{ runs[$1] += $2; failed[$1] += $6; unlisted[$1] += $8; listed[$1] += $15; arrays[$1] += $17 }
        END { for (k in runs) print k, runs[k] " runs,", failed[k] " failed,", unlisted[k] " with arrays that are not listed,", listed[k] " of " arrays[k] " arrays listed" }'
}

case ${1:-} in
stage | run) "$@" ;;
refit | tests | bench) run "$@" ;;
*)
    sed -n 's/^# usage: /usage: /p; s/^#        /       /p' "$0" >&2
    exit 2
    ;;
esac
