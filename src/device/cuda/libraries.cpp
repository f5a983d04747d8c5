// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/libraries.h"

#include "device/cuda/library.h"

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

namespace {

constexpr int kOldest = 120000; // 12.0

} // namespace

CublasLt::~CublasLt()
{
    for (auto const& [context, opened] : handles_) {
        Current const current(*opened.device);
        cublasLtDestroy(opened.handle);
    }
}

Result<std::unique_ptr<CublasLt>> CublasLt::open(SearchPath const& path)
{
    std::unique_ptr<CublasLt> lt(new CublasLt);
    TW_ASSIGN(lt->library_, openLibraryOfDriver("cuBLASLt", "libcublasLt.so", path));
#define TW_CUBLASLT(name, result, parameters)                                                                          \
    lt->name = reinterpret_cast<decltype(lt->name)>(lt->library_->symbol(#name));                                      \
    if (!lt->name)                                                                                                     \
        return failedInitialization(lt->library_->file() + " has no " #name ": it is too old");
#include "device/cuda/cublaslt.def"
#undef TW_CUBLASLT
    lt->version_ = int(lt->cublasLtGetVersion());
    if (lt->version_ < kOldest)
        return failedInitialization("{} is cuBLASLt {}, {} is the oldest that works", lt->library_->file(),
                                    lt->version_, kOldest);
    lt->library_->keepOpen();
    return lt;
}

Result<LtHandle*> CublasLt::handle(std::shared_ptr<Device const> const& device) const
{
    std::lock_guard lock(mutex_);
    if (auto it = handles_.find(device->context()); it != handles_.end())
        return it->second.handle;
    Current const current(*device);
    LtHandle* handle = nullptr;
    TW_TRY(check(cublasLtCreate(&handle), "cublasLtCreate"));
    handles_[device->context()] = {device, handle};
    return handle;
}

Result<void> CublasLt::check(int status, char const* call) const
{
    if (status == 0)
        return {};
    return failedExecution("{}: {} ({})", call, cublasLtGetStatusString(status), status);
}

} // namespace tw::cuda
