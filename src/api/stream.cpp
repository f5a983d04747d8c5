// SPDX-License-Identifier: Apache-2.0
#include "api/stream.h"

#include <dlfcn.h>

namespace tw::api {

TwHostCudaTable const* hostCuda()
{
    auto const* table = static_cast<TwHostCudaTable const*>(dlsym(RTLD_DEFAULT, "twHostCuda"));
    bool const fits = table && table->version == kTwHostCudaVersion && table->sizeBytes >= sizeof(TwHostCudaTable);
    return fits ? table : nullptr;
}

Error needsHostCuda(char const* what)
{
    return unsupported(std::string(what) + " needs the CUDA runtime of this project: the engine runs on the CPU, and "
                                           "the process has no lib/hostcuda/libcudart"
                                           " (link it instead of the real one on machines without a GPU)");
}

Error cudaFailed(char const* what, int status)
{
    // Numbers of cudaError_t.
    char const* const meaning = status == 400                    ? " (invalid stream or event)"
                                : status >= 900 && status <= 908 ? " (not possible while a stream is captured)"
                                                                 : "";
    return Error{ErrorCode::kFailedExecution, std::string(what) + ": CUDA error " + std::to_string(status) + meaning};
}

} // namespace tw::api
