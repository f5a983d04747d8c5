// SPDX-License-Identifier: Apache-2.0
// Convolutions and products by plain loops, each with one fault that real kernels have had, or none.
#pragma once

#include <algorithm>

#include "ops/convolution/op.h"
#include "tactic/tactic.h"

namespace tw::test {

enum class Fault
{
    kNone,
    kLastOutputChannel, // the tail of a tile of channels is not written
    kLastPixelOfRows,
    kLastInputChannel, // the tail of the inner loop is left out
    kLastTap,
    kFirstImageOnly,
    kBatchOfOneStrides,
    kBorderRepeated,  // the nearest element of x instead of zero
    kBorderWrapped,   // the row before or after instead of zero
    kBorderUnwritten, // of a padded copy: what the workspace held
    kWrongGroup,      // all groups read the first one's channels
    kNextGroupsWeights,
    kOverflows,
    kNoBiasInLastChannel,
    kStaleSum, // begins with what the output held
    kWritesBeyondOutput,
};
inline constexpr Fault kConvolutionFaults[] = {
    Fault::kLastOutputChannel,   Fault::kLastPixelOfRows,   Fault::kLastInputChannel,  Fault::kLastTap,
    Fault::kFirstImageOnly,      Fault::kBatchOfOneStrides, Fault::kBorderRepeated,    Fault::kBorderWrapped,
    Fault::kBorderUnwritten,     Fault::kWrongGroup,        Fault::kNextGroupsWeights, Fault::kOverflows,
    Fault::kNoBiasInLastChannel, Fault::kStaleSum,          Fault::kWritesBeyondOutput};
inline constexpr Fault kProductFaults[] = {
    Fault::kLastOutputChannel, Fault::kLastPixelOfRows, Fault::kLastInputChannel, Fault::kFirstImageOnly,
    Fault::kBatchOfOneStrides, Fault::kOverflows,       Fault::kStaleSum,         Fault::kWritesBeyondOutput};
// A scale that sums of ordinary inputs (below 20) bear and those of inputs a hundred times larger do not (above 113).
inline constexpr float kScale = 3e36F;

inline float finish(float sum, Fault fault)
{
    return fault == Fault::kOverflows ? sum * kScale / kScale : sum;
}

class Convolution final : public ops::Kernel
{
public:
    Convolution(ir::Node const& node, Fault fault)
        : attrs_(static_cast<ops::convolution::Attrs const&>(*node.attrs)), fault_(fault)
    {}
    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override { return 64; }
    Result<void> run(ops::RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        auto const g = ops::convolution::geometryOf(attrs_, x.dims, args.inputs[1].dims, y.dims);
        int64_t const n = fault_ == Fault::kFirstImageOnly ? 1 : g.batch;
        int64_t const channels = g.k - (fault_ == Fault::kLastOutputChannel);
        int64_t const width = g.out[2] - (fault_ == Fault::kLastPixelOfRows);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = 0; k < channels; ++k)
                for (int64_t h = 0; h < g.out[1]; ++h)
                    for (int64_t w = 0; w < width; ++w) {
                        float& out = y.as<float>()[y.place(((i * g.k + k) * g.out[1] + h) * g.out[2] + w)];
                        out = finish(sum(args, g, i, k, h, w) + (fault_ == Fault::kStaleSum ? out : 0), fault_);
                    }
        if (fault_ == Fault::kWritesBeyondOutput)
            y.as<float>()[y.sizeBytes() / 4] = 1;
        return {};
    }

private:
    float sum(ops::RunArgs& args, ops::convolution::Geometry const& g, int64_t i, int64_t k, int64_t h, int64_t w) const
    {
        float const* weights = args.inputs[1].as<float>();
        int64_t const c = g.c / g.groups, perGroup = g.k / g.groups, taps = g.window[1] * g.window[2];
        int64_t const group = fault_ == Fault::kWrongGroup ? 0 : k / perGroup;
        int64_t const filter = fault_ == Fault::kNextGroupsWeights ? (k + perGroup) % g.k : k;
        bool const noBias = fault_ == Fault::kNoBiasInLastChannel && k + 1 == g.k;
        float s = noBias ? 0 : args.inputs[2].as<float>()[k];
        for (int64_t j = 0; j < c - (fault_ == Fault::kLastInputChannel); ++j)
            for (int64_t t = 0; t < taps - (fault_ == Fault::kLastTap); ++t)
                s += weights[(filter * c + j) * taps + t] *
                     element(args, g, fault_ == Fault::kBatchOfOneStrides ? 0 : i, group * c + j,
                             h * g.stride[1] - g.before[1] + t / g.window[2] * g.dilation[1],
                             w * g.stride[2] - g.before[2] + t % g.window[2] * g.dilation[2]);
        return s;
    }
    float element(ops::RunArgs& args, ops::convolution::Geometry const& g, int64_t i, int64_t c, int64_t h,
                  int64_t w) const
    {
        TensorRef const& x = args.inputs[0];
        int64_t const height = g.in[1], width = g.in[2];
        if (h < 0 || w < 0 || h >= height || w >= width) {
            if (fault_ == Fault::kBorderUnwritten)
                return static_cast<float*>(args.workspace)[0];
            if (fault_ == Fault::kBorderWrapped)
                h = std::clamp<int64_t>(w < 0 ? h - 1 : w >= width ? h + 1 : h, 0, height - 1), w = (w + width) % width;
            else if (fault_ == Fault::kBorderRepeated)
                h = std::clamp<int64_t>(h, 0, height - 1), w = std::clamp<int64_t>(w, 0, width - 1);
            else
                return 0;
        }
        return x.as<float>()[x.place(((i * g.c + c) * height + h) * width + w)];
    }
    ops::convolution::Attrs const& attrs_;
    Fault fault_;
};

// y[b] = x[b] w[b], all of equal batch and not transposed.
class Product final : public ops::Kernel
{
public:
    explicit Product(Fault fault) : fault_(fault) {}
    Result<void> run(ops::RunArgs& args) const override
    {
        TensorRef const &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
        int64_t const m = y.dims[1], n = y.dims[2], k = a.dims[2];
        int64_t const batches = fault_ == Fault::kFirstImageOnly ? 1 : y.dims[0];
        for (int64_t i = 0; i < batches; ++i)
            for (int64_t r = 0; r < m - (fault_ == Fault::kLastPixelOfRows); ++r)
                for (int64_t c = 0; c < n - (fault_ == Fault::kLastOutputChannel); ++c) {
                    float& out = y.as<float>()[(i * m + r) * n + c];
                    float s = fault_ == Fault::kStaleSum ? out : 0;
                    for (int64_t j = 0; j < k - (fault_ == Fault::kLastInputChannel); ++j)
                        s += a.as<float>()[(i * m + r) * k + j] *
                             b.as<float>()[((fault_ == Fault::kBatchOfOneStrides ? 0 : i) * k + j) * n + c];
                    out = finish(s, fault_);
                }
        if (fault_ == Fault::kWritesBeyondOutput)
            y.as<float>()[y.count()] = 1;
        return {};
    }

private:
    Fault fault_;
};

} // namespace tw::test
