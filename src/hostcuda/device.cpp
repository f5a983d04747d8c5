// SPDX-License-Identifier: Apache-2.0
// Calls about the one device there is, number 0.
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

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

TW_CALL(cudaDriverGetVersion, (int* driverVersion), give(driverVersion, CUDART_VERSION))
TW_CALL(cudaRuntimeGetVersion, (int* runtimeVersion), give(runtimeVersion, CUDART_VERSION))
TW_CALL(cudaGetDeviceCount, (int* count), give(count, 1))
TW_CALL(cudaGetDevice, (int* device), give(device, 0))
TW_CALL(cudaSetDevice, (int device), failIf(device != 0, cudaErrorInvalidDevice))

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int)
{
    return cudaSetDevice(device);
}

cudaError_t cudaSetValidDevices(int* devices, int count)
{
    return call([&] {
        failIf(count < 0 || (count > 0 && devices == nullptr));
        for (int i = 0; i < count; ++i)
            failIf(devices[i] != 0, cudaErrorInvalidDevice);
    });
}

cudaError_t cudaChooseDevice(int* device, cudaDeviceProp const* prop)
{
    return call([&] {
        failIf(prop == nullptr);
        give(device, 0);
    });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return call([&] {
        failIf((flags & ~static_cast<unsigned int>(cudaDeviceMask)) != 0);
        state().deviceFlags = flags;
    });
}

TW_CALL(cudaGetDeviceFlags, (unsigned int* flags), give(flags, state().deviceFlags | cudaDeviceMapHost))

#if TW_CUDART_MAJOR == 12
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* prop, int device)
{
    return call([&] {
        failIf(prop == nullptr);
        *prop = propertiesOf(device);
    });
}

// The symbol of CUDA 11 programs: its struct is the first part of the newer one.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device)
{
    return call([&] {
        failIf(prop == nullptr);
        cudaDeviceProp const whole = propertiesOf(device);
        std::memcpy(static_cast<void*>(prop), &whole, offsetof(cudaDeviceProp, hostRegisterSupported));
    });
}
#else
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device)
{
    return call([&] {
        failIf(prop == nullptr);
        *prop = propertiesOf(device);
    });
}
#endif

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device)
{
    return call([&] {
        failIf(value == nullptr);
        failIf(device != 0, cudaErrorInvalidDevice);
        *value = attributeOf(attr);
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int)
{
    // A pair needs two devices.
    return call([&] { fail(value == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidDevice); });
}

cudaError_t cudaDeviceReset()
{
    return call([&] {
        failIf(HostFunctionScope::active() || insideWork(), cudaErrorNotPermitted);
        State& s = state();
        invalidateCaptures();
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
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    return call([&] {
        failIf(static_cast<std::size_t>(limit) >= std::size(state().limits), cudaErrorUnsupportedLimit);
        state().limits[limit] = value;
    });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit)
{
    return call([&] {
        failIf(value == nullptr);
        failIf(static_cast<std::size_t>(limit) >= std::size(state().limits), cudaErrorUnsupportedLimit);
        *value = state().limits[limit];
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return cudaSuccess; // a preference
}

TW_CALL(cudaDeviceGetCacheConfig, (cudaFuncCache * config), give(config, cudaFuncCachePreferNone))

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig)
{
    return cudaSuccess; // a preference
}

TW_CALL(cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig * config), give(config, cudaSharedMemBankSizeFourByte))

cudaError_t cudaDeviceGetPCIBusId(char* busId, int length, int device)
{
    return call([&] {
        failIf(device != 0, cudaErrorInvalidDevice);
        failIf(busId == nullptr || length < static_cast<int>(sizeof(kPciBusId)));
        std::memcpy(busId, kPciBusId, sizeof(kPciBusId));
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, char const* busId)
{
    return call([&] {
        failIf(device == nullptr || busId == nullptr);
        // Forms: domain:bus:device.function, domain:bus:device and bus:device.function.
        failIf(std::strcmp(busId, kPciBusId) != 0 && std::strcmp(busId, "0000:00:00") != 0 &&
                   std::strcmp(busId, "00:00.0") != 0,
               cudaErrorInvalidDevice);
        *device = 0;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccess, int device, int peerDevice)
{
    return call([&] {
        failIf(device != 0 || peerDevice != 0, cudaErrorInvalidDevice);
        give(canAccess, 0);
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int)
{
    return call([] { fail(cudaErrorInvalidDevice); }); // no second device, and none is its own peer
}

TW_CALL(cudaDeviceDisablePeerAccess, (int), fail(cudaErrorPeerAccessNotEnabled))

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
