// SPDX-License-Identifier: Apache-2.0
// A CPU engine in a process that uses the real CUDA: the driver that the client has loaded tells which addresses the
// CPU can reach, and what a stream still has to do. Nothing is loaded or initialized here.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct CUstream_st;
struct CUevent_st;

namespace tw::api {

class CudaDriver
{
public:
    // Null when the process has no driver, or it offers no GPU.
    static std::unique_ptr<CudaDriver> ofProcess();

    // An error when the CPU cannot read and write there: device-only memory. Managed, pinned and plain memory are fine.
    Result<void> checkReachable(void const* address, std::string const& tensor) const;
    // Everything given to the stream before is done when this returns. A stream that is captured is refused.
    Result<void> finish(CUstream_st* stream) const;
    Result<void> record(CUevent_st* event, CUstream_st* stream) const;

private:
    CudaDriver() = default;
    using PointerAttribute = int (*)(void* data, int attribute, unsigned long long pointer);
    using Synchronize = int (*)(CUstream_st*);
    using IsCapturing = int (*)(CUstream_st*, int* status);
    using Record = int (*)(CUevent_st*, CUstream_st*);
    PointerAttribute pointerAttribute_ = nullptr;
    Synchronize synchronize_ = nullptr;
    IsCapturing isCapturing_ = nullptr;
    Record record_ = nullptr;
};

} // namespace tw::api
