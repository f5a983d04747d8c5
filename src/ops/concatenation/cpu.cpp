// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/round.h"
#include "families/copy/cpu_column.h"
#include "families/copy/cpu_pixels.h"
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

namespace {

// Bytes [begin, end) of y. Input k is [outer, its bytes after the axis]; its pieces stand side by side in y's rows.
void place(RunArgs const& args, int axis, int64_t rowBytes, int64_t begin, int64_t end)
{
    char* y = args.outputs[0].as<char>();
    int64_t before = 0; // bytes of a row that earlier inputs fill
    for (TensorRef const& x : args.inputs) {
        int64_t const bytes = x.dims.volume(axis, x.dims.rank) * sizeOf(x.type);
        auto const piece = [&](int64_t r) {
            int64_t const at = r * rowBytes + before;
            int64_t const first = std::max(at, begin), last = std::min(at + bytes, end);
            if (first < last)
                std::memcpy(y + first, x.as<char>() + r * bytes + first - at, size_t(last - first));
        };
        // Of these rows the first and the last may lie within in part.
        int64_t const firstRow = begin / rowBytes, endRow = bytes > 0 ? divideUp(end - before, rowBytes) : 0;
        int64_t const inner = firstRow + 1;
        bool const isDone =
            endRow - inner > 1 && copyColumn(x.as<char>() + inner * bytes, bytes, y + inner * rowBytes + before,
                                             rowBytes, bytes, endRow - 1 - inner);
        for (int64_t r = firstRow; r < endRow; r = isDone && r == firstRow ? endRow - 1 : r + 1)
            piece(r);
        before += bytes;
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    constexpr int64_t kUnit = 4096; // bytes, so that pieces begin on cache lines
    int const axis = node.attrsAs<Attrs>().axis;
    TensorRef const& y = args.outputs[0];
    int64_t const total = y.sizeBytes(), rowBytes = y.dims.volume(axis, y.dims.rank) * sizeOf(y.type);
    if (total == 0)
        return {};
    inPieces(*args.workers, divideUp(total, kUnit), 2 * total, [&](int64_t begin, int64_t end) {
        place(args, axis, rowBytes, begin * kUnit, std::min(total, end * kUnit));
    });
    return {};
}

constexpr PlainTactic kPlain{"concatenation_any_plain_cpu", 1, run};

// ---- Channels-last, along the channels: runs of pixels, in order, so that what an input of f32 writes after its last
// channel is overwritten by the next one. Inputs that lie in their place already (aliases) are left alone.

Support supportsNhwc(Problem const& p)
{
    if (p.node->attrsAs<Attrs>().axis != 1)
        return Support::no("joins channels only");
    for (size_t i = 0; isFullFloat(p.outputs[0].type) && i + 1 < p.inputs.size(); ++i)
        if (p.inputs[i].dims[1] % 16 != 0)
            return Support::no(fmt::format("input {} has {} channels; all but the last need a multiple of 16", i,
                                           p.inputs[i].dims[1]));
    for (TensorSpec const& t : p.inputs)
        if (t.constant)
            return Support::no("takes no constants");
    return Support::yes();
}

template <class T>
Result<void> runNhwc(ir::Node const&, ChannelsLastKernels const& k, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    int64_t const pixels = y.dims[0] * pixelsOf(y), yStep = y.pixelStride();
    auto const place = [&](int64_t begin, int64_t end) {
        int64_t c = 0;
        for (TensorRef const& x : args.inputs) {
            T* to = y.as<T>() + c;
            int64_t const channels = x.dims[1], xStep = x.pixelStride();
            c += channels;
            if (channels > 0 && (x.as<T>() != to || xStep != yStep))
                copyPixels(k, x.as<T>() + begin * xStep, xStep, to + begin * yStep, yStep, channels, end - begin);
        }
    };
    inPieces(*args.workers, pixels, 2 * y.sizeBytes(), place);
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kInt8{"concatenation_i8_nhwc_avx2",
                             1,
                             Isa::kAvx2,
                             runNhwc<int8_t>,
                             supportsNhwc,
                             onlyChannelsLast,
                             nullptr,
                             DataType::kInt8};
constexpr VectorTactic kAvx512{
    "concatenation_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc<float>, supportsNhwc, onlyChannelsLast};
constexpr VectorTactic kAvx2{
    "concatenation_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc<float>, supportsNhwc, onlyChannelsLast};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kInt8, kPlain>;

} // namespace tw::ops::concatenation
