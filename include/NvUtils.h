// SPDX-License-Identifier: Apache-2.0
// Helpers that reorder weights on the host. All are deprecated.
#ifndef TENSORWRIGHT_NV_UTILS_H
#define TENSORWRIGHT_NV_UTILS_H

#include "NvInfer.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {
namespace utils {

/// Transposes weights of nbDims dimensions shape by shapeOrder into data, which must hold all of input.
TRT_DEPRECATED_API bool reshapeWeights(Weights const& input, int32_t const* shape, int32_t const* shapeOrder,
                                       void* data, int32_t nbDims) noexcept;

/// Reorders num blocks of size bytes each in place: block i becomes block order[i].
TRT_DEPRECATED_API bool reorderSubBuffers(void* input, int32_t const* order, int32_t num, int32_t size) noexcept;

/// Transposes num matrices of height x width elements in place.
TRT_DEPRECATED_API bool transposeSubBuffers(void* input, DataType type, int32_t num, int32_t height,
                                            int32_t width) noexcept;

} // namespace utils
} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
