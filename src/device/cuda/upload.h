// SPDX-License-Identifier: Apache-2.0
// From the host to the GPU, there when the call returns. cuMemcpyHtoD alone may return while pageable memory is still
// on its way from the driver's own buffer, and streams of ours and of clients do not wait for the default stream.
#pragma once

#include "device/cuda/device.h"

namespace tw::cuda {

// The device's context is current; not while it captures.
inline Result<void> upload(Driver const& driver, void const* to, void const* from, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return {};
    TW_CUDA(driver, cuMemcpyHtoD(addressOf(to), from, sizeBytes));
    TW_CUDA(driver, cuStreamSynchronize(nullptr));
    return {};
}

} // namespace tw::cuda
