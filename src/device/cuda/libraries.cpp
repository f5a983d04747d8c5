// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/libraries.h"

namespace tw::cuda {

namespace {

template <class T>
Result<T const*> openOnce(std::unique_ptr<T>& library, std::optional<Error>& failure, SearchPath const& path)
{
    if (failure)
        return *failure;
    if (!library) {
        auto opened = T::open(path);
        if (!opened.ok()) {
            failure = opened.error();
            return *failure;
        }
        library = std::move(*opened);
    }
    return static_cast<T const*>(library.get());
}

} // namespace

Result<CublasLt const*> Libraries::cublasLt()
{
    std::lock_guard lock(mutex_);
    return openOnce(cublasLt_, noCublasLt_, cublasLtPath_);
}

Result<Cudnn const*> Libraries::cudnn()
{
    std::lock_guard lock(mutex_);
    return openOnce(cudnn_, noCudnn_, cudnnPath_);
}

} // namespace tw::cuda
