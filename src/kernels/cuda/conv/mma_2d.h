// SPDX-License-Identifier: Apache-2.0
// Convolutions over two axes as implicit matrix products, for compute capability 8.0 and later: any channels, stride,
// padding, dilation and groups; x NHWC or NCHW (the first layer), y NHWC. Rows are output pixels, columns filters, k runs
// over a filter's taps and channels as x has them in memory. In FP16 with float sums by mma.sync; in FP32 exact (one fused
// multiply-add each), or with factors rounded to TF32 by mma.sync. Windows of a transposed convolution that lie side by
// side are groups of an FP32 one, each with its own place in y.
//
// Few output pixels leave multiprocessors idle: in FP32 warps of a block share a tile's k (slices), and from capability 9.0
// on the blocks of a cluster too (split). They add up through shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/mma_nd_params.h"
#include "kernels/cuda/conv/shape.h"

namespace tw::cuda::conv_2d {

enum class Kind : int
{
    kHalf,
    kFloat, // exact
    kTf32,  // filters come rounded (roundAllToTf32()), x is rounded on its way
};

// Of FP32 bias and residual are there where their addresses are, and `aligned` says that filters of a group come in
// steps of 4.
struct Spec : Epilogue
{
    Kind kind = Kind::kHalf;
    int tileM = 64, tileN = 64; // pixels: 64, 128; filters: 32, 64, 128
    int stages = 4;
    int vector = 4;              // elements of x that one copy takes: 1, 2, 4, .. mostVector(kind)
    bool nchw = false;           // x is NCHW and k runs (c, r, s), else NHWC and (r, s, c)
    bool constantFilters = true; // they may be read before the previous kernel of the stream is done
    int split = 1; // of FP32: blocks of a cluster that share a tile's k: 1, 2, 4, 8; not a part of the source

    bool isHalf() const { return kind == Kind::kHalf; }
    int slices() const;   // groups of warps that share each step's k
    bool isAlone() const; // a block fills a multiprocessor
    int64_t sharedBytes() const;
    std::string name() const; // "conv_tf32_64x64x32_s4_v4_sm80"
};

constexpr int mostVector(Kind kind) // 16 bytes
{
    return kind == Kind::kHalf ? 8 : 4;
}

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "convolve";

char const* unsupported(Spec const& spec, ConvShape const& shape);
// Bytes that are floats.
void roundAllToTf32(std::string& bytes);

// Strides of rows and columns of x have 64 bits in FP16, 32 in FP32.
using HalfArgs = ArgsOf<void, i64>;
using FloatArgs = ArgsOf<void, i32>;

template <class Args>
struct Launch
{
    Args args; // without addresses
    LaunchGeometry geometry;
};
template <class Args>
Launch<Args> launch(Spec const& spec, ConvShape const& shape);
extern template Launch<HalfArgs> launch(Spec const&, ConvShape const&);
extern template Launch<FloatArgs> launch(Spec const&, ConvShape const&);

// Channels-last x with so many elements from pixel to pixel. False: a row is too long.
template <class Stride>
bool setPixels(ArgsOf<void, Stride>& a, int64_t pixelX, int64_t h, int64_t w)
{
    a.columnX = Stride(pixelX);
    a.rowX = Stride(pixelX * w);
    a.imageX = pixelX * w * h;
    return a.columnX == pixelX && a.rowX == pixelX * w;
}

// A guess of an FP32 kernel's time, for ordering.
double estimateUs(Spec const& spec, ConvShape const& shape, int multiprocessors);
// Tiles and splits worth timing in FP32, the best guess first, at most so many, of at most so many texts. `clusters`: blocks
// may share k.
std::vector<Spec> candidates(Spec const& base, ConvShape const& shape, int multiprocessors, bool clusters, size_t most,
                             size_t mostSources);

} // namespace tw::cuda::conv_2d
