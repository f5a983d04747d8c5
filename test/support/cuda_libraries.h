// SPDX-License-Identifier: Apache-2.0
// Where tests and benchmarks look for the libraries that are opened at run time: what the environment names, else the
// loader's path, the toolkit's folder, the packages of the Python environments.
#pragma once

#include <cstdlib>
#include <memory>

#include "device/cuda/libraries.h"
#include "device/cuda/search_path.h"

namespace tw::test {

inline cuda::SearchPath searchPathOf(char const* variable, std::initializer_list<char const*> packages)
{
    auto read = [](char const* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
    return cuda::searchPathFor({read(variable), "", {read("VIRTUAL_ENV"), read("CONDA_PREFIX")}}, packages);
}

inline cuda::SearchPath testSearchPath()
{
    return searchPathOf("TENSORWRIGHT_NVRTC", {"cu13/lib", "cuda_nvrtc/lib"});
}

inline std::shared_ptr<cuda::Libraries> testLibraries()
{
    return std::make_shared<cuda::Libraries>(searchPathOf("TENSORWRIGHT_CUBLASLT", {"cu13/lib", "cublas/lib"}),
                                             searchPathOf("TENSORWRIGHT_CUDNN", {"cudnn/lib", "cu13/lib"}));
}

} // namespace tw::test
