// SPDX-License-Identifier: Apache-2.0
// The last error of each thread, and the names and texts of error codes.
#include "state.h"

namespace tw::hostcuda {

cudaError_t& lastError()
{
    return state().thread().lastError;
}

namespace {

struct ErrorText
{
    cudaError_t code;
    char const* name;
    char const* text;
};

#define TW_ERROR(code, text)                                                                                           \
    {                                                                                                                  \
        code, #code, text                                                                                              \
    }
#define TW_NAMED(code) TW_ERROR(code, #code)
// The codes that the stand-in returns or that clients test for.
constexpr ErrorText kErrors[] = {
    TW_ERROR(cudaSuccess, "no error"),
    TW_ERROR(cudaErrorInvalidValue, "invalid argument"),
    TW_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    TW_ERROR(cudaErrorInitializationError, "initialization error"),
    TW_ERROR(cudaErrorCudartUnloading, "the runtime is being unloaded"),
    TW_ERROR(cudaErrorInvalidConfiguration, "invalid launch configuration"),
    TW_ERROR(cudaErrorInvalidPitchValue, "invalid pitch: a row does not fit into it"),
    TW_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    TW_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    TW_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    TW_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction"),
    TW_ERROR(cudaErrorInsufficientDriver, "the driver is older than the runtime"),
    TW_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    TW_ERROR(cudaErrorNoDevice, "no device"),
    TW_ERROR(cudaErrorInvalidDevice, "invalid device number"),
    TW_ERROR(cudaErrorInvalidKernelImage, "invalid kernel image"),
    TW_ERROR(cudaErrorDeviceUninitialized, "the device has no context"),
    TW_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for this device"),
    TW_ERROR(cudaErrorUnsupportedLimit, "this limit does not exist on the device"),
    TW_ERROR(cudaErrorPeerAccessUnsupported, "no peer access between these devices"),
    TW_ERROR(cudaErrorFileNotFound, "file not found"),
    TW_ERROR(cudaErrorOperatingSystem, "an operating system call failed"),
    TW_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TW_ERROR(cudaErrorIllegalState, "the object is in the wrong state for this call"),
    TW_ERROR(cudaErrorSymbolNotFound, "symbol not found"),
    TW_ERROR(cudaErrorNotReady, "not ready"),
    TW_ERROR(cudaErrorIllegalAddress, "illegal memory access"),
    TW_ERROR(cudaErrorLaunchOutOfResources, "too many resources asked for a launch"),
    TW_ERROR(cudaErrorLaunchTimeout, "the launch took too long"),
    TW_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    TW_ERROR(cudaErrorPeerAccessNotEnabled, "peer access is not enabled"),
    TW_ERROR(cudaErrorSetOnActiveProcess, "too late: the device is in use"),
    TW_ERROR(cudaErrorContextIsDestroyed, "the context is destroyed"),
    TW_ERROR(cudaErrorAssert, "device-side assertion"),
    TW_ERROR(cudaErrorHostMemoryAlreadyRegistered, "host memory is already registered"),
    TW_ERROR(cudaErrorHostMemoryNotRegistered, "host memory is not registered"),
    TW_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    TW_ERROR(cudaErrorLaunchFailure, "the launch failed"),
    TW_ERROR(cudaErrorNotPermitted, "operation not permitted here"),
    TW_ERROR(cudaErrorNotSupported, "operation not supported"),
    TW_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted while a stream is capturing"),
    TW_ERROR(cudaErrorStreamCaptureInvalidated, "the capture became invalid by an earlier error"),
    TW_ERROR(cudaErrorStreamCaptureMerge, "two captures would become one"),
    TW_ERROR(cudaErrorStreamCaptureUnmatched, "the capture was not begun on this stream"),
    TW_ERROR(cudaErrorStreamCaptureUnjoined, "a stream that joined the capture was not joined back"),
    TW_ERROR(cudaErrorStreamCaptureIsolation, "a captured stream would depend on work outside the capture"),
    TW_ERROR(cudaErrorStreamCaptureImplicit, "the legacy stream would depend on a capturing stream"),
    TW_ERROR(cudaErrorCapturedEvent, "the event was last recorded in a capture"),
    TW_ERROR(cudaErrorStreamCaptureWrongThread, "the capture was begun in another thread"),
    TW_ERROR(cudaErrorTimeout, "timeout"),
    TW_ERROR(cudaErrorGraphExecUpdateFailure, "the graph differs too much from the executable graph"),
    TW_ERROR(cudaErrorUnknown, "unknown error"),
    // Published codes that nothing here returns: the name says it all.
    TW_NAMED(cudaErrorProfilerDisabled),
    TW_NAMED(cudaErrorProfilerNotInitialized),
    TW_NAMED(cudaErrorProfilerAlreadyStarted),
    TW_NAMED(cudaErrorProfilerAlreadyStopped),
    TW_NAMED(cudaErrorInvalidTexture),
    TW_NAMED(cudaErrorInvalidTextureBinding),
    TW_NAMED(cudaErrorInvalidChannelDescriptor),
    TW_NAMED(cudaErrorAddressOfConstant),
    TW_NAMED(cudaErrorTextureFetchFailed),
    TW_NAMED(cudaErrorTextureNotBound),
    TW_NAMED(cudaErrorSynchronizationError),
    TW_NAMED(cudaErrorInvalidFilterSetting),
    TW_NAMED(cudaErrorInvalidNormSetting),
    TW_NAMED(cudaErrorMixedDeviceExecution),
    TW_NAMED(cudaErrorNotYetImplemented),
    TW_NAMED(cudaErrorMemoryValueTooLarge),
    TW_NAMED(cudaErrorStubLibrary),
    TW_NAMED(cudaErrorCallRequiresNewerDriver),
    TW_NAMED(cudaErrorInvalidSurface),
    TW_NAMED(cudaErrorDuplicateVariableName),
    TW_NAMED(cudaErrorDuplicateTextureName),
    TW_NAMED(cudaErrorDuplicateSurfaceName),
    TW_NAMED(cudaErrorDevicesUnavailable),
    TW_NAMED(cudaErrorIncompatibleDriverContext),
    TW_NAMED(cudaErrorMissingConfiguration),
    TW_NAMED(cudaErrorPriorLaunchFailure),
    TW_NAMED(cudaErrorLaunchMaxDepthExceeded),
    TW_NAMED(cudaErrorLaunchFileScopedTex),
    TW_NAMED(cudaErrorLaunchFileScopedSurf),
    TW_NAMED(cudaErrorSyncDepthExceeded),
    TW_NAMED(cudaErrorLaunchPendingCountExceeded),
    TW_NAMED(cudaErrorDeviceNotLicensed),
    TW_NAMED(cudaErrorSoftwareValidityNotEstablished),
    TW_NAMED(cudaErrorStartupFailure),
    TW_NAMED(cudaErrorMapBufferObjectFailed),
    TW_NAMED(cudaErrorUnmapBufferObjectFailed),
    TW_NAMED(cudaErrorArrayIsMapped),
    TW_NAMED(cudaErrorAlreadyMapped),
    TW_NAMED(cudaErrorAlreadyAcquired),
    TW_NAMED(cudaErrorNotMapped),
    TW_NAMED(cudaErrorNotMappedAsArray),
    TW_NAMED(cudaErrorNotMappedAsPointer),
    TW_NAMED(cudaErrorECCUncorrectable),
    TW_NAMED(cudaErrorDeviceAlreadyInUse),
    TW_NAMED(cudaErrorInvalidPtx),
    TW_NAMED(cudaErrorInvalidGraphicsContext),
    TW_NAMED(cudaErrorNvlinkUncorrectable),
    TW_NAMED(cudaErrorJitCompilerNotFound),
    TW_NAMED(cudaErrorUnsupportedPtxVersion),
    TW_NAMED(cudaErrorJitCompilationDisabled),
    TW_NAMED(cudaErrorUnsupportedExecAffinity),
    TW_NAMED(cudaErrorUnsupportedDevSideSync),
    TW_NAMED(cudaErrorContained),
    TW_NAMED(cudaErrorInvalidSource),
    TW_NAMED(cudaErrorSharedObjectSymbolNotFound),
    TW_NAMED(cudaErrorSharedObjectInitFailed),
    TW_NAMED(cudaErrorLossyQuery),
    TW_NAMED(cudaErrorLaunchIncompatibleTexturing),
    TW_NAMED(cudaErrorTooManyPeers),
    TW_NAMED(cudaErrorHardwareStackError),
    TW_NAMED(cudaErrorIllegalInstruction),
    TW_NAMED(cudaErrorInvalidAddressSpace),
    TW_NAMED(cudaErrorInvalidPc),
    TW_NAMED(cudaErrorCooperativeLaunchTooLarge),
    TW_NAMED(cudaErrorTensorMemoryLeak),
    TW_NAMED(cudaErrorSystemNotReady),
    TW_NAMED(cudaErrorSystemDriverMismatch),
    TW_NAMED(cudaErrorCompatNotSupportedOnDevice),
    TW_NAMED(cudaErrorMpsConnectionFailed),
    TW_NAMED(cudaErrorMpsRpcFailure),
    TW_NAMED(cudaErrorMpsServerNotReady),
    TW_NAMED(cudaErrorMpsMaxClientsReached),
    TW_NAMED(cudaErrorMpsMaxConnectionsReached),
    TW_NAMED(cudaErrorMpsClientTerminated),
    TW_NAMED(cudaErrorCdpNotSupported),
    TW_NAMED(cudaErrorCdpVersionMismatch),
    TW_NAMED(cudaErrorExternalDevice),
    TW_NAMED(cudaErrorInvalidClusterSize),
    TW_NAMED(cudaErrorFunctionNotLoaded),
    TW_NAMED(cudaErrorInvalidResourceType),
    TW_NAMED(cudaErrorInvalidResourceConfiguration),
};
#undef TW_NAMED
#undef TW_ERROR

ErrorText const* find(cudaError_t code)
{
    for (ErrorText const& entry : kErrors)
        if (entry.code == code)
            return &entry;
    return nullptr;
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
    ErrorText const* entry = find(error);
    return entry != nullptr ? entry->name : "unrecognized error code";
}

char const* cudaGetErrorString(cudaError_t error)
{
    ErrorText const* entry = find(error);
    return entry != nullptr ? entry->text : "unrecognized error code";
}
