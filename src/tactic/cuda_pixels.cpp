// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/device.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

Result<void> copyPixels(cuda::Driver const& driver, TensorRef const& from, TensorRef const& to, CUstream_st* stream)
{
    int64_t const channels = to.dims[channelAxis(to.format, to.dims.rank)];
    size_t const size = size_t(sizeOf(to.type));
    cuda::CopyRows copy;
    copy.from = cuda::addressOf(from.data);
    copy.fromPitch = size_t(from.pixelStride()) * size;
    copy.to = cuda::addressOf(to.data);
    copy.toPitch = size_t(to.pixelStride()) * size;
    copy.rowBytes = size_t(channels) * size;
    copy.rows = size_t(to.count() / channels);
    TW_CUDA(driver, cuMemcpy2DAsync(&copy, stream));
    return {};
}

} // namespace tw::ops
