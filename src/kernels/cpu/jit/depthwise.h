// SPDX-License-Identifier: Apache-2.0
// Rows of a depthwise convolution (one filter for each channel), or of one in groups of 2 or 4 channels, over channels-last pixels.
// One call computes one output row of one block of channels:
//   y[o, c] = f(bias[c] + sum over rows r < args.rows, taps s < taps, i < group of w[r, s, i, c] * x[r, o stride + s dilation -
//   before, c / group * group + i] + residual[o, c])      0 <= o < outWidth, c < vectors * vectorWidth(isa)
// In volumes the sum goes over the rows of args.planes planes.
// Columns of x outside [0, inWidth) count as zero and are never read; the caller leaves out the rows that lie outside.
// Widths, strides and borders are fixed when the kernel is emitted: tiles of outputs stay in registers over all rows of
// the filter, those at the borders are emitted one by one without the taps that fall off.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

// What a row of outputs is, of floats and of i8 (int8_depthwise.h).
struct DepthwiseRow
{
    int taps = 1; // of a filter row
    int64_t inWidth = 1, outWidth = 1, stride = 1, dilation = 1, before = 0;
    int64_t xPixelBytes = 0, yPixelBytes = 0, residualPixelBytes = 0; // from column to column
    // Fetch into L2 the `stride` rows that follow the filter's last one, and what the next tile writes: for tensors
    // that come from behind L2, processed row after row.
    bool prefetch = false;
};

struct DepthwiseSpec : DepthwiseRow, SumEnd
{
    int vectors = 1; // of channels: 1 or 2
    int group = 1;   // channels that an output is made of: 1, 2 or 4, which never lie across 16 bytes
    bool residual = false;
    bool planes = false; // the filter has several
};

struct DepthwiseArgs
{
    float const* x = nullptr; // column 0 of the first row
    int64_t xRowBytes = 0;    // from filter row to filter row
    int64_t rows = 0;
    float const* w = nullptr; // [rows, taps, group, vectors * vectorWidth]
    float const* bias = nullptr;
    float* y = nullptr;
    float const* residual = nullptr;
    // Of a spec with planes: from row 0 of a plane to that of the next, and behind a plane's last row of weights.
    int64_t planes = 1, xPlaneBytes = 0, wPlaneSkip = 0;
};

// Empty, or why there is no kernel for these numbers (too much code for the borders, or offsets too large).
char const* depthwiseMisfit(Isa isa, DepthwiseSpec const& spec);

class DepthwiseKernel
{
public:
    DepthwiseKernel() = default;
    static Result<DepthwiseKernel> emit(Isa isa, DepthwiseSpec const& spec);
    void operator()(DepthwiseArgs const& args) const
    {
        code_.entry<void (*)(DepthwiseArgs const*)>()(&args);
        if (steps_)
            steps_(args.y, yPixelBytes_, args.residual, residualPixelBytes_, outWidth_, columns_);
    }

private:
    Code code_;
    StepsKernel steps_;
    int64_t yPixelBytes_ = 0, residualPixelBytes_ = 0, outWidth_ = 0, columns_ = 0;
};

} // namespace tw::kernels::jit
