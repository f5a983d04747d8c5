// SPDX-License-Identifier: Apache-2.0
// The last error of each thread, and the names and texts of error codes.
#include <algorithm>
#include <span>
#include <utility>

#include "state.h"

namespace tw::hostcuda {

cudaError_t& lastError()
{
    return state().thread().lastError;
}

namespace {

using Word = std::pair<cudaError_t, char const*>;

constexpr Word kNames[] = {
#define TW_CUDA_ERROR(code, number) {code, #code},
#include "hostcuda_errors.def"
#undef TW_CUDA_ERROR
};
// The codes that the stand-in returns or that clients test for; the name of any other says it all.
constexpr Word kTexts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorCudartUnloading, "the runtime is being unloaded"},
    {cudaErrorInvalidConfiguration, "invalid launch configuration"},
    {cudaErrorInvalidPitchValue, "invalid pitch: a row does not fit into it"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInvalidHostPointer, "invalid host pointer"},
    {cudaErrorInvalidDevicePointer, "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction"},
    {cudaErrorInsufficientDriver, "the driver is older than the runtime"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorNoDevice, "no device"},
    {cudaErrorInvalidDevice, "invalid device number"},
    {cudaErrorInvalidKernelImage, "invalid kernel image"},
    {cudaErrorDeviceUninitialized, "the device has no context"},
    {cudaErrorNoKernelImageForDevice, "no kernel image for this device"},
    {cudaErrorUnsupportedLimit, "this limit does not exist on the device"},
    {cudaErrorPeerAccessUnsupported, "no peer access between these devices"},
    {cudaErrorFileNotFound, "file not found"},
    {cudaErrorOperatingSystem, "an operating system call failed"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorIllegalState, "the object is in the wrong state for this call"},
    {cudaErrorSymbolNotFound, "symbol not found"},
    {cudaErrorNotReady, "not ready"},
    {cudaErrorIllegalAddress, "illegal memory access"},
    {cudaErrorLaunchOutOfResources, "too many resources asked for a launch"},
    {cudaErrorLaunchTimeout, "the launch took too long"},
    {cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "peer access is not enabled"},
    {cudaErrorSetOnActiveProcess, "too late: the device is in use"},
    {cudaErrorContextIsDestroyed, "the context is destroyed"},
    {cudaErrorAssert, "device-side assertion"},
    {cudaErrorHostMemoryAlreadyRegistered, "host memory is already registered"},
    {cudaErrorHostMemoryNotRegistered, "host memory is not registered"},
    {cudaErrorMisalignedAddress, "misaligned address"},
    {cudaErrorLaunchFailure, "the launch failed"},
    {cudaErrorNotPermitted, "operation not permitted here"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted while a stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "the capture became invalid by an earlier error"},
    {cudaErrorStreamCaptureMerge, "two captures would become one"},
    {cudaErrorStreamCaptureUnmatched, "the capture was not begun on this stream"},
    {cudaErrorStreamCaptureUnjoined, "a stream that joined the capture was not joined back"},
    {cudaErrorStreamCaptureIsolation, "a captured stream would depend on work outside the capture"},
    {cudaErrorStreamCaptureImplicit, "the legacy stream would depend on a capturing stream"},
    {cudaErrorCapturedEvent, "the event was last recorded in a capture"},
    {cudaErrorStreamCaptureWrongThread, "the capture was begun in another thread"},
    {cudaErrorTimeout, "timeout"},
    {cudaErrorGraphExecUpdateFailure, "the graph differs too much from the executable graph"},
    {cudaErrorUnknown, "unknown error"},
};

char const* find(std::span<Word const> words, cudaError_t code, char const* otherwise)
{
    auto const found = std::ranges::find(words, code, &Word::first);
    return found == words.end() ? otherwise : found->second;
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaGetLastError()
{
    cudaError_t const error = lastError();
    lastError() = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError()
{
    return lastError();
}

char const* cudaGetErrorName(cudaError_t error)
{
    return find(kNames, error, "unrecognized error code");
}

char const* cudaGetErrorString(cudaError_t error)
{
    return find(kTexts, error, cudaGetErrorName(error));
}
