#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh check|bench|profile|peers [OPTIONS]      in a folder made by scripts/gpu/stage.sh, on a machine with a GPU, its driver
# and the CUDA toolkit (or NVRTC alone: TENSORWRIGHT_NVRTC names it).
#   check     every op case by every CUDA tactic against the reference, graphs and an engine, the trained models, large
#             networks in FP32, TF32 and FP16 against ONNX Runtime (where Python has it), a sample of the cases under
#             compute-sanitizer, for memory and for races, random networks (loops, conditionals, recurrent layers, Q/DQ, refit) on
#             the GPU beside the CPU, whose seeds SEED and the numbers behind it give (the day's when unset); takes names of parts
#             (cases engines random memory networks), all when there are none, and for `cases` a share such as 0/3 behind them:
#             what a machine lends for minutes only is checked bit by bit
#   bench     every CUDA tactic on large problems, kernels outside of engines, then times of the trained models
#   profile   whole networks layer by layer (profile_networks.py says how, and takes the OPTIONS: names or ONNX files)
#   peers     whole networks beside PyTorch (gpu_peers.py says what, and takes the OPTIONS); needs PyTorch
# Logs and JSON go to the folder that OUT names (./out when unset); the short table comes last. A command that hangs is
# ended after its own time limit. Parts of `check` run at a time, on GPUs of their own where there are several. Status 1 when something failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
mkdir -p "$out"
rm -f "$out"/table.* "$out/failed"
find "$here/bin" -name '*.gz' -exec gunzip -f {} +
# cuBLASLt and cuDNN lie in the packages of the environment that holds PyTorch.
export VIRTUAL_ENV=${VIRTUAL_ENV:-$(python3 -c 'import sys; print(sys.prefix)' 2>/dev/null)}
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
status=0
gpus=$(nvidia-smi -L | wc -l)

# step NAME SECONDS COMMAND...: runs it, keeps its output in NAME.log and adds a line to the table of its lane.
step() {
    local name=$1 limit=$2 begin=$SECONDS verdict
    shift 2
    timeout --kill-after=10 "$limit" "$@" >"$out/$name.log" 2>&1
    local code=$?
    case $code in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    124 | 137) verdict="ended after $limit s" ;;
    *) verdict="failed ($code)" ;;
    esac
    [ $code -eq 0 ] || [ $code -eq 77 ] || touch "$out/failed"
    [ $code -eq 0 ] || { echo "--- $name"; grep -E "FAILED|FAIL |error|Error|ERROR|\[E\]|skipped" "$out/$name.log" | cut -c1-300 | head -40; tail -5 "$out/$name.log" | cut -c1-300; }
    printf '%-24s %-20s %4d s  %s\n' "$name" "$verdict" $((SECONDS - begin)) "$(tail -1 "$out/$name.log" | cut -c1-120)" \
        >>"$out/table.${lane:-0}"
}

# lane NUMBER FUNCTION [OPTIONS]: its steps beside those of other lanes, on a GPU of their own where there are as many.
lane() {
    (
        lane=$1
        [ "$gpus" -lt 2 ] || export CUDA_VISIBLE_DEVICES=$(($1 % gpus))
        "${@:2}"
    ) &
}

# check_share I/N: a share of the cases.
check_share() {
    step "cases_$lane" 560 "$here/bin/test_cuda_cases" --share "$1" --json "$out/cases_$lane.json"
}
check_engines() {
    step runtime 120 "$here/bin/test_runtime_cuda"
    step engine 60 "$here/bin/test_engine_gpu"
    step cuda13compat 30 "$here/bin/test_cuda13compat"
    [ ! -e "$here/bin/test_engine_nvtx_gpu" ] ||
        step nvtx 30 "$here/bin/test_engine_nvtx_gpu" "$here/lib/libnvtx_profiler.so"
    step cpu_engine 60 "$here/bin/test_engine_real_cuda"
    if [ -d "$here/models" ]; then
        step models 200 python3 "$here/run_models.py" --bin "$here/bin" --models "$here/models" --trtexec-only
    fi
}
# Seeds that failed stand in the log: SEED=N run.sh check random, or test_engine_gpu_random KIND --seed N --count 1, repeats them.
check_random() {
    step random 580 "$here/bin/test_engine_gpu_random" --seconds 440 ${SEED:+--seed "$SEED"}
    grep -E "seeds from|^FAILED" "$out/random.log"
}
check_networks() {
    if python3 -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
        step networks 590 python3 "$here/networks.py" --bin "$here/bin" --models "$here/bench_models" --json "$out/networks.json" \
            --gpus "$(seq -s, 0 $((gpus > 0 ? gpus - 1 : 0)))"
        cat "$out/networks.log"
    fi
}
# Small cases of each kind of kernel, at most about 20 s each: every filter takes all tactics, formats and configs of its cases.
check_memory() {
    command -v compute-sanitizer >/dev/null || return 0
    local filter
    for filter in activation.half slice. gather.by softmax.by softmax.half convolution.epilogue_residual convolution.half_1x1 \
        convolution.half_3x3 convolution.half_7x7 convolution.half_depthwise convolution.half_groups matrix_multiply.by \
        matrix_multiply.half matrix_multiply.norm_half_n768 attention.by attention.half attention.f16 layer_norm.half \
        pooling.max_f16 pooling.average_f16 reduce.sum_last reduce.sum_columns concat padding. half_again shuffle.odd_rows \
        reformat.half; do
        step "sanitize_${filter%.*}_${filter#*.}" 100 compute-sanitizer --error-exitcode 9 "$here/bin/test_cuda_cases" --filter "$filter"
    done
    # Our own kernels: those of libraries take minutes under the tool. Without attention.f16: of its kernels by the tensor
    # copy engine the tool warns that q arrives where the result is stored later, though all threads wait for q between.
    for filter in convolution.half_3x3_tails matrix_multiply.half_odd matrix_multiply.half_steps \
        matrix_multiply.norm_half_n768 attention.half layer_norm.half softmax.half reduce.sum_last; do
        step "races_${filter%.*}_${filter#*.}" 100 env TENSORWRIGHT_CUDNN=/nowhere TENSORWRIGHT_CUBLASLT=/nowhere \
            compute-sanitizer --tool racecheck --error-exitcode 9 "$here/bin/test_cuda_cases" --filter "$filter"
    done
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"
case ${1:-check} in
check)
    shift
    parts=" $* "
    [ $# -gt 0 ] || parts=" cases engines random memory networks "
    share=$(grep -oE '[0-9]+/[0-9]+' <<<"$parts" | head -1)
    for part in $parts; do
        case $part in
        cases | engines | random | memory | networks | "$share") ;;
        *)
            echo "check: there is no part '$part'; parts are cases (with a share such as 0/2), engines, random, memory and networks" >&2
            exit 2
            ;;
        esac
    done
    if [[ $parts == *" cases "* ]] && [ -n "$share" ]; then
        # Two processes: one waits for the GPU while the other works out what is expected.
        lane 0 check_share "$((2 * ${share%/*}))/$((2 * ${share#*/}))"
        lane 1 check_share "$((2 * ${share%/*} + 1))/$((2 * ${share#*/}))"
    elif [[ $parts == *" cases "* ]]; then
        lane 0 check_share 0/2
        lane 1 check_share 1/2
    fi
    [[ $parts != *" engines "* ]] || lane 2 check_engines
    [[ $parts != *" memory "* ]] || lane 3 check_memory
    wait
    [[ $parts != *" random "* ]] || lane=5 check_random # a process for each of the CPUs
    # Alone, for it times, and by itself on all GPUs.
    [[ $parts != *" networks "* ]] || lane=4 check_networks
    ;;
bench)
    step tactics 200 "$here/bin/bench_cuda_tactics" --json "$out/tactics.json"
    cat "$out/tactics.log"
    # These kernels' binaries are made there and then: NVRTC is faster than carrying them.
    kernels=$(mktemp -d)
    step gpu_kernels_compile 200 "$here/bin/bench_gpu_kernels" --compile "$kernels"
    OUT=$out step gpu_kernels 200 "$here/bin/bench_gpu_kernels" --run "$kernels"
    cat "$out/gpu_kernels.log"
    rm -rf "$kernels"
    for model in "$here"/models/*/model.onnx; do
        name=$(basename "$(dirname "$model")")
        step "bench_$name" 60 "$here/bin/trtexec" --onnx="$model" --iterations=100 --warmUp=100 --duration=1
    done
    grep -h -E "GPU Compute Time|Throughput" "$out"/bench_*.log | head -60
    ;;
profile)
    shift
    # Without Python's onnx there are no large networks: the trained models take their place.
    if [ $# -eq 0 ] && ! python3 -c 'import onnx, numpy' 2>/dev/null; then
        set -- "$here"/models/*/model.onnx
    fi
    step profile 560 python3 "$here/profile_networks.py" --bin "$here/bin" --models "$here/bench_models" --out "$out" "$@"
    cat "$out/profile.log"
    ;;
peers)
    shift
    # Its lines as they come: a command that is ended from outside shows how far it got.
    python3 "$here/peers/gpu_peers.py" --out "$out" --models "$here/bench_models" --commit "$here/commit" \
        --library "$here/lib/libtensorwright_gpu_engine.so" "$@" 2>&1 | tee "$out/peers.log"
    status=${PIPESTATUS[0]}
    ;;
*)
    echo "usage: $0 check|bench|profile|peers [OPTIONS]" >&2
    exit 2
    ;;
esac
# Few files: a machine may hand back only some.
(cd "$out" && tar -czf logs.tgz ./*.log && rm -f ./*.log)
if compgen -G "$out/table.*" >/dev/null; then
    cat "$out"/table.[0-9] >"$out/table.txt"
    rm -f "$out"/table.[0-9]
    cat "$out/table.txt"
fi
[ ! -e "$out/failed" ] || status=1
rm -f "$out/failed"
exit $status
