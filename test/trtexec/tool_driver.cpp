// SPDX-License-Identifier: Apache-2.0
// What trtexec asks of a CUDA driver beside what the library does, for the fake one (test/cuda): graphs fail.
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct CUctx_st;
struct CUstream_st;

extern "C" {

void twFakeSetCurrent(CUctx_st* context);
int fake_cuMemAlloc(unsigned long* address, size_t bytes) __asm__("cuMemAlloc_v2");

namespace {
constexpr int kNotSupported = 801;
}

int cuCtxSetCurrent(CUctx_st* context)
{
    twFakeSetCurrent(context);
    return 0;
}

int cuDeviceGetPCIBusId(char* text, int sizeBytes, int device)
{
    std::snprintf(text, static_cast<size_t>(sizeBytes), "0000:65:%02x.0", device);
    return 0;
}

int cuMemAllocManaged(unsigned long* address, size_t bytes, unsigned)
{
    return fake_cuMemAlloc(address, bytes);
}

int cuMemHostAlloc(void** address, size_t bytes, unsigned)
{
    *address = std::malloc(bytes);
    return *address ? 0 : 2;
}

int cuMemsetD8_v2(unsigned long address, unsigned char value, size_t bytes)
{
    std::memset(reinterpret_cast<void*>(address), value, bytes);
    return 0;
}

// Work on streams is done when it is given.
int cuStreamWaitEvent(CUstream_st*, void*, unsigned)
{
    return 0;
}

int cuLaunchHostFunc(CUstream_st*, void (*call)(void*), void* argument)
{
    call(argument);
    return 0;
}

int cuStreamBeginCapture_v2(CUstream_st*, int)
{
    return kNotSupported;
}

int cuStreamEndCapture(CUstream_st*, void**)
{
    return kNotSupported;
}

int cuGraphInstantiateWithFlags(void**, void*, unsigned long long)
{
    return kNotSupported;
}

int cuGraphDestroy(void*)
{
    return kNotSupported;
}

int cuGraphExecDestroy(void*)
{
    return kNotSupported;
}

int cuGraphLaunch(void*, CUstream_st*)
{
    return kNotSupported;
}

} // extern "C"
