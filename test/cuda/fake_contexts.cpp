// SPDX-License-Identifier: Apache-2.0
// Of the fake driver: contexts, of GPUs and of clients, which are current by thread; streams, which belong
// to one and may be captured; code, which is loaded and launched and does nothing.
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

#include "device/cuda/driver.h"
#include "fake_streams.h"

using namespace tw::cuda;
using namespace tw::fake;

#define TW_CUDA_DRIVER_NEW(name, symbol, parameters)
#define TW_CUDA_DRIVER(name, symbol, parameters) extern "C" int fake_##name parameters __asm__(symbol);
#include "device/cuda/driver.def"

// What the tests change, and read.
extern "C" {
int twFakeFailure = 0; // status of launches
int twFakeLaunches = 0;
int twFakePrimaries = 0; // primary contexts that are held
}

namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400, kInvalidated = 901, kMostGpus = 8;

Context primaries[kMostGpus];
thread_local std::vector<Context*> current;

Context* contextOf(CUctx_st* c)
{
    return reinterpret_cast<Context*>(c);
}
CUctx_st* handleOf(Context* c)
{
    return reinterpret_cast<CUctx_st*>(c);
}
// Now, or when the graph that captures it is launched.
int put(CUstream_st* stream, std::function<void()> work)
{
    if (current.empty())
        return kInvalidContext;
    Stream* const s = streamOf(stream);
    if (s && s->context != current.back())
        return kInvalidHandle;
    runOrCapture(stream, std::move(work));
    return kSuccess;
}

// A function is its context, the kernel of conditional nodes an odd address there.
bool isAdvance(CUfunc_st* function)
{
    return reinterpret_cast<uintptr_t>(function) % 2 != 0;
}
Context* contextOf(CUfunc_st* function)
{
    return reinterpret_cast<Context*>(reinterpret_cast<uintptr_t>(function) & ~uintptr_t(1));
}

double now()
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

void (*tw::fake::advance)(void const* parameters) = nullptr;

extern "C" int twFakePut(CUstream_st* stream, std::function<void()> const* work)
{
    return put(stream, *work);
}

// A context as cuCtxCreate makes it, but for that it is not current.
extern "C" CUctx_st* twFakeContext(int device)
{
    return handleOf(new Context{device});
}
extern "C" void twFakeEndContext(CUctx_st* context)
{
    delete contextOf(context);
}
extern "C" void twFakeSetCurrent(CUctx_st* context)
{
    current.clear();
    if (context)
        current.push_back(contextOf(context));
}
extern "C" CUctx_st* twFakePrimary(int device)
{
    return handleOf(&primaries[device]);
}
extern "C" void twFakeBeginCapture(CUstream_st* stream)
{
    streamOf(stream)->isCapturing = true;
    streamOf(stream)->isInvalid = false;
    streamOf(stream)->work.clear();
}
// The status of cuStreamEndCapture.
extern "C" int twFakeEndCapture(CUstream_st* stream)
{
    streamOf(stream)->isCapturing = false;
    return streamOf(stream)->isInvalid ? kInvalidated : kSuccess;
}
// Of what was captured last.
extern "C" void twFakeLaunchGraph(CUstream_st* stream)
{
    for (auto const& work : streamOf(stream)->work)
        work();
}

int fake_cuDevicePrimaryCtxRetain(CUctx_st** context, int device)
{
    *context = handleOf(&primaries[device]);
    ++twFakePrimaries;
    return kSuccess;
}
int fake_cuDevicePrimaryCtxRelease(int)
{
    --twFakePrimaries;
    return kSuccess;
}
int fake_cuCtxGetCurrent(CUctx_st** context)
{
    *context = current.empty() ? nullptr : handleOf(current.back());
    return kSuccess;
}
int fake_cuCtxGetDevice(int* device)
{
    if (current.empty())
        return kInvalidContext;
    *device = current.back()->device;
    return kSuccess;
}
int fake_cuCtxPushCurrent(CUctx_st* context)
{
    current.push_back(contextOf(context));
    return kSuccess;
}
int fake_cuCtxPopCurrent(CUctx_st** context)
{
    if (current.empty())
        return kInvalidContext;
    *context = handleOf(current.back());
    current.pop_back();
    return kSuccess;
}
int fake_cuModuleLoadData(CUmod_st** module, void const*)
{
    *module = reinterpret_cast<CUmod_st*>(current.empty() ? nullptr : current.back());
    return current.empty() ? kInvalidContext : kSuccess;
}
int fake_cuModuleUnload(CUmod_st*)
{
    return kSuccess;
}
int fake_cuModuleGetFunction(CUfunc_st** function, CUmod_st* module, char const* name)
{
    bool const isOdd = advance && std::string(name) == "advance";
    *function = reinterpret_cast<CUfunc_st*>(reinterpret_cast<uintptr_t>(module) | uintptr_t(isOdd));
    return kSuccess;
}
int fake_cuFuncSetAttribute(CUfunc_st*, int, int)
{
    return kSuccess;
}
int fake_cuFuncGetAttribute(int* value, int, CUfunc_st*)
{
    *value = 0;
    return kSuccess;
}
int fake_cuLaunchKernel(CUfunc_st* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream_st* stream, void** parameters, void**)
{
    if (twFakeFailure)
        return twFakeFailure;
    if (current.empty() || contextOf(function) != current.back())
        return kInvalidHandle;
    if (isAdvance(function)) {
        auto const* const bytes = static_cast<char const*>(parameters[0]);
        return put(stream, [copy = std::string(bytes, kAdvanceBytes)] { advance(copy.data()); });
    }
    return put(stream, [] { ++twFakeLaunches; });
}
int fake_cuStreamCreate(CUstream_st** stream, unsigned)
{
    if (current.empty())
        return kInvalidContext;
    *stream = reinterpret_cast<CUstream_st*>(new Stream{current.back()});
    return kSuccess;
}
int fake_cuStreamDestroy(CUstream_st* stream)
{
    delete streamOf(stream);
    return kSuccess;
}
int fake_cuStreamSynchronize(CUstream_st* stream)
{
    if (stream && streamOf(stream)->isCapturing)
        streamOf(stream)->isInvalid = true;
    return stream && streamOf(stream)->isCapturing ? kInvalidated : kSuccess;
}
int fake_cuStreamIsCapturing(CUstream_st* stream, int* status)
{
    *status = stream && streamOf(stream)->isCapturing;
    return kSuccess;
}
int fake_cuEventRecord(CUevent_st* event, CUstream_st* stream)
{
    if (stream && streamOf(stream)->isCapturing)
        return kSuccess; // an event of the capture, which tells no time
    return put(stream, [event] { *reinterpret_cast<double*>(event) = now(); });
}
extern "C" int cuEventRecordWithFlags(CUevent_st* event, CUstream_st* stream, unsigned)
{
    return put(stream, [event] { *reinterpret_cast<double*>(event) = now(); });
}
