// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "ops/select/kernels.h"
#include "ops/select/op.h"
#include "tactic/broadcast.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::select {

namespace {

template <Kernels const& k>
Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &c = args.inputs[0], &a = args.inputs[1], &b = args.inputs[2], &y = args.outputs[0];
    BroadcastLoop const loop = broadcastLoop(y.dims, {&c.dims, &a.dims, &b.dims});
    int64_t const size = sizeOf(y.type), n = loop.rowLength(), rows = loop.rows();
    auto const row = y.type == DataType::kBool ? k.bools : size == 4 ? k.words : size == 2 ? k.halves : k.bytes;
    auto const address = [&](TensorRef const& t, int64_t at) { return t.as<uint8_t>() + at * sizeOf(t.type); };
    auto const elements = [&](int64_t at, int64_t const* from, int64_t begin, int64_t end) {
        auto const first = [&](int operand) { return from[operand] + begin * loop.rowStride(operand); };
        row({address(c, first(0)), address(a, first(1)), address(b, first(2)), address(y, at + begin), end - begin,
             loop.rowStride(0) == 0, loop.rowStride(1) == 0, loop.rowStride(2) == 0});
    };
    int64_t const bytes = y.count() * (2 * size + 1);
    if (rows >= 4 * args.workers->count()) {
        inPieces(*args.workers, rows, bytes, [&](int64_t begin, int64_t end) {
            loop.forRows(begin, end, [&](int64_t at, int64_t const* from) { elements(at, from, 0, n); });
        });
        return {};
    }
    loop.forEachRow([&](int64_t at, int64_t const* from) { // few, maybe long
        constexpr int64_t kLine = 64;
        inPieces(*args.workers, divideUp(n, kLine), bytes / rows,
                 [&](int64_t begin, int64_t end) { elements(at, from, begin * kLine, std::min(end * kLine, n)); });
    });
    return {};
}

template <Kernels const& k>
Result<void> runVectors(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    return run<k>(node, args);
}

constexpr PlainTactic kPlain{"select_any_plain_cpu", 1, run<baseline::kSelect>};

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{"select_any_vectors_avx512",
                               1,
                               Isa::kAvx512,
                               runVectors<avx512::kSelect>,
                               nullptr,
                               onlyLinear,
                               nullptr,
                               std::nullopt};
constexpr VectorTactic kAvx2{
    "select_any_vectors_avx2", 1, Isa::kAvx2, runVectors<avx2::kSelect>, nullptr, onlyLinear, nullptr, std::nullopt};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::select
