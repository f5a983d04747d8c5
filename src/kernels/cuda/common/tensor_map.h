// SPDX-License-Identifier: Apache-2.0
// What the driver needs to know to encode a tensor map (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col) of FP16 or
// FP32 data with rows of 128 swizzled bytes in shared memory, or of 64. The address is added when it is known.
#pragma once

#include <cstdint>

namespace tw::cuda {

struct TensorMapSpec
{
    // Numbers of the driver API. kRoundedFloat32: FP32 that is rounded to TF32 on the way to shared memory.
    static constexpr int kFloat16 = 6, kFloat32 = 7, kRoundedFloat32 = 11;
    static constexpr int kInterleaveNone = 0, kSwizzle128 = 3, kL2Promotion256 = 3, kFillZero = 0;

    int type = kFloat16;
    int rank = 3;
    uint64_t dims[5] = {1, 1, 1, 1, 1}; // elements, the contiguous dimension first
    uint64_t strides[4] = {};           // bytes, of dimensions 1 to rank - 1; multiples of 16
    uint32_t box[5] = {1, 1, 1, 1, 1};  // tiled: elements of one copy
    uint32_t elementStrides[5] = {1, 1, 1, 1, 1};
    bool im2col = false;                // dims c, w, h, n
    int lower[3] = {}, upper[3] = {};   // im2col: corners of the box of filter origins, w then h
    uint32_t channels = 64, pixels = 0; // im2col: of one copy
    bool operator==(TensorMapSpec const&) const = default;
};

// Places of the driver's 128 bytes.
struct alignas(64) TensorMap
{
    uint64_t opaque[16];
};

// How a kernel is launched.
struct LaunchGeometry
{
    int64_t grid = 1, gridY = 1, gridZ = 1;
    int block = 128, cluster = 1;
    int64_t sharedBytes = 0;
};

} // namespace tw::cuda
