// SPDX-License-Identifier: Apache-2.0
// Tactics with emitted kernels for convolutions, transposed or not, one object for each instruction set.
// Inputs: 0 x [n, c, (d,) h, w], 1 w, then those of the epilogue; of f32: 2 bias (optional), 3 residual (optional).
#pragma once

#include <optional>

#include "families/elementwise/jit_end.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "ops/convolution/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops {

constexpr int64_t kPartsPerThread = 4; // so that threads end at about the same time
constexpr int64_t kMaxPointers = 2048; // that padded tactics keep on the stack

// --- f(conv(x, w) + bias + residual) in f32 ---

// One filter for each channel; channels-last. Config: {vectors of channels at a time, 1: with prefetches}.
extern CpuFunctions const kDepthwiseConvolution;

// To up to four channels from many; channels-last, weights and bias constant, any window of two dimensions. No config.
extern CpuFunctions const kFewFiltersConvolution;

// Everything else, as a product of matrices. Config: {vectors of output channels in a tile, 1: inputs of a block of
// pixels stay in L1 instead of L2}.
enum class DirectInput
{
    kNhwc, // channels-last
    kNchw, // linear, few channels: the first convolution of a network; not transposed
};
extern CpuFunctions const kDirectConvolution;

// What direct convolutions leave: long filter rows, many of them, weights that are no constants; and all whose factors
// are rounded to BF16, with constant weights. Not transposed. Config: {vectors of output channels in a tile}. Variant:
// kernels::jit::Factors.
extern CpuFunctions const kPaddedConvolution;

// F(m x m, 3x3), m = 2 or 4, over the last two of two or three axes, not transposed, stride 1 and dilation 1 along them,
// one group, any padding, channels-last, weights and bias constant. 2.25 and 4 times fewer multiplications.
// Error: relative to the largest output, on random data of 16 to 512 channels, 2e-7 to 6e-7 (m = 2) and 6e-7 to 3e-6
// (m = 4); test/ops/winograd_test.cpp holds it to 1e-6 and 4e-6. The ops' tolerance of 1e-5 admits both, and the
// builder checks each layer with its own weights.
// Config: {m, how, tiles, columns, piece}. The layer is processed in blocks of `tiles` tiles of m x m outputs and
// `columns` output channels, `piece` input channels at a time. how, bit 0: all workers transform the tiles of one
// block, then take blocks of columns; without it they take blocks of tiles, each transforms its own. Bit 1: weights
// stay as they are and are transformed each time they are used (once for each block of tiles): a quarter of the memory,
// and of what is read of it, for m = 4.
extern CpuFunctions const kWinogradConvolution;

// --- of i8; what follows the sums is part of the kernels (families/elementwise/epilogue.h) ---

// One filter for each channel; channels-last. Weights, scale and bias are constants. Config: {1: with prefetches}.
extern CpuFunctions const kInt8DepthwiseConvolution;

// Channels-last, windows of two dimensions. Config as of kDirectConvolution.
extern CpuFunctions const kInt8DirectConvolution;

// Over a copy of the image with its padding, which takes any window; x channels-last, or linear where it has few
// channels. Config: {vectors of output channels in a tile}.
extern CpuFunctions const kInt8PaddedConvolution;

// 3x3, stride and dilation 1, one group, 16 channels and more; channels-last, weights constant. Exact. Config: {tiles of a block}.
extern CpuFunctions const kInt8WinogradConvolution;

// --- what they share ---

// What those of f32 ask: f32, windows of so many dimensions at most, one batch dimension, weights and bias that are
// constants (or, with kAny, need not be), sizes that offsets of 32 bits reach.
enum class Weights
{
    kConstant,
    kAny,
};
Support supportsConvolution(Problem const& problem, int mostAxes, Weights weights = Weights::kConstant);
// What those of i8 ask: i8, and the same of all but the bias.
Support supportsInt8Convolution(Problem const& problem, int mostAxes, Weights weights);
bool isTransposed(ir::Node const& node);
convolution::Geometry convolutionGeometry(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y);
// Vectors of the output channels of a group.
int64_t vectorsOfGroup(Problem const& problem, kernels::jit::Isa isa);
// What stands after the sums: of floats, and of any.
kernels::jit::SumEnd jitEnd(ir::Node const& node);
JitEnd jitEnd(Problem const& problem, kernels::jit::Isa isa);

// Vectors of output channels in a tile that are worth a try, where a group has so many: tiles of one or two rows wait
// for each other's sums.
std::vector<int64_t> int8TileVectors(Problem const& p, kernels::jit::Isa isa, int64_t vectorsOfGroup);

// How this CPU multiplies bytes with vectors of `isa`.
// By input 0's signs, too.
kernels::jit::Factors byteFactors(Problem const& p, kernels::jit::Isa isa);

// --- plain ones ---

// Bytes of scratch: one output plane in float or int32.
int64_t convolvePlainWorkspaceBytes(TensorRef const& w, TensorRef const& y);
// y = f(conv(x, w) + b + residual); b and residual (of y's shape) may have null data; f32 or f16. The sum stays in
// float until it is stored.
void convolvePlain(WindowKind kind, KernelWindowAttrs const& a, TensorRef const& x, TensorRef const& w,
                   TensorRef const& b, TensorRef const& residual, FusedActivation const& f, TensorRef const& y,
                   void* workspace);
// The same of i8, with all that the node's inputs say.
void convolveIntegersPlain(convolution::Attrs const& a, std::span<TensorRef const> inputs, TensorRef const& y,
                           void* workspace);

} // namespace tw::ops
