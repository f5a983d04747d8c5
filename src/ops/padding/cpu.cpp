// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "families/copy/cpu_pixels.h"
#include "ops/padding/op.h"

namespace tw::ops::padding {

namespace {

// Outputs [begin, end) of an axis that have an input.
struct Span
{
    int64_t begin, end;
};
Span insideOf(int64_t in, int64_t out, int64_t pre)
{
    int64_t const begin = std::clamp<int64_t>(pre, 0, out);
    return Span{begin, std::clamp(pre + in, begin, out)};
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const rank = x.dims.rank;
    int64_t const h = x.dims[rank - 2], w = x.dims[rank - 1], outH = y.dims[rank - 2], outW = y.dims[rank - 1];
    Span const rows = insideOf(h, outH, a.pre[0]), columns = insideOf(w, outW, a.pre[1]);
    int64_t const size = sizeOf(x.type); // zero is all bits zero in every type
    auto zero = [size](char* to, int64_t count) { std::memset(to, 0, size_t(count * size)); };
    auto const image = [&](int64_t n) {
        char const* in = x.as<char const>() + n * h * w * size;
        char* out = y.as<char>() + n * outH * outW * size;
        zero(out, rows.begin * outW);
        for (int64_t i = rows.begin; i < rows.end; ++i) {
            char* row = out + i * outW * size;
            zero(row, columns.begin);
            if (columns.begin < columns.end)
                std::memcpy(row + columns.begin * size, in + ((i - a.pre[0]) * w + columns.begin - a.pre[1]) * size,
                            size_t((columns.end - columns.begin) * size));
            zero(row + columns.end * size, outW - columns.end);
        }
        zero(out + rows.end * outW * size, (outH - rows.end) * outW);
    };
    eachInPieces(*args.workers, x.dims.volume(0, rank - 2), x.sizeBytes() + y.sizeBytes(), image);
    return {};
}

constexpr PlainTactic kPlain{"padding_any_plain_cpu", 1, run};

// ---- Channels-last: rows of pixels.

Support supportsNhwc(Problem const& p)
{
    return p.inputs[0].dims.rank == 4 ? Support::yes() : Support::no("takes four dimensions");
}

template <class T>
Result<void> runNhwc(ir::Node const& node, ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const h = x.dims[2], w = x.dims[3], outH = y.dims[2], outW = y.dims[3], channels = x.dims[1];
    int64_t const xStep = x.pixelStride(), yStep = y.pixelStride();
    Span const rows = insideOf(h, outH, a.pre[0]), columns = insideOf(w, outW, a.pre[1]);
    eachInPieces(*args.workers, x.dims[0] * outH, x.sizeBytes() + y.sizeBytes(), [&](int64_t row) {
        int64_t const n = row / outH, i = row % outH;
        T* to = pixelsAt<T>(y, n) + i * outW * yStep;
        bool const inside = i >= rows.begin && i < rows.end && columns.begin < columns.end;
        Span const from = inside ? columns : Span{outW, outW};
        clearPixels(k, to, yStep, channels, from.begin);
        if (inside)
            copyPixels(k, pixelsAt<T>(x, n) + ((i - a.pre[0]) * w + from.begin - a.pre[1]) * xStep, xStep,
                       to + from.begin * yStep, yStep, channels, from.end - from.begin);
        clearPixels(k, to + from.end * yStep, yStep, channels, outW - from.end);
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kInt8{"padding_i8_nhwc_avx2", 1,       Isa::kAvx2,     runNhwc<int8_t>, supportsNhwc,
                             onlyChannelsLast,       nullptr, DataType::kInt8};
constexpr VectorTactic kAvx512{"padding_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc<float>, supportsNhwc,
                               onlyChannelsLast};
constexpr VectorTactic kAvx2{"padding_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc<float>, supportsNhwc, onlyChannelsLast};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kInt8, kPlain>;

} // namespace tw::ops::padding
