// SPDX-License-Identifier: Apache-2.0
// Calls about the one device there is, number 0.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "copy.h"
#include "state.h"

#if TW_CUDART_MAJOR == 12
extern "C" cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* prop, int device);
#endif

namespace tw::hostcuda {
namespace {

constexpr char kPciBusId[] = "0000:00:00.0";

cudaError_t setTo(int* out, int value)
{
    if (out == nullptr)
        return cudaErrorInvalidValue;
    *out = value;
    return cudaSuccess;
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaDriverGetVersion(int* driverVersion)
{
    return call([&] { return setTo(driverVersion, CUDART_VERSION); });
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion)
{
    return call([&] { return setTo(runtimeVersion, CUDART_VERSION); });
}

cudaError_t cudaGetDeviceCount(int* count)
{
    return call([&] { return setTo(count, 1); });
}

cudaError_t cudaGetDevice(int* device)
{
    return call([&] { return setTo(device, 0); });
}

cudaError_t cudaSetDevice(int device)
{
    return call([&] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int)
{
    return cudaSetDevice(device);
}

cudaError_t cudaSetValidDevices(int* devices, int count)
{
    return call([&] {
        if (count < 0 || (count > 0 && devices == nullptr))
            return cudaErrorInvalidValue;
        for (int i = 0; i < count; ++i)
            if (devices[i] != 0)
                return cudaErrorInvalidDevice;
        return cudaSuccess;
    });
}

cudaError_t cudaChooseDevice(int* device, cudaDeviceProp const* prop)
{
    return call([&] { return prop == nullptr ? cudaErrorInvalidValue : setTo(device, 0); });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return call([&] {
        if ((flags & ~static_cast<unsigned int>(cudaDeviceMask)) != 0)
            return cudaErrorInvalidValue;
        state().deviceFlags = flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags)
{
    return call([&] {
        if (flags == nullptr)
            return cudaErrorInvalidValue;
        *flags = state().deviceFlags | cudaDeviceMapHost;
        return cudaSuccess;
    });
}

#if TW_CUDART_MAJOR == 12
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* prop, int device)
{
    return call([&] { return prop == nullptr ? cudaErrorInvalidValue : fillProperties(*prop, device); });
}

// The symbol of CUDA 11 programs: its struct is the first part of the newer one.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device)
{
    return call([&] {
        cudaDeviceProp whole;
        cudaError_t const error = prop == nullptr ? cudaErrorInvalidValue : fillProperties(whole, device);
        if (error == cudaSuccess)
            std::memcpy(static_cast<void*>(prop), &whole, offsetof(cudaDeviceProp, hostRegisterSupported));
        return error;
    });
}
#else
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device)
{
    return call([&] { return prop == nullptr ? cudaErrorInvalidValue : fillProperties(*prop, device); });
}
#endif

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device)
{
    return call([&] {
        if (value == nullptr)
            return cudaErrorInvalidValue;
        if (device != 0)
            return cudaErrorInvalidDevice;
        int answer = 0;
        if (!attributeOf(attr, answer))
            return cudaErrorInvalidValue;
        *value = answer;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int)
{
    // A pair needs two devices.
    return call([&] { return value == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceReset()
{
    return call([&] {
        if (HostFunctionScope::active() || insideWork())
            return cudaErrorNotPermitted;
        State& s = state();
        (void)checkNothingCapturing(); // captures end invalid
        waitForDevice();
        for (std::shared_ptr<Stream> const& stream : allStreams())
            endCaptureOf(*stream);
        s.streams.removeAll();
        s.events.removeAll();
        forgetExecs();
        // First the nodes, some of which own memory, then what memory is left.
        s.graphs.removeAll();
        s.nodes.removeAll();
        forgetPools();
        freeAllMemory();
        state().deviceFlags = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    return call([&] {
        if (static_cast<std::size_t>(limit) >= std::size(state().limits))
            return cudaErrorUnsupportedLimit;
        state().limits[limit] = value;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit)
{
    return call([&] {
        if (value == nullptr)
            return cudaErrorInvalidValue;
        if (static_cast<std::size_t>(limit) >= std::size(state().limits))
            return cudaErrorUnsupportedLimit;
        *value = state().limits[limit];
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return cudaSuccess; // a preference
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config)
{
    return call([&] {
        if (config == nullptr)
            return cudaErrorInvalidValue;
        *config = cudaFuncCachePreferNone;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig)
{
    return cudaSuccess; // a preference
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config)
{
    return call([&] {
        if (config == nullptr)
            return cudaErrorInvalidValue;
        *config = cudaSharedMemBankSizeFourByte;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* busId, int length, int device)
{
    return call([&] {
        if (device != 0)
            return cudaErrorInvalidDevice;
        if (busId == nullptr || length < static_cast<int>(sizeof(kPciBusId)))
            return cudaErrorInvalidValue;
        std::memcpy(busId, kPciBusId, sizeof(kPciBusId));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, char const* busId)
{
    return call([&] {
        if (device == nullptr || busId == nullptr)
            return cudaErrorInvalidValue;
        // Forms: domain:bus:device.function, domain:bus:device and bus:device.function.
        if (std::strcmp(busId, kPciBusId) != 0 && std::strcmp(busId, "0000:00:00") != 0 &&
            std::strcmp(busId, "00:00.0") != 0)
            return cudaErrorInvalidDevice;
        *device = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccess, int device, int peerDevice)
{
    return call([&] { return device != 0 || peerDevice != 0 ? cudaErrorInvalidDevice : setTo(canAccess, 0); });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int)
{
    return call([] { return cudaErrorInvalidDevice; }); // no second device, and none is its own peer
}

cudaError_t cudaDeviceDisablePeerAccess(int)
{
    return call([] { return cudaErrorPeerAccessNotEnabled; });
}

cudaError_t cudaCtxResetPersistingL2Cache()
{
    return cudaSuccess;
}

#if TW_CUDART_MAJOR < 13
cudaError_t cudaThreadExit()
{
    return cudaDeviceReset();
}

cudaError_t cudaThreadSynchronize()
{
    return cudaDeviceSynchronize();
}
#endif

cudaError_t cudaProfilerStart()
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop()
{
    return cudaSuccess;
}
