// SPDX-License-Identifier: Apache-2.0
// Vector kernels on channels-last f32 tensors: runs of pixels, `step` elements from one to the next, each a run of
// channels. Channel counts are rounded up to whole cache lines (16): what lies after the last channel is read and
// written along, as the format allows. One table for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

// A row of output pixels of a pooling; steps in elements.
template <class T>
struct PoolRowOf
{
    T const* x = nullptr; // the first pixel of the first input row inside the window
    int64_t rows0 = 0, rows1 = 0, step0 = 0, step1 = 0, step = 0; // input rows inside the window; from pixel to pixel
    int64_t in = 0, out = 0, window = 0, stride = 0, before = 0, after = 0; // along the row
    int64_t channels = 0;
    T* y = nullptr;
    int64_t yStep = 0;
    bool average = false, excludePadding = false;
    float paddedRows = 1; // input rows of the padded input that the window covers
};
using PoolRow = PoolRowOf<float>;

// y[p] = sum over k of weight[p * taps + k] * x[index[p * taps + k]]: pixels of one row, or of a list of rows.
struct MixPixels
{
    static constexpr int kMaxTaps = 4;
    float const* x[kMaxTaps] = {}; // first pixel of each tap's row
    float weight[kMaxTaps] = {};
    int taps = 0;
    int64_t channels = 0;
    float* y = nullptr;
};

struct ChannelsLastKernels
{
    // From planes [channels][pixels], channelStep apart, to pixels, and back. Back writes real channels alone.
    void (*toNhwc)(float const* x, int64_t channelStep, float* y, int64_t step, int64_t channels, int64_t pixels);
    void (*fromNhwc)(float const* x, int64_t step, float* y, int64_t channelStep, int64_t channels, int64_t pixels);
    void (*copy)(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t channels, int64_t pixels);
    void (*fill)(float value, float* y, int64_t yStep, int64_t channels, int64_t pixels);
    void (*poolRow)(PoolRow const& row);
    // y = scale * (sum of the pixels), pairwise enough to lose nothing in long runs.
    void (*sum)(float const* x, int64_t step, int64_t channels, int64_t pixels, float scale, float* y);
    void (*mix)(MixPixels const& m);
    // The sum of n contiguous floats, any n.
    float (*sumRow)(float const* x, int64_t n);
    // y[i] = first[i] x[from[i]] + second[i] x[to[i]], i < n; what weighs 0 takes no part.
    void (*mixColumns)(float const* x, int32_t const* from, int32_t const* to, float const* first, float const* second,
                       int64_t n, float* y);
    // y[i] = wa a[i] + wb b[i], i < n.
    void (*mixRows)(float const* a, float const* b, float wa, float wb, int64_t n, float* y);
    // y[c * yStep + r] = x[r * xStep + c] for all rows r and columns c, and nothing else.
    void (*transpose)(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t rows, int64_t columns);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::ChannelsLastKernels const kChannelsLast;
}
namespace tw::avx512 {
extern kernels::ChannelsLastKernels const kChannelsLast;
}
