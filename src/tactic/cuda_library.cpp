// SPDX-License-Identifier: Apache-2.0
#include "tactic/cuda_library.h"

namespace tw::ops {

char const* nameOf(Source source)
{
    constexpr char const* kNames[] = {"our own kernels", "cuBLASLt", "cuDNN"};
    return size_t(source) < std::size(kNames) ? kNames[size_t(source)] : "unknown";
}

Result<void> openLibrary(Source source, cuda::Target const& target)
{
    if (source == Source::kOwn)
        return {};
    if (!target.libraries)
        return unsupported(std::string(nameOf(source)) + " is not looked for here");
    if (source == Source::kCublasLt) {
        TW_TRY(target.libraries->cublasLt());
    } else {
        TW_TRY(target.libraries->cudnn());
    }
    return {};
}

std::string versionOf(Source source, cuda::Target const& target)
{
    std::string version = "none";
    if (openLibrary(source, target).ok()) {
        if (source == Source::kCublasLt)
            version = std::to_string((*target.libraries->cublasLt())->version());
        else if (source == Source::kCudnn)
            version = std::to_string((*target.libraries->cudnn())->version());
    }
    return std::string(nameOf(source)) + " " + version;
}

Support supportsLibrary(Source source, Problem const& problem)
{
    if (!problem.target.cuda)
        return Support::no("runs on GPUs only");
    if (auto there = openLibrary(source, *problem.target.cuda); !there.ok())
        return Support::no(there.error().message);
    if (!problem.target.cuda->device)
        return Support::no(std::string(nameOf(source)) + " needs the GPU that the kernel is for");
    return Support::yes();
}

} // namespace tw::ops
