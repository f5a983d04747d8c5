// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cudnn.h"

namespace tw::cuda {

Cudnn::~Cudnn()
{
    for (auto const& [context, handles] : handles_) {
        Current const current(*handles.device);
        for (CudnnHandle* handle : handles.all)
            cudnnDestroy(handle);
    }
}

Result<std::unique_ptr<Cudnn>> Cudnn::open(SearchPath const& path)
{
    constexpr int kMajor = 9, kOfMajor = 10000;
    std::unique_ptr<Cudnn> dnn(new Cudnn);
    TW_ASSIGN(dnn->library_, Library::open("cuDNN 9", {"libcudnn.so.9", "libcudnn.so"}, path));
#define TW_CUDNN(name, result, parameters)                                                                             \
    dnn->name = reinterpret_cast<decltype(dnn->name)>(dnn->library_->symbol(#name));                                   \
    if (!dnn->name)                                                                                                    \
        return failedInitialization(dnn->library_->file() + " has no " #name ": it is no cuDNN 9");
#include "device/cuda/cudnn.def"
#undef TW_CUDNN
    dnn->version_ = int(dnn->cudnnGetVersion());
    if (dnn->version_ / kOfMajor != kMajor)
        return failedInitialization("{} is cuDNN {}, 9 is the one that works", dnn->library_->file(), dnn->version_);
    dnn->library_->keepOpen();
    return dnn;
}

Result<void> Cudnn::check(int status, char const* call) const
{
    if (status == 0)
        return {};
    char message[512] = {};
    cudnnGetLastErrorString(message, sizeof(message));
    return failedExecution(std::string(call) + ": " + cudnnGetErrorString(status) +
                           (message[0] ? std::string(" (") + message + ")" : std::string()));
}

Result<std::unique_ptr<Cudnn::Lent>> Cudnn::lend(std::shared_ptr<Device const> const& device) const
{
    CUctx_st* const context = device->context();
    {
        std::lock_guard lock(mutex_);
        if (auto it = handles_.find(context); it != handles_.end() && !it->second.free.empty()) {
            CudnnHandle* const handle = it->second.free.back();
            it->second.free.pop_back();
            return std::make_unique<Lent>(*this, context, handle);
        }
    }
    Current const current(*device);
    CudnnHandle* handle = nullptr;
    TW_TRY(check(cudnnCreate(&handle), "cudnnCreate"));
    std::lock_guard lock(mutex_);
    Handles& handles = handles_[context];
    handles.device = handles.device ? handles.device : device;
    handles.all.push_back(handle);
    return std::make_unique<Lent>(*this, context, handle);
}

Result<std::string> Cudnn::once(std::string const& key, std::function<Result<std::string>()> const& make) const
{
    {
        std::unique_lock lock(mutex_);
        made_.wait(lock, [&] { return !making_.contains(key); });
        if (auto it = texts_.find(key); it != texts_.end())
            return it->second;
        making_.insert(key);
    }
    Result<std::string> fresh = make();
    std::lock_guard lock(mutex_);
    making_.erase(key);
    made_.notify_all();
    return texts_.try_emplace(key, std::move(fresh)).first->second;
}

Cudnn::Lent::~Lent()
{
    std::lock_guard lock(cudnn_.mutex_);
    cudnn_.handles_[context_].free.push_back(handle_);
}

Result<CudnnDescriptor> CudnnDescriptor::create(Cudnn const& cudnn, int kind)
{
    CudnnDescriptor d;
    d.kind_ = kind;
    void* descriptor = nullptr;
    int const status = cudnn.cudnnBackendCreateDescriptor(kind, &descriptor);
    d.descriptor_ = {descriptor, Destroy{&cudnn}};
    TW_TRY(d.check(status, "creating a descriptor"));
    return d;
}

Result<void> CudnnDescriptor::check(int status, char const* what, int attribute) const
{
    if (status == 0)
        return {};
    std::string const number = attribute < 0 ? std::string() : fmt::format(" {}", attribute);
    return descriptor_.get_deleter().cudnn->check(status,
                                                  (fmt::format("{}{} of kind {}", what, number, kind_)).c_str());
}

Result<void> CudnnDescriptor::set(int attribute, int type, int64_t count, void const* values)
{
    return check(descriptor_.get_deleter().cudnn->cudnnBackendSetAttribute(get(), attribute, type, count, values),
                 "setting attribute", attribute);
}

Result<void> CudnnDescriptor::finalize()
{
    return check(descriptor_.get_deleter().cudnn->cudnnBackendFinalize(get()), "finalizing a descriptor");
}

Result<int64_t> CudnnDescriptor::read(int attribute, int type, int64_t most, void* values) const
{
    int64_t count = 0;
    TW_TRY(
        check(descriptor_.get_deleter().cudnn->cudnnBackendGetAttribute(get(), attribute, type, most, &count, values),
              "reading attribute", attribute));
    return count;
}

} // namespace tw::cuda
