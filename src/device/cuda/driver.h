// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API, opened at run time: nothing of CUDA is linked. Types and numbers are our own text; they are ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;

namespace tw::cuda {

class Library;

// Attributes of a launch (cuLaunchKernelEx): an id and a value of 64 bytes.
struct LaunchAttribute
{
    int32_t id = 0;
    int32_t pad = 0;
    union {
        char bytes[64];
        int32_t number;
        uint32_t numbers[3];
    } value = {};
};
struct LaunchConfig
{
    uint32_t grid[3]{1, 1, 1}, block[3]{1, 1, 1};
    uint32_t sharedBytes = 0;
    CUstream_st* stream = nullptr;
    LaunchAttribute* attributes = nullptr;
    uint32_t attributeCount = 0;
};

// Numbers of the driver API that we use.
enum : int
{
    kSuccess = 0,
    kErrorInvalidValue = 1,
    kErrorNoDevice = 100,

    kAttributeWarpSize = 10,
    kAttributeMultiprocessors = 16,
    kAttributeL2Bytes = 38,
    kAttributeMajor = 75,
    kAttributeMinor = 76,
    kAttributeSharedBytesOptIn = 97,

    kFunctionDynamicSharedBytes = 8, // cuFuncSetAttribute

    kLaunchClusterDimension = 4, // LaunchAttribute::id; the value is three numbers
    kLaunchProgrammatic = 6,     // the value is 1: may begin before the kernel before it has ended

    kStreamNonBlocking = 1,
    kCaptureRelaxed = 2,   // cuStreamBeginCapture
    kCaptureInsteadOf = 1, // cuStreamUpdateCaptureDependencies: instead of those that there were
    kEventDisableTiming = 2,
    kRecordExternal = 1,    // cuEventRecordWithFlags: in a capture, each launch of the graph records it
    kPointerMemoryType = 2, // cuPointerGetAttribute
    kMemoryTypeHost = 1,
    kMemoryTypeDevice = 2,
};

// A node that runs a graph of its own, not at all or again and again, as the GPU says (cuGraphAddNode).
struct ConditionalNode
{
    int32_t type = 13; // conditional
    int32_t reserved[3] = {};
    uint64_t handle = 0;
    int32_t kind = 0; // 0: at most once; 1: as long as the condition holds
    uint32_t bodies = 1;
    void** graphs = nullptr; // comes back
    CUctx_st* context = nullptr;
    char rest[200] = {};
    int64_t last = 0;
};
static_assert(sizeof(ConditionalNode) == 256);

// A copy of rows (cuMemcpy2DAsync), of device memory here.
struct CopyRows
{
    size_t fromX = 0, fromY = 0;
    int fromType = kMemoryTypeDevice;
    void const* fromHost = nullptr;
    uint64_t from = 0;
    void* fromArray = nullptr;
    size_t fromPitch = 0; // bytes from row to row
    size_t toX = 0, toY = 0;
    int toType = kMemoryTypeDevice;
    void* toHost = nullptr;
    uint64_t to = 0;
    void* toArray = nullptr;
    size_t toPitch = 0;
    size_t rowBytes = 0, rows = 0;
};

class Driver
{
public:
    ~Driver();
    // Opens and starts the driver. The error says whether it is missing, too old or without a GPU.
    static Result<std::shared_ptr<Driver const>> open();

    int version() const { return version_; } // 13000 is CUDA 13.0
    int deviceCount() const { return deviceCount_; }
    // "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)" as an error, or success.
    Result<void> check(int status, char const* call) const;

#define TW_CUDA_DRIVER(name, symbol, parameters) int(*name) parameters = nullptr;
#define TW_CUDA_DRIVER_NEW(name, symbol, parameters) int(*name) parameters = nullptr;
#include "device/cuda/driver.def"
#undef TW_CUDA_DRIVER
#undef TW_CUDA_DRIVER_NEW

private:
    Driver() = default;
    std::unique_ptr<Library> library_;
    int version_ = 0;
    int deviceCount_ = 0;
};

} // namespace tw::cuda

// Calls a driver function and returns its failure as an error: TW_CUDA(driver, cuMemFree(address)).
#define TW_CUDA(driver, call) TW_TRY((driver).check((driver).call, #call))
