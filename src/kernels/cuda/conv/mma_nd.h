// SPDX-License-Identifier: Apache-2.0
// Convolutions over up to three axes, transposed ones too, as implicit matrix products by mma.sync, for compute
// capability 8.0 and later: any channels, windows, strides, dilations, padding and groups; x and y pixel by pixel
// ([n, d, h, w, c]), FP16, or FP32 with factors rounded to TF32, or as three TF32 products that keep 21 of 24 bits; or x
// of i8, whose exact sums end as epilogue.h says.
//
// Rows are output positions, columns filters, k runs over taps and channels as x has them in memory. A transposed
// convolution of stride S is S convolutions of stride 1 along each axis (phases): outputs o = q S + p of one p read the
// same taps. Phases and groups are blocks of one launch.
//
// Few output positions leave multiprocessors idle: from capability 9.0 on the blocks of a cluster share a tile's k
// (split) and add up through shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/mma_nd_params.h"

namespace tw::cuda::conv_nd {

struct Shape
{
    int64_t n = 1, c = 1, k = 1, groups = 1;
    Axis axes[3]; // depth, height, width

    int64_t phases() const { return int64_t(axes[0].phases) * axes[1].phases * axes[2].phases; }
    int64_t taps() const { return int64_t(axes[0].taps) * axes[1].taps * axes[2].taps; }
    int64_t rows() const { return n * axes[0].positions() * axes[1].positions() * axes[2].positions(); }
};

struct Spec
{
    bool integers = false;      // x and filters are i8; activation is a part of the end
    IntegerEnd end;             // of integers
    bool half = true;           // of floats: x, y and filters are FP16, else FP32
    bool tf32x3 = false;        // FP32: 3xTF32: three products for one, else factors are rounded to TF32
    int tileM = 64, tileN = 64; // positions: 64, 128; filters: 32, 64, 128
    int stages = 4;
    int vector = 8;       // elements of x that one copy takes, at most 16 bytes; divides the channels of a group
    bool aligned = true;  // filters of a group, and pixels of y, come in steps of 4
    int split = 1;        // blocks of a cluster that share a tile's k: 1, 2, 4, 8; not a part of the source
    std::string epilogue; // of floats: as `end` of cuda::Epilogue

    int bytes() const { return integers ? 1 : half ? 2 : 4; } // of an element of x
    int stepK() const { return integers ? kIntegerStepK : kStepK; }
    int64_t sharedBytes() const;
    std::string name() const; // "conv_nd_f16_64x64x32_s4_v8_sm80"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
char const* unsupported(Spec const& spec, Shape const& shape);
std::string source(Spec const& spec);
constexpr char const* kKernel = "convolve";

// Channels that a tap takes in k: those of a group, rounded up to whole copies where there is one group (what is behind
// them counts as zero).
int64_t innerOf(Spec const& spec, Shape const& shape);
// Filters come as [phase, k, paddedK()]: taps, then innerOf() channels, then zeros; TF32 ones rounded.
int64_t paddedK(Spec const& spec, Shape const& shape);

using Args = ArgsOf<void>;
using IntegerArgs = IntegerArgsOf<void>;

struct Launch
{
    Args args; // without addresses; pixels of x and y lie `pixelX` and `pixelY` elements apart
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, Shape const& shape, int64_t pixelX, int64_t pixelY);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, Shape const& shape, int multiprocessors);
// Tiles and splits worth timing, the best guess first, at most so many. `clusters`: blocks may share k.
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, bool clusters, size_t most);

} // namespace tw::cuda::conv_nd
