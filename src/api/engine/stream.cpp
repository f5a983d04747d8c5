// SPDX-License-Identifier: Apache-2.0
#include "api/engine/stream.h"

#include <mutex>
#include <shared_mutex>

#include <dlfcn.h>

#include "api/engine/cuda_driver.h"
#include "hostcuda/modules.h"

namespace tw::api {

namespace {

// What the search found, good for as long as nothing is loaded or unloaded: a walk over the hundreds of modules of a
// Python process takes longer than a small engine. Stand-ins stay loaded, so the table is good for ever.
struct Seen
{
    std::shared_mutex mutex;
    bool isKnown = false;
    uint64_t loads = 0;
    HostCuda answer;
};

HostCuda search(bool& isComplete)
{
    hostcuda::Modules const found = hostcuda::findModules();
    isComplete = found.isComplete;
    HostCuda answer{found.table, false};
    if (!found.table || !found.hasOtherRuntime)
        return answer;
    // The client's own calls go to whichever comes first in the global scope. Where neither is there, nobody can tell.
    bool const isCalled = found.isInProgram || dlsym(RTLD_DEFAULT, "twHostCuda");
    answer.isBesideAnother = !isCalled;
    return answer;
}

} // namespace

HostCuda hostCuda()
{
    static Seen& seen = *new Seen; // until the process ends: destructors of static objects may run engines
    uint64_t const loads = hostcuda::countOfLoads();
    {
        std::shared_lock const lock(seen.mutex);
        if (seen.isKnown && seen.loads == loads)
            return seen.answer;
    }
    bool isComplete = true;
    HostCuda const answer = search(isComplete);
    std::unique_lock const lock(seen.mutex);
    seen.isKnown = isComplete;
    seen.loads = loads;
    seen.answer = answer;
    return answer;
}

TwHostCudaTable const* hostCudaOf(CUstream_st* stream)
{
    HostCuda const found = hostCuda();
    if (!found.table || !found.isBesideAnother || !CudaDriver::ofProcess())
        return found.table;
    int capturing = 0;
    return stream && found.table->isCapturing(stream, &capturing) == 0 ? found.table : nullptr;
}

Error needsHostCuda(char const* what)
{
    return unsupported("{} needs the CUDA runtime of this project: the engine runs on the CPU, and the process has no "
                       "lib/hostcuda/libcudart (link it instead of the real one on machines without a GPU)",
                       what);
}

Error cudaFailed(char const* what, int status)
{
    // Numbers of cudaError_t.
    char const* const meaning = status == 400                    ? " (invalid stream or event)"
                                : status >= 900 && status <= 908 ? " (not possible while a stream is captured)"
                                                                 : "";
    return failedExecution("{}: CUDA error {}{}", what, status, meaning);
}

} // namespace tw::api
