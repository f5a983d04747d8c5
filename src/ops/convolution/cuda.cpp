// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_f16.h"
#include "families/convolution/cuda_cudnn_conv.h"
#include "families/convolution/cuda_plain_convolution.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

using conv_f16::tactic;
using enum conv_f16::Arithmetic;

constexpr CudaTactic kWgmma = tactic<conv_f16::kWgmma, kHalf>("convolution_f16_wgmma_sm90a");
constexpr CudaTactic kSparse = tactic<conv_f16::kSparse, kHalf>("convolution_f16_sparse_wgmma_sm90a");
constexpr CudaTactic kSparseInt8 = tactic<conv_f16::kSparse, kInt8>("convolution_i8_sparse_wgmma_sm90a");
constexpr CudaTactic kStrips = tactic<conv_f16::kDepthwiseStrips, kHalf>("convolution_f16_depthwise_strips_sm80");
constexpr CudaTactic kStripsF32 = tactic<conv_f16::kDepthwiseStrips, kFloat>("convolution_f32_depthwise_strips_sm80");
constexpr CudaTactic kTile = tactic<conv_f16::kDepthwiseTile, kHalf>("convolution_f16_depthwise_tile_sm80");
constexpr CudaTactic kDepthwise = tactic<conv_f16::kDepthwise, kHalf>("convolution_f16_depthwise_cuda");
constexpr CudaTactic kStem = tactic<conv_f16::kStem, kHalf>("convolution_f16_stem_sm80");
constexpr CudaTactic kNchw = tactic<conv_f16::kMmaNchw, kHalf>("convolution_f16_nchw_mma_sm80");
constexpr CudaTactic kMma = tactic<conv_f16::kMma, kHalf>("convolution_f16_mma_sm80");
constexpr CudaTactic kWgmmaInt8 = tactic<conv_f16::kWgmma, kInt8>("convolution_i8_wgmma_sm90a");
constexpr CudaTactic kWgmmaTf32 = tactic<conv_f16::kWgmma, kTf32>("convolution_tf32_wgmma_sm90a");
constexpr CudaTactic kTileF32 = tactic<conv_f16::kDepthwiseTile, kFloat>("convolution_f32_depthwise_tile_sm80");
constexpr CudaTactic kDepthwiseF32 = tactic<conv_f16::kDepthwise, kFloat>("convolution_f32_depthwise_cuda");
constexpr CudaTactic kStemTf32 = tactic<conv_f16::kStem, kTf32>("convolution_tf32_stem_sm80");
constexpr CudaTactic kNchwTf32 = tactic<conv_f16::kMmaNchw, kTf32>("convolution_tf32_nchw_mma_sm80");
constexpr CudaTactic kProductsTf32 = tactic<conv_f16::kMma, kTf32>("convolution_tf32_mma_sm80");
constexpr CudaTactic kNchwF32 = tactic<conv_f16::kMmaNchw, kFloat>("convolution_f32_nchw_simt_sm80");
constexpr CudaTactic kProductsF32 = tactic<conv_f16::kMma, kFloat>("convolution_f32_simt_sm80");
constexpr CudaTactic kTransposed = tactic<conv_f16::kBesideHalf, kHalf>("convolution_f16_transposed_wgmma_sm90a", 1);
constexpr CudaTactic kPhases = tactic<conv_f16::kPhases, kHalf>("convolution_f16_phases_wgmma_sm90a", 1);
constexpr CudaTactic kTransposedTf32 = tactic<conv_f16::kBeside, kTf32>("convolution_tf32_transposed_mma_sm80", 2);
constexpr CudaTactic kTransposedF32 = tactic<conv_f16::kBeside, kFloat>("convolution_f32_transposed_simt_sm80", 2);
constexpr CudaTactic kNd = tactic<conv_f16::kNd, kHalf>("convolution_f16_nd_mma_sm80", 1);
constexpr CudaTactic kPatch = tactic<conv_f16::kPatch, kHalf>("convolution_f16_patch_mma_sm80", 1);
constexpr CudaTactic kSpread = tactic<conv_f16::kSpread, kHalf>("convolution_f16_spread_mma_sm80", 1);
constexpr CudaTactic kNdTf32 = tactic<conv_f16::kNd, kTf32>("convolution_tf32_nd_mma_sm80", 1);
constexpr CudaTactic kNdF32 = tactic<conv_f16::kNd, kFloat>("convolution_f32_nd_tf32x3_mma_sm80", 1);
constexpr CudaTactic kDepthwiseI8 = tactic<conv_f16::kDepthwiseInt8, kInt8>("convolution_i8_depthwise_sm80", 1);
constexpr CudaTactic kStemI8 = tactic<conv_f16::kStemInt8, kInt8>("convolution_i8_stem_sm80", 2);
constexpr CudaTactic kNdI8 = tactic<conv_f16::kNd, kInt8>("convolution_i8_nd_mma_sm80", 1);
constexpr auto kNarrow = DataType::kBf16;
constexpr CudaTactic kBf16Wgmma = tactic<conv_f16::kWgmma, kHalf, kNarrow>("convolution_bf16_wgmma_sm90a");
constexpr CudaTactic kBf16Strips =
    tactic<conv_f16::kDepthwiseStrips, kHalf, kNarrow>("convolution_bf16_depthwise_strips_sm80");
constexpr CudaTactic kBf16Tile =
    tactic<conv_f16::kDepthwiseTile, kHalf, kNarrow>("convolution_bf16_depthwise_tile_sm80");
constexpr CudaTactic kBf16Depthwise = tactic<conv_f16::kDepthwise, kHalf, kNarrow>("convolution_bf16_depthwise_cuda");
constexpr CudaTactic kBf16Stem = tactic<conv_f16::kStem, kHalf, kNarrow>("convolution_bf16_stem_sm80");
constexpr CudaTactic kBf16Nchw = tactic<conv_f16::kMmaNchw, kHalf, kNarrow>("convolution_bf16_nchw_mma_sm80");
constexpr CudaTactic kBf16Mma = tactic<conv_f16::kMma, kHalf, kNarrow>("convolution_bf16_mma_sm80");
constexpr CudaTactic kBf16Nd = tactic<conv_f16::kNd, kHalf, kNarrow>("convolution_bf16_nd_mma_sm80", 1);
constexpr CudaTactic kBf16Phases = tactic<conv_f16::kPhases, kHalf, kNarrow>("convolution_bf16_phases_wgmma_sm90a", 1);
constexpr CudaTactic kBf16Spread = tactic<conv_f16::kSpread, kHalf, kNarrow>("convolution_bf16_spread_mma_sm80", 1);
constexpr CudaTactic kBf16Patch = tactic<conv_f16::kPatch, kHalf, kNarrow>("convolution_bf16_patch_mma_sm80", 1);
constexpr CudnnConvTactic kCudnn{"convolution_f16_cudnn_cuda", 1, DataType::kHalf};
constexpr CudnnConvTactic kCudnnTf32{"convolution_tf32_cudnn_cuda", 1, DataType::kFloat};

constexpr CudaTactic kPlain{"convolution_any_plain_cuda", 1, convolveKernels};

} // namespace

extern constinit TacticList const cudaTactics =
    kTactics<kWgmmaInt8, kSparse, kSparseInt8, kWgmma, kStrips, kStripsF32, kTile, kDepthwise, kStem, kNchw, kMma,
             kWgmmaTf32, kTileF32, kDepthwiseF32, kStemTf32, kNchwTf32, kProductsTf32, kNchwF32, kProductsF32,
             kTransposed, kPhases, kTransposedTf32, kTransposedF32, kPatch, kSpread, kNd, kNdTf32, kNdF32, kDepthwiseI8,
             kStemI8, kNdI8, kBf16Wgmma, kBf16Strips, kBf16Tile, kBf16Depthwise, kBf16Stem, kBf16Nchw, kBf16Mma,
             kBf16Phases, kBf16Patch, kBf16Nd, kCudnn, kCudnnTf32, kPlain>;

} // namespace tw::ops::convolution
