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
};
#undef TW_ERROR

// Published codes that nothing here returns: the name says it all.
#define TW_OTHER(code)                                                                                                 \
    {                                                                                                                  \
        code, #code, #code                                                                                             \
    }
constexpr ErrorText kOtherErrors[] = {
    TW_OTHER(cudaErrorProfilerDisabled),
    TW_OTHER(cudaErrorProfilerNotInitialized),
    TW_OTHER(cudaErrorProfilerAlreadyStarted),
    TW_OTHER(cudaErrorProfilerAlreadyStopped),
    TW_OTHER(cudaErrorInvalidTexture),
    TW_OTHER(cudaErrorInvalidTextureBinding),
    TW_OTHER(cudaErrorInvalidChannelDescriptor),
    TW_OTHER(cudaErrorAddressOfConstant),
    TW_OTHER(cudaErrorTextureFetchFailed),
    TW_OTHER(cudaErrorTextureNotBound),
    TW_OTHER(cudaErrorSynchronizationError),
    TW_OTHER(cudaErrorInvalidFilterSetting),
    TW_OTHER(cudaErrorInvalidNormSetting),
    TW_OTHER(cudaErrorMixedDeviceExecution),
    TW_OTHER(cudaErrorNotYetImplemented),
    TW_OTHER(cudaErrorMemoryValueTooLarge),
    TW_OTHER(cudaErrorStubLibrary),
    TW_OTHER(cudaErrorCallRequiresNewerDriver),
    TW_OTHER(cudaErrorInvalidSurface),
    TW_OTHER(cudaErrorDuplicateVariableName),
    TW_OTHER(cudaErrorDuplicateTextureName),
    TW_OTHER(cudaErrorDuplicateSurfaceName),
    TW_OTHER(cudaErrorDevicesUnavailable),
    TW_OTHER(cudaErrorIncompatibleDriverContext),
    TW_OTHER(cudaErrorMissingConfiguration),
    TW_OTHER(cudaErrorPriorLaunchFailure),
    TW_OTHER(cudaErrorLaunchMaxDepthExceeded),
    TW_OTHER(cudaErrorLaunchFileScopedTex),
    TW_OTHER(cudaErrorLaunchFileScopedSurf),
    TW_OTHER(cudaErrorSyncDepthExceeded),
    TW_OTHER(cudaErrorLaunchPendingCountExceeded),
    TW_OTHER(cudaErrorDeviceNotLicensed),
    TW_OTHER(cudaErrorSoftwareValidityNotEstablished),
    TW_OTHER(cudaErrorStartupFailure),
    TW_OTHER(cudaErrorMapBufferObjectFailed),
    TW_OTHER(cudaErrorUnmapBufferObjectFailed),
    TW_OTHER(cudaErrorArrayIsMapped),
    TW_OTHER(cudaErrorAlreadyMapped),
    TW_OTHER(cudaErrorAlreadyAcquired),
    TW_OTHER(cudaErrorNotMapped),
    TW_OTHER(cudaErrorNotMappedAsArray),
    TW_OTHER(cudaErrorNotMappedAsPointer),
    TW_OTHER(cudaErrorECCUncorrectable),
    TW_OTHER(cudaErrorDeviceAlreadyInUse),
    TW_OTHER(cudaErrorInvalidPtx),
    TW_OTHER(cudaErrorInvalidGraphicsContext),
    TW_OTHER(cudaErrorNvlinkUncorrectable),
    TW_OTHER(cudaErrorJitCompilerNotFound),
    TW_OTHER(cudaErrorUnsupportedPtxVersion),
    TW_OTHER(cudaErrorJitCompilationDisabled),
    TW_OTHER(cudaErrorUnsupportedExecAffinity),
    TW_OTHER(cudaErrorUnsupportedDevSideSync),
    TW_OTHER(cudaErrorContained),
    TW_OTHER(cudaErrorInvalidSource),
    TW_OTHER(cudaErrorSharedObjectSymbolNotFound),
    TW_OTHER(cudaErrorSharedObjectInitFailed),
    TW_OTHER(cudaErrorLossyQuery),
    TW_OTHER(cudaErrorLaunchIncompatibleTexturing),
    TW_OTHER(cudaErrorTooManyPeers),
    TW_OTHER(cudaErrorHardwareStackError),
    TW_OTHER(cudaErrorIllegalInstruction),
    TW_OTHER(cudaErrorInvalidAddressSpace),
    TW_OTHER(cudaErrorInvalidPc),
    TW_OTHER(cudaErrorCooperativeLaunchTooLarge),
    TW_OTHER(cudaErrorTensorMemoryLeak),
    TW_OTHER(cudaErrorSystemNotReady),
    TW_OTHER(cudaErrorSystemDriverMismatch),
    TW_OTHER(cudaErrorCompatNotSupportedOnDevice),
    TW_OTHER(cudaErrorMpsConnectionFailed),
    TW_OTHER(cudaErrorMpsRpcFailure),
    TW_OTHER(cudaErrorMpsServerNotReady),
    TW_OTHER(cudaErrorMpsMaxClientsReached),
    TW_OTHER(cudaErrorMpsMaxConnectionsReached),
    TW_OTHER(cudaErrorMpsClientTerminated),
    TW_OTHER(cudaErrorCdpNotSupported),
    TW_OTHER(cudaErrorCdpVersionMismatch),
    TW_OTHER(cudaErrorExternalDevice),
    TW_OTHER(cudaErrorInvalidClusterSize),
    TW_OTHER(cudaErrorFunctionNotLoaded),
    TW_OTHER(cudaErrorInvalidResourceType),
    TW_OTHER(cudaErrorInvalidResourceConfiguration),
};
#undef TW_OTHER

ErrorText const* find(cudaError_t code)
{
    for (ErrorText const& entry : kErrors)
        if (entry.code == code)
            return &entry;
    for (ErrorText const& entry : kOtherErrors)
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
