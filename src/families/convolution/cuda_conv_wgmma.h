// SPDX-License-Identifier: Apache-2.0
// Convolutions as the products of kernels/cuda/gemm/wgmma.h and wgmma_sparse.h: of images that TMA reads through an im2col
// map, or, of 1x1 convolutions, of plain rows.
#pragma once

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::ops::conv_f16 {

inline bool isEmpty(Geometry const& g)
{
    return g.batch * g.out[1] * g.out[2] == 0;
}
// A window of one position that touches every pixel once.
bool isProduct(Geometry const& geometry);
// One group of such a type on a GPU that has wgmma.
Support supportsWgmma(Problem const& problem, DataType type);
// Tensors of a run, or dense ones (0): pixelX and pixelY are the elements between pixels. `x` is also the filters' type.
cuda::gemm_f16::Shape wgmmaShape(bool image, DataType x, DataType y, Geometry const& geometry, int64_t pixelX = 0,
                                 int64_t pixelY = 0);
// Null, or why it is no image that TMA reads, or no product.
char const* unsupportedWindow(bool image, Geometry const& geometry);
// The map of an image as it lies in memory: gaps between its pixels, if any, read as zeros.
void readInPlace(cuda::TensorMapSpec& map, Geometry const& geometry, int64_t pixelX, int64_t elementBytes);
// The residual's map from y's: rows of pixels `pixelBytes` apart.
void setPixelStride(cuda::TensorMapSpec& map, int64_t pixelBytes);
// For packFilters(): k as the image is walked, `channels` for each position.
int64_t placeByPixels(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t channels);

} // namespace tw::ops::conv_f16
