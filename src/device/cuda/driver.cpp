// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <cstring>

#include "device/cuda/library.h"

namespace tw::cuda {

namespace {

constexpr int kOldestDriver = 11040; // CUDA 11.4: the first whose compatibility rules let it run what NVRTC 12 makes

} // namespace

Driver::~Driver() = default;

Result<void> Driver::check(int status, char const* call) const
{
    if (status == kSuccess)
        return {};
    char const *name = nullptr, *text = nullptr;
    cuGetErrorName(status, &name);
    cuGetErrorString(status, &text);
    std::string const function(call, std::strcspn(call, "("));
    return Error{status == 2 ? ErrorCode::kFailedAllocation : ErrorCode::kFailedExecution,
                 function + ": " + (name ? name : fmt::format("CUDA error {}", status)) +
                     (text ? std::string(" (") + text + ")" : "")};
}

namespace {

constexpr int kErrorInsufficientDriver =
    35; // cudaErrorInsufficientDriver: the runtime's number for a driver that will not do

// Users search for these words and CUDA's number.
std::string noStart(int status)
{
    return fmt::format("Cuda initialization failure with error {}", status);
}

} // namespace

Result<std::shared_ptr<Driver const>> Driver::open()
{
    std::shared_ptr<Driver> d(new Driver);
    auto library = Library::open("the CUDA driver", {"libcuda.so.1"}, {});
    if (!library.ok())
        return std::move(library).error().in(noStart(kErrorInsufficientDriver));
    d->library_ = std::move(*library);
    std::string missing;
#define TW_CUDA_DRIVER_NEW(name, exported, parameters)                                                                 \
    d->name = reinterpret_cast<decltype(d->name)>(d->library_->symbol(exported));
#define TW_CUDA_DRIVER(name, exported, parameters)                                                                     \
    TW_CUDA_DRIVER_NEW(name, exported, parameters)                                                                     \
    if (!d->name && missing.empty())                                                                                   \
        missing = exported;
#include "device/cuda/driver.def"
#undef TW_CUDA_DRIVER
#undef TW_CUDA_DRIVER_NEW
    if (!missing.empty())
        return failedInitialization("the CUDA driver is too old: it has no " + missing + "; update the NVIDIA driver")
            .in(noStart(kErrorInsufficientDriver));
    int status = d->cuInit(0);
    if (status != kSuccess && status != kErrorNoDevice)
        return std::move(d->check(status, "cuInit")).error().in(noStart(status));
    TW_CUDA(*d, cuDriverGetVersion(&d->version_));
    if (d->version_ < kOldestDriver)
        return failedInitialization("the CUDA driver is too old: it is for CUDA {}.{}, 11.4 is the oldest that works; "
                                    "update the NVIDIA driver",
                                    d->version_ / 1000, d->version_ % 1000 / 10)
            .in(noStart(kErrorInsufficientDriver));
    if (status == kSuccess)
        TW_CUDA(*d, cuDeviceGetCount(&d->deviceCount_));
    if (d->deviceCount_ == 0)
        return failedInitialization("the CUDA driver finds no GPU").in(noStart(kErrorNoDevice));
    return std::shared_ptr<Driver const>(std::move(d));
}

} // namespace tw::cuda
