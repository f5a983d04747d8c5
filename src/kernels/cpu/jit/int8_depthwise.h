// SPDX-License-Identifier: Apache-2.0
// A row of outputs of a depthwise convolution of i8, for one block of channels (four vectors of sums; with AVX-512, of 16
// or of 8 lanes):
//   y[o] = end(sum over filter rows r, columns s of x[r][o stride - before + s dilation] * w[r][s])
// Sums are exact. Bytes of four filter rows are interleaved, so that one dot product of four bytes takes a channel's
// part of a filter column; an input column is interleaved once for all outputs of a tile that it is under. Columns
// outside of [0, inWidth) count as zeros; rows outside of the image are rows of zeros, which the caller has.
//
// Interleaving leaves channels in another order: sum 4 L + j of vector q is channel 16 L + 4 q + j of the block.
// `w`, `start`, `scale` and `bias` lie in that order: [vector q][lane].
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/depthwise.h"
#include "kernels/cpu/jit/factors.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

struct Int8DepthwiseSpec : DepthwiseRow
{
    int rows = 1;      // of the filter
    int lanes = 32;    // channels of the block: int8DepthwiseLanes(isa), or 32
    int channels = 32; // of them that exist, from 1 on
    IntegerEnd end;    // a residual is i8; scale: one for each channel
};

struct Int8DepthwiseArgs
{
    void const* const* x = nullptr; // [rows] column 0 of each filter row's inputs
    void const* w = nullptr;        // int8DepthwiseWeights(): [taps][quads of rows], zeros after the last row
    int32_t const* start = nullptr;
    float const *scale = nullptr, *bias = nullptr;
    void* y = nullptr;
    void const* residual = nullptr;
    IntegerNumbers numbers;
    void const* next = nullptr; // prefetch: column 0 of the row after the filter's last one; need not be readable
    int64_t xRowBytes = 0;      // from row to row there
};

// Channels of a large block. All of its bytes of x and of residuals of i8 are read, and all of its bytes of an i8 y written;
// of other y whole fours of channels.
inline int int8DepthwiseLanes(Isa isa)
{
    return 4 * vectorWidth(isa);
}
// The channel of a block that is lane `lane` of vector q.
inline int int8DepthwiseChannel(int q, int lane)
{
    return lane / 4 * 16 + 4 * q + lane % 4;
}
// Bytes of the packed filters of a block.
int64_t int8DepthwiseWeightBytes(int lanes, Factors factors, int rows, int taps);
// With Factors::kByteSigns weights are above -128.
// Packs the filter w [rows][taps] of channel `channel` of a block, and adds to its start.
void int8DepthwisePack(int lanes, Factors factors, int rows, int taps, int channel, int8_t const* w, void* packed,
                       int32_t* start);

// Why there is no such kernel; null: there is.
char const* int8DepthwiseMisfit(Isa isa, Int8DepthwiseSpec const& spec);

struct Int8DepthwiseKernel : Emitted<Int8DepthwiseArgs>
{
    static Result<Int8DepthwiseKernel> emit(Isa isa, Factors factors, Int8DepthwiseSpec const& spec);
};

} // namespace tw::kernels::jit
