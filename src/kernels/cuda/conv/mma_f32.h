// SPDX-License-Identifier: Apache-2.0
// Convolution in FP32 as an implicit matrix product, for compute capability 8.0 and later: any channels, stride,
// padding, dilation and groups; x NHWC or NCHW (the first layer), y NHWC. Rows are output pixels, columns filters, k
// runs over a filter's taps and channels as x has them in memory. Products are exact FP32 (one fused multiply-add
// each), or rounded to TF32 for mma.sync. Windows of a transposed convolution that lie side by side are groups of it,
// each with its own place in y.
//
// Few output pixels leave multiprocessors idle: warps of a block share a tile's k (slices), and from capability 9.0 on
// the blocks of a cluster too (split). They add up through shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/mma_f32_params.h"
#include "kernels/cuda/conv/shape.h"

namespace tw::cuda::conv_f32 {

constexpr int kMostVector = 4; // 16 bytes

struct Spec
{
    bool tf32 = false;          // filters come rounded (roundAllToTf32()), x is rounded on its way
    int tileM = 64, tileN = 64; // pixels: 64, 128; filters: 32, 64, 128
    int stages = 4;
    int vector = 4;         // elements of x that one copy takes: 4, 2 or 1
    bool nchw = false;      // x is NCHW and k runs (c, r, s), else NHWC and (r, s, c)
    bool aligned = true;    // filters of a group come in steps of 4
    int split = 1;          // blocks of a cluster that share a tile's k: 1, 2, 4, 8; not a part of the source
    std::string activation; // source of `template <class T> T activate(T)`

    int slices() const;   // groups of warps that share each step's k
    bool isAlone() const; // a block fills a multiprocessor
    int64_t sharedBytes() const;
    std::string name() const; // "conv_tf32_64x64x32_s4_v4_sm80"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "convolve";

char const* unsupported(Spec const& spec, ConvShape const& shape);
// Bytes that are floats.
void roundAllToTf32(std::string& bytes);

using Args = ArgsOf<void>;

struct Launch
{
    Args args; // without addresses
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, ConvShape const& shape);
// Channels-last x with so many elements from pixel to pixel. False: a row is too long.
bool setPixels(Args& args, int64_t pixelX, int64_t h, int64_t w);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, ConvShape const& shape, int multiprocessors);
// Tiles and splits worth timing, the best guess first, at most so many, of at most so many texts. `clusters`: blocks
// may share k.
std::vector<Spec> candidates(Spec const& base, ConvShape const& shape, int multiprocessors, bool clusters, size_t most,
                             size_t mostSources);

} // namespace tw::cuda::conv_f32
