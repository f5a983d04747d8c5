// SPDX-License-Identifier: Apache-2.0
// Slices of channels-last images that reach beyond them, by any mode, and of channels from anywhere on: borders of images that are
// filled, mirrored, repeated or wrapped, and channels that a shortcut adds or that a network cuts off where no cache line begins.
// Beyond the channels there is nothing but fill.
#include <algorithm>
#include <cstring>

#include "families/copy/cpu_pixels.h"
#include "ops/slice/cpu_index.h"

namespace tw::ops::slice {

namespace {

constexpr int kFillInput = 4;

Support supportsEdges(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    for (size_t i = 1; i < p.inputs.size(); ++i)
        if (p.inputs[i].present && i != kFillInput)
            return Support::no("takes bounds from attributes only");
    ir::Shape const &x = p.node->inputs[0]->shape, &y = p.node->outputs[0]->shape;
    if (x.size() < 3 || a.stride[1] != 1)
        return Support::no("needs channels in a row");
    bool const isWhole = a.start[1] == 0 && x[1] == y[1];
    if (!isWhole && a.mode != Mode::kFill && a.mode != Mode::kStrict)
        return Support::no("goes beyond channels by filling alone");
    return Support::yes();
}

// A pixel of y: `before` channels of fill, `count` of x from `from` on, and fill.
struct Channels
{
    int64_t before = 0, from = 0, count = 0, all = 0;

    Channels(int64_t start, int64_t in, int64_t out) : all(out)
    {
        before = std::clamp<int64_t>(-start, 0, out);
        from = std::clamp<int64_t>(start, 0, in);
        count = std::clamp<int64_t>(std::min(in, start + out) - from, 0, out - before);
    }
    bool isWhole() const { return count == all && from == 0; }
};

template <class T>
void copyPixel(T const* x, Channels const& c, T fill, T* y)
{
    if (c.before > 0)
        std::fill_n(y, c.before, fill);
    std::memcpy(y + c.before, x + c.from, size_t(c.count) * sizeof(T));
    if (int64_t const end = c.before + c.count; end < c.all)
        std::fill_n(y + end, c.all - end, fill);
}

// A row of y, whose pixel p is pixel at[p] of the row x; x null: there is none.
template <class T>
void copyPixelRow(ChannelsLastKernels const& k, T const* x, int64_t xStep, int64_t const* at, int64_t width,
                  Channels const& c, T fill, T* y, int64_t yStep)
{
    for (int64_t p = 0; p < width;) {
        if (!x || at[p] < 0) {
            std::fill_n(y + p++ * yStep, c.all, fill);
            continue;
        }
        int64_t end = p + 1;
        while (end < width && at[end] == at[p] + (end - p))
            ++end;
        if (c.isWhole())
            copyPixels(k, x + at[p] * xStep, xStep, y + p * yStep, yStep, c.all, end - p);
        else
            for (int64_t i = p; i < end; ++i)
                copyPixel(x + at[i] * xStep, c, fill, y + i * yStep);
        p = end;
    }
}

template <class T>
Result<void> runEdges(ir::Node const& node, ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    T const fill =
        args.inputs.size() > kFillInput && args.inputs[kFillInput].data ? *args.inputs[kFillInput].as<T>() : T(0);
    int const rank = x.dims.rank, last = rank - 1;
    auto* table = static_cast<int64_t*>(args.workspace); // for each dimension, the coordinate of x of each of y
    int64_t const* at[kMaxRank];
    for (int d = 0; d < rank; ++d) {
        at[d] = table;
        for (int64_t i = 0; i < y.dims[d] && d != 1; ++i)
            *table++ = sourceIndex(a.mode, a.start[size_t(d)] + i * a.stride[size_t(d)], x.dims[d]);
    }
    int64_t const xStep = x.pixelStride(), yStep = y.pixelStride(), width = y.dims[last];
    int64_t const rows = y.dims[0] * pixelsOf(y) / width, count = x.dims.volume() > 0 ? 1 : 0;
    Channels const channels(a.start[1], x.dims[1] * count, y.dims[1]);
    eachInPieces(*args.workers, rows, 2 * y.sizeBytes(), [&](int64_t row) {
        int64_t rest = row, from = 0, step = x.dims[last];
        bool inside = count > 0;
        for (int d = last - 1; d >= 0; --d) {
            if (d == 1)
                continue;
            int64_t const p = at[d][rest % y.dims[d]];
            inside = inside && p >= 0;
            from += p * step;
            step *= x.dims[d];
            rest /= y.dims[d];
        }
        copyPixelRow(k, inside ? x.as<T>() + from * xStep : nullptr, xStep, at[last], width, channels, fill,
                     y.as<T>() + row * width * yStep, yStep);
    });
    return {};
}

int64_t edgesWorkspace(ir::Node const&, std::span<TensorRef const>, std::span<TensorRef const> out)
{
    int64_t entries = 0;
    for (int64_t d : out[0].dims)
        entries += d;
    return entries * int64_t(sizeof(int64_t));
}

} // namespace

using kernels::jit::Isa;
constexpr VectorTactic kEdges{
    "slice_f32_nhwc_edges_avx2", 1, Isa::kAvx2, runEdges<float>, supportsEdges, onlyChannelsLast, edgesWorkspace};
constexpr VectorTactic kEdgesInt8{"slice_i8_nhwc_edges_avx2",
                                  1,
                                  Isa::kAvx2,
                                  runEdges<int8_t>,
                                  supportsEdges,
                                  onlyChannelsLast,
                                  edgesWorkspace,
                                  DataType::kInt8};

} // namespace tw::ops::slice
